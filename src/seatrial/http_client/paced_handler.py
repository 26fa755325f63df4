"""One connection of aiohttp's, which parses what arrives in small slices, so that no server keeps the event loop.

A few hundred kilobytes of empty headers or chunks of one byte take a tenth of a second to parse, and asyncio hands
them over at once (uvloop several times in a row): ten such servers would stop everything else.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError

SLICE_BYTES = 4 * 1024
"""What is parsed without a look at the clock."""
TURN_S = 0.001
"""How long one connection may parse before it is the turn of others. Bodies of usual size take less."""
MAX_INTERIM = 1_000
"""Interim responses (status 1xx) to one request."""


class PacedHandler(ResponseHandler):
    """A connection. While received data waits to be parsed, the socket is not read."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        super().__init__(loop)
        self._unparsed = bytearray()
        self._scheduled = False
        self._lost: tuple[BaseException | None] | None = None
        """How the connection ended, when a part of what arrived before was not parsed yet."""
        self._interim = 0

    @property
    def should_close(self) -> bool:
        return bool(self._unparsed) or super().should_close

    def set_response_params(self, **params: Any) -> None:
        self._interim = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if not self._unparsed and len(data) <= SLICE_BYTES:
            super().data_received(data)
        elif data:
            self._unparsed += data
            self._pause_reading_for_buffer()
            self._parse()
        else:
            super().data_received(data)  # aiohttp resumes its parser, which may hold something back itself

    def resume_reading(self, resume_parser: bool = True) -> None:
        super().resume_reading(resume_parser)
        if self._unparsed:
            self._schedule()

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take the head of a response; interim ones are of no use to anybody here."""
        if not _is_interim(data[0].code):
            super().feed_data(data, size)
            return
        self._interim += 1
        if self._interim > MAX_INTERIM and self.exception() is None:
            if self.transport is not None:
                self.transport.close()
            self.set_exception(HttpProcessingError(code=400, message="too many interim responses"))

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._unparsed:
            self._lost = (exc,)
            self._schedule()
        else:
            super().connection_lost(exc)

    def close(self) -> None:
        self._unparsed.clear()
        super().close()

    def abort(self) -> None:
        self._unparsed.clear()
        super().abort()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        self._scheduled = False
        self._parse()

    def _parse(self) -> None:
        """Parse for one turn, or until the reader of the body has enough."""
        until = time.perf_counter() + TURN_S
        while self._unparsed and not self._reading_paused:
            part = bytes(self._unparsed[:SLICE_BYTES])
            del self._unparsed[:SLICE_BYTES]
            super().data_received(part)
            if self.exception() is not None:
                self._unparsed.clear()
            elif time.perf_counter() >= until:
                break
        if self._unparsed:
            if not self._reading_paused:
                self._schedule()
        elif self._lost is not None:
            (exc,), self._lost = self._lost, None
            super().connection_lost(exc)
        elif self._buffer_paused:
            self._resume_reading_for_buffer()


def _is_interim(status: int) -> bool:
    return 100 <= status < 200 and status != 101
