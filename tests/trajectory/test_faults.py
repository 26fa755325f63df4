"""Known faults of other matchers (trajectory.md 3), each as the case that it gets wrong."""

from __future__ import annotations

import pytest

from seatrial.errors import SeatrialError
from seatrial.formats.output_messages import read
from seatrial.trajectory import MODES, compile_expectation, extract, match_lines, match_messages, match_trajectory

# AgentV


def test_exact_does_not_pass_with_an_extra_call_at_the_end() -> None:
    result = match_trajectory("exact", [{"tool": "a"}, {"tool": "b"}], [{"name": "a"}, {"name": "b"}, {"name": "c"}])
    assert not result.passed
    assert result.score == 2 / 3


def test_in_order_looks_beyond_the_first_call_of_a_name_when_its_arguments_differ() -> None:
    expected = [{"tool": "search", "args": {"q": "b"}}]
    actual = [{"name": "search", "arguments": {"q": "a"}}, {"name": "search", "arguments": {"q": "b"}}]
    result = match_trajectory("in_order", expected, actual)
    assert result.passed
    assert result.matched[0].actual == 1


def test_in_order_goes_on_after_a_missing_call() -> None:
    result = match_trajectory("in_order", [{"tool": "s"}, {"tool": "x"}, {"tool": "r"}], [{"name": "s"}, {"name": "r"}])
    assert result.score == 2 / 3


def test_superset_is_not_greedy() -> None:
    expected = [{"tool": "search"}, {"tool": "search", "args": {"q": 1}}]
    actual = [{"name": "search", "arguments": {"q": 1}}, {"name": "search", "arguments": {"q": 2}}]
    assert match_trajectory("superset", expected, actual).passed


def test_a_null_input_does_not_raise() -> None:
    reading = read(b'{"output_messages":[{"role":"assistant","tool_calls":[{"tool":"a","input":null}]}]}')
    steps = extract(reading).steps
    assert steps[0].arguments is None
    assert match_trajectory("exact", [{"tool": "a", "args": None}], steps).passed
    assert not match_trajectory("exact", [{"tool": "a", "args": {}}], steps).passed


def test_start_and_end_times_are_not_ignored() -> None:
    reading = read(
        b'{"output_messages":[{"role":"assistant","tool_calls":[{"tool":"a","input":{},'
        b'"start_time":"2026-01-01T00:00:00Z","end_time":"2026-01-01T00:00:02Z"}]}]}'
    )
    (step,) = extract(reading).steps
    assert step.started_at == "2026-01-01T00:00:00Z"
    assert step.duration_ms == 2000
    assert not match_trajectory("exact", [{"tool": "a", "max_duration_ms": 1999}], [step]).passed
    assert match_trajectory("exact", [{"tool": "a", "max_duration_ms": 2000}], [step]).passed


@pytest.mark.parametrize("mode", ["any_order", "in_order", "superset"])
def test_an_empty_expectation_is_an_error_and_never_scores(mode: str) -> None:
    for configuration in ({"mode": mode}, {"mode": mode, "minimums" if mode == "any_order" else "expected": {}}):
        with pytest.raises(SeatrialError):
            compile_expectation(configuration)


def test_a_schema_slip_does_not_turn_the_whole_output_into_plain_text() -> None:
    reading = read(
        b'{"text":"done","output_messages":[{"role":"assistant","tool_calls":[{"input":{}},{"tool":"a"}]},'
        b'{"content":"no role"},5,{"role":"assistant","tool_calls":[{"name":"b","arguments":"{bad"}]}]}'
    )
    assert [step.name for step in extract(reading).steps] == ["a", "b"]
    assert reading.transcript.final_text() == "done"
    assert {note.code for note in reading.notes} >= {"tool_call_dropped_no_name", "message_dropped_no_role"}


def test_one_bad_line_of_a_batch_costs_nothing_but_itself() -> None:
    good = b'{"mode":"exact","expected":[{"tool":"a"}],"actual":[{"name":"a"}]}'
    results = list(match_lines([good, b"{", good]))
    assert [found.error is None for found in results] == [True, False, True]


# LangChain agentevals


def test_unordered_with_superset_arguments_is_not_exact() -> None:
    expected = [{"tool": "a", "args": {"x": 1}, "args_match": "superset"}]
    assert match_trajectory("unordered", expected, [{"name": "a", "arguments": {"x": 1, "y": 2}}]).passed


def test_malformed_argument_json_does_not_raise() -> None:
    messages = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x": '}}],
        }
    ]
    result = match_messages("exact", messages, messages)
    assert not result.passed
    assert result.mismatches[0].differences[0].actual == '{"x": '


# DeepEval


def test_unordered_with_equal_calls_matches_itself() -> None:
    result = match_trajectory("unordered", [{"tool": "search"}] * 2, [{"name": "search"}] * 2)
    assert result.passed
    assert result.score == 1


def test_extra_calls_cost_something() -> None:
    result = match_trajectory("unordered", [{"tool": "a"}], [{"name": "a"}, {"name": "b"}])
    assert not result.passed
    assert result.score == 1 / 2


# Strands


def test_exact_sees_trailing_calls_and_duplicates() -> None:
    assert match_trajectory("exact", [{"tool": "a"}], [{"name": "a"}, {"name": "a"}]).score == 1 / 2
    assert match_trajectory("exact", [{"tool": "a"}] * 3, [{"name": "a"}] * 2).score == 2 / 3


def test_an_empty_expectation_is_refused_and_never_scores() -> None:
    for mode in MODES:
        with pytest.raises(SeatrialError) as caught:
            match_trajectory(mode, [], [])
        assert caught.value.code == "invalid_config"
