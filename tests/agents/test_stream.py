"""Streaming agents over real sockets: events as they come, honest ends, and streams that are taken up again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from aiohttp import web
from strategies.unhurried import run_unhurried

from agents.setting import Handler, a_case, a_request, ask_with_events, error_class, serving, talking, unused_port
from seatrial.agents import streamed
from seatrial.agents.agent import Reply, RunRequest
from seatrial.agents.stream.agent import StreamAgent
from seatrial.agents.stream.config import StreamConfig
from seatrial.events import Event, encode_event
from seatrial.events.envelope import cursor_text
from seatrial.events.types import RunError, RunFinished, RunStarted, TextMessageContent
from seatrial.trajectory import extract

START: dict[str, Any] = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
END: dict[str, Any] = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
TEXT: list[dict[str, Any]] = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Done"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
]
CALL: list[dict[str, Any]] = [
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "search"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"q": "tea"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
    {"type": "TOOL_CALL_RESULT", "messageId": "res", "toolCallId": "c", "content": "found"},
]
WHOLE = [START, *CALL, *TEXT, END]


def sse(event: dict[str, Any], event_id: str | None = None) -> bytes:
    head = b"" if event_id is None else f"id: {event_id}\n".encode()
    return head + b"data: " + json.dumps(event).encode() + b"\n\n"


def line(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


def enveloped(events: Iterable[dict[str, Any]], first: int = 0) -> list[dict[str, Any]]:
    return [
        {"runId": "r", "threadId": "t", "sequence": number, "event": event}
        for number, event in enumerate(events, start=first)
    ]


def with_ids(events: Iterable[dict[str, Any]]) -> list[bytes]:
    return [sse(event, cursor_text("r", number)) for number, event in enumerate(events)]


def streaming(pieces: Iterable[bytes], content_type: str = "text/event-stream") -> Handler:
    """Sends the pieces one after the other and closes in order."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        return response

    return handler


def run(
    handler: Handler, request: RunRequest | None = None, *, read_s: float | None = None, **config: Any
) -> tuple[Reply, list[Event]]:
    async def play() -> tuple[Reply, list[Event]]:
        async with (
            serving(handler) as url,
            StreamAgent(StreamConfig(url=url, **config), connect_s=60.0, read_s=read_s) as agent,
        ):
            return await ask_with_events(agent, request)

    return run_unhurried(play())


def text_of(reply: Reply) -> str | None:
    assert reply.reading is not None
    return reply.reading.transcript.final_text()


# The input


def test_the_case_is_posted_as_an_input_of_ag_ui() -> None:
    seen: list[Any] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, dict(request.headers), await request.json()))
        return await streaming(map(sse, WHOLE))(request)

    case = a_case(
        input={"table": 4},
        messages=[
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "u"}}],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "found"},
        ],
        expected="secret",
        world={"initial_state": {}},
    )
    reply, _ = run(handler, a_request(case), headers={"X-Key": "k"})
    assert reply.fault is None
    method, headers, body = seen[0]
    assert method == "POST"
    assert headers["X-Key"] == "k"
    assert "text/event-stream" in headers["Accept"]
    assert body == {
        "threadId": "run-1",
        "runId": "run-1",
        "protocolVersion": "1.0",
        "state": {"table": 4},
        "messages": [
            {"role": "system", "id": "message-1", "content": "Be kind."},
            {
                "role": "user",
                "id": "message-2",
                "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {"type": "url", "value": "u"}}],
            },
            {
                "role": "assistant",
                "id": "message-3",
                "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
            },
            {"role": "tool", "id": "message-4", "toolCallId": "c", "content": "found"},
            {"role": "user", "id": "run-1-instruction", "content": "Book a table for two."},
        ],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


def test_a_further_attempt_has_a_thread_of_its_own() -> None:
    seen: list[Any] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(await request.json())
        return await streaming(map(sse, WHOLE))(request)

    run(handler, a_request(attempt=2))
    assert (seen[0]["threadId"], seen[0]["runId"]) == ("run-1.2", "run-1.2")


def test_a_conversation_that_ag_ui_cannot_say_is_not_sent_with_holes() -> None:
    case = a_case(messages=[{"role": "narrator", "content": "x"}])
    reply, events = run(streaming([]), a_request(case))
    assert error_class(reply) == "internal_error"
    assert events == []


# Streams that end well


@pytest.mark.parametrize("kind", ["sse", "ndjson", "native sse", "native ndjson", "crlf", "byte by byte"])
def test_a_stream_is_read_in_every_framing(kind: str) -> None:
    events = enveloped(WHOLE) if kind.startswith("native") else WHOLE
    pieces = [*map(line if kind.endswith("ndjson") else sse, events)]
    if kind == "crlf":
        pieces = [piece.replace(b"\n", b"\r\n") for piece in pieces]
    if kind == "byte by byte":
        pieces = [bytes([byte]) for byte in b"".join(pieces)]
    reply, seen = run(streaming(pieces), format="native" if kind.startswith("native") else "agui")
    assert reply.fault is None
    assert reply.streamed
    assert text_of(reply) == "Done."
    assert len(seen) == len(WHOLE)
    assert [json.loads(encode_event(event))["type"] for event in seen] == [event["type"] for event in WHOLE]
    assert reply.body == b"".join(pieces)
    assert reply.reading is not None
    assert reply.reading.notes == []
    assert reply.reading.format == ("events" if kind.startswith("native") else "agui")
    assert [step.name for step in extract(reply.reading).steps] == ["search"]


def test_events_are_handed_on_as_they_come() -> None:
    handed: list[Event] = []
    first = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse(START))
        await asyncio.wait_for(first.wait(), 30)
        for event in WHOLE[1:]:
            await response.write(sse(event))
        return response

    async def emit(event: Event) -> None:
        handed.append(event)
        first.set()

    async def play() -> None:
        async with serving(handler) as url, StreamAgent(StreamConfig(url=url), connect_s=60.0, read_s=None) as agent:
            reply = await agent.run(a_request(timeout_s=60.0), emit)
            assert reply.fault is None

    asyncio.run(play())
    assert len(handed) == len(WHOLE)


def test_keepalives_and_comments_are_not_events() -> None:
    keepalive = {"type": "KEEPALIVE", "cursor": {"runId": "r", "sequence": 0}}
    terminal = {"type": "TERMINAL", "runId": "r", "status": "completed"}
    pieces = [b": hello\n\n", sse(keepalive), *map(sse, enveloped(WHOLE)), sse(terminal)]
    reply, events = run(streaming(pieces), format="native")
    assert reply.fault is None
    assert len(events) == len(WHOLE)


def test_a_server_that_stays_on_the_line_after_the_end_is_not_waited_for() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"".join(map(sse, WHOLE)))
        await asyncio.sleep(600)
        return response

    reply, _ = run(handler, a_request(timeout_s=120.0))
    assert reply.fault is None


def test_what_comes_after_the_end_is_noticed() -> None:
    reply, events = run(streaming([*map(sse, WHOLE), sse(TEXT[0])]))
    assert len(events) == len(WHOLE) + 1
    assert reply.reading is not None
    assert [note.code for note in reply.reading.notes] == ["event_order_violation"]


def test_a_breach_of_the_order_is_a_note_and_the_run_stands() -> None:
    reply, _ = run(streaming(map(sse, [START, TEXT[1], *TEXT, END])))
    assert reply.fault is None
    assert text_of(reply) == "Done."
    assert reply.reading is not None
    assert "event_order_violation" in [note.code for note in reply.reading.notes]


def test_events_of_unknown_types_are_kept_and_noted() -> None:
    reply, events = run(streaming(map(sse, [START, {"type": "NEW_THING", "x": 1}, *TEXT, END])))
    assert reply.fault is None
    assert len(events) == 7
    assert reply.reading is not None
    assert [note.code for note in reply.reading.notes] == ["unknown_event_type"]


# Streams that do not


def test_a_stream_without_a_terminal_event_is_not_a_success() -> None:
    reply, events = run(streaming(map(sse, WHOLE[:-1])))
    assert error_class(reply) == "stream_truncated"
    assert len(events) == len(WHOLE) - 1
    assert text_of(reply) == "Done."


def test_a_run_error_is_the_agents_own_word() -> None:
    reply, events = run(streaming(map(sse, [START, {"type": "RUN_ERROR", "message": "no model", "code": "E1"}])))
    assert reply.fault is not None
    assert reply.fault.error_class == "agent_reported_error"
    assert reply.fault.blame == "agent"
    assert (reply.fault.message, reply.fault.detail) == ("no model", "E1")
    assert isinstance(events[-1], RunError)


@pytest.mark.parametrize(
    "pieces",
    [
        [sse({**END, "outcome": {"type": "cancelled"}})],
        [sse({"type": "TERMINAL", "runId": "r", "status": "failed"})],
        [sse({"type": "TERMINAL", "runId": "r", "status": "cancelled"})],
    ],
)
def test_a_run_that_was_cancelled_or_failed_is_not_a_success(pieces: list[bytes]) -> None:
    reply, _ = run(streaming([*map(sse, WHOLE[:-1]), *pieces]))
    assert error_class(reply) == "agent_reported_error"


FAILED: dict[str, Any] = {"type": "RUN_ERROR", "message": "boom"}
CANCELLED: dict[str, Any] = {**END, "outcome": {"type": "cancelled"}}
INTERRUPTED: dict[str, Any] = {**END, "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "sure?"}]}}


@pytest.mark.parametrize(
    "ends",
    [
        [FAILED, END],
        [END, FAILED],
        [END, FAILED, END],
        [CANCELLED, END],
        [END, CANCELLED],
        [INTERRUPTED, CANCELLED, END],
        [FAILED, START, *TEXT, END],
    ],
)
def test_the_worst_end_counts_whatever_is_sent_after_it(ends: list[dict[str, Any]]) -> None:
    reply, _ = run(streaming(map(sse, [START, *TEXT, *ends])))
    assert error_class(reply) == "agent_reported_error"
    assert reply.fault is not None
    assert reply.fault.message == ("boom" if FAILED in ends else "the agent's run was cancelled on its side")


@pytest.mark.parametrize(
    ("ends", "waits"),
    [([INTERRUPTED, END], True), ([END, INTERRUPTED], True), ([INTERRUPTED, START, *TEXT, END], False)],
)
def test_a_run_that_waits_for_input_waits_until_another_run_starts(ends: list[dict[str, Any]], waits: bool) -> None:
    reply, _ = run(streaming(map(sse, [START, *TEXT, *ends])))
    assert reply.fault is None
    assert reply.reading is not None
    assert ("waits_for_input" in [note.code for note in reply.reading.notes]) == waits


def test_a_run_that_starts_again_has_to_end_again() -> None:
    reply, _ = run(streaming(map(sse, [*WHOLE, START, TEXT[0]])))
    assert error_class(reply) == "stream_truncated"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!doctype html><h1>It works!</h1>",
        b'{"detail": "not found"}',
        b"[1, 2]",
        b"data: [DONE]\n\n",
        b"data: \xff\xfe\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
    ids=["empty", "html", "json", "array", "done", "invalid UTF-8", "100000 deep"],
)
def test_an_answer_without_any_event_is_a_bad_response(body: bytes) -> None:
    reply, _ = run(streaming([body]))
    assert error_class(reply) == "agent_bad_response"


@pytest.mark.parametrize(("status", "expected"), [(401, "auth_failed"), (422, "agent_4xx"), (503, "agent_unavailable")])
def test_a_refusal_is_told_by_its_status(status: int, expected: str) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="no", headers={"Retry-After": "3"})

    reply, events = run(handler)
    assert error_class(reply) == expected
    assert reply.fault is not None
    assert (reply.fault.detail, reply.http_status, reply.body) == ("no", status, b"no")
    assert reply.fault.retry_after_s == 3
    assert events == []


def test_what_comes_with_a_refusal_is_kept_whole() -> None:
    body = sse(START) + sse({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "x" * 5000})

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=503, body=body)

    reply, _ = run(handler)
    assert (error_class(reply), reply.body, reply.cut) == ("agent_unavailable", body, False)


def test_a_refusal_that_breaks_off_is_still_told_by_its_status() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 10\r\n\r\n")

    async def play() -> Reply:
        async with talking(talk) as url, StreamAgent(StreamConfig(url=url), connect_s=60.0, read_s=None) as agent:
            return (await ask_with_events(agent))[0]

    reply = run_unhurried(play())
    assert (error_class(reply), reply.http_status) == ("auth_failed", 401)


def test_a_frame_or_a_stream_beyond_the_limit_is_cut_off() -> None:
    endless = (sse({**TEXT[1], "delta": "x" * 1000}) for _ in range(100_000))
    reply, _ = run(
        streaming([sse(START), sse(TEXT[0]), *[next(endless) for _ in range(3000)]]), max_response_bytes=2**20
    )
    assert error_class(reply) == "response_too_large"
    assert text_of(reply) is not None
    reply, _ = run(streaming([b"data: " + b"x" * (11 * 2**20)]))
    assert error_class(reply) == "response_too_large"


def test_a_stream_of_too_many_events_fails_also_when_they_come_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "MAX_EVENTS", len(WHOLE) + 50)
    more = [sse({"type": "CUSTOM", "name": "n", "value": 1})] * 100
    for pieces in ([*map(sse, WHOLE[:-1]), *more, sse(WHOLE[-1])], [b"".join([*map(sse, WHOLE), *more])]):
        reply, events = run(streaming(pieces))
        assert error_class(reply) == "response_too_large"
        assert len(events) == len(WHOLE) + 50


async def _fall_silent(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"".join(map(sse, [START, *TEXT])))
    await asyncio.sleep(600)
    return response


def test_silence_is_a_timeout_and_what_came_is_kept() -> None:
    reply, events = run(_fall_silent, read_s=0.2)
    assert error_class(reply) == "agent_timeout"
    assert len(events) == 5
    assert text_of(reply) == "Done."


def test_the_deadline_ends_a_stream_and_what_came_is_kept() -> None:
    reply, _ = run(_fall_silent, a_request(timeout_s=0.2))
    assert error_class(reply) == "deadline_exceeded"
    assert text_of(reply) == "Done."


def test_nobody_listens() -> None:
    async def play(port: int) -> Reply:
        config = StreamConfig(url=f"http://127.0.0.1:{port}/", resume=True)
        async with StreamAgent(config, connect_s=60.0, read_s=None) as agent:
            return (await ask_with_events(agent))[0]

    with unused_port() as port:
        reply = asyncio.run(play(port))
    assert error_class(reply) == "agent_unreachable"
    assert reply.body is None


def test_a_connection_that_breaks_cuts_the_answer_off() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = b"".join(map(sse, WHOLE[:3]))
        writer.write(head + b"%x\r\n%b\r\n" % (len(body), body))
        await writer.drain()

    async def play() -> tuple[Reply, list[Event]]:
        async with (
            talking(talk) as url,
            StreamAgent(StreamConfig(url=url), connect_s=60.0, read_s=None) as agent,
        ):
            return await ask_with_events(agent)

    reply, events = asyncio.run(play())
    assert error_class(reply) == "answer_cut_off"
    assert len(events) == 3


# Streams that are taken up again


class Flaky:
    """A server that breaks every connection after a few frames, and goes on behind `Last-Event-ID`."""

    def __init__(
        self, frames: list[bytes], ids: list[str], at_once: int, *, go_on: Callable[[int], int] = lambda place: place
    ) -> None:
        self.frames = frames
        self.ids = ids
        self.at_once = at_once
        self.go_on = go_on
        self.requests: list[tuple[str, str | None]] = []
        self.prelude = b""
        self.tail = b""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        cursor = request.headers.get("Last-Event-ID")
        self.requests.append((request.method, cursor))
        place = 0 if cursor is None else self.go_on(self.ids.index(cursor) + 1)
        response = web.StreamResponse()
        await response.prepare(request)
        if cursor is not None:
            await response.write(self.prelude)
        await response.write(b"".join(self.frames[place : place + self.at_once]))
        if place + self.at_once < len(self.frames):
            await response.write(self.tail or self.frames[place + self.at_once][:7])
            if request.transport is not None:
                request.transport.abort()
        return response


IDS = [cursor_text("r", number) for number in range(len(WHOLE))]


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("at_once", [1, 2, 3, 7])
def test_a_broken_stream_is_taken_up_without_gap_or_duplicate(method: Any, at_once: int) -> None:
    server = Flaky(with_ids(WHOLE), IDS, at_once)
    reply, events = run(server.handle, resume=True, resume_method=method)
    assert reply.fault is None
    assert text_of(reply) == "Done."
    assert len(events) == len(WHOLE)
    assert reply.reading is not None
    assert reply.reading.notes == []
    assert server.requests[0] == ("POST", None)
    assert {used for used, _ in server.requests[1:]} == {method.upper()}
    assert server.requests[1][1] == IDS[at_once - 1]


def test_a_native_stream_is_taken_up_by_its_sequence() -> None:
    server = Flaky([*map(sse, enveloped(WHOLE))], IDS, 4)
    reply, events = run(server.handle, resume=True, format="native")
    assert reply.fault is None
    assert len(events) == len(WHOLE)
    assert server.requests[1] == ("GET", "r:3")


@pytest.mark.parametrize("native", [True, False])
def test_a_server_that_repeats_itself_makes_no_duplicates(native: bool) -> None:
    frames = [*map(sse, enveloped(WHOLE))] if native else with_ids(WHOLE)
    server = Flaky(frames, IDS, 6, go_on=lambda place: max(place - 3, 0))
    reply, events = run(server.handle, resume=True)
    assert reply.fault is None
    assert len(events) == len(WHOLE)
    assert text_of(reply) == "Done."


def test_opaque_ids_serve_as_cursors_too() -> None:
    ids = [f"1700000000000-{number}" for number in range(len(WHOLE))]
    frames = [sse(event, event_id) for event, event_id in zip(WHOLE, ids, strict=True)]
    server = Flaky(frames, ids, 4, go_on=lambda place: place - 1)
    reply, events = run(server.handle, resume=True)
    assert reply.fault is None
    assert len(events) == len(WHOLE)


def test_the_prelude_of_a_join_is_not_recorded_again() -> None:
    server = Flaky(with_ids(WHOLE), IDS, 6)
    server.prelude = sse(START) + sse(TEXT[0])
    reply, events = run(server.handle, resume=True)
    assert reply.fault is None
    assert len(events) == len(WHOLE)
    assert reply.reading is not None
    assert reply.reading.notes == []


def test_a_terminal_frame_ends_a_stream_that_was_taken_up() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return await streaming([sse({"type": "TERMINAL", "runId": "r", "status": "completed"})])(request)
        return await streaming(map(sse, enveloped(WHOLE[:-1])))(request)

    reply, events = run(handler, resume=True, format="native")
    assert reply.fault is None
    assert len(events) == len(WHOLE) - 1


def test_a_gap_is_told_and_is_no_success() -> None:
    server = Flaky(with_ids(WHOLE), IDS, 6, go_on=lambda place: place + 1)
    reply, _ = run(server.handle, resume=True)
    assert error_class(reply) == "stream_truncated"
    assert reply.fault is not None
    assert "6 to 6" in reply.fault.message


def test_a_stream_without_ids_is_not_taken_up() -> None:
    server = Flaky([*map(sse, WHOLE)], IDS, 4)
    reply, events = run(server.handle, resume=True)
    assert error_class(reply) == "answer_cut_off"
    assert len(server.requests) == 1
    assert len(events) == 4


def test_a_stream_is_not_taken_up_unless_that_was_asked_for() -> None:
    server = Flaky(with_ids(WHOLE), IDS, 4)
    reply, _ = run(server.handle)
    assert error_class(reply) == "answer_cut_off"
    assert len(server.requests) == 1


def test_a_server_that_cannot_go_on_leaves_the_stream_truncated() -> None:
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.method)
        if request.method == "GET":
            return web.Response(status=404)
        return await streaming(with_ids(WHOLE[:4]))(request)

    reply, events = run(handler, resume=True)
    assert error_class(reply) == "stream_truncated"
    assert asked == ["POST", "GET"]
    assert len(events) == 4


def test_a_server_that_brings_nothing_new_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.agents.stream.agent.FIRST_WAIT_S", 0.001)
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.method)
        return await streaming(with_ids(WHOLE[:4]))(request)

    reply, events = run(handler, resume=True)
    assert error_class(reply) == "stream_truncated"
    assert len(asked) == 6
    assert len(events) == 4


def test_typed_events_reach_the_recorder() -> None:
    _, events = run(streaming(map(sse, WHOLE)))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert sum(isinstance(event, TextMessageContent) for event in events) == 2
