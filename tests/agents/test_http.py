"""The dispatch contract over real sockets: what is sent, how answers are read, and what every failure is called."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
import socket
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from strategies.unhurried import run_unhurried

from agents.setting import (
    Handler,
    Talk,
    a_case,
    a_request,
    ask,
    ask_and_keep,
    ask_with_events,
    error_class,
    serving,
    talking,
)
from seatrial.agents.agent import Reply, RunRequest
from seatrial.agents.http.agent import HttpAgent
from seatrial.agents.http.config import HttpConfig, SubAgent
from seatrial.errors import SeatrialError
from seatrial.events.types import CustomEvent, Event
from seatrial.http_client.aiohttp_transport import is_public
from seatrial.runs import Run
from seatrial.world.proxy import ToolProxy

ANSWER = {"final_response": "Done.", "messages": [{"role": "assistant", "content": "Done."}]}


def an_agent(url: str, *, connect_s: float = 5.0, read_s: float | None = None, **config: Any) -> HttpAgent:
    return HttpAgent("shop", HttpConfig(endpoint_url=url, **config), connect_s=connect_s, read_s=read_s)


def answering(body: Any = ANSWER, status: int = 200, **options: Any) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        options.setdefault("content_type", "application/json")
        return web.Response(status=status, body=data, **options)

    return handler


def replied(handler: Handler, request: RunRequest | None = None, **config: Any) -> Reply:
    """The reply of an agent that is served by the handler."""

    async def play() -> Reply:
        async with serving(handler) as url, ToolProxy() as proxy, an_agent(url, **config) as agent:
            return await ask(agent, request, proxy)

    return run_unhurried(play())


def talked(talk: Talk, request: RunRequest | None = None, **config: Any) -> Reply:
    async def play() -> Reply:
        async with talking(talk) as url, ToolProxy() as proxy, an_agent(url, **config) as agent:
            return await ask(agent, request, proxy)

    return run_unhurried(play())


class Dispatched:
    """Keeps what was sent to the agent."""

    def __init__(self, answer: Any = ANSWER) -> None:
        self.answer = answer
        self.body: dict[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.peers: set[Any] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.body = await request.json()
        self.headers = dict(request.headers)
        self.peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        return web.json_response(self.answer, headers={"Set-Cookie": "session=1"})


# The request


def test_the_envelope_has_what_the_agent_may_know() -> None:
    dispatched = Dispatched()
    case = a_case(
        input={"table": 4},
        messages=[{"role": "user", "content": "hello"}],
        expected="secret",
        world={"initial_state": {"order": {}}},
        graders=[{"kind": "equals", "value": "secret"}],
    )
    reply = replied(dispatched.handle, a_request(case), sub_agents=["search", SubAgent(actor_id="book", tools=["x"])])
    assert error_class(reply) is None
    body = dispatched.body
    assert body.pop("odyssey_proxy_url").startswith("http://127.0.0.1:")
    assert body.pop("run_token_jti") == dispatched.headers["X-Pipelines-Run-Token-Jti"]
    assert body == {
        "task_id": "case-1",
        "run_id": "run-1",
        "agent_id": "shop",
        "tools_schema": [],
        "sub_agents": [{"actor_id": "search"}, {"actor_id": "book"}],
        "input": {
            "user_instruction": "Book a table for two.",
            "latest_user_prompt": "Book a table for two.",
            "input": {"table": 4},
            "messages": [{"role": "user", "content": "hello"}],
        },
    }


def test_the_headers_repeat_what_is_not_secret_and_carry_the_token() -> None:
    dispatched = Dispatched()
    replied(dispatched.handle, auth_header_name="X-Key", auth_credential_value="k-1", headers={"X-Extra": "e"})
    headers = dispatched.headers
    assert headers["X-Key"] == "k-1"
    assert headers["X-Extra"] == "e"
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Pipelines-Run-Id"] == "run-1"
    assert headers["X-Pipelines-Task-Id"] == "case-1"
    assert headers["X-Pipelines-Odyssey-Proxy-Url"] == dispatched.body["odyssey_proxy_url"]
    assert len(headers["X-Pipelines-Run-Token"]) == 64
    assert headers["X-Pipelines-Run-Token"] not in json.dumps(dispatched.body)
    assert headers["User-Agent"].startswith("seatrial/")


def test_the_credential_is_sent_once_however_its_header_is_written() -> None:
    sent: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        sent.extend(request.headers.getall("Authorization"))
        return web.json_response(ANSWER)

    replied(handler, auth_credential_value="Bearer k-1", headers={"authorization": "Bearer k-2"})
    assert sent == ["Bearer k-1"]


def test_the_configured_proxy_address_and_agent_id_are_told_instead() -> None:
    dispatched = Dispatched()
    replied(dispatched.handle, proxy_url="http://host.docker.internal:9/p", agent_id=7)
    assert dispatched.body["odyssey_proxy_url"] == "http://host.docker.internal:9/p"
    assert dispatched.headers["X-Pipelines-Odyssey-Proxy-Url"] == "http://host.docker.internal:9/p"
    assert dispatched.body["agent_id"] == 7


@pytest.mark.parametrize("case_id", ["käse", "a\nb", "a\r\nX-Evil: 1", "日本", "\ud800"])
def test_an_id_that_no_header_can_have_is_quoted_there_and_whole_in_the_body(case_id: str) -> None:
    dispatched = Dispatched()
    reply = replied(dispatched.handle, a_request(a_case(case_id)))
    assert error_class(reply) is None
    assert dispatched.headers["X-Pipelines-Task-Id"].isascii()
    assert "X-Evil" not in dispatched.headers
    assert dispatched.body["task_id"] == case_id.replace("\ud800", "�")


def test_runs_share_connections_and_no_cookies() -> None:
    dispatched = Dispatched()

    async def play() -> None:
        async with (
            serving(dispatched.handle) as url,
            ToolProxy() as proxy,
            # A name: cookies of bare addresses are kept by nobody.
            an_agent(url.replace("127.0.0.1", "localhost")) as agent,
        ):
            for number in range(5):
                await ask(agent, a_request(run_id=f"run-{number}"), proxy)
                assert "Cookie" not in dispatched.headers

    asyncio.run(play())
    assert len(dispatched.peers) == 1


def test_a_large_case_is_sent_whole() -> None:
    dispatched = Dispatched()
    replied(dispatched.handle, a_request(a_case(instruction="x" * 3_000_000)))
    assert len(dispatched.body["input"]["user_instruction"]) == 3_000_000


# Good answers


def test_an_answer_is_read_and_kept_verbatim() -> None:
    body = json.dumps(ANSWER, indent=3).encode()
    reply = replied(answering(body))
    assert reply.body == body
    assert reply.http_status == 200
    assert reply.fault is None
    assert reply.reading is not None
    assert reply.reading.transcript.final_text() == "Done."
    assert not reply.streamed


@pytest.mark.parametrize("status", [200, 201, 299])
def test_any_2xx_is_an_answer(status: int) -> None:
    assert error_class(replied(answering(status=status))) is None


def test_a_packed_answer_is_unpacked() -> None:
    body = gzip.compress(json.dumps(ANSWER).encode())
    reply = replied(answering(body, headers={"Content-Encoding": "gzip"}))
    assert reply.body == json.dumps(ANSWER).encode()


def test_a_wrong_content_type_does_not_matter() -> None:
    assert error_class(replied(answering(content_type="text/plain"))) is None


@pytest.mark.parametrize(
    ("mode", "strictness", "body", "expected", "notes"),
    [
        ("thin", "soft", {"final_response": "x"}, None, []),
        ("thin", "strict", {"final_response": "x"}, None, []),
        ("rich", "soft", {"final_response": "x"}, None, ["messages_missing"]),
        ("rich", "strict", {"final_response": "x"}, "response_contract_violation", ["messages_missing"]),
        ("rich", "strict", {"final_response": "x", "messages": []}, "response_contract_violation", ["not_gradeable"]),
        ("rich", "strict", ANSWER, None, []),
        ("thin", "soft", {"final_response": ""}, "agent_bad_response", ["final_response_missing"]),
        ("thin", "soft", {"messages": []}, "agent_bad_response", ["final_response_missing"]),
    ],
)
def test_response_mode_and_strictness_decide_what_is_a_violation(
    mode: str, strictness: str, body: Any, expected: str | None, notes: list[str]
) -> None:
    reply = replied(answering(body), response_mode=mode, strictness=strictness)
    assert error_class(reply) == expected
    assert reply.reading is not None
    assert [note.code for note in reply.reading.notes] == notes


# Bad answers


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, "agent_redirected"),
        (400, "agent_4xx"),
        (401, "auth_failed"),
        (403, "auth_failed"),
        (404, "agent_4xx"),
        (405, "agent_4xx"),
        (408, "agent_unavailable"),
        (422, "agent_4xx"),
        (425, "agent_unavailable"),
        (429, "rate_limited"),
        (500, "agent_5xx"),
        (501, "agent_5xx"),
        (502, "agent_unavailable"),
        (503, "agent_unavailable"),
        (504, "agent_unavailable"),
        (529, "agent_unavailable"),
        (599, "agent_5xx"),
    ],
)
def test_agent_answers_with_an_error_status(status: int, expected: str) -> None:
    reply = replied(answering(b'{"detail": "no"}', status))
    assert reply.fault is not None
    assert reply.fault.error_class == expected
    assert reply.fault.http_status == reply.http_status == status
    assert str(status) in reply.fault.message
    assert reply.fault.detail == '{"detail": "no"}'
    assert reply.body == b'{"detail": "no"}'
    assert reply.fault.blame == ("agent" if expected in ("agent_4xx", "agent_5xx") else "infrastructure")
    assert reply.fault.retryable == (status in {408, 425, 429, 502, 503, 504, 529})


def test_the_first_500_characters_of_an_error_are_shown() -> None:
    reply = replied(answering("ä".encode() * 1000, 500))
    assert reply.fault is not None
    assert reply.fault.detail == "ä" * 500
    assert reply.body == "ä".encode() * 1000


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7, 7),
        ("0.5", 0.5, 0.5),
        (format_datetime(datetime.now(UTC) + timedelta(hours=10), usegmt=True), 30_000, 36_000),
        (format_datetime(datetime.now(UTC) - timedelta(seconds=100), usegmt=True), 0, 0),
        ("-3", 0, 0),
        ("1e99", 86_400, 86_400),
    ],
    ids=["seconds", "part of a second", "a moment to come", "a moment gone by", "negative", "huge"],
)
def test_a_retry_after_is_understood(value: str, low: float, high: float) -> None:
    reply = replied(answering(b"", 429, headers={"Retry-After": value}))
    assert reply.fault is not None
    assert reply.fault.retry_after_s is not None
    assert low <= reply.fault.retry_after_s <= high


@pytest.mark.parametrize("value", ["soon", "nan", "Mon, 99 Nov 2026 00:00:00 GMT"])
def test_a_retry_after_that_means_nothing_is_none(value: str) -> None:
    reply = replied(answering(b"", 503, headers={"Retry-After": value}))
    assert reply.fault is not None
    assert reply.fault.retry_after_s is None


def test_redirects_are_not_followed() -> None:
    seen = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    assert error_class(replied(handler)) == "agent_redirected"
    assert seen == ["/dispatch"]


@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        (b"<!doctype html><h1>It works!</h1>", "text/html", "text/html"),
        (b"[1, 2]", "application/json", "object"),
        (b"", "application/json", "empty"),
        (b" \n", "text/plain", "empty"),
        (b"\xff\xfe\x00", "application/json", "JSON"),
        (b'{"a":' * 100_000, "application/json", "nested"),
        (b"[" * 100_000 + b"]" * 100_000, "application/json", ""),
        (b'{"final_response": "x"', "application/json", "JSON"),
        (b"null", "application/json", "object"),
    ],
    ids=["html", "array", "empty", "blank", "invalid UTF-8", "100000 deep", "100000 deep array", "half", "null"],
)
def test_agent_sends_what_is_no_agent_response(body: bytes, content_type: str, words: str) -> None:
    reply = replied(answering(body, content_type=content_type))
    assert reply.fault is not None
    assert reply.fault.error_class == "agent_bad_response"
    assert reply.fault.blame == "agent"
    assert words in reply.fault.message
    assert reply.body == body
    assert reply.fault.http_status == 200


def test_a_single_bad_byte_in_a_text_is_replaced_and_noted() -> None:
    reply = replied(answering(b'{"final_response": "a\xffb"}'))
    assert reply.reading is not None
    assert reply.reading.transcript.final_text() == "a�b"
    assert [note.code for note in reply.reading.notes] == ["invalid_utf8_replaced"]


def test_204_without_a_body_is_no_answer() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    assert error_class(replied(handler)) == "agent_bad_response"


async def _answer_without_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: list[int]) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"%x\r\n%b\r\n" % (2**20, b"x" * 2**20)
    for _ in range(1024):
        writer.write(piece)
        await writer.drain()
        sent[0] += 2**20


def test_agent_sends_1_gb_and_is_cut_off_early() -> None:
    sent = [0]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _answer_without_end(reader, writer, sent)

    tracemalloc.start()
    try:
        reply = talked(talk, max_response_bytes=4 * 2**20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error_class(reply) == "response_too_large"
    assert reply.http_status == 200
    assert sent[0] < 64 * 2**20
    assert peak < 40 * 2**20


def test_an_announced_length_beyond_the_limit_is_not_read_at_all() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{")
        await asyncio.sleep(600)

    assert error_class(talked(talk)) == "response_too_large"


def test_a_gzip_bomb_is_cut_off_by_what_it_becomes() -> None:
    bomb = gzip.compress(b"x" * 50 * 2**20, 1)
    assert len(bomb) < 2**20
    tracemalloc.start()
    try:
        reply = replied(answering(bomb, headers={"Content-Encoding": "gzip"}), max_response_bytes=2**20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error_class(reply) == "response_too_large"
    assert peak < 20 * 2**20


def test_a_huge_error_page_is_still_called_by_its_status() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 1073741824\r\nRetry-After: 2\r\n\r\n{")
        await asyncio.sleep(600)

    reply = talked(talk)
    assert error_class(reply) == "agent_unavailable"
    assert reply.fault is not None
    assert reply.fault.retry_after_s == 2


# The network


def unreachable(url: str, **options: Any) -> Reply:
    async def play() -> Reply:
        async with ToolProxy() as proxy, an_agent(url, **options) as agent:
            return await ask(agent, proxy=proxy)

    return asyncio.run(play())


def test_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        reply = unreachable(f"http://127.0.0.1:{probe.getsockname()[1]}/")
    assert error_class(reply) == "agent_unreachable"
    assert reply.fault is not None
    assert reply.fault.retryable


def test_dns_failure() -> None:
    reply = unreachable("http://agent.invalid/dispatch")
    assert error_class(reply) == "agent_unreachable"
    assert reply.fault is not None
    assert "resolved" in reply.fault.message


@contextmanager
def a_full_queue() -> Iterator[str]:
    """The URL of a server that accepts nobody: its queue is full, and the kernel does not answer."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_a_deadline_that_comes_before_there_is_a_connection_is_not_the_agents_doing() -> None:
    async def play(url: str) -> Reply:
        async with ToolProxy() as proxy, an_agent(url) as agent:
            return await ask(agent, a_request(timeout_s=0.2), proxy)

    with a_full_queue() as url:
        reply = asyncio.run(play(url))
    assert reply.fault is not None
    assert (reply.fault.error_class, reply.fault.blame) == ("agent_unreachable", "infrastructure")
    assert "0.2 s" in reply.fault.message


def test_a_connect_timeout_is_not_a_read_timeout() -> None:
    with a_full_queue() as url:
        reply = unreachable(url, connect_s=0.2, read_s=120.0)
    assert error_class(reply) == "agent_unreachable"
    assert reply.fault is not None
    assert "0.2 s" in reply.fault.message


async def _hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(600)
    raise AssertionError


def test_agent_hangs_until_the_read_timeout() -> None:
    reply = replied(_hang, read_s=0.2)
    assert error_class(reply) == "agent_timeout"
    assert reply.fault is not None
    assert reply.fault.blame == "agent"
    assert "0.2 s" in reply.fault.message


def test_agent_hangs_until_the_deadline_of_the_run() -> None:
    reply = replied(_hang, a_request(timeout_s=0.2), read_s=120.0)
    assert error_class(reply) == "deadline_exceeded"
    assert reply.fault is not None
    assert not reply.fault.retryable


def test_agent_that_drips_runs_into_the_deadline() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    assert error_class(talked(talk, a_request(timeout_s=0.5), read_s=0.3)) == "deadline_exceeded"


def test_agent_closes_mid_body() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"final_response":')
        await writer.drain()

    reply = talked(talk)
    assert error_class(reply) == "answer_cut_off"
    assert reply.fault is not None
    assert reply.fault.blame == "agent"
    assert (reply.body, reply.cut) == (b'{"final_response":', True)


def test_what_came_of_an_answer_before_its_time_was_up_is_kept() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"final_response":')
        await writer.drain()
        await reader.read()

    reply = talked(talk, a_request(timeout_s=1.0))
    assert error_class(reply) == "deadline_exceeded"
    assert (reply.body, reply.cut) == (b'{"final_response":', True)


def test_a_page_that_is_too_large_to_be_read_is_known_to_be_missing() -> None:
    reply = replied(answering(b"x" * 5000, 503), max_response_bytes=1000)
    assert (error_class(reply), reply.cut) == ("agent_unavailable", True)


def test_what_came_of_an_answer_that_was_cut_off_is_kept_as_cut() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"it is ")
        assert request.transport is not None
        request.transport.close()
        return response

    reply = replied(handler)
    assert (error_class(reply), reply.body, reply.cut) == ("answer_cut_off", b"it is ", True)


def test_agent_closes_without_an_answer() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    assert error_class(talked(talk)) == "connection_lost"


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n"]
)
def test_what_is_not_http_is_a_bad_response(answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        await asyncio.sleep(0.2)

    assert error_class(talked(talk)) == "agent_bad_response"


def test_tls_against_a_plain_server_fails_clearly() -> None:
    async def play() -> Reply:
        async with (
            serving(answering()) as url,
            ToolProxy() as proxy,
            an_agent(url.replace("http:", "https:")) as agent,
        ):
            return await ask(agent, proxy=proxy)

    assert error_class(asyncio.run(play())) == "agent_unreachable"


def test_a_cancelled_run_is_cancelled_and_its_token_dead() -> None:
    tokens = []

    async def handler(request: web.Request) -> web.StreamResponse:
        tokens.append(request.headers["X-Pipelines-Run-Token"])
        return await _hang(request)

    async def play() -> int:
        async with serving(handler) as url, ToolProxy() as proxy, an_agent(url) as agent:
            task = asyncio.create_task(ask(agent, proxy=proxy))
            while not tokens:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await post_trace(proxy.url, tokens[0])

    assert asyncio.run(play()) == 401


# Secrets


async def post_trace(proxy_url: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{proxy_url}/traces/thinking", json={"text": "hm"}, headers=headers) as response,
    ):
        return response.status


@pytest.mark.parametrize("status", [200, 500])
def test_a_run_token_that_the_agent_sends_back_is_not_kept(status: int) -> None:
    tokens = []

    async def handler(request: web.Request) -> web.StreamResponse:
        token = request.headers["X-Pipelines-Run-Token"]
        tokens.append(token)
        # So that a cut after 500 characters would leave most of it.
        return web.json_response({"final_response": "x" * 440 + token}, status=status)

    async def play() -> tuple[Run, list[Event]]:
        async with serving(handler) as url, ToolProxy() as proxy, an_agent(url) as agent:
            return await ask_and_keep(agent, proxy)

    run, events = run_unhurried(play())
    assert tokens[0][:10] not in repr((run, events))
    assert b"[run token]" in (run.body or b"")
    if status == 200:
        assert run.reading is not None
        assert "run_token_removed" in [note.code for note in run.reading.notes]


@pytest.mark.parametrize("padding", [0, 420], ids=["whole", "where the text is cut"])
def test_a_run_token_in_an_answer_that_is_not_http_is_not_kept(padding: int) -> None:
    tokens = []

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        token = head.partition(b"X-Pipelines-Run-Token: ")[2].split()[0]
        tokens.append(token.decode())
        writer.write(b"x" * padding + token + b" is no status line\r\n\r\n")
        await writer.drain()
        writer.close()

    async def play() -> tuple[Run, list[Event]]:
        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with server, ToolProxy() as proxy, an_agent(url) as agent:
            return await ask_and_keep(agent, proxy)

    run, events = asyncio.run(play())
    assert error_class(run) == "agent_bad_response"
    assert len(tokens[0]) == 64
    assert tokens[0][:10] not in repr((run, events))


SECRET = "Sk-Live-" + "a\\b'c" * 9  # capitals, longer than 40, and with what a repr escapes


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 1\r\n\r\n[",
        b"%s\r\n\r\n",
        b"HTTP/1.1 %s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n%s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n(%s): a\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx%s\r\n",
        b"HTTP/1.1 200 OK\r\nLong: %s" + b"x" * 9000 + b"\r\n\r\n",
        b"HTTP/1.1 101 %s\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: %s\r\n",
    ],
    ids=[
        *("encoding", "type", "no head", "status line", "header", "header name", "length", "transfer", "chunk size"),
        *("chunk end", "long line", "upgrade", "half a head"),
    ],
)
def test_no_fault_quotes_the_headers_of_an_agent(answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer.replace(b"%s", SECRET.encode()))
        await writer.drain()

    reply = talked(talk)
    assert reply.fault is not None
    assert reply.fault.error_class in ("agent_bad_response", "answer_cut_off")
    assert SECRET[:6].lower() not in repr(reply).lower()


def test_faults_name_neither_address_nor_credential() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://user:hunter2@127.0.0.1:{probe.getsockname()[1]}/path-of-secrets?key=swordfish"
        reply = unreachable(url, auth_header_name="X-Key", auth_credential_value="abracadabra")
    assert reply.fault is not None
    for secret in ("hunter2", "path-of-secrets", "swordfish", "abracadabra"):
        assert secret not in repr(reply)


def test_a_header_of_two_lines_is_refused_without_being_shown() -> None:
    with pytest.raises(SeatrialError) as caught:
        an_agent("http://localhost/", auth_credential_value="Bearer swordfish\n")
    assert caught.value.code == "invalid_config"
    assert "Authorization" in str(caught.value)
    assert "swordfish" not in str(caught.value)


def test_credentials_in_address_and_header_contradict_each_other() -> None:
    with pytest.raises(SeatrialError, match="credentials") as caught:
        an_agent("http://user:hunter2@localhost/", auth_credential_value="Bearer swordfish")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://x/", "http://", "http://[::1", "http://x:99999/"])
def test_what_is_no_address_is_refused_without_being_shown(url: str) -> None:
    for address, proxy_url in ((url, None), ("http://localhost/", url)):
        with pytest.raises(SeatrialError) as caught:
            an_agent(address, proxy_url=proxy_url)
        assert caught.value.code == "invalid_config"
        assert not url or url not in str(caught.value)


# The tool proxy


def test_traces_are_recorded_while_the_run_goes_on() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        await post_trace(body["odyssey_proxy_url"], request.headers["X-Pipelines-Run-Token"])
        return web.json_response(ANSWER)

    async def play() -> None:
        async with serving(handler) as url, ToolProxy() as proxy, an_agent(url) as agent:
            reply, events = await ask_with_events(agent, proxy=proxy)
            assert events == [CustomEvent(name="trace.thinking", value={"text": "hm"})]
            assert not reply.streamed

    asyncio.run(play())


def test_a_token_is_dead_when_the_run_is_over() -> None:
    dispatched = Dispatched()

    async def play() -> int:
        async with serving(dispatched.handle) as url, ToolProxy() as proxy, an_agent(url) as agent:
            await ask(agent, proxy=proxy)
            return await post_trace(proxy.url, dispatched.headers["X-Pipelines-Run-Token"])

    assert asyncio.run(play()) == 401


def test_concurrent_runs_post_to_their_own_records() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        headers = {"Authorization": f"Bearer {request.headers['X-Pipelines-Run-Token']}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{body['odyssey_proxy_url']}/traces/custom", json={"run": body["run_id"]}, headers=headers),
        ):
            return web.json_response(ANSWER)

    async def play() -> None:
        async with serving(handler) as url, ToolProxy() as proxy, an_agent(url) as agent:
            requests = [a_request(run_id=f"run-{number}") for number in range(20)]
            for request, (_, events) in zip(
                requests, await asyncio.gather(*[ask_with_events(agent, one, proxy) for one in requests]), strict=True
            ):
                assert events == [CustomEvent(name="trace.custom", value={"run": request.run_id})]

    asyncio.run(play())


def test_without_a_proxy_nothing_is_sent() -> None:
    async def play() -> Reply:
        async with serving(_hang) as url, an_agent(url) as agent:
            return await ask(agent)

    assert error_class(asyncio.run(play())) == "proxy_misconfigured"


# Where the agent may be


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:10.0.0.1]"]
)
def test_a_public_agent_is_not_looked_for_on_private_addresses(host: str) -> None:
    reply = unreachable(f"https://{host}:1/", endpoint_rule="public", connect_s=2.0)
    assert error_class(reply) == "endpoint_refused"
    assert reply.fault is not None
    assert not reply.fault.retryable


def test_a_public_agent_speaks_https() -> None:
    with pytest.raises(SeatrialError, match="https"):
        an_agent("http://example.org/", endpoint_rule="public")


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("2002:7f00:1::", False),
        ("2002:5db8:d822::1", True),
        ("2001:0:5db8:d822:0:0:a247:27dd", True),  # Teredo: its server, and the client with its bits flipped
        ("2001:0:5db8:d822:0:0:80ff:fffe", False),
        ("2001:0:7f00:1:0:0:a247:27dd", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b:1::5db8:d822", False),
        ("64:ff9b:1:7f00:0:100::", False),
        ("::7f00:1", False),
        ("::5db8:d822", False),
        ("::ffff:0:7f00:1", False),
        ("2a00:1450:4001:80b::200e", True),
        ("::ffff:10.0.0.1", False),
        ("::ffff:100.64.0.1", False),
        ("fec0::1", False),
        ("100::1", False),
        ("2001:db8::1", False),
        ("2001:10::1", False),
        ("3fff::1", False),
        ("5f00::1", False),
        ("4000::1", False),
        ("0.1.2.3", False),
        ("192.0.0.8", False),
        ("192.0.2.1", False),
        ("192.88.99.1", False),
        ("198.18.0.1", False),
        ("203.0.113.1", False),
        ("240.0.0.1", False),
        ("64:ff9b::5db8:d822", True),
    ],
)
def test_public_addresses_are_told_from_others(text: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(text)) is public


# Probes


def probing(check: Callable[..., Awaitable[Any]], handler: Handler) -> Any:
    async def play() -> Any:
        async with (
            serving(handler) as url,
            ToolProxy() as proxy,
            an_agent(url, auth_credential_value="Bearer t") as agent,
        ):
            return await (check(agent) if check is HttpAgent.ping else check(agent, proxy.url))

    return asyncio.run(play())


async def _ported(request: web.Request) -> web.StreamResponse:
    """Answers probes as an agent does that was ported for the contract."""
    if request.headers.get("Authorization") != "Bearer t":
        return web.json_response({"detail": "missing or invalid bearer token"}, status=401)
    body = await request.json()
    if body == {"ping": True}:
        return web.json_response({"ok": True})
    if body.get("connectivity_check") is not True:
        return web.json_response({"detail": "no proxy URL"}, status=400)
    headers = {"Authorization": "Bearer __reachability_probe__"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{body['odyssey_proxy_url']}/tools/__reachability_probe__", json={}, headers=headers) as response,
    ):
        reachable = response.status in (401, 403) or response.ok
        outbound = {"reachable": reachable, "status_code": response.status, "latency_ms": 1.0, "error": None}
        return web.json_response({"ok": True, "outbound": outbound})


def test_a_ping_finds_the_agent() -> None:
    probe = probing(HttpAgent.ping, _ported)
    assert probe.ok
    assert probe.latency_ms > 0


def test_a_ping_says_why_there_is_no_agent() -> None:
    probe = probing(HttpAgent.ping, answering(b"no", 401))
    assert not probe.ok
    assert probe.fault.error_class == "auth_failed"


def test_the_connectivity_check_passes_when_the_agent_reaches_our_proxy() -> None:
    assert probing(HttpAgent.check_connectivity, _ported).ok


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"ok": True, "outbound": {"reachable": False, "status_code": None, "error": "no route"}}, "no route"),
        ({"ok": True, "outbound": {"reachable": False, "status_code": 404, "error": None}}, "404"),
        ({"ok": True, "outbound": {"reachable": False}}, "no reason"),
        ({"ok": True}, "does not know"),
        (ANSWER, "does not know"),
    ],
)
def test_the_connectivity_check_says_what_is_wrong(answer: Any, words: str) -> None:
    probe = probing(HttpAgent.check_connectivity, answering(answer))
    assert not probe.ok
    assert words in probe.message


def test_probes_are_data() -> None:
    assert msgspec.to_builtins(probing(HttpAgent.ping, _ported)).keys() == {"ok", "message", "latency_ms"}


STATE = {"messages": [{"type": "human", "content": "Go."}, {"type": "ai", "content": "Done.", "tool_calls": []}]}


def test_what_a_framework_writes_is_read_like_that_of_other_agents() -> None:
    reply = replied(answering(STATE))
    assert reply.fault is None
    assert reply.reading is not None
    assert (reply.reading.format, reply.reading.transcript.final_text()) == ("langchain", "Done.")


def test_an_agent_that_promises_agent_responses_is_told_what_it_sent_instead() -> None:
    fault = replied(answering(STATE), strictness="strict").fault
    assert fault is not None
    assert fault.error_class == "agent_bad_response"
    assert "expected an object with `final_response` (text), got an object with `messages`" in fault.message
    assert "looks like langchain" in fault.message
