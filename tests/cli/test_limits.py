"""Low limits end in one sentence that says what to do, and never in a verdict on the agent."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.store import open_store

RUN = "from seatrial.cli import main; raise SystemExit(main(['run', 's.suite.yaml', '--store', 'runs.db', '--quiet']))"
AGENTS = {
    "cli": {"kind": "cli", "command": [sys.executable, "-I", "-S", "-c", "print('ok')"]},
    "python": {"kind": "python", "target": "crew:answer"},
}


def limited(which: int, limit: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(which, (limit, limit))


def run_under(tmp_path: Path, kind: str, which: int, limit: int) -> tuple[int, str, Counter[str]]:
    """How a run ended, what it said, and what came of the runs that it stored."""
    (tmp_path / "crew.py").write_text("import time\n\ndef answer(instruction):\n    time.sleep(0.2)\n    return 'ok'\n")
    suite = {
        "agents": {kind: AGENTS[kind]},
        "cases": [{"id": f"case-{number}", "instruction": "Go."} for number in range(30)],
        "graders": [{"kind": "contains", "value": "ok"}],
        "concurrency": 30,
        "retry": {"attempts": 1},
    }
    (tmp_path / "s.suite.yaml").write_text(json.dumps(suite))
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        preexec_fn=limited(which, limit),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    outcomes: Counter[str] = Counter()
    if (tmp_path / "runs.db").exists() and limit != 10:
        with open_store(tmp_path / "runs.db") as store:
            for experiment in store.experiments():
                outcomes += Counter(store.done_keys(experiment.experiment_id).values())
    return done.returncode, done.stderr, outcomes


@pytest.mark.parametrize("kind", AGENTS)
def test_hardly_any_open_files_is_one_sentence(tmp_path: Path, kind: str) -> None:
    code, told, outcomes = run_under(tmp_path, kind, resource.RLIMIT_NOFILE, 10)
    assert code == 3
    assert "ulimit -n" in told
    assert "Traceback" not in told
    assert not outcomes


def test_runs_that_no_file_was_left_for_are_errored_and_not_failed(tmp_path: Path) -> None:
    code, told, outcomes = run_under(tmp_path, "cli", resource.RLIMIT_NOFILE, 32)
    assert "Traceback" not in told
    assert outcomes["failed"] == 0
    assert outcomes["errored"] > 0
    assert code == 3


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("megabytes", [80, 120, 200, 300])
def test_little_memory_is_one_sentence_and_no_verdict(tmp_path: Path, kind: str, megabytes: int) -> None:
    code, told, outcomes = run_under(tmp_path, kind, resource.RLIMIT_AS, megabytes << 20)
    assert code in (0, 3), told
    assert "Traceback" not in told
    assert outcomes["failed"] == 0
    if code == 0:
        assert outcomes == {"passed": 30}
