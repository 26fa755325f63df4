"""The real server and the real client, with something bad between them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from faults.serving import Server, stored_envelopes
from faults.tcp_proxy import Conduct, TcpProxy, one_after_the_other
from seatrial.client import Client
from seatrial.store import open_store

WORDS = 12
EVENTS = WORDS + 6
AT_ONCE = 50


async def followed(server: Server, run_id: str, *conducts: Conduct) -> tuple[list[int], str | None]:
    """What a client gets of a run when its first connections are treated so, and the status that it is told."""
    async with (
        TcpProxy(server.port, one_after_the_other(conducts)) as proxy,
        Client(proxy.url, first_wait_s=0.01) as client,
        client.events(run_id) as stream,
    ):
        sequences = [envelope.sequence async for envelope in stream]
        assert proxy.connections > len(conducts)
        return sequences, stream.status


def test_a_connection_cut_at_every_byte_loses_and_repeats_nothing(tmp_path: Path, soaking: bool) -> None:
    async def scene(server: Server, run_id: str, length: int) -> list[tuple[list[int], str | None]]:
        places = asyncio.Semaphore(AT_ONCE)

        async def cut(after: int, reset: bool) -> tuple[list[int], str | None]:
            async with places:
                return await followed(server, run_id, Conduct(cut_after=after, reset=reset))

        cuts = [(after, reset) for after in range(1, length, 1 if soaking else 23) for reset in (False, True)]
        return list(await asyncio.gather(*[cut(*each) for each in cuts]))

    where = str(tmp_path / "store.db")
    with Server(tmp_path, where, options=["--rate", "0"]) as server:
        run_id = server.begin_talk(WORDS, 0.0)
        server.wait_ended(run_id)
        with open_store(where) as store:
            # At least as long as the stream: no cut is to come after its end.
            length = sum(map(len, stored_envelopes(store, run_id)))
        for sequences, status in asyncio.run(scene(server, run_id, length)):
            assert sequences == list(range(EVENTS))
            assert status == "completed"


@pytest.mark.parametrize(
    "conduct",
    [
        Conduct(hold_s=1.0, cut_after=700),
        Conduct(piece=1, cut_after=900),
        Conduct(piece=7, delay_s=0.001, cut_after=1500),
    ],
    ids=["buffers and cuts", "a byte at a time", "slow pieces"],
)
def test_a_proxy_that_buffers_or_dribbles_changes_nothing(tmp_path: Path, conduct: Conduct, soaking: bool) -> None:
    words = 300 if soaking else 40
    with Server(tmp_path, str(tmp_path / "store.db")) as server:
        run_id = server.begin_talk(words, 0.01)
        sequences, status = asyncio.run(followed(server, run_id, *[conduct] * (10 if soaking else 2)))
    assert sequences == list(range(words + 6))
    assert status == "completed"
