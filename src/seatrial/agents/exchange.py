"""One connection to an agent, and the exchange on it: a request is written, and its answer read as it comes.

Our own, on the parser of `httptools`, because of what it costs: with a thousand agents at once, a third of the time
of a run went into a general HTTP client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from seatrial.agents.http_faults import ExchangeError, reason
from seatrial.agents.unpacking import Unpacking, unpacking
from seatrial.runs import Fault

BUFFER_BYTES = 64 * 1024
"""Read from a connection at once."""
HELD_BYTES = 256 * 1024
"""What is held of an answer before its reader takes it; the agent has to wait with the rest."""
MAX_HEAD_BYTES = 64 * 1024
"""What may come without being part of a body: the head of an answer, most of all."""
SHOWN_BYTES = 4096
"""What is told of an answer that is not HTTP, before it is cut for people."""

_WANTED = frozenset({b"content-type", b"content-length", b"content-encoding", b"transfer-encoding", b"retry-after"})


class Response:
    """An answer: its head once `begin` has returned, its body as it is read. Close it when done with it."""

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.content_type = ""
        """In lower case, without parameters."""
        self.retry_after: str | None = None
        self.begun = False
        """Whether the head is there."""
        self.complete = False
        """Whether all of it has come."""
        self.held = 0
        """Bytes that came and were not read yet."""
        self._length: int | None = None
        self._connection: Connection | None = connection
        self._parts: list[bytes] = []
        self._packed: Unpacking | None = None
        self._failure: ExchangeError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._any_part = False
        """Whether whoever waits is content with some of the body."""

    async def begin(self) -> None:
        """Wait for the head. Raises `ExchangeError`."""
        while not self.begun:
            await self._wait(any_part=True)

    async def some(self) -> bytes:
        """The next part of the body, as soon as there is one; empty at its end. Raises `ExchangeError`."""
        while True:
            if self._packed is not None and (part := self._packed.some()):
                return part
            if self._parts:
                part = self._take()
                if self._packed is None:
                    return part
                self._packed.add(part)
            elif self.complete:
                if self._packed is not None:
                    self._packed.end()
                return b""
            else:
                await self._wait(any_part=True)

    async def whole(self, limit: int) -> bytes | None:
        """All of the body; None when it is longer than so many bytes. Raises `ExchangeError`."""
        if self._length is not None and self._length > limit:
            return None
        parts: list[bytes] = []
        size = 0
        if self._packed is not None:
            # What is counted is what a compressed answer becomes.
            while part := await self.some():
                parts.append(part)
                size += len(part)
                if size > limit:
                    return None
        else:
            while True:
                size += self.held
                parts.append(self._take())
                if size > limit:
                    return None
                if self.complete:
                    break
                await self._wait(any_part=False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Give the connection back; one whose answer is not complete is cut off."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end(self)

    # What the connection tells

    def start(self, status: int, headers: dict[bytes, bytes]) -> None:
        """The head has come."""
        self.status = status
        self.content_type = _text(headers, b"content-type").partition(";")[0].strip().lower()
        if b"retry-after" in headers:
            self.retry_after = _text(headers, b"retry-after")
        if (length := headers.get(b"content-length")) is not None:
            self._length = int(length)  # the parser has refused anything but digits
        try:
            self._packed = unpacking(_text(headers, b"content-encoding"))
        except ExchangeError as error:
            self.fail(error)
        self.begun = True
        self._stir()

    def add(self, part: bytes) -> None:
        """A part of the body has come."""
        self._parts.append(part)
        self.held += len(part)
        if self._any_part or self.held > HELD_BYTES:
            self._stir()

    def finish(self) -> None:
        """Everything has come."""
        self.complete = self._failure is None
        self._stir()

    def fail(self, error: ExchangeError) -> None:
        """No more will come."""
        if self._failure is None and not self.complete:
            self._failure = error
            self._stir()

    def _take(self) -> bytes:
        # Joined, because an agent may send a byte at a time.
        parts = self._parts
        taken = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self.held = 0
        if self._connection is not None:
            self._connection.flow(resume=True)
        return taken

    async def _wait(self, *, any_part: bool) -> None:
        if self._failure is not None:
            raise self._failure
        self._any_part = any_part
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._any_part = False

    def _stir(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.BufferedProtocol):
    """One exchange after the other; `released` is told when the next one may come, and `lost` when none can."""

    def __init__(
        self,
        buffer: memoryview,
        read_s: float | None,
        released: Callable[[Connection], None],
        lost: Callable[[Connection], None],
    ) -> None:
        """The buffer may be that of all connections: what is read into it is parsed at once."""
        self.idle_since = 0.0
        self._buffer = buffer
        self._read_s = read_s
        self._released = released
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: Response | None = None
        self._headers: dict[bytes, bytes] = {}
        self._wordless = 0
        """Bytes since the last part of a body."""
        self._until_closed = False
        """Whether the body ends where the connection does."""
        self._sound = True
        """Whether another exchange may follow."""
        self._paused = False
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        """Whether a request can be written to it now."""
        return self._sound and self._transport is not None and not self._transport.is_closing()

    def ask(self, head: bytes, body: bytes | None) -> Response:
        """Write a request; its answer comes."""
        if self._transport is None or self._response is not None:
            raise RuntimeError("the connection is not free")
        response = self._response = Response(self)
        self._wordless = 0
        self._transport.write(head + body if body else head)
        if self._read_s is not None:
            self._heard_at = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(self._read_s, self._look)
        return response

    def end(self, response: Response) -> None:
        """The answer is not read any further."""
        if response is not self._response:
            return
        self._response = None
        transport = self._transport
        if transport is None:
            return
        # An answer may come before the request is written: nothing can follow on such a connection.
        if response.complete and self.usable and not transport.get_write_buffer_size():
            self.flow(resume=True)
            self._released(self)
        else:
            self.abort()

    def flow(self, *, resume: bool) -> None:
        """Let the agent send on, or wait."""
        if self._paused is resume and self._transport is not None:
            self._paused = not resume
            if resume:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def abort(self) -> None:
        """Cut it off."""
        self._sound = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of uvloop is one in all but its class.
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        response = self._response
        if response is None:
            self.abort()  # nobody asked for anything
            return
        self._heard_at = self._loop.time()
        self._wordless += nbytes
        data = self._buffer[:nbytes]
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(Fault("agent_bad_response", "the agent wants to speak something else than HTTP"))
        except httptools.HttpParserError as error:
            self._sound = False
            if not response.complete:  # what comes behind an answer does not spoil it
                shown = bytes(data[:SHOWN_BYTES]).decode("utf-8", "replace")
                self._fail(Fault("agent_bad_response", "the agent's answer is not HTTP", detail=f"{error}: {shown}"))
        if self._wordless > MAX_HEAD_BYTES and not response.complete:
            self._fail(Fault("agent_bad_response", "the head of the agent's answer does not end"))

    def eof_received(self) -> None:
        """The agent has no more to say; the connection is lost next."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.abort()
        self._lost(self)
        response, self._response = self._response, None
        if response is None or response.complete:
            return
        if not response.begun and not self._wordless:
            what = "closed" if exc is None else "reset"
            fault = Fault("connection_lost", f"the connection was {what} before the agent answered", reason(exc))
        elif self._until_closed and exc is None:
            response.finish()
            return
        else:
            # A part of the head is the beginning of an answer, too.
            fault = Fault("answer_cut_off", "the agent's answer broke off", reason(exc))
        response.fail(ExchangeError(fault))

    # What the parser tells

    def on_message_begin(self) -> None:
        if self._response is None or self._response.complete:
            self._sound = False
        self._headers = {}
        self._until_closed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _WANTED:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        response, headers = self._response, self._headers
        status = self._parser.get_status_code()
        if response is None or response.begun or status < 200:
            return
        chunked = headers.get(b"transfer-encoding", b"").lower().endswith(b"chunked")
        self._until_closed = not chunked and b"content-length" not in headers
        response.start(status, headers)

    def on_body(self, body: bytes) -> None:
        self._wordless = 0
        response = self._response
        if response is not None and not response.complete:
            response.add(body)
            if response.held > HELD_BYTES:
                self.flow(resume=False)

    def on_message_complete(self) -> None:
        response = self._response
        if response is not None and response.begun and not response.complete:
            self._sound = self._sound and self._parser.should_keep_alive()
            response.finish()

    # How

    def _fail(self, fault: Fault) -> None:
        if self._response is not None:
            self._response.fail(ExchangeError(fault))
        self.abort()

    def _look(self) -> None:
        """Time has passed: is the agent still there? One timer serves all exchanges that come before it fires."""
        self._timer = None
        response, read_s = self._response, self._read_s
        if response is None or response.complete or read_s is None:
            return
        now = self._loop.time()
        if self._paused:
            self._heard_at = now  # it is we who do not listen
        left_s = self._heard_at + read_s - now
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
        else:
            self._fail(Fault("agent_timeout", f"the agent sent nothing for {read_s:g} s"))


def _text(headers: dict[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("utf-8", "replace")
