"""Streams through a proxy that cuts, holds back, dribbles or lies: the same events come out, each once."""

from __future__ import annotations

import asyncio
import random

import pytest
from faults.tcp_proxy import Conduct, TcpProxy, one_after_the_other

from client.scripted import RUN, ScriptedService, a_client, script, sequences, serving
from seatrial.client import Client
from seatrial.client.follow import StreamForm
from seatrial.errors import SeatrialError

EVENTS = script(6)
GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n<html>no</ht"


async def length_of_answer(port: int, form: StreamForm) -> int:
    """How many bytes the service sends for the whole stream, head included."""
    async with TcpProxy(port) as proxy:
        async with a_client(proxy.port) as client:
            await sequences(client.events(RUN, form=form))
        return proxy.passed


@pytest.mark.parametrize(
    ("form", "reset", "step"), [("sse", False, 1), ("sse", True, 7), ("ndjson", False, 7), ("ndjson", True, 7)]
)
async def test_a_connection_cut_at_any_byte_loses_and_repeats_nothing(form: StreamForm, reset: bool, step: int) -> None:
    async with serving(ScriptedService(script(4)).stream) as port:
        length = await length_of_answer(port, form)
        for byte in range(0, length, step):
            plan = one_after_the_other([Conduct(cut_after=byte, reset=reset)])
            async with TcpProxy(port, plan) as proxy, a_client(proxy.port) as client:
                stream = client.events(RUN, form=form)
                assert await sequences(stream) == [0, 1, 2, 3], byte
                assert (stream.status, stream.duplicates) == ("completed", 0), byte
                # Behind TERMINAL there is only the end of the transfer, which nobody waits for.
                assert proxy.connections == 2 or byte > length - 10, byte


async def test_a_stream_whose_every_connection_is_cut_arrives_piece_by_piece() -> None:
    events = script(120)
    chance = random.Random(7)
    async with (
        serving(ScriptedService(events).stream) as port,
        # An answer's head takes some 200 bytes: most connections bring a few events, some none.
        TcpProxy(port, lambda _: Conduct(cut_after=chance.randrange(900))) as proxy,
        a_client(proxy.port, patience_s=10.0) as client,
    ):
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(120))
        assert (stream.status, stream.duplicates) == ("completed", 0)
        assert proxy.connections > 20


async def test_a_live_run_survives_cuts_while_it_is_written() -> None:
    events = script(200)
    service = ScriptedService(events[:1], status=None)
    chance = random.Random(11)

    async def write() -> None:
        for event in events[1:-1]:
            await service.append(event)
            await asyncio.sleep(chance.uniform(0, 0.002))
        await service.append(events[-1], status="completed")

    async def cut(proxy: TcpProxy) -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.005, 0.03))
            await proxy.cut_all()

    async with serving(service.stream) as port, TcpProxy(port) as proxy, a_client(proxy.port) as client:
        writing, cutting = asyncio.create_task(write()), asyncio.create_task(cut(proxy))
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(200))
        assert (stream.status, stream.duplicates) == ("completed", 0)
        assert stream.connections > 3
        await writing
        cutting.cancel()


@pytest.mark.parametrize("form", ["sse", "ndjson"])
@pytest.mark.parametrize(
    "conduct",
    [
        Conduct(hold_s=0.3),
        Conduct(piece=1),
        Conduct(piece=7),
        Conduct(piece=100, delay_s=0.005),
        Conduct(bytes_per_s=8_000),
    ],
    ids=["held back", "byte by byte", "in small pieces", "late", "slow"],
)
async def test_a_proxy_that_only_delays_costs_no_second_connection(form: StreamForm, conduct: Conduct) -> None:
    async with (
        serving(ScriptedService(EVENTS).stream) as port,
        TcpProxy(port, lambda _: conduct) as proxy,
        a_client(proxy.port) as client,
    ):
        stream = client.events(RUN, form=form)
        assert await sequences(stream) == list(range(6))
        assert (stream.status, stream.duplicates, stream.connections) == ("completed", 0, 1)


async def test_a_gateway_that_has_lost_the_service_for_a_while_is_waited_for() -> None:
    plan = one_after_the_other([Conduct(cut_after=600), *[Conduct(answer=GATEWAY)] * 4, Conduct(refuse=True)])
    async with (
        serving(ScriptedService(EVENTS).stream) as port,
        TcpProxy(port, plan) as proxy,
        a_client(proxy.port) as client,
    ):
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        assert stream.status == "completed"
        assert proxy.connections == 7


async def test_a_connection_that_stalls_inside_a_frame_is_given_up_and_resumed() -> None:
    plan = one_after_the_other([Conduct(stall_after=500)])
    async with (
        serving(ScriptedService(EVENTS).stream) as port,
        TcpProxy(port, plan) as proxy,
        a_client(proxy.port, idle_s=0.2) as client,
    ):
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        assert (stream.status, stream.connections) == ("completed", 2)


async def test_a_proxy_that_never_lets_go_is_given_up_with_a_reason() -> None:
    async with (
        serving(ScriptedService(EVENTS, status=None).stream) as port,
        TcpProxy(port, lambda _: Conduct(hold_s=30.0)) as proxy,
        a_client(proxy.port, idle_s=0.1, patience_s=0.5) as client,
    ):
        with pytest.raises(SeatrialError) as caught:
            await sequences(client.events(RUN))
    assert caught.value.code == "stream_broken"
    assert "nothing came" in caught.value.message


@pytest.mark.parametrize(
    "answer", [b"", b"\0\0\0", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/9.9 999\r\n\r\n", b"SSH-2.0-OpenSSH\r\n"]
)
async def test_an_answer_that_is_not_http_is_no_answer(answer: bytes) -> None:
    async with (
        serving(ScriptedService(EVENTS).stream) as port,
        TcpProxy(port, one_after_the_other([Conduct(answer=answer)] * 2)) as proxy,
        a_client(proxy.port) as client,
    ):
        assert await sequences(client.events(RUN)) == list(range(6))
        assert proxy.connections == 3


async def test_a_request_whose_answer_was_lost_is_made_again() -> None:
    service = ScriptedService(EVENTS)
    async with (
        serving(service.stream) as port,
        TcpProxy(port, one_after_the_other([Conduct(cut_after=0), Conduct(answer=GATEWAY)])) as proxy,
        Client(proxy.url, first_wait_s=0.001, longest_wait_s=0.01) as client,
    ):
        with pytest.raises(SeatrialError) as caught:
            await client.run(RUN)  # which the scripted service answers with a stream
    assert caught.value.code == "service_failed"
    assert proxy.connections == 3
