"""What carries the application: a socket, and uvicorn on it, which ends when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import uvicorn

from seatrial.errors import SeatrialError
from seatrial.server.protocol import Protocol
from seatrial.server.tasks import unwrapped

BACKLOG = 2048
CLOSING_S = 5
"""How long connections may take to end, once nothing more will be sent on them."""
IDLE_S = 75
"""How long a connection without a request is kept."""


@contextlib.contextmanager
def listening_at(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; port 0 takes any that is free. Raises `cannot_listen`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SeatrialError("cannot_listen", f"{host!r} is not an address: {error.strerror}") from None
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError as error:
            hint = "name another port; 0 takes any that is free" if error.errno == errno.EADDRINUSE else None
            raise SeatrialError(
                "cannot_listen", f"cannot listen at {host}:{port}: {error.strerror}", hint=hint
            ) from None
        listening.setblocking(False)
        yield listening


def url_of(listening: socket.socket) -> str:
    """Where a socket can be reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.asynccontextmanager
async def carried(app: Callable[..., Any], listening: socket.socket) -> AsyncIterator[None]:
    """The application answers while this lasts. Then connections get a moment to end, and are cut off."""
    server = _Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            loop="none",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=CLOSING_S,
        )
    )
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield
            finally:
                server.should_exit = True


class _Server(uvicorn.Server):
    servers: list[asyncio.base_events.Server] = []  # noqa: RUF012 (uvicorn sets its own)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        finally:
            # uvicorn, when it is cancelled, leaves them to a loop that will wait for them when it is closed.
            for server in self.servers:
                server.close()
            for connection in list(self.server_state.connections):
                connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are for whoever runs the server.
        yield
