"""Following a run over real connections: what ends a stream, what is tried again, and what is left alone."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from aiohttp import web

from client.scripted import (
    RUN,
    ScriptedService,
    a_client,
    a_stream,
    frame,
    problem,
    script,
    sending,
    sequences,
    serving,
)
from seatrial.client import Client, EventStream
from seatrial.client.follow import StreamForm
from seatrial.errors import SeatrialError
from seatrial.events import encode_sse
from seatrial.events.types import RunStarted, TextMessageContent

EVENTS = script(6)


async def refused(stream: EventStream) -> SeatrialError:
    with pytest.raises(SeatrialError) as caught:
        await sequences(stream)
    return caught.value


@pytest.mark.parametrize("form", ["sse", "ndjson"])
@pytest.mark.parametrize("after", [None, 0, 3, 5])
async def test_every_event_behind_the_cursor_comes_and_then_the_status(form: StreamForm, after: int | None) -> None:
    service = ScriptedService(EVENTS, status="failed")
    async with serving(service.stream) as port, a_client(port) as client:
        stream = client.events(RUN, after=after, form=form)
        assert await sequences(stream) == list(range(0 if after is None else after + 1, 6))
        assert (stream.status, stream.position, stream.connections) == ("failed", 5, 1)
        assert not await sequences(stream), "an ended stream stays ended"
    accept = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}
    assert service.requests[0].headers["Accept"] == accept[form]
    assert service.requests[0].query == ({} if after is None else {"after": str(after)})


async def test_events_are_typed_and_their_bytes_are_there() -> None:
    async with serving(ScriptedService(EVENTS).stream) as port, a_client(port) as client:
        stream = client.events(RUN)
        first = await anext(stream)
        assert (first.run_id, first.thread_id, first.sequence) == (RUN, "t", 0)
        assert first.event == RunStarted(thread_id="t", run_id=RUN)
        assert b'"sequence":0' in stream.data
        await anext(stream)
        assert (await anext(stream)).event == TextMessageContent(message_id="m", delta="né 0\n\n")


async def test_events_come_as_they_happen() -> None:
    service = ScriptedService(EVENTS[:1], status=None)
    async with serving(service.stream) as port, a_client(port) as client:
        stream = client.events(RUN)
        assert (await anext(stream)).sequence == 0
        for number, event in enumerate(EVENTS[1:-1], start=1):
            following = asyncio.ensure_future(anext(stream))
            await service.append(event)
            assert (await following).sequence == number
        await service.append(EVENTS[-1], status="completed")
        assert await sequences(stream) == [5]
        assert stream.status == "completed"


async def test_an_end_without_terminal_is_a_disconnect_and_never_success() -> None:
    cut = b"".join([frame(number, event) for number, event in enumerate(EVENTS)])
    async with serving(sending(cut)) as port, a_client(port, patience_s=0.2) as client:
        stream = client.events(RUN)
        assert [(await anext(stream)).sequence for _ in EVENTS] == list(range(6))
        error = await refused(stream)
        assert stream.status is None
        assert stream.connections > 2
        assert stream.duplicates == 6 * (stream.connections - 1)
    assert (error.code, error.details) == ("stream_broken", {"runId": RUN, "after": 5})
    assert "it ended before the run did" in error.message
    assert error.hint == "it can be taken up again behind event 5"


async def test_a_stream_that_breaks_is_taken_up_behind_its_last_event() -> None:
    stream_bytes = a_stream(6)
    half = stream_bytes[: stream_bytes.index(b'"sequence":3')]
    rest = stream_bytes[stream_bytes.index(b"id: run-1:3") :]
    asked: list[dict[str, str]] = []
    play = sending(half, rest)

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(dict(request.query))
        return await play(request)

    async with serving(handler) as port, a_client(port) as client:
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        assert (stream.status, stream.duplicates, stream.connections) == ("completed", 0, 2)
    assert asked == [{}, {"after": "2"}]


async def test_a_server_that_ignores_the_cursor_does_no_harm() -> None:
    whole = a_stream(6)
    async with serving(sending(whole[: len(whole) // 2], whole)) as port, a_client(port) as client:
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        assert stream.duplicates > 0


async def test_a_gap_is_raised_after_what_came_before_it() -> None:
    body = frame(0, EVENTS[0]) + frame(2, EVENTS[2])
    async with serving(sending(body)) as port, a_client(port) as client:
        stream = client.events(RUN)
        assert (await anext(stream)).sequence == 0
        with pytest.raises(SeatrialError) as caught:
            await anext(stream)
        assert caught.value.code == "stream_broken"
        assert "event 2 came where 1 should have" in caught.value.message
        assert (stream.status, stream.connections) == (None, 1)


async def test_with_types_only_these_come_and_the_filter_is_asked_for_on_every_connection() -> None:
    service = ScriptedService(EVENTS[:3], status=None, keepalive_s=0.02)
    async with serving(service.stream) as port, a_client(port) as client:
        stream = client.events(RUN, types=["RUN_STARTED", "RUN_FINISHED"])
        assert (await anext(stream)).sequence == 0
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.2)
        assert stream.position == 2, "keepalives tell how far the filter has looked"
        await service.append(*EVENTS[3:], status="completed")
        assert await sequences(stream) == [5]
        assert stream.status == "completed"
    assert [request.query for request in service.requests] == [
        {"types": "RUN_STARTED,RUN_FINISHED"},
        {"types": "RUN_STARTED,RUN_FINISHED", "after": "2"},
    ]


async def test_one_type_may_be_given_as_a_string() -> None:
    service = ScriptedService(EVENTS)
    async with serving(service.stream) as port, a_client(port) as client:
        assert await sequences(client.events(RUN, types="RUN_FINISHED")) == [5]


@pytest.mark.parametrize(("options", "code"), [({"after": -1}, "invalid_cursor"), ({"types": []}, "invalid_request")])
async def test_what_makes_no_sense_is_refused_before_anything_is_sent(options: dict[str, Any], code: str) -> None:
    async with a_client(1) as client:
        with pytest.raises(SeatrialError) as caught:
            client.events(RUN, **options)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_cursor"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "cursor_ahead"),
        (410, "cursor_expired"),
    ],
)
async def test_a_refusal_is_raised_at_once_with_the_services_code(status: int, code: str) -> None:
    service = ScriptedService(EVENTS)
    service.refusals.append(problem(status, code, first=3))
    async with serving(service.stream) as port, a_client(port) as client:
        error = await refused(client.events(RUN))
    assert (error.code, error.message, error.details) == (code, f"this is {code}", {"first": 3})
    assert len(service.requests) == 1


async def test_a_cursor_that_has_expired_tells_what_is_there_still() -> None:
    service = ScriptedService(EVENTS, first=4)
    async with serving(service.stream) as port, a_client(port) as client:
        error = await refused(client.events(RUN, after=1))
        assert (error.code, error.details) == ("cursor_expired", {"first": 4})
        assert await sequences(client.events(RUN, after=3)) == [4, 5]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_refusal_that_may_pass_is_tried_again(status: int) -> None:
    service = ScriptedService(EVENTS)
    service.refusals.extend([problem(status, "store_unavailable"), web.Response(status=status, text="<html>")])
    told: list[tuple[str, float]] = []
    async with serving(service.stream) as port, a_client(port) as client:
        stream = client.events(RUN, on_retry=lambda error, wait_s: told.append((error.code, wait_s)))
        assert await sequences(stream) == list(range(6))
    assert len(service.requests) == 3
    assert [code for code, _ in told] == ["store_unavailable", "rate_limited" if status == 429 else "stream_broken"]
    assert all(0 < wait_s < 1 for _, wait_s in told)


async def test_a_refusal_that_does_not_pass_is_raised_with_its_code() -> None:
    async with (
        serving(sending(problem(503, "shutting_down"))) as port,
        a_client(port, patience_s=0.1) as client,
    ):
        assert (await refused(client.events(RUN))).code == "shutting_down"


async def test_a_wait_that_is_asked_for_by_retry_after_is_kept() -> None:
    service = ScriptedService(EVENTS)
    service.refusals.append(problem(429, "rate_limited", retry=0.3))
    async with serving(service.stream) as port, a_client(port) as client:
        began = asyncio.get_running_loop().time()
        await sequences(client.events(RUN))
        assert asyncio.get_running_loop().time() - began >= 0.3


async def test_a_wait_that_is_longer_than_the_patience_is_not_begun() -> None:
    service = ScriptedService(EVENTS)
    service.refusals.append(problem(429, "rate_limited", retry=60))
    async with serving(service.stream) as port, a_client(port) as client:
        async with asyncio.timeout(0.8):
            assert (await refused(client.events(RUN))).code == "rate_limited"


async def test_a_wait_that_is_asked_for_by_retry_is_kept() -> None:
    waits: list[float] = []
    farewell = frame(0, EVENTS[0]) + b"retry: 200\n\n"
    async with serving(sending(farewell, a_stream(6))) as port, a_client(port) as client:
        await sequences(client.events(RUN, on_retry=lambda _, wait_s: waits.append(wait_s)))
    assert len(waits) == 1
    assert 0.2 <= waits[0] <= 0.25


async def test_a_server_that_is_not_there_is_given_up_in_time() -> None:
    async with a_client(1, patience_s=0.1) as client:
        error = await refused(client.events(RUN))
    assert error.code == "stream_broken"
    assert "no connection to http://127.0.0.1:1" in error.message
    assert error.details == {"runId": RUN, "after": None}


async def test_progress_fills_the_budget_again() -> None:
    """Each connection brings one event, and together they take longer than the patience."""
    service = ScriptedService(EVENTS, status="completed")

    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.06)
        position = int(request.query.get("after", -1)) + 1
        if position == 6:
            return await service.stream(request)
        return web.Response(body=frame(position, EVENTS[position]), content_type="text/event-stream")

    async with serving(handler) as port, a_client(port, patience_s=0.2) as client:
        stream = client.events(RUN)
        began = asyncio.get_running_loop().time()
        assert await sequences(stream) == list(range(6))
        assert asyncio.get_running_loop().time() - began > 0.35
        assert stream.connections == 7


async def test_a_keepalive_is_progress_too() -> None:
    """A quiet run behind something that cuts connections every now and then is followed for as long as it takes."""
    service = ScriptedService(EVENTS[:1], status=None, keepalive_s=0.02)
    cut = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal cut
        try:
            async with asyncio.timeout(0.06):
                return await service.stream(request)
        except TimeoutError:
            cut += 1
            if cut == 10:
                await service.append(EVENTS[-1], status="completed")
            raise ConnectionResetError from None

    async with serving(handler) as port, a_client(port, patience_s=0.25) as client:
        stream = client.events(RUN)
        assert await sequences(stream) == [0, 1]
        assert stream.connections == 11


async def test_a_silence_is_a_disconnect() -> None:
    service = ScriptedService(EVENTS)
    asked = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked > 1:
            return await service.stream(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(frame(0, EVENTS[0]))
        await asyncio.sleep(0.5)
        return response

    reasons: list[str] = []
    async with serving(handler) as port, a_client(port, idle_s=0.15) as client:
        stream = client.events(RUN, on_retry=lambda error, _: reasons.append(error.message))
        assert await sequences(stream) == list(range(6))
        assert stream.connections == 2
    assert [f"nothing came from http://127.0.0.1:{port} for 0.15 s" in reason for reason in reasons] == [True]


async def test_a_comment_is_a_sign_of_life() -> None:
    """What a service says that has no event yet, and so no cursor to put in a KEEPALIVE."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(10):
            await response.write(b": keepalive\n\n")
            await asyncio.sleep(0.05)
        await response.write(a_stream(6))
        return response

    async with serving(handler) as port, a_client(port, idle_s=0.2) as client:
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        assert stream.connections == 1


async def test_a_large_frame_that_takes_longer_than_the_silence_allowed_is_no_silence() -> None:
    large = frame(0, {**EVENTS[0], "input": "x" * 4000})

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for at in range(0, len(large), 200):
            await response.write(large[at : at + 200])
            await asyncio.sleep(0.02)
        await response.write(a_stream(6)[len(frame(0, EVENTS[0])) :])
        return response

    async with serving(handler) as port, a_client(port, idle_s=0.2) as client:
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        assert stream.connections == 1


async def test_a_slow_reader_is_no_silent_server() -> None:
    async with serving(ScriptedService(EVENTS, keepalive_s=0.05).stream) as port, a_client(port, idle_s=0.2) as client:
        stream = client.events(RUN)
        async for _ in stream:
            await asyncio.sleep(0.1)
        assert (stream.status, stream.connections) == ("completed", 1)


async def test_the_position_is_what_was_given_not_what_has_arrived() -> None:
    async with serving(ScriptedService(EVENTS).stream) as port, a_client(port) as client:
        stream = client.events(RUN)
        positions: list[Any] = [stream.position]
        async for envelope in stream:
            assert stream.position == envelope.sequence
            positions.append(stream.position)
            assert stream.status is None or envelope.sequence == 5
        assert positions == [None, 0, 1, 2, 3, 4, 5]


async def test_a_wait_that_is_cancelled_loses_nothing() -> None:
    service = ScriptedService(EVENTS[:2], status=None)
    async with serving(service.stream) as port, a_client(port) as client:
        stream = client.events(RUN)
        found = [(await anext(stream)).sequence, (await anext(stream)).sequence]
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.02)
        await service.append(*EVENTS[2:], status="completed")
        assert found + await sequences(stream) == list(range(6))
        assert stream.duplicates == 0


async def test_to_leave_is_not_to_cancel_and_ends_the_connection() -> None:
    left = asyncio.Event()
    service = ScriptedService(EVENTS[:1], status=None, keepalive_s=0.02)

    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            return await service.stream(request)
        finally:
            left.set()

    async with serving(handler) as port, a_client(port) as client:
        async with client.events(RUN) as stream:
            async for _ in stream:
                break
        await asyncio.wait_for(left.wait(), 2)
        assert [envelope async for envelope in stream] == []
        assert stream.position == 0
        left.clear()
        async for _ in client.events(RUN):
            break
        gc.collect()
        await asyncio.wait_for(left.wait(), 2)
    assert {request.method for request in service.requests} == {"GET"}


async def test_a_stream_that_was_left_tells_where_though_more_had_arrived() -> None:
    async with serving(ScriptedService(EVENTS).stream) as port, a_client(port) as client:
        async with client.events(RUN) as stream:
            found = [(await anext(stream)).sequence, (await anext(stream)).sequence]
        assert await sequences(stream) == []
        assert (stream.position, stream.status) == (1, None)
        assert found + await sequences(client.events(RUN, after=stream.position)) == list(range(6))


async def test_a_client_that_is_closed_ends_its_streams_with_an_error() -> None:
    service = ScriptedService(EVENTS[:1], status=None)
    async with serving(service.stream) as port:
        async with a_client(port) as client:
            stream = client.events(RUN)
            await anext(stream)
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.02)
        with pytest.raises(SeatrialError) as caught:
            await waiting
    assert caught.value.code == "service_failed"
    assert "not open" in caught.value.message


async def test_a_client_that_was_not_entered_says_so() -> None:
    error = await refused(Client().events(RUN))
    assert (error.code, error.hint) == ("service_failed", "use it in `with` or `async with`")


async def test_an_answer_that_is_no_stream_is_final() -> None:
    page = web.Response(text="<html>welcome</html>", content_type="text/html")
    async with serving(sending(page)) as port, a_client(port) as client:
        error = await refused(client.events(RUN))
    assert (error.code, error.message) == (
        "service_failed",
        "the service answered with 'text/html' instead of text/event-stream",
    )


async def test_a_redirect_is_not_followed() -> None:
    service = ScriptedService(EVENTS)
    async with serving(service.stream) as elsewhere:
        there = web.Response(status=307, headers={"Location": f"http://127.0.0.1:{elsewhere}/"})
        async with serving(sending(there)) as port, a_client(port, key="st_k_secret") as client:
            error = await refused(client.events(RUN))
    assert error.code == "service_failed"
    assert service.requests == []


async def test_the_key_is_sent_and_an_echo_of_it_is_not_told() -> None:
    key = "st_k1_verysecret"
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        members = {"keyName": seen[0], "hint": f"{seen[0]}?", "detail": "x" * 490 + seen[0]}
        return problem(401, "unauthorized", **members)

    async with serving(handler) as port, a_client(port, key=key) as client:
        error = await refused(client.events(RUN))
        for text in (str(error), repr(error), str(error.details), repr(client)):
            assert "verysecret"[:5] not in text
    assert seen == [f"Bearer {key}"]


async def test_many_streams_go_on_at_once() -> None:
    service = ScriptedService(EVENTS[:1], status=None)
    async with serving(service.stream) as port, a_client(port) as client:
        async with asyncio.TaskGroup() as group:
            following = [group.create_task(sequences(client.events(RUN))) for _ in range(150)]
            while len(service.requests) < 150:
                await asyncio.sleep(0.01)
            await service.append(*EVENTS[1:], status="completed")
        assert all(task.result() == list(range(6)) for task in following)


async def test_frames_that_are_not_quite_sse_of_ours_are_understood() -> None:
    body = b"\xef\xbb\xbf" + encode_sse(b"") + a_stream(6).replace(b"\n", b"\r\n")
    async with serving(sending(body)) as port, a_client(port) as client:
        assert await sequences(client.events(RUN)) == list(range(6))


async def test_the_connection_is_closed_at_the_end_though_the_server_keeps_it() -> None:
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + a_stream(6))
        await reader.read()
        closed.set()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server, a_client(server.sockets[0].getsockname()[1]) as client:
        stream = client.events(RUN)
        assert await sequences(stream) == list(range(6))
        await asyncio.wait_for(closed.wait(), 2)
        assert stream.status == "completed"
