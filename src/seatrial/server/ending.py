"""How a run of the service ends: with exactly one terminal event, and with its record."""

from __future__ import annotations

import asyncio

from seatrial.agents.agent import Reply
from seatrial.driver import Recording, RunSpec, conclude_run
from seatrial.driver.conclusion import Conclusion, attempt_of, is_cancelled, without_content
from seatrial.driver.recording import OUR_CODES
from seatrial.errors import SeatrialError
from seatrial.events.order import Terminal
from seatrial.events.types import CancelledOutcome, InterruptOutcome, RunError, RunFinished
from seatrial.formats.agui import FORMAT, reading_of
from seatrial.runs import Exchange, Fault, ServedKey, ServedRun
from seatrial.server.context import ServiceContext
from seatrial.server.logs import log
from seatrial.server.stored_log import StoredLog, read_log
from seatrial.store import Store
from seatrial.store.served import Ending
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 5.0

PASSING = frozenset({"store_unavailable", "store_full"})
"""What the store says when it may take later what it does not take now."""
LOST = frozenset({"sequence_conflict", "run_ended", "not_found"})
"""What it says to the server of a run that another one has ended."""
_UNSTORABLE = frozenset({"unstorable", "too_deep"})
"""What it says to a record that would fit into no store."""


def cancelled(run: ServedRun) -> RunFinished:
    """The event that ends a run that was cancelled."""
    return RunFinished(thread_id=run.thread_id, run_id=run.run_id, outcome=CancelledOutcome())


def spec_of(run: ServedRun, tool_access: ToolAccess = "own") -> RunSpec:
    """What is to be concluded of a run of the service, which belongs to no experiment."""
    return RunSpec(run_id=run.run_id, key=ServedKey(run.agent, run.thread_id), tool_access=tool_access)


def reply_of_log(log: StoredLog, own: Terminal | None) -> Reply:
    """What the events of a run add up to, where no agent brought it; `own` is the one that its agent ended it by."""
    events = log.events if own is None else [*log.events, own]
    said = len(events) > 1  # RUN_STARTED is ours
    reading = reading_of(events, log.notes, FORMAT, None) if said else None
    return Reply(reading=reading, streamed=True, replayed=True)


def ending_of(ended: Conclusion, recording: Recording, ended_at: int) -> Ending:
    """The end of a run, for the store."""
    run, terminal = ended.kept, ended.terminal
    ending = Ending(run=run, status="completed", events=recording.pending, first=recording.stored, ended_at=ended_at)
    if isinstance(terminal, RunError):
        ending.status = "failed"
        ending.error_code = terminal.code if isinstance(terminal.code, str) else "agent_reported_error"
        ending.error_message = terminal.message
    elif is_cancelled(terminal):
        ending.status = run.status = "cancelled"
    elif run.fault is not None:
        # A pushed run finished, and has no answer, or says in its result that it failed; or no record could be made.
        ending.status, ending.error_code, ending.error_message = "failed", run.fault.error_class, run.fault.message
    elif isinstance(terminal.outcome, InterruptOutcome):
        ending.status = "input_required"
        ending.interrupts = terminal.outcome.interrupts
    return ending


def end_of_log(
    context: ServiceContext,
    served: ServedRun,
    recording: Recording,
    log: StoredLog,
    *,
    terminal: Terminal | None = None,
    fault: Fault | None = None,
) -> Ending:
    """The end of a run of which there is only the log: with the event that its agent ended it by, or with this one."""
    reply = reply_of_log(log, recording.terminal)
    reply.fault = fault
    created_at = round(served.created_at.timestamp() * 1000)
    # The run may have begun in another process: there is only this clock, and it may have been set back.
    duration_ms = max(0.0, context.clock.now_ms() - created_at)
    ended = conclude_run(
        spec_of(served),
        reply,
        [Exchange(number=1, attempts=[attempt_of(1, created_at, duration_ms, reply, ObservedCalls())])],
        recording,
        started_at=created_at,
        duration_ms=duration_ms,
        terminal=terminal,
        may_cancel=True,
    )
    return ending_of(ended, recording, context.clock.now_ms())


async def store_end(context: ServiceContext, run: ServedRun, ending: Ending) -> bool:
    """Store the end of a run, and publish it to its subscribers. False: it had ended already."""
    try:
        ended = await _submitted(context.store, ending)
    except SeatrialError as error:
        if error.code not in _UNSTORABLE:
            raise
        ending.run = without_content(ending.run, error)
        ended = await _submitted(context.store, ending)
    if ended:
        context.feeds.publish(run.run_id, ending.first, ending.events)
        context.feeds.ended(run.run_id)
        code = ending.error_code
        if code is not None and code not in OUR_CODES:
            code = "agent_reported_error"  # an agent may write anything there
        log("run_ended", run_id=run.run_id, agent=run.agent, status=ending.status, code=code)
    else:
        context.feeds.wake(run.run_id)
    return ended


async def end_by_log(context: ServiceContext, run: ServedRun, terminal: Terminal, fault: Fault | None) -> bool:
    """End a run whose agent is not asked any more, where its log stands. False: it had ended already."""
    return await store_end(context, run, await asyncio.to_thread(_ending_by_log, context, run, terminal, fault))


def _ending_by_log(context: ServiceContext, served: ServedRun, terminal: Terminal, fault: Fault | None) -> Ending:
    log = read_log(context.store, served.run_id)
    recording = Recording(served.run_id, served.thread_id, context.clock, context.redaction)
    for sequence, event in enumerate(log.events, log.first):
        recording.resume(event, sequence)
    return end_of_log(context, served, recording, log, terminal=terminal, fault=fault)


class StoreWait:
    """Waits longer and longer for a store that is away or full; other errors are raised."""

    def __init__(self, run: ServedRun) -> None:
        self._run = run
        self._wait_s = FIRST_WAIT_S

    async def after(self, error: SeatrialError) -> None:
        """Wait before the next try, when the store failed with this error and may take it later."""
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
