"""Single trials of a suite, with its agents kept from one to the next."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from seatrial.engine import create_experiment
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Run
from seatrial.store import open_store
from seatrial.suites import AgentConfig, CliConfig, HttpConfig, PythonConfig, Suite
from seatrial.testing.rig import Rig

BATCH = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "text": "answer to " + json.loads(line)["id"]}))
"""


def runs_of(folder: Path, agents: dict[str, AgentConfig], *asked: tuple[str, str]) -> list[Run | str]:
    """What comes of asking these agents for these cases, one after another; of an unusable agent, the error's code."""
    cases = [Case(id="one", instruction="1"), Case(id="two", instruction="2")]
    suite = Suite(name="shop", agents=agents, cases=[*cases], file=folder / "shop.suite.yaml")

    async def play() -> list[Run | str]:
        came: list[Run | str] = []
        with open_store(folder / "runs.db") as store:
            experiment = create_experiment(store, suite, variables={})
            async with Rig(suite, experiment.experiment_id, store, {}) as rig:
                for agent, case_id in asked:
                    try:
                        case = next(case for case in cases if case.id == case_id)
                        came.append((await rig.run(agent, case, 1)).kept)
                    except SeatrialError as error:
                        came.append(error.code)
            stored = store.done_keys(experiment.experiment_id)
            assert set(stored) == {run.key for run in came if isinstance(run, Run)}
        return came

    return asyncio.run(play())


def answers(runs: list[Run | str]) -> list[str | None]:
    return [
        run if isinstance(run, str) else None if run.reading is None else run.reading.transcript.final_text()
        for run in runs
    ]


def test_an_agent_that_takes_batches_is_given_batches_of_one(tmp_path: Path) -> None:
    (tmp_path / "batch.py").write_text(BATCH)
    agent = CliConfig(command=[sys.executable, "-I", "batch.py"], batch=True)
    came = runs_of(tmp_path, {"batch": agent}, ("batch", "one"), ("batch", "two"))
    assert answers(came) == ["answer to one", "answer to two"]


def test_an_agent_that_cannot_be_started_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rig_agent.py").write_text("def answer(prompt): return prompt\n")
    monkeypatch.syspath_prepend(tmp_path)
    agents: dict[str, AgentConfig] = {
        "sick": CliConfig(command="true", healthcheck="false"),
        "well": PythonConfig(target="rig_agent:answer"),
    }
    came = runs_of(tmp_path, agents, ("sick", "one"), ("well", "one"), ("sick", "two"))
    assert answers(came) == ["agent_unhealthy", "1", "agent_unhealthy"]


def test_a_trial_that_is_run_again_counts_as_it_came_out_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting_agent.py").write_text(
        "seen = []\ndef answer(prompt): seen.append(1); return str(len(seen))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    came = runs_of(tmp_path, {"mine": PythonConfig(target="counting_agent:answer")}, ("mine", "one"), ("mine", "one"))
    assert answers(came) == ["1", "2"]
    with open_store(tmp_path / "runs.db") as store:
        (row,) = store.runs(store.resolve_experiment("shop").experiment_id)
        assert answers([store.run(row.run_id)]) == ["2"]


def test_no_secret_that_a_grader_tells_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "def answer(prompt): return prompt\ndef check(subject): return {'passed': False, 'reason': 'it is tr0ub4dor'}\n"
    )
    (tmp_path / "telling.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    variables = {"SHOP_TOKEN": "tr0ub4dor"}
    case = Case(id="one", instruction="1")
    suite = Suite(
        name="shop",
        agents={
            "mine": PythonConfig(target="telling:answer"),
            "shop": HttpConfig(endpoint_url="http://127.0.0.1:9/", auth_credential_value="${SHOP_TOKEN}"),
        },
        graders=[{"kind": "python", "target": "telling:check"}],
        cases=[case],
        file=tmp_path / "shop.suite.yaml",
    )

    async def play() -> Run:
        with open_store(tmp_path / "runs.db") as store:
            experiment = create_experiment(store, suite, variables=variables)
            async with Rig(suite, experiment.experiment_id, store, variables) as rig:
                return store.run((await rig.run("mine", case, 1)).run.run_id)

    (verdict,) = asyncio.run(play()).verdicts
    assert verdict.reasons == ["it is ${SHOP_TOKEN}"]
