"""How a run ends: with exactly one terminal event, behind the end of everything that is open, and with its record."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

import msgspec

from seatrial.agents.agent import Reply
from seatrial.engine.redaction import Redaction
from seatrial.engine.trial import internal_fault
from seatrial.errors import SeatrialError
from seatrial.events import Event, encode_events
from seatrial.events import types as t
from seatrial.events.codec import stamp
from seatrial.events.order import Order
from seatrial.formats.agui import NAME, reading_of
from seatrial.runs import FAULT_CLASSES, Attempt, Fault, Run, RunKey, ServedRun
from seatrial.runs.conclusion import conclude
from seatrial.server.logs import log
from seatrial.server.means import Means
from seatrial.server.stored_log import read_log
from seatrial.store import Store, address
from seatrial.store.served import Ending
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import Message, Note

Terminal: TypeAlias = t.RunFinished | t.RunError

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 5.0

PASSING = frozenset({"store_unavailable", "store_full"})
"""What the store says when it may take later what it does not take now."""
LOST = frozenset({"sequence_conflict", "run_ended", "not_found"})
"""What it says to the server of a run that another one has ended."""
_UNSTORABLE = frozenset({"unstorable", "too_deep"})
"""What it says to a record that would fit into no store."""
_CODES = {"deadline_exceeded": "timeout"}
"""Codes of RUN_ERROR that are not the class of the fault."""
_OUR_CODES = frozenset({*FAULT_CLASSES, *_CODES.values()})


def run_error(fault: Fault) -> t.RunError:
    """The event that ends a run with this fault."""
    return t.RunError(message=fault.message, code=_CODES.get(fault.error_class, fault.error_class))


def cancelled(run: ServedRun) -> t.RunFinished:
    """The event that ends a run that was cancelled."""
    return t.RunFinished(thread_id=run.thread_id, run_id=run.run_id, outcome=t.CancelledOutcome())


def last_events(order: Order, terminal: Terminal, now: int) -> list[bytes]:
    """The end of everything that is open, and the terminal event. The order then has them."""
    if isinstance(terminal, t.RunError):
        error: str | None = terminal.message
    else:
        error = "the run was cancelled" if isinstance(terminal.outcome, t.CancelledOutcome) else None
    events: list[Event] = [*order.closing(error), terminal]
    for event in events:
        stamp(event, now)
        order.feed(event)
    return encode_events(events)


def reply_of_log(events: list[Event], notes: list[Note]) -> Reply:
    """What the events of a run, without the terminal one, add up to; where no agent brought it."""
    said = len(events) > 1  # RUN_STARTED is ours
    return Reply(reading=reading_of(events, notes, NAME, None) if said else None, streamed=True)


class Record(msgspec.Struct, kw_only=True):
    """What is known of a run when it ends, beside its events."""

    run: ServedRun
    terminal: Terminal
    reply: Reply
    """What the agent brought, or what was read out of the log in its stead."""
    fault: Fault | None
    """Why it failed, when the terminal event says that it did."""
    started_at: int
    """Milliseconds since the epoch."""
    duration_ms: float
    notes: list[Note] = []
    """What was done to its events."""
    given: list[Message] = []
    """What the run started from, as far as its events do not say."""
    tool_access: ToolAccess = "own"
    observed: ObservedCalls | None = None
    """The agent's calls of the tool proxy."""

    def ending(self, events: list[bytes], first: int, ended_at: int, redaction: Redaction) -> Ending:
        """The end of the run, for the store. Takes its time where the agent said much."""
        terminal, fault = self.terminal, self.fault
        ending = Ending(run=self._run(redaction), status="completed", events=events, first=first, ended_at=ended_at)
        if isinstance(terminal, t.RunError):
            ending.status = "failed"
            ending.run.status = "failed" if fault is None or fault.blame == "agent" else "errored"
            ending.error_code = terminal.code if isinstance(terminal.code, str) else "agent_reported_error"
            ending.error_message = terminal.message
        elif isinstance(terminal.outcome, t.InterruptOutcome):
            ending.status = "input_required"
            ending.interrupts = terminal.outcome.interrupts
        elif isinstance(terminal.outcome, t.CancelledOutcome):
            ending.status = ending.run.status = "cancelled"
        return ending

    def _run(self, redaction: Redaction) -> Run:
        reply = self.reply
        attempt = Attempt(
            number=1,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            fault=self.fault,
            observed_calls=0 if self.observed is None else len(self.observed.steps or ()),
            http_status=reply.http_status,
            body_hash=None if reply.body is None else address(reply.body),
            body_bytes=None if reply.body is None else len(reply.body),
        )
        run = Run(
            run_id=self.run.run_id,
            experiment_id="",
            key=RunKey(self.run.agent, self.run.run_id, 0),
            status="completed",
            body=reply.body,
            attempts=[attempt],
            fault=self.fault,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
        )
        if reply.reading is not None:
            reply.reading.notes += self.notes
        try:
            conclude(
                run,
                reply.reading,
                self.given,
                observed=redaction.observed(self.observed),
                trace_file=reply.trace_file,
                tool_access=self.tool_access,
            )
        except Exception as error:  # noqa: BLE001 (what an agent sent must not keep its run from ending)
            run.fault = attempt.fault = self.fault or internal_fault(error, redaction)
            run.status = "errored"
            return run
        redaction.concluded(run)
        return run


def log_record(
    run: ServedRun, terminal: Terminal, fault: Fault | None, events: list[Event], notes: list[Note], now: int
) -> Record:
    """The record of a run of which there is only the log: these events, their notes, and the terminal event."""
    created_at = round(run.created_at.timestamp() * 1000)
    return Record(
        run=run,
        terminal=terminal,
        reply=reply_of_log(events, notes),
        fault=fault,
        started_at=created_at,
        # The run may have begun in another process: there is only this clock, and it may have been set back.
        duration_ms=max(0.0, now - created_at),
    )


async def store_end(means: Means, run: ServedRun, ending: Ending) -> bool:
    """Store the end of a run, and tell those who follow it. False: it had ended already."""
    try:
        ended = await _submitted(means.store, ending)
    except SeatrialError as error:
        if error.code not in _UNSTORABLE:
            raise
        ending.run = _without_content(ending.run, error)
        ended = await _submitted(means.store, ending)
    if ended:
        means.feeds.publish(run.run_id, ending.first, ending.events)
        means.feeds.ended(run.run_id)
        code = ending.error_code
        if code is not None and code not in _OUR_CODES:
            code = "agent_reported_error"  # an agent may write anything there
        log("run_ended", run_id=run.run_id, agent=run.agent, status=ending.status, code=code)
    else:
        means.feeds.wake(run.run_id)
    return ended


async def end_by_log(means: Means, run: ServedRun, terminal: Terminal, fault: Fault | None) -> bool:
    """End a run that no agent is asked for any more, where its log stands. False: it had ended already."""
    return await store_end(means, run, await asyncio.to_thread(_ending_by_log, means, run, terminal, fault))


def _ending_by_log(means: Means, run: ServedRun, terminal: Terminal, fault: Fault | None) -> Ending:
    log = read_log(means.store, run.run_id)
    now = means.clock.now_ms()
    record = log_record(run, terminal, fault, log.events, log.notes, now)
    return record.ending(last_events(log.order, terminal, now), log.following, now, means.redaction)


class Patience:
    """Waits longer and longer for a store that is away or full; anything else that it says is raised."""

    def __init__(self, run: ServedRun) -> None:
        self._run = run
        self._wait_s = FIRST_WAIT_S

    async def bear(self, error: SeatrialError) -> None:
        if error.code not in PASSING:
            raise error
        if self._wait_s == FIRST_WAIT_S:
            log("store_awaited", run_id=self._run.run_id, code=error.code)
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)


async def _submitted(store: Store, ending: Ending) -> bool:
    # In a thread, because the record is encoded first.
    receipt = await asyncio.to_thread(store.end_run, ending)
    return await receipt


def _without_content(run: Run, error: SeatrialError) -> Run:
    """What is kept of a run whose record no store can keep; its events are there."""
    attempts = [
        Attempt(number=attempt.number, started_at=attempt.started_at, duration_ms=attempt.duration_ms)
        for attempt in run.attempts
    ]
    fault = Fault("recording_failed", f"the run cannot be recorded: {error.message}")
    return msgspec.structs.replace(
        run, status="errored", attempts=attempts, fault=fault, reading=None, body=None, steps=[], reported=None
    )
