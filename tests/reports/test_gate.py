from __future__ import annotations

import pytest
from strategies.reported import rows_of, source

from seatrial.errors import SeatrialError
from seatrial.reports.compare import Comparison, compare
from seatrial.reports.gate import Gate, gate_of, objections


def compared(before: str, after: str) -> Comparison:
    return compare(source(rows_of(crew=before)), source(rows_of(crew=after)), "crew", "crew")


def test_conditions_are_read_together() -> None:
    assert gate_of([]) == Gate()
    assert gate_of(["regression", "drop=0.02"]) == Gate(regression=True, drop=0.02)


@pytest.mark.parametrize(
    "condition", ["", "regressions", "drop", "drop=", "drop=x", "drop=-1", "drop=2", "drop=nan", "regression=1"]
)
def test_a_condition_that_is_not_known_is_an_error(condition: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        gate_of([condition])
    assert caught.value.code == "usage"


def test_without_conditions_nothing_is_objected() -> None:
    assert objections(Gate(), compared("p", "f")) == []


def test_any_case_that_became_worse_is_a_regression_whatever_became_better() -> None:
    assert objections(Gate(regression=True), compared("p f f", "f p p")) == ["1 case passed less often than before"]
    assert objections(Gate(regression=True), compared("p f", "p p")) == []


def test_a_drop_of_more_than_is_allowed_is_objected_and_one_of_just_that_is_not() -> None:
    found = compared("p p p p p p p p p p", "p p p p p p p p p f")
    assert objections(Gate(drop=0.1), found) == []
    assert objections(Gate(drop=0.09), found) == ["the pass rate dropped by 10.0 points; 9 are allowed"]
    assert objections(Gate(drop=0.0), compared("p f", "f p")) == []
