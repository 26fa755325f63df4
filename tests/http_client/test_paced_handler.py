"""Connections that parse in turns: no server keeps the event loop, and nothing of what it sent is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import pytest
import uvloop
import yarl
from aiohttp.client_proto import ResponseHandler

from seatrial.http_client import HttpRequest, TransportError, paced_handler
from seatrial.http_client.aiohttp_transport import AiohttpTransport
from seatrial.http_client.paced_handler import MAX_INTERIM, SLICE_BYTES, PacedHandler

T = TypeVar("T")

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TINY = b"1\r\nx\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
LARGE = bytes(range(256)) * 4096


class Run(Protocol):
    def __call__(self, main: Coroutine[Any, Any, T], /) -> T: ...


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def run(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main)

    return run


@pytest.fixture
def one_slice_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paced_handler, "TURN_S", 0.0)


async def answers(*answers: bytes, times: int = 1, close: bool = False) -> list[bytes | TransportError]:
    """What a client gets from a server that sends this, one request after the other."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                for answer in answers:
                    writer.write(answer)
                await writer.drain()
                if close:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        url = yarl.URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        async with AiohttpTransport(connect_s=10, read_s=10) as transport:
            return [await answer(transport, url) for _ in range(times)]


async def answer(transport: AiohttpTransport, url: yarl.URL) -> bytes | TransportError:
    try:
        response = await transport.send(HttpRequest("GET", url, {"Host": "a"}))
        try:
            return await response.read_all(2**30) or b""
        finally:
            response.close()
    except TransportError as error:
        return error


@pytest.mark.usefixtures("one_slice_a_turn")
def test_a_server_gets_one_turn_of_the_event_loop_at_a_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: dict[int, int] = {}
    turn = 0
    of_aiohttp = ResponseHandler.data_received

    def counted(handler: ResponseHandler, data: bytes) -> None:
        parsed[turn] = parsed.get(turn, 0) + len(data)
        of_aiohttp(handler, data)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def play() -> bytes | TransportError:
        counting = asyncio.create_task(count_turns())
        (body,) = await answers(HEAD + TINY * 100_000 + b"0\r\n\r\n")
        counting.cancel()
        return body

    monkeypatch.setattr(ResponseHandler, "data_received", counted)
    assert run(play()) == b"x" * 100_000
    # A slice that waited, and one that has just arrived; uvloop takes up to 32 arrivals in one turn.
    assert max(parsed.values()) <= 2 * SLICE_BYTES * 32
    assert sum(parsed.values()) / len(parsed) <= SLICE_BYTES


@pytest.mark.usefixtures("one_slice_a_turn")
@pytest.mark.parametrize(
    ("head", "close"),
    [(b"Content-Length: %d\r\n" % len(LARGE), False), (b"", True)],
    ids=["until its length", "until the connection ends"],
)
def test_an_answer_of_many_slices_comes_whole(head: bytes, close: bool, run: Run) -> None:
    sent = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + LARGE
    assert run(answers(sent, times=2, close=close)) == [LARGE, LARGE]


@pytest.mark.usefixtures("one_slice_a_turn")
def test_what_arrived_before_a_connection_was_lost_counts() -> None:
    async def play() -> bytes:
        handler = PacedHandler(asyncio.get_running_loop())
        handler.connection_made(asyncio.Transport())
        handler.set_response_params(read_until_eof=True, auto_decompress=False)
        handler.data_received(b"HTTP/1.1 200 OK\r\n\r\n" + LARGE)
        handler.connection_lost(None)
        assert handler.should_close
        _, payload = await handler.read()
        return await payload.read()

    assert asyncio.run(play()) == LARGE


def test_interim_responses_are_passed_over(run: Run) -> None:
    whole = INTERIM * MAX_INTERIM + HEAD + TINY + b"0\r\n\r\n"
    assert run(answers(whole, times=2)) == [b"x", b"x"]


def test_interim_responses_without_end_are_refused(run: Run) -> None:
    (error,) = run(answers(*[INTERIM * 1000] * 100))
    assert isinstance(error, TransportError)
    assert (error.kind, error.detail) == (
        "malformed",
        f"there are more than {MAX_INTERIM:,} interim responses (status 1xx)",
    )
