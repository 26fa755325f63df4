"""The AG-UI view over real HTTP, with the real client of AG-UI on the other side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import aiohttp
import msgspec
import pytest
from litestar.types import Receive, Scope, Send

from seatrial.agents.agent import Agent
from seatrial.events import SseParser, encode_event
from seatrial.events import types as t
from seatrial.runs import Case, Experiment, Run, RunKey
from seatrial.server.agui_stream import agui_stream
from seatrial.server.feed import Feeds
from seatrial.server.settings import ServerSettings
from seatrial.store import Store
from server.real_client import Held, follow
from server.served import SETTINGS, agent, served, serving


async def work() -> AsyncIterator[t.Event]:
    """Something of everything: steps, reasoning, text in chunks, a subagent with a tool call, state, an activity."""
    yield t.StepStarted(step_name="think")
    yield t.ReasoningStart(message_id="span")
    yield t.ReasoningMessageStart(message_id="r")
    yield t.ReasoningMessageContent(message_id="r", delta="hm, é")
    yield t.ReasoningMessageEnd(message_id="r")
    yield t.ReasoningEnd(message_id="span")
    yield t.StateSnapshot(snapshot={"n": 1})
    yield t.SubagentStarted(subagent_run_id="s", name="helper")
    yield t.ToolCallStart(tool_call_id="c", tool_call_name="look", subagent_run_id="s", metadata={"k": 1})
    yield t.ToolCallArgs(tool_call_id="c", delta='{"q":', subagent_run_id="s", event_id="e1")
    yield t.ToolCallArgs(tool_call_id="c", delta="1}", metadata={"k": 2})
    yield t.ToolCallEnd(tool_call_id="c")
    yield t.ToolCallResult(message_id="res", tool_call_id="c", content="found", subagent_run_id="s")
    yield t.SubagentFinished(subagent_run_id="s")
    yield t.ActivitySnapshot(message_id="a", activity_type="PLAN", content={"done": 0})
    yield t.TextMessageChunk(message_id="m", delta="hel")
    yield t.ActivityDelta(message_id="a", activity_type="PLAN", patch=[{"op": "replace", "path": "/done", "value": 1}])
    yield t.TextMessageChunk(delta="lo")
    yield t.StateDelta(delta=[{"op": "add", "path": "/m", "value": [2]}])
    yield t.StepFinished(step_name="think")


async def ask(instruction: str) -> AsyncIterator[t.Event]:
    """Asks for leave, and goes on when it has it."""
    if instruction == "go":
        yield t.TextMessageChunk(message_id="done", delta="done")
        return
    yield t.TextMessageChunk(message_id="plan", delta="may I?")
    interrupts = [t.Interrupt("i1", "confirmation", message="may I?")]
    yield t.RunFinished(thread_id="?", run_id="?", outcome=t.InterruptOutcome(interrupts))


async def wait_for_ever() -> AsyncIterator[t.Event]:
    yield t.TextMessageStart(message_id="m")
    yield t.TextMessageContent(message_id="m", delta="so far")
    await asyncio.sleep(3600)


AGENTS: dict[str, Agent] = {"worker": agent(work), "asker": agent(ask), "sleeper": agent(wait_for_ever)}
EXPERIMENT = Experiment(experiment_id="e1", name="e", suite={}, suite_hash="h", created_at=1)
CASE = Case(id="case", instruction="do it")
KEY = RunKey("a", "case", 1)
HELLO = {"id": "u1", "role": "user", "content": "hello"}

Scenario = Callable[[str, aiohttp.ClientSession], Coroutine[Any, Any, None]]


def with_server(store: Store, scenario: Scenario, settings: ServerSettings = SETTINGS) -> None:
    async def whole() -> None:
        async with serving(store, AGENTS, settings) as (url, client):
            await scenario(url, client)

    asyncio.run(whole())


async def following(*clients: dict[str, Any]) -> list[Held]:
    """What real clients hold in the end. None of them had to be warned of anything that is not AG-UI's."""
    followed = await asyncio.to_thread(follow, list(clients))
    assert not [warning for held in followed for warning in held.warnings if "[enforce]" in warning]
    return followed


def asking(url: str, run_id: str, thread_id: str = "t", *, of: str = "worker", **step: Any) -> dict[str, Any]:
    """A client that has said hello, and runs an agent."""
    post = {"method": "POST", "url": f"{url}/v1/agents/{of}/ag-ui", "runId": run_id, **step}
    return {"threadId": thread_id, "messages": [HELLO], "steps": [post]}


def joining(url: str, run_id: str, thread_id: str = "t", **step: Any) -> dict[str, Any]:
    """A client that has nothing, and connects to a run."""
    return {"threadId": thread_id, "steps": [{"url": f"{url}/v1/runs/{run_id}/ag-ui", **step}]}


async def push_run(client: aiohttp.ClientSession, run_id: str, thread_id: str = "t", messages: Any = ()) -> None:
    asked = {"agent": "p", "push": True, "runId": run_id, "threadId": thread_id, "input": {"messages": list(messages)}}
    async with client.post("/v1/runs", json=asked) as response:
        assert response.status == 202, await response.text()


async def push(client: aiohttp.ClientSession, run_id: str, *events: t.Event) -> None:
    body = {"events": [msgspec.to_builtins(event) for event in events]}
    async with client.post(f"/v1/runs/{run_id}/events", json=body) as response:
        assert response.status == 200, await response.text()


async def text_of(client: aiohttp.ClientSession, path: str, headers: dict[str, str] | None = None) -> bytes:
    async with client.get(path, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        return await response.read()


def kinds(body: bytes) -> list[tuple[str | None, str]]:
    return [(frame.id, msgspec.json.decode(frame.data)["type"]) for frame in SseParser().feed(body)]


EXPECTED_MESSAGES = [
    HELLO,
    {"id": "r", "role": "reasoning", "content": "hm, é"},
    {
        "id": "c",
        "role": "assistant",
        "subagentRunId": "s",
        "toolCalls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "look", "arguments": '{"q":1}'},
                "metadata": {"k": 2},
            }
        ],
    },
    {"id": "res", "role": "tool", "toolCallId": "c", "content": "found", "subagentRunId": "s"},
    {"id": "a", "role": "activity", "activityType": "PLAN", "content": {"done": 1}},
    {"id": "m", "role": "assistant", "content": "hello"},
]
EXPECTED_STATE = {"n": 1, "m": [2]}


def test_the_real_client_runs_an_agent(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        (held,) = await following(asking(url, "r1"))
        assert (held.errors, held.run_errors) == ([], [])
        assert held.messages == EXPECTED_MESSAGES
        assert held.state == EXPECTED_STATE
        assert held.finished == [{"outcome": "success", "pending": []}]
        assert held.warnings == []

    with_server(store, scenario)


def test_the_real_client_joins_a_run_that_has_ended(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        _, joined = await following(asking(url, "r1"), joining(url, "r1"))
        assert (joined.messages, joined.state, joined.errors) == (EXPECTED_MESSAGES, EXPECTED_STATE, [])
        assert joined.finished == [{"outcome": "success", "pending": []}]
        body = await text_of(client, "/v1/runs/r1/ag-ui")
        assert kinds(body) == [
            (None, "RUN_STARTED"),
            (None, "STATE_SNAPSHOT"),
            (None, "MESSAGES_SNAPSHOT"),
            (None, "SUBAGENT_STARTED"),
            (None, "SUBAGENT_FINISHED"),
            (joined.last_event_id, "RUN_FINISHED"),
        ]

    with_server(store, scenario)


def test_the_real_client_comes_back_wherever_its_connection_was_cut(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        whole = asking(url, "r1")
        await following(whole)
        body = await text_of(client, "/v1/runs/r1/ag-ui", {"Last-Event-ID": "r1:0"})
        # The client of a POST is given the same as one that has RUN_STARTED and no more.
        (again,) = joining(url, "r1")["steps"]
        cut_off = {**again, "lastEventId": "r1:0"}
        followed = await following(
            *[
                {"threadId": "t", "messages": [HELLO], "steps": [{**cut_off, "cutAfter": cut}, again]}
                for cut in range(1, len(body), 41)
            ]
        )
        for held in followed:
            assert held.errors in (["cut"], [])
            assert (held.messages, held.state) == (EXPECTED_MESSAGES, EXPECTED_STATE)
            assert held.finished[-1] == {"outcome": "success", "pending": []}

    with_server(store, scenario)


def test_whoever_has_the_terminal_event_is_told_again_how_the_run_ended(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        (held,) = await following(asking(url, "r1"))
        assert held.last_event_id is not None
        body = await text_of(client, "/v1/runs/r1/ag-ui", {"Last-Event-ID": held.last_event_id})
        # The subagent has ended, but others may still name it as their parent.
        told = [(None, "RUN_STARTED"), (None, "SUBAGENT_STARTED"), (None, "SUBAGENT_FINISHED")]
        assert kinds(body) == [*told, (held.last_event_id, "RUN_FINISHED")]

    with_server(store, scenario)


OPEN: list[t.Event] = [
    t.StepStarted(step_name="write"),
    t.SubagentStarted(subagent_run_id="s", name="helper"),
    t.ReasoningStart(message_id="span"),
    t.ReasoningMessageStart(message_id="r"),
    t.ReasoningMessageContent(message_id="r", delta="so "),
    t.TextMessageChunk(message_id="m", delta="hel", subagent_run_id="s"),
    t.ToolCallStart(tool_call_id="c", tool_call_name="f"),
    t.ToolCallArgs(tool_call_id="c", delta="{"),
]
REST: list[t.Event] = [
    t.TextMessageChunk(delta="lo", subagent_run_id="s"),
    t.ToolCallArgs(tool_call_id="c", delta="}"),
    t.ToolCallEnd(tool_call_id="c"),
    t.ReasoningMessageContent(message_id="r", delta="what"),
    t.ReasoningMessageEnd(message_id="r"),
    t.ReasoningEnd(message_id="span"),
    t.SubagentFinished(subagent_run_id="s"),
    t.StepFinished(step_name="write"),
    t.RunFinished(thread_id="t", run_id="p1"),
]


SO_FAR = [
    HELLO,
    {"id": "r", "role": "reasoning", "content": "so "},
    {"id": "m", "role": "assistant", "content": "hel", "subagentRunId": "s"},
    {
        "id": "c",
        "role": "assistant",
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}],
    },
]


def test_the_real_client_joins_a_run_that_goes_on_and_one_that_was_there_comes_back(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        await push_run(client, "p1", messages=[HELLO])
        await push(client, "p1", *OPEN)
        # The second one has seen all that there is, the third one something that is not so any more.
        clients = asyncio.create_task(
            following(
                joining(url, "p1"),
                {**joining(url, "p1", lastEventId="p1:8"), "messages": SO_FAR},
                {**joining(url, "p1"), "messages": [{"id": "m", "role": "assistant", "content": "HEL"}]},
            )
        )
        async with client.get("/v1/runs/p1/ag-ui") as response:
            body = await response.content.readuntil(b'"TOOL_CALL_START"')
            await push(client, "p1", *REST)
            body += await response.read()
        assert kinds(body)[:9] == [
            (None, "RUN_STARTED"),
            (None, "MESSAGES_SNAPSHOT"),
            (None, "STEP_STARTED"),
            (None, "SUBAGENT_STARTED"),
            (None, "REASONING_START"),
            (None, "REASONING_MESSAGE_START"),
            (None, "TEXT_MESSAGE_START"),
            (None, "TOOL_CALL_START"),
            ("p1:9", "TEXT_MESSAGE_CONTENT"),
        ]
        for held in await clients:
            assert (held.errors, held.finished) == ([], [{"outcome": "success", "pending": ["c"]}])
            by_id = {message["id"]: message for message in held.messages}
            said = {name: message.get("content") for name, message in by_id.items()}
            assert said == {"u1": "hello", "r": "so what", "m": "hello", "c": None}
            assert by_id["c"]["toolCalls"][0]["function"]["arguments"] == "{}"
            assert by_id["m"]["subagentRunId"] == "s"

    with_server(store, scenario)


def test_what_was_said_before_in_the_thread_is_in_the_snapshot_of_whoever_joins(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        first = asking(url, "r1")
        again = {**first["steps"][0], "runId": "r2", "url": f"{url}/v1/agents/sleeper/ag-ui", "cutAfter": 300}
        await following({**first, "steps": [*first["steps"], again]})
        async with client.get("/v1/runs/r2/ag-ui") as response:
            body = await response.content.readuntil(b'"TEXT_MESSAGE_START"')
        snapshot = msgspec.json.decode(SseParser().feed(body)[2].data)
        assert [message["id"] for message in snapshot["messages"]] == ["u1", "r", "c", "res", "a", "m"]
        assert snapshot["messages"][-1]["content"] == "helloso far"  # of the second run, under the same id
        async with client.get("/v1/runs/r2") as response:
            assert (await response.json())["status"] == "running", "the run goes on when its client leaves"
        async with client.post("/v1/runs/r2/cancel"):
            pass
        (held,) = await following(joining(url, "r2"))
        assert held.finished == [{"outcome": "cancelled", "pending": []}]

    with_server(store, scenario)


def test_an_interrupt_is_pending_for_whoever_joins_and_is_answered_by_a_new_run(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        asked, joined = await following(asking(url, "r1", of="asker"), joining(url, "r1"))
        interrupt = {"id": "i1", "reason": "confirmation", "message": "may I?"}
        assert asked.pending_interrupts == joined.pending_interrupts == [interrupt]
        assert [message["id"] for message in joined.messages] == ["u1", "plan"]
        answer = {
            "threadId": "t",
            "messages": [*joined.messages, {"id": "u2", "role": "user", "content": "go"}],
            "steps": [
                {
                    "method": "POST",
                    "url": f"{url}/v1/agents/asker/ag-ui",
                    "runId": "r2",
                    "resume": [{"interruptId": "i1", "status": "resolved", "payload": {"ok": True}}],
                }
            ],
        }
        (done,) = await following(answer)
        (again,) = await following(answer)
        for held in (done, again):
            assert (held.errors, held.pending_interrupts) == ([], [])
            assert [message["id"] for message in held.messages] == ["u1", "plan", "u2", "done"]
            assert held.messages[-1]["content"] == "done"

    with_server(store, scenario)


def test_a_run_id_that_was_used_is_refused_outside_the_stream(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        _, second = await following(asking(url, "r1"), asking(url, "r1", thread_id="other"))
        assert second.errors[0].startswith("HTTP 409: ")
        assert '"code":"conflict"' in second.errors[0]

    with_server(store, scenario)


@pytest.mark.parametrize(
    ("cursor", "status", "code"),
    [("r1:99", 409, "cursor_ahead"), ("other:1", 400, "invalid_cursor"), ("x", 400, "invalid_cursor")],
)
def test_a_cursor_that_is_none_is_refused(store: Store, cursor: str, status: int, code: str) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        await following(asking(url, "r1"))
        async with client.get("/v1/runs/r1/ag-ui", headers={"Last-Event-ID": cursor}) as response:
            assert (response.status, (await response.json(content_type=None))["code"]) == (status, code)

    with_server(store, scenario)


def test_events_that_are_not_kept_any_more_are_an_explicit_gap(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        (held,) = await following(asking(url, "r1"))
        assert held.last_event_id is not None
        last = int(held.last_event_id.removeprefix("r1:"))
        await store.forget_events("r1", last + 1)
        async with client.get("/v1/runs/r1/ag-ui") as response:
            problem = await response.json(content_type=None)
            assert (response.status, problem["code"], problem["first"]) == (410, "cursor_expired", last)
        body = await text_of(client, f"/v1/runs/r1/ag-ui?after={last - 1}")
        assert kinds(body) == [(None, "RUN_STARTED"), (held.last_event_id, "RUN_FINISHED")]

    with_server(store, scenario)


def test_an_idle_stream_says_in_comments_that_it_is_alive(store: Store) -> None:
    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        await push_run(client, "p1")
        async with client.get("/v1/runs/p1/ag-ui") as response:
            await response.content.readuntil(b": keepalive\n\n: keepalive\n\n")
            await push(client, "p1", t.RunFinished(thread_id="t", run_id="p1"))
            assert kinds(await response.read()) == [("p1:1", "RUN_FINISHED")]

    with_server(store, scenario, msgspec.structs.replace(SETTINGS, keepalive_s=0.05))


def test_a_server_that_stops_is_no_success_for_the_real_client(store: Store) -> None:
    store.create_experiment(EXPERIMENT, [CASE])
    store.begin_run("e1", KEY, "x1").wait()
    store.append_events("x1", [encode_event(t.RunStarted(thread_id="e1", run_id="x1"))]).wait()

    async def whole() -> None:
        feeds = Feeds(store)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            stream = await agui_stream(feeds, store, "x1", after=None)
            await stream(scope, receive, send)

        async with served(app) as url:
            clients = asyncio.create_task(following(joining(url, "x1")))
            while not feeds.subscribers and not clients.done():
                await asyncio.sleep(0.01)
            await feeds.close()
            (held,) = await clients
        assert held.errors in (["terminated"], ["fetch failed"])  # had it read the head of the response?
        assert (held.finished, held.run_errors) == ([], [])

    asyncio.run(whole())


def test_a_run_of_an_experiment_is_shown_too_without_what_a_client_would_refuse(store: Store) -> None:
    run = Run(run_id="x1", experiment_id="e1", key=KEY, status="completed")
    log: list[t.Event] = [
        t.RunStarted(thread_id="e1", run_id="x1"),
        t.TextMessageContent(message_id="m", delta="never began"),
        t.RunError(message="the first attempt"),
        t.RunStarted(thread_id="e1", run_id="x1"),
        t.TextMessageStart(message_id="m"),
        t.TextMessageContent(message_id="m", delta="done"),
        t.TextMessageEnd(message_id="m"),
    ]
    store.create_experiment(EXPERIMENT, [CASE])
    store.record_run(run, events=[encode_event(event) for event in log]).wait()

    async def scenario(url: str, client: aiohttp.ClientSession) -> None:
        join = joining(url, "x1", "e1")
        joined, resumed = await following(join, {**join, "steps": [{**join["steps"][0], "lastEventId": "x1:1"}]})
        for held in (joined, resumed):
            assert (held.errors, held.messages) == ([], [{"id": "m", "role": "assistant", "content": "done"}])
        # Its last event is no terminal one, so nobody may take it for a success.
        assert (joined.run_errors, resumed.run_errors) == (["run_truncated"], [None, "run_truncated"])

    with_server(store, scenario)
