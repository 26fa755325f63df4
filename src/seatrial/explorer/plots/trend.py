"""The pass rates of the last experiments of a suite: a line for each agent, with the 95% band of the first one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from seatrial._support.printable import one_line
from seatrial.explorer.plots.interval import rate_axis
from seatrial.reports import figures
from seatrial.reports.statistics.intervals import Interval

WIDTH, HEIGHT = 480, 72
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 372, 8, 64
_NAME = 15


class TrendPoint(msgspec.Struct, frozen=True):
    """The rate of an agent in one experiment."""

    place: int
    """Which experiment, the oldest being 0."""
    rate: float
    interval: Interval
    suite_hash: str
    """A line does not go on where the suite is another one."""


def trend(lines: Sequence[tuple[str, Sequence[TrendPoint]]], experiments: int) -> Markup | None:
    """The plot; None with fewer than two points in every line."""
    lines = [(name, points) for name, points in lines if len(points) > 1]
    if not lines:
        return None
    axis = rate_axis([point.interval for _, points in lines for point in points])

    def x(place: int) -> str:
        return f"{_LEFT + 4 + place / max(experiments - 1, 1) * (_RIGHT - _LEFT - 8):.1f}"

    def y(rate: float) -> float:
        return round(_BOTTOM - (rate - axis.low) / max(axis.high - axis.low, 1e-9) * (_BOTTOM - _TOP), 1)

    parts = [
        Markup('<path class="hl" d="M{} {y}H{}"/><text x="{}" y="{}" text-anchor="end">{}</text>').format(
            _LEFT, _RIGHT, _LEFT - 4, y(rate) + 4, figures.percent(rate).replace(".0%", "%"), y=y(rate)
        )
        for rate in (axis.low, axis.high)
    ]
    lowest = -99.0
    for index, (name, points) in enumerate(lines):
        for stretch in _stretches(points):
            if not index:
                there = [f"{x(point.place)} {y(point.interval.high)}" for point in stretch]
                back = [f"{x(point.place)} {y(point.interval.low)}" for point in reversed(stretch)]
                parts.append(Markup('<path class="bnd" d="M{}z"/>').format("L".join([*there, *back])))
            drawn = "L".join(f"{x(point.place)} {y(point.rate)}" for point in stretch)
            parts.append(Markup('<path class="{}" d="M{}"/>').format("ln1" if not index else "ln2", drawn))
        last = points[-1]
        at = y(last.rate)
        # Names that would lie on each other stand below each other.
        text = max(at, lowest + 12) if at >= lowest - 12 else at
        lowest = text
        parts.append(
            Markup('<circle class="pt" cx="{}" cy="{}" r="3"/><text class="i" x="{}" y="{}">{}</text>').format(
                x(last.place), at, _RIGHT + 8, text + 4, one_line(name, _NAME)
            )
        )
    words = "; ".join(
        f"{one_line(name, 60)} from {figures.percent(points[0].rate)} to {figures.percent(points[-1].rate)}"
        for name, points in lines
    )
    return Markup('<svg class="tre" viewBox="0 0 {} {}" width="{}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, WIDTH, f"Pass rates of the last {experiments} experiments: {words}", Markup("").join(parts)
    )


def _stretches(points: Sequence[TrendPoint]) -> list[list[TrendPoint]]:
    found: list[list[TrendPoint]] = []
    for point in points:
        if found and found[-1][-1].suite_hash == point.suite_hash:
            found[-1].append(point)
        else:
            found.append([point])
    return found
