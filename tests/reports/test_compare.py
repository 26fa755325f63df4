from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import records
from strategies.reported import detail, row, rows_of, source

from seatrial.errors import SeatrialError
from seatrial.reports.compare import Comparison, agent_pairs, compare, refuse_itself
from seatrial.reports.rows import ReportSource
from seatrial.reports.statistics.paired import mcnemar
from seatrial.runs import Case, Run
from seatrial.trajectory.step import Step

words = st.lists(st.text("pfe", min_size=1, max_size=3), min_size=1, max_size=8)


def compared(before: str, after: str) -> Comparison:
    return compare(source(rows_of(crew=before)), source(rows_of(crew=after)), "crew", "crew")


def test_cases_are_paired_by_id_and_counted_as_better_or_worse() -> None:
    found = compared("p p f f p", "p f p f f")
    assert (found.paired, found.better, found.worse) == (5, 1, 2)
    assert (found.rate_a, found.rate_b) == (0.6, 0.4)
    assert found.difference == pytest.approx(-0.2)
    assert found.p_value == mcnemar(1, 2)
    assert [change.case_id for change in found.regressions] == ["case-1", "case-4"]
    assert [change.case_id for change in found.improvements] == ["case-2"]


def test_the_worst_regression_comes_first() -> None:
    found = compared("pp pp pp", "pf pp ff")
    assert [(change.case_id, change.difference) for change in found.regressions] == [("case-2", -1.0), ("case-0", -0.5)]


def test_equal_drops_are_ordered_by_score_then_by_the_suite() -> None:
    before = source([row("x"), row("y"), row("z")])
    after = source([row("x", "failed", score=0.5), row("y", "failed", score=0.1), row("z", "failed", score=0.5)])
    found = compare(before, after, "crew", "crew")
    assert [change.case_id for change in found.regressions] == ["y", "x", "z"]


def test_a_case_that_errored_on_one_side_is_left_out_and_counted() -> None:
    found = compared("p p p", "p e f")
    assert (found.paired, found.unpaired, found.unpaired_cases) == (2, 1, ["case-1"])
    assert found.worse == 1


def test_cases_that_only_one_side_has_are_left_out_and_counted() -> None:
    assert compared("p p", "p").unpaired == 1
    assert compared("p", "p p p").unpaired == 2


def test_errored_trials_of_a_case_that_has_others_are_ignored() -> None:
    found = compared("pee", "pfe")
    (change,) = found.regressions
    assert (change.passed_a, change.graded_a, change.passed_b, change.graded_b) == (1, 1, 1, 2)


def test_nothing_to_compare_is_an_error_and_not_a_draw() -> None:
    with pytest.raises(SeatrialError, match="nothing to compare") as caught:
        compared("p p", "e e")
    assert caught.value.code == "empty_input"


def test_an_agent_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SeatrialError, match="no runs of an agent 'ghost'"):
        compare(source(rows_of(crew="p")), source(rows_of(crew="p")), "crew", "ghost")


def test_two_agents_of_one_experiment_can_be_compared() -> None:
    both = source(rows_of(crew="p p", shop="p f"))
    found = compare(both, both, "crew", "shop")
    assert (found.a.agent, found.b.agent, found.worse) == ("crew", "shop", 1)


def test_the_worst_regression_shows_how_the_calls_of_a_good_and_a_bad_run_differ() -> None:
    before = source([row("x", run_id="x-1"), row("y", "failed", run_id="y-1"), row("y", trial=2, run_id="y-2")])
    after = source([row("x", run_id="x-3"), row("y", "failed", run_id="y-3")])
    runs = {
        "y-2": records.run(steps=[Step(0, "find", {}), Step(1, "refund", {"amount": 20})]),
        "y-3": records.run(steps=[Step(0, "find", {}), Step(1, "refund", {"amount": 200})]),
    }
    worst = compare(before, after, "crew", "crew", runs.__getitem__).worst
    assert worst is not None
    assert (worst.case_id, worst.run_a, worst.run_b) == ("y", "y-2", "y-3")
    assert [difference.pointer for difference in worst.diff.aligned[1].differences] == ["/arguments/amount"]


def test_without_a_regression_there_is_no_worst() -> None:
    runs: dict[str, Run] = {}
    assert compare(source([row()]), source([row()]), "crew", "crew", runs.__getitem__).worst is None


@settings(max_examples=50)
@given(words, words)
def test_the_other_way_round_everything_is_the_other_way_round(before: list[str], after: list[str]) -> None:
    try:
        one, other = compared(" ".join(before), " ".join(after)), compared(" ".join(after), " ".join(before))
    except SeatrialError:
        return
    assert (one.better, one.worse, one.paired) == (other.worse, other.better, other.paired)
    assert one.p_value == other.p_value
    assert one.difference == pytest.approx(-other.difference)
    assert one.rate_b - one.rate_a == pytest.approx(one.difference)
    assert one.interval.low - 1e-9 <= one.interval.high
    assert len(one.regressions) == one.worse
    assert all(change.difference < 0 for change in one.regressions)


def test_agents_are_paired_by_name_or_as_the_only_ones() -> None:
    assert agent_pairs(["crew"], ["shop"]) == [("crew", "shop")]
    assert agent_pairs(["b", "a", "old"], ["a", "b", "new"]) == [("a", "a"), ("b", "b")]
    with pytest.raises(SeatrialError, match="no agent is in both"):
        agent_pairs(["a", "b"], ["c"])


def test_cases_that_b_could_not_judge_in_every_trial_are_lost() -> None:
    assert compared("pp pp pp", "pp pe ee").lost == 2
    assert compared("ee pp", "ee pp").lost == 0


def test_cases_that_b_did_not_come_to_are_lost_when_it_was_stopped() -> None:
    before, after = source(rows_of(crew="p p p")), source(rows_of(crew="p"), status="stopped", stop_reason="budget")
    assert compare(before, after, "crew", "crew").lost == 2
    assert compared("p p p", "p").lost == 0


SUITE = {"agents": {"crew": {}}, "trials": 3}


def planned(outcomes: str, count: int, **fields: Any) -> ReportSource:
    """A source of an experiment of which it is known how many runs there were to be."""
    found = source(rows_of(crew=outcomes), planned=count, **fields)
    return msgspec.structs.replace(found, experiment=msgspec.structs.replace(found.experiment, suite=SUITE))


def test_a_case_that_b_did_not_run_in_every_planned_trial_is_lost_although_all_its_runs_were_judged() -> None:
    before = planned("ppp ppp", 6)
    after = planned("p", 6, status="stopped", stop_reason="budget: 30 tokens")
    found = compare(before, after, "crew", "crew")
    assert found.lost == 2
    assert found.a.unfinished is None
    assert found.b.unfinished == "stopped after 1 of 6 runs: budget: 30 tokens"
    assert compare(after, before, "crew", "crew").a.unfinished == found.b.unfinished


def test_a_finished_experiment_that_lacks_runs_is_unfinished() -> None:
    found = compare(planned("ppp ppp", 6), planned("ppp pp", 6), "crew", "crew")
    assert found.lost == 1
    assert found.b.unfinished == "has 5 of its 6 runs: the others are not in the store"


def test_cases_that_b_was_not_asked_to_run_are_not_lost_and_are_named() -> None:
    before = planned("ppp ppp ppp", 9)
    found = compare(before, planned("ppp", 3, selected={"crew": ["case-0"]}), "crew", "crew")
    assert (found.lost, found.unselected, found.b.unfinished) == (0, ["case-1", "case-2"], None)
    stopped = planned("ppp", 3, selected={"crew": ["case-0", "case-1"]}, status="stopped", stop_reason="budget")
    found = compare(before, stopped, "crew", "crew")
    assert (found.lost, found.unselected) == (1, ["case-2"])


def tagged(before: str, after: str, tags: dict[str, list[str]], **fields: Any) -> Comparison:
    return compare(
        source(rows_of(crew=before), tags=tags), source(rows_of(crew=after), tags=tags, **fields), "crew", "crew"
    )


def rigged() -> Comparison:
    """Six tags of fifty cases: one dropped by fifteen points, and the others rose a little."""
    names = ["account", "billing", "delivery", "refund", "search", "smalltalk"]
    tags = {f"case-{index}": [names[index // 50]] for index in range(300)}
    before = ["ppp"] * 49 + ["fff"] + (["ppp"] * 44 + ["ppf"] * 2 + ["fff"] * 4) * 5
    after = ["fff"] * 7 + ["ppf"] * 2 + ["ppp"] * 40 + ["fff"] + (["ppp"] * 47 + ["ppf"] * 1 + ["fff"] * 2) * 5
    return tagged(" ".join(before), " ".join(after), tags)


def test_a_regression_in_one_tag_is_found_although_the_whole_hardly_moved() -> None:
    found = rigged()
    assert not found.is_worse
    first, *others = found.by_tag
    assert (first.tag, first.paired, first.is_worse) == ("account", 50, True)
    assert (round(first.rate_a, 3), round(first.rate_b, 3)) == (0.98, 0.827)
    assert first.interval.high < 0
    assert not any(other.is_worse for other in others)


def test_the_cases_of_a_tag_are_compared_as_if_there_were_no_others() -> None:
    found = tagged("p p p f p", "f p f p p", {"case-0": ["x", "y"], "case-2": ["x"], "case-3": ["y"]})
    by_name = {of_tag.tag: of_tag for of_tag in found.by_tag}
    assert (by_name["x"].paired, by_name["x"].better, by_name["x"].worse) == (2, 0, 2)
    assert (by_name["y"].paired, by_name["y"].better, by_name["y"].worse) == (2, 1, 1)
    assert found.untagged == 2


def test_cases_of_a_tag_that_are_left_out_are_counted_with_their_reasons() -> None:
    tags = {f"case-{index}": ["x"] for index in range(5)} | {"case-5": ["y"]}
    found = tagged("p p e p p s", "p e p - p".replace("-", "u") + " p p", tags)
    (x,) = found.by_tag
    assert (x.paired, x.unpaired) == (2, 3)
    assert x.left_out == {"a: agent_unreachable": 1, "b: agent_unreachable": 1, "b: unfinished": 1}
    (y,) = found.incomparable_tags
    assert (y.tag, y.left_out) == ("y", {"a: skipped": 1})
    assert sum(found.left_out.values()) == found.unpaired == 5
    assert found.left_out["not run in a"] == 1


def test_tags_are_those_of_b_and_those_of_a_where_b_has_no_such_case() -> None:
    before = source(rows_of(crew="p p p"), tags={"case-0": ["old"], "case-1": ["old"], "case-2": ["gone"]})
    after = source(rows_of(crew="p p"), tags={"case-0": ["new"]})
    found = compare(before, after, "crew", "crew")
    assert [of_tag.tag for of_tag in found.by_tag] == ["new"]
    assert [of_tag.tag for of_tag in found.incomparable_tags] == ["gone"]
    assert found.untagged == 1


def test_a_case_that_moved_has_the_reason_of_the_run_that_failed() -> None:
    before = source([row("x"), row("y", "failed", detail=detail("no refund"))])
    after = source([row("x", "failed", detail=detail("the amount is 200")), row("y")])
    found = compare(before, after, "crew", "crew")
    assert [change.why for change in found.regressions] == ["the amount is 200"]
    assert [change.why for change in found.improvements] == ["no refund"]


def test_cases_that_are_not_the_same_on_both_sides_are_named_and_tags_do_not_matter() -> None:
    asked = [Case(id="case-0", instruction="Where?", tags=["x"]), Case(id="case-1", instruction="When?")]
    again = [Case(id="case-0", instruction="Where?", tags=["y"]), Case(id="case-1", instruction="When, now?")]

    def of(outcomes: str, cases: list[Case], suite_hash: str) -> ReportSource:
        found = source(rows_of(crew=outcomes), suite_hash=suite_hash)
        return msgspec.structs.replace(found, cases=lambda: cases)

    found = compare(of("p p", asked, "one"), of("p f", again, "other"), "crew", "crew")
    assert (found.edited, found.edited_cases) == (1, ["case-1"])
    assert found.regressions[0].edited
    assert compare(of("p p", asked, "one"), of("p f", again, "one"), "crew", "crew").edited == 0


def test_keys_of_the_suite_that_changed_what_a_result_means_are_named() -> None:
    def of(suite_hash: str, **suite: Any) -> ReportSource:
        found = source(rows_of(crew="p"), suite_hash=suite_hash)
        return msgspec.structs.replace(found, experiment=msgspec.structs.replace(found.experiment, suite=suite))

    found = compare(of("one", threshold=0.5, trials=1), of("other", threshold=0.9, trials=3), "crew", "crew")
    assert found.suite_changes == ["threshold"]


def test_suites_without_a_common_case_are_not_compared_and_are_named() -> None:
    with pytest.raises(SeatrialError, match="no case is in both") as caught:
        compare(source([row("x")], name="shop"), source([row("y")], name="bank"), "crew", "crew")
    assert "'shop' and 'bank'" in caught.value.message


def test_an_agent_is_not_compared_with_itself() -> None:
    one, other = source(rows_of(crew="p", shop="f")), source(rows_of(crew="p"), experiment_id="exp-2")
    refuse_itself(one.experiment, one.experiment, [("crew", "shop")])
    refuse_itself(one.experiment, other.experiment, [("crew", "crew")])
    with pytest.raises(SeatrialError, match="cannot be compared with itself") as caught:
        refuse_itself(one.experiment, one.experiment, [("crew", "crew")])
    assert caught.value.code == "usage"
