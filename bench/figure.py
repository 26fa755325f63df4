"""One line of the table: what was measured, against what, and whether it reaches its bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from bench.clock import Race, Ratio

HEADER = ("work", "seatrial", "measured against", "time of it", "ratio (10th to 90th percentile)", "bar", "")


class Figure(msgspec.Struct, frozen=True, tag=True):
    work: str
    against: str
    ours_ns: float
    """Best CPU time of ours, for one piece of work."""
    theirs_ns: float
    ratio: Ratio
    """How many times faster ours is; for a cost, how many times the time of the other it takes."""
    bar: float | None
    """None when it is only shown."""
    direction: Literal["at least", "at most"]

    @property
    def reached(self) -> bool:
        if self.bar is None:
            return True
        if self.direction == "at least":
            return self.ratio.median >= self.bar
        return self.ratio.median <= self.bar

    def cells(self) -> tuple[str, ...]:
        spread = f"{_short(self.ratio.median)} ({_short(self.ratio.low)} to {_short(self.ratio.high)})"
        bar = "" if self.bar is None else f"{self.direction} {self.bar:g}"
        verdict = "shown" if self.bar is None else _verdict(self.reached)
        return (self.work, _time(self.ours_ns), self.against, _time(self.theirs_ns), spread, bar, verdict)


class Level(msgspec.Struct, frozen=True, tag=True):
    """A figure with a bar of its own, which nothing is measured against."""

    work: str
    value: float
    at_most: float
    unit: Literal["ns", "bytes", "count"]

    @property
    def reached(self) -> bool:
        return self.value <= self.at_most

    def cells(self) -> tuple[str, ...]:
        write = {"ns": _time, "bytes": _size, "count": "{:g}".format}[self.unit]
        bar = f"at most {write(self.at_most)}"
        return (self.work, write(self.value), "", "", "", bar, _verdict(self.reached))


def speed(race: Race, work: str, against: str, *, at_least: float | None, pieces: int = 1) -> Figure:
    """How many times faster `seatrial` was than the other contender of this name; without a bar it is only shown."""
    return _figure(race, work, against, race.ratio(against, "seatrial"), at_least, "at least", pieces)


def cost(race: Race, work: str, against: str, *, at_most: float, pieces: int = 1) -> Figure:
    """How many times the other contender's time `seatrial` took."""
    return _figure(race, work, against, race.ratio("seatrial", against), at_most, "at most", pieces)


def markdown(figures: Sequence[Figure | Level]) -> str:
    """The table, in columns that also read well as plain text."""
    rows = [HEADER, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _figure(
    race: Race,
    work: str,
    against: str,
    ratio: Ratio,
    bar: float | None,
    direction: Literal["at least", "at most"],
    pieces: int,
) -> Figure:
    return Figure(work, against, race.best("seatrial") / pieces, race.best(against) / pieces, ratio, bar, direction)


def _verdict(reached: bool) -> str:
    return "reached" if reached else "**missed**"


def _short(number: float) -> str:
    return f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f}"


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{_short(nanoseconds / size)} {unit}"
    return f"{_short(nanoseconds)} ns"


def _size(count: float) -> str:
    return f"{_short(count / 1e6)} MB"
