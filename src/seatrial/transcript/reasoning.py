"""Native reasoning: a typed view of the details that providers send beside their messages.

The raw `details` are what is kept and replayed. The typed items are for looking at them: is there a signed payload,
and would the provider miss it?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Protocol, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.transcript.messages import ReasoningDetailsBlock

Index = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class ReasoningFormat(StrEnum):
    """Which provider's rules a reasoning item follows; a name that is none of these is `unknown`."""

    ANTHROPIC_CLAUDE_V1 = "anthropic-claude-v1"
    GOOGLE_GEMINI_V1 = "google-gemini-v1"
    OPENAI_RESPONSES_V1 = "openai-responses-v1"
    AZURE_OPENAI_RESPONSES_V1 = "azure-openai-responses-v1"
    XAI_RESPONSES_V1 = "xai-responses-v1"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> ReasoningFormat | None:
        return cls.UNKNOWN if isinstance(value, str) else None


class ReasoningText(
    msgspec.Struct, tag_field="type", tag="reasoning.text", omit_defaults=True, kw_only=True, frozen=True
):
    """Reasoning in plain words, signed by some providers."""

    id: str | None = None
    format: ReasoningFormat
    index: Index | None = None
    text: str
    signature: str | None = None


class ReasoningSummary(
    msgspec.Struct, tag_field="type", tag="reasoning.summary", omit_defaults=True, kw_only=True, frozen=True
):
    """A summary of reasoning that the provider keeps to itself."""

    id: str | None = None
    format: ReasoningFormat
    index: Index | None = None
    summary: str


class ReasoningEncrypted(
    msgspec.Struct, tag_field="type", tag="reasoning.encrypted", omit_defaults=True, kw_only=True, frozen=True
):
    """Reasoning that only the provider can read."""

    id: str | None = None
    format: ReasoningFormat
    index: Index | None = None
    data: str


ReasoningItem: TypeAlias = ReasoningText | ReasoningSummary | ReasoningEncrypted


def from_openrouter_value(value: Any) -> ReasoningItem | None:
    """The item in one entry of `reasoning_details`, decoded or raw; None when its type is not known.

    What is missing or of the wrong type is left out, or empty where it must be there.
    """
    if isinstance(value, msgspec.Raw):
        value = _readable_members(value)
    if not isinstance(value, dict):
        return None
    id_ = _string(value, "id")
    format_ = ReasoningFormat(_string(value, "format") or "unknown")
    index = value.get("index")
    if type(index) is not int or not 0 <= index < 2**64:
        index = None
    else:
        index %= 2**32
    match value.get("type"):
        case "reasoning.text":
            text, signature = _string(value, "text") or "", _string(value, "signature")
            return ReasoningText(id=id_, format=format_, index=index, text=text, signature=signature)
        case "reasoning.summary":
            return ReasoningSummary(id=id_, format=format_, index=index, summary=_string(value, "summary") or "")
        case "reasoning.encrypted":
            return ReasoningEncrypted(id=id_, format=format_, index=index, data=_string(value, "data") or "")
    return None


def to_openrouter_value(item: ReasoningItem) -> dict[str, Any]:
    """The item as an entry of `reasoning_details`: type, id, format, index, body, signature; None left out.

    Keys and formats that the typed view does not know are gone, so this is no replay of what a provider sent.
    """
    value: dict[str, Any] = msgspec.to_builtins(item)
    return value


def carries_signed_payload(item: ReasoningItem) -> bool:
    """Whether a strict provider would miss this item: signed text, or anything encrypted."""
    if isinstance(item, ReasoningText):
        return item.signature is not None
    return isinstance(item, ReasoningEncrypted)


def as_items(block: ReasoningDetailsBlock) -> list[ReasoningItem]:
    """The typed view of a block; entries of unknown type are skipped."""
    return OpenRouterReasoningCodec().parse_response(block.details)


def from_items(items: Iterable[ReasoningItem]) -> ReasoningDetailsBlock:
    """A block of typed items, for providers that do not speak this shape themselves."""
    return ReasoningDetailsBlock([msgspec.Raw(wire.encode(item)) for item in items])


def has_signed_payload(block: ReasoningDetailsBlock) -> bool:
    """Whether any item of the block carries a signed payload."""
    return any(carries_signed_payload(item) for item in as_items(block))


class ReplayContract(StrEnum):
    """When a provider wants its reasoning back."""

    STATELESS = "stateless"
    REQUIRED_WITH_TOOLS = "required_with_tools"
    ALWAYS_REQUIRED = "always_required"

    @classmethod
    def of(cls, format: ReasoningFormat) -> ReplayContract:
        """The contract of a format."""
        if format in (ReasoningFormat.XAI_RESPONSES_V1, ReasoningFormat.UNKNOWN):
            return cls.STATELESS
        return cls.REQUIRED_WITH_TOOLS


class MissingSignatures(msgspec.Struct, frozen=True):
    """A strict provider will get no signed payload and may refuse the request."""

    contract: ReplayContract
    formats: list[ReasoningFormat]


class ReplayAudit(msgspec.Struct, frozen=True):
    """What a replay of reasoning items holds, and whether it breaks the provider's contract."""

    item_count: int
    signed_count: int
    formats: list[ReasoningFormat]
    """Those that occur, once each, by name."""
    violation: MissingSignatures | None = None


def audit_replay(
    items: Sequence[ReasoningItem], contract: ReplayContract, *, next_turn_carries_tools: bool
) -> ReplayAudit:
    """Check items that are about to be replayed. No items at all break a strict contract too."""
    signed = sum([carries_signed_payload(item) for item in items])
    formats = sorted({item.format for item in items})
    required = contract is ReplayContract.ALWAYS_REQUIRED or (
        contract is ReplayContract.REQUIRED_WITH_TOOLS and next_turn_carries_tools
    )
    violation = MissingSignatures(contract, formats) if required and not signed else None
    return ReplayAudit(len(items), signed, formats, violation)


class ReasoningCodec(Protocol):
    """How one provider's wire carries reasoning items."""

    def parse_response(self, raw: Sequence[Any]) -> list[ReasoningItem]:
        """The items in what the provider sent."""

    def write_assistant(self, message: Any, items: Sequence[ReasoningItem]) -> None:
        """Put the items into an assistant message that is about to be sent."""


class OpenRouterReasoningCodec:
    """OpenRouter's `reasoning_details`."""

    def parse_response(self, raw: Sequence[Any]) -> list[ReasoningItem]:
        """The items of known type, in order."""
        return [item for value in raw if (item := from_openrouter_value(value)) is not None]

    def write_assistant(self, message: Any, items: Sequence[ReasoningItem]) -> None:
        """Set `reasoning_details`, unless there are no items or the message is no object."""
        if items and isinstance(message, dict):
            message["reasoning_details"] = [to_openrouter_value(item) for item in items]


def _string(value: dict[str, Any], key: str) -> str | None:
    text = value.get(key)
    return text if isinstance(text, str) else None


def _readable_members(raw: msgspec.Raw) -> dict[str, Any] | None:
    """The members that can be decoded: one that cannot (a number out of range) must not hide the others."""
    try:
        members = wire.decode(bytes(raw), _OBJECT, [])
    except SeatrialError:
        return None
    readable: dict[str, Any] = {}
    for key in _KEYS & members.keys():
        try:
            readable[key] = wire.decode(bytes(members[key]), repairs=[])
        except SeatrialError:
            continue
    return readable


_KEYS = frozenset({"type", "id", "format", "index", "text", "summary", "data", "signature"})
_OBJECT: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
