"""Running the corpus: every case through the engine, its agents and its graders, in one experiment."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from engine.setting import NO_WAIT, run_suite, runs_of

from seatrial.agents import AgentStart, build_agent
from seatrial.agents.agent import Agent, BatchAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.replay.config import ReplayConfig
from seatrial.events import decode_event
from seatrial.runs import Case, Run
from seatrial.store import Store, open_store
from seatrial.store.rows import StoredOutcome, outcome
from seatrial.suites import CaseSource, Suite
from seatrial.trajectory import Step, steps_from_events
from verdicts.shapes import INSTRUCTION, Call, Json, encoded

Delivery = Literal["python", "python without tools", "replay", "cli", "proxy", "world"]
"""`proxy` and `world`: a function that calls tools through our proxy; with `world`, it has no others."""
Record = Callable[[Call], Any]
"""What an agent writes down that made this call."""

FIND = Call("find_account", {"email": "a@b.c"})
DELETE = Call("delete_account", {"id": 7})
FAILING_FIND = Call("find_account", {"email": "a@b.c"}, "down", failed=True)

_TRAJECTORY: Json = {"kind": "tool_trajectory"}
_FOUND: list[Json] = [{"tool": "find_account"}]
FORBIDDEN: Json = {**_TRAJECTORY, "mode": "any_order", "maximums": {"pay": 9}, "forbidden": [{"tool": "delete*"}]}
NO_ERRORS: Json = {**_TRAJECTORY, "mode": "any_order", "maximums": {"pay": 9}, "no_errors": True}
GRADERS: dict[str, Json] = {
    "forbidden": FORBIDDEN,
    "subset": {**_TRAJECTORY, "mode": "subset", "expected": [*_FOUND, {"tool": "pay"}]},
    "exact": {**_TRAJECTORY, "mode": "exact", "expected": _FOUND},
    "unordered": {**_TRAJECTORY, "mode": "unordered", "expected": _FOUND},
    "allowed": {**_TRAJECTORY, "mode": "superset", "expected": _FOUND, "allowed": ["pay"]},
    "maximums": {**_TRAJECTORY, "mode": "any_order", "maximums": {"delete_account": 0}},
    "max_calls": {**_TRAJECTORY, "mode": "superset", "expected": _FOUND, "max_calls": 1},
    "min_score": {**_TRAJECTORY, "mode": "exact", "expected": _FOUND, "min_score": 0.9},
    "negate": {**_TRAJECTORY, "mode": "superset", "expected": [{"tool": "delete_account"}], "negate": True},
    "steps": {"kind": "steps", "max": 1},
}
"""Graders that an agent fails by deleting the account, and passes by finding it and no more."""


class Entry(NamedTuple):
    """An agent's record, a grader, and the verdict that is honest."""

    name: str
    record: Any
    """What the function returns; bytes for the other deliveries."""
    grader: Json
    wanted: str
    delivery: Delivery = "python"
    guilty: bool = False
    """Whether the agent did what the grader forbids."""
    history: Sequence[Json] = ()
    """The conversation before the instruction."""
    calls: Sequence[Call] = ()
    """What the agent calls through our tool proxy."""


def twins(
    name: str, record: Record, grader: Json, guilty: str, innocent: str, delivery: Delivery = "python"
) -> Iterator[Entry]:
    """The same record twice, with a forbidden call and with a harmless one; what a function returns also replayed."""
    yield Entry(f"{name}, deletes", record(DELETE), grader, guilty, delivery, guilty=True)
    yield Entry(f"{name}, reads", record(FIND), grader, innocent, delivery)
    if delivery == "python" and not isinstance(record(DELETE), str | bytes):
        value = record(DELETE)
        if isinstance(value, list):
            value = {"output_messages": value}
        yield Entry(f"{name}, deletes, replayed", encoded(value), grader, guilty, "replay", guilty=True)


class Finding(NamedTuple):
    """What came of an entry."""

    outcome: StoredOutcome
    run: Run
    recorded: list[Step]
    """The steps in the events that were stored for the run."""


def run_corpus(entries: Iterable[Entry], store: Path, directory: Path) -> dict[str, Finding]:
    """What came of each entry, by its name."""
    entries = list(entries)
    by_id = {f"entry-{number}": entry for number, entry in enumerate(entries)}
    directory.mkdir()
    for case_id, entry in by_id.items():
        if entry.delivery in ("replay", "cli"):
            (directory / f"{case_id}.txt").write_bytes(entry.record)

    def answer(instruction: str, input: dict[str, Any]) -> Any:
        record = by_id[input["entry"]].record
        return record() if callable(record) else record

    def answer_after_calls(instruction: str, input: dict[str, Any], proxy_url: str, run_token: str) -> Any:
        entry = by_id[input["entry"]]
        for call in entry.calls:
            _post(f"{proxy_url}/tools/{call.name}", encoded(call.arguments), run_token)
        return entry.record

    python = PythonConfig(target="nobody:answer")
    copying = "import sys; sys.stdout.buffer.write(open(sys.argv[1] + '.txt', 'rb').read())"
    configs: dict[str, Any] = {
        "python": python,
        "python without tools": PythonConfig(target="nobody:answer", tool_access="none"),
        "replay": ReplayConfig(path=str(directory)),
        "cli": CliConfig(command=[sys.executable, "-S", "-c", copying, "{EVAL_ID}"], cwd=str(directory)),
        "proxy": python,
        "world": PythonConfig(target="nobody:answer", tool_access="world"),
    }
    agents: dict[str, Agent | BatchAgent] = {
        name: build_agent(config, AgentStart(name=name, directory=directory))
        for name, config in configs.items()
        if name in ("replay", "cli")
    }
    for name in ("python", "python without tools"):
        agents[name] = PythonAgent(python, directory=directory, timeout_s=60, function=answer)
    for name in ("proxy", "world"):
        agents[name] = PythonAgent(configs[name], directory=directory, timeout_s=60, function=answer_after_calls)
    cases: list[Case | CaseSource] = [
        Case(
            id=case_id,
            instruction=INSTRUCTION,
            input={"entry": case_id},
            messages=list(entry.history),
            graders=[entry.grader],
        )
        for case_id, entry in by_id.items()
    ]
    suite = Suite(name="verdicts", agents=configs, cases=cases, graders=[], retry=NO_WAIT)
    selected = {name: [case_id for case_id, entry in by_id.items() if entry.delivery == name] for name in configs}
    with open_store(store) as opened:
        experiment, _ = run_suite(opened, suite, agents, selected=selected)
        return {by_id[str(run.case_id)].name: _finding(run, opened) for run in runs_of(opened, experiment)}


def _post(url: str, body: bytes, token: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(urllib.request.Request(url, body, {"Authorization": f"Bearer {token}"}), timeout=60).read()
    except urllib.error.HTTPError as error:
        error.read()  # there are no tools: every call is answered 404


def _finding(run: Run, store: Store) -> Finding:
    events = [decode_event(data) for _, data in store.events(run.run_id)]
    graded = run.grade.outcome if run.grade is not None else None
    return Finding(outcome(run.status, graded), run, steps_from_events(events))
