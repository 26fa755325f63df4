from __future__ import annotations

import pytest
from strategies.reported import row

from seatrial.reports import figures
from seatrial.reports.statistics.intervals import Interval


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (0, "0%"), (1, "100%"), (0.5, "50.0%"), (0.99999, "99.9%"), (0.00001, "0.1%")]
)
def test_all_and_nothing_are_said_only_when_they_are(share: float | None, text: str) -> None:
    assert figures.percent(share) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "?"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1200, "1.2 s"),
        (59_960, "1 m 00 s"),
        (83_000, "1 m 23 s"),
        (3.9e6, "1 h 05 m"),
    ],
)
def test_durations_are_as_long_as_they_sound(milliseconds: float | None, text: str) -> None:
    assert figures.duration(milliseconds) == text


def test_other_figures() -> None:
    assert [figures.points(value) for value in (-0.04, 0.0, -0.0001, 0.123)] == ["−4.0", "0.0", "0.0", "+12.3"]
    assert [figures.money(value) for value in (None, 0, 0.0021, 1234.5)] == ["?", "$0.00", "$0.0021", "$1,234.50"]
    assert [figures.money(value, unknown=3) for value in (None, 1.5)] == ["?", "≥ $1.50"]
    assert [figures.p_value(value) for value in (1.0, 0.0312, 0.00001)] == ["p = 1", "p = 0.031", "p < 0.0001"]
    assert figures.percent_range(Interval(0.5, 1.0)) == "50.0–100.0%"
    assert figures.decimal(0.5) == "0.5"
    assert figures.plural(1, "case") == "1 case"
    assert figures.plural(1200, "case") == "1,200 cases"


def test_trials_are_named_where_there_are_several() -> None:
    assert figures.run_name(row("a", trial=1), 1) == "a"
    assert figures.run_name(row("a", trial=2), 3) == "a (trial 2)"
