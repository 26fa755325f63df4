"""Prompted thinking inside visible text: taken out on reading, woven back as `<thought>` tags on writing."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.events.layout import Spoken
from seatrial.formats.limits import MOST_PIECES
from seatrial.formats.parts import At
from seatrial.formats.tally import NoteTally
from seatrial.transcript import Note, TextBlock, ThinkingBlock, note_code, pointer
from seatrial.transcript.thinking import UNCLOSED_THINKING_TAG, split_thinking, weave_thought

_KINDS: tuple[type[TextBlock], type[ThinkingBlock]] = (TextBlock, ThinkingBlock)

THOUGHTS_MERGED = note_code(
    "thoughts_merged",
    "A text has very many thinking tags; the thoughts past a limit are kept as one, and so is the text between them.",
    "look",
)


def unweave(text: str, tally: NoteTally, at: At, most: int = MOST_PIECES) -> list[Spoken]:
    """The visible text and the thoughts in it, in order; nothing for the empty string.

    Those past `most` are two at most: all of that text, and all of those thoughts.
    """
    if "<" not in text:
        return [TextBlock(text)] if text else []
    blocks, unclosed = split_thinking(text)
    if unclosed is not None:
        tally.add(UNCLOSED_THINKING_TAG, at, "the last thought has no closing tag; it is kept as thinking")
        blocks.append(ThinkingBlock(unclosed))
    if len(blocks) > most + len(_KINDS):
        rest = blocks[most:]
        del blocks[most:]
        text = f"more than {most:,} texts and thoughts; the others are one text and one thought"
        tally.add(THOUGHTS_MERGED, at, text, each="")
        for kind in _KINDS:
            if texts := [block.text for block in rest if type(block) is kind]:
                blocks.append(kind("".join(texts)))
    return blocks


def visible(text: str) -> str:
    """What of a text is to be seen: all of it, less the thoughts that its tags hide."""
    if "<" not in text:
        return text
    blocks, unclosed = split_thinking(text)
    if unclosed is None and all(type(block) is TextBlock for block in blocks):
        return text
    return "".join([block.text for block in blocks if type(block) is TextBlock]).strip()


def note_unclosed(text: str, at: At) -> list[Note]:
    """The note for an answer of which a tag without an end hides the rest."""
    if "<" not in text or split_thinking(text)[1] is None:
        return []
    return [Note(UNCLOSED_THINKING_TAG, pointer(*at), "the last thought has no closing tag; it is not in the answer")]


def unweave_part(text: str, tally: NoteTally, at: At, most: int = MOST_PIECES) -> list[Spoken]:
    """The same for a text that is a part of its own: empty, it is still there."""
    return unweave(text, tally, at, most) or [TextBlock("")]


def weave(blocks: Sequence[Spoken]) -> list[str]:
    """One text for each block: the visible text itself, a thought in its tag."""
    return [block.text if type(block) is TextBlock else weave_thought(block.text) for block in blocks]


def reads_back(texts: Sequence[str], blocks: Sequence[Spoken]) -> bool:
    """Whether these texts, each a part of its own, are read as exactly these blocks."""
    if all("<" not in text for text in texts):
        return len(texts) == len(blocks) and all(type(block) is TextBlock for block in blocks)
    found: list[Spoken] = []
    for text in texts:
        found += unweave_part(text, NoteTally(), ())
    return found == list(blocks)
