"""An agent behind HTTP: one request, one answer of JSON."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial._support.excerpt import excerpt
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.dispatch import PING, envelope, run_headers
from seatrial.agents.endpoint import Answer, Endpoint, Reached, checked_url, merged, without
from seatrial.agents.http.a2a import a2a_body, read_a2a
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.http.protocols import ANTHROPIC_VERSION, model_body, read_model_response
from seatrial.agents.http.response import read_response
from seatrial.agents.http.template import RequestTemplate, Values
from seatrial.agents.limit import time_limit
from seatrial.agents.off_loop import off_loop
from seatrial.agents.output import read_record, reading_fault, unreadable
from seatrial.agents.streamed import reported_failure
from seatrial.agents.trace_context import trace_headers
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response, contract
from seatrial.formats.chat.hidden_calls import note_repeated_keys
from seatrial.formats.reading import Reading
from seatrial.http_client import HttpTransport
from seatrial.runs import Fault


class HttpProbe(msgspec.Struct, omit_defaults=True):
    """What came of asking an agent whether it is there, or whether it reaches the proxy."""

    ok: bool
    message: str
    """One sentence, for people."""
    latency_ms: float
    fault: Fault | None = None


class Outgoing(msgspec.Struct):
    """One request as it is sent."""

    body: bytes | None
    headers: dict[str, str]
    method: str = "POST"
    query: str = ""


class HttpAgent:
    """Reaches an agent over HTTP, with one pool of connections for all runs."""

    def __init__(
        self,
        name: str,
        config: HttpConfig,
        *,
        connect_s: float,
        read_s: float | None,
        transport: HttpTransport | None = None,
    ) -> None:
        """Over aiohttp, unless another transport is given."""
        self.uses_world = config.speaks_dispatch
        self._endpoint = Endpoint(
            config.address,
            config.sent_headers(),
            rule=config.endpoint_rule,
            connect_s=connect_s,
            read_s=read_s,
            max_bytes=config.max_response_bytes,
            transport=transport,
        )
        self._config = config
        self._agent_id = name if config.agent_id is None else config.agent_id
        self._proxy_url: str | None = None
        """What the agent is told in the place of the address that the proxy listens on."""
        if config.proxy_url is not None:
            self._proxy_url = str(checked_url(config.proxy_url, "the tool proxy's address")).rstrip("/")

    async def __aenter__(self) -> Self:
        await self._endpoint.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._endpoint.__aexit__(*exc_info)

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        try:
            outgoing = self._outgoing(request)
        except SeatrialError as error:
            return Reply(fault=Fault("internal_error", f"the case cannot be sent: {error.message}"))
        if isinstance(outgoing, Fault):
            return Reply(fault=outgoing)
        trace = trace_headers(request.run_id, [*self._config.headers, *outgoing.headers])
        outgoing.headers |= trace
        limit = time_limit(request)
        reached = Reached()
        try:
            async with asyncio.timeout(limit.seconds):
                reply = await self._exchange(outgoing, reached)
        except TimeoutError:
            reply = _begun(reached, limit.fault(connected=reached.connected))
        reply.metadata |= trace
        return reply

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return self._endpoint.address

    async def reach(self) -> Fault | None:
        """Why there is no connection to the agent; None when there is one. No request is sent: it would start a run."""
        return await self._endpoint.reach()

    async def ping(self) -> HttpProbe:
        """Ask the agent whether it is there; any 2xx is a yes."""
        return await self._probe(PING, "the agent answers")

    async def check_connectivity(self, proxy_url: str) -> HttpProbe:
        """Ask the agent whether it reaches the proxy from where it is (dispatch.md 4.2)."""
        proxy_url = self._proxy_url or proxy_url
        question = {"connectivity_check": True, "odyssey_proxy_url": proxy_url}
        return await self._probe(question, "the agent reaches the tool proxy", proxy_url)

    def _outgoing(self, request: RunRequest) -> Outgoing | Fault:
        """What is sent. Raises `SeatrialError` when the case lacks what the request needs."""
        config = self._config
        if config.speaks_dispatch:
            if request.grant is None:
                return Fault("proxy_misconfigured", "there is no tool proxy whose address the agent could get")
            proxy_url = self._proxy_url or request.grant.url
            body = envelope(request, request.grant, proxy_url, self._agent_id, config.sub_agents)
            return Outgoing(wire.encode(body), run_headers(request, request.grant, proxy_url))
        template = config.request or RequestTemplate()
        values = Values(request.case, request.run_id)
        own = values.json(template.body)
        headers: dict[str, str] = {}
        if config.protocol == "a2a":
            own = {**a2a_body(request.case.instruction, f"{request.run_id}-{request.attempt}"), **(own or {})}
        elif config.protocol != "dispatch":
            own = {**model_body(config, request.case), **(own or {})}
            headers = ANTHROPIC_VERSION if config.protocol == "anthropic" else headers
        data = None if own is None else wire.encode(own)
        if data is not None:
            headers = {**headers, "Content-Type": "application/json"}
        headers = merged(without(headers, config.headers), values.headers(template.headers))
        return Outgoing(data, headers, template.method, values.query(template.query))

    async def _exchange(self, outgoing: Outgoing, reached: Reached) -> Reply:
        answer = await self._endpoint.post(
            outgoing.body, outgoing.headers, reached, method=outgoing.method, query=outgoing.query
        )
        if isinstance(answer, Fault):
            return _begun(reached, answer)
        received = answer.body
        reply = Reply(body=received, fault=answer.fault, http_status=answer.status)
        if reply.fault is not None:
            reply.fault.detail = excerpt(received)
            return reply
        await off_loop(len(received), lambda: self._read(reply, received, answer))
        return reply

    def _read(self, reply: Reply, body: bytes, answer: Answer) -> None:
        config = self._config
        if config.protocol == "dispatch" and config.response is None:
            self._read_agent_response(reply, body, answer)
            return
        try:
            if config.response is not None:
                reply.reading, reply.fault = read_response(body, config.response)
            elif config.protocol == "a2a":
                reply.reading, reply.fault = read_a2a(body)
            else:
                reply.reading, reply.fault = read_model_response(body, config)
        except SeatrialError as error:
            expected = "JSON" if config.response is not None else f"a response of the protocol {config.protocol}"
            reply.fault = Fault(unreadable(error), _not_read(error, answer, expected))
        if reply.fault is not None:
            reply.fault.detail, reply.fault.http_status = excerpt(body), answer.status

    def _read_agent_response(self, reply: Reply, body: bytes, answer: Answer) -> None:
        try:
            reading = note_repeated_keys(body, agent_response.read(body))
        except SeatrialError as error:
            reply.fault = Fault(
                unreadable(error), _not_read(error, answer, "an agent response"), excerpt(body), answer.status
            )
            return
        foreign = _read_foreign(body)
        if foreign is not None and self._config.strictness == "soft":
            reply.reading, reply.fault = foreign, reading_fault(foreign)
            if reply.fault is not None:
                reply.fault.detail, reply.fault.http_status = excerpt(body), answer.status
            return
        report = contract.check(reading, self._config.response_mode, self._config.strictness)
        reading.notes = report.notes
        reply.reading = reading
        if report.violation is not None:
            message = report.message if reading.transcript.answer else f"{report.message}; {_what_came(body, foreign)}"
            reply.fault = Fault(report.violation, message, excerpt(body), answer.status)
        elif (failure := reported_failure(reading)) is not None:
            failure.detail, failure.http_status = excerpt(body), answer.status
            reply.fault = failure

    async def _probe(self, question: dict[str, Any], yes: str, proxy_url: str | None = None) -> HttpProbe:
        headers = {"Content-Type": "application/json"}
        if proxy_url is not None:
            headers["X-Pipelines-Odyssey-Proxy-Url"] = proxy_url
        begun = time.monotonic()
        answer = await self._endpoint.post(wire.encode(question), headers)
        latency_ms = (time.monotonic() - begun) * 1000
        fault = answer if isinstance(answer, Fault) else answer.fault
        if fault is not None or isinstance(answer, Fault):
            message = "the agent does not answer" if fault is None else fault.message
            return HttpProbe(False, message, latency_ms, fault)
        if proxy_url is None:
            return HttpProbe(True, yes, latency_ms)
        problem = _unreached(answer.body)
        return HttpProbe(True, yes, latency_ms) if problem is None else HttpProbe(False, problem, latency_ms)


def _begun(reached: Reached, fault: Fault) -> Reply:
    """The reply of an agent whose answer did not come whole: what came of it may list calls."""
    body = b"".join(reached.received)
    return Reply(body=body or None, cut=bool(body) or reached.too_large, fault=fault, http_status=fault.http_status)


def _not_read(error: SeatrialError, answer: Answer, expected: str) -> str:
    if not answer.body.strip():
        return "the answer is empty"
    # Others are not shown: a server may put anything there, the agent's credential too.
    kind = f" ({answer.content_type})" if answer.content_type in _USUAL_TYPES else ""
    return f"the answer{kind} is not {expected}: {error.message}"


class _Top(msgspec.Struct):
    final_response: msgspec.Raw | UnsetType = UNSET
    session_done: msgspec.Raw | UnsetType = UNSET


def _read_foreign(body: bytes) -> Reading | None:
    """What a framework or a provider writes in the stead of an agent response; None when it is none, or no answer."""
    try:
        top = wire.decode(body, _TOP, [])
        if top.final_response is not UNSET or top.session_done is not UNSET:
            return None
        reading = note_repeated_keys(body, read_record(body))
    except SeatrialError:
        return None
    return reading if reading.transcript.final_text() else None


def _what_came(body: bytes, foreign: Reading | None) -> str:
    """What was expected of a body without an answer, and what it has."""
    try:
        keys = [*wire.decode(body, _KEYS, [])]
    except SeatrialError:
        keys = []
    named = ", ".join([f"`{key[:40]}`" for key in keys[:8]])
    got = f"an object with {named}" if named else "an empty object"
    looks = "" if foreign is None else f", which looks like {foreign.format}"
    return f"expected an object with `final_response` (text), got {got}{looks}"


class _Outbound(msgspec.Struct):
    reachable: bool
    status_code: int | None = None
    error: str | None = None


class _Connectivity(msgspec.Struct):
    outbound: _Outbound


def _unreached(body: bytes) -> str | None:
    """Why the agent does not reach the proxy, by its own word; None when it does."""
    try:
        outbound = wire.decode_input(body, _CONNECTIVITY).outbound
    except SeatrialError:
        return "the agent does not know the connectivity check"
    if outbound.reachable:
        return None
    why = outbound.error or (f"it got status {outbound.status_code}" if outbound.status_code else "no reason was given")
    return f"the agent does not reach the tool proxy: {why[:200]}"


_USUAL_TYPES = ("text/html", "text/plain", "text/event-stream", "application/xml", "text/xml", "application/x-ndjson")
"""Types of other things than an agent response, which say what came instead."""
_TOP = msgspec.json.Decoder(_Top)
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_CONNECTIVITY = msgspec.json.Decoder(_Connectivity)
