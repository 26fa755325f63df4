"""What every request passes, with real HTTP."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from litestar.types import Receive, Scope, Send
from strategies.unhurried import run_unhurried

from seatrial.errors import SeatrialError
from seatrial.server import listener
from seatrial.server.access import Keys
from seatrial.server.listener import MAX_HEAD_BYTES
from seatrial.server.logs import start_logging
from seatrial.server.metrics import Metrics
from seatrial.server.middleware import Middleware
from seatrial.server.settings import ServerSettings
from seatrial.store import Store, open_store
from server.served import raw, served

NOW = time.time_ns() // 1_000_000
SETTINGS = ServerSettings(max_body_bytes=1024, rate=0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "door.db") as opened:
        yield opened


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body; `/stream` sends one piece and then waits until the client is gone."""
    if scope["path"] == "/stream":
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store, private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    message = await receive()
    body = message.get("body", b"")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(str(body)))]})
    await send({"type": "http.response.body", "body": str(body).encode(), "more_body": False})


@asynccontextmanager
async def guarded(
    store: Store, settings: ServerSettings = SETTINGS, *, ttl_s: float = 5.0, metrics: Metrics | None = None
) -> AsyncIterator[tuple[str, aiohttp.ClientSession, Keys]]:
    keys = Keys(store, may_be_open=True, ttl_s=ttl_s)
    door = Middleware(echo, settings, keys, metrics or Metrics())
    async with served(door) as url, aiohttp.ClientSession(url) as client:
        yield url, client, keys


async def problem(response: aiohttp.ClientResponse) -> tuple[int, str]:
    assert response.content_type == "application/problem+json"
    body = json.loads(await response.read())
    assert body["status"] == response.status
    return response.status, body["code"]


def test_every_response_has_the_headers_that_keep_browsers_careful(store: Store) -> None:
    async def scenario() -> None:
        async with guarded(store) as (_, client, _):
            for path, headers in (("/v1/x", {}), ("/v1/x", {"Origin": "https://evil.example"})):
                async with client.get(path, headers=headers) as response:
                    assert response.headers["X-Content-Type-Options"] == "nosniff"
                    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
                    assert response.headers["Referrer-Policy"] == "no-referrer"
                    assert response.headers["Cache-Control"] == "no-store"
                    assert len(response.headers["X-Request-Id"]) == 16
                    assert "Server" not in response.headers
                    assert "Access-Control-Allow-Origin" not in response.headers

    asyncio.run(scenario())


def test_a_header_that_a_response_has_is_left_as_it_is(store: Store) -> None:
    async def scenario() -> None:
        async with guarded(store) as (_, client, _), client.get("/stream") as response:
            assert response.headers.getall("Cache-Control") == ["no-store, private"]

    asyncio.run(scenario())


def test_with_a_key_in_the_store_reading_needs_read_and_posting_needs_run(store: Store) -> None:
    _, reader = store.keyring.add("reader", ["read"], now=NOW)
    _, runner = store.keyring.add("runner", ["run"], now=NOW)

    async def scenario() -> None:
        async with guarded(store) as (_, client, _):
            async with client.get("/v1/x") as response:
                assert await problem(response) == (401, "unauthorized")
                assert response.headers["WWW-Authenticate"].startswith("Bearer")
            async with client.get("/metrics") as response:
                assert await problem(response) == (401, "unauthorized")
            for secret, method, status in (
                (reader, "GET", 200),
                (reader, "POST", 403),
                (runner, "GET", 200),
                (runner, "POST", 200),
            ):
                async with client.request(method, "/v1/x", headers={"Authorization": f"Bearer {secret}"}) as response:
                    assert response.status == status, (method, status)

    asyncio.run(scenario())


def test_probes_and_the_document_need_no_key(store: Store) -> None:
    store.keyring.add("ci", ["read"], now=NOW)

    async def scenario() -> None:
        async with guarded(store) as (_, client, _):
            for path in ("/healthz", "/readyz", "/schema/openapi.json"):
                async with client.get(path) as response:
                    assert response.status == 200
            async with client.get("/healthz", headers={"Host": "10.1.2.3.cluster.example"}) as response:
                assert response.status == 200

    asyncio.run(scenario())


def test_a_page_that_rebinds_its_name_to_this_machine_is_kept_out(store: Store) -> None:
    async def scenario() -> None:
        async with guarded(store) as (_, client, _):
            async with client.get("/v1/x", headers={"Host": "evil.example"}) as response:
                assert await problem(response) == (403, "forbidden")
            async with client.get("/v1/x", headers={"Host": "localhost:1"}) as response:
                assert response.status == 200

    asyncio.run(scenario())


def test_a_page_of_another_origin_is_kept_out_also_by_post(store: Store) -> None:
    async def scenario() -> None:
        async with guarded(store) as (url, client, _):
            for method in ("GET", "POST", "OPTIONS"):
                async with client.request(method, "/v1/x", headers={"Origin": "https://evil.example"}) as response:
                    assert await problem(response) == (403, "forbidden")
            async with client.post("/v1/x", headers={"Origin": url}) as response:
                assert response.status == 200

    asyncio.run(scenario())


def test_an_allowed_origin_gets_its_preflight_without_a_key_and_its_answers_with_one(store: Store) -> None:
    _, secret = store.keyring.add("page", ["read"], now=NOW)
    settings = msgspec.structs.replace(SETTINGS, allow_origins=frozenset({"https://app.example.com"}))

    async def scenario() -> None:
        async with guarded(store, settings) as (_, client, _):
            origin = {"Origin": "https://app.example.com"}
            asked = {**origin, "Access-Control-Request-Method": "GET"}
            async with client.options("/v1/x", headers=asked) as response:
                assert response.status == 204
                assert response.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
                assert "Last-Event-ID" in response.headers["Access-Control-Allow-Headers"]
                assert "Access-Control-Allow-Credentials" not in response.headers
            async with client.get("/v1/x", headers=origin) as response:
                assert response.status == 401
                assert response.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
            async with client.get("/v1/x", headers={**origin, "Authorization": f"Bearer {secret}"}) as response:
                assert response.status == 200
                assert response.headers["Vary"] == "Origin"

    asyncio.run(scenario())


def test_too_many_requests_of_one_key_are_told_when_to_come_back(store: Store) -> None:
    _, busy = store.keyring.add("busy", ["read"], now=NOW)
    _, calm = store.keyring.add("calm", ["read"], now=NOW)
    settings = msgspec.structs.replace(SETTINGS, rate=0.5)

    async def scenario() -> None:
        async with guarded(store, settings) as (_, client, _):
            statuses = []
            for _ in range(8):
                async with client.get("/v1/x", headers={"Authorization": f"Bearer {busy}"}) as response:
                    statuses.append(response.status)
            assert response.headers["Retry-After"] == "2"
            assert statuses == [200] * 6 + [429] * 2
            async with client.get("/v1/x", headers={"Authorization": f"Bearer {calm}"}) as response:
                # The first request of a key is counted against its address, which is not known to be anybody's yet.
                assert response.status == 200

    asyncio.run(scenario())


def test_guesses_at_keys_are_limited_by_address(store: Store) -> None:
    store.keyring.add("ci", ["read"], now=NOW)
    settings = msgspec.structs.replace(SETTINGS, rate=0.5)

    async def scenario() -> None:
        async with guarded(store, settings) as (_, client, _):
            statuses = []
            for number in range(7):
                async with client.get("/v1/x", headers={"Authorization": f"Bearer {number}"}) as response:
                    statuses.append(response.status)
            assert statuses == [401] * 5 + [429] * 2

    asyncio.run(scenario())


def test_a_body_is_taken_up_to_the_limit_and_not_beyond(store: Store) -> None:
    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * 256

    async def scenario() -> None:
        async with guarded(store) as (_, client, _):
            async with client.post("/v1/x", data=b"x" * 1024) as response:
                assert response.status == 200
            async with client.post("/v1/x", data=b"x" * 1025) as response:
                assert await problem(response) == (413, "too_large")
            async with client.post("/v1/x", data=chunks(4)) as response:
                assert response.status == 200
            async with client.post("/v1/x", data=chunks(5)) as response:
                assert await problem(response) == (413, "too_large")

    asyncio.run(scenario())


def test_a_key_is_asked_for_before_a_body_is_read(store: Store) -> None:
    store.keyring.add("ci", ["read"], now=NOW)

    async def scenario() -> None:
        async with guarded(store) as (_, client, _), client.post("/v1/x", data=b"x" * 5000) as response:
            assert await problem(response) == (401, "unauthorized")

    asyncio.run(scenario())


def test_a_content_length_that_is_none_is_refused(store: Store) -> None:
    async def scenario() -> None:
        async with guarded(store) as (url, _, _):
            for length in (b"-1", b"1e3", b"+5", b"0x10", b"9" * 25):
                head = b"POST /v1/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
                answer = await raw(url, head + b"content-length: " + length + b"\r\n\r\nxxxx")
                assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")), length

    asyncio.run(scenario())


def test_a_head_that_is_too_large_is_refused_whole_or_not(store: Store) -> None:
    begun = b"GET /v1/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    heads = [
        begun + b"x: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n",
        begun + b"x: y\r\n" * 200 + b"\r\n",
        b"GET /" + b"x" * MAX_HEAD_BYTES + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        # Never complete: neither the line, nor a header, nor the head.
        b"GET /" + b"x" * 2 * MAX_HEAD_BYTES,
        begun + b"x: " + b"y" * 2 * MAX_HEAD_BYTES,
        begun + b"x: y\r\n" * MAX_HEAD_BYTES,
    ]

    async def scenario() -> None:
        async with guarded(store) as (url, _, _):
            for head in heads:
                assert (await raw(url, head)).startswith(b"HTTP/1.1 431"), head[:80]

    asyncio.run(scenario())


def test_a_head_that_does_not_arrive_is_given_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.server.listener.HEAD_TIMEOUT_S", 1.0)

    async def scenario() -> None:
        async with guarded(store) as (url, client, _):
            assert await raw(url, b"") == b""
            assert await raw(url, b"GET / HTTP/1.1\r\nhost: ") == b""
            # A request that is being answered, and a connection between two requests, are no such heads.
            async with client.get("/v1/x") as response:
                await response.read()
            await asyncio.sleep(1.5)
            async with client.get("/v1/x") as response:
                assert response.status == 200

    run_unhurried(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_stream_ends_with_its_key(store: Store, method: str) -> None:
    key, secret = store.keyring.add("ci", ["run"], now=NOW)
    _, other = store.keyring.add("other", ["run"], now=NOW)

    async def scenario() -> None:
        async with guarded(store, ttl_s=0.0) as (_, client, keys):
            stream = await client.request(method, "/stream", headers={"Authorization": f"Bearer {secret}"})
            left = await client.request(method, "/stream", headers={"Authorization": f"Bearer {other}"})
            assert await stream.content.readany() == b"data: 1\n\n"
            assert await left.content.readany() == b"data: 1\n\n"
            await asyncio.to_thread(store.keyring.revoke, key.key_id, NOW)
            await keys.sweep()
            with pytest.raises(aiohttp.ClientError):
                await stream.content.readany()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await left.content.readany()
            stream.close()
            left.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("end", ["sign-out", "revoked", "expired"])
def test_a_stream_ends_with_its_session(store: Store, end: str) -> None:
    key, secret = store.keyring.add("ci", ["read"], now=NOW)
    token = store.keyring.open_session(key, now=NOW, expires_at=NOW + 3_600_000)

    async def scenario() -> None:
        async with guarded(store, ttl_s=0.0) as (url, client, keys):
            cookie = {"Cookie": f"seatrial_session_{url.rpartition(':')[2]}={token}"}
            stream = await client.get("/stream", headers=cookie)
            program = await client.get("/stream", headers={"Authorization": f"Bearer {secret}"})
            assert await stream.content.readany() == b"data: 1\n\n"
            assert await program.content.readany() == b"data: 1\n\n"
            await keys.sweep()
            if end == "sign-out":
                await keys.end_session(token)
            elif end == "revoked":
                await asyncio.to_thread(store.keyring.revoke, key.key_id, NOW)
                await keys.sweep()
            else:
                # The next session of anybody removes those that have expired.
                later = NOW + 3_600_001
                await asyncio.to_thread(store.keyring.open_session, key, now=later, expires_at=later)
                await keys.sweep()
            with pytest.raises(aiohttp.ClientError):
                await stream.content.readany()
            if end != "revoked":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await program.content.readany()
            stream.close()
            program.close()

    asyncio.run(scenario())


def test_requests_are_counted_by_route_and_status_and_never_by_what_they_name(store: Store) -> None:
    metrics = Metrics()

    async def scenario() -> None:
        async with guarded(store, metrics=metrics) as (_, client, _):
            for path in ("/v1/run-42", "/v1/run-43"):
                async with client.get(path) as response:
                    await response.read()
            async with client.get("/v1/x", headers={"Host": "evil.example"}) as response:
                await response.read()

    asyncio.run(scenario())
    text = metrics.text().decode()
    assert 'seatrial_http_requests_total{method="GET",route="(none)",status="200"} 2.0' in text
    assert 'seatrial_http_requests_total{method="GET",route="(none)",status="403"} 1.0' in text
    assert "seatrial_http_requests_in_progress 0.0" in text
    assert "run-4" not in text
    assert "evil" not in text


@pytest.mark.usefixtures("logs_as_before")
def test_a_request_is_logged_once_without_its_key_query_or_body(store: Store) -> None:
    _, secret = store.keyring.add("ci", ["run"], now=NOW)
    stream = io.StringIO()
    start_logging("json", stream)

    async def scenario() -> None:
        async with guarded(store) as (_, client, _):
            headers = {"Authorization": f"Bearer {secret}"}
            async with client.post("/v1/x?token=in-the-query", data=b"in the body", headers=headers) as response:
                assert response.status == 200

    asyncio.run(scenario())
    (line,) = stream.getvalue().splitlines()
    said: dict[str, Any] = json.loads(line)
    assert (said["event"], said["method"], said["status"]) == ("request", "POST", 200)
    assert said["key_id"] in secret
    for hidden in (secret, "in-the-query", "in the body"):
        assert hidden not in line


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    with listener.listening_at("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(SeatrialError, match="in use") as caught, listener.listening_at("127.0.0.1", port):
            pass
    assert caught.value.code == "cannot_listen"
    assert "another port" in str(caught.value)
