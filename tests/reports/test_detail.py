from __future__ import annotations

from typing import Any

import msgspec
from strategies import records

from seatrial.formats.reading import Reading
from seatrial.graders.tool_trajectory import finding_of
from seatrial.reports.detail import MAX_CALLS, MAX_SPEECH, MAX_TEXT, detail_of, value_text
from seatrial.reports.rows import CallLine
from seatrial.runs import Case, Fault, Grade, Run, Verdict
from seatrial.trajectory.expectation import compile_expectation
from seatrial.trajectory.matching import match
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    ReasoningBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)

CASE = Case(id="case-0", instruction="Refund order o-1.")


def graded(config: dict[str, Any], steps: list[Step]) -> tuple[Run, dict[str, Any]]:
    """A run that a trajectory grader judged, as a store gives it back, and the suite."""
    finding = finding_of(match(compile_expectation(config), steps))
    verdict = Verdict(
        grader="calls",
        kind="tool_trajectory",
        outcome=finding.outcome,
        score=finding.score,
        reasons=finding.reasons,
        details=msgspec.to_builtins(finding.details),
        required=True,
    )
    run = records.run(steps=steps, verdicts=[verdict], grade=Grade(outcome=finding.outcome))
    return run, {"graders": [{"kind": "tool_trajectory", "name": "calls", **config}]}


def calls(mode: str, expected: list[dict[str, Any]], made: list[tuple[str, Any]]) -> list[CallLine]:
    steps = [Step(index, name, arguments) for index, (name, arguments) in enumerate(made)]
    run, suite = graded({"mode": mode, "expected": expected}, steps)
    return detail_of(run, CASE, suite).verdicts[0].calls


def test_expected_and_actual_calls_stand_side_by_side() -> None:
    lines = calls(
        "in_order",
        [{"tool": "find"}, {"tool": "check"}, {"tool": "refund", "args": {"amount": 20}}],
        [("greet", {}), ("find", {"order": "o-1"}), ("refund", {"amount": 200})],
    )
    assert lines == [
        CallLine("extra", None, "greet {}"),
        CallLine("matched", "find", 'find {"order": "o-1"}'),
        CallLine("missing", "check"),
        CallLine("differs", 'refund {"amount": 20}', 'refund {"amount": 200}', ["/arguments/amount: 200, not 20"]),
    ]


def test_a_call_in_the_wrong_place_is_told_as_such() -> None:
    lines = calls("in_order", [{"tool": "a"}, {"tool": "b"}], [("b", {}), ("a", {})])
    assert sorted(line.state for line in lines) == ["differs", "matched"]
    assert ["in another place than expected"] in [line.differences for line in lines]


def test_alternatives_are_named_and_a_missing_last_call_comes_last() -> None:
    lines = calls("superset", [{"tool": "a"}, {"tool": ["b", "c"]}], [("a", {})])
    assert lines[-1] == CallLine("missing", "b | c")


def test_thousands_of_calls_are_cut_and_counted() -> None:
    lines = calls("exact", [{"tool": "a"}], [("b", {})] * 3000)
    assert len(lines) <= 2 * MAX_CALLS + 1
    assert lines[-1].actual == "… and 2,900 more calls"


def test_a_verdict_of_another_suite_shows_no_expectation() -> None:
    run, _ = graded({"mode": "exact", "expected": [{"tool": "a"}]}, [])
    assert detail_of(run, CASE, {"graders": []}).verdicts[0].calls == []
    assert detail_of(run, CASE, {"graders": "?"}).verdicts[0].calls == []
    for other in ({"tool": "b"}, {"tool": "a", "args": {"x": 1}, "status": "?"}):
        config = {"kind": "tool_trajectory", "mode": "exact", "expected": [other]}
        assert detail_of(run, CASE, {"graders": [config]}).verdicts[0].calls == []


def test_details_that_are_no_match_are_left_alone() -> None:
    run, suite = graded({"mode": "exact", "expected": [{"tool": "a"}]}, [])
    run.verdicts[0].details = {"something": "else"}
    assert detail_of(run, CASE, suite).verdicts[0].calls == []


def test_the_message_has_every_grader_that_failed_and_those_that_decide_first() -> None:
    verdicts = [
        Verdict(grader="style", kind="judge", outcome="failed", reasons=["rude"]),
        Verdict(grader="calls", kind="regex", outcome="failed", reasons=["no refund", "negated"], required=True),
        Verdict(grader="other", kind="equals", outcome="passed", reasons=["fine"], required=True),
    ]
    run = records.run(verdicts=verdicts, outcome="failed")
    assert detail_of(run, CASE, {}).message == "calls: no refund; negated; style: rude"


def test_a_fault_is_the_message_of_a_run_without_an_answer() -> None:
    fault = Fault("agent_unreachable", "no answer in 30 s", detail="connect to host")
    run = records.run(status="failed", fault=fault, said=(), verdicts=[], steps=[], outcome="errored")
    detail = detail_of(run, CASE, {})
    assert detail.message == "agent_unreachable: no answer in 30 s"
    assert detail.fault_detail == "connect to host"
    assert (detail.answer, detail.speech) == (None, [])


def test_a_run_that_was_not_graded_says_so() -> None:
    assert detail_of(records.run(outcome=None), CASE, {}).message == "the run was not graded"
    assert detail_of(records.run(outcome=None, status="cancelled"), CASE, {}).message == "the run is cancelled"


def test_every_channel_is_told_apart() -> None:
    messages: list[Message] = [
        SystemMessage("be kind"),
        UserMessage("hello"),
        AssistantMessage(
            [ThinkingBlock("hm"), ReasoningBlock("so"), TextBlock("hi"), ToolCall("1", "find", {"a": 1})],
            StopReason.ERROR,
            error_message="broke",
        ),
        ToolResultMessage("1", "find", [TextBlock("none")], is_error=True),
        CustomMessage("memo", {"x": 1}),
    ]
    run = records.run(reading=Reading("x", Transcript(messages), []))
    assert [(line.role, line.channel, line.text) for line in detail_of(run, CASE, {}).speech] == [
        ("system", "text", "be kind"),
        ("user", "text", "hello"),
        ("assistant", "thinking", "hm"),
        ("assistant", "reasoning", "so"),
        ("assistant", "text", "hi"),
        ("assistant", "call", 'find {"a": 1}'),
        ("assistant", "error", "broke"),
        ("find", "error", "none"),
        ("memo", "text", '{"x": 1}'),
    ]


def test_long_texts_and_long_conversations_are_cut_and_say_so() -> None:
    run = records.run(said=["x" * 100_000, *map(str, range(1000))])
    detail = detail_of(run, CASE, {})
    assert len(detail.speech) == MAX_SPEECH
    assert detail.speech_left_out == 1001 - MAX_SPEECH
    assert detail.speech[0].text == f"{'x' * MAX_TEXT}… (98,000 more characters)"
    assert detail.speech[-1].text == "999"


def test_values_nested_too_deeply_are_not_followed() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert value_text(deep) == "(nested too deeply to be shown)"
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep.pop()


def test_what_failed_is_named_before_the_grader_that_made_the_run_errored() -> None:
    verdicts = [
        Verdict(grader="polite", kind="judge", outcome="errored", reasons=["no endpoint"], required=True),
        Verdict(grader="calls", kind="regex", outcome="failed", reasons=["deleted"], required=True),
    ]
    run = records.run(verdicts=verdicts, outcome="errored")
    assert detail_of(run, CASE, {}).message == "calls failed: deleted; polite errored: no endpoint"
