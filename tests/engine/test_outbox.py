from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from strategies import records

from engine.setting import Scripted, a_suite, only_run, run_suite, runs_of, say_ok
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.python.returned import read_returned
from seatrial.driver import Redaction
from seatrial.engine import trial
from seatrial.engine.outbox import MAX_UNCONFIRMED, TOGETHER, Outbox
from seatrial.engine.trial import Finished
from seatrial.errors import SeatrialError
from seatrial.events.types import TextMessageChunk
from seatrial.store import Store, open_store


def test_a_run_that_no_store_can_keep_is_errored_and_stops_nothing(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = read_returned("ok")
        if request.case.id == "case-1":
            reply.http_status = object()  # type: ignore[assignment]  # what is not JSON cannot be kept
        return reply

    experiment, _ = run_suite(store, a_suite(3), {"crew": Scripted(answer)})
    runs = runs_of(store, experiment)
    assert [run.status for run in runs] == ["completed", "failed", "completed"]
    assert runs[1].errored
    fault = runs[1].fault
    assert fault is not None
    assert fault.error_class == "recording_failed"
    assert {key.case_id: outcome for key, outcome in store.done_keys(experiment.experiment_id).items()}[
        "case-1"
    ] == "errored"


def test_a_run_that_is_recorded_by_another_process_first_counts_as_that_one_found_it(
    store: Store, tmp_path: Path
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-1":
            # Another process at the same experiment is quicker.
            with open_store(tmp_path / "store.db") as other:
                run = records.run("case-1", experiment_id=str(request.experiment_id), run_id="theirs")
                assert await other.record_run(run)
        await emit(TextMessageChunk(message_id="m", delta="ok"))
        await asyncio.sleep(2 * trial.FLUSH_S if request.case.id != "case-0" else 0)
        return read_returned("ok")

    experiment, tally = run_suite(store, a_suite(3), {"crew": Scripted(answer)})
    assert tally.elsewhere == 1
    assert tally.stop_reason is None
    runs = runs_of(store, experiment)
    assert [run.run_id == "theirs" for run in runs] == [False, True, False]
    assert all(run.status == "completed" for run in runs)


def finished(number: int) -> Finished:
    run = records.run(number)
    return Finished(run, run, [], 0, [], Redaction(None))


def test_never_more_runs_wait_for_their_commit_than_allowed(store: Store) -> None:
    count = MAX_UNCONFIRMED + 50
    store.create_experiment(records.experiment(), records.cases(count))

    async def scene() -> None:
        outbox = Outbox(store)
        for number in range(count):
            await outbox.put(finished(number))
            assert len(outbox._waiting) <= MAX_UNCONFIRMED
        await outbox.empty()

    asyncio.run(scene())
    assert len(store.done_keys("exp-1")) == count


def test_runs_that_end_in_one_turn_of_the_event_loop_go_to_the_store_together(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(TOGETHER + 3))

    async def scene() -> None:
        outbox = Outbox(store)
        for number in range(3):
            await outbox.put(finished(number))
        assert len(outbox._waiting) == 0
        await asyncio.sleep(0)
        assert len(outbox._waiting) == 3
        for number in range(3, 3 + TOGETHER):
            await outbox.put(finished(number))
        assert not outbox._gathered
        await outbox.empty()

    asyncio.run(scene())
    assert len(store.done_keys("exp-1")) == TOGETHER + 3


def test_a_store_that_takes_nothing_more_is_told_of_by_the_next_run_and_at_the_end(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(3))

    async def scene() -> None:
        outbox = Outbox(store)
        await outbox.put(finished(0))
        store.close()
        await asyncio.sleep(0)
        with pytest.raises(SeatrialError, match="closed"):
            await outbox.put(finished(1))
        with pytest.raises(SeatrialError, match="closed"):
            await outbox.empty()

    asyncio.run(scene())


def test_two_processes_at_one_store_do_not_disturb_each_other(empty_store: Path, tmp_path: Path) -> None:
    where = shutil.copy(empty_store, tmp_path / "store.db")
    with open_store(where) as first, open_store(where) as second:
        one, _ = run_suite(first, a_suite(5), {"crew": Scripted(say_ok)})
        two, _ = run_suite(second, a_suite(1), {"crew": Scripted(say_ok)})
        assert len(runs_of(second, one)) == 5
        assert only_run(first, two).status == "completed"
