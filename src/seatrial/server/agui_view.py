"""The log of a run as AG-UI's clients take it: each event in a shape that they accept without a warning, and what has
to come before the middle of a log (events.md B12).

A client stops at a field that it knows and that is malformed. Our types leave some fields open (content parts, patches,
messages), because agents send what they like; here they are held to AG-UI 1.0. What only the native view has is left
out.

A client also refuses an event that continues what it did not see start. So the tail of a log is preceded by RUN_STARTED
and by a start of everything that is open at the cut. A client that has followed so far appends to what it has; one that
joins is given the state and the messages first, with what open ones say so far.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial.events import Expander, Folding, OrderViolation, Verifier
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.codec import keep_sent, stands_in
from seatrial.events.event_reader import EventReader
from seatrial.events.violation import Owner

_E = TypeVar("_E", bound=t.Event)

_Pointer = Annotated[str, Meta(pattern=r"^(/([^/~]|~[01])*)*\Z")]


class _Add(msgspec.Struct, tag_field="op", tag="add"):
    path: _Pointer
    value: Any


class _Replace(msgspec.Struct, tag_field="op", tag="replace"):
    path: _Pointer
    value: Any


class _Test(msgspec.Struct, tag_field="op", tag="test"):
    path: _Pointer
    value: Any


class _Remove(msgspec.Struct, tag_field="op", tag="remove"):
    path: _Pointer


class _Move(msgspec.Struct, tag_field="op", tag="move"):
    path: _Pointer
    source: _Pointer = msgspec.field(name="from")


class _Copy(msgspec.Struct, tag_field="op", tag="copy"):
    path: _Pointer
    source: _Pointer = msgspec.field(name="from")


_Patch: TypeAlias = list[_Add | _Replace | _Test | _Remove | _Move | _Copy]


class _Data(msgspec.Struct, tag_field="type", tag="data", rename="camel"):
    value: str
    mime_type: str


class _Url(msgspec.Struct, tag_field="type", tag="url", rename="camel"):
    value: str
    mime_type: str | UnsetType = UNSET


class _File(msgspec.Struct, tag_field="type", tag="file", rename="camel"):
    value: str
    provider: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class _Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str
    id: str | UnsetType = UNSET


class _Media(msgspec.Struct):
    source: _Data | _Url | _File
    id: str | UnsetType = UNSET


def conformant(event: _E) -> _E:
    """The event, changed in place."""
    keep_sent(event, None)
    if isinstance(event, t.ToolCallResult):
        event.metadata = agui.mark_status(event.metadata, event.status)
    event.event_id = event.created_at = event.artifact_id = event.status = UNSET
    if event.raw_event is None:
        event.raw_event = UNSET
    match event:
        case t.RunStarted():
            event.input = UNSET  # who asked has it, and for anyone else it is in the snapshot of the messages
        case t.RunFinished():
            _settle_result(event)
            if isinstance(event.outcome, t.InterruptOutcome):
                for interrupt in event.outcome.interrupts:
                    if type(interrupt.response_schema) is not dict:
                        interrupt.response_schema = UNSET
        case t.SubagentFinished():
            _settle_result(event)
        case t.SubagentStarted() | t.SubagentError():
            pass
        case t.RunError():
            event.thread_id = UNSET
        case t.MessagesSnapshot():
            event.thread_id = UNSET
            if event.messages is not UNSET:
                event.messages = conformant_messages(agui.read_messages(event.messages, (), []))
        case _:
            event.thread_id = UNSET
            if isinstance(event, t.ToolCallResult) and type(event.content) is list:
                event.content = _parts(agui.upgraded_parts(event.content, (), []))
    return event


def is_void(event: t.Event) -> bool:
    """Whether the event says nothing that a client could take: a patch that is none, or no snapshot in a snapshot."""
    if stands_in(event) or (isinstance(event, t.StateSnapshot) and event.snapshot is UNSET):
        return True
    if isinstance(event, t.MessagesSnapshot):
        return event.messages is UNSET
    if isinstance(event, t.StateDelta):
        return not _fits(event.delta, _Patch)
    return isinstance(event, t.ActivityDelta) and not _fits(event.patch, _Patch)


def conformant_messages(messages: list[agui.Message]) -> list[dict[str, Any]]:
    """Messages as JSON values. They are not changed."""
    values: list[dict[str, Any]] = msgspec.to_builtins(messages)
    for message, value in zip(messages, values, strict=True):
        if isinstance(message, agui.ToolMessage | agui.ReasoningMessage):
            value.pop("name", None)
        if isinstance(message, agui.ActivityMessage):
            if type(message.content) is not dict:  # a patch may make anything of it
                value["content"] = {}
        elif type(value.get("content")) is list:
            value["content"] = _parts(value["content"])
    return values


def _settle_result(event: t.RunFinished | t.SubagentFinished) -> None:
    if event.result is None:
        event.result = UNSET


def _parts(parts: list[agui.Part]) -> list[agui.Part]:
    return [part for part in parts if _is_part(part)]


def _is_part(part: agui.Part) -> bool:
    if part.get("metadata", UNSET) is None:
        return False
    if part.get("type") == "text":
        return _fits(part, _Text)
    return part.get("type") in ("image", "audio", "video", "document") and _fits(part, _Media)


def _fits(value: Any, shape: Any) -> bool:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return False
    return True


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
    """The state of a client that has followed from the start: what it holds, and what is open.

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
        """The events that a client needs first which resumes with what is held here; only where `sees_through`."""
        return [self._run_started(run_id, thread_id), *self._starts()]

    def joining(self, run_id: str, thread_id: str) -> list[t.Event]:
        """The events that a joining client needs first, when it has nothing, or something older."""
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
    """The identity of an open item; two agents may have steps of the same name."""
    return kind, getattr(event, field), event.subagent_run_id if kind == "step" else UNSET


def _stand_in(item: str, owner: Owner) -> dict[str, Any]:
    stand_in = {"id": item, "role": "assistant", "content": ""}
    return stand_in if owner is UNSET else {**stand_in, "subagentRunId": owner}


def _unused(name: str, used: Container[str]) -> str:
    while name in used:
        name += "-"
    return name
