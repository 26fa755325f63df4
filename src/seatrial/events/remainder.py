"""What of a transcript AG-UI has no field for, and how it travels: in `metadata`, under the one key `seatrial`.

Other clients ignore it and see what AG-UI can say. Every field stands only where the plain events would be read
back differently, so most metadata is small or absent. What a stranger puts under the key is checked like any
other foreign data: if it does not fit, the plain reading counts.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from seatrial import wire
from seatrial.events.layout import AssistantLayout, UserLayout
from seatrial.transcript import Note, RunIdentity, StopReason, Usage, note_code, pointer

KEY = "seatrial"

REMAINDER_IGNORED = note_code(
    "remainder_ignored", "`metadata.seatrial` does not match the event; the plain event counts.", "look"
)


class MessageRemainder(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Of any message."""

    timestamp: int | None = None
    """Where it is past what an event's timestamp may be."""


class UserRemainder(MessageRemainder, omit_defaults=True, kw_only=True):
    """Of a user message that is a list of blocks: no event streams an image."""

    blocks: UserLayout | None = None


class AssistantRemainder(MessageRemainder, omit_defaults=True, kw_only=True):
    """Of an assistant message."""

    blocks: AssistantLayout | None = None
    stop_reason: StopReason | None = None
    error_message: str | None = None
    usage: Usage | None = None


class ToolRemainder(MessageRemainder, omit_defaults=True, kw_only=True):
    """Of a tool result."""

    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False
    in_doubt: bool = False
    """Whether the record says how the call ended in a word that nobody knows."""
    narration: str | None = None
    details: Any = None
    position: int | None = None
    """Its index in the transcript, where that is not right behind the call."""


class ImageRemainder(msgspec.Struct, omit_defaults=True):
    """Of an image part."""

    media_type: str | UnsetType | None = UNSET
    alt: str | None = None


class ReasoningRemainder(msgspec.Struct, omit_defaults=True):
    """Of a reasoning message."""

    details: bool = False
    """Whether `encryptedValue` is the JSON array of all details, byte for byte."""


class CustomRemainder(MessageRemainder, omit_defaults=True, kw_only=True):
    """Of an application's own message, which travels as an activity."""

    wrapped: bool = False
    """Whether the payload is no object and stands under `value`."""


class CallRemainder(msgspec.Struct, omit_defaults=True):
    """Of a tool call."""

    id: str | None = None
    """Its id in the transcript, where that is empty, too long or used before."""


class RunRemainder(msgspec.Struct, omit_defaults=True):
    """Of the transcript, on the event that ends the run."""

    answer: str | None = None
    identity: RunIdentity | UnsetType | None = UNSET
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    metadata: dict[str, Any] | None = None
    given: list[int] | None = None
    """Indices of the given messages, where these do not stand at the head."""


R = TypeVar("R", bound=msgspec.Struct)


def as_metadata(remainder: msgspec.Struct) -> dict[str, Any] | UnsetType:
    """The metadata that carries it; UNSET when there is nothing to carry."""
    if remainder == _NOTHING[type(remainder)]:  # as almost always
        return UNSET
    return {KEY: wire.decode(wire.encode(remainder))}


def remainder(metadata: Any, kind: type[R], at: int, notes: list[Note]) -> R:
    """What metadata carries of that kind; an empty one when there is nothing, or nothing that fits."""
    if type(metadata) is not dict or KEY not in metadata:
        return nothing(kind)
    try:
        return msgspec.convert(metadata[KEY], kind)
    except msgspec.ValidationError as error:
        notes.append(ignored(at, str(error)))
        return nothing(kind)


def nothing(kind: type[R]) -> R:
    """An empty remainder of that kind: always the same one, which nobody may change."""
    return cast("R", _NOTHING[kind])


_KINDS: tuple[type[msgspec.Struct], ...] = (
    *(MessageRemainder, UserRemainder, AssistantRemainder, ToolRemainder, CustomRemainder),
    *(ImageRemainder, ReasoningRemainder, CallRemainder, RunRemainder),
)
_NOTHING = {kind: kind() for kind in _KINDS}


def ignored(at: int, why: str) -> Note:
    """The note for a remainder that does not fit."""
    return Note(REMAINDER_IGNORED, pointer(at) if at >= 0 else "", f"`metadata.{KEY}` was ignored: {why[:200]}")
