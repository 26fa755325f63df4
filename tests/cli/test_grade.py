"""`seatrial grade`: stored runs are graded again, and only what changed is computed."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.main import main

AGENT = """
from pathlib import Path

def answer(instruction):
    with Path("asked.txt").open("a") as file:
        file.write(instruction)
    return instruction
"""


SHARED = {"kind": "ends_with", "value": "d"}


def write_suite(file: str, *graders: dict[str, Any], of_good: dict[str, Any] | None = None) -> None:
    agents = {"mine": {"kind": "python", "target": "graded_agent:answer"}}
    cases: list[dict[str, Any]] = [{"id": word, "instruction": word} for word in ("good", "bad")]
    cases[0].update(of_good or {})
    Path(file).write_text(json.dumps({"agents": agents, "cases": cases, "graders": graders}))


@pytest.fixture(autouse=True)
def _experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "graded_agent", raising=False)
    Path("graded_agent.py").write_text(AGENT)
    write_suite("s.yaml", {"kind": "contains", "value": "good"}, {"kind": "ends_with", "value": "d"})
    assert main(["run", "s.yaml", "--quiet"]) == 1
    capsys.readouterr()


def graded(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    code = main(["grade", "latest", "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def test_nothing_is_computed_when_nothing_changed(capsys: pytest.CaptureFixture[str]) -> None:
    code, done = graded(capsys)
    assert code == 1
    assert (done["outcomes"], done["changed"]) == ({"passed": 1, "failed": 1}, 0)
    assert (done["computed"], done["reused"]) == (0, 4)


def test_what_was_done_is_told_in_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("s.yaml", {"kind": "contains", "value": "d"}, {"kind": "ends_with", "value": "d"})
    assert main(["grade", "latest", "--suite", "s.yaml"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(": 2 passed")
    assert second == "1 run changed; 2 verdicts computed, 2 known already"


def test_what_could_not_be_graded_is_computed_again_and_counted_so(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("s.yaml", {"kind": "contains", "value": "good"}, {"kind": "cost", "max_usd": 1})
    graded(capsys, "--suite", "s.yaml")
    code, done = graded(capsys, "--suite", "s.yaml")
    assert (code, done["outcomes"]) == (3, {"errored": 2})
    assert (done["computed"], done["reused"]) == (2, 2)


def test_a_run_without_an_answer_has_nothing_to_compute(capsys: pytest.CaptureFixture[str]) -> None:
    Path("graded_agent.py").write_text("def answer(instruction): raise ValueError")
    sys.modules.pop("graded_agent")
    main(["run", "s.yaml", "--quiet"])
    capsys.readouterr()
    _, done = graded(capsys)
    assert (sum(done["outcomes"].values()), done["computed"], done["reused"]) == (2, 0, 0)


def test_only_the_grader_that_changed_is_computed_and_no_agent_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    asked = Path("asked.txt").read_text()
    write_suite("s.yaml", {"kind": "contains", "value": "d"}, {"kind": "ends_with", "value": "d"})
    code, done = graded(capsys, "--suite", "s.yaml")
    assert code == 0
    assert (done["outcomes"], done["changed"], done["computed"], done["reused"]) == ({"passed": 2}, 1, 2, 2)
    assert Path("asked.txt").read_text() == asked


def test_grading_as_it_was_run_brings_the_first_verdicts_back(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("other.yaml", {"kind": "contains", "value": "bad"})
    graded(capsys, "--suite", "other.yaml")
    code, done = graded(capsys)
    assert code == 1
    assert (done["changed"], done["computed"], done["reused"]) == (2, 0, 4)


def test_a_suite_that_cannot_be_used_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("broken.yaml", {"kind": "contain", "value": "bad"})
    assert main(["grade", "latest", "--suite", "broken.yaml"]) == 2
    assert "did you mean `contains`?" in capsys.readouterr().err
    assert graded(capsys)[1]["changed"] == 0


def test_what_single_cases_of_the_suite_expect_counts_too(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("s.yaml", SHARED, of_good={"graders": [{"kind": "contains", "value": "else"}]})
    code, done = graded(capsys, "--suite", "s.yaml")
    assert code == 1
    assert (done["outcomes"], done["computed"], done["reused"]) == ({"passed": 1, "failed": 1}, 1, 2)
    write_suite("s.yaml", SHARED, of_good={"expected": "good", "graders": [{"kind": "equals"}]})
    assert graded(capsys, "--suite", "s.yaml")[1]["outcomes"] == {"passed": 2}


def test_a_case_that_the_suite_does_not_have_is_graded_as_it_was_stored(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("own.yaml", SHARED, of_good={"graders": [{"kind": "contains", "value": "else"}]})
    assert main(["run", "own.yaml", "--quiet"]) == 1
    capsys.readouterr()
    write_suite("own.yaml", SHARED, of_good={"id": "another"})
    _, done = graded(capsys, "--suite", "own.yaml")
    assert (done["changed"], done["reused"]) == (0, 3)


def test_a_judge_without_a_model_is_told_before_anything_is_graded(capsys: pytest.CaptureFixture[str]) -> None:
    judge = {"kind": "judge", "name": "friendly"}
    write_suite("s.yaml", SHARED, judge)
    assert main(["grade", "latest", "--suite", "s.yaml"]) == 2
    assert "the grader `friendly` asks a model, and the suite names none" in capsys.readouterr().err
    code, done = graded(capsys, "--suite", "s.yaml", "--skip-judges")
    assert (code, done["outcomes"]) == (3, {"errored": 2})
    assert main(["run", "s.yaml", "--quiet", "--skip-judges"]) == 3
    capsys.readouterr()
    # As it was run: the stored suite names no model either.
    assert main(["grade", "latest"]) == 2
    assert "the grader 'friendly' asks a model" in capsys.readouterr().err
    assert graded(capsys, "--skip-judges")[1]["outcomes"] == {"errored": 2}
    write_suite("s.yaml", SHARED, {**judge, "required": False})
    assert graded(capsys, "--suite", "s.yaml", "--skip-judges")[0] == 0


@pytest.mark.parametrize("options", [(), ("--suite", "s.yaml")])
def test_a_stored_case_that_is_damaged_costs_its_own_runs_and_no_others(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect("seatrial.db")) as connection, connection:
        assert connection.execute("UPDATE cases SET data = x'00ff' WHERE case_id = 'bad'").rowcount == 1
    code, done = graded(capsys, *options)
    assert (code, done["outcomes"]) == (3, {"passed": 1, "errored": 1})
    assert len(done["damaged"]) == 1


def test_graders_that_wait_do_so_together(capsys: pytest.CaptureFixture[str]) -> None:
    # Each of the two commands goes on when it sees that the other has begun.
    check = "import os, time; open('begun' + str(os.getpid()), 'w').close()\n"
    check += "while len([name for name in os.listdir() if name.startswith('begun')]) < 2: time.sleep(0.01)\n"
    Path("check.py").write_text(check + "print('true')")
    write_suite("s.yaml", {"kind": "code", "command": [sys.executable, "check.py"], "timeout_s": 10})
    code, done = graded(capsys, "--suite", "s.yaml")
    assert (code, done["outcomes"]) == (0, {"passed": 2})


def test_an_experiment_of_which_runs_are_missing_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("s.yaml", SHARED)
    assert main(["run", "s.yaml", "--quiet", "--name", "whole"]) == 0
    (store,) = Path().glob("**/*.db")
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE experiments SET status = 'stopped', stop_reason = 'Ctrl-C'")
        connection.commit()
    capsys.readouterr()
    assert main(["grade", "latest"]) == 3
    assert "not all runs were made: Ctrl-C" in capsys.readouterr().err


def test_a_suite_that_says_something_else_of_an_agents_tools_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite("s.yaml", SHARED)
    suite = json.loads(Path("s.yaml").read_text())
    suite["agents"]["mine"]["tool_access"] = "none"
    Path("s.yaml").write_text(json.dumps(suite))
    assert main(["grade", "latest", "--suite", "s.yaml"]) == 2
    assert "agents.mine.tool_access" in capsys.readouterr().err


def lose(*statements: str) -> None:
    """Change the store behind its back, as a crash or another program may."""
    with closing(sqlite3.connect("seatrial.db")) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount == 1, statement


OF_BAD = "run = (SELECT id FROM runs WHERE case_id = 'bad')"


@pytest.mark.parametrize(
    ("statement", "damaged"),
    [
        (f"DELETE FROM readings WHERE {OF_BAD}", 1),
        ("DELETE FROM cases WHERE case_id = 'bad'", 1),
        ("DELETE FROM runs WHERE case_id = 'bad'", 0),
        ("UPDATE runs SET status = 'running', outcome = 'unfinished' WHERE case_id = 'bad'", 0),
    ],
)
def test_what_is_lost_from_the_store_is_errored_and_costs_nothing_else(
    capsys: pytest.CaptureFixture[str], statement: str, damaged: int
) -> None:
    for file in Path().glob("seatrial.db*"):
        file.unlink()
    # Graders that a run without its answer would pass.
    write_suite("s.yaml", {"kind": "regex", "pattern": r"\A(?!.*bad)"}, {"kind": "steps", "max": 3, "required": False})
    assert main(["run", "s.yaml", "--quiet"]) == 1
    lose(statement)
    capsys.readouterr()
    code, done = graded(capsys)
    assert (code, done["outcomes"]) == (3, {"passed": 1, "errored": 1})
    assert (len(done["damaged"]), done["lost"]) == (damaged, 1 - damaged)
    assert main(["grade", "latest"]) == 3
    assert "cannot be read any more, the first is" in (out := capsys.readouterr().out) or "mine, bad, trial 1" in out
    assert main(["report", "latest", "--junit", "report.xml", "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["summary"]["passed"] == 1
    assert [run["outcome"] for run in report["runs"]].count("errored") == damaged
    assert 'errors="1"' in Path("report.xml").read_text()
