"""Requests to put to agents, and servers on loopback that play their part."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

from aiohttp import web

from seatrial.agents.agent import Agent, Emit, Reply, RunRequest
from seatrial.driver import Driver, Recorder, Redaction, RunSpec, SystemClock, conclude_run
from seatrial.driver.conclusion import attempt_of
from seatrial.events import decode_event
from seatrial.events.types import Event
from seatrial.runs import Case, Exchange, Run, RunKey
from seatrial.world.proxy import ToolProxy

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
Talk: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def a_request(
    case: Case | None = None,
    *,
    run_id: str = "run-1",
    trial: int = 1,
    attempt: int = 1,
    timeout_s: float | None = 20.0,
) -> RunRequest:
    return RunRequest(
        run_id=run_id,
        experiment_id="exp-1",
        case=a_case() if case is None else case,
        trial=trial,
        attempt=attempt,
        timeout_s=timeout_s,
    )


def a_case(case_id: str = "case-1", instruction: str = "Book a table for two.", **fields: Any) -> Case:
    return Case(id=case_id, instruction=instruction, **fields)


def collecting(events: list[Event]) -> Emit:
    """Puts what is emitted into the list."""

    async def emit(event: Event) -> None:
        events.append(event)

    return emit


async def ask(agent: Agent, request: RunRequest | None = None, proxy: ToolProxy | None = None) -> Reply:
    """What the agent replies; its events are thrown away."""
    reply, _ = await ask_with_events(agent, request, proxy)
    return reply


async def ask_with_events(
    agent: Agent, request: RunRequest | None = None, proxy: ToolProxy | None = None
) -> tuple[Reply, list[Event]]:
    """What the agent replies, and its events; with a proxy, the run has access to it."""
    events: list[Event] = []
    emit = collecting(events)
    request = a_request() if request is None else request
    if proxy is None:
        return await agent.run(request, emit), events
    request.grant = proxy.open_run(request.run_id, emit, request.observed)
    try:
        return await agent.run(request, emit), events
    finally:
        await proxy.close_run(request.run_id)


class Log:
    """Takes the events of a run as they are stored."""

    def __init__(self) -> None:
        self.events: list[bytes] = []

    async def append(self, events: list[bytes], first: int) -> None:
        self.events += events


async def ask_and_keep(agent: Agent, proxy: ToolProxy) -> tuple[Run, list[Event]]:
    """What is stored of a run of the agent, and its events."""
    log = Log()
    recorder = Recorder("run-1", "thread", SystemClock(), Redaction(None), log)
    request = a_request()
    asked = await Driver(SystemClock(), Redaction(None), proxy=proxy).ask(agent, "agent", request, recorder)
    reply = asked.reply or Reply()
    await recorder.close()
    exchanges = [Exchange(number=1, attempts=[attempt_of(1, 0, 0.0, reply, request.observed)])]
    spec = RunSpec(run_id="run-1", experiment_id="e", key=RunKey("agent", "case", 0))
    ended = conclude_run(spec, reply, exchanges, recorder, started_at=0, observed=request.observed)
    events = [decode_event(data) for data in (*log.events, *recorder.pending)]
    return ended.kept, events


def error_class(reply: Reply | Run) -> str | None:
    return None if reply.fault is None else reply.fault.error_class


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """The URL of a server that answers every request with the handler."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/dispatch"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    """The URL of a server that does on the socket what it likes, once the request's head has come."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/dispatch"


@contextmanager
def unused_port() -> Iterator[int]:
    """A port that nobody listens on, nor anybody else can have meanwhile."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]
