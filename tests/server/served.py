"""An application on a real socket, for tests; and requests to it that no client library would send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from seatrial.agents.agent import Agent
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.config import PythonConfig
from seatrial.server.app import Stopping, serve
from seatrial.server.listener import http_server, listening_at, url_of
from seatrial.server.settings import ServerSettings
from seatrial.store import Store

SETTINGS = ServerSettings(port=0, rate=0, drain_s=2.0)


@asynccontextmanager
async def served(app: Callable[..., Any]) -> AsyncIterator[str]:
    """The application's address, while this lasts."""
    with listening_at("127.0.0.1", 0) as listening:
        async with http_server(app, listening):
            yield url_of(listening)


async def raw(url: str, request: bytes, *, timeout_s: float = 30.0) -> bytes:
    """Everything that the server answers to these bytes until it closes the connection, or says nothing more."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        received = b""
        try:
            async with asyncio.timeout(timeout_s):
                while chunk := await reader.read(65536):
                    received += chunk
        except (TimeoutError, ConnectionResetError):
            pass
        return received
    finally:
        writer.close()


@asynccontextmanager
async def serving(
    store: Store, agents: Mapping[str, Agent] | None = None, settings: ServerSettings = SETTINGS
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """A whole server, as `seatrial serve` runs it, and a client of it."""
    stopping = Stopping()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(serve(store, agents or {}, settings, stopping=stopping, announce=url.set_result))
    await asyncio.wait((url, running), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    try:
        async with aiohttp.ClientSession(await url) as client:
            yield await url, client
    finally:
        stopping.ask()
        await running


def agent(function: Callable[..., Any]) -> Agent:
    """A function as an agent."""
    return PythonAgent(PythonConfig(target="tests:agent"), directory=Path(), timeout_s=None, function=function)
