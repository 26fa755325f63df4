"""A run's events as an async iterator that outlives its connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Self, TypeAlias

import aiohttp

from seatrial.client.address import path_segment
from seatrial.client.follow import Follow, Received, StreamForm
from seatrial.client.patience import Patience
from seatrial.client.refusal import AttemptError
from seatrial.client.service import Service
from seatrial.errors import SeatrialError
from seatrial.events.envelope import SequencedOutputEnvelope
from seatrial.events.types import RunStatus
from seatrial.transcript import Note

OnRetry: TypeAlias = Callable[[SeatrialError, float], None]
"""Told why a connection was lost, and in how many seconds the next one is tried."""

_ACCEPT: dict[StreamForm, str] = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}


class EventStream:
    """The events of one run, each exactly once and in order, until the run has ended.

    Iteration ends when the service says that the run has ended, and `status` says how. After any other end of a
    connection, the next one continues behind the last event; when that fails too often, `SeatrialError` is raised, and
    iterating again tries again. To leave the stream is not to cancel the run.
    """

    def __init__(
        self,
        service: Service,
        run_id: str,
        *,
        after: int | None,
        types: Collection[str] | None,
        form: StreamForm,
        patience: Patience,
        connect_s: float,
        idle_s: float,
        on_retry: OnRetry | None,
    ) -> None:
        if after is not None and after < 0:
            raise SeatrialError("invalid_cursor", f"`after` is a sequence, from 0, got {after}")
        if isinstance(types, str):
            types = [types]
        if types is not None and not types:
            raise SeatrialError("invalid_request", "`types` names no type of event: nothing would ever come")
        self.run_id = run_id
        self.data = b""
        """The bytes of the envelope that was given last, as they came."""
        self.connections = 0
        """How many connections it took so far."""
        self._service = service
        self._path = f"/v1/runs/{path_segment(run_id, 'run id')}/stream"
        self._types = None if types is None else ",".join(types)
        self._accept = _ACCEPT[form]
        self._patience = patience
        # A server that is silent for that long is not there any more, or something between us holds it back.
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_s, sock_read=idle_s)
        self._on_retry = on_retry
        self._follow = Follow(run_id, after=after, filtered=types is not None, form=form)
        self._ready: deque[Received] = deque()
        self._batches: AsyncGenerator[list[Received], None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"EventStream({self.run_id!r}, position={self.position}, status={self.status!r})"

    @property
    def status(self) -> RunStatus | None:
        """How the run ended; None until every event was given."""
        return None if self._ready else self._follow.status

    @property
    def position(self) -> int | None:
        """The cursor: everything up to this sequence was given. As `after`, it takes the stream up from here."""
        if not self._ready:
            return self._follow.position
        following = self._ready[0].envelope.sequence
        return following - 1 if following else None

    @property
    def duplicates(self) -> int:
        """How many events came more than once, and were dropped."""
        return self._follow.duplicates

    @property
    def notes(self) -> list[Note]:
        """What had to be repaired to read the events; the first hundred."""
        return self._follow.notes

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SequencedOutputEnvelope:
        while (envelope := self.take_ready()) is None:
            if self._closed or self._follow.status is not None:
                raise StopAsyncIteration
            if self._batches is None:
                self._batches = self._connections()
            batches, self._batches = self._batches, None
            # Had this been cancelled or had it failed, the next call begins a connection of its own.
            batch: list[Received] | None = await anext(batches, None)
            self._ready.extend(batch or ())
            self._batches = batches
        return envelope

    def take_ready(self) -> SequencedOutputEnvelope | None:
        """The next event if it is here already; None means that one has to wait for it."""
        if not self._ready or self._closed:
            return None
        received = self._ready.popleft()
        self.data = received.data
        return received.envelope

    async def aclose(self) -> None:
        """Leave the stream. The run continues."""
        self._closed = True
        if self._batches is not None:
            await self._batches.aclose()

    async def _connections(self) -> AsyncGenerator[list[Received], None]:
        """What is new, connection after connection; returns when the run has ended."""
        follow = self._follow
        budget = self._service.budget(self._patience)
        while True:
            follow.connect()
            self.connections += 1
            try:
                async with self._service.answer(
                    "GET", self._path, params=self._params(), accept=self._accept, timeout=self._timeout
                ) as content:
                    while chunk := await content.readany():
                        batch = follow.feed(chunk)
                        if follow.progressed:
                            budget.refill()
                        if follow.status is not None:
                            break
                        if batch:
                            yield batch
                        if follow.fault is not None:
                            raise follow.fault
                if follow.status is not None:
                    # Not before the connection is closed, since nobody need come back for more.
                    yield batch
                    return
                error = self._broken("it ended before the run did")
                asked_s = follow.retry_s
            except AttemptError as attempt:
                if not attempt.may_pass:
                    raise attempt.error from None
                error = attempt.error
                if error.code == "service_failed":
                    error = self._broken(error.message)
                asked_s = attempt.wait_s if attempt.wait_s is not None else follow.retry_s
            wait_s = budget.wait_s(asked_s)
            if wait_s is None:
                raise error
            if self._on_retry is not None:
                self._on_retry(error, wait_s)
            await asyncio.sleep(wait_s)

    def _params(self) -> dict[str, str]:
        params = {}
        if self._follow.position is not None:
            params["after"] = str(self._follow.position)
        if self._types is not None:
            params["types"] = self._types
        return params

    def _broken(self, why: str) -> SeatrialError:
        position = self._follow.position
        return SeatrialError(
            "stream_broken",
            f"the stream of {self.run_id} broke off: {why}",
            hint=None if position is None else f"it can be taken up again behind event {position}",
            details={"runId": self.run_id, "after": position},
        )
