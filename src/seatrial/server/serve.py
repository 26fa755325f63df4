"""Running a server: its parts in their order, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack

from seatrial.agents.agent import Agent
from seatrial.errors import SeatrialError
from seatrial.server.access import Keys
from seatrial.server.app import build_app
from seatrial.server.driving import Limits
from seatrial.server.feed import Feeds
from seatrial.server.listener import alongside, carried, listening_at, url_of
from seatrial.server.logs import log
from seatrial.server.maintenance import keep_for
from seatrial.server.metrics import Metrics
from seatrial.server.service import RunService
from seatrial.server.settings import ServerSettings
from seatrial.store import Store
from seatrial.suites.secrets import Secrets


class Stopping:
    """Whether a server was asked to stop."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    async def wait(self) -> None:
        """Until somebody asks."""
        await self._asked.wait()

    def ask(self) -> None:
        """End in good order."""
        self._asked.set()


async def serve(
    store: Store,
    agents: Mapping[str, Agent],
    settings: ServerSettings,
    *,
    limits: Mapping[str, Limits] | None = None,
    secrets: Secrets | None = None,
    stopping: Stopping,
    announce: Callable[[str], None],
) -> None:
    """Serve until it is asked to stop, then end in good order.

    Runs that go on get their time to finish, and whoever follows them sees it. Then the streams that are left end with
    a hint to come back, and the connections are closed.
    """
    settings.check()
    await _check_exposure(store, settings)
    keys = Keys(store, may_be_open=settings.loopback)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listening_at(settings.host, settings.port))
        feeds = Feeds(store, keepalive_s=settings.keepalive_s, send_timeout_s=settings.send_timeout_s)
        service = RunService(
            store,
            feeds,
            agents,
            limits=limits,
            secrets=secrets,
            drain_s=settings.drain_s,
            push_idle_s=settings.push_idle_s,
        )
        metrics = Metrics(
            {
                "seatrial_runs_active": ("Runs that are carried out here, or wait for it", lambda: service.active),
                "seatrial_subscribers": ("Streams that are being followed", lambda: feeds.subscribers),
            }
        )
        app = build_app(store, feeds, service, settings, keys, metrics)
        beside: list[Coroutine[object, object, object]] = [keys.watch()]
        if settings.retention_days is not None:
            beside.append(keep_for(store, settings.retention_days))
        await stack.enter_async_context(alongside(*beside))
        async with carried(app, listening):
            async with service:
                announce(url_of(listening))
                await stopping.wait()
                log("stopping")
            await feeds.close()
    log("stopped")


async def _check_exposure(store: Store, settings: ServerSettings) -> None:
    if not settings.loopback and not await asyncio.to_thread(store.has_keys):
        raise SeatrialError(
            "usage",
            f"a server at {settings.host} can be reached by others, and the store has no keys",
            hint="make one with `seatrial keys add NAME --scope run`, or serve at 127.0.0.1",
        )
