"""Streams of the Anthropic API: blocks gathered from their deltas, then read like a message that came whole.

A message without `message_stop` was cut off: without a stop reason, its turn ends in an error. Another
`message_start` begins the next message of a recording.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.anthropic_turn import add_response
from seatrial.formats.framing import StreamReader
from seatrial.formats.parts import At
from seatrial.formats.shape import Shape, drop_key
from seatrial.formats.tally import NoteTally
from seatrial.formats.turn import TurnEnding


class AnthropicEvent(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of an event of any type."""

    type: Any = None
    index: Any = None
    message: Any = None
    content_block: Any = None
    delta: Any = None
    usage: Any = None
    error: Any = None


_EVENT = Shape(AnthropicEvent)
EVENT_TYPES = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
"""The types by which a stream is known; `error` is also that of a response."""
_GROWING = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "thinking"),
    "input_json_delta": ("partial_json", "tool_use"),
    "compaction_delta": ("content", "compaction"),
}
"""Which key of a delta is a fragment, and the type of the block that it belongs to."""


class AnthropicStream(StreamReader):
    """Reads `message_start`, `content_block_*`, `message_delta`, `message_stop`, `ping` and `error`."""

    format = "anthropic"

    def __init__(self, tally: NoteTally | None = None) -> None:
        super().__init__(tally)
        self._begin()

    def _begin(self) -> None:
        self._under_way = False
        self._said: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}
        self._error: Any = None

    def _take(self, payload: bytes, at: At) -> None:
        event = _EVENT.read(payload, self._tally, at)
        kind = event.type if event is not None else None
        if event is None or type(kind) is not str:
            raise SeatrialError("invalid_document", "expected an event with a type")
        if kind == "ping":
            return
        if kind == "message_stop":
            self._end_response(done=True)
            return
        if kind == "message_start":
            self._end()
            self._start(event.message, at)
        elif kind == "content_block_start":
            self._start_block(event)
        elif kind == "content_block_delta":
            self._take_delta(event, at)
        elif kind == "message_delta":
            self._take_usage(event.usage)
            if type(event.delta) is dict:
                self._said.update({key: what for key, what in event.delta.items() if what is not None})
        elif kind == "error":
            self._error = event.error or "the stream reports an error"
        elif kind != "content_block_stop":
            raise SeatrialError("invalid_document", f"unknown event type {kind[:100]!r}")
        self._under_way = True

    def _start(self, message: Any, at: At) -> None:
        if type(message) is not dict:
            raise SeatrialError("invalid_document", "expected a message to start with")
        self._said = {key: what for key, what in message.items() if key not in ("content", "usage")}
        self._take_usage(message.get("usage"))
        drop_key("content", message.get("content"), self._tally, (*at, "message"))
        if self._id is None and type(message.get("id")) is str:
            self._id = message["id"]

    def _take_usage(self, usage: Any) -> None:
        # Counts are cumulative; a later event repeats only those that it knows.
        if type(usage) is dict:
            self._usage.update({key: count for key, count in usage.items() if count is not None})

    def _start_block(self, event: AnthropicEvent) -> None:
        index = _index(event)
        if type(event.content_block) is not dict or index in self._blocks:
            raise SeatrialError("invalid_document", "expected a content block under an index of its own")
        self._blocks[index] = _Block(event.content_block)

    def _take_delta(self, event: AnthropicEvent, at: At) -> None:
        delta = event.delta if type(event.delta) is dict else {}
        kind = delta.get("type")
        if kind == "citations_delta":
            drop_key("citation", delta.get("citation"), self._tally, (*at, "delta"))
            return
        key, block_type = _GROWING.get(kind, ("", "")) if type(kind) is str else ("", "")
        fragment = delta.get(key)
        if type(fragment) is not str:
            raise SeatrialError("invalid_document", "expected a delta of a known type")
        index = _index(event)
        if index not in self._blocks:
            self._blocks[index] = _Block({"type": block_type})
        self._blocks[index].gather(key, fragment)

    def _end(self) -> None:
        self._end_response(done=False)

    def _end_response(self, *, done: bool) -> None:
        if not self._under_way:
            return
        said = {**self._said, "usage": self._usage or None}
        blocks = [self._blocks[index].whole() for index in sorted(self._blocks)]
        at: At = (self._responses,) if self._responses else ()
        self._responses += 1
        add_response(said, blocks, TurnEnding(error=self._error, cut_off=not done), self._chat, self._run, at)
        self._begin()


def _index(event: AnthropicEvent) -> int:
    return event.index if type(event.index) is int else 0


class _Block:
    """One content block under way."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._fragments: dict[str, list[str]] = {}

    def gather(self, key: str, fragment: str) -> None:
        self._fragments.setdefault(key, []).append(fragment)

    def whole(self) -> dict[str, Any]:
        """The block as it stands in a whole message. Input is left as text, which is read like any call's arguments."""
        block = dict(self._start)
        for key, fragments in self._fragments.items():
            text = "".join(fragments)
            if key == "partial_json":
                if text:
                    block["input"] = text
            else:
                given = block.get(key)
                block[key] = given + text if type(given) is str else text
        return block
