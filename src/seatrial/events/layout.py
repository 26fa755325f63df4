"""Blocks of a message, and the text that streams them: how one is made of the other, both ways.

AG-UI streams one text for a message, so the texts of all blocks are joined; the layout says where to cut. Prompted
thinking goes into that text in a `<thought>` tag, as it goes back into the `content` of a model request. It never
becomes an AG-UI reasoning message: that channel is for what the provider's side channel said, and a client that
sends it back would hand the model its own words as native reasoning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from seatrial.transcript import (
    AssistantBlock,
    ImageBlock,
    ReasoningBlock,
    ReasoningDetailsBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    UserBlock,
    split_thinking,
    weave_thought,
)

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
