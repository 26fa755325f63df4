"""Requests: what is sent, what is made of the answer, and that to send one twice is to send it once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from client.scripted import A_RUN, Desk, Handler, a_client, problem, serving
from seatrial.api import RunInput
from seatrial.client import Client
from seatrial.client.client import PushedEvent
from seatrial.errors import SeatrialError
from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import TextMessageStart


async def failure(handler: Handler, **options: Any) -> SeatrialError:
    async with serving(handler) as port, a_client(port, **{"patience_s": 0.1, **options}) as client:
        with pytest.raises(SeatrialError) as caught:
            await client.run("r")
    return caught.value


async def test_a_run_is_asked_for() -> None:
    desk = Desk(A_RUN)
    async with serving(desk.answer) as port, a_client(port) as client:
        run = await client.create_run(
            "shop",
            RunInput(state={"a": 1}),
            thread_id="t",
            run_id="r",
            idempotency_key="k",
            resume=[ResumeEntry("i", "resolved", {"yes": True})],
        )
    assert (run.run_id, run.status, run.created_at.isoformat()) == ("r", "running", "2026-11-15T20:00:00+00:00")
    resume = [{"interruptId": "i", "status": "resolved", "payload": {"yes": True}}]
    assert desk.requests == [
        (
            "POST",
            "/v1/runs",
            {
                "agent": "shop",
                "input": {"state": {"a": 1}},
                "threadId": "t",
                "runId": "r",
                "idempotencyKey": "k",
                "resume": resume,
            },
        )
    ]
    assert desk.headers[0]["Content-Type"] == "application/json"


async def test_a_string_is_what_the_user_says_and_the_same_request_is_the_same_to_the_letter() -> None:
    desk = Desk(A_RUN)
    async with serving(desk.answer) as port, a_client(port) as client:
        for _ in range(2):
            await client.create_run("shop", "Where is my order?", idempotency_key="k")
    first, second = (body for _, _, body in desk.requests)
    (message,) = first["input"]["messages"]
    assert (message["role"], message["content"]) == ("user", "Where is my order?")
    assert first == second


async def test_a_run_whose_answer_was_lost_is_asked_for_under_the_same_key() -> None:
    desk = Desk(web.Response(status=502), web.Response(status=504), A_RUN)
    async with serving(desk.answer) as port, a_client(port) as client:
        assert (await client.create_run("shop", "hello")).run_id == "r"
        assert (await client.create_run("shop", "hello")).run_id == "r"
    keys = [body["idempotencyKey"] for _, _, body in desk.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]


async def test_pushed_events_have_ids_so_that_they_can_be_sent_again() -> None:
    desk = Desk(problem(503, "store_unavailable"), {"sequences": [3, 4], "head": 4})
    events: list[PushedEvent] = [
        TextMessageStart(message_id="m"),
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "eventId": "mine"},
    ]
    async with serving(desk.answer) as port, a_client(port) as client:
        result = await client.push("r", events, first=3)
    assert (result.sequences, result.head, result.notes) == ([3, 4], 4, [])
    (method, path, body), again = desk.requests
    assert (method, path, body["first"]) == ("POST", "/v1/runs/r/events", 3)
    assert body["events"][0].pop("eventId")
    assert body["events"] == [
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "eventId": "mine"},
    ]
    again[2]["events"][0].pop("eventId")
    assert again == (method, path, body)


async def test_runs_threads_and_pages_are_asked_for_by_their_names() -> None:
    page = {"runs": [A_RUN], "next": "abc"}
    thread = {"threadId": "t/1", "runs": [A_RUN], "messages": [{"id": "m", "role": "user", "content": "hi"}]}
    events = {"runId": "r", "threadId": "t", "events": [{"sequence": 0}], "next": 0}
    desk = Desk(page, page, thread, events, A_RUN, A_RUN)
    async with serving(desk.answer) as port, a_client(port) as client:
        assert (await client.runs()).next == "abc"
        await client.runs(agent="a b", thread_id="t", status=["failed", "cancelled"], before="x&y", limit=5)
        assert (await client.thread("t/1")).messages[0]["content"] == "hi"
        found = await client.events_page("r", after=7, limit=10)
        assert ([bytes(event) for event in found.events], found.next, found.closed) == ([b'{"sequence": 0}'], 0, False)
        assert (await client.cancel("r")).run_id == "r"
        assert (await client.run("r:1")).agent == "shop"
    assert [(method, path) for method, path, _ in desk.requests] == [
        ("GET", "/v1/runs"),
        ("GET", "/v1/runs?agent=a+b&threadId=t&status=failed,cancelled&before=x%26y&limit=5"),
        ("GET", "/v1/threads/t%2F1"),
        ("GET", "/v1/runs/r/events?after=7&limit=10"),
        ("POST", "/v1/runs/r/cancel"),
        ("GET", "/v1/runs/r%3A1"),
    ]


async def test_a_service_below_a_path_is_found_there() -> None:
    desk = Desk(A_RUN)
    async with serving(desk.answer) as port, Client(f"http://127.0.0.1:{port}/seatrial/") as client:
        await client.run("r")
    assert desk.requests[0][1] == "/seatrial/v1/runs/r"


async def test_a_refusal_has_the_services_code_and_details() -> None:
    desk = Desk(problem(409, "thread_busy", runId="other"))
    error = await failure(desk.answer)
    assert (error.code, error.details) == ("thread_busy", {"runId": "other"})
    assert len(desk.requests) == 1


async def test_a_refusal_that_stays_is_raised_once_patience_has_run_out() -> None:
    desk = Desk(problem(429, "rate_limited"))
    assert (await failure(desk.answer)).code == "rate_limited"
    assert len(desk.requests) > 2


@pytest.mark.parametrize("answer", [{}, {**A_RUN, "status": "asleep"}])
async def test_an_answer_of_another_shape_is_a_failure_of_the_service(answer: dict[str, Any]) -> None:
    error = await failure(Desk(answer).answer)
    assert error.code == "service_failed"
    assert "is not what was asked for" in error.message


async def test_a_page_of_html_is_a_failure_of_the_service() -> None:
    error = await failure(Desk(web.Response(text="<html>", content_type="text/html")).answer)
    assert (error.code, error.message) == (
        "service_failed",
        "the service answered with 'text/html' instead of application/json",
    )


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1)
        return web.Response()

    error = await failure(silent, timeout_s=0.05, patience_s=0)
    assert error.code == "service_failed"
    assert "nothing came from" in error.message
    assert "0.05 s" in error.message


async def test_cookies_are_not_kept() -> None:
    desk = Desk(web.json_response(A_RUN, headers={"Set-Cookie": "session=1"}), A_RUN)
    async with serving(desk.answer) as port, a_client(port) as client:
        await client.run("r")
        await client.run("r")
    assert "Cookie" not in desk.headers[1]


async def test_large_events_are_pushed_whole() -> None:
    desk = Desk({"sequences": [0], "head": 0})
    text = "x" * 3_000_000
    async with serving(desk.answer) as port, a_client(port) as client:
        await client.push("r", [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text}])
    assert desk.requests[0][2]["events"][0]["delta"] == text
