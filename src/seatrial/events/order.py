"""The order of a log that grows: whether an event may come now, what has to come before the end, and how runs ended.

Chunks are expanded and what they stand for is verified, together: an event that is refused leaves no trace, and from
wherever the log stands there is a legal way to end it. That is more than clients ask for. They let one agent end an
item that the chunks of another are still building, and refuse whatever ends those chunks, the end of the run too.

Of the ends of one run the worst counts, whatever is sent after it.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from msgspec import UNSET

from seatrial.events import types as t
from seatrial.events.expand import CHUNKS, Expander, StreamKind
from seatrial.events.verify import Verifier
from seatrial.events.violation import OrderFault, OrderViolation, agent, name_of, quoted
from seatrial.transcript.failure import says_failed

Terminal: TypeAlias = t.RunFinished | t.RunError


class Order:
    """Where a log stands."""

    def __init__(self) -> None:
        self._expander = Expander()
        self._verifier = Verifier()

    @property
    def ended(self) -> bool:
        """Whether the last event was terminal."""
        return self._verifier.ended

    def feed(self, event: t.Event, index: int = 0) -> OrderFault | None:
        """Why this event may not come now, or None, and then it has come."""
        expander, verifier = self._expander, self._verifier
        if not expander.lanes and type(event) not in CHUNKS:
            return verifier.checks[type(event)](event, index)
        fault = self._taken_from_another(event)
        if fault is not None:
            return fault
        lanes = dict(expander.lanes)
        parts = expander.feed(event, index)
        if isinstance(parts, OrderViolation):
            return OrderFault(parts.code, parts.message)
        for done, part in enumerate(parts):
            fault = verifier.checks[type(part)](part, index)
            if fault is not None:
                # Only the ends of streams come before something that can be refused.
                for ended in parts[:done]:
                    verifier.reopen(cast("t.TextMessageEnd | t.ToolCallEnd | t.ReasoningMessageEnd", ended))
                expander.return_to(lanes)
                return fault
        return None

    def closing(self, error: str | None = None) -> list[t.Event]:
        """What ends everything that is open. Subagents end well, or with this error."""
        # What chunks are building, the terminal event ends by itself.
        building = {(stream.kind, stream.id) for stream in self._expander.lanes.values()}
        events = [event for event in self._verifier.ends() if _item(event) not in building]
        for subagent in reversed(self._verifier.subagents):
            if error is None:
                events.append(t.SubagentFinished(subagent_run_id=subagent))
            else:
                events.append(t.SubagentError(subagent_run_id=subagent, message=error))
        return events

    def _taken_from_another(self, event: t.Event) -> OrderFault | None:
        """The fault of an event that ends, or gives to another agent, what the chunks of a lane are building."""
        if isinstance(event, t.ToolCallResult):
            item: tuple[StreamKind, str] | None = ("text", event.message_id)
        else:
            item = _item(event)
        if item is None:
            return None
        holder = self._expander.holder(*item)
        tag = getattr(event, "subagent_run_id", UNSET)
        if holder is None or holder == tag:
            return None
        whose = f"{quoted(item[1])}, which {agent(holder)} is streaming in chunks"
        return OrderFault("attribution", f"{name_of(event)} of {agent(tag)} names {whose}")


def _item(event: t.Event) -> tuple[StreamKind, str] | None:
    """What an event ends, of that which chunks can build."""
    if isinstance(event, t.TextMessageEnd):
        return "text", event.message_id
    if isinstance(event, t.ToolCallEnd):
        return "tool", event.tool_call_id
    return ("reasoning", event.message_id) if isinstance(event, t.ReasoningMessageEnd) else None


def is_worse(end: Terminal, other: Terminal) -> bool:
    """Whether a run that has both ends ended this way: a server may report an error, and finish nevertheless."""
    return _badness(end) > _badness(other)


def _badness(end: Terminal) -> int:
    if isinstance(end, t.RunError):
        return 4
    if isinstance(end.outcome, t.CancelledOutcome):
        return 3
    if isinstance(end.result, dict) and says_failed(end.result):
        return 2
    return 1 if isinstance(end.outcome, t.InterruptOutcome) else 0


class StreamEnding:
    """What the events of a stream, taken one by one, say of how it ended."""

    def __init__(self) -> None:
        self.last: Terminal | None = None
        """How the last run ended; None when it has not, or there was none."""
        self.index: int | None = None
        """Which event that is."""
        self.error: t.RunError | None = None
        """The first error of any run: a run that comes after it does not undo it."""
        self._taken = 0

    def take(self, event: t.Event) -> None:
        """Take the next event."""
        if isinstance(event, t.RunStarted):
            self.last = self.index = None
        elif isinstance(event, t.RunFinished | t.RunError):
            if isinstance(event, t.RunError) and self.error is None:
                self.error = event
            if self.last is None or is_worse(event, self.last):
                self.last, self.index = event, self._taken
        self._taken += 1
