"""A server that is killed again and again while runs go on and subscribers follow them."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest
from strategies.databases import database

from faults.serving import Server, stored_envelopes
from seatrial.client import Client
from seatrial.errors import SeatrialError
from seatrial.events import decode_event, replay
from seatrial.events.types import RunError, RunFinished
from seatrial.store import Store, open_store


class Subscriber:
    """What one client saw of a run, over all its connections."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.sequences: list[int] = []
        self.events: list[object] = []
        self.status: str | None = None

    async def follow(self, client: Client) -> None:
        stream = client.events(self.run_id)
        async for envelope in stream:
            self.sequences.append(envelope.sequence)
            self.events.append(envelope.event)
        self.status = stream.status


def check_log(store: Store, run_id: str) -> None:
    """One terminal event, the last; sequences without a gap; an order that AG-UI allows."""
    stored = [json.loads(envelope) for envelope in stored_envelopes(store, run_id)]
    assert [envelope["sequence"] for envelope in stored] == list(range(len(stored)))
    events = [decode_event(event) for _, event in store.events(run_id, limit=100_000)]
    assert replay(events).violation is None
    assert [type(event) in (RunFinished, RunError) for event in events] == [False] * (len(events) - 1) + [True]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_subscriber_ends_with_exactly_the_stored_events(
    tmp_path: Path, soaking: bool, kind: str, request: pytest.FixtureRequest
) -> None:
    kills, runs, subscribers, words = (10, 5, 20, 400) if soaking else (2, 3, 9, 150)
    chance = random.Random(7)

    async def scene(server: Server) -> list[Subscriber]:
        """Between any two kills, so many new runs are begun, and so many subscribers come."""
        everyone: list[Subscriber] = []
        async with Client(server.url, patience_s=120) as client, asyncio.TaskGroup() as group:
            for _ in range(kills):
                # One that is under way whenever the server is killed, and others that may have ended.
                talks = [(1_000_000, 0.02), *[(words, chance.choice([0.0, 0.005, 0.02])) for _ in range(runs - 1)]]
                begun = [await asyncio.to_thread(server.begin_talk, *talk) for talk in talks]
                followed = [Subscriber(run_id) for run_id in begun for _ in range(subscribers // runs)]
                for subscriber in followed:
                    group.create_task(subscriber.follow(client))
                everyone += followed
                await asyncio.sleep(chance.uniform(0.1, 1.5))
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
        return everyone

    def play(where: str) -> None:
        with Server(tmp_path, where, options=["--rate", "0"]) as server:
            everyone = asyncio.run(scene(server))
        with open_store(where) as store:
            for run_id in {subscriber.run_id for subscriber in everyone}:
                check_log(store, run_id)
            for subscriber in everyone:
                stored = [json.loads(envelope) for envelope in stored_envelopes(store, subscriber.run_id)]
                assert subscriber.sequences == list(range(len(stored)))
                assert subscriber.status == store.run_head(subscriber.run_id).status
            ended = {subscriber.status for subscriber in everyone}
            assert "failed" in ended, "no run was under way when the server was killed: the test showed nothing"

    if kind == "sqlite":
        play(str(tmp_path / "store.db"))
    else:
        with database(request.getfixturevalue("postgres_server")) as url:
            play(url)


def test_a_run_that_was_active_when_the_server_died_ends_with_server_restarted(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    with Server(tmp_path, where) as server:
        run_id = server.begin_talk(100_000, 0.01)
        while server.ask("GET", f"/v1/runs/{run_id}/events")[1]["events"][-1]["sequence"] < 20:
            pass
        server.kill()
        server.start()
        run = server.wait_ended(run_id)
        assert (run["status"], run["errorCode"]) == ("failed", "server_restarted")
    with open_store(where) as store:
        check_log(store, run_id)
        last = [json.loads(envelope)["event"] for envelope in stored_envelopes(store, run_id)][-3:]
    assert {event["type"] for event in last[:2]} == {"TEXT_MESSAGE_END", "STEP_FINISHED"}
    assert (last[2]["type"], last[2]["code"]) == ("RUN_ERROR", "server_restarted")


def test_a_client_gives_up_when_the_server_never_comes_back(tmp_path: Path) -> None:
    async def scene(server: Server) -> None:
        run_id = await asyncio.to_thread(server.begin_talk, 100_000, 0.01)
        async with Client(server.url, patience_s=1) as client:
            seen = 0
            async for _ in client.events(run_id):
                seen += 1
                if seen == 5:
                    await asyncio.to_thread(server.kill)

    with Server(tmp_path, str(tmp_path / "store.db")) as server, pytest.raises(SeatrialError) as caught:
        asyncio.run(scene(server))
    assert caught.value.code in ("service_failed", "stream_broken")
