"""The operations of the run service. What each promises beyond its signature is in its `Contract`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter, RawBody, SkipValidation
from litestar.types import ASGIApp

from seatrial._support import wire
from seatrial.agents.off_loop import off_loop
from seatrial.api import CreateRun, EventPage, PushEvents, PushResult, RunPage, Thread
from seatrial.errors import SeatrialError
from seatrial.events.codec import EVENT_TYPES
from seatrial.events.envelope import cursor_text, parse_cursor, terminal_text
from seatrial.events.run_input import RunAgentInput
from seatrial.events.types import RunStatus
from seatrial.explorer.page import TheStore
from seatrial.runs.served import ServedRun
from seatrial.server.agui_stream import agui_run, agui_stream
from seatrial.server.feed import Feeds
from seatrial.server.native_stream import NDJSON, SSE, chosen_form, native_stream, no_more
from seatrial.server.openapi import OperationContract
from seatrial.server.service import RunService
from seatrial.store.filter import MAX_FILTER

TheService: TypeAlias = NamedDependency[SkipValidation[RunService]]
TheFeeds: TypeAlias = NamedDependency[SkipValidation[Feeds]]

RunId: TypeAlias = Annotated[str, PathParameter(description="The id of a run.")]
After: TypeAlias = Annotated[
    str | None,
    QueryParameter(description="The last event received: its sequence, or its cursor `<runId>:<sequence>`."),
]
LastEventId: TypeAlias = Annotated[
    str | None,
    HeaderParameter(name="Last-Event-ID", description="The cursor of the last event received, as `?after=`."),
]

Name = TypeVar("Name", bound=str)

_MAX_SEQUENCE = 2**63 - 1
_STATUSES: tuple[RunStatus, ...] = ("pending", "running", "input_required", "completed", "failed", "cancelled")

_HAS_TERMINAL = {
    204: "The client has TERMINAL, as its Last-Event-ID says: there are no further events, and it need not reconnect"
}

_CREATE_RUN = msgspec.json.Decoder(CreateRun)
_PUSH_EVENTS = msgspec.json.Decoder(PushEvents)


@post(
    "/v1/runs",
    operation_id="createRun",
    status_code=202,
    opt=OperationContract(
        body=CreateRun,
        also={200: "The run that the same request made before"},
        headers={"Location": "Where the run is"},
        problems=(
            "not_found",
            "conflict",
            "agent_busy",
            "thread_busy",
            "resume_refused",
            "idempotency_conflict",
            "too_large",
            "shutting_down",
        ),
    ).opt,
)
async def create_run(
    body: RawBody,
    service: TheService,
    idempotency_key: Annotated[
        str | None,
        HeaderParameter(
            name="Idempotency-Key", description="As `idempotencyKey` in the body.", min_length=1, max_length=256
        ),
    ] = None,
) -> Response[ServedRun]:
    """Ask for a run.

    It runs whether or not a client follows it. A thread has one active run at a time; a thread with open interrupts
    continues with a run whose `resume` answers all of them.
    """
    request = wire.decode_input(body, _CREATE_RUN)
    if idempotency_key is not None:
        if request.idempotency_key not in (None, idempotency_key):
            raise SeatrialError("invalid_request", "the header Idempotency-Key and the field idempotencyKey differ")
        request.idempotency_key = idempotency_key
    admitted = await service.create(request)
    location = f"/v1/runs/{quote(admitted.run.run_id, safe='')}"
    return Response(admitted.run, status_code=202 if admitted.created else 200, headers={"location": location})


@get("/v1/runs", operation_id="listRuns", opt=OperationContract(problems=("invalid_filter",)).opt)
async def list_runs(
    service: TheService,
    agent: Annotated[str | None, QueryParameter(description="Only runs of this agent.", max_length=256)] = None,
    thread_id: Annotated[
        str | None, QueryParameter(name="threadId", description="Only runs of this thread.", max_length=256)
    ] = None,
    status: Annotated[
        str | None, QueryParameter(description=f"Only runs of these, with commas between: {', '.join(_STATUSES)}.")
    ] = None,
    before: Annotated[
        str | None, QueryParameter(description="`next` of the page before: the page behind it.", max_length=1024)
    ] = None,
    limit: Annotated[int, QueryParameter(description="How many at most.", ge=1, le=500)] = 50,
    q: Annotated[
        str | None,
        QueryParameter(description="A filter, such as `tool:refund duration>10s`.", max_length=MAX_FILTER),
    ] = None,
) -> RunPage:
    """Runs of the service, the newest first."""
    statuses = None if status is None else frozenset(_each(status, _STATUSES, "status"))
    return await service.runs(
        agent=agent, thread_id=thread_id, statuses=statuses, before=before, limit=limit, where=q or ""
    )


@get("/v1/runs/{run_id:str}", operation_id="getRun", opt=OperationContract(problems=("not_found",)).opt)
async def get_run(run_id: RunId, service: TheService) -> ServedRun:
    """One run."""
    return await service.run(run_id)


@post(
    "/v1/runs/{run_id:str}/cancel",
    operation_id="cancelRun",
    status_code=200,
    opt=OperationContract(problems=("not_found",)).opt,
)
async def cancel_run(run_id: RunId, service: TheService) -> ServedRun:
    """Ask a run to end. It ends with `RUN_FINISHED`, outcome `cancelled`; one that has ended stays as it is."""
    return await service.cancel(run_id)


@get(
    "/v1/runs/{run_id:str}/stream",
    operation_id="streamRun",
    opt=OperationContract(
        streams={
            SSE: "One frame for each envelope, `id:` its cursor; KEEPALIVE has none, and TERMINAL `<runId>:end`",
            NDJSON: "One envelope, KEEPALIVE or TERMINAL in each line",
        },
        also=_HAS_TERMINAL,
        problems=("not_found", "cursor_ahead", "cursor_expired"),
        refusals={406: "Neither form is accepted"},
    ).opt,
)
async def stream_run(
    request: Request[object, object, State],
    run_id: RunId,
    feeds: TheFeeds,
    after: After = None,
    last_event_id: LastEventId = None,
    start: Annotated[
        Literal["start", "tail"],
        QueryParameter(name="from", description="`tail`: only what comes from now on, nothing that is stored already."),
    ] = "start",
    types: Annotated[
        str | None,
        QueryParameter(description="Only events of these types, with commas between. The sequence skips the rest."),
    ] = None,
) -> ASGIApp:
    """The events of a run in their envelopes, from the beginning or behind a cursor, and then as they come.

    The stream ends with TERMINAL, once the run has ended. One that ends without it was cut off, and is resumed by the
    cursor of the last envelope, or of the last KEEPALIVE. A browser's EventSource comes back after every end: with the
    id of TERMINAL it is answered 204, and stops. Works for every run of the store, those of experiments too.
    """
    form = chosen_form(request.headers.get("accept"))
    if await _has_terminal(run_id, after, last_event_id, feeds):
        return no_more
    position = _position(run_id, after, last_event_id)
    if start == "tail" and position is not None:
        raise SeatrialError("invalid_request", "`from=tail` and a cursor exclude each other")
    wanted = None if types is None else frozenset(_each(types, tuple(EVENT_TYPES), "type"))
    return await native_stream(feeds, run_id, after=position, tail=start == "tail", types=wanted, form=form)


@get(
    "/v1/runs/{run_id:str}/events",
    operation_id="listEvents",
    opt=OperationContract(problems=("not_found", "cursor_ahead", "cursor_expired")).opt,
)
async def list_events(
    run_id: RunId,
    service: TheService,
    after: After = None,
    limit: Annotated[int, QueryParameter(description="How many at most.", ge=1, le=1000)] = 200,
) -> EventPage:
    """Stored events of a run, page by page."""
    return await service.events(run_id, _position(run_id, after, None), limit)


@post(
    "/v1/runs/{run_id:str}/events",
    operation_id="pushEvents",
    status_code=200,
    opt=OperationContract(
        body=PushEvents,
        problems=(
            "not_found",
            "conflict",
            "sequence_conflict",
            "idempotency_conflict",
            "run_ended",
            "event_refused",
            "too_large",
            "shutting_down",
        ),
    ).opt,
)
async def push_events(run_id: RunId, body: RawBody, service: TheService) -> PushResult:
    """Add events to a run that was made with `push`: all of them, or none."""
    pushed = await off_loop(len(body), lambda: wire.decode_input(body, _PUSH_EVENTS))
    return await service.push(run_id, pushed, len(body))


@get(
    "/v1/runs/{run_id:str}/ag-ui",
    operation_id="joinRunAsAgUi",
    opt=OperationContract(
        streams={SSE: "One bare AG-UI event in each frame; keepalives are comments"},
        bare=True,
        also=_HAS_TERMINAL,
        problems=("not_found", "cursor_ahead", "cursor_expired"),
    ).opt,
)
async def join_agui(
    run_id: RunId, feeds: TheFeeds, store: TheStore, after: After = None, last_event_id: LastEventId = None
) -> ASGIApp:
    """A run for an AG-UI client that joins late, or comes back.

    RUN_STARTED, what the client lacks (snapshots; without a cursor), a new START of what is open, and then the events.
    The stream ends behind the run's terminal event. A client that has TERMINAL of the native stream is answered 204.
    """
    if await _has_terminal(run_id, after, last_event_id, feeds):
        return no_more
    return await agui_stream(feeds, store, run_id, after=_position(run_id, after, last_event_id))


@post(
    "/v1/agents/{name:str}/ag-ui",
    operation_id="runAgentAsAgUi",
    status_code=200,
    opt=OperationContract(
        body=RunAgentInput,
        streams={SSE: "One bare AG-UI event in each frame; keepalives are comments"},
        bare=True,
        problems=("not_found", "conflict", "agent_busy", "thread_busy", "resume_refused", "too_large", "shutting_down"),
    ).opt,
)
async def run_agui(
    name: Annotated[str, PathParameter(description="The name of an agent.")],
    body: RawBody,
    service: TheService,
    feeds: TheFeeds,
    store: TheStore,
) -> ASGIApp:
    """Run an agent for an AG-UI client: RunAgentInput in, bare events out.

    The run continues when the client disconnects; it comes back by `GET /v1/runs/{run_id}/ag-ui`.
    """
    return await agui_run(service, feeds, store, name, body)


@get("/v1/threads/{thread_id:str}", operation_id="getThread", opt=OperationContract(problems=("not_found",)).opt)
async def get_thread(
    thread_id: Annotated[str, PathParameter(description="The id of a thread.")], service: TheService
) -> Thread:
    """A conversation: its runs, the oldest first, and the messages and the state that they add up to."""
    return await service.thread(thread_id)


OPERATIONS = [
    create_run,
    list_runs,
    get_run,
    cancel_run,
    stream_run,
    list_events,
    push_events,
    join_agui,
    run_agui,
    get_thread,
]
"""Everything under /v1."""


async def _has_terminal(run_id: str, after: str | None, last_event_id: str | None, feeds: Feeds) -> bool:
    """Whether the client has all of a run that has ended, as its cursor says."""
    return terminal_text(run_id) in (last_event_id, after) and (await feeds.head(run_id)).closed


def _position(run_id: str, after: str | None, last_event_id: str | None) -> int | None:
    """The last sequence that the client has, from the query or the header."""
    positions = {_sequence(run_id, text) for text in (after, last_event_id) if text}
    if len(positions) > 1:
        raise SeatrialError("invalid_request", "`?after=` and Last-Event-ID name different events", hint="send one")
    return next(iter(positions), None)


def _sequence(run_id: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 19:
        sequence = int(text)
    else:
        cursor = parse_cursor(text)
        if cursor.run_id != run_id:
            raise SeatrialError(
                "invalid_cursor", f"the cursor {text[:300]!r} is of another run", hint="cursors hold for one run only"
            )
        sequence = cursor.sequence
    if sequence > _MAX_SEQUENCE:
        raise SeatrialError("invalid_cursor", f"no run has an event {cursor_text(run_id, sequence)[:300]!r}")
    return sequence


def _each(text: str, known: tuple[Name, ...], what: str) -> list[Name]:
    """What is between the commas."""
    by_name: dict[str, Name] = {name: name for name in known}
    names = [name for name in text.split(",") if name]
    for name in names or [""]:
        if name not in by_name:
            raise SeatrialError("invalid_request", f"{name[:80]!r} is not a {what}", hint=f"one of {', '.join(known)}")
    return [by_name[name] for name in names]
