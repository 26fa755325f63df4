"""Histograms of two sides: the base as an outline, the other one filled, each as a share of its own runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import msgspec
from markupsafe import Markup

WIDTH, HEIGHT = 316, 66
_LEFT, _FLOOR, _TOP = 2, 48, 8
_COLUMNS = 28

Bins = Mapping[int, int]


class HistogramColumns(msgspec.Struct, frozen=True):
    """Which bins stand together in each column."""

    first: int
    group: int
    count: int


def columns_of(sides: Sequence[Bins], order: Mapping[int, int] | None = None) -> HistogramColumns:
    """Columns from the first bin that is not empty to the last; `order` are the places of bins, where some are left
    out."""
    places = [order.get(index, index) if order else index for side in sides for index in side]
    first, last = (min(places), max(places)) if places else (0, 0)
    group = ceil((last - first + 1) / _COLUMNS)
    return HistogramColumns(first, group, max(1, ceil((last - first + 1) / group)))


def histogram(
    base: Bins | None,
    here: Bins,
    columns: HistogramColumns,
    labels: tuple[str, str, str],
    words: str,
    order: Mapping[int, int] | None = None,
) -> Markup:
    """The plot, with labels below its first, middle and last column."""
    now = _shares(here, columns, order)
    then = None if base is None else _shares(base, columns, order)
    highest = max([*now, *(then or ()), 1e-9])
    width = (WIDTH - 2 * _LEFT) / columns.count

    def y(share: float) -> str:
        return f"{_FLOOR - share / highest * (_FLOOR - _TOP):.1f}"

    bars = "".join(
        f"M{_LEFT + index * width + 0.5:.1f} {_FLOOR}V{y(share)}h{max(width - 1, 0.5):.1f}V{_FLOOR}z"
        for index, share in enumerate(now)
        if share
    )
    outline = ""
    if then is not None:
        steps = "".join(f"V{y(share)}H{_LEFT + (index + 1) * width:.1f}" for index, share in enumerate(then))
        outline = f"M{_LEFT} {_FLOOR}{steps}V{_FLOOR}"
    texts = Markup("").join(
        Markup('<text x="{}" y="61" text-anchor="{}">{}</text>').format(place, anchor, label)
        for place, anchor, label in zip(
            (_LEFT, WIDTH / 2, WIDTH - _LEFT), ("start", "middle", "end"), labels, strict=True
        )
    )
    return Markup(
        '<svg class="hg" viewBox="0 0 {w} {h}" role="img" aria-label="{words}"><path class="on" d="{bars}"/>'
        '<path class="was" d="{outline}"/><path class="fl" d="M{left} {floor}H{right}"/>{texts}</svg>'
    ).format(
        w=WIDTH,
        h=HEIGHT,
        words=words,
        bars=bars,
        outline=outline,
        left=_LEFT,
        floor=_FLOOR,
        right=WIDTH - _LEFT,
        texts=texts,
    )


def _shares(side: Bins, columns: HistogramColumns, order: Mapping[int, int] | None) -> list[float]:
    total = sum(side.values())
    found = [0.0] * columns.count
    for index, count in side.items():
        place = order.get(index, index) if order else index
        found[min(max((place - columns.first) // columns.group, 0), columns.count - 1)] += count / total
    return found
