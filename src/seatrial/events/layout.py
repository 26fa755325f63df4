"""How a transcript's messages travel in AG-UI's: the text that streams their blocks, and what AG-UI has no field for.

AG-UI streams one text for a message, so the texts of all blocks are joined; the layout says where to cut. Prompted
thinking goes into that text in a `<thought>` tag, as it goes back into the `content` of a model request. It never
becomes an AG-UI reasoning message: that channel is for what the provider's side channel said, and a client that
sends it back would hand the model its own words as native reasoning.

What AG-UI has no field for, the remainder, is in `metadata`, under the one key `seatrial`. Other clients ignore it and
see what AG-UI can say. Every field is there only where the plain events would be read back differently, so most
metadata is small or absent. What others put under the key is checked like any other foreign data: if it does not fit,
the plain reading counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.transcript import (
    AssistantBlock,
    ImageBlock,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    RunIdentity,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    UserBlock,
    note_code,
    pointer,
    split_thinking,
    weave_thought,
)
from seatrial.transcript.call_facts import CallFacts

KEY = "seatrial"

REMAINDER_IGNORED = note_code(
    "remainder_ignored", "`metadata.seatrial` does not match the event; the plain event counts.", "look"
)

R = TypeVar("R", bound=msgspec.Struct)
UserLayout: TypeAlias = list[int | ImageBlock]
"""A number is a text block of that many characters, taken from the text."""
AssistantLayout: TypeAlias = list[tuple[Literal["text", "thinking", "reasoning", "call"], int]]
"""Text and thinking of so many characters, taken from the text; the next reasoning message; the next tool call."""
Spoken: TypeAlias = TextBlock | ThinkingBlock
_THOUGHT_OPEN, _THOUGHT_CLOSE = weave_thought("\0").split("\0")


def spoken(text: str) -> tuple[list[Spoken], bool]:
    """Visible text and thoughts in an assistant's text, and whether the last thought lacks its closing tag."""
    if "<" not in text:
        return ([TextBlock(text)] if text else []), False
    blocks, unclosed = split_thinking(text)
    if unclosed is not None:
        blocks.append(ThinkingBlock(unclosed))
    return blocks, unclosed is not None


def user_text(blocks: list[UserBlock]) -> tuple[str, UserLayout]:
    """The text that streams the blocks of a user message, and their layout."""
    layout: UserLayout = [len(block.text) if isinstance(block, TextBlock) else block for block in blocks]
    return "".join([block.text for block in blocks if isinstance(block, TextBlock)]), layout


def user_blocks(text: str, layout: UserLayout) -> list[UserBlock] | None:
    """The blocks that the layout makes of the text; None when it does not fit."""
    blocks: list[UserBlock] = []
    position = 0
    for item in layout:
        if isinstance(item, ImageBlock):
            blocks.append(item)
        elif item < 0:
            return None
        else:
            blocks.append(TextBlock(text[position : position + item]))
            position += item
    return blocks if position == len(text) else None


class AssistantParts:
    """An assistant message taken apart into what AG-UI streams."""

    def __init__(self, blocks: Sequence[AssistantBlock]) -> None:
        self.reasoning: list[tuple[ReasoningBlock | None, ReasoningDetailsBlock | None]] = []
        """One for each reasoning message: its text, its details, or both."""
        self.calls: list[ToolCall] = []
        calls = self.calls
        texts: list[str] = []
        in_order = True
        before: AssistantBlock | None = None
        for block in blocks:
            if type(block) is TextBlock:
                in_order = in_order and not texts and not calls and block.text != ""
                texts.append(block.text)
            elif type(block) is ToolCall:
                calls.append(block)
            elif type(block) is ThinkingBlock:
                texts.append(weave_thought(block.text))
            else:
                in_order = in_order and not texts and not calls
                if type(block) is ReasoningBlock:
                    self.reasoning.append((block, None))
                elif type(block) is ReasoningDetailsBlock:
                    text = _text_with_details(before)
                    if text is not None:
                        self.reasoning.pop()
                    self.reasoning.append((text, block))
            before = block
        self.text = "".join(texts)
        self.is_plain = in_order
        """Whether the parts give the blocks without a layout: reasoning, then what was said, then the calls."""
        if "<" in self.text:  # there may be a thought in it
            native = [block for block in blocks if isinstance(block, ReasoningBlock | ReasoningDetailsBlock)]
            self.is_plain = [*native, *spoken(self.text)[0], *calls] == list(blocks)


def assistant_layout(blocks: Sequence[AssistantBlock]) -> AssistantLayout:
    """Which of the parts of an assistant message came when."""
    layout: AssistantLayout = []
    before: AssistantBlock | None = None
    for block in blocks:
        if type(block) is TextBlock:
            layout.append(("text", len(block.text)))
        elif type(block) is ThinkingBlock:
            layout.append(("thinking", len(block.text)))
        elif type(block) is ToolCall:
            layout.append(("call", 0))
        elif type(block) is ReasoningBlock or _text_with_details(before) is None:
            layout.append(("reasoning", 0))
        before = block
    return layout


def _text_with_details(before: AssistantBlock | None) -> ReasoningBlock | None:
    """The block in front of reasoning details, if it is a reasoning text that they share a message with.

    An empty text cannot: a message with details and no text has no reasoning block.
    """
    return before if type(before) is ReasoningBlock and before.text != "" else None


def assistant_blocks(
    text: str,
    reasoning: Sequence[Sequence[AssistantBlock]],
    calls: Sequence[Sequence[AssistantBlock]],
    layout: AssistantLayout,
) -> list[AssistantBlock] | None:
    """The blocks that the layout makes of the parts; None when it does not fit."""
    blocks: list[AssistantBlock] = []
    waiting = {"reasoning": iter(reasoning), "call": iter(calls)}
    position = 0
    for kind, length in layout:
        if kind in waiting:
            unit = next(waiting[kind], None)
            if unit is None:
                return None
            blocks += unit
            continue
        thought = kind == "thinking"
        if length < 0 or (thought and not text.startswith(_THOUGHT_OPEN, position)):
            return None
        start = position + len(_THOUGHT_OPEN) if thought else position
        position = start + length
        said = text[start:position]
        blocks.append(ThinkingBlock(said) if thought else TextBlock(said))
        if thought:
            if not text.startswith(_THOUGHT_CLOSE, position):
                return None
            position += len(_THOUGHT_CLOSE)
    if position != len(text) or any(next(units, None) is not None for units in waiting.values()):
        return None
    return blocks


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
    facts: CallFacts | None = None


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
    text: bool = False
    """Whether the arguments are a text, as of OpenAI's custom tools, which would be read as arguments encoded twice."""
    facts: CallFacts | None = None


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
    partial: str | None = None
    """Why not all calls of the run are known; None when they are."""


_KINDS: tuple[type[msgspec.Struct], ...] = (
    *(MessageRemainder, UserRemainder, AssistantRemainder, ToolRemainder, CustomRemainder),
    *(ImageRemainder, ReasoningRemainder, CallRemainder, RunRemainder),
)
_NOTHING = {kind: kind() for kind in _KINDS}


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


def ignored(at: int, why: str) -> Note:
    """The note for a remainder that does not fit."""
    return Note(REMAINDER_IGNORED, pointer(at) if at >= 0 else "", f"`metadata.{KEY}` was ignored: {why[:200]}")
