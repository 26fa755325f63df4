"""The OpenAPI document: what it says, and that a real server keeps to it whatever it is sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case as AnyCase
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from seatrial.errors import ERROR_CODES
from seatrial.events.types import Event, TextMessageChunk
from seatrial.server.app import document
from seatrial.store import open_store
from server.served import agent, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDED = "run-ended"
PUSHED = "run-pushed"

Case = AnyCase[Any]

schema = schemathesis.openapi.from_dict(document())


async def greet() -> AsyncIterator[Event]:
    yield TextMessageChunk(message_id="m1", role="assistant", delta="hello")


async def _asked(url: str) -> None:
    async with aiohttp.ClientSession(url) as client:
        asked: dict[str, Any] = {"agent": "greeter", "runId": ENDED, "threadId": "thread-1"}
        async with client.post("/v1/runs", json=asked) as response:
            assert response.status == 202
        async with client.get(f"/v1/runs/{ENDED}/stream") as response:
            await response.read()
        async with client.post("/v1/runs", json={"agent": "x", "push": True, "runId": PUSHED}) as response:
            assert response.status == 202


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a thread of its own, with a run that has ended and one that is pushed to."""
    told: list[str] = []
    ready, leave = threading.Event(), threading.Event()

    async def whole(path: Path) -> None:
        with open_store(path) as store:
            async with serving(store, {"greeter": agent(greet)}) as (address, _):
                await _asked(address)
                told.append(address)
                ready.set()
                await asyncio.to_thread(leave.wait)

    thread = threading.Thread(target=lambda: asyncio.run(whole(tmp_path_factory.mktemp("openapi") / "api.db")))
    thread.start()
    try:
        assert ready.wait(120)
        yield told[0]
    finally:
        leave.set()
        thread.join()


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_whatever_is_sent_the_answer_is_one_of_the_document(case: Case, url: str) -> None:
    _aim(case)
    response = case.call(base_url=url, timeout=60)
    case.validate_response(response, checks=CHECKS)


def _aim(case: Case) -> None:
    """Let every other request hit something that is there; what schemathesis makes up alone seldom does."""
    parameters = case.path_parameters or {}
    if len(str(parameters) + str(case.query)) % 2:
        return
    if "run_id" in parameters:
        parameters["run_id"] = PUSHED if case.method == "POST" and case.path.endswith("/events") else ENDED
    if "thread_id" in parameters:
        parameters["thread_id"] = "thread-1"
    if "name" in parameters:
        parameters["name"] = "greeter"
    if isinstance(case.body, dict) and "agent" in case.body:
        case.body["agent"] = "greeter"


def test_the_document_is_openapi_whose_references_lead_somewhere() -> None:
    text = json.dumps(document())
    named = {part.partition('"')[0].partition("/")[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= document()["components"]["schemas"].keys()
    for schema_of in document()["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema_of})


def test_the_document_is_published_without_a_page_that_loads_anything(url: str) -> None:
    async def scenario() -> None:
        async with aiohttp.ClientSession(url) as client:
            async with client.get("/schema/openapi.json") as response:
                assert json.loads(await response.read()) == document()
            for path in ("/schema", "/schema/swagger", "/docs"):
                async with client.get(path) as response:
                    assert response.status == 404

    asyncio.run(scenario())


def test_both_forms_of_a_stream_its_cursor_header_and_its_refusals_are_documented() -> None:
    stream = document()["paths"]["/v1/runs/{run_id}/stream"]["get"]
    assert stream["responses"]["200"]["content"].keys() == {"text/event-stream", "application/x-ndjson"}
    assert {(each["name"], each["in"]) for each in stream["parameters"]} == {
        ("run_id", "path"),
        ("after", "query"),
        ("types", "query"),
        ("from", "query"),
        ("Last-Event-ID", "header"),
    }
    assert stream["responses"].keys() >= {"400", "401", "403", "404", "406", "409", "410", "429", "503"}
    assert stream["responses"]["409"]["content"].keys() == {"application/problem+json"}
    assert "`cursor_ahead`" in stream["responses"]["409"]["description"]


def test_a_run_is_accepted_with_202_and_its_place() -> None:
    responses = document()["paths"]["/v1/runs"]["post"]["responses"]
    for status in ("200", "202"):
        assert "Location" in responses[status]["headers"]
        assert responses[status]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ServedRun"}


def test_every_code_that_is_documented_is_one_of_ours() -> None:
    for path in document()["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400 and int(status) != 406:
                    for line in response["description"].split("\n\n"):
                        assert line.split("`")[1] in ERROR_CODES
