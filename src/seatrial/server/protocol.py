"""uvicorn's HTTP protocol with what it lacks: an end to heads that never end, and a way to cut a connection off."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seatrial.server.limits import MAX_HEAD_BYTES

CONNECTION = "seatrial.connection"
"""Extension of the ASGI scope. Its `abort` is a function that cuts the connection off at once, full buffers or not;
its `send` takes the body of a response past everything that wants to see how the response starts."""

HEAD_PATIENCE_S = 30.0
"""How long the head of a request may take to arrive."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = True
        self._impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # Whoever writes waits while the kernel takes nothing more, so that slow clients keep little of our memory.
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
        if self._impatience is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        self.scope["extensions"] = {CONNECTION: {"abort": self.transport.abort}}
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._impatience = self.loop.call_later(HEAD_PATIENCE_S, self._give_up)

    def _give_up(self) -> None:
        self._impatience = None
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None
