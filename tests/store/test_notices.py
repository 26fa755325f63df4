"""Being told what other processes commit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import records
from strategies.served import NOW, admission, answers, ending, interrupted

from seatrial.runs import RunKey
from seatrial.store import Store, open_store
from seatrial.store.postgres_sessions import notices_of, read_notice

CUT_OFF_OTHERS = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"


class Heard:
    """Run ids as they are heard."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()

    def __call__(self, run_id: str) -> None:
        self._queue.put(run_id)

    def next(self, count: int = 1) -> set[str]:
        return {self._queue.get(timeout=60) for _ in range(count)}

    @property
    def silent(self) -> bool:
        return self._queue.empty()


@pytest.fixture
def writing(postgres_url: str) -> Iterator[Store]:
    """A server's store."""
    with open_store(postgres_url) as store:
        presence = store.begin_serving("server-1", NOW)
        yield store
        presence.close()


@pytest.fixture
def listening(postgres_url: str) -> Iterator[Store]:
    """The same database, seen by another process."""
    with open_store(postgres_url) as store:
        yield store


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_that_changes_a_run_is_heard(writing: Store, listening: Store) -> None:
    heard = Heard()
    listener = listening.listen(heard)
    assert listener.live
    writing.admit_run(admission()).wait()
    assert heard.next() == {"run-1"}
    writing.append_events("run-1", [b"1"]).wait()
    assert heard.next() == {"run-1"}
    writing.mark_run("run-1", cancel_requested=True).wait()
    assert heard.next() == {"run-1"}
    writing.end_run(interrupted(first=2)).wait()
    assert heard.next() == {"run-1"}
    writing.admit_run(admission("run-2", resume=answers("ask-1"))).wait()
    assert heard.next(2) == {"run-1", "run-2"}
    writing.create_experiment(records.experiment(), records.cases(2))
    writing.begin_run("exp-1", RunKey("crew", "case-0", 1), "trial-0").wait()
    assert heard.next() == {"trial-0"}
    writing.record_run(records.run(1, run_id="trial-1")).wait()
    assert heard.next() == {"trial-1"}
    writing.mark_run("run-1", cancel_requested=True).wait()  # has ended: nothing changes
    writing.append_events("run-2", [b"1"]).wait()
    assert heard.next() == {"run-2"}
    assert heard.silent
    listener.close()
    assert not listener.live


def test_what_this_process_writes_itself_is_not_heard(writing: Store, listening: Store) -> None:
    own, other = Heard(), Heard()
    listeners = [writing.listen(own), listening.listen(other)]
    writing.admit_run(admission()).wait()
    assert other.next() == {"run-1"}
    listening.append_events("run-1", [b"1"]).wait()
    assert own.next() == {"run-1"}
    assert other.silent
    for listener in listeners:
        listener.close()
    writing.append_events("run-1", [b"2"]).wait()
    assert own.silent


def test_nothing_is_heard_before_it_can_be_read(writing: Store, listening: Store) -> None:
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    listener = listening.listen(lambda run_id: seen.put(listening.run_head(run_id).following))
    writing.admit_run(admission()).wait()
    for number in range(1, 20):
        writing.append_events("run-1", [b"x"]).wait()
        while seen.get(timeout=60) < number + 1:
            pass
    listener.close()


def test_a_listener_that_is_cut_off_connects_again(writing: Store, listening: Store, postgres_url: str) -> None:
    heard = Heard()
    listener = listening.listen(heard)
    writing.admit_run(admission()).wait()
    assert heard.next() == {"run-1"}
    with psycopg.connect(postgres_url, autocommit=True) as admin:

        def sessions() -> set[int]:
            return {pid for (pid,) in admin.execute(LISTENERS)}

        before = sessions()
        admin.execute(CUT_OFF_OTHERS)
        # It may have connected again by now.
        until(lambda: len(sessions() - before) == 1)
    until(lambda: listener.live)
    writing.append_events("run-1", [b"1"]).wait()
    assert heard.next() == {"run-1"}
    listener.close()
    listener.close()


def test_a_listener_ends_while_it_cannot_connect(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        listener = store.listen(lambda _: None)
        begun = time.monotonic()
        listener.close()
        assert time.monotonic() - begun < 30
    assert not [thread for thread in threading.enumerate() if thread.name == "seatrial-listener"]


def test_sqlite_tells_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("silent") / "store.db"
    heard = Heard()
    with open_store(path) as store, open_store(path) as other:
        listener = other.listen(heard)
        assert not listener.live
        presence = store.begin_serving("server-1", NOW)
        store.admit_run(admission()).wait()
        store.end_run(ending()).wait()
        presence.close()
        listener.close()
    assert heard.silent


@given(st.lists(st.text(min_size=1, max_size=256).filter(lambda text: text.isprintable() or "\n" in text), max_size=60))
def test_notices_name_every_run_once_and_are_not_too_long(run_ids: list[str]) -> None:
    written = list(notices_of(run_ids))
    assert all(len(notice.encode()) < 8000 for notice in written)
    assert [run_id for notice in written for run_id in read_notice(notice)] == list(dict.fromkeys(run_ids))


def test_many_runs_take_several_notices(writing: Store, listening: Store) -> None:
    heard = Heard()
    listener = listening.listen(heard)
    names = [f"{number}-" + "\N{GRINNING FACE}" * 200 for number in range(40)]
    for receipt in [writing.admit_run(admission(name, name)) for name in names]:
        receipt.wait()
    assert heard.next(40) == set(names)
    listener.close()


@pytest.mark.parametrize("text", ["", "run-1", "[1]", "{", '"a"', "null"])
def test_a_notice_of_somebody_else_is_passed_over(text: str) -> None:
    assert read_notice(text) == []


def test_control_characters_do_not_make_a_notice_too_long() -> None:
    longest = "\x01" * 1024
    [notice] = notices_of([longest])
    assert len(notice.encode()) < 8000
    assert msgspec.json.decode(notice) == [longest]
