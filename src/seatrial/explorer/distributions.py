"""How score, duration, steps and cost of runs are distributed, in an experiment and in its base: from the histograms
that the store keeps, so no run is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import ceil
from typing import Final

import msgspec
from markupsafe import Markup

from seatrial.explorer import numbers
from seatrial.explorer.plots.histogram import HistogramColumns, columns_of, histogram
from seatrial.store import EDGES, AgentTotals
from seatrial.store.rollups import RollupFigure, quantile_of_bins

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the runs that passed or failed."""

    title: str
    caption: str
    """`mean 0.86 → 0.81`."""
    plot: Markup | None
    """None where nobody knows it of any run."""
    rows: list[tuple[str, list[str]]]
    """The name of a side, and its quantiles: for those who do not see the plot."""


_FIGURES: Final[tuple[tuple[RollupFigure, str, Callable[[float | None], str]], ...]] = (
    ("score", "Score", numbers.score),
    ("duration_ms", "Duration", numbers.duration),
    ("steps", "Steps", lambda value: numbers.UNKNOWN if value is None else f"{value:.3g}"),
    ("cost_usd", "Cost per run", numbers.money),
)


def distributions(here: AgentTotals, base: AgentTotals | None, names: tuple[str, str]) -> list[Distribution]:
    """Those of an agent, beside those of its base; `names` are of the base and of the agent."""
    return [_distribution(figure, title, text, here, base, names) for figure, title, text in _FIGURES]


def _distribution(
    figure: RollupFigure,
    title: str,
    text: Callable[[float | None], str],
    here: AgentTotals,
    base: AgentTotals | None,
    names: tuple[str, str],
) -> Distribution:
    now = here.histograms.get(figure, {})
    then = None if base is None else base.histograms.get(figure, {})
    sides = [(names[1], now)] if then is None else [(names[0], then), (names[1], now)]
    rows = [(name, [text(quantile_of_bins(bins, share, EDGES[figure])) for share in QUANTILES]) for name, bins in sides]
    if not now and not then:
        return Distribution(title=title, caption="not known", plot=None, rows=rows)
    order = _with_whole_numbers() if figure == "steps" else None
    columns = columns_of([bins for _, bins in sides], order)
    if figure == "score":
        columns = HistogramColumns(0, 2, 32)
    what, figures = _caption(figure, [base, here] if base is not None else [here])
    caption = f"{what} {' → '.join(text(value) for value in figures)}"
    plot = histogram(
        then, now, columns, _labels(figure, columns, order, text), f"{title} of runs: {caption}; a table follows", order
    )
    return Distribution(title=title, caption=caption, plot=plot, rows=rows)


def _caption(figure: RollupFigure, sides: Sequence[AgentTotals]) -> tuple[str, list[float | None]]:
    if figure == "duration_ms":
        return "p95", [side.duration_p95_ms for side in sides]
    return "mean", [None if (total := side.sums.get(figure)) is None else total.mean for side in sides]


@cache
def _with_whole_numbers() -> dict[int, int]:
    """Of the bins of steps, those that a whole number can be in, with their places among these."""
    edges = EDGES["steps"]
    some = [0, *(index for index in range(1, len(edges)) if ceil(edges[index - 1]) < edges[index]), len(edges)]
    return {index: place for place, index in enumerate(some)}


def _labels(
    figure: RollupFigure,
    columns: HistogramColumns,
    order: Mapping[int, int] | None,
    text: Callable[[float | None], str],
) -> tuple[str, str, str]:
    if figure == "score":
        return "0", "0.5", "1"
    edges = EDGES[figure]
    bins = {place: index for index, place in order.items()} if order else None

    def start(place: int) -> str:
        index = place if bins is None else bins.get(place, len(edges))
        low = edges[min(index, len(edges)) - 1] if index else 0.0
        return text(ceil(low) if figure == "steps" else low)

    last = columns.first + columns.group * columns.count
    middle = columns.first + columns.group * columns.count // 2
    end = last - 1 if figure == "steps" else last
    return start(columns.first), start(middle) if columns.count > 2 else "", start(end)
