"""The proxy does to connections what it was told to, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from strategies.unhurried import run_unhurried

from faults.tcp_proxy import Conduct, TcpProxy, one_after_the_other

T = TypeVar("T")
TEXT = bytes(range(256)) * 8


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what came, once all of it is there."""
    writer.write(await reader.read())
    await writer.drain()
    writer.close()


def through(conduct: Conduct, work: Callable[[TcpProxy], Awaitable[T]]) -> T:
    async def play() -> T:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server, TcpProxy(server.sockets[0].getsockname()[1], lambda _: conduct) as proxy:
            return await work(proxy)

    return run_unhurried(play())


async def exchanged(proxy: TcpProxy) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(TEXT)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    "conduct", [Conduct(), Conduct(piece=3), Conduct(hold_s=0.05), Conduct(delay_s=0.01), Conduct(bytes_per_s=100_000)]
)
def test_what_is_only_delayed_arrives_whole(conduct: Conduct) -> None:
    assert through(conduct, exchanged) == TEXT


@pytest.mark.parametrize("byte", [0, 1, 1000, len(TEXT) - 1])
def test_a_cut_lets_just_so_many_bytes_through(byte: int) -> None:
    assert through(Conduct(cut_after=byte), exchanged) == TEXT[:byte]


def test_a_reset_is_seen_as_one() -> None:
    with pytest.raises(ConnectionResetError):
        through(Conduct(cut_after=0, reset=True), exchanged)


def test_a_stall_keeps_the_connection_up() -> None:
    async def work(proxy: TcpProxy) -> int:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(exchanged(proxy), 0.1)
        return proxy.passed

    assert through(Conduct(stall_after=10), work) == 10


def test_a_throttled_connection_takes_its_time() -> None:
    began = time.monotonic()
    assert through(Conduct(bytes_per_s=len(TEXT) * 5), exchanged) == TEXT
    assert time.monotonic() - began >= 0.15


def test_an_answer_of_its_own_is_given_in_place_of_the_servers() -> None:
    assert through(Conduct(answer=b"no"), exchanged) == b"no"


def test_each_connection_has_its_own_conduct() -> None:
    async def work(proxy: TcpProxy) -> list[bytes]:
        proxy.plan = one_after_the_other([Conduct(cut_after=0), Conduct(cut_after=2)])
        return [await exchanged(proxy) for _ in range(3)]

    assert through(Conduct(), work) == [b"", TEXT[:2], TEXT]


def test_all_connections_can_be_cut_at_once() -> None:
    async def work(proxy: TcpProxy) -> list[bytes]:
        reading = [asyncio.create_task(exchanged(proxy)) for _ in range(3)]
        while proxy.passed < 30:
            await asyncio.sleep(0.01)
        await proxy.cut_all()
        return await asyncio.gather(*reading)

    assert through(Conduct(stall_after=10), work) == [TEXT[:10]] * 3
