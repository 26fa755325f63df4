"""Reading what the run service has, on both stores."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from strategies import records
from strategies.served import FINISHED, NOW, admission, ending, interrupted

from seatrial.errors import SeatrialError
from seatrial.runs import Fault, RunHead, RunKey
from seatrial.store import Store, open_store
from seatrial.store import served as served_module


@pytest.fixture
def serving(store: Store) -> Iterator[Store]:
    """A store with the server `server-1`."""
    presence = store.begin_serving("server-1", NOW)
    yield store
    presence.close()


def paged(store: Store, limit: int, **where: object) -> list[str]:
    found: list[str] = []
    before: str | None = None
    while True:
        runs, before = store.served_runs(limit=limit, before=before, **where)  # type: ignore[arg-type]
        found += [run.run_id for run in runs]
        if before is None:
            return found


def test_runs_are_listed_the_newest_first_page_by_page(serving: Store) -> None:
    for number in range(10):
        # Two in the same millisecond, and a clock that once went back.
        at = NOW + number // 2 - (100 if number == 7 else 0)
        agent = "odd" if number % 2 else "even"
        serving.admit_run(
            admission(f"run-{number}", f"thread-{number % 3}-{number}", agent=agent, created_at=at)
        ).wait()
    newest_first = [f"run-{number}" for number in (9, 8, 6, 5, 4, 3, 2, 1, 0, 7)]
    for limit in (1, 3, 5, 10, 50):
        assert paged(serving, limit) == newest_first
        assert paged(serving, limit, agent="odd") == [run for run in newest_first if int(run[4:]) % 2]
    serving.end_run(ending("run-4")).wait()
    serving.end_run(interrupted("run-5")).wait()
    assert paged(serving, 2, statuses=frozenset({"completed", "input_required"})) == ["run-5", "run-4"]
    assert paged(serving, 2, statuses=frozenset({"running"}), agent="even") == ["run-8", "run-6", "run-2", "run-0"]
    assert paged(serving, 2, statuses=frozenset()) == []
    assert paged(serving, 2, thread_id="thread-0-6") == ["run-6"]
    assert [run.run_id for run in serving.active_runs("server-1")] == [
        run for run in reversed(newest_first) if run not in ("run-4", "run-5")
    ]
    assert serving.active_runs("server-2") == []


@pytest.mark.parametrize("before", ["", "x", "1", "1.", "1.2.3", "1.-2", "9" * 30 + ".1", "\0", "1.²"])
def test_what_is_no_place_in_the_list_is_refused(serving: Store, before: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        serving.served_runs(before=before)
    assert caught.value.code == "invalid_request"


def test_what_is_not_there_is_not_found(serving: Store) -> None:
    serving.create_experiment(records.experiment(), records.cases(1))
    serving.record_run(records.run(run_id="trial")).wait()
    for run_id in ("nope", "trial"):
        for read in (serving.served_run, serving.run_input):
            with pytest.raises(SeatrialError) as caught:
                read(run_id)
            assert caught.value.code == "not_found"
    with pytest.raises(SeatrialError):
        serving.run_head("nope")
    assert serving.thread_runs("nope") == []
    assert serving.served_runs(agent="nope") == ([], None)


def test_the_order_of_a_thread_does_not_depend_on_the_clock(serving: Store) -> None:
    for number in range(5):
        serving.admit_run(admission(f"run-{number}", created_at=NOW - number)).wait()
        serving.end_run(ending(f"run-{number}")).wait()
    assert [run.run_id for run in serving.thread_runs("thread-1")] == [f"run-{number}" for number in range(5)]


def test_every_run_of_the_store_has_a_head(serving: Store) -> None:
    serving.create_experiment(records.experiment(), records.cases(4))
    serving.begin_run("exp-1", RunKey("crew", "case-0", 1), "begun")
    serving.append_events("begun", [b"0", b"1"])
    serving.record_run(records.run(1, run_id="done"), events=[b"0", b"1", b"2"])
    serving.record_run(
        records.run(2, run_id="errored", status="failed", fault=Fault("agent_unreachable", "refused"))
    ).wait()
    assert serving.run_head("begun") == RunHead("begun", "exp-1", "running", 0, 2, closed=False)
    assert serving.run_head("done") == RunHead("done", "exp-1", "completed", 0, 3, closed=True)
    assert serving.run_head("errored") == RunHead("errored", "exp-1", "failed", 0, 0, closed=True)


def test_the_head_and_the_tail_of_a_long_run_cost_what_those_of_a_short_one_do(serving: Store) -> None:
    event = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"%s"}' % (b"x" * 50)
    count = 20_000
    for name in ("short", "long"):
        serving.admit_run(admission(name, name)).wait()
    serving.append_events("short", [event] * 5)
    for _ in range(count // 20):
        receipt = serving.append_events("long", [event] * 20)
    receipt.wait()

    best = {"short": 1.0, "long": 1.0}
    for _ in range(50):  # in turns: what else the machine does can make a try slower, but none faster
        for run_id in best:
            begun = time.perf_counter()
            head = serving.run_head(run_id)
            events = serving.events(run_id, after=head.following - 3)
            best[run_id] = min(best[run_id], time.perf_counter() - begun)
            assert [sequence for sequence, _ in events] == [head.following - 2, head.following - 1]
    assert serving.run_head("long").following == count + 1
    assert best["long"] < 3 * best["short"] + 0.001


def test_a_reader_sees_a_whole_beginning_of_the_log_while_another_process_writes(serving: Store, where: str) -> None:
    serving.admit_run(admission()).wait()

    def write() -> None:
        with open_store(where) as other:
            for number in range(1, 600, 3):
                receipt = other.append_events("run-1", [b"%d" % number, b"%d" % (number + 1), b"%d" % (number + 2)])
            receipt.wait()
            other.end_run(ending(first=601)).wait()

    writer = threading.Thread(target=write)
    writer.start()
    seen = [0]
    while not (head := serving.run_head("run-1")).closed or seen[-1] < head.following - 1:
        page = serving.events("run-1", after=seen[-1], limit=50)
        assert seen[-1] + len(page) >= min(head.following - 1, seen[-1] + 50), "what the head promises can be read"
        for sequence, event in page:
            assert sequence == seen[-1] + 1
            assert event == (b"%d" % sequence if sequence <= 600 else FINISHED)
            seen.append(sequence)
    writer.join()
    assert len(seen) == 602


def test_heads_are_looked_up_by_indexes_only(serving: Store) -> None:
    with serving._dialect.reading.connect() as connection:
        head = served_module._HEAD.params(run_id="r")
        query = str(head.compile(connection, compile_kwargs={"literal_binds": True}))
        if serving._dialect.name.startswith("postgresql"):
            connection.execute(sa.text("SET enable_seqscan = off"))  # small tables are scanned whatever the indexes
            plan = connection.exec_driver_sql("EXPLAIN " + query).scalars().all()
            assert not [line for line in plan if "Seq Scan" in line], plan
            assert sum("Limit" in line for line in plan) == 2
            connection.rollback()
        else:
            rows = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + query).all()
            steps = [row[3] for row in rows]
            assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step], steps
