"""The seam between what is asked over HTTP and how it is sent: a request, its response, and what carries them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, Self

import msgspec
import yarl

from seatrial.http_client.decompression import Decompressor, decompressor_for


class HttpRequest(msgspec.Struct, frozen=True):
    """One request. No header is added to it but those that frame its body."""

    method: str
    url: yarl.URL
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    on_connected: Callable[[], None] | None = None
    """Called once there is a connection for it, before it is written."""


class HttpResponse:
    """A response whose head has arrived; its body is read on demand, decompressed. Close it when done."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        read: Callable[[], Awaitable[bytes]],
        close: Callable[[], None],
        *,
        server: str = "the server",
    ) -> None:
        """`headers` have names in lower case, or ignore case; `read` gives the next part of the body as it was sent,
        empty at its end.
        """
        self.status = status
        self.content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        """In lower case, without parameters."""
        self.retry_after = headers.get("retry-after")
        self._length = headers.get("content-length", "")
        self._read = read
        self._close = close
        self._encoding = headers.get("content-encoding", "")
        self._server = server
        self._decompressor: Decompressor | None = None
        self._begun = False

    async def read(self) -> bytes:
        """The next part of the body, as soon as there is one; empty at its end. Raises `TransportError`."""
        if not self._begun:
            # Not before: the status of a response counts, whatever is wrong with its body.
            self._decompressor = decompressor_for(self._encoding, self._server)
            self._begun = True
        decompressor = self._decompressor
        if decompressor is None:
            return await self._read()
        if part := decompressor.next_piece():
            # A little that was received may become a lot: others have their turn before each piece of it.
            await asyncio.sleep(0)
            return part
        while not (part := decompressor.next_piece()):
            received = await self._read()
            if not received:
                decompressor.finish()
                return b""
            decompressor.feed(received)
        return part

    async def read_all(self, limit: int, parts: list[bytes] | None = None) -> bytes | None:
        """The whole body; None when it is longer than so many bytes, decompressed. Raises `TransportError`.

        `parts` gets what comes, so that the caller has it also when the rest does not come.
        """
        if self._length.isdecimal() and int(self._length) > limit:
            return None
        parts = [] if parts is None else parts
        size = 0
        while part := await self.read():
            parts.append(part)
            size += len(part)
            if size > limit:
                return None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Let the connection go: kept for the next request if the body was read to its end, else closed."""
        self._close()


class HttpTransport(Protocol):
    """Sends requests to servers, many at once. Entered before, and left after, all of them."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and wait for the head of its response. Raises `TransportError`.

        Redirects are not followed, and cookies are not kept.
        """
        ...

    async def connect(self, url: yarl.URL) -> None:
        """Connect, send nothing, and disconnect. Raises `TransportError`."""
        ...
