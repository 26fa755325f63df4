from __future__ import annotations

from typing import Any

import pytest

from graders.subjects import subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import Subject
from seatrial.graders.grader import CommandEnd
from seatrial.runs import Verdict, WorkspaceDiff


class Workspace:
    """A workspace in which every command ends like this."""

    def __init__(self, end: CommandEnd | Exception) -> None:
        self.end = end
        self.ran: list[tuple[list[str], float]] = []

    async def run(self, argv: list[str], limit_s: float) -> CommandEnd:
        self.ran.append((argv, limit_s))
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def worked(end: CommandEnd | Exception | None) -> Subject:
    """A run with a workspace; None for one that is gone."""
    made = subject()
    made.run.diff = WorkspaceDiff()
    made.workspace = None if end is None else Workspace(end)
    return made


def says(found: Subject, earlier: dict[str, Verdict] | None = None, **keys: Any) -> Verdict:
    return verdict(found, {"kind": "command", "command": "make 'all tests'", **keys}, earlier=earlier)


@pytest.mark.parametrize(
    ("end", "keys", "outcome"),
    [
        (CommandEnd(0, "", False, ""), {}, "passed"),
        (CommandEnd(1, "", False, "it broke"), {}, "failed"),
        (CommandEnd(-11, "", False, ""), {}, "failed"),
        (CommandEnd(3, "", False, ""), {"exit_code": 3}, "passed"),
        (CommandEnd(0, "", False, ""), {"exit_code": 3}, "failed"),
        (CommandEnd(0, "12 passed\n", False, ""), {"output": r"\d+ passed"}, "passed"),
        (CommandEnd(0, "12 failed\n", False, ""), {"output": r"\d+ passed"}, "failed"),
        (CommandEnd(1, "12 passed\n", False, ""), {"output": r"\d+ passed"}, "failed"),
        (CommandEnd(0, "12 passed\n", True, ""), {"output": r"\d+ passed"}, "passed"),
        (CommandEnd(0, "something else\n", True, ""), {"output": r"\d+ passed"}, "errored"),
        (CommandEnd(None, "", False, ""), {}, "errored"),
        (FileNotFoundError(2, "No such file"), {}, "errored"),
        (SeatrialError("workspace_failed", "somebody is at work"), {}, "errored"),
    ],
)
def test_a_command_passes_only_by_its_code_and_its_output(
    end: CommandEnd | Exception, keys: dict[str, Any], outcome: str
) -> None:
    assert says(worked(end), **keys).outcome == outcome


def test_the_command_is_split_as_a_shell_would_and_has_its_own_time_limit() -> None:
    found = worked(CommandEnd(0, "", False, ""))
    says(found, timeout_s=7)
    assert isinstance(found.workspace, Workspace)
    assert found.workspace.ran == [(["make", "all tests"], 7)]


def test_a_command_that_takes_too_long_is_errored_with_that_code() -> None:
    given = says(worked(CommandEnd(None, "still at it", False, "")))
    assert given.code == "grader_timeout"
    assert given.reasons[-1] == "it wrote: still at it"


def test_on_a_stored_run_an_unchanged_command_keeps_its_verdict_and_another_one_says_what_to_do() -> None:
    given = says(worked(CommandEnd(0, "", False, "")))
    gone = worked(None)
    assert says(gone, {given.key: given}).outcome == "passed"
    other = says(gone, {given.key: given}, exit_code=1)
    assert (other.outcome, other.code) == ("errored", "workspace_gone")
    assert "run it again" in other.reasons[1]
