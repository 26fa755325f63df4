"""Stored events into the frames of the AG-UI view, for one client.

`id:` is the cursor. A stored event may become several frames, because chunks are expanded; the last one has the id, and
those before it can be taken twice without harm. What stands before the tail of a log (`prelude`) has no id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import UNSET

from seatrial.events import Expander, Verifier, Violation, cursor_text, encode_event
from seatrial.events import types as t
from seatrial.events.event_reader import EventReader
from seatrial.server.bare import bare, is_void
from seatrial.server.prelude import Standing

# An event that has these fields and no others, as it is encoded here. Anything else may be what clients refuse or warn
# of, and an attribution has to be held against what the client knows.
_PLAIN = re.compile(
    rb'\{"type":"(?:(?:TEXT|REASONING)_MESSAGE_CONTENT",(?:%b)?"messageId"|TOOL_CALL_ARGS",(?:%b)?"toolCallId")'
    rb':"%b","delta":"%b"\}' % (2 * (rb'"timestamp":[0-9]{1,15},',) + 2 * (rb'(?:[^"\\\x00-\x1f]|\\.)*+',))
)


class View:
    """What a client has been given, as far as it decides on what comes next."""

    def __init__(self, run_id: str, *, legal: bool, standing: Standing | None = None) -> None:
        self._cursor = cursor_text(run_id, 0)[:-1].encode()
        self._legal = legal
        """Whether the log was verified when it was stored; else each event is verified here."""
        self._expander = Expander() if standing is None else standing.expander
        # One that has read the log so far: it knows what was opened under the ids that it made up.
        self._reader = EventReader() if standing is None else standing.reader
        self._client = Verifier()
        self._waiting = dict.fromkeys([] if standing is None else standing.waiting())
        """Tool calls without a result."""
        self._untold = bool(self._waiting)
        """Whether the client may have missed the start of one of them."""
        self._answered: set[str] = set()
        self._ended = False

    def prelude(self, events: Iterable[t.Event]) -> bytes:
        """Frames of events that the log does not have at this place."""
        taken = [self._taken(event) for event in events]
        return b"".join([b"data: %b\n\n" % encode_event(event) for event in taken if event is not None])

    def frames(self, sequence: int, data: bytes) -> bytes:
        """Frames of the stored event with this sequence; none, when it has nothing to say to the client."""
        if self._stays(data):
            return b"id: %b%d\ndata: %b\n\n" % (self._cursor, sequence, data)
        event = self._reader.read(data)
        self._reader.notes.clear()
        parts = self._expander.feed(event, sequence)
        if isinstance(parts, Violation):
            return b""
        taken = [encode_event(part) for part in map(self._taken, parts) if part is not None]
        if not taken:
            return b""
        last = b"id: %b%d\ndata: %b\n\n" % (self._cursor, sequence, taken.pop())
        return b"".join([*[b"data: %b\n\n" % part for part in taken], last])

    def ending(self) -> bytes:
        """What the end of the run has to say: a log without a terminal event must not be read as a success."""
        if self._ended:
            return b""
        return self.prelude([t.RunError(message="the run ended without a terminal event", code="run_truncated")])

    def _stays(self, data: bytes) -> bool:
        """Whether the client can be given the event as it is stored."""
        return self._legal and not self._expander.lanes and _PLAIN.fullmatch(data) is not None

    def _taken(self, event: t.Event) -> t.Event | None:
        """The event as the client takes it; None when it would refuse it."""
        if is_void(event):
            return None
        event = bare(event)
        if isinstance(event, t.RunFinished) and self._untold and self._waiting:
            self._name_waiting(event)
        if not self._passes(event):
            return None
        self._ended = isinstance(event, t.RunFinished | t.RunError)
        if isinstance(event, t.ToolCallStart) and event.tool_call_id not in self._answered:
            self._waiting[event.tool_call_id] = None
        elif isinstance(event, t.ToolCallResult):
            self._waiting.pop(event.tool_call_id, None)
            self._answered.add(event.tool_call_id)
        elif self._ended:
            self._waiting.clear()
            self._answered.clear()
            self._untold = False
        return event

    def _passes(self, event: t.Event) -> bool:
        violation = self._client.feed(event, 0)
        if violation is None:
            return True
        if violation.code != "attribution" or not isinstance(event, t.AgentEvent):
            return False
        # Who joined late may know less of who owns what than the agents did. An absent attribution never disagrees.
        event.subagent_run_id = UNSET
        if self._client.feed(event, 0) is None:
            return True
        if not isinstance(event, t.ToolCallStart):
            return False
        event.parent_message_id = UNSET
        return self._client.feed(event, 0) is None

    def _name_waiting(self, event: t.RunFinished) -> None:
        """Name the tool calls that wait for a result, because the client counts only those that it saw start."""
        if event.outcome is UNSET:
            event.outcome = t.SuccessOutcome()
        if isinstance(event.outcome, t.SuccessOutcome) and not event.outcome.pending_tool_call_ids:
            event.outcome.pending_tool_call_ids = list(self._waiting)
