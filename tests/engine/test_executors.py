"""What every executor does the same. Workers elsewhere are in this process here, behind links that can be cut; those of
Ray are in `test_ray.py`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url
from strategies.databases import database

from engine import executor_agents as crew
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import Retry
from seatrial.agents.python.config import PythonConfig
from seatrial.engine import (
    EXECUTORS,
    Assignment,
    Executor,
    ExperimentTally,
    Stop,
    Workers,
    create_experiment,
    executor,
    launch,
    remote,
)
from seatrial.engine.host import WorkerHost
from seatrial.engine.outbox import Outbox
from seatrial.engine.remote import WorkerLink, WorkerLostError, job_of, remote_workers
from seatrial.engine.trial import Finished
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Experiment
from seatrial.store import Store, open_store
from seatrial.suites import Budget, Suite

BATCH = """
import json, sys

lines = [json.loads(line) for line in sys.stdin]
for line in [*lines, {"id": "nobody"}]:
    print(json.dumps({"id": line["id"], "text": f"ok, one of {len(lines)}"}))
"""


class Link:
    """The way to a worker in this process, until it is cut."""

    def __init__(self, job: bytes) -> None:
        context = copy_context()
        context.run(crew.link.set, self)
        self.host = context.run(WorkerHost, job, dict(os.environ))
        self.cut = asyncio.Event()
        self.is_kept = False
        self.loop = asyncio.get_running_loop()

    def keep(self) -> None:
        """Let the worker do nothing any more, as if something kept its interpreter."""
        self.is_kept = True
        self.host._serving.cancel()

    async def send(self, orders: bytes) -> None:
        if self.cut.is_set():
            raise WorkerLostError("the link was cut")
        if self.is_kept:
            await asyncio.sleep(3600)
        self.host.obey(orders)

    async def receive(self) -> bytes:
        reports, cut = asyncio.create_task(self.host.reports()), asyncio.create_task(self.cut.wait())
        try:
            await asyncio.wait({reports, cut}, return_when=asyncio.FIRST_COMPLETED)
            if self.is_kept:
                await asyncio.sleep(3600)
            if not self.cut.is_set():
                return await reports
            raise WorkerLostError("the link was cut")
        finally:
            reports.cancel()
            cut.cancel()

    async def end(self) -> None:
        await self.host.end()


class Linked(Executor):
    """Two workers in this process, behind links."""

    needs_shared_store = True
    links: Any = None

    @asynccontextmanager
    async def open(self, work: Assignment) -> AsyncIterator[Workers]:
        links: list[Link] = self.links

        class Pool:
            async def start(self, job: bytes) -> WorkerLink:
                links.append(Link(job))
                return links[-1]

        async with remote_workers(work, Pool(), 2) as workers:
            yield workers


@pytest.fixture(scope="module")
def where(postgres_server: str) -> Iterator[str]:
    with database(postgres_server) as url:
        yield url


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    crew.forget()
    with open_store(where) as opened:
        yield opened


@pytest.fixture(params=["local", "linked"])
def runs_on(request: pytest.FixtureRequest) -> Executor:
    return EXECUTORS["local"]() if request.param == "local" else Linked(links=[])


def a_suite(*ids: str, agents: dict[str, Any] | None = None, **fields: Any) -> Suite:
    agents = {"mate": {}} if agents is None else agents
    given: dict[str, Any] = {
        "name": "harbour",
        "agents": {
            name: crew.CrewConfig(**config) if isinstance(config, dict) else config for name, config in agents.items()
        },
        "cases": [Case(id=each, instruction=f"Do {each}") for each in ids],
        "graders": [{"kind": "contains", "value": "ok"}],
        "retry": Retry(attempts=3, first_wait_s=0),
    }
    return Suite(**{**given, **fields})


def carry_out(
    store: Store,
    suite: Suite,
    runs_on: Executor,
    *,
    experiment: Experiment | None = None,
    meanwhile: Callable[[Stop], Coroutine[Any, Any, None]] | None = None,
) -> tuple[Experiment, ExperimentTally]:
    if experiment is None:
        experiment = create_experiment(store, suite, variables={})
    experiment = store.resolve_experiment(experiment.experiment_id)

    async def run() -> ExperimentTally:
        stop = Stop()
        crew.hold = asyncio.Event()
        aside = None if meanwhile is None else asyncio.create_task(meanwhile(stop))
        tally = await launch(experiment, suite, store, variables=os.environ, stop=stop, executor=runs_on)
        if aside is not None:
            await aside
        return tally

    return experiment, asyncio.run(run())


def rows_of(store: Store, experiment: Experiment) -> list[tuple[str, str, int, str]]:
    return [(row.agent, row.case_id, row.trial, row.outcome) for row in store.runs(experiment.experiment_id)]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_runs_outcomes_and_their_order_are_the_same(store: Store, runs_on: Executor) -> None:
    suite = a_suite("a", "wrong-b", "broken-c", "d", agents={"mate": {}, "bosun": {}}, trials=2)
    experiment, tally = carry_out(store, suite, runs_on)
    found = rows_of(store, experiment)
    outcomes = {"a": "passed", "wrong-b": "failed", "broken-c": "errored", "d": "passed"}
    assert found == [
        (agent, case, trial, outcome)
        for case, outcome in outcomes.items()
        for agent in ("bosun", "mate")
        for trial in (1, 2)
    ]
    assert tally.outcomes == {"passed": 8, "failed": 4, "errored": 4}
    assert (tally.stop_reason, tally.elsewhere) == (None, 0)
    assert store.resolve_experiment(experiment.experiment_id).status == "finished"


def test_an_agent_is_never_given_more_runs_at_once_than_its_limit(store: Store, runs_on: Executor) -> None:
    agents = {"mate": {"pause_s": 0.01, "concurrency": 3}, "bosun": {"pause_s": 0.01}}
    suite = a_suite(*(f"c-{number}" for number in range(20)), agents=agents, concurrency=5)
    _, tally = carry_out(store, suite, runs_on)
    assert tally.outcomes == {"passed": 40}
    assert crew.most_active["mate"] == 3
    assert crew.most_active["all"] == 5


def test_an_agent_that_refuses_is_given_less_by_all_workers_together(store: Store, runs_on: Executor) -> None:
    suite = a_suite(*(f"c-{number}" for number in range(12)), agents={"mate": {"pause_s": 0.05}}, concurrency=4)
    crew.refusals["mate"] = 4

    async def watch(stop: Stop) -> None:
        # All that were let in before the first refusal have been refused: from here on there are two at once.
        await until(lambda: crew.refusals["mate"] == 0 and crew.active["mate"] == 0)
        crew.most_active["mate"] = 0
        await until(lambda: sum(crew.asked.values()) >= 8)
        assert crew.most_active["mate"] <= 2

    experiment, tally = carry_out(store, suite, runs_on, meanwhile=watch)
    assert tally.outcomes == {"passed": 12}
    attempts = [row.attempts for row in store.runs(experiment.experiment_id)]
    assert sum(attempts) == 16


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_budget_ends_the_experiment_and_a_resume_runs_the_rest(
    store: Store, runs_on: Executor, concurrency: int
) -> None:
    suite = a_suite(*(f"c-{number}" for number in range(9)), concurrency=concurrency, budget=Budget(wall_time_s=1e-9))
    experiment, tally = carry_out(store, suite, runs_on)
    assert tally.stop_reason is not None
    assert tally.stop_reason.startswith("time budget reached")
    assert len(rows_of(store, experiment)) == sum(tally.outcomes.values()) < 9
    suite.budget = Budget()
    _, rest = carry_out(store, suite, runs_on, experiment=experiment)
    assert rest.done_before + sum(rest.outcomes.values()) == 9
    assert len(rows_of(store, experiment)) == 9


def test_a_stop_lets_what_is_running_finish_and_a_resume_runs_the_rest(store: Store, runs_on: Executor) -> None:
    suite = a_suite("held-a", "held-b", "c", "d", concurrency=2)

    async def stopped(stop: Stop) -> None:
        await until(lambda: crew.active["mate"] == 2)
        stop.request("enough")
        crew.hold.set()

    experiment, tally = carry_out(store, suite, runs_on, meanwhile=stopped)
    assert (tally.stop_reason, dict(tally.outcomes)) == ("enough", {"passed": 2})
    assert store.resolve_experiment(experiment.experiment_id).status == "stopped"

    async def free(stop: Stop) -> None:
        crew.hold.set()

    _, rest = carry_out(store, suite, runs_on, experiment=experiment, meanwhile=free)
    assert (rest.done_before, rest.stop_reason, dict(rest.outcomes)) == (2, None, {"passed": 2})
    assert crew.asked == {"held-a": 1, "held-b": 1, "c": 1, "d": 1}


def test_a_program_that_takes_a_batch_gets_all_of_it_at_once(store: Store, runs_on: Executor, tmp_path: Path) -> None:
    program = tmp_path / "batch.py"
    program.write_text(BATCH)
    batch = CliConfig(command=["python3", str(program)], batch=True)
    suite = a_suite(*"abcd", agents={"mate": {}, "batch": batch}, trials=2)
    experiment, tally = carry_out(store, suite, runs_on)
    assert tally.outcomes == {"passed": 16}
    assert [note.code for note in tally.notes["batch"]] == ["batch_id_unknown"]
    (row, *_) = [row for row in store.runs(experiment.experiment_id) if row.agent == "batch"]
    assert b"one of 8" in (store.run(row.run_id).body or b"")


def test_the_runs_of_a_lost_worker_go_to_another_one_and_each_is_there_once(store: Store) -> None:
    links: list[Link] = []
    suite = a_suite(*(f"held-{number}" for number in range(6)), *(f"c-{number}" for number in range(30)), concurrency=6)

    async def cut(stop: Stop) -> None:
        await until(lambda: crew.active["mate"] == 6)
        links[0].cut.set()
        await until(lambda: len(links) == 3)
        crew.hold.set()

    experiment, tally = carry_out(store, suite, Linked(links=links), meanwhile=cut)
    assert (tally.stop_reason, tally.outcomes) == (None, {"passed": 36})
    assert len(set(rows_of(store, experiment))) == 36
    assert crew.most_active["mate"] >= 6
    assert sum(crew.asked.values()) > 36, "no run was with the worker when it was lost: the test showed nothing"


def test_what_a_run_of_a_lost_worker_had_called_is_not_forgotten(store: Store) -> None:
    links: list[Link] = []
    suite = a_suite("held-call", concurrency=1)
    experiment = create_experiment(store, suite, variables={})

    async def cut(stop: Stop) -> None:
        await until(lambda: bool(store.unfinished_runs(experiment.experiment_id)))
        [lost] = store.unfinished_runs(experiment.experiment_id).values()
        await until(lambda: len(store.events(lost)) == 3)
        for link in links:
            link.cut.set()
        await until(lambda: crew.asked["held-call"] == 2)
        crew.hold.set()

    _, tally = carry_out(store, suite, Linked(links=links), experiment=experiment, meanwhile=cut)
    assert tally.outcomes == {"passed": 1}
    [row] = store.runs(experiment.experiment_id)
    run = store.run(row.run_id)
    first, second = run.attempts
    assert first.fault is not None
    assert (first.number, first.fault.error_class, first.called) == (1, "interrupted", ["delete_all"])
    assert (second.number, second.fault) == (2, None)
    assert run.completeness is not None
    assert "calls_in_earlier_attempt" in [reason.code for reason in run.completeness.reasons]


@pytest.mark.parametrize("unheard", ['"ended"', '"stored"'])
def test_a_run_that_was_stored_by_a_lost_worker_is_not_run_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, unheard: str
) -> None:
    links: list[Link] = []
    reports = WorkerHost.reports
    experiment = create_experiment(store, a_suite("a", concurrency=1), variables={})

    async def lost(host: WorkerHost) -> bytes:
        said = await reports(host)
        if unheard.encode() in said:
            await until(lambda: bool(rows_of(store, experiment)))
            next(link for link in links if link.host is host).cut.set()
            await asyncio.sleep(60)
        return said

    monkeypatch.setattr(WorkerHost, "reports", lost)
    _, tally = carry_out(store, a_suite("a", concurrency=1), Linked(links=links), experiment=experiment)
    assert (tally.stop_reason, tally.outcomes) == (None, {"passed": 1})
    assert [link.cut.is_set() for link in links].count(True) == 1
    assert crew.asked == {"a": 1}
    assert rows_of(store, experiment) == [("mate", "a", 1, "passed")]


@pytest.mark.parametrize("losses", [1, 2])
def test_a_run_that_ended_and_was_not_stored_is_run_again_and_counted_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, losses: int
) -> None:
    links: list[Link] = []
    reports, put_through = WorkerHost.reports, Outbox.put_through
    ended = 0

    async def put_unless_lost(outbox: Outbox, run: Finished) -> None:
        if ended >= losses:
            await put_through(outbox, run)
            return
        cut = sum(link.cut.is_set() for link in links)
        await until(lambda: sum(link.cut.is_set() for link in links) > cut)

    async def lost(host: WorkerHost) -> bytes:
        nonlocal ended
        said = await reports(host)
        if b'"ended"' in said:
            ended += 1
            if ended <= losses:
                link = next(link for link in links if link.host is host)
                asyncio.get_running_loop().call_later(0.05, link.cut.set)
        return said

    monkeypatch.setattr(Outbox, "put_through", put_unless_lost)
    monkeypatch.setattr(WorkerHost, "reports", lost)
    experiment, tally = carry_out(store, a_suite("a", concurrency=1), Linked(links=links))
    assert (tally.stop_reason, tally.outcomes) == (None, {"passed": 1})
    assert crew.asked == {"a": losses + 1}
    assert rows_of(store, experiment) == [("mate", "a", 1, "passed")]


DEADLY = {"mate": PythonConfig(target="engine.executor_agents:deadly")}


def faults_of(store: Store, experiment: Experiment) -> dict[str, tuple[str, str | None]]:
    return {row.case_id: (row.outcome, row.error_class) for row in store.runs(experiment.experiment_id)}


def test_a_run_that_ends_its_worker_again_and_again_fails_and_no_other_does(store: Store) -> None:
    others = [f"c-{number}" for number in range(20)]
    suite = a_suite("ends-a", *others[:10], "ends-b", *others[10:], agents=DEADLY, concurrency=8)
    experiment, tally = carry_out(store, suite, Linked(links=[]))
    assert (tally.stop_reason, tally.outcomes) == (None, {"passed": 20, "failed": 2})
    faults = faults_of(store, experiment)
    assert {faults.pop(name) for name in ("ends-a", "ends-b")} == {("failed", "agent_exit")}
    assert set(faults.values()) == {("passed", None)}
    [row] = [row for row in store.runs(experiment.experiment_id) if row.case_id == "ends-a"]
    classes = [attempt.fault.error_class for attempt in store.run(row.run_id).attempts if attempt.fault is not None]
    assert classes == ["interrupted"] * (len(classes) - 1) + ["agent_exit"]
    assert crew.asked["ends-a"] <= 4


def test_the_class_of_a_run_that_ends_its_worker_can_be_moved(store: Store) -> None:
    suite = a_suite("ends", agents=DEADLY, faults={"agent_exit": "infrastructure"})
    experiment, _ = carry_out(store, suite, Linked(links=[]))
    assert faults_of(store, experiment) == {"ends": ("errored", "agent_exit")}


def test_a_run_whose_grader_ends_the_worker_is_not_blamed_on_the_agent(store: Store) -> None:
    grader = {"kind": "python", "target": "engine.executor_agents:deadly_check"}
    suite = a_suite("a", "graded", "b", agents=DEADLY, graders=[grader], concurrency=1)
    experiment, _ = carry_out(store, suite, Linked(links=[]))
    faults = faults_of(store, experiment)
    assert faults == {"a": ("passed", None), "graded": ("errored", "internal_error"), "b": ("passed", None)}


def test_a_run_that_loses_every_worker_is_errored_when_its_agent_runs_elsewhere(store: Store) -> None:
    links: list[Link] = []

    async def cut(stop: Stop) -> None:
        for number in range(1, 4):
            await until(lambda number=number: crew.asked["held-a"] == number)  # type: ignore[misc]
            for link in links:
                link.cut.set()

    experiment, _ = carry_out(store, a_suite("held-a"), Linked(links=links), meanwhile=cut)
    assert faults_of(store, experiment) == {"held-a": ("errored", "internal_error")}


def test_a_worker_that_does_not_respond_after_the_deadline_of_its_run_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PING_S", 0.05)
    monkeypatch.setattr(remote, "SILENT_S", 0.1)
    cases = [Case(id=each, instruction="x", timeout_s=0.1 if each == "keeps" else None) for each in ("a", "keeps", "b")]
    suite = a_suite(agents=DEADLY, concurrency=1, cases=cases)
    experiment, tally = carry_out(store, suite, Linked(links=[]))
    assert tally.stop_reason is None
    assert faults_of(store, experiment) == {
        "a": ("passed", None),
        "keeps": ("failed", "deadline_exceeded"),
        "b": ("passed", None),
    }
    assert crew.asked == {"a": 1, "keeps": 2, "b": 1}


def test_a_worker_that_cannot_start_says_why(store: Store) -> None:
    suite = a_suite("a")
    suite.agents = {"mate": CliConfig(command="cat -", env={"KEY": "${NOT_SET_ANYWHERE}"})}
    with pytest.raises(SeatrialError, match="NOT_SET_ANYWHERE"):
        carry_out(store, suite, Linked(links=[]))


def test_what_workers_are_sent_has_no_secret_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOUR_KEY", "hunter2-hunter2")
    sent: list[bytes] = []
    send, receive = Link.send, Link.receive

    async def keep_orders(link: Link, orders: bytes) -> None:
        sent.append(orders)
        await send(link, orders)

    async def keep_reports(link: Link) -> bytes:
        sent.append(reports := await receive(link))
        return reports

    monkeypatch.setattr(Link, "send", keep_orders)
    monkeypatch.setattr(Link, "receive", keep_reports)
    echo = "import os; print('ok ' + os.environ['KEY'])"
    suite = a_suite("a")
    suite.agents = {"mate": CliConfig(command=["python3", "-c", echo], env={"KEY": "${HARBOUR_KEY}"})}
    links: list[Link] = []
    experiment, tally = carry_out(store, suite, Linked(links=links))
    assert tally.outcomes == {"passed": 1}
    (row,) = store.runs(experiment.experiment_id)
    assert store.run(row.run_id).body == b"ok ${HARBOUR_KEY}\n"
    assert sent
    assert b"hunter2" not in b"".join(sent)


def test_a_job_has_no_password_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store._dialect, "url", make_url("postgresql://mate:hunter2@host/db?x=1&sslpassword=hunter2"))
    work = Assignment(
        experiment=Experiment(experiment_id="e", name="", suite={}, suite_hash="", created_at=0),
        suite=a_suite("a"),
        agents=["mate"],
        store=store,
        variables={},
        secrets=a_suite("a").secrets({}),
        stop=Stop(),
        clock=None,  # type: ignore[arg-type]
    )
    assert job_of(work).store == "postgresql://mate@host/db?x=1"
    assert "hunter2" in (store.address(with_password=True) or "")


def test_workers_elsewhere_need_a_store_that_they_can_open(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store, pytest.raises(SeatrialError, match="cannot share") as caught:
        carry_out(store, a_suite("a"), Linked(links=[]))
    assert "postgresql://" in str(caught.value.hint)


def test_an_executor_of_ones_own_is_found_by_its_name() -> None:
    @executor("tugboat")
    class Tugboat(Linked):
        pass

    assert EXECUTORS["tugboat"] is Tugboat
    with pytest.raises(SeatrialError, match="unknown executor 'tugboad'"):
        EXECUTORS.find("tugboad")
    with pytest.raises(SeatrialError, match="has no method `open`"):
        executor("raft")(type("Raft", (Executor,), {}))
