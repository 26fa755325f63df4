"""What the page on agents says is true."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.setting import a_request, ask
from seatrial.agents.cli.process import GRACE_S
from seatrial.agents.http.agent import HttpAgent
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.calling import PARAMETERS
from seatrial.agents.python.config import PythonConfig
from seatrial.python_api.result import Result
from seatrial.python_api.running import run_async
from seatrial.suites import load_suite
from seatrial.trajectory import extract
from seatrial.world.proxy import ToolProxy
from seatrial.world.trace import TRACE_TYPES

TEXT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


VARIABLES = {"SHOP_TOKEN": "x", "OPENAI_API_KEY": "y"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_example_is_a_suite_that_can_be_run_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "recorded.jsonl").touch()
    (tmp_path / "suite.yaml").write_text(text)
    suite = load_suite(tmp_path / "suite.yaml", variables=VARIABLES, grading="all")
    assert suite.agents


def test_every_kind_has_an_example() -> None:
    examples = re.findall(r"^    kind: (\w+)", "".join(blocks("yaml")), re.MULTILINE)
    assert {*examples} == {"python", "http", "cli", "stream", "replay"}


REFUND = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": "o-1"}'}}
SAID = {"role": "assistant", "content": "Refunded."}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
ANSWERS: list[dict[str, Any]] = [
    {"data": {"reply": "Refunded.", "messages": [{"role": "assistant", "tool_calls": [REFUND]}, RESULT, SAID]}},
    {"choices": [{"message": {"role": "assistant", "tool_calls": [REFUND]}, "finish_reason": "tool_calls"}]},
    {"result": {"kind": "task", "status": {"state": "completed"}, "artifacts": [{"parts": [{"text": "Refunded."}]}]}},
]
"""What the agents of the examples of any HTTP agent answer."""


@pytest.mark.parametrize("index", range(len(ANSWERS)))
def test_the_examples_of_any_http_agent_pass_with_such_an_agent(
    index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    asked: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append((request.path, await request.json()))
        return web.json_response(ANSWERS[index])

    async def play() -> Result:
        app = web.Application()
        app.router.add_post("/{path:.*}", handle)
        async with TestServer(app) as server:
            text = [block for block in blocks("yaml") if "request:" in block or "protocol:" in block][index]
            address = re.search(r"endpoint_url: https?://[^/]+(/\S*)", text)
            assert address is not None
            written = text.replace(address[0], f"endpoint_url: {server.make_url(address[1])}")
            (tmp_path / "suite.yaml").write_text(written)
            suite = load_suite(tmp_path / "suite.yaml", variables=VARIABLES, grading="all")
            return await run_async(suite, store="memory:")

    result = asyncio.run(play())
    assert result.ok, result
    assert "Refund order o-1." in str(asked[0][1])


def test_every_parameter_of_a_function_is_listed() -> None:
    listed = [
        name for row in re.findall(r"^\| (`[^|]*) \| [wt]", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    assert set(PARAMETERS) <= set(listed)


def test_every_trace_type_is_listed() -> None:
    (listed,) = re.findall(r"Trace posts \(([^)]*)\)", TEXT)
    assert set(re.findall(r"`(\w+)`", listed)) == TRACE_TYPES


def test_the_time_between_the_signals_is_right() -> None:
    assert "SIGTERM, two seconds, SIGKILL" in TEXT
    assert GRACE_S == 2


def test_the_streaming_function_is_an_agent(tmp_path: Path) -> None:
    (tmp_path / "function_on_the_page.py").write_text(blocks("python")[0])

    async def play() -> None:
        config = PythonConfig(target="function_on_the_page:answer")
        async with PythonAgent(config, directory=tmp_path, timeout_s=None) as agent:
            reply = await ask(agent, a_request())
            assert reply.fault is None
            assert reply.reading is not None
            assert reply.reading.notes == []
            assert reply.reading.transcript.final_text() == "Your order is on its way."
            assert [(step.name, step.arguments) for step in extract(reply.reading).steps] == [
                ("find_order", {"id": "o-1"})
            ]

    asyncio.run(play())


def test_the_least_that_will_do_does() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[1], names)

    async def play() -> None:
        async with TestServer(names["app"]) as server, ToolProxy() as proxy:
            config = HttpConfig(endpoint_url=str(server.make_url("/dispatch")))
            async with HttpAgent("shop", config, connect_s=5.0, read_s=None) as agent:
                assert (await agent.ping()).ok
                reply = await ask(agent, proxy=proxy)
                assert reply.fault is None
                assert reply.reading is not None
                assert reply.reading.transcript.final_text() == "You said: Book a table for two."

    asyncio.run(play())
