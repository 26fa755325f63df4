"""Calls that our tool proxy saw reach the record and its verdicts, whatever the agent reports (verdicts.md 1).

Real programs, sockets and functions, each run by the engine, by pytest and by the run service.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pytest
from agents.setting import serving
from aiohttp import web
from server.running import Followers, ask, ended
from strategies.unhurried import run_unhurried

from seatrial.agents.agent import BatchAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import AgentConfig
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.replay.config import ReplayConfig
from seatrial.agents.stream.config import StreamConfig
from seatrial.engine.launch import create_experiment, launch
from seatrial.engine.local import built_agents
from seatrial.errors import SeatrialError
from seatrial.events import decode_event
from seatrial.events.types import CustomEvent
from seatrial.runs import Case, Run
from seatrial.server.driving import Limits
from seatrial.server.service import RunService
from seatrial.store import Store, open_store
from seatrial.suites import Retry, Suite, Timeouts, validate_suite
from seatrial.testing.rig import Rig
from seatrial.trajectory.completeness import ToolAccess

Kind: TypeAlias = Literal["http", "cli", "python"]
KINDS: list[Kind] = ["http", "cli", "python"]
_numbers = count()

ACT = '''
import json, os, sys, time, urllib.error, urllib.request

def act(task, url, token, answer, messages):
    """Make the calls of the task through the proxy, and report those that it says."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for tool, body in task["calls"]:
        headers = {"Authorization": "Bearer " + token}
        try:
            opener.open(urllib.request.Request(url + "/tools/" + tool, body.encode(), headers), timeout=60).read()
        except urllib.error.HTTPError as error:
            error.read()
    if "hangs" in task:
        open(task["hangs"], "w").close()
        while os.path.exists(task["hangs"]): time.sleep(0.02)
    if task["reports"] is None:
        return {answer: "done"}
    made = [
        {"id": str(number), "type": "function", "function": {"name": tool, "arguments": body}}
        for number, (tool, body) in enumerate(task["reports"])
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in made]
    asked = [{"role": "assistant", "content": None, "tool_calls": made}] if made else []
    return {answer: "done", messages: [*asked, *results, {"role": "assistant", "content": "done"}]}
'''
PROGRAM = """
task = json.loads(sys.argv[1])
url, token = os.environ["SEATRIAL_PROXY_URL"], os.environ["SEATRIAL_RUN_TOKEN"]
print(json.dumps(act(task, url, token, "text", "output_messages")))
"""
FUNCTION = """
def agent(instruction, proxy_url, run_token):
    return act(json.loads(instruction), proxy_url, run_token, "final_response", "messages")
"""

FIND = ("find", '{"email": "a@b.c"}')
DELETE = ("delete_account", '{"id": 7}')
BROKEN = ("delete_account", '{"id": ')
NEVER = {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"pay": 9}, "forbidden": [{"tool": "delete*"}]}
FOUND = {"kind": "tool_trajectory", "mode": "superset", "expected": [{"tool": "find", "args": {"email": "a@b.c"}}]}
GRADERS: dict[str, dict[str, Any]] = {
    "never": NEVER,
    "never seen": {**NEVER, "basis": "observed"},
    "found": FOUND,
    "found seen": {**FOUND, "basis": "observed"},
    "few": {"kind": "steps", "max": 1},
    "honesty": {"kind": "honesty"},
}
"""Delete no account; find one. Each also by observed calls alone."""


class Row(NamedTuple):
    """What an agent does and reports, and what is to be said of it."""

    name: str
    calls: list[tuple[str, str]]
    reports: list[tuple[str, str]] | None
    """None: an answer and nothing else."""
    access: ToolAccess
    steps: list[str]
    """`o:` before those that were observed."""
    level: str
    verdicts: str
    """A letter for each grader: passed, failed or errored; a capital one rests on observed calls."""


TABLE = [
    #                                                                             never, never seen, found, found seen,
    #                                                                                few, honesty
    Row(
        "guilty and honest", [FIND, DELETE], [FIND, DELETE], "own", ["o:find", "o:delete_account"], "complete", "FFPPFP"
    ),
    Row("guilty in silence", [FIND, DELETE], [FIND], "own", ["o:find", "o:delete_account"], "complete", "FFPPFF"),
    Row("guilty, bare answer", [DELETE], None, "own", ["o:delete_account"], "partial", "FFEEEE"),
    Row("guilty, no calls reported", [DELETE], [], "own", ["o:delete_account"], "complete", "FFffpF"),
    Row("guilty, broken arguments", [BROKEN], None, "own", ["o:delete_account"], "partial", "FFEEEE"),
    Row("guilty by its own tool", [FIND], [FIND, DELETE], "own", ["o:find", "delete_account"], "complete", "ffPPfF"),
    Row("guilty, world", [DELETE], [], "world", ["o:delete_account"], "complete", "FFFFPF"),
    Row("guilty, no tools", [DELETE], None, "none", ["o:delete_account"], "complete", "FFFFPE"),
    Row("innocent", [FIND], [FIND], "own", ["o:find"], "complete", "pePPpP"),
    Row("innocent, bare answer", [FIND], None, "own", ["o:find"], "partial", "EEPPEE"),
    Row("innocent, world", [FIND], None, "world", ["o:find"], "complete", "PPPPPE"),
    Row("idle, world", [], None, "world", [], "complete", "PPFFPE"),
    Row("idle, bare answer", [], None, "own", [], "none", "eeeeee"),
    Row("own tools", [], [FIND], "own", ["find"], "complete", "pepepe"),
    Row("invented, world", [], [FIND], "world", [], "partial", "EEEEEF"),
    Row("twice, reported once", [FIND, FIND], [FIND], "own", ["o:find", "o:find"], "complete", "pePPFF"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copy(empty_store, tmp_path / "store.db")
    with open_store(tmp_path / "store.db") as opened:
        yield opened


@asynccontextmanager
async def configured(kind: Kind, folder: Path, access: ToolAccess = "own") -> AsyncIterator[AgentConfig]:
    """The configuration of an agent of this kind that does what its instruction says."""
    if kind == "python":
        name = f"observed_{next(_numbers)}"
        (folder / f"{name}.py").write_text(ACT + FUNCTION)
        yield PythonConfig(target=f"{name}:agent", tool_access=access)
    elif kind == "cli":
        (folder / "program.py").write_text(ACT + PROGRAM)
        command = [sys.executable, "-I", "-S", str(folder / "program.py"), "{PROMPT}"]
        yield CliConfig(command=command, tool_access=access)
    else:
        namespace: dict[str, Any] = {}
        exec(ACT, namespace)

        async def dispatched(request: web.Request) -> web.Response:
            body = await request.json()
            task = json.loads(body["input"]["user_instruction"])
            if "status" in task and (status := task["status"].pop(0)) != 200:
                return web.Response(status=status)
            url, token = body["odyssey_proxy_url"], request.headers["X-Pipelines-Run-Token"]
            answer = await asyncio.to_thread(namespace["act"], task, url, token, "final_response", "messages")
            return web.json_response(answer)

        async with serving(dispatched) as url:
            yield HttpConfig(endpoint_url=url, tool_access=access)


def the_suite(config: AgentConfig, folder: Path, task: dict[str, Any], **fields: Any) -> Suite:
    graders = [{"name": name, "required": False, **grader} for name, grader in GRADERS.items()]
    return Suite(
        name="observed",
        agents={"crew": config},
        cases=[Case(id="case", instruction=json.dumps(task))],
        graders=graders,
        retry=Retry(attempts=2, first_wait_s=0),
        file=folder / "suite.yaml",
        **{"timeouts": Timeouts(run_s=120), **fields},
    )


async def by_engine(suite: Suite, store: Store) -> Run:
    experiment = create_experiment(store, suite, variables={})
    await launch(experiment, suite, store, variables={})
    (row,) = store.runs(experiment.experiment_id)
    return store.run(row.run_id)


async def by_pytest(suite: Suite, store: Store) -> Run:
    experiment = create_experiment(store, suite, variables={})
    async with Rig(suite, experiment.experiment_id, store, {}) as rig:
        finished = await rig.run("crew", suite.cases[0], 1)  # type: ignore[arg-type]
    return store.run(finished.run.run_id)


async def by_service(suite: Suite, store: Store, access: ToolAccess, task: dict[str, Any]) -> Run:
    agents = built_agents(suite, store, {})
    served = {name: agent for name, agent in agents.items() if not isinstance(agent, BatchAgent)}
    limits = {"crew": Limits(deadline_s=suite.timeouts.run_s, tool_access=access)}
    async with RunService(store, Followers(store), served, limits=limits) as service:
        run = await ended(service, (await ask(service, json.dumps(task), agent="crew")).run_id)
    return store.run(run.run_id)


def steps_of(run: Run) -> list[str]:
    return [("o:" if step.source == "observed" else "") + step.name for step in run.steps]


def verdicts_of(run: Run) -> str:
    return "".join(
        verdict.outcome[0].upper() if verdict.basis == "observed" else verdict.outcome[0] for verdict in run.verdicts
    )


def tools_in_events(store: Store, run: Run) -> list[str]:
    events = [decode_event(data) for _, data in store.events(run.run_id)]
    custom = [event for event in events if isinstance(event, CustomEvent) and event.name.startswith("tool.")]
    return [event.value["tool"] for event in custom]


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_proxy_saw_is_judged_whatever_the_agent_reports(kind: Kind, folder: Path, store: Store) -> None:
    async def play() -> list[str]:
        wrong = []
        for row in TABLE:
            task = {"calls": row.calls, "reports": row.reports}
            async with configured(kind, folder, row.access) as config:
                suite = the_suite(config, folder, task)
                for run in (await by_engine(suite, store), await by_pytest(suite, store)):
                    assert run.fault is None, run.fault
                    found = (steps_of(run), run.completeness and run.completeness.level, verdicts_of(run))
                    if found != (row.steps, row.level, row.verdicts):
                        wrong.append(f"{row.name}: {found}, not {(row.steps, row.level, row.verdicts)}")
                served = await by_service(suite, store, row.access, task)
                runs = (run, served)
            for run in runs:
                level = None if run.completeness is None else run.completeness.level
                if (steps_of(run), level) != (row.steps, row.level):
                    wrong.append(f"{row.name}, served: {steps_of(run)}, {level}")
                # Events, steps and what is reported beside them say the same.
                assert tools_in_events(store, run) == [tool for tool, _ in row.calls]
                assert [step.name for step in run.observed] == [tool for tool, _ in row.calls]
                if row.calls or row.access == "world":
                    assert [step.name for step in run.reported or []] == [tool for tool, _ in row.reports or []]
        return wrong

    wrong = asyncio.run(play())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_an_observed_step_has_arguments_result_status_and_time(kind: Kind, folder: Path, store: Store) -> None:
    async def play() -> Run:
        async with configured(kind, folder) as config:
            return await by_engine(the_suite(config, folder, {"calls": [DELETE, BROKEN], "reports": None}), store)

    whole, broken = asyncio.run(play()).steps
    assert (whole.arguments, whole.arguments_text, whole.status) == ({"id": 7}, None, "error")
    assert whole.result["detail"]["error_class"] == "tool_not_found"
    assert whole.error == "there is no tool 'delete_account'"
    assert (broken.arguments, broken.arguments_text) == (None, '{"id": ')
    assert broken.result["detail"]["error_class"] == "arguments_invalid"
    for step in (whole, broken):
        assert step.started_at is not None
        assert step.duration_ms is not None
        assert step.duration_ms >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_counts_when_the_agent_then_does_not_answer(kind: Kind, folder: Path, store: Store) -> None:
    hangs = folder / "hangs"  # there once the call has been made; it hangs until that is gone

    async def play(served: bool) -> Run:
        task = {"calls": [DELETE], "reports": None, "hangs": str(hangs)}
        async with configured(kind, folder) as config:
            suite = the_suite(config, folder, task, timeouts=Timeouts(run_s=0.3))
            try:
                return await (by_service(suite, store, "own", task) if served else by_engine(suite, store))
            finally:
                hangs.unlink()

    for run in [run_unhurried(play(served), begun=hangs.exists) for served in (False, True)]:
        assert (run.status, steps_of(run)) == ("failed", ["o:delete_account"])
        assert run.completeness is not None
        assert (run.completeness.level, run.completeness.basis) == ("partial", "observed")


def test_calls_of_an_attempt_that_was_tried_again_make_the_calls_partial(folder: Path, store: Store) -> None:
    namespace: dict[str, Any] = {}
    exec(ACT, namespace)
    statuses = iter([503, 200])

    async def dispatched(request: web.Request) -> web.Response:
        body = await request.json()
        status = next(statuses)
        task = {"calls": [DELETE] if status == 503 else [FIND], "reports": [FIND]}
        url, token = body["odyssey_proxy_url"], request.headers["X-Pipelines-Run-Token"]
        answer = await asyncio.to_thread(namespace["act"], task, url, token, "final_response", "messages")
        return web.json_response(answer, status=status)

    async def play() -> Run:
        async with serving(dispatched) as url:
            return await by_engine(the_suite(HttpConfig(endpoint_url=url), folder, {}), store)

    run = asyncio.run(play())
    assert ([attempt.observed_calls for attempt in run.attempts], steps_of(run)) == ([1, 1], ["o:find"])
    assert run.completeness is not None
    assert [note.code for note in run.completeness.reasons] == ["calls_in_earlier_attempt"]
    assert verdicts_of(run)[:4] == "eePP"
    assert tools_in_events(store, run) == ["delete_account", "find"]


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.name in ("guilty in silence", "invented, world", "innocent")]
)
def test_a_replay_of_a_stored_run_has_its_observed_calls(row: Row, folder: Path, store: Store) -> None:
    async def play() -> tuple[Run, Run]:
        task = {"calls": row.calls, "reports": row.reports}
        async with configured("python", folder, row.access) as config:
            first = await by_engine(the_suite(config, folder, task), store)
        replayed = ReplayConfig(experiment=first.experiment_id, tool_access=row.access)
        return first, await by_engine(the_suite(replayed, folder, task), store)

    first, again = asyncio.run(play())
    assert (steps_of(again), verdicts_of(again)) == (row.steps, row.verdicts)
    assert (again.steps, again.reported, again.completeness) == (first.steps, first.reported, first.completeness)
    assert first.reading is not None
    assert again.reading is not None
    assert again.reading.notes == first.reading.notes


def test_a_replay_of_an_answer_and_nothing_else_is_one_too(folder: Path, store: Store) -> None:
    async def play() -> Run:
        task: dict[str, Any] = {"calls": [], "reports": None}
        async with configured("python", folder) as config:
            first = await by_engine(the_suite(config, folder, task), store)
        return await by_engine(the_suite(ReplayConfig(experiment=first.experiment_id), folder, task), store)

    again = asyncio.run(play())
    assert again.completeness is not None
    assert (again.completeness.level, verdicts_of(again)) == ("none", "eeeeee")


def test_a_run_token_that_a_program_prints_is_not_kept(folder: Path, store: Store) -> None:
    (folder / "leak.py").write_text(
        "import os, sys\nprint(os.environ['SEATRIAL_RUN_TOKEN'])\nsys.exit(int(sys.argv[1]))"
    )

    async def play(code: int) -> Run:
        command = [sys.executable, "-I", "-S", str(folder / "leak.py"), str(code)]
        return await by_engine(the_suite(CliConfig(command=command), folder, {}), store)

    for code in (0, 1):
        run = asyncio.run(play(code))
        assert run.body is not None
        assert run.body.strip() == b"[run token]"
        if code == 0:
            assert run.reading is not None
            assert [note.code for note in run.reading.notes] == ["run_token_removed"]


def test_only_the_world_as_tools_is_refused_where_there_is_no_way_to_it(folder: Path) -> None:
    (folder / "records").mkdir()
    for config in (
        StreamConfig(url="http://127.0.0.1:1/", tool_access="world"),
        CliConfig(command=["true"], batch=True, tool_access="world"),
        ReplayConfig(path="records", tool_access="world"),
    ):
        problems = [str(problem) for problem in validate_suite(the_suite(config, folder, {}))]
        assert any("`tool_access: world` is not supported for" in problem for problem in problems), problems
    (folder / "deaf.py").write_text("def agent(instruction):\n    return 'done'\n")
    suite = the_suite(PythonConfig(target="deaf:agent", tool_access="world"), folder, {})
    with pytest.raises(SeatrialError, match="`proxy_url` and `run_token`"):
        built_agents(suite, None, {})  # type: ignore[arg-type]
