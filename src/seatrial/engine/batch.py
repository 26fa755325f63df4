"""Carrying out all runs of an agent that takes them at once."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

import msgspec

from seatrial.agents.agent import BatchAgent, Reply, RunRequest
from seatrial.driver import Driver, Recorder, RunSpec, internal_fault
from seatrial.driver.conclusion import attempt_of
from seatrial.engine.stop import Stop, StopRequestedError
from seatrial.engine.trial import Finished, Trial, ended_run, recorder_of, retry_wait_s, tools_called
from seatrial.errors import SeatrialError
from seatrial.runs import Attempt, Case, Fault, FaultRules
from seatrial.store import Store
from seatrial.suites import Retry
from seatrial.trajectory.observed import ObservedCalls


class _Waiting(msgspec.Struct):
    """A run without a result yet. Without its case, too: how many wait must not matter to the memory."""

    spec: RunSpec
    deadline_s: float | None
    suite_file: Path | None
    attempts: list[Attempt] = []
    earlier_bodies: list[bytes] = []
    recorder: Recorder | None = None
    """Its log, once an attempt has failed."""


class BatchRunner:
    """Carries out the trials of one agent, all at once, and then once more those that met a fault which may pass.

    Every attempt of a run begins with the batch that it is a part of.
    """

    def __init__(
        self,
        agent: BatchAgent,
        retry: Retry,
        driver: Driver,
        store: Store,
        chance: random.Random,
        *,
        faults: FaultRules | None = None,
        stop: Stop | None = None,
    ) -> None:
        self.agent = agent
        self.retry = retry
        self._driver = driver
        self._store = store
        self._chance = chance
        self._faults = FaultRules() if faults is None else faults
        self._stop = Stop() if stop is None else stop

    async def carry_out(self, trials: Iterator[Trial]) -> AsyncGenerator[tuple[Case, Finished], None]:
        """Run all trials; they come as they end. Raises `StopRequestedError` when a stop leaves some without an end."""
        asked = ((_waiting(trial), trial.case) for trial in trials)
        number = 1
        while True:
            failed: list[_Waiting] = []
            retry_after_s = 0.0
            async with aclosing(self._batch(asked, number)) as ended:
                async for waiting, case, reply in ended:
                    if reply.fault is None or not reply.fault.retryable or number >= self.retry.attempts:
                        yield case, self._finished(waiting, case, reply)
                        continue
                    self._keep(waiting, case, reply, reply.fault)
                    retry_after_s = max(retry_after_s, reply.fault.retry_after_s or 0.0)
                    failed.append(waiting)
            if not failed:
                return
            await self._stop.sleep(retry_wait_s(self.retry, number, retry_after_s, self._chance))
            asked = ((waiting, self._case(waiting)) for waiting in failed)
            number += 1

    async def _batch(
        self, asked: Iterator[tuple[_Waiting, Case]], number: int
    ) -> AsyncGenerator[tuple[_Waiting, Case, Reply], None]:
        """Ask once for all of them: exactly one reply for each, unless a stop comes between."""
        unanswered: dict[str, _Waiting] = {}

        def requests() -> Iterator[RunRequest]:
            for waiting, case in asked:
                spec = waiting.spec
                unanswered[spec.run_id] = waiting
                yield RunRequest(
                    run_id=spec.run_id,
                    experiment_id=spec.experiment_id,
                    case=case,
                    trial=spec.key.trial,
                    attempt=number,
                    timeout_s=waiting.deadline_s,
                    suite_file=waiting.suite_file,
                )

        clock, redaction = self._driver.clock, self._driver.redaction
        begun, started_at = clock.monotonic_s(), clock.now_ms()

        def tried(waiting: _Waiting, reply: Reply) -> Reply:
            self._faults.apply(reply.fault)
            duration_ms = (clock.monotonic_s() - begun) * 1000
            waiting.attempts.append(attempt_of(number, started_at, duration_ms, reply, ObservedCalls()))
            return reply

        fault = Fault("internal_error", "the agent ended without a reply to this request")
        try:
            async with aclosing(self.agent.run_batch(requests())) as replies:
                while (answered := await self._stop.unless_asked(anext(replies, None))) is not None:
                    request, reply = answered
                    waiting = unanswered.pop(request.run_id)
                    yield waiting, request.case, tried(waiting, redaction.reply(reply))
        except SeatrialError:
            raise  # the cases cannot be read
        except StopRequestedError:
            if unanswered or next(asked, None) is not None:
                raise
            return
        except Exception as error:  # noqa: BLE001 (a fault of ours in one agent must not end the others)
            fault = internal_fault(error, redaction)
        for _ in requests():
            pass  # what the agent never asked for is unanswered, too
        for waiting in unanswered.values():
            yield waiting, self._case(waiting), tried(waiting, Reply(fault=fault))

    def _keep(self, waiting: _Waiting, case: Case, reply: Reply, fault: Fault) -> None:
        """Keep what an attempt brought that is not the last one."""
        waiting.attempts[-1].called = tools_called(case, reply)
        if reply.body is not None:
            waiting.earlier_bodies.append(reply.body)
        if waiting.recorder is None:
            waiting.recorder = self._recorder(waiting.spec)
        waiting.recorder.fail(fault)

    def _finished(self, waiting: _Waiting, case: Case, reply: Reply) -> Finished:
        recorder = waiting.recorder or self._recorder(waiting.spec)
        run = ended_run(waiting.spec, case, reply, waiting.attempts, recorder, self._driver, self._faults)
        run.started_at = waiting.attempts[0].started_at
        return Finished(run, recorder.pending, recorder.stored, waiting.earlier_bodies)

    def _recorder(self, spec: RunSpec) -> Recorder:
        return recorder_of(spec, self._driver, self._store)

    def _case(self, waiting: _Waiting) -> Case:
        return self._store.case(waiting.spec.experiment_id, waiting.spec.key.case_id)


def _waiting(trial: Trial) -> _Waiting:
    spec = RunSpec(run_id=trial.run_id, experiment_id=trial.experiment_id, key=trial.key, tool_access=trial.tool_access)
    return _Waiting(spec, trial.deadline_s, trial.suite_file)
