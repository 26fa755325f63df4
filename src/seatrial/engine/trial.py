"""Carrying out one run: attempts until there is an answer, or a fault that trying again will not mend."""

from __future__ import annotations

import asyncio
import random
import traceback
from functools import partial
from pathlib import Path

import msgspec

from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.agents.off_loop import off_loop
from seatrial.agents.shared_timer import SharedTimer
from seatrial.engine.clock import Clock
from seatrial.engine.limit import AdaptiveLimit
from seatrial.engine.recorder import Recorder
from seatrial.engine.redaction import Redaction
from seatrial.engine.stop import Stop
from seatrial.errors import SeatrialError
from seatrial.runs import Attempt, Case, Fault, FaultRules, Run, RunKey, RunStatus
from seatrial.runs.conclusion import called_tools, conclude, given_messages, says_nothing
from seatrial.store import Receipt, Store, address
from seatrial.suites import Retry
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls

GRACE_S = 10.0
"""Agents end by themselves at the deadline, and bring what there is; one that does not is cut off so much later."""
TOO_MUCH = frozenset({429, 503})
"""Statuses by which an agent says that it is given more than it bears."""
MAX_TRACEBACK = 16_000
MAX_MESSAGE = 500


class Place(msgspec.Struct, kw_only=True):
    """Where a run belongs."""

    run_id: str
    experiment_id: str
    key: RunKey
    tool_access: ToolAccess = "own"


class Trial(Place, kw_only=True):
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
    appends: list[Receipt[int]] = []
    """What became of the events that went to the store while the run went on, as far as that was not known yet."""


class TrialRunner:
    """Carries out the trials of one agent."""

    def __init__(
        self,
        agent: Agent,
        limit: AdaptiveLimit,
        retry: Retry,
        clock: Clock,
        store: Store,
        chance: random.Random,
        redaction: Redaction,
        *,
        faults: FaultRules | None = None,
        places: asyncio.Semaphore | None = None,
        stop: Stop | None = None,
    ) -> None:
        """`faults` are the suite's; `places` are those of all agents together, beside the agent's own `limit`."""
        self.agent = agent
        self.limit = limit
        self.retry = retry
        self._clock = clock
        self._store = store
        self._chance = chance
        self._redaction = redaction
        self._faults = FaultRules() if faults is None else faults
        self._places = places
        self._stop = Stop() if stop is None else stop
        self._timer = SharedTimer()

    async def carry_out(self, trial: Trial) -> Finished:
        """Run a trial to its end. Raises `StopRequestedError` when a stop comes while no attempt is under way."""
        clock = self._clock
        live = LiveEvents(self._store, trial)
        recorder = Recorder(trial.run_id, trial.experiment_id, clock, self._redaction, live.append)
        attempts: list[Attempt] = []
        bodies: list[bytes] = []
        try:
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
                attempt.called = await off_loop(len(reply.body or b""), partial(_called, trial.case, reply))
                recorder.fail(fault)
                await self._stop.sleep(wait_s)
                try:
                    async with asyncio.timeout(None if end is None else end - clock.monotonic_s()):
                        ticket = await self._enter()
                except TimeoutError:
                    reply = Reply(fault=self._out_of_time(trial, number + 1))
                    break
            recorder.hold()
            run = await off_loop(
                len(reply.body or b"") + observed.size,
                lambda: concluded(
                    trial, trial.case, reply, attempts, recorder, self._redaction, self._faults, observed
                ),
            )
            run.started_at = started_at
            run.duration_ms = None if reply.replayed else (clock.monotonic_s() - begun) * 1000
        finally:
            events = recorder.close()
        return Finished(run, events, recorder.appended, bodies, live.receipts)

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
        clock = self._clock
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
            if number > 1 and reply.fault is not None and reply.fault.error_class == "deadline_exceeded":
                reply.fault = self._out_of_time(trial, number)
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
        attempt = Attempt(
            number=number,
            started_at=started_at,
            duration_ms=(clock.monotonic_s() - begun) * 1000,
            fault=fault,
            observed_calls=len(request.observed.steps or ()),
            http_status=reply.http_status,
            body_hash=None if reply.body is None else address(reply.body),
            body_bytes=None if reply.body is None else len(reply.body),
        )
        return reply, attempt, request.observed

    async def _reply(self, request: RunRequest, trial: Trial, recorder: Recorder) -> Reply:
        left_s = request.timeout_s
        if left_s is not None and left_s <= 0:
            return Reply(fault=self._out_of_time(trial, request.attempt))
        try:
            with self._timer.timeout(None if left_s is None else left_s + GRACE_S) as timeout:
                reply = await self.agent.run(request, recorder.emit)
                return await off_loop(len(reply.body or b""), lambda: self._redaction.reply(reply))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Reply(fault=internal_fault(error, self._redaction))
        except Exception as error:  # noqa: BLE001 (a fault of ours in one run must not end the others)
            if isinstance(error, TimeoutError) and timeout.expired:
                return Reply(fault=self._out_of_time(trial, request.attempt))
            return Reply(fault=internal_fault(error, self._redaction))

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


class LiveEvents:
    """Takes events of a run to the store while it goes on."""

    def __init__(self, store: Store, place: Place) -> None:
        self.receipts: list[Receipt[int]] = []
        """Those that are not known to have been kept."""
        self._store = store
        self._place = place

    def append(self, events: list[bytes], first: int) -> None:
        """Hand events over, without waiting; `first` is the sequence of the first of them."""
        place = self._place
        if first == 0:
            self._store.begin_run(place.experiment_id, place.key, place.run_id)
        self.receipts = [receipt for receipt in self.receipts if not (receipt.done and _kept(receipt))]
        self.receipts.append(self._store.append_events(place.run_id, events, first=first))


def concluded(
    place: Place,
    case: Case,
    reply: Reply,
    attempts: list[Attempt],
    recorder: Recorder,
    redaction: Redaction,
    faults: FaultRules,
    observed: ObservedCalls | None = None,
) -> Run:
    """The record of a run that has ended, ungraded; its last event is recorded."""
    seen = redaction.observed(observed)
    try:
        run = _run(place, case, reply, attempts, redaction, seen)
        if run.fault is None and says_nothing(run):
            fault = Fault("agent_output_missing", "the agent ended without an answer: no text to be seen, and no call")
            faults.apply(fault)
            run.fault = reply.fault = attempts[-1].fault = fault
            run.status = _status(fault)
        _record_end(recorder, reply)
    except Exception as error:  # noqa: BLE001 (what an agent sent must not end the experiment, whatever it is)
        reply = Reply(body=reply.body, fault=internal_fault(error, redaction))
        attempts[-1].fault = reply.fault
        run = _run(place, case, reply, attempts, redaction, seen)
        _record_end(recorder, reply)
    return run


def retry_wait_s(retry: Retry, number: int, retry_after_s: float | None, chance: random.Random) -> float:
    """How long to wait after so many attempts; an agent that asks for longer gets it."""
    wait_s = min(retry.first_wait_s * 2.0 ** (number - 1), retry.longest_wait_s) * chance.uniform(0.75, 1.25)
    return max(wait_s, retry_after_s or 0.0)


def internal_fault(error: BaseException, redaction: Redaction) -> Fault:
    """A fault of ours, with what is needed to mend it."""
    detail = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
    return redaction.fault(Fault("internal_error", f"{type(error).__name__}: {error}"[:MAX_MESSAGE], detail=detail))


def _run(
    place: Place,
    case: Case,
    reply: Reply,
    attempts: list[Attempt],
    redaction: Redaction,
    observed: ObservedCalls | None,
) -> Run:
    run = Run(
        run_id=place.run_id,
        experiment_id=place.experiment_id,
        key=place.key,
        status=_status(reply.fault),
        body=reply.body,
        attempts=attempts,
        fault=reply.fault,
    )
    given = given_messages(case) if reply.reading is not None else []
    conclude(
        run,
        reply.reading,
        given,
        observed=observed,
        trace_file=reply.trace_file,
        tool_access=place.tool_access,
    )
    redaction.concluded(run)
    return run


def _called(case: Case, reply: Reply) -> list[str]:
    """The tools that an attempt called whose reply is not the run's."""
    if reply.reading is None:
        return []
    try:
        return called_tools(reply.reading, given_messages(case))
    except Exception:  # noqa: BLE001 (what an agent sent must not end the experiment, whatever it is)
        return ["?"]  # something was there, and nobody knows what


def _kept(receipt: Receipt[int]) -> bool:
    try:
        receipt.result()
    except SeatrialError:
        return False
    return True


def _status(fault: Fault | None) -> RunStatus:
    if fault is None:
        return "completed"
    return "failed" if fault.blame == "agent" else "errored"


def _record_end(recorder: Recorder, reply: Reply) -> None:
    if reply.fault is not None:
        recorder.fail(reply.fault)
    elif reply.streamed or reply.reading is None:
        recorder.finish(None)
    else:
        transcript = reply.reading.transcript
        recorder.finish(msgspec.structs.replace(transcript, messages=transcript.done(), given=[]))
