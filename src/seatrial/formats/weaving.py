"""Prompted thinking inside visible text: taken out on reading, woven back as `<thought>` tags on writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from seatrial.formats.parts import At
from seatrial.formats.tally import Tally
from seatrial.transcript import TextBlock, ThinkingBlock
from seatrial.transcript.thinking import UNCLOSED_THINKING_TAG, split_thinking, weave_thought

Spoken: TypeAlias = TextBlock | ThinkingBlock


def unweave(text: str, tally: Tally, at: At) -> list[Spoken]:
    """The visible text and the thoughts in it, in order; nothing for the empty string."""
    if "<" not in text:
        return [TextBlock(text)] if text else []
    blocks, unclosed = split_thinking(text)
    if unclosed is not None:
        tally.add(UNCLOSED_THINKING_TAG, at, "the last thought has no closing tag; it is kept as thinking")
        blocks.append(ThinkingBlock(unclosed))
    return blocks


def visible(text: str) -> str:
    """What of a text is to be seen: all of it, less the thoughts that its tags hide."""
    if "<" not in text:
        return text
    blocks, unclosed = split_thinking(text)
    if unclosed is None and all(type(block) is TextBlock for block in blocks):
        return text
    return "".join([block.text for block in blocks if type(block) is TextBlock]).strip()


def unweave_part(text: str, tally: Tally, at: At) -> list[Spoken]:
    """The same for a text that is a part of its own: empty, it is still there."""
    return unweave(text, tally, at) or [TextBlock("")]


def weave(blocks: Sequence[Spoken]) -> list[str]:
    """One text for each block: the visible text itself, a thought in its tag."""
    return [block.text if type(block) is TextBlock else weave_thought(block.text) for block in blocks]


def reads_back(texts: Sequence[str], blocks: Sequence[Spoken]) -> bool:
    """Whether these texts, each a part of its own, are read as exactly these blocks."""
    if all("<" not in text for text in texts):
        return len(texts) == len(blocks) and all(type(block) is TextBlock for block in blocks)
    found: list[Spoken] = []
    for text in texts:
        found += unweave_part(text, Tally(), ())
    return found == list(blocks)
