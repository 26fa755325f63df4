"""A run is one trace, by which its side at the agent is found."""

from __future__ import annotations

import re

from aiohttp import web
from strategies.unhurried import run_unhurried

from agents.setting import ask_and_keep, serving
from seatrial.agents.stream.agent import StreamAgent
from seatrial.agents.stream.config import StreamConfig
from seatrial.agents.trace_context import trace_headers, trace_id
from seatrial.runs import Run
from seatrial.world.proxy import ToolProxy


def test_a_stream_agent_gets_the_trace_of_its_run_which_is_kept_with_the_run() -> None:
    sent: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        sent.append(request.headers["traceparent"])
        return web.Response(status=500)

    async def play() -> Run:
        async with (
            serving(handle) as url,
            ToolProxy() as proxy,
            StreamAgent(StreamConfig(url=url), connect_s=5.0, read_s=None) as agent,
        ):
            run, _ = await ask_and_keep(agent, proxy)
            return run

    run = run_unhurried(play())
    assert re.fullmatch(rf"00-{trace_id('run-1')}-[0-9a-f]{{16}}-01", sent[0])
    assert run.metadata == {"traceparent": sent[0]}


def test_a_header_of_the_suite_takes_precedence() -> None:
    assert trace_headers("run-1", ["X-Other", "TraceParent"]) == {}


def test_every_request_is_a_span_of_its_own() -> None:
    assert trace_headers("run-1", []) != trace_headers("run-1", [])


def test_the_id_of_a_run_that_can_be_a_trace_id_is_one() -> None:
    assert trace_id("0af7651916cd43dd8448eb211c80319c") == "0af7651916cd43dd8448eb211c80319c"
    assert trace_id("0" * 32) != "0" * 32
    assert re.fullmatch("[0-9a-f]{32}", trace_id("run-\ud800"))
