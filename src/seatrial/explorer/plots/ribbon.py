"""The ribbon: two runs as two rows of calls, each call above the one that goes with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from seatrial._support.printable import one_line
from seatrial.reports.stored_diff import RowKind

WIDTH = 132
GAP = 24
LEFT = 88
HEIGHT = 112
TOP, BOTTOM, BOX = 24, 74, 20
_CHARACTERS = 17


class RibbonBox(msgspec.Struct, frozen=True):
    """A column: a call of each run, or many equal ones."""

    kind: RowKind
    a: str | None
    b: str | None
    """What the boxes say; None where that run makes no such call."""
    href: str
    row: int
    count: int = 1


def ribbon(
    boxes: Sequence[RibbonBox],
    *,
    outcomes: tuple[str, str],
    diverge_at: int | None,
    left: bool,
    known: tuple[bool, bool],
    same_answer: bool | None,
) -> Markup:
    """The plot. `diverge_at` is the row of the first divergence, `left` whether there are more columns than these;
    `same_answer` is None where neither run answers."""
    columns = len(boxes) + (1 if left else 0) + (1 if same_answer is not None else 0)
    width = LEFT + columns * (WIDTH + GAP)
    parts = [_label("A", outcomes[0], TOP), _label("B", outcomes[1], BOTTOM)]
    x = LEFT
    for box in boxes:
        if diverge_at is not None and box.row == diverge_at:
            parts.append(
                Markup(
                    '<path class="cut" d="M{} 4V{}"/><text class="cutw" x="{}" y="14">they diverge here</text>'
                ).format(x - GAP // 2, HEIGHT - 6, x - GAP // 2 + 6)
            )
        parts.append(_column(box, x, known))
        x += WIDTH + GAP
    if left:
        parts.append(Markup('<text x="{}" y="{}">and more below</text>').format(x, (TOP + BOTTOM + BOX) // 2 + 4))
        x += WIDTH + GAP
    if same_answer is not None:
        kind: RowKind = "equal" if same_answer else "differs"
        parts.append(_column(RibbonBox(kind, "answer", "answer", "#answer", -1), x, known))
    return Markup(
        '<svg class="rb" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="group" aria-label="{label}">{body}</svg>'
    ).format(w=width, h=HEIGHT, label=_words(boxes, diverge_at), body=Markup("").join(parts))


def _words(boxes: Sequence[RibbonBox], diverge_at: int | None) -> str:
    equal = sum(box.count for box in boxes if box.kind in ("equal", "result"))
    other = sum(box.kind == "differs" for box in boxes)
    alone = sum(box.kind in ("only_a", "only_b") for box in boxes)
    text = f"Alignment of both runs: {equal:,} equal calls, {other:,} with other arguments, {alone:,} of one run alone"
    return text if diverge_at is None else f"{text}; they diverge at step {diverge_at}"


def _label(letter: str, outcome: str, y: int) -> Markup:
    return Markup('<text class="i" x="14" y="{y}">{}</text><text x="30" y="{y}">{}</text>').format(
        letter, outcome, y=y + 14
    )


def _column(box: RibbonBox, x: int, known: tuple[bool, bool]) -> Markup:
    middle = x + WIDTH // 2
    equal = box.kind in ("equal", "result")
    link = Markup("")
    if box.a is not None and box.b is not None:
        sign = "=" if equal else "≠"
        link = Markup(
            '<path class="ln{c}" d="M{x} {}V{}"/><circle class="ln{c}" cx="{x}" cy="{y}" r="8"/>'
            '<text class="sg{c}" x="{x}" y="{}">{}</text>'
        ).format(
            TOP + BOX,
            BOTTOM,
            (TOP + BOTTOM + BOX) // 2 + 4,
            sign,
            x=middle,
            y=(TOP + BOTTOM + BOX) // 2,
            c="" if equal else " ne",
        )
    sides = [
        _box(text, box, x, y, plain if text is not None else "no", all_known)
        for text, y, plain, all_known in (
            (box.a, TOP, "one" if box.kind == "only_a" else "", known[0]),
            (box.b, BOTTOM, "one" if box.kind == "only_b" else "" if equal else "ne", known[1]),
        )
    ]
    return link + Markup("").join(sides)


def _box(text: str | None, box: RibbonBox, x: int, y: int, kind: str, all_known: bool) -> Markup:
    words = ("not called" if all_known else "none known") if text is None else one_line(text, _CHARACTERS)
    drawn = Markup(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="4"/><text x="{}" y="{}">{}</text>'
    ).format(f"bx {kind}".strip(), x, y, WIDTH, BOX, x + 8, y + 14, words)
    if text is None:
        return drawn
    return Markup('<a href="{}"><title>{}</title>{}</a>').format(box.href, one_line(text, 200), drawn)
