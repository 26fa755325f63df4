"""The proxy is a real server: 401 before anything else, no tools, and live traces that become events."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import msgspec
import pytest
from agents.setting import collecting

from seatrial.driver import Redaction, recordable
from seatrial.events.types import CustomEvent, Event
from seatrial.trajectory import observed
from seatrial.trajectory.observed import ObservedCalls
from seatrial.world import proxy as proxy_module
from seatrial.world.grant import RunGrant
from seatrial.world.proxy import ToolProxy
from seatrial.world.tools import ToolAnswer
from seatrial.world.trace import TRACE_TYPES


class Caller:
    """An agent's side of one run."""

    def __init__(self, session: aiohttp.ClientSession, proxy: ToolProxy, grant: RunGrant) -> None:
        self.session = session
        self.proxy = proxy
        self.grant = grant
        self.events: list[Event] = []
        self.calls = ObservedCalls()

    def recorded(self) -> list[Event]:
        """The events as they are stored."""
        redaction = Redaction(None)
        redaction.hide_token(self.grant.token)
        return [recordable(event, redaction)[0] for event in self.events]

    async def post(
        self, path: str, body: bytes | Any = b"{}", headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        sent = {"Authorization": f"Bearer {self.grant.token}"} if headers is None else headers
        async with self.session.post(f"{self.grant.url}{path}", data=data, headers=sent) as response:
            return response.status, await response.json()


def with_run(scenario: Callable[[Caller], Awaitable[None]], **options: Any) -> None:
    """Play a scenario on a proxy with one open run."""

    async def play() -> None:
        async with ToolProxy(**options) as proxy, aiohttp.ClientSession() as session:
            events: list[Event] = []
            calls = ObservedCalls()
            caller = Caller(session, proxy, proxy.open_run("run-1", collecting(events), calls))
            caller.events, caller.calls = events, calls
            await scenario(caller)

    asyncio.run(play())


def detail_of(body: Any) -> str:
    detail: str = body["detail"]["error_class"]
    assert body["detail"]["message"]
    return detail


def test_any_tool_is_unknown_in_a_world_without_tools() -> None:
    async def scenario(caller: Caller) -> None:
        status, body = await caller.post("/tools/search", {"q": "tea"})
        assert (status, detail_of(body)) == (404, "tool_not_found")

    with_run(scenario)


def test_a_token_that_is_used_as_the_name_of_a_tool_is_not_recorded() -> None:
    async def scenario(caller: Caller) -> None:
        for name in (caller.grant.token, f"a-{caller.grant.token}"):
            status, _ = await caller.post(f"/tools/{name}", {})
            assert status == 404
        attempts = [event.value["tool"] for event in caller.recorded() if isinstance(event, CustomEvent)]
        assert attempts == ["[run token]", "a-[run token]"]

    with_run(scenario)


def test_a_call_of_an_unknown_tool_is_recorded_as_an_attempt() -> None:
    async def scenario(caller: Caller) -> None:
        headers = {"Authorization": f"Bearer {caller.grant.token}", "X-Pipelines-Actor-Id": "supervisor/refunds"}
        await caller.post("/tools/search", {"q": "tea"}, headers)
        await caller.post("/tools/search", b"")
        assert caller.events == [
            CustomEvent(
                name="tool.not_found",
                value={"tool": "search", "arguments": {"q": "tea"}, "actor": "supervisor/refunds"},
            ),
            CustomEvent(name="tool.not_found", value={"tool": "search", "arguments": {}}),
        ]

    with_run(scenario)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "run_token_missing"),
        ({"Authorization": "Bearer __reachability_probe__"}, "run_token_invalid"),
        ({"Authorization": "bearer {token}"}, "run_token_missing"),
        ({"Authorization": "Basic {token}"}, "run_token_missing"),
        ({"Authorization": "Bearer {token}", "X-Pipelines-Run-Token": "another"}, "run_token_mismatch"),
    ],
)
@pytest.mark.parametrize("path", ["/tools/__reachability_probe__", "/tools/no such tool", "/traces/no_such_type"])
def test_a_bad_token_is_answered_before_tool_and_body_are_looked_at(
    path: str, headers: dict[str, str], expected: str
) -> None:
    async def scenario(caller: Caller) -> None:
        sent = {name: value.format(token=caller.grant.token) for name, value in headers.items()}
        status, body = await caller.post(path, b"not JSON", sent)
        assert (status, detail_of(body)) == (401, expected)
        assert caller.events == []

    with_run(scenario)


@pytest.mark.parametrize("name", ["X-Pipelines-Run-Token", "both"])
def test_the_token_may_come_in_its_own_header(name: str) -> None:
    async def scenario(caller: Caller) -> None:
        headers = {"X-Pipelines-Run-Token": caller.grant.token}
        if name == "both":
            headers["Authorization"] = f"Bearer {caller.grant.token}"
        status, _ = await caller.post("/traces/thinking", {"text": "hm"}, headers)
        assert status == 200

    with_run(scenario)


def test_a_token_is_dead_when_the_run_closes() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.proxy.close_run("run-1")
        status, body = await caller.post("/tools/search")
        assert (status, detail_of(body)) == (401, "run_token_expired")

    with_run(scenario)


def test_a_post_that_is_under_way_when_the_run_closes_is_not_recorded() -> None:
    async def scenario(caller: Caller) -> None:
        async def slow_body() -> Any:
            yield b'{"text": '
            await asyncio.sleep(0.1)
            await caller.proxy.close_run("run-1")
            yield b'"late"}'

        headers = {"Authorization": f"Bearer {caller.grant.token}"}
        url = f"{caller.grant.url}/traces/thinking"
        async with caller.session.post(url, data=slow_body(), headers=headers) as response:
            assert (response.status, detail_of(await response.json())) == (401, "run_token_expired")
        assert caller.events == []

    with_run(scenario)


@pytest.mark.parametrize("trace_type", sorted(TRACE_TYPES - {"handoff"}))
def test_a_trace_post_becomes_an_event_of_the_run_while_it_goes_on(trace_type: str) -> None:
    async def scenario(caller: Caller) -> None:
        payload = {"text": "hm", "__occurred_at": "2026-01-01T00:00:00+00:00"}
        assert await caller.post(f"/traces/{trace_type}", payload) == (200, {"accepted": True, "sequence": 0})
        assert caller.events == [CustomEvent(name=f"trace.{trace_type}", value=payload)]

    with_run(scenario)


def test_the_sequence_of_trace_posts_counts_up_for_each_run() -> None:
    async def scenario(caller: Caller) -> None:
        answers = await asyncio.gather(*[caller.post("/traces/custom", {"n": n}) for n in range(20)])
        assert sorted(body["sequence"] for _, body in answers) == list(range(20))
        other = caller.proxy.open_run("run-2", collecting(caller.events))
        headers = {"Authorization": f"Bearer {other.token}"}
        assert (await caller.post("/traces/custom", {}, headers))[1]["sequence"] == 0

    with_run(scenario)


def test_a_handoff_needs_labels_of_actors() -> None:
    async def scenario(caller: Caller) -> None:
        good = {"from_sub_agent": "supervisor", "to_sub_agent": "supervisor/refunds", "reason": "money"}
        assert (await caller.post("/traces/handoff", good))[0] == 200
        for bad in (
            {**good, "to_sub_agent": "no good"},
            {**good, "from_sub_agent": 7},
            {"from_sub_agent": "supervisor"},
        ):
            status, body = await caller.post("/traces/handoff", bad)
            assert (status, detail_of(body)) == (400, "trace_payload_invalid")
        assert [event.value for event in caller.events if isinstance(event, CustomEvent)] == [good]

    with_run(scenario)


def test_a_handoff_to_oneself_is_dropped() -> None:
    async def scenario(caller: Caller) -> None:
        payload = {"from_sub_agent": "a", "to_sub_agent": " a "}
        assert await caller.post("/traces/handoff", payload) == (200, {"accepted": False, "sequence": None})
        assert caller.events == []

    with_run(scenario)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/traces/telemetry", b"{}"),
        ("/traces/thinking", b"[]"),
        ("/traces/thinking", b"not JSON"),
        ("/traces/thinking", b"[" * 100_000),
    ],
)
def test_a_trace_post_of_another_type_or_shape_is_refused(path: str, body: bytes) -> None:
    async def scenario(caller: Caller) -> None:
        status, answer = await caller.post(path, body)
        assert (status, detail_of(answer)) == (400, "trace_payload_invalid")
        assert caller.events == []

    with_run(scenario)


def test_a_malformed_actor_label_is_refused() -> None:
    async def scenario(caller: Caller) -> None:
        headers = {"Authorization": f"Bearer {caller.grant.token}", "X-Pipelines-Actor-Id": "a//b"}
        status, body = await caller.post("/tools/search", b"{}", headers)
        assert (status, detail_of(body)) == (400, "actor_label_invalid")

    with_run(scenario)


@pytest.mark.parametrize("body", [b"[]", b"7", b"not JSON"])
def test_arguments_that_are_no_object_are_refused(body: bytes) -> None:
    async def scenario(caller: Caller) -> None:
        status, answer = await caller.post("/tools/search", body)
        assert (status, detail_of(answer)) == (400, "arguments_invalid")

    with_run(scenario)


def test_a_body_beyond_the_limit_is_refused_packed_or_not() -> None:
    async def scenario(caller: Caller) -> None:
        large = b'{"text":"' + b"x" * 20_000 + b'"}'
        status, answer = await caller.post("/traces/thinking", large)
        assert (status, detail_of(answer)) == (413, "payload_too_large")
        headers = {"Authorization": f"Bearer {caller.grant.token}", "Content-Encoding": "gzip"}
        status, answer = await caller.post("/traces/thinking", gzip.compress(large), headers)
        assert (status, detail_of(answer)) == (413, "payload_too_large")
        assert caller.events == []

    with_run(scenario, max_body_bytes=10_000)


def test_what_one_run_may_post_is_bounded() -> None:
    async def scenario(caller: Caller) -> None:
        assert (await caller.post("/traces/thinking", {"text": "x" * 20}))[0] == 200
        status, answer = await caller.post("/traces/thinking", {"text": "x" * 20})
        assert (status, detail_of(answer)) == (413, "payload_too_large")

    with_run(scenario, max_run_bytes=50)


def test_the_trace_posts_of_one_run_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "MAX_TRACE_POSTS", 1)

    async def scenario(caller: Caller) -> None:
        assert (await caller.post("/traces/thinking", {}))[0] == 200
        status, answer = await caller.post("/traces/thinking", {})
        assert (status, detail_of(answer)) == (413, "too_many_trace_posts")

    with_run(scenario)


def test_a_body_of_very_many_values_is_refused_before_it_is_opened() -> None:
    async def scenario(caller: Caller) -> None:
        status, answer = await caller.post("/tools/pay", b'{"a":[' + b"1," * 300_000 + b"1]}")
        assert (status, detail_of(answer)) == (413, "payload_too_large")

    with_run(scenario)


def test_a_token_in_a_payload_does_not_reach_the_record() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.post("/traces/llm_payload", {"headers": {"authorization": f"Bearer {caller.grant.token}"}})
        assert caller.grant.token not in repr(caller.recorded())
        assert "[run token]" in repr(caller.recorded())

    with_run(scenario)


def test_the_tools_schema_is_told_to_a_run_by_its_bearer_only() -> None:
    async def scenario(caller: Caller) -> None:
        url = caller.grant.url.replace("/api/odyssey-proxy", "/api/agents/7/tools-schema?server=x")
        for headers, status, expected in (
            ({"Authorization": f"Bearer {caller.grant.token}"}, 200, {"tools": []}),
            ({"X-Pipelines-Run-Token": caller.grant.token}, 401, None),
            ({"Authorization": "Bearer other"}, 401, None),
        ):
            async with caller.session.get(url, headers=headers) as response:
                assert response.status == status
                assert expected is None or await response.json() == expected

    with_run(scenario)


def test_other_routes_and_methods_do_not_exist() -> None:
    async def scenario(caller: Caller) -> None:
        assert detail_of((await caller.post("/data"))[1]) == "route_not_found"
        assert caller.calls.steps == []
        async with caller.session.get(f"{caller.grant.url}/tools/search") as response:
            assert response.status == 401
        headers = {"Authorization": f"Bearer {caller.grant.token}"}
        async with caller.session.get(f"{caller.grant.url}/tools/search", headers=headers) as response:
            assert (response.status, detail_of(await response.json())) == (405, "method_not_allowed")
        assert [step.name for step in caller.calls.steps] == ["search"]

    with_run(scenario)


class OneTool:
    """A world that a later capability may bring."""

    def schema(self) -> list[dict[str, Any]]:
        return [{"name": "search", "inputSchema": {}}]

    async def call(self, run_id: str, name: str, arguments: dict[str, Any], headers: Mapping[str, str]) -> ToolAnswer:
        return ToolAnswer(200, {"tool_name": name, "response": [run_id, arguments], "source": "odyssey"})


def test_a_world_with_tools_answers_through_the_same_door() -> None:
    async def scenario(caller: Caller) -> None:
        status, body = await caller.post("/tools/search", {"q": "tea"})
        assert (status, body["response"]) == (200, ["run-1", {"q": "tea"}])
        called = {"tool": "search", "arguments": {"q": "tea"}, "status": "ok"}
        assert caller.events == [CustomEvent(name="tool.call", value=called)]
        assert caller.calls.steps is not None
        (step,) = caller.calls.steps
        assert (step.source, step.status, step.result, step.mode) == ("observed", "ok", body["response"], "simulated")

    with_run(scenario, tools=OneTool())


def test_the_proxy_listens_on_loopback_only() -> None:
    async def scenario(caller: Caller) -> None:
        assert caller.grant.url.startswith("http://127.0.0.1:")
        assert caller.grant.url.endswith("/api/odyssey-proxy")

    with_run(scenario)


# What is recorded of a call


REFUSED_CALLS: list[tuple[str, bytes, dict[str, str], str, Any]] = [
    ("/tools/pay", b'{"id": 7}', {}, "tool_not_found", ({"id": 7}, None)),
    ("/tools/pay", b"", {}, "tool_not_found", ({}, None)),
    ("/tools/pay", b"[7]", {}, "arguments_invalid", ([7], None)),
    ("/tools/pay", b'{"id": ', {}, "arguments_invalid", (None, '{"id": ')),
    ("/tools/pay", b"\xff", {}, "arguments_invalid", (None, "\ufffd")),
    ("/tools/pay", b"{}", {"X-Pipelines-Actor-Id": "//"}, "actor_label_invalid", ({}, None)),
    ("/tools/pay", b'"%b"' % (b"x" * 3000), {}, "payload_too_large", (None, "")),
    ("/tools/a/b", b"{}", {}, "tool_not_found", ({}, None)),
]


@pytest.mark.parametrize(("path", "body", "headers", "error_class", "arguments"), REFUSED_CALLS)
def test_a_call_is_recorded_also_when_it_is_refused(
    path: str, body: bytes, headers: dict[str, str], error_class: str, arguments: Any
) -> None:
    async def scenario(caller: Caller) -> None:
        _, answer = await caller.post(path, body, {"Authorization": f"Bearer {caller.grant.token}", **headers})
        assert detail_of(answer) == error_class
        assert caller.calls.steps is not None
        (step,) = caller.calls.steps
        assert (step.name, step.status, step.result) == (path.removeprefix("/tools/"), "error", answer)
        assert (step.arguments, step.arguments_text) == arguments
        assert caller.calls.note is None
        assert [event.value["tool"] for event in caller.events if isinstance(event, CustomEvent)] == [step.name]

    with_run(scenario, max_body_bytes=2000)


@pytest.mark.parametrize(
    ("response", "source", "status"),
    [
        ({"error": {"code": 404, "message": "no such order"}}, "odyssey", "error"),
        ({"error": "no such order"}, "odyssey", "error"),
        ({"error": None}, "odyssey", "ok"),
        ({"status": "cancelled"}, "odyssey", "ok"),
        ({}, "error", "error"),
        ({}, "transport_error", "error"),
        (None, "odyssey", "ok"),
    ],
)
def test_a_tool_says_that_it_failed_by_an_error_or_by_its_source(response: Any, source: str, status: str) -> None:
    class Answering(OneTool):
        async def call(self, run_id: str, name: str, arguments: Any, headers: Mapping[str, str]) -> ToolAnswer:
            return ToolAnswer(200, {"tool_name": name, "response": response, "source": source})

    async def scenario(caller: Caller) -> None:
        await caller.post("/tools/search")
        assert [(step.status, step.result) for step in caller.calls.steps or []] == [(status, response)]

    with_run(scenario, tools=Answering())


def test_a_call_that_has_no_answer_when_the_run_ends_is_recorded_and_stays_as_it_was() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    class Slow(OneTool):
        async def call(self, run_id: str, name: str, arguments: Any, headers: Mapping[str, str]) -> ToolAnswer:
            begun.set()
            await go.wait()
            return ToolAnswer(200, {"response": "late"})

    async def scenario(caller: Caller) -> None:
        posting = asyncio.create_task(caller.post("/tools/pay", {"id": 7}))
        await begun.wait()
        await caller.proxy.close_run("run-1")
        go.set()
        await posting
        assert caller.calls.steps is not None
        (step,) = caller.calls.steps
        assert (step.name, step.arguments, step.status, step.result) == ("pay", {"id": 7}, "unknown", msgspec.UNSET)
        assert [event.value for event in caller.events if isinstance(event, CustomEvent)] == [
            {"tool": "pay", "arguments": {"id": 7}, "status": "unknown"}
        ]

    with_run(scenario, tools=Slow())


def test_calls_beyond_the_limits_are_counted_in_one_serious_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "MAX_OBSERVED_CALLS", 3)

    async def scenario(caller: Caller) -> None:
        caller.calls.bytes_left = 2000
        await caller.post("/tools/a", {"text": "x" * 3000})
        for name in ("b", "c", "d", "e"):
            await caller.post(f"/tools/{name}")
        assert caller.calls.steps is not None
        assert [(step.name, step.arguments) for step in caller.calls.steps] == [("a", None), ("b", {}), ("c", {})]
        assert caller.calls.note is not None
        assert (caller.calls.note.code, caller.calls.note.serious) == ("observed_calls_cut", True)
        assert caller.calls.note.message.startswith("3 calls ")
        assert len(caller.events) == 3

    with_run(scenario)


def test_small_values_count_by_what_they_take_in_memory() -> None:
    calls = ObservedCalls()
    assert calls.fits(b"x" * 1_000_000)
    assert not calls.fits(b"[" + b"{}," * 1_000_000 + b"{}]")
