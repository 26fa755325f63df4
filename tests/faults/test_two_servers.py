"""Two servers on one PostgreSQL: a run on one, its subscribers on the other."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from strategies.databases import database

from faults.serving import Server, frames, stored_envelopes
from seatrial.store import open_store

# Like `seatrial`, but for a server that does not look again by itself for what happens on others.
DEAF = """
import sys
from seatrial.server.feed import Feeds
Feeds.__init__.__kwdefaults__["poll_s"] = 3600.0
from seatrial.cli import main
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def two_servers(directory: Path, postgres_server: str, **second: Any) -> Iterator[tuple[Server, Server]]:
    """Two servers on a database of their own; `second` is what is special about the second."""
    for name in ("one", "two"):
        (directory / name).mkdir()
    with (
        database(postgres_server) as url,
        Server(directory / "one", url) as one,
        Server(directory / "two", url, **second) as two,
    ):
        yield one, two


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[tuple[Server, Server]]:
    """Two servers for the tests that leave them as they are."""
    with two_servers(tmp_path_factory.mktemp("pair"), postgres_server) as pair:
        yield pair


def test_a_subscriber_on_the_other_server_sees_the_run_as_it_happens(tmp_path: Path, postgres_server: str) -> None:
    """It is woken by notifications: the server that it is at would look again for itself in an hour only."""
    deaf = tmp_path / "deaf.py"
    deaf.write_text(DEAF)
    special: Any = {"program": [sys.executable, str(deaf)], "options": ["--keepalive-s", "1"]}
    sequences: list[int] = []
    quiet = 0
    with two_servers(tmp_path, postgres_server, **special) as (one, two):
        run_id = one.begin_talk(150, 0.01)
        with two.connect(f"/v1/runs/{run_id}/stream") as connection:
            for sequence, frame in frames(connection):
                if sequence is not None:
                    sequences.append(sequence)
                elif frame["type"] == "TERMINAL":
                    break
                else:
                    quiet += 1
                    assert quiet < 60, "nobody tells it anything"
        assert frame == {"type": "TERMINAL", "runId": run_id, "status": "completed"}
    assert sequences == list(range(156))


def test_a_run_is_cancelled_through_the_other_server(pair: tuple[Server, Server]) -> None:
    one, two = pair
    run_id = one.begin_talk(100_000, 0.01)
    time.sleep(0.3)
    assert two.ask("POST", f"/v1/runs/{run_id}/cancel")[0] in (200, 202)
    assert two.wait_ended(run_id)["status"] == "cancelled"
    with open_store(two.store) as store:
        last = json.loads(stored_envelopes(store, run_id)[-1])["event"]
    assert (last["type"], last["outcome"]) == ("RUN_FINISHED", {"type": "cancelled"})


def test_a_thread_has_one_active_run_on_all_servers_together(pair: tuple[Server, Server]) -> None:
    one, two = pair
    run_id = one.begin_talk(100_000, 0.01, threadId="shared")
    request = {
        "agent": "talker",
        "threadId": "shared",
        "input": {"messages": [{"id": "u2", "role": "user", "content": "1 0"}]},
    }
    status, problem = two.ask("POST", "/v1/runs", request)
    assert (status, problem["code"], problem["runId"]) == (409, "thread_busy", run_id)


def test_the_runs_of_a_server_that_died_are_ended_by_the_other_one(tmp_path: Path, postgres_server: str) -> None:
    with two_servers(tmp_path, postgres_server) as (one, two):
        run_id = one.begin_talk(100_000, 0.01)
        mine = two.begin_talk(100_000, 0.01)
        time.sleep(0.3)
        with two.connect(f"/v1/runs/{run_id}/stream") as connection:
            one.kill()
            last = [frame for _, frame in frames(connection)][-2:]
        assert last[0]["event"]["code"] == "server_restarted"
        assert last[1] == {"type": "TERMINAL", "runId": run_id, "status": "failed"}
        assert two.ask("GET", f"/v1/runs/{mine}")[1]["status"] == "running"


def test_events_are_pushed_to_both_servers_in_turn(pair: tuple[Server, Server]) -> None:
    _, run = pair[0].ask("POST", "/v1/runs", {"agent": "outside", "push": True})
    path = f"/v1/runs/{run['runId']}/events"
    for number in range(10):
        event = {"type": "CUSTOM", "name": "tick", "value": number, "eventId": f"tick-{number}"}
        for server in (pair[number % 2], pair[1 - number % 2]):  # and again, to the other one: it is stored once
            status, answer = server.ask("POST", path, {"events": [event]})
            assert (status, answer["sequences"]) == (200, [number + 1]), answer
    end = {"type": "RUN_FINISHED", "threadId": run["threadId"], "runId": run["runId"]}
    assert pair[1].ask("POST", path, {"events": [end]})[0] == 200
    status, problem = pair[0].ask("POST", path, {"events": [{"type": "CUSTOM", "name": "late", "value": 1}]})
    assert (status, problem["code"]) == (409, "run_ended")
