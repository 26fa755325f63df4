from __future__ import annotations

import re
from html import unescape

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import records
from strategies.reported import HOSTILE, detail, row, rows_of, source

from seatrial.errors import SeatrialError
from seatrial.reports.compare import Comparison, TrajectoryDiff, compare
from seatrial.reports.compare_html import comparison_html
from seatrial.reports.compare_text import (
    MAX_LISTED,
    comparison_markdown,
    comparison_terminal,
    diff_lines,
)
from seatrial.reports.rows import ReportSource
from seatrial.reports.sentences import comparison_sentence
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
    one = source([row(text, agent=text, run_id="1")], name=text, experiment_id=text, tags={text: [text]})
    failed = row(text, "failed", agent=text, run_id="2", detail=detail(text))
    other = source([failed], name=text, experiment_id=text, tags={text: [text]})
    steps = {"1": [Step(0, text, {text: text})], "2": [Step(0, text, {text: f"{text}!"}), Step(1, text, text)]}
    return compare(one, other, text, text, lambda run_id: records.run(steps=steps[run_id]))


def test_a_clear_drop_is_called_worse_with_its_interval_and_p_value() -> None:
    sentence = comparison_sentence(compared("p " * 50, "f " * 20 + "p " * 30)).text
    assert sentence.startswith("b is worse than a: −40.0 points (95% interval −")
    assert "McNemar p < 0.0001" in sentence


def test_a_doubtful_difference_is_not_called_one() -> None:
    assert comparison_sentence(compared("p f p p", "f p p p")).text.startswith("No clear difference: 0.0 points")


def test_three_cases_that_changed_may_be_chance_and_the_interval_says_so_too() -> None:
    comparison = compared("f f f p p p p", "p p p p p p p")
    assert comparison.interval.low < 0
    assert "95% interval −23.0 to +79.9; McNemar p = 0.25" in comparison_sentence(comparison).text
    assert comparison_sentence(comparison).text.startswith("No clear difference: +42.9 points")
    assert "\x1b[1mNo clear difference" in comparison_terminal(comparison, colour=True)


def test_the_terminal_shows_sides_changes_and_the_calls_of_the_worst() -> None:
    text = comparison_terminal(compared("p p f", "f p p"))
    assert re.search(r"a +crew +monday exp-a +3 +2 +1 +0 +66\.7%", text)
    assert "1 of 3 cases passes less often, 1 more often." in " ".join(text.split())
    assert "Averaged over 3 cases with graded runs on both sides, 66.7% became 66.7%." in text
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


def of_tags(before: str, after: str, tags: dict[str, list[str]]) -> Comparison:
    return compare(source(rows_of(crew=before), tags=tags), source(rows_of(crew=after), tags=tags), "crew", "crew")


def test_what_is_worse_in_a_tag_is_said_first() -> None:
    tags = {f"case-{index}": ["account" if index < 50 else "other"] for index in range(100)}
    found = of_tags("p " * 49 + "f " + "p " * 50, "f " * 8 + "p " * 41 + "f " + "p " * 50, tags)
    text = comparison_terminal(found)
    assert text.startswith("worse in tag account: 98.0 → 82.0 % (−16.0 points, 95% interval −")
    assert "p = 0.0078, corrected for 2 tags" in " ".join(text.split())
    assert "\x1b[31mworse in tag account" in comparison_terminal(found, colour=True)
    assert "❌ **<code>worse in tag account&#58; 98&#46;0 &#8594; 82&#46;0 &#37;" in comparison_markdown(found)


def test_an_end_that_only_the_test_keeps_off_zero_is_not_shown_as_zero() -> None:
    tags = {f"case-{index}": [f"tag-{index // 9}"] for index in range(90)}
    found = of_tags("p " * 90, "f " * 6 + "p " * 84, tags)
    first = found.by_tag[0]
    assert -0.0005 < first.interval.high < 0
    assert re.search(r"95% interval −[\d.]+ to below 0;", " ".join(comparison_terminal(found).split()))


def test_every_tag_is_a_row_with_what_it_leaves_out_and_why() -> None:
    tags = {f"case-{index}": ["x"] for index in range(4)} | {"case-4": ["y"], "case-5": []}
    text = comparison_terminal(of_tags("p p p e e p", "p f e p p p", tags))
    assert re.search(r"tag +cases +left out +a +b +difference +interval +p", text)
    assert re.search(r"x +2 +2 +100% +50\.0% +−50\.0 +−99\.7 to \+98\.2 +1", text)
    assert re.search(r"y +0 +1 +– +– +– +– +–", text)
    assert "x: 2 cases are left out: a: agent_unreachable (1), b: agent_unreachable (1)." in text
    assert "y: 1 case is left out: a: agent_unreachable (1)." in text
    assert "1 tag has fewer than 6 cases to compare, too few to say anything of: x." in text
    assert "1 case has no tag." in text


def test_of_many_tags_the_first_are_shown_and_the_others_where_they_are_asked_for() -> None:
    tags = {f"case-{index}": [f"tag-{index}"] for index in range(15)}
    found = of_tags("p " * 15, "p " * 15, tags)
    assert "… and 5 more: `--group-by tag` shows them all" in comparison_terminal(found)
    assert "--group-by" not in comparison_terminal(found, tags=100)


outcomes = st.lists(st.text("pfe", min_size=1, max_size=3), min_size=1, max_size=24)


@settings(max_examples=80, deadline=None)
@given(outcomes, outcomes, st.lists(st.sets(st.sampled_from("xyz")), min_size=24, max_size=24))
@example(["p"] * 24, ["f"] * 24, [{"x"}] * 24)
@example(["p"] * 24, ["f"] * 7 + ["p"] * 17, [{"x"}] * 12 + [{"y"}] * 12)
def test_worse_is_only_written_where_an_interval_is_below_zero(
    before: list[str], after: list[str], of_cases: list[set[str]]
) -> None:
    tags = {f"case-{index}": sorted(some) for index, some in enumerate(of_cases)}
    try:
        found = of_tags(" ".join(before), " ".join(after), tags)
    except SeatrialError:
        return
    below = [each.interval.high < 0 for each in (found, *found.by_tag)]
    assert below == [each.is_worse for each in (found, *found.by_tag)]
    for text in (comparison_terminal(found), comparison_markdown(found), "".join(comparison_html([found]))):
        body = text.partition("</style>")[2] or text
        assert ("worse" in body) == any(below)
        for each in found.by_tag:
            assert (f"worse in tag {each.tag}:" in unescape(body)) == (each.interval.high < 0)


def test_another_suite_is_warned_of_first() -> None:
    def of(name: str) -> ReportSource:
        made = source(rows_of(crew="p p"), suite_hash=name)
        return msgspec.structs.replace(made, experiment=msgspec.structs.replace(made.experiment, suite={"name": name}))

    text = comparison_terminal(compare(of("shop"), of("bank"), "crew", "crew"))
    assert text.startswith("a is of the suite 'shop', b of 'bank': only cases of the same id are compared")
    assert "is of the suite" not in comparison_terminal(compare(of("shop"), of("shop"), "crew", "crew"))


def test_a_case_that_moved_is_listed_with_its_reason() -> None:
    before, after = source([row("x")]), source([row("x", "failed", detail=detail("the amount is 200"))])
    found = compare(before, after, "crew", "crew")
    assert "  x: the amount is 200" in comparison_terminal(found)
    assert "| the amount is 200 |" in re.sub("</?code>", "", comparison_markdown(found))
