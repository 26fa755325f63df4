"""HTTP as agents speak it, well and badly: framing, packing, connections that are used again or not, limits."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme
import uvloop
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from strategies.unhurried import run_unhurried

from agents.setting import serving, talking
from seatrial.agents.endpoint import Answer, Endpoint
from seatrial.http_client import aiohttp_transport
from seatrial.http_client.aiohttp_transport import KEEPALIVE_S, READ_BYTES
from seatrial.runs import Fault

T = TypeVar("T")

_loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,  # which `seatrial serve` runs on
}


@pytest.fixture(autouse=True, scope="module", params=_loops)
def _on_each_loop(request: pytest.FixtureRequest) -> None:
    _loops["chosen"] = _loops[request.param]


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_loops["chosen"]) as runner:
        return runner.run(main)


MAX_BYTES = 4 * 2**20
BODY = b'{"final_response": "Done."}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
LAST = WHOLE.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
PACKED = gzip.compress(BODY, mtime=0)


def an_endpoint(
    url: str, headers: dict[str, str] | None = None, *, connect_s: float = 60.0, read_s: float | None = 60.0
) -> Endpoint:
    return Endpoint(url, headers or {}, rule="local", connect_s=connect_s, read_s=read_s, max_bytes=MAX_BYTES)


class Agent:
    """A server on a socket: it says the same to each request, and remembers what it was asked."""

    def __init__(self, *pieces: bytes, close: bool = False) -> None:
        self.pieces = pieces
        self.close = close
        self.connections = 0
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                for piece in self.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if self.close:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def at(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/dispatch?a=b"


def asked(agent: Agent, times: int = 1, **options: Any) -> list[Answer | Fault]:
    """What comes of so many requests, one after the other."""

    async def play() -> list[Answer | Fault]:
        async with agent.at() as url, an_endpoint(url, **options) as endpoint:
            return [await endpoint.post(b"{}", {}) for _ in range(times)]

    return run(play())


def answered(*pieces: bytes, close: bool = False) -> bytes:
    (answer,) = asked(Agent(*pieces, close=close))
    assert isinstance(answer, Answer), answer
    assert (answer.status, answer.fault) == (200, None)
    return answer.body


def failed(*pieces: bytes, close: bool = False, **options: Any) -> Fault:
    (fault,) = asked(Agent(*pieces, close=close), **options)
    assert isinstance(fault, Fault), fault
    return fault


def chunked(*parts: bytes, trailers: bytes = b"") -> bytes:
    chunks = b"".join([b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts])
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailers + b"\r\n"


# The request


def test_a_request_is_written_as_it_should_be() -> None:
    async def play() -> Agent:
        agent = Agent(WHOLE)
        async with (
            agent.at() as url,
            an_endpoint(url.replace("//", "//ann:s%C3%A9cret@"), {"X-Own": "1"}) as endpoint,
        ):
            await endpoint.post(b'{"a":1}', {"X-Run": "2", "accept": "application/json"})
        return agent

    agent = run(play())
    line, *fields = agent.requests[0].partition(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = dict([field.split(": ", 1) for field in fields])
    host = headers.pop("Host")
    assert line == "POST /dispatch?a=b HTTP/1.1"
    assert host.startswith("127.0.0.1:")
    assert headers.pop("User-Agent").startswith("seatrial/")
    assert headers == {
        "Accept-Encoding": "gzip, deflate",
        "Authorization": "Basic YW5uOnPDqWNyZXQ=",
        "X-Own": "1",
        "X-Run": "2",
        "accept": "application/json",
        "Content-Length": "7",
    }
    assert agent.requests[0].endswith(b'\r\n\r\n{"a":1}')


def test_a_header_is_sent_once_however_its_name_is_written() -> None:
    async def play() -> bytes:
        agent = Agent(WHOLE)
        async with agent.at() as url, an_endpoint(url, {"host": "shop.test", "user-agent": "me"}) as endpoint:
            await endpoint.post(b"{}", {"HOST": "other.test"})
        return agent.requests[0]

    lines = run(play()).decode().lower().split("\r\n")
    sent = [line for line in lines if line.startswith(("host:", "user-agent:"))]
    assert sorted(sent) == ["host: other.test", "user-agent: me"]


def test_an_address_of_ipv6_is_reached_and_named() -> None:
    async def play() -> bytes:
        agent = Agent(WHOLE)
        server = await asyncio.start_server(agent.accept, "::1", 0)
        url = f"http://[::1]:{server.sockets[0].getsockname()[1]}/"
        async with server, an_endpoint(url) as endpoint:
            assert isinstance(await endpoint.post(b"{}", {}), Answer)
        return agent.requests[0]

    assert b"\r\nHost: [::1]:" in run(play())


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\rb", "a\0b"])
def test_no_header_becomes_two(value: str) -> None:
    async def play() -> tuple[Agent, Fault]:
        agent = Agent(WHOLE)
        async with agent.at() as url, an_endpoint(url) as endpoint:
            fault = await endpoint.post(b"{}", {"Last-Event-ID": value})
        assert isinstance(fault, Fault)
        return agent, fault

    agent, fault = run(play())
    assert (fault.error_class, fault.retryable) == ("agent_bad_response", False)
    assert not agent.requests


# The answer and its framing


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(WHOLE, id="with its length"),
        pytest.param(chunked(BODY[:3], BODY[3:4], BODY[4:], trailers=b"X-Sum: 1\r\n"), id="in chunks"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WHOLE, id="interim"),
    ],
)
def test_an_answer_is_the_same_wherever_it_is_cut(answer: bytes) -> None:
    async def play() -> None:
        agent = Agent()
        async with agent.at() as url, an_endpoint(url) as endpoint:
            for place in range(1, len(answer)):
                agent.pieces = (answer[:place], answer[place:])
                got = await endpoint.post(b"{}", {})
                assert isinstance(got, Answer), (place, got)
                assert (got.status, got.body, got.content_type) == (200, BODY, "application/json")
        assert agent.connections == 1

    run(play())


@given(parts=st.lists(st.binary(min_size=1, max_size=300), max_size=8), cuts=st.lists(st.integers(1, 400), max_size=8))
def test_a_body_is_what_was_sent_however_it_is_framed(parts: list[bytes], cuts: list[int]) -> None:
    body = b"".join(parts)
    forms = [
        (chunked(*parts), False),
        (HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, False),
        (HEAD + b"\r\n" + body, True),
        (HEAD.replace(b"1.1", b"1.0") + b"\r\n" + body, True),
    ]
    for whole, close in forms:
        pieces, rest = [], whole
        for cut in cuts:
            pieces.append(rest[:cut])
            rest = rest[cut:]
        assert answered(*pieces, rest, close=close) == body


def test_an_answer_without_a_body_needs_no_length() -> None:
    (answer,) = asked(Agent(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "before the agent answered"),
        (b"HTTP/1.1 200 OK\r\nContent-", "broke off"),
        (WHOLE[:-1], "broke off"),
        (chunked(BODY)[:-2], "broke off"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", "broke off"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "something else than HTTP"),
        (b"HTTP/1.1 OK\r\n\r\n", "not HTTP"),
        (HEAD + b"Content-Length: -1\r\n\r\n", "not HTTP"),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "not HTTP"),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", "not HTTP"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "not HTTP"),
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "not HTTP"),
    ],
)
def test_an_answer_that_is_broken_is_called_by_how_it_broke(answer: bytes, words: str) -> None:
    fault = failed(answer, close=True)
    kinds = {"before the agent answered": "connection_lost", "broke off": "answer_cut_off"}
    assert fault.error_class == kinds.get(words, "agent_bad_response")
    assert words in fault.message


def test_a_connection_that_is_reset_before_an_answer_is_lost() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    async def play() -> Answer | Fault:
        async with talking(talk) as url, an_endpoint(url) as endpoint:
            return await endpoint.post(b"{}", {})

    fault = run(play())
    assert isinstance(fault, Fault)
    assert fault.error_class == "connection_lost"


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param((b"HTTP/1.1 200 OK\r\nA: ", b"x" * 999), id="a header line"),
        pytest.param((b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 99), id="headers"),
        pytest.param((chunked(b"x")[:-2] + b"A: ", b"x" * 999), id="a trailer"),
        pytest.param((chunked(b"x")[:-2], b"A: b\r\n" * 99), id="trailers"),
        pytest.param((b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99), id="interim responses"),
    ],
)
def test_headers_without_an_end_are_cut_off(endless: tuple[bytes, bytes]) -> None:
    begun, more = endless
    tracemalloc.start()
    fault = failed(begun, *[more] * 20_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fault.error_class in ("agent_bad_response", "answer_cut_off")
    assert fault.blame == "agent"
    assert peak < 8 * 2**20


def test_what_never_comes_to_a_body_takes_no_memory_until_the_deadline() -> None:
    begun, more = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 999

    async def play() -> int:
        async with Agent(begun, *[more] * 20_000).at() as url, an_endpoint(url) as endpoint:
            tracemalloc.start()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await endpoint.post(b"{}", {})
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return peak

    assert run(play()) < 8 * 2**20


@pytest.mark.parametrize("wait_s", [0, 0.1], ids=["together", "apart"])
def test_a_broken_chunk_is_noticed_at_once_wherever_it_comes(wait_s: float) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(wait_s)
        writer.write(b"1\r\nx\r\nzz\r\n")
        await reader.read()  # the connection stays open until the client closes it

    async def play() -> Answer | Fault:
        async with talking(talk) as url, an_endpoint(url) as endpoint:
            return await endpoint.post(b"{}", {})

    fault = run(play())
    assert isinstance(fault, Fault)
    assert (fault.error_class, fault.message) == ("agent_bad_response", "the agent's answer is not HTTP")
    assert "chunk size" in (fault.detail or "")


def test_a_byte_at_a_time_takes_no_more_memory_than_the_answer_may() -> None:
    async def play() -> tuple[bytes, int]:
        agent = Agent(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"2\r\nab\r\n" * 1000] * 100, b"0\r\n\r\n")
        async with agent.at() as url, an_endpoint(url) as endpoint:
            tracemalloc.start()
            answer = await endpoint.post(b"{}", {})
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert isinstance(answer, Answer)
        return answer.body, peak

    body, peak = run(play())
    assert body == b"ab" * 100_000
    assert peak < 32 * len(body) / 2  # less than the chunks would take as objects


# Packed answers


def packed(encoding: bytes, data: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (status, encoding, len(data), data)


def raw_deflate(data: bytes) -> bytes:
    encoder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return encoder.compress(data) + encoder.flush()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        (b"gzip", PACKED),
        (b"X-GZIP", PACKED),
        (b"gzip", gzip.compress(BODY[:5], mtime=0) + gzip.compress(BODY[5:], mtime=0)),
        (b"gzip", PACKED + b"\0" * 50),
        (b"gzip", PACKED + b"\x1f"),
        (b"deflate", zlib.compress(BODY)),
        (b"deflate", raw_deflate(BODY)),
        (b"identity", BODY),
        (b"", BODY),
    ],
    ids=["gzip", "its old name", "two files", "padded", "padded oddly", "zlib", "raw deflate", "identity", "empty"],
)
def test_an_answer_is_decompressed_wherever_it_is_cut(encoding: bytes, data: bytes) -> None:
    whole = packed(encoding, data)
    assert answered(whole) == BODY
    assert answered(*[whole[place : place + 1] for place in range(len(whole))]) == BODY


@pytest.mark.parametrize(
    ("encoding", "data", "words"),
    [
        (b"gzip", PACKED[:-9], "broke off"),
        (b"gzip", b"not packed", "cannot be decompressed"),
        (b"deflate", zlib.compress(BODY)[:-1] + b"x", "cannot be decompressed"),
        (b"br", BODY, "not asked for: br"),
        (b"gzip, gzip", BODY, "not asked for"),
    ],
    ids=["cut short", "not packed", "wrong sum", "unknown", "twice"],
)
def test_an_answer_that_cannot_be_decompressed_is_a_bad_response(encoding: bytes, data: bytes, words: str) -> None:
    fault = failed(packed(encoding, data))
    assert fault.error_class == ("answer_cut_off" if words == "broke off" else "agent_bad_response")
    assert words in fault.message


def test_an_error_that_cannot_be_decompressed_is_still_called_by_its_status() -> None:
    fault = failed(packed(b"br", BODY, status=b"503 Busy"))
    assert (fault.error_class, fault.http_status) == ("agent_unavailable", 503)


def test_an_empty_answer_may_say_that_it_is_packed() -> None:
    assert answered(packed(b"gzip", b"")) == b""


def test_a_large_packed_answer_comes_whole() -> None:
    body = bytes(range(256)) * 8000
    assert answered(packed(b"gzip", gzip.compress(body))) == body


# Connections


@pytest.mark.parametrize(
    ("answer", "close", "connections"),
    [
        pytest.param(WHOLE, False, 1, id="used again"),
        pytest.param(chunked(BODY), False, 1, id="used again after chunks"),
        pytest.param(LAST, True, 3, id="the agent closes"),
        pytest.param(WHOLE.replace(b"1.1", b"1.0"), True, 3, id="the agent is old"),
        pytest.param(WHOLE + WHOLE, False, 3, id="there are two answers"),
    ],
)
def test_a_connection_is_used_again_when_it_can_be(answer: bytes, close: bool, connections: int) -> None:
    agent = Agent(answer, close=close)
    answers = asked(agent, times=3)
    assert [answer.body for answer in answers if isinstance(answer, Answer)] == [BODY] * 3
    assert agent.connections == connections


def test_what_follows_an_answer_and_is_not_http_makes_it_a_bad_response() -> None:
    assert failed(WHOLE + b"and then some").error_class == "agent_bad_response"


def then(disturb: Callable[[Agent], Awaitable[None]]) -> tuple[list[Answer | Fault], int]:
    """Two requests, with something in between; their answers, and how many connections there were."""

    async def play() -> tuple[list[Answer | Fault], int]:
        agent = Agent(WHOLE)
        async with agent.at() as url, an_endpoint(url) as endpoint:
            first = await endpoint.post(b"{}", {})
            await disturb(agent)
            return [first, await endpoint.post(b"{}", {})], agent.connections

    return run(play())


async def _closed(agent: Agent) -> None:
    agent.writers[0].close()
    await agent.writers[0].wait_closed()
    await asyncio.sleep(0.05)


async def _unasked(agent: Agent) -> None:
    agent.writers[0].write(WHOLE)
    await agent.writers[0].drain()
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("disturb", [_closed, _unasked])
def test_a_connection_that_went_bad_while_nobody_used_it_is_not_used(
    disturb: Callable[[Agent], Awaitable[None]],
) -> None:
    answers, connections = then(disturb)
    assert [answer.body for answer in answers if isinstance(answer, Answer)] == [BODY] * 2
    assert connections == 2


def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def later(agent: Agent) -> None:
        await asyncio.sleep(0.05)

    assert KEEPALIVE_S > 0
    assert then(later)[1] == 1
    monkeypatch.setattr(aiohttp_transport, "KEEPALIVE_S", 0.01)
    assert then(later)[1] == 2


def test_an_answer_that_comes_before_the_request_is_sent_counts_and_ends_the_connection() -> None:
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(WHOLE)
        await writer.drain()
        await asyncio.sleep(0.5)

    async def play() -> list[Answer | Fault]:
        async with talking(talk) as url, an_endpoint(url) as endpoint:
            return [await endpoint.post(b"x" * 32 * 2**20, {}) for _ in range(2)]

    assert [type(answer) for answer in run(play())] == [Answer, Answer]
    assert connections == 2


def test_a_response_that_is_left_early_ends_its_connection() -> None:
    async def play() -> int:
        agent = Agent(WHOLE[:-1])
        async with agent.at() as url, an_endpoint(url) as endpoint:
            with closing(await endpoint.ask("POST", b"{}", {})) as response:
                assert await response.read() == BODY[:-1]
            agent.pieces = (WHOLE,)
            assert isinstance(await endpoint.post(b"{}", {}), Answer)
            response.close()  # once more does nothing
            return agent.connections

    assert run(play()) == 2


def test_an_agent_has_to_wait_for_a_reader_that_takes_nothing() -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(HEAD + b"\r\n")
        while sent < 256 * 2**20:
            writer.write(b"x" * 2**16)
            await writer.drain()
            sent += 2**16

    async def play() -> int:
        async with talking(talk) as url, an_endpoint(url, read_s=0.2) as endpoint:
            with closing(await endpoint.ask("POST", b"{}", {})) as response:
                before = -1
                while sent > before:
                    before = sent
                    await asyncio.sleep(0.3)
                # The silence was ours, not the agent's.
                held = len(await response.read())
                assert await response.read()
                return held

    held = run_unhurried(play())
    assert 0 < held <= 2 * READ_BYTES + 2**18  # which the event loop reads at once
    assert sent < 64 * 2**20


def test_silence_is_counted_from_the_last_byte_and_anew_for_each_request() -> None:
    async def play() -> list[Answer | Fault]:
        agent = Agent(WHOLE)
        async with agent.at() as url, an_endpoint(url, read_s=0.4) as endpoint:
            answers = [await endpoint.post(b"{}", {})]
            await asyncio.sleep(0.3)
            answers.append(await endpoint.post(b"{}", {}))
            await asyncio.sleep(0.3)
            agent.pieces = (WHOLE[:-1],)
            answers.append(await endpoint.post(b"{}", {}))
            return answers

    *answers, fault = run_unhurried(play())
    assert [type(answer) for answer in answers] == [Answer, Answer]
    assert isinstance(fault, Fault)
    assert (fault.error_class, fault.http_status) == ("agent_timeout", 200)
    assert "0.4 s" in fault.message


# Names and addresses


class Names:
    """Answers in the place of the system's resolver, which uvloop has in C, and counts how often."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer]


def by_name(monkeypatch: pytest.MonkeyPatch, names: Names, times: int, at_once: bool) -> list[Answer | Fault]:
    monkeypatch.setattr(socket, "getaddrinfo", names)

    async def play() -> list[Answer | Fault]:
        agent = Agent(LAST, close=True)
        async with agent.at() as url, an_endpoint(url.replace("127.0.0.1", "agent.test")) as endpoint:
            if at_once:
                return await asyncio.gather(*[endpoint.post(b"{}", {}) for _ in range(times)])
            return [await endpoint.post(b"{}", {}) for _ in range(times)]

    return asyncio.run(play())


@pytest.mark.parametrize("at_once", [False, True])
def test_a_name_is_resolved_once_for_all(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    names = Names(["127.0.0.1"])
    assert [type(answer) for answer in by_name(monkeypatch, names, 20, at_once)] == [Answer] * 20
    assert names.asked == 1


def test_a_name_that_could_not_be_resolved_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, answer = by_name(monkeypatch, Names(socket.gaierror(-3, "try again"), ["127.0.0.1"]), 2, False)
    assert isinstance(failure, Fault)
    assert (failure.error_class, failure.message) == ("agent_unreachable", "the agent's host name cannot be resolved")
    assert isinstance(answer, Answer)


def test_a_host_with_several_addresses_is_reached_at_the_one_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = by_name(monkeypatch, Names(["127.0.0.2", "127.0.0.1"]), 1, False)
    assert isinstance(answer, Answer)


# TLS


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> trustme.CA:
    """One that the system trusts."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


def over_tls(certificate: trustme.LeafCert, host: str) -> Answer | Fault:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)

    async def play() -> Answer | Fault:
        agent = Agent(WHOLE)
        server = await asyncio.start_server(agent.accept, "127.0.0.1", 0, ssl=context)
        url = f"https://{host}:{server.sockets[0].getsockname()[1]}/"
        async with server, an_endpoint(url) as endpoint:
            answers = [await endpoint.post(b"{}", {}) for _ in range(3)]
            assert agent.connections == isinstance(answers[0], Answer)
            return answers[0]

    return run(play())


def test_of_several_addresses_only_public_ones_are_connected_to(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no server on the public internet to test with: one address of loopback has to pass for public."""
    monkeypatch.setattr(aiohttp_transport, "is_public", lambda address: str(address) == "127.0.0.1")
    monkeypatch.setattr(socket, "getaddrinfo", Names(["127.0.0.2", "127.0.0.1"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("agent.test").configure_cert(context)

    async def play(host: str) -> tuple[Answer | Fault, int, int]:
        public, private = Agent(WHOLE), Agent(WHOLE)
        server = await asyncio.start_server(public.accept, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        other = await asyncio.start_server(private.accept, "127.0.0.2", port, ssl=context)
        endpoint = Endpoint(
            f"https://{host}:{port}/", {}, rule="public", connect_s=10.0, read_s=10.0, max_bytes=MAX_BYTES
        )
        async with server, other, endpoint:
            return await endpoint.post(b"{}", {}), public.connections, private.connections

    answer, *connections = asyncio.run(play("agent.test"))
    assert isinstance(answer, Answer)
    assert connections == [1, 0]
    fault, *connections = asyncio.run(play("127.0.0.2"))
    assert isinstance(fault, Fault)
    assert fault.error_class == "endpoint_refused"
    assert "127.0.0.2" in fault.message
    assert connections == [0, 0]


def test_an_agent_behind_tls_is_reached(authority: trustme.CA) -> None:
    answer = over_tls(authority.issue_cert("localhost", "127.0.0.1"), "127.0.0.1")
    assert isinstance(answer, Answer), answer
    assert answer.body == BODY


@pytest.mark.parametrize("wrong", ["name", "issuer"])
def test_a_certificate_that_does_not_fit_is_refused(authority: trustme.CA, wrong: str) -> None:
    issuer = trustme.CA() if wrong == "issuer" else authority
    fault = over_tls(issuer.issue_cert("other.test" if wrong == "name" else "127.0.0.1"), "127.0.0.1")
    assert isinstance(fault, Fault)
    assert (fault.error_class, fault.message) == ("agent_unreachable", "TLS with the agent failed")
    assert "certificate" in (fault.detail or "").lower()


# Many at once


def test_many_exchanges_at_once_do_not_mix() -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        data = await request.read()
        await asyncio.sleep(len(data) % 7 / 1000)
        return web.Response(body=data)

    async def play() -> None:
        async with serving(echo) as url, an_endpoint(url) as endpoint:
            bodies = [b"%d " % number * (number % 50 + 1) for number in range(500)]
            answers = await asyncio.gather(*[endpoint.post(body, {}) for body in bodies])
            assert [answer.body for answer in answers if isinstance(answer, Answer)] == bodies

    run(play())
