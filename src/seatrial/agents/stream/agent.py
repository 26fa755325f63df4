"""An agent that streams: one POST of AG-UI's `RunAgentInput`, and events as they come.

Server-sent events or lines of JSON, bare events or native envelopes: what comes shows which. A stream that ends
without a terminal event is not a success. One that breaks is taken up again behind its last event, if the agent is
configured so and every event so far said where it stands.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from typing import Any, Self

import msgspec

from seatrial._support import wire
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.endpoint import Endpoint, Reached, status_fault, transport_fault
from seatrial.agents.limit import time_limit
from seatrial.agents.stream.config import StreamConfig
from seatrial.agents.streamed import StreamedRun
from seatrial.agents.trace_context import trace_headers
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events.run_input import PROTOCOL_VERSION, RunAgentInput
from seatrial.http_client import HttpResponse, HttpTransport, TransportError
from seatrial.runs import Fault
from seatrial.transcript import Note

LINGER_S = 0.25
"""How long a stream is read on after its run has ended, to see what should not come."""
REFUSAL_S = 5.0
"""How long what comes with a status that is not 2xx is read."""
RESUME_TRIES = 5
"""Connections in a row that may bring nothing new."""
FIRST_WAIT_S = 0.1
"""Before the first of them; doubled before each further one."""

_SHOWN_PARTS = 16
"""Parts of such a page that are looked at to show its beginning."""
_FORMATS = {"agui": "agui", "native": "events"}
_ACCEPT = {"Accept": "text/event-stream, application/x-ndjson;q=0.9"}
_RENAMED = {"tool_calls": "toolCalls", "tool_call_id": "toolCallId"}


class StreamAgent:
    """Reaches a streaming agent, with one pool of connections for all runs."""

    uses_world = False

    def __init__(
        self, config: StreamConfig, *, connect_s: float, read_s: float | None, transport: HttpTransport | None = None
    ) -> None:
        """Over aiohttp, unless another transport is given."""
        self._endpoint = Endpoint(
            config.url,
            config.headers,
            rule=config.endpoint_rule,
            connect_s=connect_s,
            read_s=read_s,
            max_bytes=config.max_response_bytes,
            transport=transport,
        )
        self._config = config

    async def __aenter__(self) -> Self:
        await self._endpoint.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._endpoint.__aexit__(*exc_info)

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        limit = time_limit(request)
        try:
            body = encode_input(run_input(request))
        except SeatrialError as error:
            return Reply(fault=Fault("internal_error", f"the case cannot be sent: {error}"))
        trace = trace_headers(request.run_id, self._config.headers)
        streamed = StreamedRun(emit, _FORMATS[self._config.format])
        conversation = _Conversation(self._endpoint, self._config, streamed, trace)
        try:
            async with asyncio.timeout(limit.seconds):
                fault = await conversation.hold(body)
        except TimeoutError:
            fault = limit.fault(connected=conversation.reached.connected)
        reply = await conversation.reply(fault)
        reply.metadata |= trace
        return reply

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return self._endpoint.address

    async def reach(self) -> Fault | None:
        """Why there is no connection to the agent; None when there is one. No request is sent: it would start a run."""
        return await self._endpoint.reach()


class _Conversation:
    """The connections of one run, one after the other."""

    def __init__(self, endpoint: Endpoint, config: StreamConfig, run: StreamedRun, trace: dict[str, str]) -> None:
        """`trace` are the headers by which the agent's trace is found; all connections of a run have the same."""
        self._endpoint = endpoint
        self._config = config
        self._run = run
        self._headers = {**_ACCEPT, **trace}
        self.reached = Reached()
        self._size = 0
        self._status: int | None = None
        self._refusal: list[bytes] | None = None
        """What came with a status that is not 2xx."""
        self._refusal_cut = False

    async def hold(self, body: bytes) -> Fault | None:
        """Read until the run has ended; the fault that kept it from ending, unless the events tell."""
        fault = await self._connect("POST", body, {"Content-Type": "application/json"})
        tries = 0
        while self._config.resume and not self._run.ended and _may_pass(fault) and self._run.cursor is not None:
            if tries == RESUME_TRIES:
                break
            await asyncio.sleep(FIRST_WAIT_S * 2**tries)
            known = self._run.count
            self._run.reconnect()
            again = await self._resume(body, self._run.cursor)
            if again is not None and not _may_pass(again):
                break  # the server cannot: what counts is how the stream broke
            fault = again
            tries = 0 if self._run.count > known else tries + 1
        if fault is None:
            try:
                await self._run.close()
            except SeatrialError as error:
                return _unreadable(error)
        return fault

    async def reply(self, fault: Fault | None) -> Reply:
        """What came back."""
        if self._run.count == 0 and self._refusal is not None:
            body = b"".join(self._refusal)
            return Reply(body=body or None, cut=self._refusal_cut, fault=fault, http_status=self._status)
        # A run that has ended may break off, but what came after its end counts: all of it must be known.
        counts = not self._run.ended or (fault is not None and fault.error_class == "response_too_large")
        return await self._run.reply(fault if counts else None, self._status)

    async def _resume(self, body: bytes, cursor: str) -> Fault | None:
        headers = {"Last-Event-ID": cursor}
        if self._config.resume_method == "get":
            return await self._connect("GET", None, headers)
        return await self._connect("POST", body, {"Content-Type": "application/json", **headers})

    async def _connect(self, method: str, body: bytes | None, headers: dict[str, str]) -> Fault | None:
        """Read one connection to its end; None when the server closed it in order."""
        try:
            with closing(
                await self._endpoint.ask(method, body, {**self._headers, **headers}, self.reached)
            ) as response:
                if self._status is None:
                    self._status = response.status
                if not 200 <= response.status < 300:
                    parts = await self._read_refusal(response)
                    return status_fault(response.status, response.retry_after, b"".join(parts[:_SHOWN_PARTS]))
                return await self._read(response)
        except TransportError as error:
            return transport_fault(error)

    async def _read_refusal(self, response: HttpResponse) -> list[bytes]:
        """Take what comes with a status that is not 2xx: it may list the calls that were made before."""
        parts: list[bytes] = []
        whole: bytes | None = None
        # What the status says weighs more than what is wrong with the page that came with it.
        with suppress(TransportError, TimeoutError):
            async with asyncio.timeout(REFUSAL_S):
                whole = await response.read_all(self._config.max_response_bytes, parts)
        if self._run.count == 0:
            self._refusal, self._refusal_cut = parts, whole is None
        return parts

    async def _read(self, response: HttpResponse) -> Fault | None:
        while not self._run.ended:
            chunk = await response.read()
            if not chunk:
                return None
            if (fault := await self._take(chunk)) is not None:
                return fault
        if not self._run.closed:
            try:
                async with asyncio.timeout(LINGER_S):
                    while chunk := await response.read():
                        if (fault := await self._take(chunk)) is not None:
                            return fault
            except (TimeoutError, TransportError):
                pass  # the run is over, however its connection ends
        return None

    async def _take(self, chunk: bytes) -> Fault | None:
        self._size += len(chunk)
        if self._size > self._config.max_response_bytes:
            return self._endpoint.too_large()
        try:
            await self._run.feed(chunk)
        except SeatrialError as error:
            return _unreadable(error)
        return None


def _may_pass(fault: Fault | None) -> bool:
    """Whether a connection that ended like this is worth another one."""
    return fault is None or fault.transient


def _unreadable(error: SeatrialError) -> Fault:
    if error.code == "too_large":
        return Fault("response_too_large", f"the stream is too large: {error.message}")
    return Fault("agent_bad_response", f"the answer is not a stream of events: {error.message}")


def run_input(request: RunRequest) -> RunAgentInput:
    """What is posted. Raises `SeatrialError` when a message of the case cannot be said in AG-UI.

    Every attempt has a thread of its own: an agent must not remember the one that failed. A run of the run service
    is one attempt, and belongs to the thread that it was asked for in.
    """
    if request.run_input is not None:
        return request.run_input
    case = request.case
    thread_id = request.run_id if request.attempt == 1 else f"{request.run_id}.{request.attempt}"
    notes: list[Note] = []
    given = [_agui_message(message, index) for index, message in enumerate(case.messages)]
    messages = agui.read_messages(given, ("messages",), notes)
    for note in notes:
        if note.code == agui.AGUI_MESSAGE_DROPPED:
            raise SeatrialError("invalid_document", f"AG-UI has no such message: {note.message}", pointer=note.pointer)
    messages.append(agui.UserMessage(id=f"{thread_id}-instruction", content=case.instruction))
    return RunAgentInput(
        thread_id=thread_id,
        run_id=thread_id,
        protocol_version=PROTOCOL_VERSION,
        state=case.input,
        messages=[msgspec.to_builtins(message) for message in messages],
        forwarded_props={},
    )


def encode_input(given: RunAgentInput) -> bytes:
    """The body of the request, with the empty lists that agents expect to be there."""
    fields: dict[str, Any] = msgspec.to_builtins(given)
    return wire.encode({"tools": [], "context": [], **fields})


def _agui_message(message: dict[str, Any], index: int) -> dict[str, Any]:
    """A message of OpenAI's shape, with AG-UI's names. The reader of AG-UI's messages repairs the rest."""
    renamed = {_RENAMED.get(key, key): value for key, value in message.items() if value is not None}
    content = renamed.get("content")
    if type(content) is list:
        renamed["content"] = [_agui_part(part) for part in content]
    return {"id": f"message-{index + 1}", **renamed}


def _agui_part(part: Any) -> Any:
    image = part.get("image_url") if type(part) is dict else None
    url = image.get("url") if type(image) is dict else image
    return {"type": "image", "source": {"type": "url", "value": url}} if type(url) is str else part
