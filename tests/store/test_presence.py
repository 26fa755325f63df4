"""Which servers are alive."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from strategies import records
from strategies.served import NOW, admission

from seatrial.errors import SeatrialError
from seatrial.store import Store, open_store
from seatrial.store.presence import Presence

SERVER = """
import sys
from strategies import records
from strategies.served import NOW, admission
from seatrial.store import open_store

store = open_store(sys.argv[1])
presence = store.begin_serving(sys.argv[2], NOW)
store.admit_run(admission("left", "left", server_id=sys.argv[2])).wait()
print("serving", flush=True)
sys.stdin.read()
"""
CUT_OFF_OTHERS = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def server(where: str, server_id: str) -> subprocess.Popen[str]:
    """Another process that serves this store, and has a run."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, where, server_id],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "serving\n"
    return process


def until_dead(presence: Presence, server_id: str) -> None:
    """Wait until a server is seen to be gone: the database takes a moment to notice that nobody is connected."""
    deadline = time.monotonic() + 60
    while presence.dead([server_id]) != {server_id}:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_sqlite_file_has_one_server_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store, open_store(path) as other:
        first = store.begin_serving("one", NOW)
        with pytest.raises(SeatrialError, match="another server has") as caught:
            other.begin_serving("two", NOW)
        assert caught.value.code == "conflict"
        assert caught.value.hint is not None
        first.close()
        first.close()
        second = other.begin_serving("two", NOW)
        assert not second.lost
        assert second.dead(["one", "two", "three"]) == {"one", "three"}
        second.close()


def test_a_file_beside_the_store_that_cannot_be_locked_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "store.db-serve").mkdir()
    with open_store(tmp_path / "store.db") as store, pytest.raises(SeatrialError) as caught:
        store.begin_serving("one", NOW)
    assert caught.value.code == "store_unavailable"


def test_a_killed_server_is_dead_and_its_runs_are_known(where: str) -> None:
    process = server(where, "killed")
    with open_store(where) as store:
        if "://" not in where:
            with pytest.raises(SeatrialError):
                store.begin_serving("next", NOW)
        process.kill()
        process.communicate()
        presence = store.begin_serving("next", NOW)
        until_dead(presence, "killed")
        assert presence.dead(["killed", "next"]) == {"killed"}
        assert [run.run_id for run in store.active_runs("killed")] == ["left"]
        presence.close()


def test_servers_of_one_postgresql_see_each_other(postgres_url: str) -> None:
    process = server(postgres_url, "other")
    with open_store(postgres_url) as store:
        presence = store.begin_serving("own", NOW)
        assert presence.dead(["own", "other", "never"]) == {"never"}
        process.communicate("")
        until_dead(presence, "other")
        with open_store(postgres_url) as twin, pytest.raises(SeatrialError) as caught:
            twin.begin_serving("own", NOW)
        assert caught.value.code == "conflict"
        presence.close()


def test_a_claim_that_was_lost_can_be_made_again(postgres_url: str) -> None:
    with open_store(postgres_url) as store, open_store(postgres_url) as other:
        presence, watch = store.begin_serving("own", NOW), other.begin_serving("watch", NOW)
        assert watch.dead(["own"]) == set()
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(CUT_OFF_OTHERS)
        assert presence.dead(["watch"]) == set(), "who is not known to be alive says nothing of others"
        assert presence.lost
        assert watch.dead(["own"]) == set()
        watch.renew()
        assert watch.dead(["own"]) == {"own"}
        presence.renew()
        presence.renew()
        assert watch.dead(["own"]) == set()
        watch.close()
        presence.close()


def renewed_at_last(presence: Presence) -> None:
    """Renew a claim once the database has noticed that a connection was closed."""
    for _ in range(600):
        try:
            return presence.renew()
        except SeatrialError as error:
            if error.code != "store_unavailable":
                raise
            time.sleep(0.05)
    return presence.renew()


def test_a_claim_is_not_made_again_while_the_database_holds_the_old_one(postgres_url: str) -> None:
    with open_store(postgres_url) as store, open_store(postgres_url) as other:
        presence = store.begin_serving("own", NOW)
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(CUT_OFF_OTHERS)
        presence.dead([])
        # As far as the database can tell, this is the connection that was lost.
        lingering = other.begin_serving("own", NOW)
        with pytest.raises(SeatrialError) as caught:
            presence.renew()
        assert caught.value.code == "store_unavailable"
        lingering.close()
        renewed_at_last(presence)
        presence.close()


def test_beginning_to_serve_again_keeps_what_there_is(store: Store) -> None:
    store.begin_serving("own", NOW).close()
    store.admit_run(admission(server_id="own")).wait()
    store.begin_serving("own", NOW + 1).close()
    assert [run.run_id for run in store.active_runs("own")] == ["run-1"]


def test_an_experiment_is_no_server(filled: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        filled.begin_serving("exp-1", NOW)
    assert caught.value.code == "conflict"
    filled.begin_serving("server", NOW).close()


HOLDER = """
import sys
from seatrial.store import open_store

store = open_store(sys.argv[1])
hold = store.hold_experiment("exp-1")
print("held", flush=True)
sys.stdin.read()
"""


def test_an_experiment_is_run_by_one_process_at_a_time_also_when_that_is_killed(filled: Store, where: str) -> None:
    hold = filled.hold_experiment("exp-1")
    with open_store(where) as other, pytest.raises(SeatrialError) as caught:
        other.hold_experiment("exp-1")
    assert caught.value.code == "conflict"
    assert f"process {os.getpid()} on" in caught.value.message
    hold.close()
    command = [sys.executable, "-c", HOLDER, where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SeatrialError, match=f"process {holder.pid} on"):
            filled.hold_experiment("exp-1")
        holder.kill()
        holder.wait()
    filled.hold_experiment("exp-1").close()


def test_a_hold_that_broke_is_taken_again_unless_another_process_was_quicker(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(postgres_url) as store, open_store(postgres_url) as other:
        store.create_experiment(records.experiment(), records.cases(1))
        hold = store.hold_experiment("exp-1")
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(CUT_OFF_OTHERS)
            hold.check()
            with pytest.raises(SeatrialError, match="is being run by"):
                other.hold_experiment("exp-1")
            admin.execute(CUT_OFF_OTHERS)
        monkeypatch.setattr("seatrial.store.postgres_sessions.this_process", lambda: "process 1 on elsewhere")
        taken = other.hold_experiment("exp-1")
        with pytest.raises(SeatrialError, match="process 1 on elsewhere"):
            hold.check()
        taken.close()
        hold.close()
