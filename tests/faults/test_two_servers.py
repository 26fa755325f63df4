"""Two servers on one PostgreSQL: a run on one, its subscribers on the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from strategies.databases import database

from faults.serving import Server, frames, stored_envelopes
from seatrial.store import open_store


@pytest.fixture
def pair(tmp_path: Path, postgres_server: str) -> Iterator[tuple[Server, Server]]:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        database(postgres_server) as url,
        Server(tmp_path / "one", url) as one,
        Server(tmp_path / "two", url) as two,
    ):
        yield one, two


def test_a_subscriber_on_the_other_server_sees_the_run_as_it_happens(pair: tuple[Server, Server]) -> None:
    one, two = pair
    run_id = one.begin_talk(150, 0.01)
    delays: list[float] = []
    sequences: list[int] = []
    with two.connect(f"/v1/runs/{run_id}/stream") as connection:
        for sequence, frame in frames(connection):
            if sequence is None:
                assert frame == {"type": "TERMINAL", "runId": run_id, "status": "completed"}
                break
            sequences.append(sequence)
            delays.append(time.time() - frame["event"]["timestamp"] / 1000)
    assert sequences == list(range(156))
    # Woken by a notification: polling alone would take longer than this for most events.
    assert sorted(delays)[len(delays) // 2] < 0.2


def test_a_run_is_cancelled_through_the_other_server(pair: tuple[Server, Server]) -> None:
    one, two = pair
    run_id = one.begin_talk(100_000, 0.01)
    time.sleep(0.3)
    assert two.ask("POST", f"/v1/runs/{run_id}/cancel")[0] in (200, 202)
    assert two.wait_ended(run_id, 10)["status"] == "cancelled"
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


def test_the_runs_of_a_server_that_died_are_ended_by_the_other_one(pair: tuple[Server, Server]) -> None:
    one, two = pair
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
