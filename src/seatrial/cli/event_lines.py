"""A run's events for people, as they happen: a line for each, with the pieces of a message or a call on one line."""

from __future__ import annotations

from typing import Any, TextIO

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.cli.terminal import one_line, paint, printable
from seatrial.events import types as t

_WIDTH = 160
_INDENT = " " * 8
_TEXT = (t.TextMessageContent, t.TextMessageChunk)
_REASONING = (t.ReasoningMessageContent, t.ReasoningMessageChunk)
_ARGUMENTS = (t.ToolCallArgs, t.ToolCallChunk)
# They say nothing that the lines between them do not.
_SILENT = (
    t.TextMessageStart,
    t.TextMessageEnd,
    t.ToolCallEnd,
    t.ReasoningStart,
    t.ReasoningEnd,
    t.ReasoningMessageStart,
    t.ReasoningMessageEnd,
)


class EventLines:
    """Writes events to a stream of text. What agents say cannot steer the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._writing: tuple[str, str] | None = None
        """What the line that has not ended yet belongs to."""
        self._roles: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def show(self, sequence: int, event: t.Event) -> None:
        """Write what an event says."""
        self._remember(event)
        if isinstance(event, _TEXT):
            role = self._roles.get(_given(event.message_id), "assistant")
            self._piece(sequence, event, "text", _given(event.message_id), role, "bold", event.delta)
        elif isinstance(event, _REASONING):
            self._piece(sequence, event, "reasoning", _given(event.message_id), "reasoning", "dim", event.delta)
        elif isinstance(event, _ARGUMENTS):
            name = self._tools.get(_given(event.tool_call_id), "")
            self._piece(sequence, event, "call", _given(event.tool_call_id), f"call {name}", "yellow", event.delta)
        elif isinstance(event, t.ToolCallStart):
            self._piece(sequence, event, "call", event.tool_call_id, f"call {event.tool_call_name}", "yellow", "")
        elif isinstance(event, _SILENT):
            self.end_line()
        else:
            label, colour, text = self._told(event)
            self.end_line()
            self._begin(sequence, event, label, colour)
            self._stream.write(f" {one_line(text, _WIDTH)}\n" if text else "\n")
        self._stream.flush()

    def end_line(self) -> None:
        """End the line that is being written, if there is one."""
        if self._writing is not None:
            self._stream.write("\n")
            self._stream.flush()
            self._writing = None

    def _remember(self, event: t.Event) -> None:
        if isinstance(event, t.TextMessageStart | t.TextMessageChunk) and isinstance(event.role, str):
            self._roles[_given(event.message_id)] = event.role
        elif isinstance(event, t.TextMessageEnd):
            self._roles.pop(event.message_id, None)
        elif isinstance(event, t.ToolCallStart | t.ToolCallChunk) and isinstance(event.tool_call_name, str):
            self._tools[_given(event.tool_call_id)] = event.tool_call_name

    def _piece(
        self, sequence: int, event: t.Event, kind: str, id: str, label: str, colour: str, text: str | UnsetType
    ) -> None:
        """Go on with the line of a message or a call, or begin one."""
        # A chunk may leave its id out, and then continues the last item of its kind.
        same = self._writing is not None and self._writing[0] == kind and id in ("", self._writing[1])
        if not same:
            self.end_line()
            self._begin(sequence, event, label, colour)
            self._stream.write(" ")
            self._writing = (kind, id)
        if isinstance(text, str):
            self._stream.write(printable(text).replace("\n", f"\n{_INDENT}"))

    def _begin(self, sequence: int, event: t.Event, label: str, colour: str) -> None:
        subagent = getattr(event, "subagent_run_id", UNSET)
        if isinstance(subagent, str) and not isinstance(event, t.SubagentStarted):
            label = f"[{subagent}] {label}"
        number = paint(f"{sequence:>6}", "dim", self._stream)
        self._stream.write(f"{number}  {paint(one_line(label), colour, self._stream)}")

    def _told(self, event: t.Event) -> tuple[str, str, str]:
        """Label, colour and text of an event that has a line of its own."""
        match event:
            case t.RunStarted():
                return "run started", "bold", f"thread {event.thread_id}"
            case t.RunFinished(outcome=t.InterruptOutcome(interrupts=interrupts)):
                asked = "; ".join(f"{each.id}: {_given(each.message) or each.reason}" for each in interrupts)
                return "run waits for input", "yellow", asked
            case t.RunFinished(outcome=t.CancelledOutcome()):
                return "run cancelled", "yellow", ""
            case t.RunFinished():
                return "run finished", "green", _json(event.result)
            case t.RunError():
                return "run failed", "red", f"{event.message} [{_given(event.code) or 'no code'}]"
            case t.StepStarted():
                return "step", "dim", event.step_name
            case t.StepFinished():
                return "step done", "dim", event.step_name
            case t.ToolCallResult():
                content = event.content if isinstance(event.content, str) else _json(event.content)
                return f"result {self._tools.pop(event.tool_call_id, '')}", "yellow", content
            case t.SubagentStarted():
                return f"[{event.subagent_run_id}] started", "bold", event.name
            case t.SubagentFinished():
                return "finished", "bold", _json(event.result)
            case t.SubagentError():
                return "failed", "red", event.message
            case t.CustomEvent():
                return f"custom {event.name}", "dim", _json(event.value)
        fields = msgspec.to_builtins(event)
        return fields.pop("type").lower().replace("_", " "), "dim", _json(fields)


def _given(value: str | UnsetType) -> str:
    return value if isinstance(value, str) else ""


def _json(value: Any) -> str:
    return "" if value is UNSET else wire.encode(value).decode()
