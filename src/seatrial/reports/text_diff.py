"""Two texts side by side: which of their words, or of long ones their lines, are not in the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from seatrial.trajectory.assign import in_order_by_key

MAX_BY_WORD = 20_000
"""Characters of a text up to which words are compared; beyond it, lines are."""
MAX_LINES = 10_000
"""Lines of a text that are compared."""
CONTEXT = 2
"""Equal lines that are shown before and after one that is not."""
MAX_SHOWN = 200
"""Lines of a long text that are shown."""

_MAX_WORDS = 10_000  # more than prose of that length has, and few enough to be quick whatever they are
_MAX_LINE = 2000

# Words, numbers with their fraction, spaces, and every other character alone, so that a comma alone can differ.
_WORDS = re.compile(r"\d+(?:[.,]\d+)*|\w+|\s+|[^\w\s]")


class TextSpan(msgspec.Struct, frozen=True):
    """A piece of a text."""

    text: str
    kind: Literal["same", "changed", "omitted"]
    """`changed`: not in the other text. `omitted`: stands for equal lines that are not shown."""


class TextDiff(msgspec.Struct, frozen=True):
    """Both texts in pieces."""

    a: list[TextSpan]
    b: list[TextSpan]
    by: Literal["word", "line"]
    remark: str = ""
    """What of them is not compared or not shown; "" when all is."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.remark and not any(span.kind == "changed" for span in (*self.a, *self.b))


def text_diff(a: str, b: str) -> TextDiff:
    """Compare two texts, by word as long as both are short."""
    words_a, words_b = ([] if len(text) > MAX_BY_WORD else _WORDS.findall(text) for text in (a, b))
    if max(len(a), len(b)) <= MAX_BY_WORD and max(len(words_a), len(words_b)) <= _MAX_WORDS:
        in_a, in_b = in_order_by_key(words_a, words_b)
        return TextDiff(
            _spans(_bridged(words_a, set(in_a)), words_a), _spans(_bridged(words_b, set(in_b)), words_b), "word"
        )
    lines_a, lines_b = a.splitlines(keepends=True), b.splitlines(keepends=True)
    left = max(len(lines_a), len(lines_b)) - MAX_LINES
    remarks = [] if left <= 0 else [f"only the first {MAX_LINES:,} lines are compared"]
    lines_a, lines_b = lines_a[:MAX_LINES], lines_b[:MAX_LINES]
    in_a, in_b = in_order_by_key(lines_a, lines_b)
    sides = []
    for lines, equal in ((lines_a, set(in_a)), (lines_b, set(in_b))):
        shown, more = _around_changes(lines, equal)
        sides.append(shown)
        if more:
            remarks.append(f"{more:,} more lines are not shown")
    return TextDiff(sides[0], sides[1], "line", "; ".join(remarks))


def _bridged(words: Sequence[str], same: set[int]) -> list[bool]:
    """Whether each word is changed: space between two changed words is, so that a phrase is one piece."""
    changed = [index not in same for index in range(len(words))]
    for index in range(1, len(words) - 1):
        if words[index].isspace() and changed[index - 1] and changed[index + 1]:
            changed[index] = True
    return changed


def _spans(changed: Sequence[bool], words: Sequence[str]) -> list[TextSpan]:
    found: list[TextSpan] = []
    start = 0
    for index in range(1, len(words) + 1):
        if index == len(words) or changed[index] != changed[start]:
            found.append(TextSpan("".join(words[start:index]), "changed" if changed[start] else "same"))
            start = index
    return found


def _around_changes(lines: Sequence[str], same: set[int]) -> tuple[list[TextSpan], int]:
    """The lines that changed with those around them, and how many of these are too many to be shown."""
    near = {
        index
        for changed in range(len(lines))
        if changed not in same
        for index in range(changed - CONTEXT, changed + CONTEXT + 1)
        if 0 <= index < len(lines)
    }
    shown = sorted(near)[:MAX_SHOWN]
    found: list[TextSpan] = []
    before = -1
    for index in [*shown, len(lines)]:
        if (gap := index - before - 1) > 0 and not (index == len(lines) and len(near) > MAX_SHOWN):
            found.append(TextSpan(f"{gap:,} equal line{'' if gap == 1 else 's'}", "omitted"))
        if index < len(lines):
            text = lines[index] if len(lines[index]) <= _MAX_LINE else f"{lines[index][:_MAX_LINE]}…\n"
            found.append(TextSpan(text, "same" if index in same else "changed"))
        before = index
    return found, max(len(near) - MAX_SHOWN, 0)
