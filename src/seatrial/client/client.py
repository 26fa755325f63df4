"""The client of the run service."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial.api import CreateRun, EventPage, PushEvents, PushResult, RunInput, RunPage, Thread
from seatrial.client.address import DEFAULT_URL, path_segment
from seatrial.client.follow import StreamForm
from seatrial.client.patience import Patience
from seatrial.client.service import Service
from seatrial.client.stream import EventStream, OnRetry
from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import BaseEvent, Event, RunStatus
from seatrial.runs import ServedRun

PushedEvent: TypeAlias = Event | Mapping[str, Any]

CALL_PATIENCE_S = 15.0
"""How long one request is tried, if the patience of its client is not shorter still."""


class Client:
    """Asks for runs, follows them, and pushes events. Entered once, used many times, concurrently.

    Every request may be sent again when its answer was lost, and means the same: runs are asked for with an idempotency
    key, and pushed events have ids, made up where none is given.
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
        """A key is not sent over plain http, unless to this machine or with `allow_plain_http`.

        `timeout_s` bounds a request, `idle_s` how long a stream may be silent: three of the service's keepalives.
        A stream that breaks is taken up again, with growing waits, until `patience_s` have passed without anything new.
        """
        self._service = Service(
            url,
            key,
            allow_plain_http=allow_plain_http,
            ssl=ssl,
            connect_s=connect_s,
            timeout_s=timeout_s,
            patience=Patience(
                seconds=min(patience_s, CALL_PATIENCE_S), first_wait_s=first_wait_s, longest_wait_s=longest_wait_s
            ),
        )
        self._connect_s = connect_s
        self._idle_s = idle_s
        self._patience = Patience(seconds=patience_s, first_wait_s=first_wait_s, longest_wait_s=longest_wait_s)

    def __repr__(self) -> str:
        return f"Client({self._service.url!r})"

    async def __aenter__(self) -> Self:
        await self._service.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._service.__aexit__(*exc_info)

    async def create_run(
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
        """Start a run; it continues without us. A string is a user message."""
        idempotency_key = idempotency_key or str(uuid.uuid4())
        request = CreateRun(
            agent=agent,
            input=_run_input(input, idempotency_key),
            thread_id=thread_id,
            run_id=run_id,
            idempotency_key=idempotency_key,
            push=push,
            resume=None if resume is None else list(resume),
        )
        return await self._service.call("POST", "/v1/runs", _RUN, body=wire.encode(request))

    async def run(self, run_id: str) -> ServedRun:
        """What is known of a run."""
        return await self._service.call("GET", _run_path(run_id), _RUN)

    async def runs(
        self,
        *,
        agent: str | None = None,
        thread_id: str | None = None,
        status: RunStatus | Collection[RunStatus] | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> RunPage:
        """A page of runs, the newest first; `next` of a page is `before` of the following one."""
        statuses = [status] if isinstance(status, str) else status
        params = {
            "agent": agent,
            "threadId": thread_id,
            "status": None if statuses is None else ",".join(statuses),
            "before": before,
            "limit": limit,
        }
        return await self._service.call("GET", "/v1/runs", _RUN_PAGE, params=_given(params))

    async def cancel(self, run_id: str) -> ServedRun:
        """Ask for the end of a run. One that has ended stays as it is."""
        return await self._service.call("POST", f"{_run_path(run_id)}/cancel", _RUN)

    async def thread(self, thread_id: str) -> Thread:
        """A conversation: its runs, messages and state."""
        return await self._service.call("GET", f"/v1/threads/{path_segment(thread_id, 'thread id')}", _THREAD)

    async def push(self, run_id: str, events: Sequence[PushedEvent], *, first: int | None = None) -> PushResult:
        """Append events to a run that was asked for with `push`: all of them, or none.

        `first` is the sequence that the first one is to have; the service refuses when that place is taken.
        """
        pushed = PushEvents(events=[_with_id(event) for event in events])
        if first is not None:
            pushed.first = first
        return await self._service.call("POST", f"{_run_path(run_id)}/events", _PUSHED, body=wire.encode(pushed))

    async def events_page(self, run_id: str, *, after: int | None = None, limit: int | None = None) -> EventPage:
        """A page of what is stored of a run; `next` of a page is `after` of the following one."""
        params = _given({"after": after, "limit": limit})
        return await self._service.call("GET", f"{_run_path(run_id)}/events", _EVENT_PAGE, params=params)

    def events(
        self,
        run_id: str,
        *,
        after: int | None = None,
        types: Collection[str] | None = None,
        form: StreamForm = "sse",
        on_retry: OnRetry | None = None,
    ) -> EventStream:
        """Follow a run to its end, from the beginning or behind the sequence `after`; see `EventStream`.

        With `types`, only events of these types come.
        """
        return EventStream(
            self._service,
            run_id,
            after=after,
            types=types,
            form=form,
            patience=self._patience,
            connect_s=self._connect_s,
            idle_s=self._idle_s,
            on_retry=on_retry,
        )


def _run_path(run_id: str) -> str:
    return f"/v1/runs/{path_segment(run_id, 'run id')}"


def _given(params: Mapping[str, str | int | None]) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value is not None}


def _run_input(given: RunInput | str | None, idempotency_key: str) -> RunInput:
    if isinstance(given, str):
        # The id comes from the key: the same request, made again, has to be the same to the letter.
        return RunInput(messages=[{"id": f"user-{idempotency_key}", "role": "user", "content": given}])
    return RunInput() if given is None else given


def _with_id(event: PushedEvent) -> dict[str, Any]:
    """The event as JSON, with an id by which the service knows it when it comes again."""
    fields: dict[str, Any] = msgspec.to_builtins(event) if isinstance(event, BaseEvent) else dict(event)
    if "eventId" not in fields:
        fields["eventId"] = str(uuid.uuid4())
    return fields


_RUN = msgspec.json.Decoder(ServedRun)
_RUN_PAGE = msgspec.json.Decoder(RunPage)
_THREAD = msgspec.json.Decoder(Thread)
_PUSHED = msgspec.json.Decoder(PushResult)
_EVENT_PAGE = msgspec.json.Decoder(EventPage)
