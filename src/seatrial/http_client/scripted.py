"""A transport without a network: it answers from a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Self

import msgspec
import yarl

from seatrial.http_client.transport import HttpRequest, HttpResponse
from seatrial.http_client.transport_error import TransportError


class ScriptedResponse(msgspec.Struct, frozen=True):
    """What to answer with."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | Sequence[bytes | TransportError] = b""
    """Whole, or in the parts in which it arrives; an error ends it there."""


Script = Callable[[HttpRequest], ScriptedResponse | Awaitable[ScriptedResponse]]


class ScriptedTransport:
    """Answers every request with what a function makes of it; the function may raise `TransportError`."""

    def __init__(self, script: Script | ScriptedResponse) -> None:
        self._script: Script = (lambda _: script) if isinstance(script, ScriptedResponse) else script
        self.requests: list[HttpRequest] = []
        """All requests so far."""
        self.connected: list[yarl.URL] = []
        """All URLs that were connected to without a request."""
        self.open_responses = 0
        """Responses that were not closed yet."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        pass

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        if request.on_connected is not None:
            request.on_connected()
        made = self._script(request)
        scripted = await made if isawaitable(made) else made
        parts = iter([scripted.body] if isinstance(scripted.body, bytes) else scripted.body)

        async def read() -> bytes:
            # An empty part does not end a body: over a network there is none.
            part = next((part for part in parts if part), b"")
            if isinstance(part, TransportError):
                raise part
            return part

        closed = False

        def close() -> None:
            nonlocal closed
            self.open_responses -= not closed
            closed = True

        response = HttpResponse(
            scripted.status, {name.lower(): value for name, value in scripted.headers.items()}, read, close
        )
        self.open_responses += 1
        return response

    async def connect(self, url: yarl.URL) -> None:
        self.connected.append(url)
