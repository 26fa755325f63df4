"""The operations of the service over real HTTP: what they take, what they answer, how they refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import psycopg
import pytest
from strategies.databases import database, mounted_disk

from seatrial.agents.agent import Agent
from seatrial.events.types import Event, TextMessageChunk
from seatrial.store import Store, open_store
from server.event_source import EventSource
from server.served import agent, serving

Scenario = Callable[[aiohttp.ClientSession], Coroutine[Any, Any, None]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "routes.db") as opened:
        yield opened


async def greet() -> AsyncIterator[Event]:
    """Says hello in two pieces."""
    for piece in ("hel", "lo"):
        yield TextMessageChunk(message_id="m1", role="assistant", delta=piece)


async def wait_for_ever() -> str:
    await asyncio.sleep(3600)
    return "never"


AGENTS: dict[str, Agent] = {"greeter": agent(greet), "sleeper": agent(wait_for_ever)}


def with_server(store: Store, scenario: Scenario) -> None:
    async def whole() -> None:
        async with serving(store, AGENTS) as (_, client):
            await scenario(client)

    asyncio.run(whole())


async def created(client: aiohttp.ClientSession, **asked: Any) -> dict[str, Any]:
    async with client.post("/v1/runs", json={"agent": "greeter", **asked}) as response:
        assert response.status == 202, await response.text()
        return dict(await response.json())


async def ended(client: aiohttp.ClientSession, run_id: str) -> list[dict[str, Any]]:
    """Every frame of a run, read to the end."""
    async with client.get(f"/v1/runs/{quote(run_id)}/stream", headers={"Accept": "application/x-ndjson"}) as response:
        assert response.status == 200, await response.text()
        return [json.loads(line) for line in (await response.read()).splitlines()]


async def refusal(
    client: aiohttp.ClientSession, path: str, *, post: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Status and code of a request that is to be refused."""
    method = "GET" if post is None else "POST"
    data = post if isinstance(post, bytes | None) else json.dumps(post).encode()
    async with client.request(method, path, data=data, headers=headers) as response:
        assert response.content_type == "application/problem+json", (response.status, await response.text())
        body = json.loads(await response.read())
        assert body["status"] == response.status
        assert body["detail"]
        return response.status, body["code"]


def test_a_run_is_accepted_and_says_where_it_is(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        async with client.post("/v1/runs", json={"agent": "greeter", "threadId": "t1"}) as response:
            run = await response.json()
            assert response.status == 202
            location = response.headers["Location"]
        assert location == f"/v1/runs/{run['runId']}"
        await ended(client, run["runId"])
        async with client.get(location) as response:
            assert response.status == 200
            again = await response.json()
        assert (again["threadId"], again["status"]) == ("t1", "completed")

    with_server(store, scenario)


def test_the_same_idempotency_key_in_the_header_or_the_body_gives_the_same_run(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run = await created(client, idempotencyKey="k1")
        for headers, body in (({"Idempotency-Key": "k1"}, {}), ({}, {"idempotencyKey": "k1"})):
            async with client.post("/v1/runs", json={"agent": "greeter", **body}, headers=headers) as response:
                assert response.status == 200
                assert (await response.json())["runId"] == run["runId"]
        other = {"agent": "greeter", "threadId": "another"}
        assert await refusal(client, "/v1/runs", post=other, headers={"Idempotency-Key": "k1"}) == (
            409,
            "idempotency_conflict",
        )
        different = {"agent": "greeter", "idempotencyKey": "k1"}
        assert await refusal(client, "/v1/runs", post=different, headers={"Idempotency-Key": "k2"}) == (
            400,
            "invalid_request",
        )

    with_server(store, scenario)


def test_a_thread_with_an_active_run_says_which_one_until_it_is_cancelled(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run = await created(client, agent="sleeper", threadId="t1")
        async with client.post("/v1/runs", json={"agent": "sleeper", "threadId": "t1"}) as response:
            assert response.status == 409
            body = json.loads(await response.read())
        assert (body["code"], body["runId"]) == ("thread_busy", run["runId"])
        async with client.post(f"/v1/runs/{run['runId']}/cancel") as response:
            assert response.status == 200
        frames = await ended(client, run["runId"])
        assert frames[-1] == {"type": "TERMINAL", "runId": run["runId"], "status": "cancelled"}
        async with client.post(f"/v1/runs/{run['runId']}/cancel") as response:
            assert (await response.json())["status"] == "cancelled"
        again = await created(client, agent="greeter", threadId="t1")
        await ended(client, again["runId"])

    with_server(store, scenario)


def test_a_stream_comes_as_server_sent_events_or_as_lines(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run = await created(client)
        frames = await ended(client, run["runId"])
        assert [frame["sequence"] for frame in frames[:-1]] == list(range(len(frames) - 1))
        for accept in ("*/*", "text/event-stream"):
            async with client.get(f"/v1/runs/{run['runId']}/stream", headers={"Accept": accept}) as response:
                assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
                assert response.headers["Cache-Control"] == "no-store"
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                text = await response.text()
            data = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
            assert data == frames
            assert f"id: {run['runId']}:0\n" in text
        path = f"/v1/runs/{run['runId']}/stream"
        assert await refusal(client, path, headers={"Accept": "text/html"}) == (406, "invalid_request")

    with_server(store, scenario)


def test_a_stream_goes_on_behind_a_cursor(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run_id = (await created(client))["runId"]
        frames = await ended(client, run_id)
        path = f"/v1/runs/{run_id}/stream"
        accept = {"Accept": "application/x-ndjson"}
        for query, header in (
            ("?after=1", {}),
            (f"?after={quote(run_id)}:1", {}),
            ("", {"Last-Event-ID": f"{run_id}:1"}),
            ("?after=1", {"Last-Event-ID": f"{run_id}:1"}),
        ):
            async with client.get(path + query, headers={**accept, **header}) as response:
                assert [json.loads(line) for line in (await response.read()).splitlines()] == frames[2:]
        async with client.get(f"{path}?types=RUN_FINISHED,RUN_ERROR", headers=accept) as response:
            lines = (await response.read()).splitlines()
            assert [json.loads(line).get("event", {}).get("type", "") for line in lines] == ["RUN_FINISHED", ""]
        async with client.get(f"{path}?from=tail", headers=accept) as response:
            (line,) = (await response.read()).splitlines()
            assert json.loads(line)["type"] == "TERMINAL"

    with_server(store, scenario)


def test_a_cursor_that_cannot_be_followed_is_refused_with_the_reason(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run_id = (await created(client))["runId"]
        head = len(await ended(client, run_id)) - 2
        for view in ("stream", "ag-ui"):
            path = f"/v1/runs/{run_id}/{view}"
            for wrong in ("another:1", "x", "-1", "1.5", f"{run_id}:", f"{run_id}:-1", "9" * 30, "٣"):
                assert await refusal(client, f"{path}?after={wrong}") == (400, "invalid_cursor"), wrong
            assert await refusal(client, path, headers={"Last-Event-ID": "another:1"}) == (400, "invalid_cursor")
            assert await refusal(client, f"{path}?after=0", headers={"Last-Event-ID": f"{run_id}:1"}) == (
                400,
                "invalid_request",
            )
            async with client.get(f"{path}?after={head + 1}") as response:
                body = json.loads(await response.read())
                assert (response.status, body["code"], body["head"]) == (409, "cursor_ahead", head)
            assert await refusal(client, f"{path}?after={2**63 - 1}") == (409, "cursor_ahead")
        path = f"/v1/runs/{run_id}/stream"
        for wrong in (
            "types=NOTHING",
            "types=",
            "types=,",
            "from=middle",
            "from=tail&after=0",
            "after=%00",
            "afer=1",
            "after=1&after=1",
        ):
            assert await refusal(client, f"{path}?{wrong}") == (400, "invalid_request"), wrong

    with_server(store, scenario)


def test_events_come_in_pages(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run_id = (await created(client))["runId"]
        frames = await ended(client, run_id)
        collected: list[Any] = []
        after = ""
        while True:
            async with client.get(f"/v1/runs/{run_id}/events?limit=2{after}") as response:
                assert response.status == 200
                page = json.loads(await response.read())
            collected += page["events"]
            if "next" not in page:
                break
            after = f"&after={page['next']}"
        assert collected == frames[:-1]
        assert page["closed"] is True
        for wrong in ("limit=0", "limit=1001", "limit=x", "after=x"):
            assert (await refusal(client, f"/v1/runs/{run_id}/events?{wrong}"))[0] == 400

    with_server(store, scenario)


def test_runs_are_listed_and_filtered_page_by_page(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        ids = []
        for number in range(3):
            run = await created(client, threadId=f"t{number}")
            await ended(client, run["runId"])
            ids.append(run["runId"])
        async with client.get("/v1/runs?limit=2&status=completed,failed&agent=greeter") as response:
            first = json.loads(await response.read())
        async with client.get(f"/v1/runs?limit=2&before={quote(first['next'])}") as response:
            second = json.loads(await response.read())
        assert [run["runId"] for run in first["runs"] + second["runs"]] == ids[::-1]
        assert "next" not in second
        async with client.get("/v1/runs?threadId=t1") as response:
            (only,) = json.loads(await response.read())["runs"]
        assert only["runId"] == ids[1]
        async with client.get(f"/v1/runs?q={quote('agent:greet*')}") as response:
            assert [run["runId"] for run in json.loads(await response.read())["runs"]] == ids[::-1]
        async with client.get("/v1/runs?q=agent:other") as response:
            assert json.loads(await response.read())["runs"] == []
        assert await refusal(client, "/v1/runs?q=tol:x") == (400, "invalid_filter")
        for wrong in ("status=done", "limit=501", "before=nonsense", "threadid=t1"):
            assert await refusal(client, f"/v1/runs?{wrong}") == (400, "invalid_request"), wrong

    with_server(store, scenario)


def test_an_agent_pushes_its_events_and_is_refused_what_is_wrong(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run = await created(client, agent="outside", push=True)
        run_id = run["runId"]
        path = f"/v1/runs/{run_id}/events"
        chunk = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "hi", "eventId": "e1"}
        for _ in range(2):
            async with client.post(path, json={"events": [chunk]}) as response:
                assert response.status == 200
                assert json.loads(await response.read())["sequences"] == [1]
        assert await refusal(client, path, post={"events": [chunk | {"eventId": "e2"}], "first": 1}) == (
            409,
            "sequence_conflict",
        )
        illegal = {"type": "TOOL_CALL_END", "toolCallId": "nothing"}
        assert await refusal(client, path, post={"events": [illegal]}) == (422, "event_refused")
        done = {"type": "RUN_FINISHED", "threadId": run["threadId"], "runId": run_id}
        async with client.post(path, json={"events": [done]}) as response:
            assert response.status == 200
        late = chunk | {"eventId": "e3"}
        assert await refusal(client, path, post={"events": [late]}) == (409, "run_ended")
        frames = await ended(client, run_id)
        assert [frame["event"]["type"] for frame in frames[:-1]][-1] == "RUN_FINISHED"

    with_server(store, scenario)


def test_a_thread_shows_its_runs_and_what_was_said(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        message = {"id": "u1", "role": "user", "content": "hello?"}
        run = await created(client, threadId="t1", input={"messages": [message]})
        await ended(client, run["runId"])
        async with client.get("/v1/threads/t1") as response:
            thread = json.loads(await response.read())
        assert [each["runId"] for each in thread["runs"]] == [run["runId"]]
        assert [(each["role"], each["content"]) for each in thread["messages"]] == [
            ("user", "hello?"),
            ("assistant", "hello"),
        ]

    with_server(store, scenario)


def test_an_ag_ui_client_runs_an_agent_and_joins_a_run(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        asked = {"threadId": "t1", "runId": "r1", "messages": [], "tools": [], "context": [], "state": {}}
        async with client.post("/v1/agents/greeter/ag-ui", json=asked) as response:
            assert response.status == 200
            assert response.content_type == "text/event-stream"
            types = [
                json.loads(line[6:])["type"] for line in (await response.text()).split("\n") if line[:6] == "data: "
            ]
        assert (types[0], types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
        async with client.get("/v1/runs/r1/ag-ui") as response:
            assert response.status == 200
            assert "RUN_FINISHED" in await response.text()
        assert await refusal(client, "/v1/agents/nobody/ag-ui", post={**asked, "runId": "r2"}) == (404, "not_found")
        assert await refusal(client, "/v1/agents/greeter/ag-ui", post={"runId": "r3"}) == (400, "invalid_document")

    with_server(store, scenario)


def test_what_is_not_there_is_not_found(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        for path in ("", "/stream", "/events", "/ag-ui"):
            assert await refusal(client, f"/v1/runs/nothing{path}") == (404, "not_found")
        for path in ("/v1/threads/nothing", "/v1/nothing", "/nothing"):
            assert await refusal(client, path) == (404, "not_found")

    with_server(store, scenario)


def test_hostile_ids_are_ids_that_nothing_has(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        for hostile in (
            "\0",
            "a\0b",
            "x" * 600,
            "é" * 300,
            "%",
            "..",
            "\n\r",
            "\u202e",
            "💥",
            "' OR 1=1 --",
            "a:b",
            "-1",
        ):
            for path in (
                "/v1/runs/{}",
                "/v1/runs/{}/stream",
                "/v1/runs/{}/events",
                "/v1/runs/{}/ag-ui",
                "/v1/threads/{}",
            ):
                found = await refusal(client, path.format(quote(hostile, safe="").replace(".", "%2E")))
                assert found == (404, "not_found"), (hostile, path)
            path = f"/v1/runs/{quote(hostile, safe='').replace('.', '%2E')}/cancel"
            assert await refusal(client, path, post=b"") == (404, "not_found")

    with_server(store, scenario)


def test_hostile_bodies_are_invalid_requests(store: Store) -> None:
    bodies: list[tuple[bytes, str]] = [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b"\xff\xfe", "not_json"),
        (b"null", "invalid_document"),
        (b"[]", "invalid_document"),
        (b'"x"', "invalid_document"),
        (b"{}", "invalid_document"),
        (b'{"agent": 1}', "invalid_document"),
        (b'{"agent": ""}', "invalid_document"),
        (b'{"agent": "' + b"x" * 257 + b'"}', "invalid_document"),
        (b'{"agent": "greeter", "unknown": 1}', "invalid_document"),
        (b'{"agent": "greeter", "input": []}', "invalid_document"),
        (b'{"agent": "greeter", "input": {"messages": [1]}}', "invalid_document"),
        (b'{"agent": "greeter", "push": "true"}', "invalid_document"),
        (b'{"agent": "greeter", "input": {"state": NaN}}', "not_json"),
        (b'{"agent": "greeter", "threadId": "\\ud800"}', "not_json"),
        (b'{"agent": "greeter", "input": {"state": ' + b"[" * 5000 + b"]" * 5000 + b"}}", "too_deep"),
    ]

    async def scenario(client: aiohttp.ClientSession) -> None:
        for body, code in bodies:
            assert await refusal(client, "/v1/runs", post=body) == (400, code), body[:80]
        for name in ("nobody", "\u0000"):
            assert (await refusal(client, "/v1/runs", post={"agent": name}))[0] in (400, 404)
        for wrong in ("a/b", "..", ".", "a b", "é", "\u0000", "a\n"):
            for field in ("runId", "threadId"):
                asked = {"agent": "greeter", field: wrong}
                assert (await refusal(client, "/v1/runs", post=asked))[0] == 400, (field, wrong)
        run_id = (await created(client, agent="outside", push=True))["runId"]
        for body, code in (
            (b'{"events": []}', "invalid_document"),
            (b'{"events": [1]}', "invalid_document"),
            (b'{"events": [{}], "first": -1}', "invalid_document"),
            (b'{"events": [{}], "first": 1e30}', "invalid_document"),
        ):
            assert await refusal(client, f"/v1/runs/{run_id}/events", post=body) == (400, code), body
        assert (await refusal(client, f"/v1/runs/{run_id}/events", post={"events": [{}]}))[0] == 422

    with_server(store, scenario)


def test_another_method_is_told_which_ones_there_are(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        async with client.delete("/v1/runs") as response:
            assert response.status == 405
            assert set(response.headers["Allow"].split(", ")) >= {"GET", "POST"}
            assert json.loads(await response.read())["code"] == "invalid_request"

    with_server(store, scenario)


def test_figures_tell_how_long_commits_take(store: Store) -> None:
    def figures(text: str) -> dict[str, float]:
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("seatrial_append_seconds_")]
        return {name.removeprefix("seatrial_append_seconds_"): float(value) for name, value in lines}

    async def scenario(client: aiohttp.ClientSession) -> None:
        async with client.get("/metrics") as response:
            before = figures(await response.text())
        run_id = (await created(client, agent="anybody", push=True))["runId"]
        event = {"type": "CUSTOM", "name": "sail", "value": "set"}
        async with client.post(f"/v1/runs/{run_id}/events", json={"events": [event]}) as response:
            assert response.status == 200
        async with client.get("/metrics") as response:
            after = figures(await response.text())
        assert after["count"] == after['bucket{le="+Inf"}'] == before["count"] + 1
        assert before["sum"] < after["sum"] < before["sum"] + 30
        buckets = [value for name, value in after.items() if name.startswith("bucket")]
        assert buckets == sorted(buckets)

    with_server(store, scenario)


def test_a_server_is_not_ready_while_its_disk_is_full_and_ready_again_afterwards(tmp_path: Path) -> None:
    async def becomes(client: aiohttp.ClientSession, status: int) -> str:
        async with asyncio.timeout(60):
            while True:
                async with client.get("/readyz") as response:
                    if response.status == status:
                        return await response.text()
                await asyncio.sleep(0.1)

    with mounted_disk(tmp_path / "disk", 8) as disk, open_store(disk / "store.db") as store:

        async def scenario(client: aiohttp.ClientSession) -> None:
            await becomes(client, 200)
            with (disk / "filling").open("wb", buffering=0) as filling, suppress(OSError):
                while filling.write(bytes(4096)):
                    pass
            assert "store_full" in await becomes(client, 503)
            async with client.get("/healthz") as response:
                assert response.status == 200
            (disk / "filling").unlink()
            await becomes(client, 200)

        with_server(store, scenario)


def test_a_server_is_not_ready_while_its_database_takes_no_writes(postgres_server: str) -> None:
    with database(postgres_server) as url, open_store(url, patience_s=1) as store:

        async def scenario(client: aiohttp.ClientSession) -> None:
            with psycopg.connect(url, autocommit=True) as admin:
                for setting, status in (("on", 503), ("off", 200)):
                    admin.execute(f"ALTER DATABASE {admin.info.dbname} SET default_transaction_read_only = {setting}")
                    admin.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                    admin.execute("SET default_transaction_read_only = off")
                    async with asyncio.timeout(60):
                        while True:
                            async with client.get("/readyz") as response:
                                if response.status == status:
                                    break
                            await asyncio.sleep(0.1)

        with_server(store, scenario)


def test_probes_and_figures_tell_how_the_server_is(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        await ended(client, (await created(client))["runId"])
        for path in ("/healthz", "/readyz"):
            async with client.get(path) as response:
                assert (response.status, await response.text()) == (200, "ok")
        async with client.get("/metrics") as response:
            text = await response.text()
        assert 'seatrial_http_requests_total{method="GET",route="/v1/runs/{run_id}/stream",status="200"} 1.0' in text
        assert "seatrial_runs_active 0.0" in text
        assert "seatrial_subscribers 0.0" in text
        for name in ("events_appended", "events_delivered", "stream_bytes"):
            (line,) = (line for line in text.splitlines() if line.startswith(f"seatrial_{name}_total "))
            assert float(line.split()[1]) > 0
        assert 'seatrial_occurrences_total{event="run_ended",status="completed"}' in text
        assert "process_resident_memory_bytes" in text

    with_server(store, scenario)


def test_a_browser_stops_asking_once_it_has_terminal(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run = await created(client)
        browser = EventSource(client, f"/v1/runs/{run['runId']}/stream")
        await browser.follow()
        assert browser.statuses == [200, 204]
        assert [message.get("type") for message in browser.messages].count("TERMINAL") == 1
        assert browser.messages[-1]["status"] == "completed"
        late = EventSource(client, f"/v1/runs/{run['runId']}/stream?types=RUN_FINISHED")
        await late.follow()
        assert late.statuses == [200, 204]
        assert [message.get("type") for message in late.messages] == [None, "TERMINAL"]

    with_server(store, scenario)


def test_a_browser_whose_connection_broke_gets_the_rest_and_terminal_once(store: Store) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run = await created(client)
        await ended(client, run["runId"])
        for cut in (40, 400, 700):
            browser = EventSource(client, f"/v1/runs/{run['runId']}/stream", cut_first_after=cut)
            await browser.follow()
            assert browser.statuses == [200, 200, 204]
            *envelopes, terminal = browser.messages
            assert [envelope["sequence"] for envelope in envelopes] == list(range(len(envelopes)))
            assert terminal["type"] == "TERMINAL"

    with_server(store, scenario)


@pytest.mark.parametrize("view", ["stream", "ag-ui"])
def test_the_id_of_terminal_is_answered_for_its_own_run_and_only_once_that_has_ended(store: Store, view: str) -> None:
    async def scenario(client: aiohttp.ClientSession) -> None:
        run, running = await created(client), await created(client, agent="sleeper")
        await ended(client, run["runId"])

        async def status(of: str, last: str) -> int:
            async with client.get(f"/v1/runs/{of}/{view}", headers={"Last-Event-ID": last}) as response:
                return response.status

        assert await status(run["runId"], f"{run['runId']}:end") == 204
        assert await status(run["runId"], f"{running['runId']}:end") == 400
        assert await status(running["runId"], f"{running['runId']}:end") == 400
        assert await status("nobody", "nobody:end") == 404
        async with client.get(f"/v1/runs/{run['runId']}/{view}?after={run['runId']}:end") as response:
            assert (response.status, await response.read()) == (204, b"")
        # An answer without content must not be taken for one that can be kept.
        assert response.headers["cache-control"] == "no-store"

    with_server(store, scenario)
