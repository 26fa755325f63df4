"""An estimate with its 95% interval, as a point on a bar: the same in every row of a table."""

from __future__ import annotations

import msgspec
from markupsafe import Markup

from seatrial.reports.statistics.intervals import Interval

WIDTH = 180
HEIGHT = 20
PAD = 5
"""Pixels left and right of the axis, for half a point."""
MARK = 3.5
"""Radius of the point."""


class PlotAxis(msgspec.Struct, frozen=True):
    """What the left and the right end of the plots of a table are."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Where a value is drawn; what is beyond the axis is at its end."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(PAD + min(max(share, 0.0), 1.0) * (WIDTH - 2 * PAD), 1)


def rate_axis(intervals: list[Interval]) -> PlotAxis:
    """An axis for pass rates, in steps of ten points: as narrow as these allow, so that a difference can be seen."""
    low = min([interval.low for interval in intervals], default=0.0)
    high = max([interval.high for interval in intervals], default=1.0)
    first, last = int(low * 10 + 1e-9), -int(-high * 10 // 1)
    return PlotAxis(first / 10, max(last, first + 1) / 10)


def interval_plot(
    value: float | None,
    interval: Interval | None,
    axis: PlotAxis,
    *,
    words: str,
    tone: str = "",
    lines: tuple[float, ...] = (),
) -> Markup:
    """The plot of one row; `words` say the same. `lines` are values that others are held against, and `tone` is `bad`
    for what is worse beyond doubt."""
    parts = [Markup('<path class="hl" d="M{} 10H{}"/>').format(PAD, WIDTH - PAD)]
    parts += [Markup('<path class="hl" stroke-dasharray="2 2" d="M{} 2V18"/>').format(axis.at(line)) for line in lines]
    if interval is not None:
        parts.append(Markup('<path class="iv" d="M{} 10H{}"/>').format(axis.at(interval.low), axis.at(interval.high)))
    if value is not None:
        parts.append(Markup('<circle class="pt" cx="{}" cy="10" r="{}"/>').format(axis.at(value), MARK))
    return Markup('<svg class="ivp {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>').format(
        tone, WIDTH, HEIGHT, words, Markup("").join(parts)
    )
