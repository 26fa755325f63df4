"""A case of a recorded run is read back as what it was, whatever the agent said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import records

from seatrial.graders.tool_trajectory import finding_of
from seatrial.problems import Problems
from seatrial.runs import Case
from seatrial.suites.case_yaml import case_yaml, recorded_case, with_case
from seatrial.suites.yaml_source import parse_yaml
from seatrial.trajectory.expectation import compile_expectation
from seatrial.trajectory.matching import match
from seatrial.trajectory.step import Step
from seatrial.transcript import Note, Transcript

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def read_back(text: str) -> Any:
    problems = Problems()
    found = parse_yaml(f"cases:\n{text}".encode(), "suite.yaml", problems)
    assert found is not None, problems.error()
    assert not problems.count
    return found[0]["cases"]


@given(TEXT, st.dictionaries(TEXT, VALUES, max_size=3))
def test_any_text_and_any_arguments_are_read_back(instruction: str, arguments: dict[str, Any]) -> None:
    steps = [Step(0, "refund", arguments)]
    case = recorded_case(records.run(0, steps=steps), Case(id="a", instruction=instruction, input={"x": arguments}))
    (found,) = read_back(case_yaml(case))
    assert found == case.data()


@given(TEXT.filter(bool), st.dictionaries(TEXT, VALUES, max_size=3))
def test_the_expectation_fits_the_run_that_it_was_made_of_and_no_other_call(
    name: str, arguments: dict[str, Any]
) -> None:
    steps = [Step(0, name, arguments)]
    grader = recorded_case(records.run(0, steps=steps), Case(id="a", instruction="b")).grader
    assert grader is not None
    expectation = compile_expectation({key: value for key, value in grader.items() if key != "kind"})
    assert finding_of(match(expectation, steps)).outcome == "passed"
    assert finding_of(match(expectation, [Step(0, f"{name}x", arguments)])).outcome == "failed"
    assert finding_of(match(expectation, [Step(0, name, {**arguments, "one more": 1})])).outcome == "failed"


def test_a_run_without_calls_becomes_a_check_that_there_are_none() -> None:
    grader = recorded_case(records.run(0, steps=[]), Case(id="a", instruction="b")).grader
    assert grader is not None
    expectation = compile_expectation({key: value for key, value in grader.items() if key != "kind"})
    assert finding_of(match(expectation, [])).outcome == "passed"
    assert finding_of(match(expectation, [Step(0, "refund", {})])).outcome == "failed"


@pytest.mark.parametrize("change", [{"completeness": None}, {"reading": None}])
def test_calls_that_nobody_vouches_for_are_not_expected(change: dict[str, Any]) -> None:
    case = recorded_case(records.run(0, **change), Case(id="a", instruction="b"))
    assert case.grader is None
    assert case.unknown


def test_a_secret_that_was_removed_from_a_call_is_not_expected() -> None:
    note = Note("secret_removed", "", "the secret TOKEN was removed", "serious")
    case = recorded_case(records.run(0, reading=records.reading("a", "b", notes=[note])), Case(id="a", instruction="b"))
    assert case.grader is None
    assert "secret" in case.unknown


def test_a_text_of_several_lines_is_written_in_lines() -> None:
    case = recorded_case(records.run(0), Case(id="a", instruction="Refund it.\n\n  - at once"))
    assert "instruction: |-\n    Refund it.\n\n      - at once\n" in case_yaml(case)


def test_a_run_of_the_service_takes_what_it_was_given() -> None:
    reading = records.reading("Hello.", "Hi.", "Refund it.", "Done.")
    reading.transcript = Transcript(reading.transcript.messages, given=[0, 1, 2])
    case = recorded_case(records.run(0, reading=reading), None)
    assert case.instruction == "Refund it."
    assert [message["role"] for message in case.fields["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize("ending", ["", "\n", "\n\n# The end.\n", "\nthreshold: 0.5\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_case_is_put_behind_the_last_one_whatever_follows(ending: str, newline: str) -> None:
    case = recorded_case(records.run(0), Case(id="b", instruction="c"))
    before = f"cases:\n- id: a\n  instruction: b{ending}".replace("\n", newline)
    text = with_case(before, "suite.yaml", case)
    assert text.count("\r\n") == (text.count("\n") if newline == "\r\n" else 0)
    lines = text.split(newline)
    assert lines[:4] == ["cases:", "- id: a", "  instruction: b", "- id: case-0-regression"]
    assert text.endswith(ending.replace("\n", newline))
