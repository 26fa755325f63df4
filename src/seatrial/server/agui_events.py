"""Events in the shape that AG-UI's clients take without a warning.

A client stops at a field that it knows and that is malformed. Our types leave some fields open (content parts, patches,
messages), because agents send what they like; here they are held to AG-UI 1.0. What only the native view has is left
out.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.codec import keep_sent, stands_in

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
