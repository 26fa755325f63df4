"""Runs in workspaces: one copy for each attempt, a diff with the run, and nobody's time but the agent's."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine.setting import Scripted, TestClock, a_suite, only_run, refused, run_suite
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.cli.program import PROCESSES_LEFT
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.returned import read_returned
from seatrial.driver import exchange
from seatrial.engine.launch import create_experiment, launch
from seatrial.engine.regrading import regrade
from seatrial.graders import GradingPlan, Surroundings
from seatrial.runs import Case, Fault, Run, WorkspaceSource
from seatrial.runs.removed import DIFF, SECRET_REMOVED
from seatrial.store import Store
from seatrial.suites import Secrets, Suite, Timeouts
from seatrial.transcript import Note
from seatrial.workspaces.live import LiveWorkspace

SECRET = "hunter2-hunter2"
CHECKS = [
    {"kind": "allowed_paths", "paths": ["a.txt"]},
    {"kind": "command", "command": [sys.executable, "-c", "assert open('a.txt').read() == 'b\\n'"]},
]


class Worker(Scripted):
    """An agent that takes workspaces."""

    uses_workspace = True


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    return made


def suite_in(directory: Path, graders: list[dict[str, Any]] | None = None, **fields: Any) -> Suite:
    source: WorkspaceSource = fields.pop("workspace", WorkspaceSource(source="project"))
    case = Case(id="case-0", instruction="Write b.", workspace=source)
    graders = CHECKS if graders is None else graders
    agents = fields.pop("agents", None)
    suite = a_suite(0, graders=graders, file=directory / "my.suite.yaml", **fields)
    suite.cases = [case]
    suite.agents = suite.agents if agents is None else agents
    return suite


def place(request: RunRequest) -> Path:
    assert request.workspace is not None
    return request.workspace.folder


async def write_b(request: RunRequest, emit: Emit) -> Reply:
    (place(request) / "a.txt").write_text("b\n")
    return read_returned("done")


def outcomes(run: Run) -> dict[str, str]:
    return {verdict.grader: verdict.outcome for verdict in run.verdicts}


def test_a_run_has_its_diff_and_its_graders_the_workspace_which_is_gone_afterwards(
    store: Store, tmp_path: Path, root: Path
) -> None:
    experiment, _ = run_suite(store, suite_in(tmp_path), {"crew": Worker(write_b)})
    run = only_run(store, experiment)
    assert run.diff is not None
    assert [(file.path, file.change) for file in run.diff.files] == [("a.txt", "modified")]
    assert "-a\n+b\n" in run.diff.patch
    assert outcomes(run) == {"allowed_paths": "passed", "command": "passed"}
    assert (tmp_path / "project" / "a.txt").read_text() == "a\n"
    assert list(root.iterdir()) == []


def test_every_attempt_and_every_trial_has_a_copy_of_its_own(store: Store, tmp_path: Path) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        folder = place(request)
        assert [path.name for path in folder.iterdir() if path.name != ".git"] == ["a.txt"]
        (folder / f"attempt-{request.attempt}").touch()
        return refused() if request.attempt == 1 else await write_b(request, emit)

    experiment, _ = run_suite(store, suite_in(tmp_path, trials=2), {"crew": Worker(answer)})
    for run in store.whole_runs(experiment.experiment_id):
        assert run.diff is not None
        assert [file.path for file in run.diff.files] == ["a.txt", "attempt-2"]
        assert outcomes(run)["allowed_paths"] == "failed"


def test_an_agent_that_takes_no_workspace_has_no_diff_and_nothing_passes_by_that(store: Store, tmp_path: Path) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        assert request.workspace is None
        return read_returned("done")

    experiment, _ = run_suite(store, suite_in(tmp_path), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.diff is None
    assert outcomes(run) == {"allowed_paths": "errored", "command": "errored"}


def test_a_workspace_that_cannot_be_made_leaves_the_run_errored_and_the_agent_unasked(
    store: Store, tmp_path: Path
) -> None:
    agent = Worker(write_b)
    broken = WorkspaceSource(source="project", setup=[sys.executable, "-c", f"exit('no {SECRET}')"])
    suite = suite_in(tmp_path, workspace=broken)
    experiment, _ = run_suite(store, suite, {"crew": agent}, secrets=Secrets({"KEY": SECRET}))
    run = only_run(store, experiment)
    assert run.fault is not None
    assert run.fault.error_class == "workspace_failed"
    assert "${KEY}" in run.fault.message
    assert run.outcome == "errored"
    assert agent.asked == []
    assert len(run.attempts) == 1


def test_a_failed_run_has_its_diff_too(store: Store, tmp_path: Path) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await write_b(request, emit)
        return Reply(fault=Fault("agent_exit", "the program ended with code 1"))

    experiment, _ = run_suite(store, suite_in(tmp_path), {"crew": Worker(answer)})
    run = only_run(store, experiment)
    assert run.outcome == "failed"
    assert run.diff is not None
    assert run.diff.added == 1


def test_neither_making_a_workspace_nor_comparing_it_takes_time_of_the_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill, compare = LiveWorkspace.fill, LiveWorkspace.diff

    class HandClock(TestClock):
        def monotonic_s(self) -> float:
            return self.passed_s

    clock = HandClock()

    async def slow_fill(self: LiveWorkspace, directory: Path) -> None:
        clock.passed_s += 100
        await fill(self, directory)

    async def slow_diff(self: LiveWorkspace) -> Any:
        clock.passed_s += 100
        return await compare(self)

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        assert request.timeout_s is not None
        left.append(request.timeout_s)
        clock.passed_s += 4
        return refused() if request.attempt == 1 else await write_b(request, emit)

    left: list[float] = []
    monkeypatch.setattr(LiveWorkspace, "fill", slow_fill)
    monkeypatch.setattr(LiveWorkspace, "diff", slow_diff)
    suite = suite_in(tmp_path, timeouts=Timeouts(run_s=10))
    experiment, _ = run_suite(store, suite, {"crew": Worker(answer)}, clock=clock)
    run = only_run(store, experiment)
    assert run.outcome == "passed"
    assert left == [10, 6]
    assert run.duration_ms == 8000
    assert [attempt.duration_ms for attempt in run.attempts] == [4000, 4000]


@pytest.mark.parametrize("how", ["processes", "agent"])
def test_the_diff_of_an_agent_that_may_still_be_at_work_is_unknown(
    store: Store, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "GRACE_S", 0.05)
    given_up = threading.Event()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = await write_b(request, emit)
        if how == "processes":
            reply.notes = [Note(PROCESSES_LEFT, "", "one could not be ended")]
            return reply
        until = time.monotonic() + 60
        while not given_up.is_set() and time.monotonic() < until:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                cancelled.append(True)
                if len(cancelled) > 2:
                    raise
        return reply

    cancelled: list[bool] = []
    suite = suite_in(tmp_path, [CHECKS[0]], timeouts=Timeouts(run_s=0.1))
    if how == "processes":
        suite = suite_in(tmp_path, [CHECKS[0]])
    experiment, _ = run_suite(store, suite, {"crew": Worker(answer)})
    run = only_run(store, experiment)
    assert run.diff is not None
    assert "may change the workspace still" in run.diff.unlisted
    assert run.diff.files == []
    assert run.outcome == ("errored" if how == "processes" else "failed")


def test_a_secret_in_the_diff_is_judged_and_not_stored(store: Store, tmp_path: Path) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        (place(request) / "a.txt").write_text(f"key = {SECRET}\n")
        return read_returned("done")

    graders: list[dict[str, Any]] = [{"kind": "diff", "not_added": ["hunter2"]}]
    secrets = Secrets({"KEY": SECRET})
    experiment, _ = run_suite(store, suite_in(tmp_path, graders), {"crew": Worker(answer)}, secrets=secrets)
    run = only_run(store, experiment)
    assert run.outcome == "failed"
    assert run.diff is not None
    assert "+key = ${KEY}" in run.diff.patch
    assert SECRET not in repr(run)
    assert [(note.code, note.pointer) for note in run.notes if note.code == SECRET_REMOVED] == [(SECRET_REMOVED, DIFF)]
    other = GradingPlan([{"kind": "diff", "not_added": ["absent"]}])
    asyncio.run(regrade(store, experiment.experiment_id, other, Surroundings()))
    assert [verdict.code for verdict in store.run(run.run_id).verdicts] == ["secret_removed"]


def test_a_secret_of_several_lines_leaves_no_patch(store: Store, tmp_path: Path) -> None:
    key = "-----BEGIN-----\nabcdefgh\nijklmnop"

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        (place(request) / "a.txt").write_text(f"{key}\n")
        return read_returned("done")

    secrets = Secrets({"KEY": key})
    experiment, _ = run_suite(store, suite_in(tmp_path, [CHECKS[0]]), {"crew": Worker(answer)}, secrets=secrets)
    run = only_run(store, experiment)
    assert run.diff is not None
    assert run.diff.patch == ""
    assert [file.hidden for file in run.diff.files] == ["secret"]
    assert "ijklmnop" not in repr(run)


def test_grading_again_keeps_what_a_command_said_and_judges_the_stored_diff(store: Store, tmp_path: Path) -> None:
    experiment, _ = run_suite(store, suite_in(tmp_path), {"crew": Worker(write_b)})
    same = GradingPlan([*CHECKS, {"kind": "forbidden_paths", "paths": ["a.txt"]}])
    asyncio.run(regrade(store, experiment.experiment_id, same, Surroundings()))
    run = only_run(store, experiment)
    assert outcomes(run) == {"allowed_paths": "passed", "command": "passed", "forbidden_paths": "failed"}
    another = GradingPlan([{"kind": "command", "command": "true"}])
    asyncio.run(regrade(store, experiment.experiment_id, another, Surroundings()))
    (verdict,) = only_run(store, experiment).verdicts
    assert (verdict.outcome, verdict.code) == ("errored", "workspace_gone")


def test_a_replay_of_an_experiment_has_the_diff_that_was_recorded(store: Store, tmp_path: Path) -> None:
    from seatrial.agents.replay.config import ReplayConfig

    experiment, _ = run_suite(store, suite_in(tmp_path), {"crew": Worker(write_b)})
    again = suite_in(tmp_path, [CHECKS[0]], agents={"again": ReplayConfig(experiment=experiment.experiment_id)})
    replayed = create_experiment(store, again, variables={}, name="again")
    asyncio.run(launch(replayed, again, store, variables={}))
    run = only_run(store, replayed)
    assert run.outcome == "passed"
    assert run.diff is not None
    assert run.diff.added == 1


def test_a_program_works_in_its_workspace_with_a_home_of_its_own_and_nothing_of_our_environment(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_API_KEY", "sk-1234567890")
    program = (
        "import json, os, sys\n"
        "assert os.getcwd() == sys.argv[1], os.getcwd()\n"
        "assert os.path.isfile(os.path.join(sys.argv[2], 'program.py')), sys.argv\n"
        "assert os.listdir(os.environ['HOME']) == []\n"
        "assert 'OUR_API_KEY' not in os.environ\n"
        "assert os.environ['GIVEN'] == 'yes'\n"
        "assert 'SEATRIAL_PROXY_URL' in os.environ\n"
        "open('a.txt', 'w').write('b\\n')\n"
        "os.mkdir(os.environ['HOME'] + '/.agent')\n"
        "open(os.environ['HOME'] + '/.agent/run.json', 'w').write(json.dumps({'text': 'recorded'}))\n"
    )
    (tmp_path / "program.py").write_text(program)
    config = CliConfig(
        command=[sys.executable, "{SUITE_DIR}/program.py", "{WORKDIR}", "{SUITE_DIR}", "{PROMPT}"],
        env={"GIVEN": "yes"},
        record="~/.agent/*.json",
        output="output-messages",
    )
    suite = suite_in(tmp_path, agents={"crew": config})
    experiment = create_experiment(store, suite, variables={})
    asyncio.run(launch(experiment, suite, store, variables={}))
    run = only_run(store, experiment)
    assert run.fault is None, run.fault
    assert run.answer == "recorded"
    assert outcomes(run) == {"allowed_paths": "passed", "command": "passed"}


def test_a_record_that_is_a_link_to_elsewhere_is_no_record(store: Store, tmp_path: Path) -> None:
    (tmp_path / "private.json").write_text('{"text": "private"}')
    program = f"import os; os.symlink({str(tmp_path / 'private.json')!r}, os.environ['HOME'] + '/run.json')"
    config = CliConfig(command=[sys.executable, "-c", program, "{PROMPT}"], record="~/*.json", output="output-messages")
    suite = suite_in(tmp_path, agents={"crew": config})
    experiment = create_experiment(store, suite, variables={})
    asyncio.run(launch(experiment, suite, store, variables={}))
    run = only_run(store, experiment)
    assert run.fault is not None
    assert run.fault.error_class == "agent_output_missing"
    assert run.body is None


def test_a_program_beside_the_suite_is_not_looked_for_in_the_workspace(store: Store, tmp_path: Path) -> None:
    (tmp_path / "agent").write_text(f"#!{sys.executable}\nopen('a.txt', 'w').write('b\\n'); print('done')\n")
    (tmp_path / "agent").chmod(0o755)
    (tmp_path / "project" / "agent").write_text("#!/bin/false\n")
    (tmp_path / "project" / "agent").chmod(0o755)
    suite = suite_in(tmp_path, agents={"crew": CliConfig(command=["./agent", "{PROMPT}"])})
    experiment = create_experiment(store, suite, variables={})
    asyncio.run(launch(experiment, suite, store, variables={}))
    run = only_run(store, experiment)
    assert run.fault is None, run.fault
    assert outcomes(run) == {"allowed_paths": "passed", "command": "passed"}


def test_a_function_gets_the_path_of_its_workspace(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "function_at_work.py").write_text(
        "import pathlib\n"
        "def answer(prompt, workspace):\n"
        "    (pathlib.Path(workspace) / 'a.txt').write_text('b\\n')\n"
        "    return 'done'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    suite = suite_in(tmp_path, agents={"crew": PythonConfig(target="function_at_work:answer")})
    experiment = create_experiment(store, suite, variables={})
    asyncio.run(launch(experiment, suite, store, variables={}))
    assert outcomes(only_run(store, experiment)) == {"allowed_paths": "passed", "command": "passed"}


def test_a_run_that_cannot_be_graded_leaves_no_workspace(
    store: Store, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError("no grading today")

    monkeypatch.setattr("seatrial.engine.worker.grade", broken)
    with pytest.raises(RuntimeError, match="no grading today"):
        run_suite(store, suite_in(tmp_path), {"crew": Worker(write_b)})
    assert list(root.iterdir()) == []
