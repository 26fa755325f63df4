"""The same behaviour gets the same outcome, whatever the kind of agent and whoever asks for the run (verdicts.md 3).

Real programs, sockets and functions; each is run by the engine, by the run service and as pytest runs it. Events are
pushed to the run service, too.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import struct
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Literal, NamedTuple, TypeAlias

import pytest
from agents.setting import talking, unused_port
from server.running import Followers, ask, ended
from strategies.unhurried import run_unhurried

from seatrial.agents.agent import BatchAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import AgentConfig
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.replay.config import ReplayConfig
from seatrial.agents.stream.config import StreamConfig
from seatrial.api import PushEvents
from seatrial.engine.launch import create_experiment, launch
from seatrial.engine.local import built_agents
from seatrial.runs import FAULT_CLASSES, MOVABLE, Case, Run, RunKey
from seatrial.server.driving import Limits
from seatrial.server.service import RunService
from seatrial.store import Store, open_store
from seatrial.suites import Retry, Suite, Timeouts
from seatrial.testing.rig import Rig

Kind: TypeAlias = Literal["python", "cli", "batch", "http", "stream", "replay", "push"]
Outcome: TypeAlias = Literal["failed", "errored"]

DEADLINE_S = 0.5
_numbers = count()


class Sent(NamedTuple):
    """What a server on loopback does once it has the head of a request."""

    data: bytes = b""
    then: Literal["close", "reset", "hang"] = "close"


REFUSED = "refused"
"""In place of what a server sends: there is none."""
PLAIN = "plain"
"""There is one, but it does not speak TLS."""
NO_PROGRAM = "/no/such/program"

STARTED = '{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}'
ERROR = '{"type": "RUN_ERROR", "message": "no"}'
FINISHED = '{"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}'
SAID = ('{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "ok"}',)

BLANK = SAID[0].replace("ok", " ")
HIDDEN = SAID[0].replace("ok", "\u200b\ufeff")
CANCELLED = FINISHED[:-1] + ', "outcome": {"type": "cancelled"}}'

FAILED = '{"final_response": "ok", "status": "failed", "error": "no"}'
SILENT = '{"output_messages": [{"role": "assistant", "content": ""}]}'
LAST_TURN_FAILED = """{"messages": [{"role": "user", "content": "go"},
 {"role": "assistant", "content": [{"type": "text", "text": "ok"}], "stop_reason": "error", "error_message": "no"}]}"""


def answer(status: int, body: bytes = b"", content_type: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def stream(*events: str, whole: bool = True) -> bytes:
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    sent = answer(200, body, "text/event-stream")
    return sent if whole else sent.replace(f"Length: {len(body)}".encode(), f"Length: {len(body) + 99}".encode())


def of_status(status: int) -> dict[Kind, Sent]:
    return {"http": Sent(answer(status)), "stream": Sent(answer(status))}


def over_http(sent: Sent | str) -> dict[Kind, Any]:
    return {"http": sent, "stream": sent}


def as_program(script: str) -> dict[Kind, Any]:
    return {"cli": script, "batch": script}


def sending(*events: str) -> dict[Kind, Any]:
    """The same events from every kind of agent that can send some, and pushed."""
    lines = "\n".join(events)
    return {
        "python": "; ".join([f"yield {event}" for event in events]),
        "cli": f"print({lines!r})",
        "stream": Sent(stream(*events)),
        "replay": lines,
        "push": events,
    }


def answering(record: str) -> dict[Kind, Any]:
    """The same record from every kind of agent that answers with one."""
    lines = "import json, sys\n"
    lines += f"for line in sys.stdin: print(json.dumps(json.loads({record!r}) | {{'id': json.loads(line)['id']}}))"
    return {
        "python": f"return {record}",
        "cli": f"print({record!r})",
        "batch": lines,
        "http": Sent(answer(200, record.encode())),
        "replay": record,
    }


def without_http(doings: dict[Kind, Any]) -> dict[Kind, Any]:
    return {kind: does for kind, does in doings.items() if kind != "http"}


def answering_then(end: str) -> dict[Kind, Any]:
    """A program that answers well, and ends otherwise."""
    scripts = answering('{"final_response": "ok"}')
    return {kind: f"{scripts[kind]}\nsys.stdout.flush()\n{end}" for kind in ("cli", "batch")}


Behaviour: TypeAlias = tuple[str, Outcome, str, dict[Kind, Any]]
"""What the agent does, what its run is, of which class the fault is, and how an agent of each kind does it."""

BEHAVIOURS: list[Behaviour] = [
    ("raises", "failed", "agent_exception", {"python": "raise KeyError('password')"}),
    ("leaves", "failed", "agent_exception", {"python": "sys.exit(3)"}),
    ("exits with 3", "failed", "agent_exit", as_program("sys.exit(3)")),
    ("answers and exits with 3", "failed", "agent_exit", answering_then("sys.exit(3)")),
    ("answers and is killed", "failed", "agent_signal", answering_then("os.kill(os.getpid(), 9)")),
    ("raises in a program", "failed", "agent_exit", as_program("raise KeyError('password')")),
    ("dies of SIGSEGV", "failed", "agent_signal", as_program("os.kill(os.getpid(), 11)")),
    ("is killed", "failed", "agent_signal", as_program("os.kill(os.getpid(), 9)")),
    *[(f"answers {status}", "failed", "agent_5xx", of_status(status)) for status in (500, 501, 505, 599)],
    *[(f"answers {status}", "failed", "agent_4xx", of_status(status)) for status in (400, 404, 409, 422)],
    *[(f"answers {status}", "errored", "auth_failed", of_status(status)) for status in (401, 403)],
    *[
        (f"answers {status}", "errored", "agent_unavailable", of_status(status))
        for status in (408, 425, 502, 503, 504, 529)
    ],
    ("answers 429", "errored", "rate_limited", of_status(429)),
    ("answers 302", "errored", "agent_redirected", of_status(302)),
    (
        "sends garbage",
        "failed",
        "agent_bad_response",
        {
            "python": "return object()",
            "cli": """print('{"text": ')""",
            "http": Sent(answer(200, b"<html>")),
            "stream": Sent(answer(200, b"<html>")),
        },
    ),
    ("is not HTTP", "failed", "agent_bad_response", over_http(Sent(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))),
    (
        "sends nothing",
        "failed",
        "agent_bad_response",
        {"python": "return None", "http": Sent(answer(200)), "stream": Sent(answer(200))},
    ),
    ("writes nothing", "failed", "agent_output_missing", as_program("")),
    # Over HTTP it breaks the response contract: `agent_bad_response`.
    ("answers without a word", "failed", "agent_output_missing", without_http(answering(SILENT))),
    ("finishes without a word", "failed", "agent_output_missing", sending(STARTED, FINISHED)),
    ("finishes with blank text", "failed", "agent_output_missing", sending(STARTED, BLANK, FINISHED)),
    ("finishes with text that is not shown", "failed", "agent_output_missing", sending(STARTED, HIDDEN, FINISHED)),
    ("writes no line of the case", "failed", "agent_output_missing", {"batch": "print('<html>')"}),
    (
        "sends too much",
        "failed",
        "response_too_large",
        {
            "cli": "print('x' * 5000)",
            "http": Sent(answer(200, b'{"final_response": "' + b"x" * 5000 + b'"}')),
            "stream": Sent(stream(STARTED, *['{"type": "CUSTOM", "name": "x", "value": "' + "x" * 900 + '"}'] * 9)),
        },
    ),
    (
        "has no answer in its response",
        "failed",
        "agent_bad_response",
        {"python": "return {'final_response': ''}", "http": Sent(answer(200, b'{"final_response": ""}'))},
    ),
    (
        "does not answer",
        "failed",
        "deadline_exceeded",
        {
            "python": "await asyncio.sleep(600)",
            **as_program("time.sleep(600)"),
            "http": Sent(then="hang"),
            "stream": Sent(stream(STARTED, whole=False), "hang"),
        },
    ),
    (
        "falls silent",
        "failed",
        "agent_timeout",
        {
            "python": "await asyncio.sleep(600)",
            **as_program("time.sleep(600)"),
            "http": Sent(b"HTTP/1.1 200 OK\r\nContent-", "hang"),
            "stream": Sent(stream(STARTED, whole=False), "hang"),
        },
    ),
    (
        "does not end its stream",
        "failed",
        "stream_truncated",
        {"python": f"yield {STARTED}", "stream": Sent(stream(STARTED))},
    ),
    ("reports an error", "failed", "agent_reported_error", sending(STARTED, ERROR)),
    ("reports an error and finishes", "failed", "agent_reported_error", sending(STARTED, *SAID, ERROR, FINISHED)),
    ("finishes around an error", "failed", "agent_reported_error", sending(STARTED, *SAID, FINISHED, ERROR, FINISHED)),
    (
        "reports an error and starts again",
        "failed",
        "agent_reported_error",
        {**sending(STARTED, *SAID, ERROR, STARTED, *SAID, FINISHED), "push": (STARTED, *SAID, ERROR)},
    ),
    (
        "finishes with a failure as its outcome",
        "failed",
        "agent_reported_error",
        sending(STARTED, *SAID, FINISHED[:-1] + ', "outcome": {"type": "failure", "error": "no"}}'),
    ),
    (
        "finishes with a result that says it failed",
        "failed",
        "agent_reported_error",
        sending(STARTED, *SAID, FINISHED[:-1] + ', "result": {"status": "failed", "error": "no"}}'),
    ),
    ("answers that its run failed", "failed", "agent_reported_error", answering(FAILED)),
    ("answers that its last turn failed", "failed", "agent_reported_error", answering(LAST_TURN_FAILED)),
    ("cannot be connected to", "errored", "agent_unreachable", over_http(REFUSED)),
    ("does not speak TLS", "errored", "agent_unreachable", over_http(PLAIN)),
    ("closes before it answers", "errored", "connection_lost", over_http(Sent())),
    ("resets before it answers", "errored", "connection_lost", over_http(Sent(then="reset"))),
    (
        "closes in the middle of its answer",
        "failed",
        "answer_cut_off",
        {"http": Sent(answer(200, b'{"final_response": "ok"}')[:-3]), "stream": Sent(stream(STARTED, whole=False))},
    ),
    (
        "resets in the middle of its answer",
        "failed",
        "answer_cut_off",
        {
            "http": Sent(answer(200, b'{"final_response": "ok"}')[:-3], "reset"),
            "stream": Sent(stream(STARTED, whole=False), "reset"),
        },
    ),
    # No answer has begun before its head is there.
    ("resets in the head of its answer", "errored", "connection_lost", over_http(Sent(b"HTTP/1.1 200 O", "reset"))),
    (
        "says that it is not its doing",
        "errored",
        "infrastructure_error",
        {"python": "raise seatrial.InfrastructureError('no disk')"},
    ),
    ("is not there", "errored", "agent_not_started", as_program(NO_PROGRAM)),
    ("has a record that is not readable", "errored", "record_unreadable", {"replay": "<html>"}),
    ("has no record", "errored", "record_missing", {"replay": None}),
]
TABLE = [
    pytest.param(kind, does, outcome, error_class, id=f"{kind} {name}")
    for name, outcome, error_class, doings in BEHAVIOURS
    for kind, does in doings.items()
    if kind != "push"
]
PUSHED = [
    pytest.param(doings["push"], outcome, error_class, id=name)
    for name, outcome, error_class, doings in BEHAVIOURS
    if "push" in doings
]
MOVABLE_TABLE = [row for row in TABLE if row.values[3] in MOVABLE]


def test_the_table_has_every_class_that_an_agent_can_bring_about() -> None:
    tried = {error_class for _, _, error_class, _ in BEHAVIOURS}
    elsewhere = {
        "response_contract_violation": "the contract is one of HTTP alone",
        "push_timeout": "nobody asks an agent that pushes",
        "deadline_in_retry": "it needs two attempts",
    }
    assert set(MOVABLE) - tried == set(elsewhere)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A suite's directory, which Python forgets afterwards."""
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Iterator[Store]:
    shutil.copy(empty_store, tmp_path / "store.db")
    with open_store(tmp_path / "store.db") as opened:
        yield opened


@asynccontextmanager
async def configured(kind: Kind, does: Any, folder: Path, timeout_s: float | None) -> AsyncIterator[AgentConfig]:
    """The configuration of an agent that does this."""
    common: dict[str, Any] = {"timeout_s": timeout_s}
    if kind == "python":
        name = f"one_rule_{next(_numbers)}"
        source = f"import asyncio, sys, seatrial\nasync def agent(instruction):\n    {does}\n"
        (folder / f"{name}.py").write_text(source)
        yield PythonConfig(target=f"{name}:agent", **common)
    elif kind in ("cli", "batch"):
        script = folder / "program.py"
        script.write_text(f"import os, sys, time\n{does}\n")
        command = [does] if does == NO_PROGRAM else [sys.executable, "-I", "-S", str(script)]
        yield CliConfig(command=command, batch=kind == "batch", max_response_bytes=1024, **common)
    elif kind == "replay":
        (folder / "records").mkdir(exist_ok=True)
        if does is not None:
            (folder / "records" / "case.txt").write_text(does)
        yield ReplayConfig(path="records")
    else:
        async with _address(does) as url:
            if kind == "http":
                yield HttpConfig(endpoint_url=url, max_response_bytes=1024, **common)
            else:
                yield StreamConfig(url=url, max_response_bytes=1024, **common)


@asynccontextmanager
async def _address(does: Sent | str) -> AsyncIterator[str]:
    if does == REFUSED:
        with unused_port() as port:
            yield f"http://127.0.0.1:{port}/"
        return
    if does == PLAIN:

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(answer(400))
            writer.close()

        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        return
    sent = does if isinstance(does, Sent) else Sent()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent.data)
        await writer.drain()
        if sent.then == "hang":
            await reader.read()  # until the other side has gone
        elif sent.then == "reset":
            # What was sent has to arrive before the reset does: a reset overtakes it.
            while sent.data and writer.transport.get_write_buffer_size():
                await asyncio.sleep(0)
            await asyncio.sleep(0.05)
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async with talking(talk) as url:
        yield url


def the_suite(config: AgentConfig, folder: Path, error_class: str, **fields: Any) -> Suite:
    # Short only where it is what the run ends by: nothing else may depend on how fast the machine is.
    timeouts = Timeouts(run_s=DEADLINE_S if error_class == "deadline_exceeded" else 60)
    return Suite(
        name="one rule",
        agents={"crew": config},
        cases=[Case(id="case", instruction="go")],
        graders=[{"kind": "contains", "value": "ok"}],
        retry=Retry(attempts=2, first_wait_s=0),
        timeouts=timeouts,
        file=folder / "suite.yaml",
        **fields,
    )


async def by_engine(suite: Suite, store: Store) -> Run:
    experiment = create_experiment(store, suite, variables={})
    await launch(experiment, suite, store, variables={})
    (row,) = store.runs(experiment.experiment_id)
    return store.run(row.run_id)


async def by_pytest(suite: Suite, store: Store) -> Run:
    experiment = create_experiment(store, suite, variables={})
    async with Rig(suite, experiment.experiment_id, store, {}) as rig:
        return (await rig.run("crew", Case(id="case", instruction="go"), 1)).kept


async def by_service(suite: Suite, store: Store, status: str = "failed") -> Run | None:
    agents = built_agents(suite, store, {})
    if isinstance(agents["crew"], BatchAgent) or isinstance(suite.agents["crew"], ReplayConfig):
        return None  # these are not served
    limits = {"crew": Limits(deadline_s=suite.timeouts.run_s, faults=suite.fault_rules("crew"))}
    served = {name: agent for name, agent in agents.items() if not isinstance(agent, BatchAgent)}
    async with RunService(store, Followers(store), served, limits=limits) as service:
        run = await ended(service, (await ask(service, agent="crew")).run_id)
    assert run.status == status
    return store.run(run.run_id)


async def by_push(events: Sequence[str], store: Store) -> Run:
    async with RunService(store, Followers(store), {}) as service:
        run = await ask(service, agent="crew", push=True)
        ids = {"threadId": run.thread_id, "runId": run.run_id}
        sent = [json.loads(event) for event in events]
        sent = [event | ids if event["type"] == "RUN_FINISHED" else event for event in sent]
        await service.push(run.run_id, PushEvents(events=sent))
        assert (await service.run(run.run_id)).status == store.run(run.run_id).status
    return store.run(run.run_id)


def ended_as(run: Run) -> str:
    """How a run ended, and whose doing that was."""
    return "errored" if run.errored else run.status


@pytest.mark.parametrize(("kind", "does", "outcome", "error_class"), TABLE)
def test_a_behaviour_has_the_same_outcome_whoever_asks(
    folder: Path, store: Store, kind: Kind, does: Any, outcome: Outcome, error_class: str
) -> None:
    timeout_s = DEADLINE_S if error_class == "agent_timeout" else None

    async def play() -> list[Run | None]:
        async with configured(kind, does, folder, timeout_s) as config:
            suite = the_suite(config, folder, error_class)
            return [await by_engine(suite, store), await by_pytest(suite, store), await by_service(suite, store)]

    engine, rig, service = run_unhurried(play())
    found = [run for run in (engine, rig, service) if run is not None]
    assert {(ended_as(run), run.fault.error_class if run.fault else None) for run in found} == {(outcome, error_class)}
    tried_again = outcome == "errored" and FAULT_CLASSES[error_class].transient
    assert [len(run.attempts) for run in (engine, rig) if run is not None] == [2 if tried_again else 1] * 2


@pytest.mark.parametrize(("events", "outcome", "error_class"), PUSHED)
def test_events_that_are_pushed_have_the_same_outcome(
    store: Store, events: Sequence[str], outcome: Outcome, error_class: str
) -> None:
    run = run_unhurried(by_push(events, store))
    assert (ended_as(run), run.fault.error_class if run.fault else None) == (outcome, error_class)


def test_an_agent_that_cancels_its_run_has_failed_where_nobody_can_ask_for_that(folder: Path, store: Store) -> None:
    events = (STARTED, *SAID, CANCELLED)

    async def play() -> list[Run | None]:
        async with configured("python", sending(*events)["python"], folder, None) as config:
            suite = the_suite(config, folder, "agent_reported_error")
            return [
                await by_engine(suite, store),
                await by_pytest(suite, store),
                await by_service(suite, store, "cancelled"),
                await by_push(events, store),
            ]

    found = [(run.status, run.fault and run.fault.error_class) for run in run_unhurried(play()) if run is not None]
    assert found == [("failed", "agent_reported_error")] * 2 + [("cancelled", None)] * 2


@pytest.mark.parametrize(("kind", "does", "outcome", "error_class"), MOVABLE_TABLE)
def test_a_suite_that_moves_the_class_turns_the_outcome_round_whoever_asks(
    folder: Path, store: Store, kind: Kind, does: Any, outcome: Outcome, error_class: str
) -> None:
    timeout_s = DEADLINE_S if error_class == "agent_timeout" else None
    moved: Any = {error_class: "agent" if outcome == "errored" else "infrastructure"}

    async def play() -> list[Run | None]:
        async with configured(kind, does, folder, timeout_s) as config:
            suite = the_suite(config, folder, error_class, faults=moved)
            suite.retry = Retry(attempts=1)
            return [await by_engine(suite, store), await by_pytest(suite, store), await by_service(suite, store)]

    found = [run for run in run_unhurried(play()) if run is not None]
    turned = "errored" if outcome == "failed" else "failed"
    assert {(ended_as(run), run.fault.error_class if run.fault else None) for run in found} == {(turned, error_class)}
    for run in found:
        assert run.grade is None or run.grade.outcome == turned


def test_what_was_decided_stays_decided_in_the_store(folder: Path, store: Store) -> None:
    async def play() -> Run:
        async with configured("python", "raise KeyError('x')", folder, None) as config:
            moved: Any = {"agent_exception": "infrastructure"}
            return await by_engine(the_suite(config, folder, "agent_exception", faults=moved), store)

    run = run_unhurried(play())
    assert run.fault is not None
    assert (run.fault.moved_to, run.fault.blame, run.fault.retryable) == ("infrastructure", "infrastructure", True)
    assert [attempt.fault and attempt.fault.blame for attempt in run.attempts] == ["infrastructure"] * 2
    assert run.key == RunKey("crew", "case", 1)
