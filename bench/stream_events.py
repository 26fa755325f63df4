"""The run whose events the servers of the stream subjects send."""

from __future__ import annotations

from seatrial.events import Event, encode_event
from seatrial.events.types import TextMessageContent, TextMessageStart
from seatrial.server.run_feed import Block, EventFraming

RUN, THREAD = "run-0198c0de", "thread-0198c0de"
FIRST = 1
"""The sequence of the agent's first event, behind RUN_STARTED."""

_FRAMING = EventFraming(RUN, THREAD)
_NOW = 1_790_000_000_000
_TEXT = "The order was shipped yesterday from the warehouse in Rotterdam, and is expected tomorrow. "


def events(count: int) -> list[Event]:
    """A message in so many events: about 190 bytes each, 300 in a frame."""
    pieces: list[Event] = [
        TextMessageContent(message_id="msg-1", delta=f"{number:06} {_TEXT}", timestamp=_NOW)
        for number in range(1, count)
    ]
    return [TextMessageStart(message_id="msg-1", role="assistant", timestamp=_NOW), *pieces]


def frames(count: int, group: int) -> list[bytes]:
    """The frames in SSE of so many events, so many in each."""
    encoded = [encode_event(event) for event in events(count)]
    return [
        Block(_FRAMING, FIRST + start, encoded[start : start + group]).framed("sse") for start in range(0, count, group)
    ]
