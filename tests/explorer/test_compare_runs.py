"""The page of two runs side by side."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from strategies import records

from explorer.test_routes import fetched
from seatrial.explorer import compare_runs
from seatrial.explorer.call_boxes import call_box
from seatrial.explorer.compare_runs import CallRow, EqualStretch, compare_runs_page
from seatrial.formats.reading import Reading
from seatrial.reports.run_diff import compare_runs as compared
from seatrial.reports.run_diff import run_diff_data
from seatrial.runs import Run, Verdict
from seatrial.store import Store, StoredStep
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.trajectory.values import Difference
from seatrial.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Transcript,
    UserMessage,
)


def run(store: Store, run_id: str, calls: list[tuple[str, Any]], answer: str = "Done.", **fields: Any) -> Run:
    """A run that thinks before each call."""
    if not store.experiments():
        store.create_experiment(records.experiment(), records.cases(2))
    messages: list[Message] = [UserMessage("Please help.")]
    for index, (name, arguments) in enumerate(calls):
        thought = ThinkingBlock(f"{run_id} thinks of {name} {index}")
        messages.append(AssistantMessage([thought, ToolCall(f"c{index}", name, arguments)], StopReason.TOOL_USE))
    messages.append(AssistantMessage([TextBlock(answer)], StopReason.END_TURN))
    steps = [Step(index, name, arguments, f"c{index}") for index, (name, arguments) in enumerate(calls)]
    given = {"steps": steps, "reading": Reading("agent-response", Transcript(messages, given=[0]), [])}
    made = records.run(fields.pop("case", 0), run_id=run_id, agent=run_id, **{**given, **fields})
    store.record_run(made).wait()
    return made


def page(store: Store, parameters: str = "a=one&b=two") -> tuple[str, str]:
    """The page as it came, and its words."""
    status, _, text = fetched(store, f"/compare/runs?{parameters}")
    assert status == 200, text
    return text, " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


CALLS = [("find", {"order": "A-1"}), ("policy", {})]


def test_the_sentence_says_where_they_diverge_and_what_each_thought_just_before(store: Store) -> None:
    run(store, "one", [*CALLS, ("get_refund", {}), ("refund", {"amount": 23.8})])
    run(store, "two", [*CALLS, ("refund", {"amount": 238})])
    _, words = page(store)
    assert "They diverge at step 2: A calls get_refund, B calls refund. The first 2 steps are equal." in words
    assert "Steps 0 to 1 are equal" in words
    assert "one thinks of get_refund 2" in words
    assert "two thinks of refund 2" in words
    assert "thinks of find" not in words, "only what is just before the divergence"
    assert "B does not call get_refund" in words
    assert "238 × 10, + 214.2" in words


def test_the_page_agrees_with_the_terminal(store: Store) -> None:
    a = run(store, "one", [*CALLS, ("refund", {"amount": 1})], verdicts=[records.verdict("passed")])
    b = run(store, "two", [*CALLS, ("mail", {}), ("refund", {"amount": 2})], verdicts=[records.verdict("failed")])
    data = run_diff_data(compared(a, b))
    shown = compare_runs_page(store, "one", "two", show="all")
    rows = [row for row in shown.rows if isinstance(row, CallRow)]
    pairs = [(row.a.index, row.b.index) for row in rows if row.a is not None and row.b is not None]
    assert pairs == [(pair.a, pair.b) for pair in data["diff"].aligned]
    assert [row.a.index for row in rows if row.b is None and row.a is not None] == data["diff"].only_a
    assert [row.b.index for row in rows if row.a is None and row.b is not None] == data["diff"].only_b
    assert f"{shown.head}: {shown.rest}.".lower() == data["divergence"].lower()
    assert [(each.a, each.b) for each in shown.verdicts] == [("passed 1", "failed 0")]


def test_a_run_is_equal_to_itself(store: Store) -> None:
    run(store, "one", CALLS)
    _, words = page(store, "a=one&b=one")
    assert "Both runs make the same calls, in the same order (2 calls). Both sides are the same run." in words


def test_runs_of_different_cases_are_compared_and_it_is_said(store: Store) -> None:
    run(store, "one", CALLS)
    run(store, "two", CALLS, case=1)
    _, words = page(store)
    assert "case-0 and case-1" in words
    assert "These are runs of different cases" in words


def test_calls_that_are_not_known_are_not_said_to_be_missing(store: Store) -> None:
    run(store, "one", CALLS)
    run(store, "two", CALLS[:1], completeness=Completeness("partial"))
    _, words = page(store)
    assert "A calls policy, B makes no further call that is known." in words
    assert "no such call of B is known: policy" in words
    assert "B: not all of the agent's calls are known" in words
    assert "does not call" not in words
    assert "≥ 1" in words


def test_a_run_without_an_answer_says_so(store: Store) -> None:
    run(store, "one", CALLS)
    run(store, "two", [], reading=None, steps=[], completeness=None, status="failed", outcome="errored")
    _, words = page(store)
    assert "B gave no answer to read: the calls that it may have made are not known." in words
    assert "B gives no answer" in words


def test_a_long_run_comes_in_pages_and_any_step_can_be_asked_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_runs, "ROWS", 10)
    calls = [("find", {"n": index}) for index in range(95)]
    run(store, "one", calls)
    run(store, "two", [*calls[:42], ("refund", {}), *calls[43:]])
    text, words = page(store, "a=one&b=two&show=all&at=b/steps/42")
    assert re.findall(r'id="r(\d+)"', text) == [str(row) for row in range(40, 50)]
    assert "rows 40 to 49 of 96" in words
    assert "First divergence" in words
    before = re.findall(r'href="([^"]*)" rel="prev"', text)
    assert 'id="r30"' in page(store, html.unescape(before[0]).partition("?")[2])[0]
    assert "First divergence" not in page(store, "a=one&b=two&show=all")[1]


def test_equal_stretches_are_one_line_that_says_how_many_results_differ(store: Store) -> None:
    steps = [Step(index, "find", {"n": index}, f"c{index}", result="a") for index in range(4)]
    other = [Step(index, "find", {"n": index}, f"c{index}", result="b" if index == 2 else "a") for index in range(4)]
    run(store, "one", [("find", {"n": index}) for index in range(4)], steps=steps)
    run(store, "two", [("find", {"n": index}) for index in range(4)], steps=other)
    shown = compare_runs_page(store, "one", "two")
    (stretch,) = shown.rows
    assert isinstance(stretch, EqualStretch)
    assert (stretch.count, stretch.other_results, len(stretch.listed)) == (4, 1, 4)


def test_swapping_swaps_the_place_too(store: Store) -> None:
    run(store, "one", CALLS)
    run(store, "two", CALLS)
    assert compare_runs_page(store, "one", "two", "a/steps/1").swapped == "/compare/runs?a=two&b=one&at=b%2Fsteps%2F1"
    assert compare_runs_page(store, "one", "two", "/steps/1").swapped == "/compare/runs?a=two&b=one&at=a%2Fsteps%2F1"


def test_another_run_of_the_case_can_be_chosen(store: Store) -> None:
    run(store, "one", CALLS)
    run(store, "two", CALLS)
    run(store, "three", CALLS)
    run(store, "elsewhere", CALLS, case=1)
    shown = compare_runs_page(store, "one", "two")
    assert {href for _, href in shown.a.others} == {"/compare/runs?a=two&b=two", "/compare/runs?a=three&b=two"}


def test_a_place_that_is_not_there_is_said_above_the_page(store: Store) -> None:
    run(store, "one", CALLS)
    run(store, "two", CALLS)
    for at in ("/steps/7", "b/steps/x", "a/steps/-1", "nonsense", "a/steps/99999999999999999999"):
        assert "Neither run has a step" in page(store, f"a=one&b=two&at={at}")[1]


def test_both_runs_must_be_named_and_there(store: Store) -> None:
    run(store, "one", CALLS)
    assert fetched(store, "/compare/runs?a=one")[0] == 400
    assert fetched(store, "/compare/runs?a=one&b=none")[0] == 404


HOSTILE = "<script>alert(1)</script>\"'&\u202e\u200b"


def test_what_agents_say_is_escaped_and_visible(store: Store) -> None:
    run(store, "one", [(HOSTILE, {HOSTILE: HOSTILE})], HOSTILE, verdicts=[records.verdict("passed", grader=HOSTILE)])
    other = {HOSTILE: f"{HOSTILE}2", "deep": {HOSTILE: [HOSTILE]}}
    bad = Verdict(grader=HOSTILE, kind="x", outcome="failed", reasons=[HOSTILE])
    run(store, "two", [(HOSTILE, other), (f"{HOSTILE}3", HOSTILE)], f"{HOSTILE} 2", verdicts=[bad])
    for parameters in ("a=one&b=two", "a=two&b=one&show=all", "a=one&b=one"):
        text, _ = page(store, parameters)
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert "\u200b" not in text
        assert "\\u202e" in text


def box(one: Any, other: Any, differences: list[Difference]) -> tuple[list[Any], list[Any]]:
    return (
        call_box(StoredStep(Step(0, "f", one)), [], differences).arguments,
        call_box(StoredStep(Step(0, "f", other)), differences, differences).arguments,
    )


def test_a_number_that_changed_says_how() -> None:
    def beside(before: Any, after: Any) -> str:
        _, lines = box({"n": before}, {"n": after}, [Difference("/arguments/n", before, after)])
        beside: str = lines[0].beside.replace("\N{NO-BREAK SPACE}", " ")
        return beside

    assert beside(23.8, 238) == "× 10, + 214.2"
    assert beside(238, 23.8) == "÷ 10, − 214.2"
    assert beside(0, 5) == "+ 5"
    assert beside(-1, 1) == "+ 2"
    assert beside(True, 2) == ""
    assert beside("1", 2) == ""
    assert beside(10**400, 2) == ""


def test_a_difference_deep_in_an_argument_has_a_line_of_its_own() -> None:
    difference = Difference("/arguments/order/items/0", "mug", "cup")
    one, other = box({"order": {"items": ["mug"]}}, {"order": {"items": ["cup"]}}, [difference])
    assert [(line.name, line.value, line.changed) for line in other] == [
        ("order", '{"items": ["cup"]}', False),
        ("order/items/0", '"cup"', True),
    ]
    assert one[1].value == '"mug"'


def test_an_argument_that_only_one_call_has_faces_none() -> None:
    from msgspec import UNSET

    one, other = box({}, {"fast": True}, [Difference("/arguments/fast", UNSET, True)])
    assert (one[0].value, one[0].changed) == ("none", True)
    assert (other[0].value, other[0].changed) == ("true", True)
