"""The socket that a server listens on, and uvicorn on it, which refuses request heads that never end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seatrial.errors import SeatrialError

BACKLOG = 2048
MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers together."""
CLOSING_S = 5
"""How long connections may take to close, once all has been sent."""
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
async def http_server(app: Callable[..., Any], listening: socket.socket) -> AsyncIterator[None]:
    """Serve the application inside this block. Then connections get a moment to end, and are closed."""
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
        # The command that runs the server handles signals.
        yield


CONNECTION = "seatrial.connection"
"""Extension of the ASGI scope. Its `abort` is a function that cuts the connection off at once, full buffers or not;
its `send` sends the body of a response without the middleware, which needs only its start."""

HEAD_TIMEOUT_S = 30.0
"""How long the head of a request may take to arrive."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = True
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # Writers wait while the kernel's buffer is full, so that slow clients hold little of our memory.
        transport.set_write_buffer_limits(high=0)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # The parser keeps what it has of a head, without a limit. What came with the rest of a head is bounded by
        # what is read at once, and checked when it is whole.
        if self._in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        self.scope["extensions"] = {CONNECTION: {"abort": self.transport.abort}}
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


@contextlib.asynccontextmanager
async def alongside(*work: Coroutine[object, object, object]) -> AsyncIterator[None]:
    """Run this work in the background of a block. When it fails, the block is cancelled, and the failure raised."""
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
    """Raise the first exception itself, where a task group would wrap it in a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        first = group.exceptions[0]
        raise first from first.__cause__
