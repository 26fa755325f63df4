"""Running all trials of an agent that takes them at once."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import msgspec

from seatrial.agents.agent import AnsweredAgain, BatchAgent, EndedBadly, Reply, RunRequest
from seatrial.agents.off_loop import off_loop
from seatrial.driver import Driver, Recorder, conclude_run, internal_fault
from seatrial.driver.conclusion import attempt_of, earlier_body
from seatrial.engine.stop import Stop, StopRequestedError
from seatrial.engine.trial import Finished, Trial, TrialSpec, recorder_of, retry_wait_s, tools_called
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Exchange, Fault, FaultRules
from seatrial.runs.conclusion import given_messages
from seatrial.store import Store
from seatrial.suites import Retry
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import Note


class _Waiting(msgspec.Struct):
    """A run without a result yet. Without its case, too: how many wait must not matter to the memory."""

    spec: TrialSpec
    deadline_s: float | None
    suite_file: Path | None
    exchange: Exchange
    earlier_bodies: list[bytes] = []
    recorder: Recorder | None = None
    """Its log, once an attempt has failed."""
    notes: list[Note] = []
    """What is to be noted on the run, whatever its last attempt brings."""


class _Answered(msgspec.Struct):
    """A run, and what an attempt at it brought."""

    waiting: _Waiting
    case: Case
    reply: Reply


class Doubted(msgspec.Struct):
    """A run that was answered, and of which something came afterwards: its calls are not all known."""

    run_id: str
    case: Case
    note: Note


class Failed(msgspec.Struct):
    """A run that was answered by a program which ended badly afterwards: that is its fault, as it is of a single run.
    It is not tried again: its answer is stored."""

    run_id: str
    case: Case
    fault: Fault


class BatchRunner:
    """Runs the trials of one agent all at once, and then retries those that ended with a fault that may pass.

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

    async def run(self, trials: Iterator[Trial]) -> AsyncGenerator[tuple[Case, Finished] | Doubted | Failed, None]:
        """Run all trials. They come as they end; a doubt about one, or its late failure, may follow.

        Raises `StopRequestedError` when a stop leaves some without an end.
        """
        asked = ((_waiting(trial), trial.case) for trial in trials)
        number = 1
        while True:
            failed: dict[str, _Waiting] = {}
            retry_after_s = 0.0
            async with aclosing(self._batch(asked, number)) as ended:
                async for answered in ended:
                    if isinstance(answered, Doubted):
                        if (waiting_again := failed.get(answered.run_id)) is not None:
                            waiting_again.notes.append(answered.note)
                        else:
                            yield answered
                        continue
                    if isinstance(answered, Failed):
                        if answered.run_id not in failed:  # else its next attempt decides
                            yield answered
                        continue
                    waiting, case, reply = answered.waiting, answered.case, answered.reply
                    waiting.notes += reply.doubts
                    if reply.fault is None or not reply.fault.retryable or number >= self.retry.attempts:
                        yield case, await self._finished(waiting, case, reply)
                        continue
                    await self._keep(waiting, case, reply, reply.fault)
                    retry_after_s = max(retry_after_s, reply.fault.retry_after_s or 0.0)
                    failed[waiting.spec.run_id] = waiting
            if not failed:
                return
            await self._stop.sleep(retry_wait_s(self.retry, number, retry_after_s, self._chance))
            asked = ((waiting, self._case(waiting)) for waiting in failed.values())
            number += 1

    async def _batch(
        self, asked: Iterator[tuple[_Waiting, Case]], number: int
    ) -> AsyncGenerator[_Answered | Doubted | Failed, None]:
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
            waiting.exchange.attempts.append(attempt_of(number, started_at, duration_ms, reply, ObservedCalls()))
            return reply

        fault = Fault("internal_error", "the agent ended without a reply to this request")
        try:
            async with aclosing(self.agent.run_batch(requests())) as replies:
                while (answered := await self._stop.unless_asked(anext(replies, None))) is not None:
                    request, reply = answered
                    if isinstance(reply, AnsweredAgain):
                        note = msgspec.structs.replace(reply.note, message=redaction.text(reply.note.message))
                        yield Doubted(request.run_id, request.case, note)
                        continue
                    if isinstance(reply, EndedBadly):
                        bad_end = redaction.fault(reply.fault)
                        self._faults.apply(bad_end)
                        yield Failed(request.run_id, request.case, bad_end)
                        continue
                    waiting = unanswered.pop(request.run_id)
                    if reply.fault is not None:
                        reply.fault = redaction.fault(reply.fault)
                    yield _Answered(waiting, request.case, tried(waiting, reply))
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
            yield _Answered(waiting, self._case(waiting), tried(waiting, Reply(fault=fault)))

    async def _keep(self, waiting: _Waiting, case: Case, reply: Reply, fault: Fault) -> None:
        """Keep what an attempt brought that is not the last one."""
        attempt = waiting.exchange.attempts[-1]
        attempt.called = await off_loop(reply.size, partial(tools_called, case, reply, waiting.spec.tool_access))
        body = await off_loop(reply.size, partial(earlier_body, attempt, reply, self._driver.redaction))
        if body is not None:
            waiting.earlier_bodies.append(body)
        if waiting.recorder is None:
            waiting.recorder = self._recorder(waiting.spec)
        waiting.recorder.fail(fault)

    async def _finished(self, waiting: _Waiting, case: Case, reply: Reply) -> Finished:
        recorder = waiting.recorder or self._recorder(waiting.spec)
        if reply.reading is not None:
            reply.reading.notes += waiting.notes
        ended = await off_loop(
            reply.size,
            lambda: conclude_run(
                waiting.spec,
                reply,
                [waiting.exchange],
                recorder,
                started_at=waiting.exchange.attempts[0].started_at,
                faults=self._faults,
                given=given_messages(case),
            ),
        )
        return Finished(
            ended.run, ended.kept, recorder.pending, recorder.stored, waiting.earlier_bodies, recorder.redaction
        )

    def _recorder(self, spec: TrialSpec) -> Recorder:
        return recorder_of(spec, self._driver, self._store)

    def _case(self, waiting: _Waiting) -> Case:
        return self._store.case(waiting.spec.experiment_id, waiting.spec.key.case_id)


def _waiting(trial: Trial) -> _Waiting:
    spec = TrialSpec(
        run_id=trial.run_id, experiment_id=trial.experiment_id, key=trial.key, tool_access=trial.tool_access
    )
    return _Waiting(spec, trial.deadline_s, trial.suite_file, Exchange(number=1))
