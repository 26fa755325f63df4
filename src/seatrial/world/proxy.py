"""The tool proxy: an HTTP server that agents under test call while they work (dispatch.md 5).

It knows runs by their tokens, and answers 401 to any other caller before it looks at anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from aiohttp import web

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.limits import LARGE_BYTES, excess
from seatrial.trajectory.observed import ObservedCalls
from seatrial.world.grant import MAX_RUN_BYTES, Emit, Grants, LiveRun, RunGrant
from seatrial.world.observation import OpenCall
from seatrial.world.tools import NoTools, ToolAnswer, ToolWorld, refusal
from seatrial.world.trace import actor_label, is_self_handoff, trace_event, trace_problem

if TYPE_CHECKING:
    from seatrial.world.session import WorldSession

BASE_PATH = "/api/odyssey-proxy"
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_TRACE_POSTS = 20_000
"""Of one run; each becomes an event."""
ACTOR_HEADER = "X-Pipelines-Actor-Id"
IDEMPOTENCY_HEADER = "Idempotency-Key"
"""One for each call; the same when a client tries again."""
TOKEN_HEADER = "X-Pipelines-Run-Token"  # noqa: S105 - the name of a header, not a secret

_SHUTDOWN_S = 1.0

_REFUSED = {
    "run_token_invalid": "this is not the token of a run",
    "run_token_expired": "the run of this token has ended",
}

Handler: TypeAlias = Callable[[str, web.Request, LiveRun, Any], Awaitable[ToolAnswer]]
"""Takes the name in a request's path, the request, the run it belongs to, and its decoded body."""


class ToolProxy:
    """The server, for the length of an experiment."""

    def __init__(
        self,
        tools: ToolWorld | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_run_bytes: int = MAX_RUN_BYTES,
    ) -> None:
        self._tools = NoTools() if tools is None else tools
        self._host = host
        self._port = port
        self._grants = Grants(max_run_bytes)
        app = web.Application(client_max_size=max_body_bytes)
        app.router.add_route("*", f"{BASE_PATH}/tools/{{name:.+}}", self._call_tool)
        app.router.add_post(f"{BASE_PATH}/traces/{{name}}", self._guarded(self._take_trace, "trace_payload_invalid"))
        app.router.add_get("/api/agents/{agent_id}/tools-schema", self._guarded(self._tell_schema, bearer_only=True))
        app.router.add_route("*", "/{path:.*}", _no_such_route)
        # No access log: a request has the token in it.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where agents find it; without a slash at the end."""
        return f"http://{self._host}:{self._port}{BASE_PATH}"

    def open_run(
        self, run_id: str, emit: Emit, calls: ObservedCalls | None = None, session: WorldSession | None = None
    ) -> RunGrant:
        """Let a run use the proxy; what it posts goes to `emit`, and every call of a tool into `calls`."""
        return self._grants.open(run_id, self.url, emit, calls, session)

    async def close_run(self, run_id: str) -> WorldSession | None:
        """End a run: its token is dead. Gives its session, if it had one, which is still to be closed."""
        return await self._grants.close(run_id)

    def _guarded(
        self, handler: Handler, not_json: str = "payload_invalid", *, bearer_only: bool = False
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """A route for running runs only; `not_json` is the class of the error for a body that is not JSON."""

        async def handle(request: web.Request) -> web.Response:
            run = self._run_of(request, bearer_only=bearer_only)
            if isinstance(run, ToolAnswer):
                return _response(run)
            body = await _read(request, run)
            if not run.live:
                return _response(_expired())
            if isinstance(body, ToolAnswer):
                return _response(body)
            payload = await _decoded(body, not_json)
            if isinstance(payload, ToolAnswer):
                return _response(payload)
            return _response(await handler(_name(request), request, run, payload.value))

        return handle

    def _run_of(self, request: web.Request, *, bearer_only: bool = False) -> LiveRun | ToolAnswer:
        """The run that a request belongs to; else the refusal."""
        token = _presented(request, bearer_only=bearer_only)
        if isinstance(token, ToolAnswer):
            return token
        run = self._grants.find(token)
        return run if isinstance(run, LiveRun) else refusal(401, run, _REFUSED[run])

    async def _call_tool(self, request: web.Request) -> web.Response:
        """Every request for a tool is recorded, also one that is refused: the attempt says something of the agent."""
        run = self._run_of(request)
        if isinstance(run, ToolAnswer):
            return _response(run)
        call = run.begin_call(_name(request), request.headers.get(IDEMPOTENCY_HEADER))
        answer: ToolAnswer | None = None
        try:
            answer = await self._tool_answer(request, run, call)
        finally:
            await run.end_call(call, answer)
        return _response(answer)

    async def _tool_answer(self, request: web.Request, run: LiveRun, call: OpenCall) -> ToolAnswer:
        actor = request.headers.get(ACTOR_HEADER)
        call.step.actor = None if actor is None else actor_label(actor)
        body = await _read(request, run)
        if not run.live:
            return _expired()
        if isinstance(body, ToolAnswer):
            return body
        decoded = await _decoded(body, "arguments_invalid")
        if isinstance(decoded, ToolAnswer):
            call.take_text(body)
            return decoded
        arguments = decoded.value
        call.take_arguments(arguments, body)
        if request.method != "POST":
            return refusal(405, "method_not_allowed", "a tool is called with POST")
        if actor is not None and call.step.actor is None:
            return refusal(400, "actor_label_invalid", f"{ACTOR_HEADER} is not a label of an actor")
        if type(arguments) is not dict:
            return refusal(400, "arguments_invalid", "the body of a tool call is the object of its arguments")
        if run.session is None:
            return await self._tools.call(run.run_id, call.step.name, arguments, request.headers)
        key = request.headers.get(IDEMPOTENCY_HEADER)
        return await run.session.call(
            call.step.name, arguments, gateway="http", actor=call.step.actor, idempotency_key=key
        )

    async def _take_trace(self, trace_type: str, request: web.Request, run: LiveRun, payload: Any) -> ToolAnswer:
        problem = trace_problem(trace_type, payload)
        if problem is not None:
            return refusal(400, "trace_payload_invalid", problem)
        if is_self_handoff(trace_type, payload):
            return ToolAnswer(200, {"accepted": False, "sequence": None})
        sequence = run.next_sequence
        if sequence >= MAX_TRACE_POSTS:
            return refusal(413, "too_many_trace_posts", f"a run may post {MAX_TRACE_POSTS:,} traces")
        run.next_sequence += 1
        await run.emit(trace_event(trace_type, payload))
        return ToolAnswer(200, {"accepted": True, "sequence": sequence})

    async def _tell_schema(self, name: str, request: web.Request, run: LiveRun, payload: Any) -> ToolAnswer:
        return ToolAnswer(200, {"tools": self._tools.schema() if run.session is None else run.session.described()})


def _presented(request: web.Request, *, bearer_only: bool) -> str | ToolAnswer:
    """The token that a request carries, or the refusal."""
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer":
        bearer = ""
    other = "" if bearer_only else request.headers.get(TOKEN_HEADER, "")
    if bearer and other and bearer != other:
        return refusal(401, "run_token_mismatch", f"Authorization and {TOKEN_HEADER} carry different tokens")
    return bearer or other or refusal(401, "run_token_missing", "there is no `Authorization: Bearer <run token>`")


async def _read(request: web.Request, run: LiveRun) -> bytes | ToolAnswer:
    """The body, or the refusal of one that is too large."""
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        return refusal(413, "payload_too_large", error.text or "the body is too large")
    run.bytes_left -= len(body)
    if run.bytes_left < 0:
        return refusal(413, "payload_too_large", "the run has posted as much as one run may")
    return body


class _Payload(NamedTuple):
    value: Any


async def _decoded(body: bytes, not_json: str) -> _Payload | ToolAnswer:
    """The JSON of a body; an empty one is `{}`. The refusal of what is not JSON, or too much of it.

    Every other run waits for the event loop: a large body is read beside it.
    """
    if len(body) < LARGE_BYTES:
        return _decode(body, not_json)
    return await asyncio.to_thread(_decode, body, not_json)


def _decode(body: bytes, not_json: str) -> _Payload | ToolAnswer:
    if (much := excess(body)) is not None:
        return refusal(413, "payload_too_large", f"the body has {much}")
    try:
        return _Payload(wire.decode(body, repairs=[]) if body else {})
    except SeatrialError as error:
        return refusal(400, not_json, error.message)


def _name(request: web.Request) -> str:
    return request.match_info.get("name", "")


def _expired() -> ToolAnswer:
    return refusal(401, "run_token_expired", _REFUSED["run_token_expired"])


async def _no_such_route(request: web.Request) -> web.Response:
    return _response(refusal(404, "route_not_found", "the proxy has `tools/{name}` and `traces/{type}` below its URL"))


def _response(answer: ToolAnswer) -> web.Response:
    return web.Response(status=answer.status, body=wire.encode(answer.body), content_type="application/json")
