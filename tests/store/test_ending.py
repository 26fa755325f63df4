"""How served runs end, and what is forgotten of them, on both stores."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from strategies import records, served
from strategies.databases import mounted_disk
from strategies.served import NOW, admission, ending, interrupted

from seatrial.errors import SeatrialError
from seatrial.events.types import Interrupt
from seatrial.runs import RunHead, ServedKey
from seatrial.store import Store, open_store


@pytest.fixture
def serving(store: Store) -> Iterator[Store]:
    """A store with the server `server-1` and its run `run-1`."""
    presence = store.begin_serving("server-1", NOW)
    store.admit_run(admission()).wait()
    yield store
    presence.close()


def test_the_end_is_stored_with_the_record_and_the_status(serving: Store) -> None:
    serving.append_events("run-1", [b"1", b"2"], first=1)
    end = ending(first=3, events=[b"3", served.FINISHED], error_code="c", error_message="m", status="failed")
    assert serving.end_run(end).wait() is True
    run = serving.served_run("run-1")
    assert (run.status, run.error_code, run.error_message) == ("failed", "c", "m")
    assert run.ended_at is not None
    assert run.ended_at.timestamp() * 1000 == NOW + 1000
    assert [event for _, event in serving.events("run-1")] == [served.STARTED, b"1", b"2", b"3", served.FINISHED]
    assert serving.run_head("run-1") == RunHead("run-1", "thread-1", "failed", 0, 5, closed=True)
    recorded = serving.run("run-1")
    assert (recorded.experiment_id, recorded.key) == (None, ServedKey("crew", "thread-1"))
    assert serving.run_record("run-1").key == recorded.key
    assert [(hit.experiment_id, hit.key) for hit in serving.search("shipped")] == [(None, recorded.key)]
    assert (recorded.reading, recorded.steps) == (end.run.reading, end.run.steps)
    assert [hit.run_id for hit in serving.search("shipped")] == ["run-1"]


def test_a_run_ends_once(serving: Store, where: str) -> None:
    assert serving.end_run(ending()).wait() is True
    with open_store(where) as other:
        for store in (serving, other):
            assert store.end_run(ending(first=2, status="failed")).wait() is False
            assert store.end_run(ending()).wait() is False
    assert serving.served_run("run-1").status == "completed"
    assert len(serving.events("run-1")) == 2


def test_a_run_that_has_ended_takes_no_events(serving: Store, where: str) -> None:
    with open_store(where) as other:
        assert other.append_events("run-1", [b"1"], first=1).wait() == 1
        assert serving.end_run(ending(first=2)).wait() is True
        for store in (serving, other):
            for first in (2, 3, None):
                with pytest.raises(SeatrialError) as caught:
                    store.append_events("run-1", [b"late"], first=first).wait()
                assert caught.value.code == "run_ended"
    assert len(serving.events("run-1")) == 3


def test_an_end_in_another_place_is_refused_and_says_where_the_head_is(serving: Store, where: str) -> None:
    with open_store(where) as other:
        other.append_events("run-1", [b"1", b"2"], first=1).wait()
    for first in (0, 1, 2, 4):
        with pytest.raises(SeatrialError) as caught:
            serving.end_run(ending(first=first)).wait()
        assert (caught.value.code, caught.value.details) == ("sequence_conflict", {"head": 2})
    assert serving.served_run("run-1").status == "running"
    assert serving.end_run(ending(first=3)).wait() is True


def test_of_two_servers_that_end_a_run_one_does(postgres_url: str) -> None:
    with open_store(postgres_url) as port, open_store(postgres_url) as starboard:
        claims = [port.begin_serving("server-1", NOW), starboard.begin_serving("server-2", NOW)]
        for turn in range(30):
            run_id = f"run-{turn}"
            port.admit_run(admission(run_id, run_id)).wait()
            ends = [ending(run_id, events=[b'"%d"' % number], status="failed") for number in (1, 2)]
            receipts = [port.end_run(ends[0]), starboard.end_run(ends[1])]
            results = [receipt.wait() for receipt in receipts]
            assert sorted(results) == [False, True]
            winner = results.index(True) + 1
            assert [event for _, event in port.events(run_id)] == [served.STARTED, b'"%d"' % winner]
        for claim in claims:
            claim.close()


def test_nothing_comes_after_the_end_when_two_servers_write(postgres_url: str) -> None:
    with open_store(postgres_url) as port, open_store(postgres_url) as starboard:
        claim = port.begin_serving("server-1", NOW)
        for turn in range(40):
            run_id = f"run-{turn}"
            port.admit_run(admission(run_id, run_id)).wait()
            appends = [port.append_events(run_id, [b"x"]) for _ in range(turn % 5)]
            ended = False
            while not ended:
                try:
                    ended = starboard.end_run(ending(run_id, starboard.run_head(run_id).following)).wait()
                except SeatrialError as error:
                    if error.code != "sequence_conflict":
                        raise
            appends += [port.append_events(run_id, [b"y"]) for _ in range(3)]
            for append in appends:
                with suppress(SeatrialError):
                    append.wait()
            stored = port.events(run_id)
            assert [sequence for sequence, _ in stored] == list(range(len(stored)))
            assert [event for _, event in stored].index(served.FINISHED) == len(stored) - 1
        claim.close()


def test_interrupts_come_back_whole(serving: Store) -> None:
    asked = Interrupt(
        "a", "tool_call", "sure?", "call-1", {"type": "object"}, "2030-01-01T00:00:00Z", {"k": [1]}, "sub"
    )
    serving.end_run(interrupted(interrupts=[asked, Interrupt("b", "input_required")])).wait()
    assert serving.served_run("run-1").interrupts == [asked, Interrupt("b", "input_required")]
    assert serving.run_head("run-1").status == "input_required"
    assert serving.run_head("run-1").closed


def test_what_is_not_an_end_is_refused(serving: Store) -> None:
    for bad in (
        ending(status="input_required"),
        ending(interrupts=[Interrupt("a", "why")]),
        ending(events=[]),
        ending(run=records.run("run-1", run_id="run-1", status="running")),
    ):
        with pytest.raises(SeatrialError):
            serving.end_run(bad)
    with pytest.raises(SeatrialError) as caught:
        serving.end_run(ending("nope")).wait()
    assert caught.value.code == "not_found"


def test_a_run_is_marked_while_it_goes_on(serving: Store) -> None:
    assert serving.mark_run("run-1", status="pending").wait().status == "pending"
    run = serving.mark_run("run-1", status="running", cancel_requested=True).wait()
    assert (run.status, run.cancel_requested) == ("running", True)
    assert serving.served_run("run-1") == run
    assert serving.mark_run("run-1").wait() == run
    serving.end_run(ending(status="cancelled")).wait()
    ended = serving.served_run("run-1")
    assert serving.mark_run("run-1", status="running", cancel_requested=False).wait() == ended
    with pytest.raises(SeatrialError):
        serving.mark_run("nope", cancel_requested=True).wait()
    with pytest.raises(SeatrialError):
        serving.mark_run("run-1", status="completed")  # type: ignore[arg-type]  # what a caller may get wrong


def test_old_events_are_forgotten_by_the_append_and_the_last_is_kept(serving: Store) -> None:
    serving.append_events("run-1", [b"1", b"2"])
    serving.append_events("run-1", [b"3"])
    assert serving.forget_events("run-1", 2).wait() == 1, "1 and 2 were appended together"
    assert serving.events("run-1") == [(1, b"1"), (2, b"2"), (3, b"3")]
    assert serving.forget_events("run-1", 100).wait() == 3
    assert serving.append_events("run-1", [b"4"]).wait() == 4
    serving.end_run(ending(first=5, events=[b"5", served.FINISHED])).wait()
    assert serving.forget_events("run-1", 0).wait() == 3
    assert serving.forget_events("run-1", 7).wait() == 5
    assert serving.events("run-1") == [(5, b"5"), (6, served.FINISHED)]
    assert serving.events("run-1", after=5) == [(6, served.FINISHED)]
    assert serving.events("run-1", after=2, limit=1) == [(5, b"5")]
    assert serving.events("run-1", after=6) == []
    assert serving.run_head("run-1") == RunHead("run-1", "thread-1", "completed", 5, 7, closed=True)
    with pytest.raises(SeatrialError):
        serving.forget_events("nope", 1).wait()


def test_a_sweep_finds_the_longest_ended_runs_until_nothing_is_left_to_forget(serving: Store) -> None:
    for number in range(2, 6):
        serving.admit_run(admission(f"run-{number}", f"thread-{number}")).wait()
    for number in range(1, 5):
        serving.end_run(ending(f"run-{number}", ended_at=NOW - number)).wait()
    assert serving.ended_before(NOW - 1, 10) == ["run-4", "run-3", "run-2"]
    assert serving.ended_before(NOW + 1, 2) == ["run-4", "run-3"]
    seen: list[str] = []
    while found := serving.ended_before(NOW + 1, 2):
        for run_id in found:
            assert serving.forget_events(run_id, serving.run_head(run_id).following).wait() == 1
        seen += found
    assert seen == ["run-4", "run-3", "run-2", "run-1"]
    assert serving.events("run-1") == [(1, served.FINISHED)]


def test_a_full_disk_refuses_events_and_ends_until_there_is_room(tmp_path: Path) -> None:
    with mounted_disk(tmp_path / "disk", 3) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        with open_store(disk / "store.db") as store:
            presence = store.begin_serving("server-1", NOW)
            store.admit_run(admission()).wait()
            dice = random.Random(1)
            following = 1

            def fill() -> None:
                nonlocal following
                while True:
                    event = b'"%s"' % dice.randbytes(30_000).hex().encode()
                    store.append_events("run-1", [event], first=following).wait()
                    following += 1

            with pytest.raises(SeatrialError) as caught:
                fill()
            assert caught.value.code == "store_full"
            large = ending(first=following, events=[dice.randbytes(100_000).hex().encode()])
            with pytest.raises(SeatrialError) as caught:
                store.end_run(large).wait()
            assert caught.value.code == "store_full"
            assert store.run_head("run-1") == RunHead("run-1", "thread-1", "running", 0, following, closed=False)
            ballast.unlink()
            assert store.append_events("run-1", [b"small"], first=following).wait() == following
            assert store.end_run(ending(first=following + 1)).wait() is True
            assert store.run_head("run-1").closed
            presence.close()
