"""The same client for code that is not async. It also works where a loop is running already, as in a notebook."""

from __future__ import annotations

import atexit
import ssl
import threading
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Self, TypeVar

from seatrial._support.portal import Portal
from seatrial.api import EventPage, PushResult, RunInput, RunPage, Thread
from seatrial.client.address import DEFAULT_URL
from seatrial.client.client import Client, PushedEvent
from seatrial.client.follow import StreamForm
from seatrial.client.stream import EventStream, OnRetry
from seatrial.errors import SeatrialError
from seatrial.events.envelope import SequencedOutputEnvelope
from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import RunStatus
from seatrial.runs import ServedRun
from seatrial.transcript import Note

T = TypeVar("T")


class SyncClient:
    """`Client` without `await`. Opened by `with` or by its first use; may be used from several threads.

    Outside of a `with` block, `close` it, or the end of the program will.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        key: str | None = None,
        *,
        allow_plain_http: bool = False,
        ssl: ssl.SSLContext | None = None,
        connect_s: float = 10.0,
        timeout_s: float = 30.0,
        idle_s: float = 30.0,
        patience_s: float = 180.0,
        first_wait_s: float = 0.25,
        longest_wait_s: float = 15.0,
    ) -> None:
        self._client = Client(
            url,
            key,
            allow_plain_http=allow_plain_http,
            ssl=ssl,
            connect_s=connect_s,
            timeout_s=timeout_s,
            idle_s=idle_s,
            patience_s=patience_s,
            first_wait_s=first_wait_s,
            longest_wait_s=longest_wait_s,
        )
        self._portal: Portal | None = None
        self._opening = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"Sync{self._client!r}"

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection. Runs continue."""
        with self._opening:
            self._closed = True
            portal, self._portal = self._portal, None
        if portal is not None:
            atexit.unregister(self.close)
            try:
                portal.run(self._client.__aexit__())
            finally:
                portal.close()

    def create_run(
        self,
        agent: str,
        input: RunInput | str | None = None,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        push: bool = False,
        resume: Sequence[ResumeEntry] | None = None,
    ) -> ServedRun:
        """See `Client.create_run`."""
        asked = self._client.create_run(
            agent,
            input,
            thread_id=thread_id,
            run_id=run_id,
            idempotency_key=idempotency_key,
            push=push,
            resume=resume,
        )
        return self._wait(asked)

    def run(self, run_id: str) -> ServedRun:
        """See `Client.run`."""
        return self._wait(self._client.run(run_id))

    def runs(
        self,
        *,
        agent: str | None = None,
        thread_id: str | None = None,
        status: RunStatus | Collection[RunStatus] | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> RunPage:
        """See `Client.runs`."""
        return self._wait(
            self._client.runs(agent=agent, thread_id=thread_id, status=status, before=before, limit=limit)
        )

    def cancel(self, run_id: str) -> ServedRun:
        """See `Client.cancel`."""
        return self._wait(self._client.cancel(run_id))

    def thread(self, thread_id: str) -> Thread:
        """See `Client.thread`."""
        return self._wait(self._client.thread(thread_id))

    def push(self, run_id: str, events: Sequence[PushedEvent], *, first: int | None = None) -> PushResult:
        """See `Client.push`."""
        return self._wait(self._client.push(run_id, events, first=first))

    def events_page(self, run_id: str, *, after: int | None = None, limit: int | None = None) -> EventPage:
        """See `Client.events_page`."""
        return self._wait(self._client.events_page(run_id, after=after, limit=limit))

    def events(
        self,
        run_id: str,
        *,
        after: int | None = None,
        types: Collection[str] | None = None,
        form: StreamForm = "sse",
        on_retry: OnRetry | None = None,
    ) -> SyncEventStream:
        """See `Client.events`. `on_retry` is called in another thread."""
        return SyncEventStream(
            self, self._client.events(run_id, after=after, types=types, form=form, on_retry=on_retry)
        )

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of async work. When the wait is interrupted, so is the work."""
        try:
            portal = self._opened()
        except SeatrialError:
            work.close()
            raise
        return portal.run(work)

    @property
    def closed(self) -> bool:
        """Whether it was closed, and cannot be used any more."""
        return self._closed

    def _opened(self) -> Portal:
        with self._opening:
            if self._closed:
                raise SeatrialError("service_failed", "the client is closed")
            if self._portal is None:
                self._portal = Portal()
                self._portal.run(self._client.__aenter__())
                atexit.register(self.close)
            return self._portal


class SyncEventStream:
    """`EventStream` without `await`."""

    def __init__(self, client: SyncClient, stream: EventStream) -> None:
        self._client = client
        self._stream = stream

    def __repr__(self) -> str:
        return f"Sync{self._stream!r}"

    @property
    def run_id(self) -> str:
        """The run that is followed."""
        return self._stream.run_id

    @property
    def status(self) -> RunStatus | None:
        """How the run ended; None until every event was given."""
        return self._stream.status

    @property
    def position(self) -> int | None:
        """The cursor: everything up to this sequence was given. As `after`, it takes the stream up from here."""
        return self._stream.position

    @property
    def data(self) -> bytes:
        """The bytes of the envelope that was given last, as they came."""
        return self._stream.data

    @property
    def connections(self) -> int:
        """How many connections it took so far."""
        return self._stream.connections

    @property
    def duplicates(self) -> int:
        """How many events came more than once, and were dropped."""
        return self._stream.duplicates

    @property
    def notes(self) -> list[Note]:
        """What had to be repaired to read the events; the first hundred."""
        return self._stream.notes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SequencedOutputEnvelope:
        # To change threads costs more than to read an event, so it is done once for all that are here.
        envelope = self._stream.take_ready() or self._client._wait(self._next())
        if envelope is None:
            raise StopIteration
        return envelope

    def close(self) -> None:
        """Leave the stream. The run continues."""
        if not self._client.closed:
            self._client._wait(self._stream.aclose())

    async def _next(self) -> SequencedOutputEnvelope | None:
        return await anext(self._stream, None)
