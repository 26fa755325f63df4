"""Carrying out one run: attempts until there is an answer, or a fault that trying again will not mend."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import msgspec

from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.engine.clock import Clock
from seatrial.engine.limit import AdaptiveLimit
from seatrial.engine.recorder import Recorder
from seatrial.engine.redaction import Redaction
from seatrial.runs import Attempt, Case, Fault, Run, RunKey, RunStatus
from seatrial.store import Store, address
from seatrial.suites import Retry
from seatrial.trajectory import extract


class Trial(msgspec.Struct, kw_only=True):
    """One run to carry out."""

    run_id: str
    experiment_id: str
    key: RunKey
    case: Case
    deadline_s: float | None
    """For all attempts together."""
    suite_file: Path | None = None


class Finished(msgspec.Struct):
    """A run that has ended, ungraded, and what of it is not with the store yet."""

    run: Run
    events: list[bytes]
    first_event: int
    """The sequence of the first of them."""
    earlier_bodies: list[bytes]
    """What the attempts before the last one brought."""


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
    ) -> None:
        self.agent = agent
        self.limit = limit
        self.retry = retry
        self._clock = clock
        self._store = store
        self._chance = chance
        self._redaction = redaction

    async def carry_out(self, trial: Trial) -> Finished:
        """Run a trial to its end."""
        clock = self._clock
        recorder = trial_recorder(trial, clock, self._store, self._redaction)
        started_at, begun = clock.now_ms(), clock.monotonic_s()
        end = None if trial.deadline_s is None else begun + trial.deadline_s
        attempts: list[Attempt] = []
        bodies: list[bytes] = []
        try:
            while True:
                number = len(attempts) + 1
                reply, attempt = await self._attempt(trial, number, end, recorder)
                attempts.append(attempt)
                fault = reply.fault
                if fault is None or not fault.retryable or number >= self.retry.attempts:
                    break
                wait_s = self._wait_s(number, fault)
                if end is not None and clock.monotonic_s() + wait_s >= end:
                    break
                if reply.body is not None:
                    bodies.append(reply.body)
                recorder.fail(fault)
                await asyncio.sleep(wait_s)
            run = finished_run(trial, reply, attempts)
            run.started_at = started_at
            run.duration_ms = (clock.monotonic_s() - begun) * 1000
            record_end(recorder, reply)
        finally:
            events = recorder.close()
        return Finished(run, events, recorder.appended, bodies)

    async def _attempt(self, trial: Trial, number: int, end: float | None, recorder: Recorder) -> tuple[Reply, Attempt]:
        clock = self._clock
        await self.limit.acquire()
        reply: Reply | None = None
        started_at, begun = clock.now_ms(), clock.monotonic_s()
        left = None if end is None else max(end - begun, 0.0)
        request = RunRequest(
            run_id=trial.run_id,
            experiment_id=trial.experiment_id,
            case=trial.case,
            trial=trial.key.trial,
            attempt=number,
            timeout_s=left,
            suite_file=trial.suite_file,
        )
        try:
            async with asyncio.timeout(left):
                reply = await self.agent.run(request, recorder.emit)
        except TimeoutError:
            seconds = f"{trial.deadline_s:g}"
            reply = Reply(fault=Fault("deadline_exceeded", f"the run used up its deadline of {seconds} s"))
        finally:
            fault = None if reply is None else reply.fault
            self.limit.release(
                refused=fault is not None and fault.error_class == "agent_unavailable",
                retry_after_s=None if fault is None else fault.retry_after_s,
            )
        reply = self._redaction.reply(reply)
        return reply, Attempt(
            number=number,
            started_at=started_at,
            duration_ms=(clock.monotonic_s() - begun) * 1000,
            fault=reply.fault,
            http_status=reply.http_status,
            body_hash=None if reply.body is None else address(reply.body),
            body_bytes=None if reply.body is None else len(reply.body),
        )

    def _wait_s(self, number: int, fault: Fault) -> float:
        wait_s = min(self.retry.first_wait_s * 2.0 ** (number - 1), self.retry.longest_wait_s)
        wait_s *= self._chance.uniform(0.75, 1.25)
        return max(wait_s, fault.retry_after_s or 0.0)


def trial_recorder(trial: Trial, clock: Clock, store: Store, redaction: Redaction) -> Recorder:
    """The recorder of a trial, whose events reach the store while it runs."""

    def append(events: list[bytes], first: int) -> None:
        if first == 0:
            store.begin_run(trial.experiment_id, trial.key, trial.run_id)
        store.append_events(trial.run_id, events, first=first)

    return Recorder(trial.run_id, trial.experiment_id, clock, redaction, append)


def finished_run(trial: Trial, reply: Reply, attempts: list[Attempt]) -> Run:
    """The record of a run that has ended, ungraded."""
    run = Run(
        run_id=trial.run_id,
        experiment_id=trial.experiment_id,
        key=trial.key,
        status=_status(reply.fault),
        reading=reply.reading,
        body=reply.body,
        attempts=attempts,
        fault=reply.fault,
    )
    if reply.reading is not None:
        trajectory = extract(reply.reading)
        run.steps = trajectory.steps
        run.steps_source = trajectory.source
        reply.reading.notes += trajectory.notes
    return run


def _status(fault: Fault | None) -> RunStatus:
    if fault is None:
        return "completed"
    return "failed" if fault.blame == "agent" else "errored"


def record_end(recorder: Recorder, reply: Reply) -> None:
    if reply.fault is not None:
        recorder.fail(reply.fault)
    elif reply.streamed or reply.reading is None:
        recorder.finish(None)
    else:
        recorder.finish(reply.reading.transcript)
