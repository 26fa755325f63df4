"""A TCP proxy on loopback that treats each connection as badly as it is told to."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self, TypeAlias

import msgspec


class Conduct(msgspec.Struct, kw_only=True, frozen=True):
    """What a connection has to bear. It is the bytes from the server to the client that are tampered with."""

    cut_after: int | None = None
    """How many bytes come through before the connection is cut."""
    reset: bool = False
    """Whether it is cut by a reset instead of an orderly close."""
    delay_s: float = 0.0
    """How long each piece is on the way."""
    hold_s: float = 0.0
    """How long everything is kept back, to come all at once."""
    piece: int | None = None
    """How many bytes are passed on at a time."""
    bytes_per_s: float | None = None
    """How fast they come."""
    stall_after: int | None = None
    """How many bytes come through before nothing does any more, while the connection stays up."""
    answer: bytes | None = None
    """Sent, in place of anything from the server, once a request has come; then the connection is closed."""
    refuse: bool = False
    """Whether the connection is closed as soon as it is there."""


Plan: TypeAlias = Callable[[int], Conduct]
"""The conduct of each connection, by its number from 0."""

_CHUNK = 65_536


def one_after_the_other(conducts: Iterable[Conduct], then: Conduct | None = None) -> Plan:
    """A conduct for each of the first connections, and one for all that follow, by default a good one."""
    listed = list(conducts)
    rest = Conduct() if then is None else then
    return lambda number: listed[number] if number < len(listed) else rest


class TcpProxy:
    """`async with TcpProxy(port, plan) as proxy`: what connects to `proxy.port` is led to the port on loopback."""

    def __init__(self, target_port: int, plan: Plan | None = None) -> None:
        self.target_port = target_port
        self.plan: Plan = plan if plan is not None else lambda number: Conduct()
        """May be replaced at any time, for the connections that come then."""
        self.port = 0
        self.connections = 0
        """How many there were."""
        self.passed = 0
        """How many bytes the clients were sent."""
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it is for an HTTP client."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._server is not None:
            self._server.close()
        await self.cut_all()

    async def cut_all(self) -> None:
        """Cut every connection that there is now."""
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection without a task")
        self._open.add(task)
        conduct = self.plan(self.connections)
        self.connections += 1
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._conducted(conduct, reader, writer)
        finally:
            self._open.discard(task)
            if conduct.reset:
                _reset(writer)
            else:
                writer.close()

    async def _conducted(self, conduct: Conduct, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if conduct.refuse:
            return
        if conduct.answer is not None:
            await reader.read(_CHUNK)
            writer.write(conduct.answer)
            await writer.drain()
            return
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        up = asyncio.create_task(_copied(reader, upstream_writer))
        try:
            await self._down(conduct, upstream_reader, writer)
        finally:
            up.cancel()
            upstream_writer.close()
            await asyncio.gather(up, return_exceptions=True)

    async def _down(self, conduct: Conduct, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = 0
        held = b""
        if conduct.hold_s:
            with suppress(TimeoutError):
                async with asyncio.timeout(conduct.hold_s):
                    while data := await reader.read(_CHUNK):
                        held += data
        while data := held or await reader.read(_CHUNK):
            held = b""
            for piece in _pieces(data, conduct):
                for limit in (conduct.cut_after, conduct.stall_after):
                    if limit is not None:
                        piece = piece[: limit - sent]
                if conduct.delay_s:
                    await asyncio.sleep(conduct.delay_s)
                if conduct.bytes_per_s is not None:
                    await asyncio.sleep(len(piece) / conduct.bytes_per_s)
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                self.passed += len(piece)
                if sent == conduct.cut_after:
                    return
                if sent == conduct.stall_after:
                    await asyncio.Event().wait()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def _pieces(data: bytes, conduct: Conduct) -> Iterable[bytes]:
    size = conduct.piece
    if size is None and conduct.bytes_per_s is not None:
        size = max(int(conduct.bytes_per_s / 20), 1)
    return [data] if size is None else [data[at : at + size] for at in range(0, len(data), size)]


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
