"""`verdicts.md` 1, "Claims", in plain tests: what is not known of calls cannot be asserted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seatrial.runs import Case, Run, RunKey
from seatrial.testing import NoVerdictError, RunResult, exact, in_order, subset, superset
from seatrial.trajectory import Completeness, Level, Step
from seatrial.trajectory.completeness import CALLS_NOT_LISTED
from seatrial.transcript import Note

UNLISTED = Note(CALLS_NOT_LISTED, "", "the agent returned an answer and nothing that lists its calls")


def outcome(level: Level, *names: str) -> RunResult:
    run = Run(run_id="r", experiment_id="e", key=RunKey("mine", "case", 1), status="completed")
    run.steps = [Step(index, name, {}) for index, name in enumerate(names)]
    run.completeness = Completeness(level, "messages", ["messages"], [UNLISTED] if level != "complete" else [])
    return RunResult(run, Case(id="case", instruction="hi"))


Assertion = Callable[[RunResult], Any]

NEGATIVE: dict[str, Assertion] = {
    "not calls": lambda out: not out.calls,
    "calls == []": lambda out: out.calls == [],
    "tools == []": lambda out: out.tools == [],
    "len(calls) == 0": lambda out: len(out.calls) == 0,
    "not in tools": lambda out: "delete" not in out.tools,
    "not any": lambda out: not any(call.name == "delete" for call in out.calls),
    "all": lambda out: all(call.name != "delete" for call in out.calls),
    "set": lambda out: "delete" not in set(out.tools),
    "subset": lambda out: out.calls == subset("find"),
    "forbidden": lambda out: out.calls != superset("find") or out.calls == superset("x", forbidden=[{"tool": "y"}]),
}


@pytest.mark.parametrize("says_nothing_was_done", NEGATIVE.values(), ids=NEGATIVE)
def test_an_assertion_that_no_call_was_made_raises_with_the_reason_when_calls_are_unknown(
    says_nothing_was_done: Assertion,
) -> None:
    for level in ("partial", "none"):
        with pytest.raises(NoVerdictError, match="calls_not_listed") as raised:
            says_nothing_was_done(outcome(level))
        assert "To do: return the messages" in str(raised.value)
        assert "calls_unknown" in str(raised.value)


def test_what_is_known_can_be_asserted_at_any_level() -> None:
    for level in ("complete", "partial"):
        out = outcome(level, "find", "refund")
        assert out.calls
        assert "refund" in out.tools
        assert any(call.name == "refund" for call in out.calls)
        assert out.calls == in_order("find", "refund")
        assert out.calls != exact("find")
        assert out.tools != ["find"]
        assert out.tools != ["refund", "find"]
        assert out.calls.known[0].name == "find"


def test_where_all_calls_are_known_they_are_a_list() -> None:
    out = outcome("complete", "find", "refund")
    assert out.tools == ["find", "refund"]
    assert out.tools == outcome("complete", "find", "refund").tools
    assert (len(out.calls), out.tools[-1], out.tools[:1], [*out.tools]) == (2, "refund", ["find"], ["find", "refund"])
    assert not outcome("complete").calls
    assert "delete" not in out.tools
    assert repr(out.tools) == "['find', 'refund']"


def test_the_place_of_a_call_is_known_only_when_all_are() -> None:
    with pytest.raises(NoVerdictError):
        _ = outcome("partial", "find").tools[0]
    with pytest.raises(NoVerdictError):
        _ = outcome("partial", "find").tools == ["find"]


def test_calls_of_the_user_are_not_the_agents() -> None:
    out = outcome("complete", "find")
    out.run.steps.append(Step(1, "toggle", {}, executed_by="user"))
    assert out.tools == ["find"]


def test_a_run_without_an_answer_says_nothing_of_its_calls() -> None:
    run = Run(run_id="r", experiment_id="e", key=RunKey("mine", "case", 1), status="failed")
    with pytest.raises(NoVerdictError, match="no answer"):
        _ = not RunResult(run, Case(id="case", instruction="hi")).calls
