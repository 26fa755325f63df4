from __future__ import annotations

import re

import pytest
from strategies import records
from strategies.reported import HOSTILE, row, rows_of, source

from seatrial.reports.compare import Comparison, TrajectoryDiff, compare
from seatrial.reports.compare_text import (
    MAX_LISTED,
    comparison_markdown,
    comparison_terminal,
    diff_lines,
    verdict_sentence,
)
from seatrial.trajectory.comparison import compare as compare_steps
from seatrial.trajectory.step import Step

GOOD = [Step(0, "find", {"order": "o-1"}), Step(1, "check", {}), Step(2, "refund", {"amount": 20})]
BAD = [Step(0, "find", {"order": "o-1"}), Step(1, "refund", {"amount": 200}), Step(2, "email", {})]


def compared(before: str, after: str) -> Comparison:
    steps = {True: GOOD, False: BAD}
    return compare(
        source(rows_of(crew=before), name="monday", experiment_id="exp-a"),
        source(rows_of(crew=after), name="tuesday", experiment_id="exp-b"),
        "crew",
        "crew",
        lambda run_id: records.run(steps=steps.pop(True, BAD)),
    )


def hostile(text: str) -> Comparison:
    one = source([row(text, agent=text, run_id="1")], name=text, experiment_id=text)
    other = source([row(text, "failed", agent=text, run_id="2")], name=text, experiment_id=text)
    steps = {"1": [Step(0, text, {text: text})], "2": [Step(0, text, {text: f"{text}!"}), Step(1, text, text)]}
    return compare(one, other, text, text, lambda run_id: records.run(steps=steps[run_id]))


def test_a_clear_drop_is_called_worse_with_its_interval_and_p_value() -> None:
    sentence = verdict_sentence(compared("p " * 50, "f " * 20 + "p " * 30))
    assert sentence.startswith("b is worse: −40.0 points (95% interval −")
    assert "McNemar p < 0.0001" in sentence


def test_a_doubtful_difference_is_not_called_one() -> None:
    assert verdict_sentence(compared("p f p p", "f p p p")).startswith("no clear difference: 0.0 points")


def test_three_cases_that_changed_may_be_chance_and_the_interval_says_so_too() -> None:
    comparison = compared("f f f p p p p", "p p p p p p p")
    assert comparison.interval.low < 0
    assert "95% interval −23.0 to +79.9; McNemar p = 0.25" in verdict_sentence(comparison)
    assert verdict_sentence(comparison).startswith("no clear difference: +42.9 points")
    assert "\x1b[1mno clear difference" in comparison_terminal(comparison, colour=True)


def test_the_terminal_shows_sides_changes_and_the_calls_of_the_worst() -> None:
    text = comparison_terminal(compared("p p f", "f p p"))
    assert re.search(r"a +crew +monday exp-a +3 +2 +1 +0 +66\.7%", text)
    assert "3 cases with graded runs on both sides: 1 became better, 1 worse." in text
    assert "regressions (1)" in text
    assert "improvements (1)" in text
    assert "calls of the worst regression, case-0, from a to b:" in text
    assert "\x1b" not in text
    assert "\x1b[32m" in comparison_terminal(compared("p p f", "f p p"), colour=True)


def test_the_diff_marks_what_only_one_has_and_what_differs() -> None:
    worst = compared("p", "f").worst
    assert worst is not None
    assert diff_lines(worst) == [
        '  find {"order": "o-1"}',
        "- check {}",
        '~ refund {"amount": 200}',
        "~     /arguments/amount: 200, not 20 as in a",
        "+ email {}",
    ]


def test_a_long_list_is_cut_and_counted() -> None:
    text = comparison_terminal(compared("p " * (MAX_LISTED + 4), "f " * (MAX_LISTED + 4)))
    assert "… and 4 more" in text


def test_errors_other_suites_and_trials_are_remarked() -> None:
    a = source(rows_of(crew="pp p pf"), suite_hash="one")
    b = source(rows_of(crew="pp e pp"), suite_hash="other")
    text = comparison_terminal(compare(a, b, "crew", "crew"))
    assert "1 case left out: only one side has a graded run (case-1). Errored runs are not counted." in text
    assert "The suites are not the same" in text
    assert "a: pass@2 100%, pass^2 50.0%, 1 flaky case." in text


def test_markdown_has_the_same() -> None:
    text = comparison_markdown(compared("p p f", "f p p"))
    assert text.startswith("## <code>crew in monday</code> against <code>crew in tuesday</code>\n")
    assert "### Regressions (1)" in text
    assert "| <code>case-0</code> | 1 of 1 | 0 of 1 | 1 | 0.25 |" in text
    assert "```diff\n  find" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_neither_steers_a_terminal_nor_becomes_markup(text: str) -> None:
    shown, plain = comparison_terminal(hostile(text)), comparison_terminal(hostile("plain"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]", shown)
    assert re.findall(r"^  ([-+~]) ", shown, re.MULTILINE) == re.findall(r"^  ([-+~]) ", plain, re.MULTILINE)
    markdown, _, fence = comparison_markdown(hostile(text)).rpartition("### Calls of the worst")
    assert set(re.findall(r"<[^>]*>", markdown)) == {"<code>", "</code>"}
    ticks = re.findall(r"^(`{3,})", fence, re.MULTILINE)
    assert len(ticks) == 2
    assert ticks[0] == ticks[1]


def test_many_equal_calls_are_counted_so_that_the_first_difference_is_seen() -> None:
    same = [Step(index, "search", {"page": index}) for index in range(100)]
    a, b = [*same, Step(100, "refund", {"amount": 20})], [*same, Step(100, "refund", {"amount": 200})]
    found = TrajectoryDiff(case_id="a", run_a="a", run_b="b", diff=compare_steps(a, b), steps_a=a, steps_b=b)
    assert diff_lines(found) == [
        "  … 97 equal calls …",
        '  search {"page": 97}',
        '  search {"page": 98}',
        '  search {"page": 99}',
        '~ refund {"amount": 200}',
        "~     /arguments/amount: 200, not 20 as in a",
    ]
