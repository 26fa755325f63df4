from __future__ import annotations

from typing import Any

import pytest

from graders.subjects import grade, subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import Subject, build_graders
from seatrial.graders.workspace import changed_lines
from seatrial.runs import ChangedFile, Verdict, WorkspaceDiff
from seatrial.runs.removed import DIFF, SECRET_REMOVED
from seatrial.transcript import Note

PATCH = (
    "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+--- three\n"
)
CHANGED = ChangedFile(path="src/a.py", change="modified", added=2, removed=1)
BINARY = ChangedFile(path="logo.png", change="added", hidden="binary")


def changed(*files: ChangedFile, patch: str = PATCH, unlisted: str = "", **more: Any) -> Subject:
    made = subject(**more)
    made.run.diff = WorkspaceDiff(files=list(files), patch=patch, unlisted=unlisted)
    return made


def says(found: Subject, **grader: Any) -> tuple[str, str]:
    given = verdict(found, grader)
    return given.outcome, given.code


ONE = changed(CHANGED)
NONE = changed(patch="")
CUT = changed(CHANGED, unlisted="the folder x cannot be read")
HIDDEN = changed(CHANGED, BINARY)


@pytest.mark.parametrize(
    ("paths", "found", "outcome"),
    [
        (["src"], ONE, "passed"),
        (["docs", "src/*.py"], ONE, "passed"),
        (["docs"], NONE, "passed"),
        (["docs"], ONE, "failed"),
        (["src"], CUT, "errored"),
        (["docs"], CUT, "failed"),
        (["src"], HIDDEN, "failed"),
        (["src", "/*.png"], HIDDEN, "passed"),
    ],
)
def test_allowed_paths_passes_only_when_every_change_is_known_and_in_them(
    paths: list[str], found: Subject, outcome: str
) -> None:
    code = "diff_unknown" if outcome == "errored" else ""
    assert says(found, kind="allowed_paths", paths=paths) == (outcome, code)


@pytest.mark.parametrize(
    ("paths", "found", "outcome"),
    [
        (["docs"], ONE, "passed"),
        (["src"], ONE, "failed"),
        (["**/*.py"], CUT, "failed"),
        (["docs"], CUT, "errored"),
        (["docs"], NONE, "passed"),
    ],
)
def test_forbidden_paths_passes_only_when_every_change_is_known_and_none_is_in_them(
    paths: list[str], found: Subject, outcome: str
) -> None:
    assert says(found, kind="forbidden_paths", paths=paths)[0] == outcome


@pytest.mark.parametrize(
    ("keys", "found", "outcome"),
    [
        ({"max_files": 1}, ONE, "passed"),
        ({"max_files": 0}, ONE, "failed"),
        ({"max_files": 0}, NONE, "passed"),
        ({"max_files": 1}, CUT, "errored"),
        ({"max_files": 0}, CUT, "failed"),
        ({"min_files": 1}, ONE, "passed"),
        ({"min_files": 1}, CUT, "passed"),
        ({"min_files": 2}, CUT, "errored"),
        ({"min_files": 1}, NONE, "failed"),
        ({"max_lines": 3}, ONE, "passed"),
        ({"max_lines": 2}, ONE, "failed"),
        ({"max_lines": 3}, HIDDEN, "errored"),
        ({"max_lines": 2}, HIDDEN, "failed"),
        ({"max_lines": 3}, CUT, "errored"),
        ({"added": ["^2$"]}, ONE, "passed"),
        ({"added": ["^two$"]}, ONE, "failed"),
        ({"added": ["^2$"]}, HIDDEN, "passed"),
        ({"added": ["absent"]}, HIDDEN, "errored"),
        ({"added": ["absent"]}, CUT, "errored"),
        ({"not_added": ["skip"]}, ONE, "passed"),
        ({"not_added": ["^--- three"]}, ONE, "failed"),
        ({"not_added": ["src/a.py"]}, ONE, "passed"),
        ({"not_added": ["skip"]}, HIDDEN, "errored"),
        ({"not_added": ["skip"]}, CUT, "errored"),
        ({"not_added": ["^2$"]}, HIDDEN, "failed"),
        ({"removed": ["two"]}, ONE, "passed"),
        ({"removed": ["2"]}, ONE, "failed"),
        ({"not_removed": ["two"]}, ONE, "failed"),
        ({"not_removed": ["one"]}, ONE, "passed"),
        ({"not_removed": ["one"]}, HIDDEN, "errored"),
        ({"max_files": 9, "not_added": ["^2$"]}, CUT, "failed"),
        ({"max_lines": 9, "added": ["^2$"]}, HIDDEN, "errored"),
    ],
)
def test_a_claim_of_a_diff_is_decided_only_by_what_is_known(keys: dict[str, Any], found: Subject, outcome: str) -> None:
    assert says(found, kind="diff", **keys)[0] == outcome


@pytest.mark.parametrize("kind", ["allowed_paths", "forbidden_paths", "diff", "command"])
def test_a_run_without_a_workspace_is_not_judged_by_what_it_changed(kind: str) -> None:
    special: dict[str, dict[str, Any]] = {"diff": {"max_files": 0}, "command": {"command": "true"}}
    keys = special.get(kind, {"paths": ["src"]})
    given = verdict(subject(), {"kind": kind, **keys})
    assert (given.outcome, given.code) == ("errored", "diff_unknown")
    assert "no workspace" in given.reasons[0]


def test_a_negated_check_does_not_pass_by_what_is_unknown_either() -> None:
    assert says(CUT, kind="allowed_paths", paths=["src"], negate=True)[0] == "errored"
    assert says(CUT, kind="allowed_paths", paths=["docs"], negate=True)[0] == "passed"


def test_a_stored_diff_without_its_secret_is_not_judged_again() -> None:
    found = changed(CHANGED, notes=[Note(SECRET_REMOVED, DIFF, "a secret")])
    assert says(found, kind="allowed_paths", paths=["src"]) == ("errored", "secret_removed")
    elsewhere = changed(CHANGED, notes=[Note(SECRET_REMOVED, "/answer", "a secret")])
    assert says(elsewhere, kind="allowed_paths", paths=["src"]) == ("passed", "")


def test_a_verdict_is_reused_only_where_the_diff_is_the_same() -> None:
    grader = {"kind": "allowed_paths", "paths": ["src"]}
    first, again, other = (verdict(found, grader).key for found in (ONE, changed(CHANGED), HIDDEN))
    assert first == again != other
    assert first


def test_the_lines_of_a_patch_are_those_of_its_hunks() -> None:
    diff = WorkspaceDiff(patch=PATCH + PATCH)
    assert changed_lines(diff, "+") == ["2", "--- three"] * 2
    assert changed_lines(diff, "-") == ["two"] * 2


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"kind": "diff"}, ""),
        ({"kind": "diff", "negate": True, "name": "d"}, ""),
        ({"kind": "diff", "added": ["("]}, "/added/0"),
        ({"kind": "diff", "max_files": 1, "not_removed": ["a", "("]}, "/not_removed/1"),
        ({"kind": "diff", "min_files": 2, "max_files": 1}, "/min_files"),
        ({"kind": "allowed_paths", "paths": ["*.py"]}, "/paths/0"),
        ({"kind": "forbidden_paths", "paths": ["a", "../b"]}, "/paths/1"),
        ({"kind": "command", "command": ""}, "/command"),
        ({"kind": "command", "command": "a 'b"}, "/command"),
        ({"kind": "command", "command": "true", "output": "("}, "/output"),
    ],
)
def test_a_configuration_that_checks_nothing_is_refused(config: dict[str, Any], pointer: str) -> None:
    with pytest.raises(SeatrialError) as refused:
        build_graders([config])[0].prepare()
    assert refused.value.code == "invalid_config"
    assert (refused.value.pointer or "") == pointer


def test_every_changed_path_that_is_not_allowed_counts() -> None:
    files = [ChangedFile(path=f"docs/{number}", change="added", added=0, removed=0) for number in range(9)]
    given: list[Verdict]
    given, _ = grade(changed(CHANGED, *files), {"kind": "allowed_paths", "paths": ["src"]})
    assert given[0].reasons[0].startswith("9 of 10 changed files are outside of the allowed paths")
