"""The native stream over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import aiohttp
import pytest
import uvloop
from litestar.types import Receive, Scope, Send

from seatrial.api import CreateRun, PushEvents
from seatrial.events import NdjsonParser, SseFrame, SseParser, read_log
from seatrial.server import feed
from seatrial.server.feed import Feeds
from seatrial.server.native_stream import native_stream
from seatrial.server.run_feed import FrameForm
from seatrial.store import Store
from server.following import RUN, THREAD, Driven, numbered
from server.running import running
from server.served import served

PATIENCE_S = 120.0


def application(feeds: Feeds) -> Callable[..., Any]:
    """Streams of `RUN`, and nothing else."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}
        form: FrameForm = "ndjson" if query.get("form") == "ndjson" else "sse"
        stream = await native_stream(
            feeds,
            RUN,
            after=int(query["after"]) if "after" in query else None,
            tail="tail" in query,
            types=frozenset(query["types"].split(",")) if "types" in query else None,
            form=form,
        )
        await stream(scope, receive, send)

    return app


@asynccontextmanager
async def streaming(store: Store, **given: Any) -> AsyncIterator[tuple[Feeds, Driven, aiohttp.ClientSession]]:
    """Feeds, a run that has begun, and a client."""
    feeds = Feeds(store, **given)
    async with served(application(feeds)) as url, aiohttp.ClientSession(url) as client:
        try:
            async with asyncio.timeout(PATIENCE_S):
                yield feeds, Driven(store, feeds), client
        finally:
            await feeds.close()


class Frames:
    """The frames of a response, as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._parser = SseParser()
        self._frames: list[SseFrame] = []
        self.body = b""

    async def next(self) -> SseFrame:
        while not self._frames:
            chunk = await self._response.content.readany()
            assert chunk, "the stream has ended"
            self.body += chunk
            self._frames += self._parser.feed(chunk)
        return self._frames.pop(0)

    async def envelopes(self, count: int) -> list[tuple[int, bytes]]:
        """The next so many events, without what comes between them to say that the stream is alive."""
        events: list[tuple[int, bytes]] = []
        while len(events) < count:
            frame = await self.next()
            if json.loads(frame.data).get("type") != "KEEPALIVE":
                events.append(self._event(frame))
        return events

    def _event(self, frame: SseFrame) -> tuple[int, bytes]:
        envelope = json.loads(frame.data)
        assert (envelope["runId"], envelope["threadId"]) == (RUN, THREAD)
        assert frame.id == f"{RUN}:{envelope['sequence']}"
        start = frame.data.index(b'"event":') + len(b'"event":')
        return envelope["sequence"], frame.data[start:-1]


def test_a_stream_replays_goes_on_live_and_ends_with_terminal(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store) as (_, run, client):
            await run.say(1000)
            async with client.get("/") as response:
                assert response.status == 200
                assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
                assert response.headers["cache-control"] == "no-store"
                assert response.headers["x-accel-buffering"] == "no"
                frames = Frames(response)
                replayed = await frames.envelopes(1000)
                await run.say(10)
                live = await frames.envelopes(10)
                await run.end()
                last = await frames.envelopes(1)
                terminal = await frames.next()
                assert frames.body.startswith(b"retry: ")
                assert [*replayed, *live, *last] == numbered(run.events)
                assert json.loads(terminal.data) == {"type": "TERMINAL", "runId": RUN, "status": "completed"}
                assert terminal.id == f"{RUN}:end"
                assert await response.read() == b""
            log = read_log(frames.body)
            assert log.notes[:-1] == []
            assert log.sequences == list(range(1011))
            assert log.terminal is not None

    asyncio.run(scenario())


@pytest.mark.parametrize("form", ["sse", "ndjson"])
def test_a_run_that_has_ended_is_sent_from_every_cursor(store: Store, form: FrameForm) -> None:
    async def scenario() -> None:
        async with streaming(store) as (_, run, client):
            await run.say(20)
            await run.end(status="failed")
            for after in (None, *range(21)):
                query = "" if after is None else f"&after={after}"
                async with client.get(f"/?form={form}{query}") as response:
                    body = await response.read()
                lines = NdjsonParser().feed(body) if form == "ndjson" else [f.data for f in SseParser().feed(body)]
                *envelopes, terminal = map(json.loads, lines)
                assert [each["sequence"] for each in envelopes] == list(range(0 if after is None else after + 1, 21))
                assert terminal == {"type": "TERMINAL", "runId": RUN, "status": "failed"}

    asyncio.run(scenario())


def test_ndjson_has_one_envelope_a_line(store: Store) -> None:
    async def scenario() -> None:
        async with (
            streaming(store, keepalive_s=0.1) as (_, run, client),
            client.get("/?form=ndjson") as response,
        ):
            assert response.headers["content-type"] == "application/x-ndjson"
            assert await response.content.readline() == b"\n", "alive, but there is no cursor yet"
            await run.say(2)
            for sequence in (0, 1):
                while (line := await response.content.readline()) == b"\n":
                    pass  # it took a while to say something
                envelope = json.loads(line)
                assert envelope["sequence"] == sequence
                assert envelope["event"] == json.loads(run.events[sequence])
            alive = json.loads(await response.content.readline())
            assert alive == {"type": "KEEPALIVE", "cursor": {"runId": RUN, "sequence": 1}}
            await run.end()
            lines = [json.loads(line) for line in (await response.read()).splitlines()]
            assert [line["sequence"] for line in lines if "sequence" in line] == [2]
            assert lines[-1]["type"] == "TERMINAL"

    asyncio.run(scenario())


def test_a_keepalive_comes_when_it_is_quiet_and_names_the_last_event_that_was_sent(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store, keepalive_s=0.3) as (_, run, client):
            await run.say(3)
            begun = time.monotonic()
            async with client.get("/") as response:
                frames = Frames(response)
                await frames.envelopes(3)
                for number in (1, 2):
                    alive = await frames.next()
                    assert json.loads(alive.data) == {"type": "KEEPALIVE", "cursor": {"runId": RUN, "sequence": 2}}
                    assert alive.id is None
                    assert number * 0.3 <= time.monotonic() - begun < 30
                await run.say(1)
                await frames.envelopes(1)
                assert json.loads((await frames.next()).data)["cursor"]["sequence"] == 3

    asyncio.run(scenario())


def test_there_is_no_keepalive_while_events_come(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store, keepalive_s=0.5) as (_, run, client), client.get("/") as response:
            frames = Frames(response)
            said = [time.monotonic()]
            for _ in range(20):
                await run.say(1)
                await asyncio.sleep(0.05)
                said.append(time.monotonic())
            await run.end()
            await frames.envelopes(21)
            said.append(time.monotonic())
            # Where the machine paused for so long, it was quiet: between two events, or before the first.
            quiet = sum(int((later - earlier) / 0.5) for earlier, later in zip(said, said[2:], strict=False))
            assert frames.body.count(b"KEEPALIVE") + frames.body.count(b": keepalive") <= quiet

    asyncio.run(scenario())


def test_only_types_that_are_wanted_are_sent_and_the_cursor_moves_with_all(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store, keepalive_s=0.2) as (_, run, client):
            step = b'{"type":"STEP_STARTED","stepName":"a"}'
            await run.say(2)
            await run.commit([step])
            await run.say(1)
            async with client.get("/?types=STEP_STARTED,STEP_FINISHED") as response:
                frames = Frames(response)
                assert await frames.envelopes(1) == [(2, step)]
                for _ in range(12):  # noise that is left out must not keep the stream from saying that it is alive
                    await run.say(1)
                    await asyncio.sleep(0.05)
                alive = json.loads((await frames.next()).data)
                assert alive["type"] == "KEEPALIVE"
                assert 3 <= alive["cursor"]["sequence"] <= 15
                await run.commit([step])
                while (frame := await frames.next()).id is None:
                    alive = json.loads(frame.data)
                assert frame.id == f"{RUN}:16"
                await run.end()
                rest = SseParser().feed(await response.read())
                assert [json.loads(frame.data)["type"] for frame in rest][-1] == "TERMINAL"
                assert all(frame.id is None for frame in rest[:-1])
                assert rest[-1].id == f"{RUN}:end"

    asyncio.run(scenario())


def test_a_run_that_asks_ends_its_stream_with_what_it_waits_for(store: Store) -> None:
    async def scenario() -> None:
        feeds = Feeds(store)
        async with running(store, feeds=feeds) as service, served(application(feeds)) as url:
            await service.create(CreateRun(agent="crew", push=True, run_id=RUN, thread_id=THREAD))
            async with aiohttp.ClientSession(url) as client, client.get("/") as response:
                frames = Frames(response)
                ((sequence, started),) = await frames.envelopes(1)
                assert (sequence, json.loads(started)["type"]) == (0, "RUN_STARTED")
                outcome = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "confirmation"}]}
                asks = {"type": "RUN_FINISHED", "runId": RUN, "threadId": THREAD, "outcome": outcome}
                await service.push(RUN, PushEvents(events=[asks]))
                ((sequence, finished),) = await frames.envelopes(1)
                assert (sequence, json.loads(finished)["outcome"]) == (1, outcome)
                terminal = json.loads((await frames.next()).data)
                assert terminal == {"type": "TERMINAL", "runId": RUN, "status": "input_required"}
            await feeds.close()

    asyncio.run(scenario())


def test_the_tail_has_only_what_comes_later(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store) as (feeds, run, client):
            await run.say(5)
            async with client.get("/?tail=1") as response:
                frames = Frames(response)
                while not feeds.subscribers:
                    await asyncio.sleep(0.005)
                await run.say(1)
                assert await frames.envelopes(1) == numbered(run.events, 4)

    asyncio.run(scenario())


def test_a_client_that_leaves_is_forgotten(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store) as (feeds, run, client):
            await run.say(1)
            responses = [await client.get("/") for _ in range(5)]
            for response in responses:
                await Frames(response).envelopes(1)
            assert feeds.subscribers == 5
            for response in responses:
                response.close()
            while feeds.subscribers:
                await asyncio.sleep(0.005)
            await run.say(1)

    asyncio.run(scenario())


def test_a_connection_carries_another_request_after_a_stream(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store) as (_, run, client):
            await run.end()
            for _ in range(3):
                async with client.get("/") as response:
                    assert b"TERMINAL" in await response.read()

    asyncio.run(scenario())


def test_when_the_server_stops_streams_end_with_a_hint_to_come_back(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store) as (feeds, run, client):
            await run.say(2)
            async with client.get("/") as response, client.get("/?form=ndjson") as lines:
                frames = Frames(response)
                await frames.envelopes(2)
                for _ in range(2):
                    await lines.content.readline()
                await feeds.close()
                rest = await response.read()
                assert rest.startswith(b"retry: ")
                assert int(rest.split()[1]) >= 1000
                assert len(rest.splitlines()) == 2
                assert await lines.read() == b""

    asyncio.run(scenario())


async def reading_nothing(url: str, receive_buffer: int = 4096) -> socket.socket:
    """A connection that has asked for the stream, and takes nothing of it."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
    await asyncio.get_running_loop().sock_sendall(connection, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return connection


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_does_not_read_is_cut_off_and_nobody_waits_for_them(
    store: Store, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        async with streaming(store, send_timeout_s=3, keepalive_s=1) as (feeds, run, client):
            with await reading_nothing(str(client._base_url).rstrip("/")) as connection:
                async with client.get("/") as response:
                    frames = Frames(response)
                    while feeds.subscribers < 2:
                        await asyncio.sleep(0.005)
                    for _ in range(10):
                        await run.say(100, size=10_000)
                        assert len(await frames.envelopes(100)) == 100
                    begun = time.monotonic()
                    while feeds.subscribers > 1:
                        await asyncio.sleep(0.01)
                    assert time.monotonic() - begun < 60
                    await run.end()
                    assert await frames.envelopes(1) == numbered(run.events, 999)
                body = b""
                while piece := await asyncio.get_running_loop().sock_recv(connection, 1 << 20):
                    body += piece
                assert 0 < len(body) < 10_000_000
                assert not body.endswith(b"0\r\n\r\n"), "it must not look like the end"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())


def test_who_reads_slowly_but_reads_gets_everything(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store, send_timeout_s=120) as (_, run, client):
            for _ in range(8):
                await run.say(100, size=10_000)
            await run.end()
            with await reading_nothing(str(client._base_url).rstrip("/")) as connection:
                body = bytearray()
                await asyncio.sleep(0.5)
                while b"TERMINAL" not in body[-200:]:
                    body += await asyncio.get_running_loop().sock_recv(connection, 1 << 18)
            found = re.findall(rb"id: run-1:([0-9]+)\n", body)
            assert found == [b"%d" % sequence for sequence in range(801)]

    asyncio.run(scenario())


def test_who_takes_too_long_to_leave_is_cut_off_when_the_server_stops(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "LEAVING_S", 0.2)

    async def scenario() -> None:
        async with streaming(store) as (feeds, run, client):
            for _ in range(10):
                await run.say(100, size=10_000)
            with await reading_nothing(str(client._base_url).rstrip("/")):
                while not feeds.subscribers:
                    await asyncio.sleep(0.005)
                await asyncio.sleep(0.2)
                begun = time.monotonic()
                await feeds.close()
                while feeds.subscribers:
                    await asyncio.sleep(0.005)
                assert time.monotonic() - begun < 30

    asyncio.run(scenario())


def test_a_huge_event_is_sent_in_pieces(store: Store) -> None:
    async def scenario() -> None:
        async with streaming(store) as (_, run, client):
            await run.say(1, size=3_000_000)
            await run.say(1)
            async with client.get("/") as response:
                frames = Frames(response)
                assert await frames.envelopes(2) == numbered(run.events)
                await run.say(1, size=2_000_000)
                assert await frames.envelopes(1) == numbered(run.events, 1)

    asyncio.run(scenario())


def test_under_a_server_that_cannot_cut_connections_the_stream_is_given_up(store: Store) -> None:
    """Some other ASGI server: there is no way to the connection, and `send` waits for ever."""

    async def scenario() -> None:
        feeds = Feeds(store, send_timeout_s=0.1, keepalive_s=0.2)
        run = Driven(store, feeds)
        await run.say(1)
        app = await native_stream(feeds, RUN, after=None, tail=False, types=None, form="sse")

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        scope: Any = {"type": "http"}
        streaming = asyncio.ensure_future(app(scope, receive, send))
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(60):
                await streaming
        assert not feeds.subscribers
        await feeds.close()

    asyncio.run(scenario())
