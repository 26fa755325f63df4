"""The transport without a network: agents and models can be tested with it as with a server."""

from __future__ import annotations

import asyncio
import gzip

import yarl
from agents.setting import ask, ask_with_events

from seatrial.agents.agent import Reply
from seatrial.agents.endpoint import Answer, Endpoint, Reached
from seatrial.agents.http.agent import HttpAgent
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.stream.agent import StreamAgent
from seatrial.agents.stream.config import StreamConfig
from seatrial.http_client import HttpRequest, ScriptedResponse, ScriptedTransport, TransportError
from seatrial.runs import Fault
from seatrial.world.proxy import ToolProxy


def posted(transport: ScriptedTransport, max_bytes: int = 1000) -> Answer | Fault:
    async def play() -> Answer | Fault:
        endpoint = Endpoint(
            "https://user:pass@agent.test/run?a=b",
            {"X-Own": "1"},
            rule="local",
            connect_s=1.0,
            read_s=1.0,
            max_bytes=max_bytes,
            transport=transport,
        )
        reached = Reached()
        async with endpoint:
            answer = await endpoint.post(b"{}", {"x-own": "2"}, reached=reached)
            assert await endpoint.reach() is None
        assert reached.connected
        assert transport.open_responses == 0
        return answer

    return asyncio.run(play())


def test_a_script_is_given_the_request_and_answers_it() -> None:
    def script(request: HttpRequest) -> ScriptedResponse:
        return ScriptedResponse(201, {"Content-Type": "Text/Plain; charset=x"}, [b"you ", b"", request.body or b""])

    transport = ScriptedTransport(script)
    answer = posted(transport)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.content_type, answer.body) == (201, "text/plain", b"you {}")
    (request,) = transport.requests
    assert (request.method, request.url) == ("POST", yarl.URL("https://agent.test/run?a=b"))
    assert request.headers["x-own"] == "2"
    assert request.headers["Authorization"].startswith("Basic ")
    assert transport.connected == [request.url]


def test_a_script_may_wait() -> None:
    async def script(request: HttpRequest) -> ScriptedResponse:
        await asyncio.sleep(0)
        return ScriptedResponse(body=b"late")

    answer = posted(ScriptedTransport(script))
    assert isinstance(answer, Answer)
    assert answer.body == b"late"


def test_a_script_fails_as_a_network_does() -> None:
    def refuse(request: HttpRequest) -> ScriptedResponse:
        raise TransportError("unreachable", "no connection")

    fault = posted(ScriptedTransport(refuse))
    assert isinstance(fault, Fault)
    assert fault.error_class == "agent_unreachable"
    cut_off = ScriptedResponse(body=[b"half", TransportError("cut_off", "it broke off")])
    fault = posted(ScriptedTransport(cut_off))
    assert isinstance(fault, Fault)
    assert (fault.error_class, fault.http_status) == ("answer_cut_off", 200)


def test_limits_and_compression_hold_for_a_script_too() -> None:
    body = gzip.compress(b"x" * 5000)
    scripted = ScriptedResponse(headers={"Content-Encoding": "gzip"}, body=body)
    answer = posted(ScriptedTransport(scripted), max_bytes=5000)
    assert isinstance(answer, Answer)
    assert answer.body == b"x" * 5000
    fault = posted(ScriptedTransport(scripted), max_bytes=4999)
    assert isinstance(fault, Fault)
    assert fault.error_class == "response_too_large"


def test_an_http_agent_may_be_a_script() -> None:
    async def play() -> Reply:
        transport = ScriptedTransport(ScriptedResponse(body=b'{"final_response": "Done."}'))
        config = HttpConfig(endpoint_url="http://agent.test/")
        async with (
            ToolProxy() as proxy,
            HttpAgent("shop", config, connect_s=1.0, read_s=1.0, transport=transport) as agent,
        ):
            return await ask(agent, proxy=proxy)

    reply = asyncio.run(play())
    assert reply.reading is not None
    assert reply.reading.transcript.final_text() == "Done."


def test_a_streaming_agent_may_be_a_script_that_is_cut_off() -> None:
    started = b'data: {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}\n\n'
    broken: list[bytes | TransportError] = [started[:9], started[9:], TransportError("cut_off", "it broke off")]

    async def play() -> tuple[Reply, int]:
        transport = ScriptedTransport(ScriptedResponse(headers={"Content-Type": "text/event-stream"}, body=broken))
        config = StreamConfig(url="http://agent.test/")
        async with StreamAgent(config, connect_s=1.0, read_s=1.0, transport=transport) as agent:
            reply, events = await ask_with_events(agent)
            return reply, len(events)

    reply, events = asyncio.run(play())
    assert reply.fault is not None
    assert reply.fault.error_class == "answer_cut_off"
    assert events == 1
