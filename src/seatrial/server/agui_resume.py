"""What an AG-UI client has to be told before it can take a log from the middle (events.md B12).

A client refuses an event that continues what it did not see start. So the tail of a log is preceded by RUN_STARTED and
by a start of everything that is open at the cut. A client that has followed so far appends to what it has; one that
joins is given the state and the messages first, with what open ones say so far.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from seatrial.events import Expander, Folding, OrderViolation, Verifier
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.event_reader import EventReader
from seatrial.events.violation import Owner
from seatrial.server.agui_events import conformant, conformant_messages

DELTAS = (
    b'{"type":"TEXT_MESSAGE_CONTENT",',
    b'{"type":"TOOL_CALL_ARGS",',
    b'{"type":"REASONING_MESSAGE_CONTENT",',
)
"""How encoded events begin that neither open nor close anything."""

Start: TypeAlias = (
    t.SubagentStarted
    | t.StepStarted
    | t.ReasoningStart
    | t.ReasoningMessageStart
    | t.TextMessageStart
    | t.ToolCallStart
)

_DELTAS: tuple[type, ...] = (t.TextMessageContent, t.ToolCallArgs, t.ReasoningMessageContent)

_STARTS: dict[type, tuple[str, str]] = {
    t.SubagentStarted: ("subagent", "subagent_run_id"),
    t.StepStarted: ("step", "step_name"),
    t.ReasoningStart: ("span", "message_id"),
    t.ReasoningMessageStart: ("reasoning", "message_id"),
    t.TextMessageStart: ("text", "message_id"),
    t.ToolCallStart: ("call", "tool_call_id"),
}
_ENDS: dict[type, tuple[str, str]] = {
    t.StepFinished: ("step", "step_name"),
    t.ReasoningEnd: ("span", "message_id"),
    t.ReasoningMessageEnd: ("reasoning", "message_id"),
    t.TextMessageEnd: ("text", "message_id"),
    t.ToolCallEnd: ("call", "tool_call_id"),
}


class Standing:
    """How things stand for a client that has followed from the start: what it holds, and what is open.

    An event that a client would refuse changes nothing: the logs of experiments hold what their agents sent.
    """

    def __init__(self, messages: Iterable[agui.Message] = (), state: Any = UNSET) -> None:
        """With what was said in the thread before, and the state that it left."""
        self.expander = Expander()
        self._verifier = Verifier()
        self._folding = Folding(messages=messages, state=state)
        self.reader = EventReader()
        self._started: t.RunStarted | None = None
        self._open: dict[tuple[str, str, Owner], Start] = {}
        """What started, in order. Subagents stay when they have ended: others may name them as their parents."""
        self._ended_subagents: dict[str, t.SubagentFinished | t.SubagentError] = {}
        # The empty state is what a client begins with, and what many of them send for want of a better one.
        self._has_state = state is not UNSET and state != {}

    def feed(self, data: bytes, *, lightly: bool = False) -> None:
        """Take the next event of a log. Lightly, when nobody is going to ask what the messages say."""
        if lightly and not self.expander.lanes and data.startswith(DELTAS):
            return
        event = self.reader.read(data)
        self.reader.notes.clear()
        parts = self.expander.feed(event, 0)
        if isinstance(parts, OrderViolation):
            return
        for part in parts:
            delta = type(part) in _DELTAS
            if (delta and lightly) or self._verifier.feed(part, 0) is not None:
                continue
            if not delta:
                self._track(part)
            self._folding.feed(part, 0)

    def _track(self, event: t.Event) -> None:
        kind = type(event)
        if isinstance(event, Start):
            self._open[_item(event, *_STARTS[kind])] = event
        elif kind in _ENDS:
            self._open.pop(_item(event, *_ENDS[kind]), None)
        elif isinstance(event, t.SubagentFinished | t.SubagentError):
            self._ended_subagents[event.subagent_run_id] = event
        elif isinstance(event, t.RunStarted):
            self._started = event
            self._open.clear()
            self._ended_subagents.clear()
            if type(event.input) is dict and "state" in event.input:
                given = t.StateSnapshot(snapshot=event.input["state"])
                self._track(given)
                self._folding.feed(given, 0)
        elif isinstance(event, t.StateSnapshot):
            self._has_state = self._has_state or event.snapshot not in ({}, UNSET)
        elif isinstance(event, t.StateDelta):
            self._has_state = True

    def waiting(self) -> list[str]:
        """Tool calls of the run that have no result."""
        return self._folding.result().pending

    def sees_through(self) -> bool:
        """Whether everything open is in a message, so that starting it again makes no new one."""
        return not self._ghosts()

    def resuming(self, run_id: str, thread_id: str) -> list[t.Event]:
        """What a client has to be told that has what a client holds here; `sees_through` must be so."""
        return [self._run_started(run_id, thread_id), *self._starts()]

    def joining(self, run_id: str, thread_id: str) -> list[t.Event]:
        """What a client has to be told that has nothing, or something older."""
        folded = self._folding.result()
        messages = conformant_messages(folded.messages)
        prelude: list[t.Event] = [self._run_started(run_id, thread_id)]
        if self._has_state:
            prelude.append(t.StateSnapshot(snapshot=folded.state))
        ghosts = self._ghosts()
        prelude += [t.MessagesSnapshot(messages=[*messages, *ghosts]), *self._starts()]
        if ghosts:
            prelude.append(t.MessagesSnapshot(messages=messages))
        return prelude + _contents_of_no_snapshot(folded.messages)

    def _run_started(self, run_id: str, thread_id: str) -> t.Event:
        started = self._started
        if started is None:
            return t.RunStarted(thread_id=thread_id, run_id=run_id)
        return conformant(msgspec.structs.replace(started))

    def _starts(self) -> list[t.Event]:
        starts: list[t.Event] = []
        for event in self._open.values():
            start: Any = msgspec.structs.replace(event, subagent_run_id=self._verifier.owner(event))
            if isinstance(start, t.TextMessageStart | t.ReasoningMessageStart | t.ToolCallStart):
                # The message has its metadata, and may have got other since.
                start.metadata = start.raw_event = UNSET
            if isinstance(start, t.ToolCallStart) and (known := self._folding.drafts.calls.get(start.tool_call_id)):
                start.tool_call_name = known.call.function.name
            starts.append(conformant(start))
            if isinstance(start, t.SubagentStarted) and (end := self._ended_subagents.get(start.subagent_run_id)):
                starts.append(conformant(msgspec.structs.replace(end)))
        return starts

    def _ghosts(self) -> list[dict[str, Any]]:
        """Stand-ins for what is open but in no message any more, because a MESSAGES_SNAPSHOT left it out.

        A start would make a new message of it. It makes none where there is one, and the next snapshot removes that.
        """
        drafts = self._folding.drafts
        ghosts: dict[str, dict[str, Any]] = {}
        for (kind, item, _), event in self._open.items():
            owner = self._verifier.owner(event)
            if kind == "call":
                if item not in drafts.calls:
                    call = agui.ToolCall(item, agui.FunctionCall("", ""))
                    name = _unused(f"seatrial-call-{item}", drafts.by_id)
                    ghosts[name] = {**_stand_in(name, owner), "toolCalls": [msgspec.to_builtins(call)]}
            elif kind in ("text", "reasoning") and item not in drafts.by_id and (kind == "text" or item not in ghosts):
                ghosts[item] = _stand_in(item, owner)
        return list(ghosts.values())


def _contents_of_no_snapshot(messages: list[agui.Message]) -> list[t.Event]:
    """Patches to what the patches of agents have made of activities: in a snapshot it has to be an object."""
    return [
        t.ActivityDelta(
            message_id=message.id,
            activity_type=message.activity_type,
            patch=[{"op": "replace", "path": "", "value": message.content}],
        )
        for message in messages
        if isinstance(message, agui.ActivityMessage) and type(message.content) is not dict
    ]


def _item(event: Any, kind: str, field: str) -> tuple[str, str, Owner]:
    """What tells an open item from others; of steps, two agents may have the same."""
    return kind, getattr(event, field), event.subagent_run_id if kind == "step" else UNSET


def _stand_in(item: str, owner: Owner) -> dict[str, Any]:
    stand_in = {"id": item, "role": "assistant", "content": ""}
    return stand_in if owner is UNSET else {**stand_in, "subagentRunId": owner}


def _unused(name: str, used: Container[str]) -> str:
    while name in used:
        name += "-"
    return name
