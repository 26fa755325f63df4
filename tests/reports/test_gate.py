from __future__ import annotations

from typing import Any

import msgspec
import pytest
from strategies.reported import rows_of, source

from seatrial.errors import SeatrialError
from seatrial.reports.compare import Comparison, compare
from seatrial.reports.compare_text import comparison_terminal
from seatrial.reports.gate import Gate, GateLimits, check_tags, gate_of, objections, undecided
from seatrial.store import CaseTags


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


def of_tags(before: str, after: str, tags: dict[str, list[str]], **fields: Any) -> Comparison:
    return compare(
        source(rows_of(crew=before), tags=tags), source(rows_of(crew=after), tags=tags, **fields), "crew", "crew"
    )


HALVES = {f"case-{index}": ["account" if index < 12 else "other:kind"] for index in range(24)}
BAD = of_tags("p " * 24, "f " * 8 + "p " * 16, HALVES)
SAME = of_tags("p " * 24, "p " * 24, HALVES)


def test_points_are_another_way_to_write_a_drop() -> None:
    assert gate_of(["drop=2points"]) == gate_of(["drop=0.02"]) == Gate(drop=0.02)
    assert gate_of(["drop=1point"]).drop == 0.01


def test_conditions_on_tags_are_read_together_and_a_tag_may_have_colons() -> None:
    conditions = ["tag:account:regression", "tag:account:drop=0.1", "tag:other:kind:significantly-worse", "regression"]
    assert gate_of(conditions) == Gate(
        regression=True,
        tags={"account": GateLimits(regression=True, drop=0.1), "other:kind": GateLimits(significantly_worse=True)},
    )


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("significant-worse", "did you mean `significantly-worse`?"),
        ("tag:account:regresion", "did you mean `tag:account:regression`?"),
        ("drop=5", "`drop=2points`"),
        ("drop=100points", "`drop=2points`"),
        ("drop=1", "`drop=2points`"),
        ("tag:account", "`tag:NAME:significantly-worse`"),
        ("tag::regression", "`tag:NAME:significantly-worse`"),
        ("tag:account:", "`tag:NAME:significantly-worse`"),
        ("account:regression", "did you mean"),
    ],
)
def test_the_error_on_an_unknown_condition_names_the_nearest(condition: str, hint: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        gate_of([condition])
    assert hint in (caught.value.hint or "")


def test_significantly_worse_is_what_the_test_says() -> None:
    gate = gate_of(["significantly-worse"])
    assert BAD.p_value == pytest.approx(2 / 2**8)
    (sentence,) = objections(gate, BAD)
    assert sentence.startswith("b is worse than a: −33.3 points")
    few = of_tags("p " * 24, "f " * 5 + "p " * 19, HALVES)
    assert (objections(gate, few), undecided(gate, few)) == ([], [])
    assert objections(gate, of_tags("f " * 24, "p " * 24, HALVES)) == []


def test_a_condition_on_a_tag_is_about_its_cases_alone() -> None:
    for condition in ("regression", "drop=0.5", "significantly-worse"):
        (sentence,) = objections(gate_of([f"tag:account:{condition}"]), BAD)
        assert sentence.startswith("worse in tag account: 100 → " if "-" in condition else "tag account: ")
        assert objections(gate_of([f"tag:other:kind:{condition}"]), BAD) == []
        assert len(objections(gate_of([f"tag:*:{condition}"]), BAD)) == 1
        assert objections(gate_of([f"tag:*:{condition}"]), SAME) == []
    assert objections(gate_of(["tag:account:drop=0.7"]), BAD) == []
    (strict,) = objections(gate_of(["tag:account:drop=0.7", "tag:*:drop=0.5"]), BAD)
    assert strict == "tag account: the pass rate dropped by 66.7 points; 50 are allowed"


def test_significance_in_tags_is_corrected_for_how_many_are_looked_at() -> None:
    both = of_tags("p " * 12 + "p f " * 6, "f " * 6 + "p " * 6 + "f p " * 6, HALVES)
    gate = gate_of(["tag:account:significantly-worse"])
    account = next(found for found in both.by_tag if found.tag == "account")
    assert account.p_value == pytest.approx(2 * 2 / 2**6)
    assert objections(gate, both) == []


def test_a_tag_that_no_case_has_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(SeatrialError, match="no case has") as caught:
        check_tags(gate_of(["tag:acount:regression"]), [BAD])
    assert (caught.value.code, caught.value.hint) == ("usage", "did you mean `account`?")
    check_tags(gate_of(["tag:*:regression", "tag:account:drop=0.1"]), [BAD])
    with pytest.raises(SeatrialError, match="no case has one"):
        check_tags(gate_of(["tag:*:regression"]), [compared("p", "p")])


def test_what_is_not_known_is_not_decided() -> None:
    lost = of_tags("p " * 24, "e " + "p " * 23, HALVES)
    assert undecided(gate_of(["regression"]), lost)
    assert undecided(gate_of(["tag:account:regression"]), lost)
    assert undecided(gate_of(["tag:*:drop=0.1"]), lost)
    assert undecided(gate_of(["tag:other:kind:regression"]), lost) == []
    assert undecided(Gate(), lost) == []


@pytest.mark.parametrize("condition", ["regression", "drop=0.1", "significantly-worse"])
def test_a_tag_of_which_nothing_can_be_compared_is_not_decided(condition: str) -> None:
    for before, after in (("e " * 12 + "p " * 12, "p " * 24), ("p " * 24, "e " * 12 + "p " * 12)):
        found = of_tags(before, after, HALVES)
        assert [each.tag for each in found.incomparable_tags] == ["account"]
        assert undecided(gate_of([f"tag:account:{condition}"]), found)
        assert undecided(gate_of([f"tag:*:{condition}"]), found)
        assert undecided(gate_of([f"tag:other:kind:{condition}"]), found) == []


def test_with_too_few_cases_for_any_test_significance_is_not_decided() -> None:
    small = of_tags("p " * 5, "p " * 5, {"case-0": ["x"], "case-1": ["x"]})
    (sentence,) = undecided(gate_of(["significantly-worse"]), small)
    assert "5 cases to compare, too few for any test; it takes at least 6" in sentence
    assert undecided(gate_of(["tag:x:significantly-worse"]), small)
    assert undecided(gate_of(["tag:*:significantly-worse"]), small)
    assert undecided(gate_of(["tag:x:regression", "tag:*:regression", "drop=0.1"]), small) == []
    six = of_tags("p " * 6, "p " * 6, {f"case-{index}": ["x"] for index in range(6)})
    assert undecided(gate_of(["significantly-worse", "tag:x:significantly-worse"]), six) == []


def test_of_every_tag_small_ones_are_expected_as_long_as_one_can_be_tested() -> None:
    mixed = of_tags("p " * 14, "p " * 14, {f"case-{index}": ["small" if index < 2 else "large"] for index in range(14)})
    assert undecided(gate_of(["tag:*:significantly-worse"]), mixed) == []
    assert undecided(gate_of(["tag:small:significantly-worse"]), mixed)


def test_a_side_that_was_stopped_leaves_every_condition_undecided() -> None:
    stopped = of_tags("p " * 24, "p " * 24, HALVES, status="stopped", stop_reason="budget", planned=None)
    for condition in ("regression", "tag:account:regression"):
        assert any("stopped after" in sentence for sentence in undecided(gate_of([condition]), stopped))


def test_cases_whose_tags_nobody_can_read_leave_conditions_on_tags_undecided() -> None:
    before, after = source(rows_of(crew="p p"), tags={"case-0": ["x"]}), source(rows_of(crew="p p"))
    damaged = msgspec.structs.replace(after, tags=lambda: CaseTags({"case-0": ("x",)}, cases=2, unread=1))
    found = compare(before, damaged, "crew", "crew")
    assert "1 case cannot be read any more: what tags they had is unknown." in comparison_terminal(found)
    assert undecided(gate_of(["tag:x:regression"]), found)
    assert undecided(gate_of(["regression"]), found) == []
