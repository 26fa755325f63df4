"""Whatever breaks the command, its exit code says that nothing could be judged: not 0, nor 1, which blames an agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.store import open_store

AGENTS = """
import asyncio

async def well(prompt):
    return "ok"

async def stops(prompt):
    await asyncio.sleep(0.2)
    asyncio.get_running_loop().stop()
    await asyncio.sleep(600)

async def cancels(prompt):
    await asyncio.sleep(0.2)
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(600)
"""
SUITE = """
agents:
  well: {kind: python, target: "crew:well"}
  other: {kind: python, target: "crew:%s", run_timeout_s: 5}
cases: [{id: a, instruction: Go.}]
graders: [{kind: contains, value: ok}]
"""


@pytest.mark.parametrize(("agent", "code"), [("stops", 1), ("cancels", 3)])
def test_an_agent_that_ends_the_event_loop_does_not_decide_the_exit_code(tmp_path: Path, agent: str, code: int) -> None:
    """One that stops it has only itself to blame; who cancels everything leaves nothing to judge."""
    (tmp_path / "crew.py").write_text(AGENTS)
    (tmp_path / "s.suite.yaml").write_text(SUITE % agent)
    ran = subprocess.run(
        [sys.executable, "-c", "import sys; from seatrial.cli import main; sys.exit(main())", "run", "s.suite.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    (path,) = tmp_path.rglob("*.db")
    with open_store(path) as store:
        experiment = store.resolve_experiment("latest")
        done = store.done_keys(experiment.experiment_id)
    assert {key.agent: outcome for key, outcome in done.items()}.get("well") == "passed"
