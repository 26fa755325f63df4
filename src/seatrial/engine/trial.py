"""Running one trial: attempts until there is an answer, or a fault that trying again will not fix."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path

import msgspec

from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.agents.off_loop import off_loop
from seatrial.driver import Driver, Recorder, RunSpec, concluded
from seatrial.driver.conclusion import attempt_of, record_end, set_fault
from seatrial.engine.limit import AdaptiveLimit
from seatrial.engine.stop import Stop
from seatrial.events.types import RunError
from seatrial.runs import Attempt, Case, Fault, FaultRules, Run
from seatrial.runs.conclusion import UNKNOWN_CALL, called_tools, given_messages, says_nothing
from seatrial.store import Store
from seatrial.suites import Retry
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls

FLUSH_S = 0.1
"""Events that come while a run is running are with the store so soon; a shorter run is stored at once, with its end."""
TOO_MUCH = frozenset({429, 503})
"""Statuses by which an agent says that it has more to do than it can bear."""
_TAKEN = frozenset({"conflict", "sequence_conflict", "run_ended", "not_found"})
"""What the store says to events of a run whose place another process has taken."""


class Trial(RunSpec, kw_only=True):
    """One run to carry out."""

    case: Case
    deadline_s: float | None
    """For all attempts together."""
    suite_file: Path | None = None


class Finished(msgspec.Struct):
    """A run that has ended, and what of it is not with the store yet."""

    run: Run
    events: list[bytes]
    first_event: int
    """The sequence of the first of them."""
    earlier_bodies: list[bytes]
    """What the attempts before the last one brought."""


class TrialRunner:
    """Runs the trials of one agent."""

    def __init__(
        self,
        agent: Agent,
        limit: AdaptiveLimit,
        retry: Retry,
        driver: Driver,
        store: Store,
        chance: random.Random,
        *,
        faults: FaultRules | None = None,
        places: asyncio.Semaphore | None = None,
        stop: Stop | None = None,
    ) -> None:
        """`faults` are the suite's; `places` are those of all agents together, beside the agent's own `limit`."""
        self.agent = agent
        self.limit = limit
        self.retry = retry
        self._driver = driver
        self._store = store
        self._chance = chance
        self._faults = FaultRules() if faults is None else faults
        self._places = places
        self._stop = Stop() if stop is None else stop

    async def carry_out(self, trial: Trial) -> Finished:
        """Run a trial to its end. Raises `StopRequestedError` when a stop comes while no attempt is running, and
        `SeatrialError` when the store fails."""
        recorder = recorder_of(trial, self._driver, self._store)
        try:
            return await self._carry_out(trial, recorder)
        except BaseException:
            await recorder.abandon()
            raise

    async def _carry_out(self, trial: Trial, recorder: Recorder) -> Finished:
        clock = self._driver.clock
        attempts: list[Attempt] = []
        bodies: list[bytes] = []
        ticket = await self._enter()
        # The deadline is the agent's: waiting for a place is none of its doing.
        started_at, begun = clock.now_ms(), clock.monotonic_s()
        end = None if trial.deadline_s is None else begun + trial.deadline_s
        while True:
            number = len(attempts) + 1
            reply, attempt, observed = await self._attempt(trial, ticket, number, end, recorder)
            attempts.append(attempt)
            fault = reply.fault
            if fault is None or not fault.retryable or number >= self.retry.attempts:
                break
            wait_s = retry_wait_s(self.retry, number, fault.retry_after_s, self._chance)
            # What the agent asked of another run keeps this one waiting too.
            wait_s = max(wait_s, self.limit.pause_s())
            if end is not None and clock.monotonic_s() + wait_s >= end:
                break
            if reply.body is not None:
                bodies.append(reply.body)
            attempt.called = await off_loop(
                len(reply.body or b""), partial(tools_called, trial.case, reply, trial.tool_access)
            )
            recorder.fail(fault)
            await self._stop.sleep(wait_s)
            try:
                async with asyncio.timeout(None if end is None else end - clock.monotonic_s()):
                    ticket = await self._enter()
            except TimeoutError:
                reply = Reply(fault=self._out_of_time(trial, number + 1))
                break
        await recorder.close()
        if recorder.failure is not None and recorder.failure.code not in _TAKEN:
            raise recorder.failure
        run = await off_loop(
            len(reply.body or b"") + observed.size,
            lambda: ended_run(trial, trial.case, reply, attempts, recorder, self._driver, self._faults, observed),
        )
        run.started_at = started_at
        run.duration_ms = None if reply.replayed else (clock.monotonic_s() - begun) * 1000
        return Finished(run, recorder.pending, recorder.stored, bodies)

    async def _enter(self) -> int:
        """Wait until the agent may be called."""
        ticket = await self.limit.acquire()
        entered = False
        try:
            while (pause_s := self.limit.pause_s()) > 0:
                await self._stop.sleep(pause_s)
            self._stop.check()
            if self._places is not None:
                await self._places.acquire()
                if self._stop.reason is not None:
                    self._places.release()
                    self._stop.check()
            entered = True
        finally:
            if not entered:
                self.limit.release(ticket)
        return ticket

    async def _attempt(
        self, trial: Trial, ticket: int, number: int, end: float | None, recorder: Recorder
    ) -> tuple[Reply, Attempt, ObservedCalls]:
        clock = self._driver.clock
        started_at, begun = clock.now_ms(), clock.monotonic_s()
        request = RunRequest(
            run_id=trial.run_id,
            experiment_id=trial.experiment_id,
            case=trial.case,
            trial=trial.key.trial,
            attempt=number,
            timeout_s=None if end is None else max(end - begun, 0.0),
            suite_file=trial.suite_file,
        )
        fault: Fault | None = None
        try:
            reply = await self._reply(request, trial, recorder)
            fault = reply.fault
            self._faults.apply(fault)
        finally:
            if self._places is not None:
                self._places.release()
            self.limit.release(
                ticket,
                refused=fault is not None and fault.http_status in TOO_MUCH,
                retry_after_s=None if fault is None else fault.retry_after_s,
            )
        duration_ms = (clock.monotonic_s() - begun) * 1000
        return reply, attempt_of(number, started_at, duration_ms, reply, request.observed), request.observed

    async def _reply(self, request: RunRequest, trial: Trial, recorder: Recorder) -> Reply:
        if request.timeout_s is not None and request.timeout_s <= 0:
            return Reply(fault=self._out_of_time(trial, request.attempt))
        asked = await self._driver.ask(self.agent, trial.key.agent, request, recorder)
        reply = asked.reply
        if reply is None or asked.stopped:
            reply = Reply() if reply is None else reply
            reply.fault = self._out_of_time(trial, request.attempt)
            if asked.left_running:
                reply.fault.message += "; the agent ignored its cancellation, and was left running"
        elif request.attempt > 1 and reply.fault is not None and reply.fault.error_class == "deadline_exceeded":
            reply.fault = self._out_of_time(trial, request.attempt)
        return reply

    def _out_of_time(self, trial: Trial, attempt: int) -> Fault:
        """The fault of a run whose deadline has come. In a later attempt, not all of that time was the agent's."""
        fault = Fault("deadline_exceeded", f"the run used up its deadline of {trial.deadline_s:g} s")
        if attempt > 1:
            fault = Fault(
                "deadline_in_retry",
                f"the deadline of {trial.deadline_s:g} s came in attempt {attempt}: the attempts before it, which were "
                "ended by faults that are not the agent's, and the waits after them had used up a part of it",
            )
        self._faults.apply(fault)
        return fault


class RunEvents:
    """Takes the events of a run of an experiment to the store while it is running."""

    def __init__(self, store: Store, spec: RunSpec) -> None:
        self._store = store
        self._spec = spec

    async def append(self, events: list[bytes], first: int) -> None:
        """Store events; the run is begun with the first of them."""
        spec = self._spec
        if first == 0:
            self._store.begin_run(spec.experiment_id, spec.key, spec.run_id)
        await self._store.append_events(spec.run_id, events, first=first)


def recorder_of(spec: RunSpec, driver: Driver, store: Store) -> Recorder:
    """The recorder of a run of an experiment, which is the thread of all its runs."""
    return Recorder(
        spec.run_id,
        spec.experiment_id,
        driver.clock,
        driver.redaction,
        RunEvents(store, spec),
        flush_after_s=FLUSH_S,
    )


def ended_run(
    spec: RunSpec,
    case: Case,
    reply: Reply,
    attempts: list[Attempt],
    recorder: Recorder,
    driver: Driver,
    faults: FaultRules,
    observed: ObservedCalls | None = None,
) -> Run:
    """The record of a run that has ended, ungraded; its last event is recorded."""
    if reply.fault is None:
        reply.fault = unsaid_fault(recorder, reply)
        faults.apply(reply.fault)
        attempts[-1].fault = reply.fault
    given = given_messages(case) if reply.reading is not None else []
    run = concluded(
        spec,
        reply,
        attempts,
        driver.redaction,
        given=given,
        observed=observed,
        notes=recorder.notes,
        emitted_calls=recorder.has_calls,
    )
    if run.fault is None and says_nothing(run):
        fault = Fault("agent_output_missing", "the agent ended without an answer: no text to be seen, and no call")
        faults.apply(fault)
        set_fault(run, fault)
    record_end(recorder, run, reply)
    return run


def unsaid_fault(recorder: Recorder, reply: Reply) -> Fault | None:
    """The fault of a run whose agent kind names none: the agent sent RUN_ERROR, or there is no answer to read."""
    if isinstance(recorder.terminal, RunError):
        return Fault("agent_reported_error", recorder.terminal.message or "the agent gave no reason")
    if reply.reading is None:
        return Fault("agent_output_missing", "the agent ended without an answer to read")
    return None


def retry_wait_s(retry: Retry, number: int, retry_after_s: float | None, chance: random.Random) -> float:
    """How long to wait after so many attempts; an agent that asks for longer gets it."""
    wait_s = min(retry.first_wait_s * 2.0 ** (number - 1), retry.longest_wait_s) * chance.uniform(0.75, 1.25)
    return max(wait_s, retry_after_s or 0.0)


def tools_called(case: Case, reply: Reply, tool_access: ToolAccess = "own") -> list[str]:
    """The tools that an attempt called whose reply is not the run's."""
    if reply.reading is None:
        return []
    try:
        given = given_messages(case)
        return called_tools(reply.reading, given, trace_file=reply.trace_file, tool_access=tool_access)
    except Exception:  # noqa: BLE001 (what an agent sent must not end the experiment, whatever it is)
        return [UNKNOWN_CALL]
