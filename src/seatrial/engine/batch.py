"""Carrying out all runs of an agent that takes them at once."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

import msgspec

from seatrial.agents.agent import BatchAgent, Reply, RunRequest
from seatrial.engine.clock import Clock
from seatrial.engine.recorder import Recorder
from seatrial.engine.redaction import Redaction
from seatrial.engine.stop import Stop, StopRequestedError
from seatrial.engine.trial import Finished, LiveEvents, Place, Trial, concluded, internal_fault, retry_wait_s
from seatrial.errors import SeatrialError
from seatrial.runs import Attempt, Case, Fault, FaultRules
from seatrial.store import Store, address
from seatrial.suites import Retry


class _Waiting(msgspec.Struct):
    """A run without a result yet. Without its case, too: how many wait must not matter to the memory."""

    place: Place
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
        clock: Clock,
        store: Store,
        chance: random.Random,
        redaction: Redaction,
        *,
        faults: FaultRules | None = None,
        stop: Stop | None = None,
    ) -> None:
        self.agent = agent
        self.retry = retry
        self._clock = clock
        self._store = store
        self._chance = chance
        self._redaction = redaction
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
                    self._keep(waiting, reply, reply.fault)
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
                place = waiting.place
                unanswered[place.run_id] = waiting
                yield RunRequest(
                    run_id=place.run_id,
                    experiment_id=place.experiment_id,
                    case=case,
                    trial=place.key.trial,
                    attempt=number,
                    timeout_s=waiting.deadline_s,
                    suite_file=waiting.suite_file,
                )

        begun, started_at = self._clock.monotonic_s(), self._clock.now_ms()

        def tried(waiting: _Waiting, reply: Reply) -> Reply:
            body = reply.body
            self._faults.apply(reply.fault)
            attempt = Attempt(
                number=number,
                started_at=started_at,
                duration_ms=(self._clock.monotonic_s() - begun) * 1000,
                fault=reply.fault,
                body_hash=None if body is None else address(body),
                body_bytes=None if body is None else len(body),
            )
            waiting.attempts.append(attempt)
            return reply

        fault = Fault("internal_error", "the agent ended without a reply to this request")
        try:
            async with aclosing(self.agent.run_batch(requests())) as replies:
                while (answered := await self._stop.unless_asked(anext(replies, None))) is not None:
                    request, reply = answered
                    waiting = unanswered.pop(request.run_id)
                    yield waiting, request.case, tried(waiting, self._redaction.reply(reply))
        except SeatrialError:
            raise  # the cases cannot be read
        except StopRequestedError:
            if unanswered or next(asked, None) is not None:
                raise
            return
        except Exception as error:  # noqa: BLE001 (a fault of ours in one agent must not end the others)
            fault = internal_fault(error, self._redaction)
        for _ in requests():
            pass  # what the agent never asked for is unanswered, too
        for waiting in unanswered.values():
            yield waiting, self._case(waiting), tried(waiting, Reply(fault=fault))

    def _keep(self, waiting: _Waiting, reply: Reply, fault: Fault) -> None:
        """Keep what an attempt brought that is not the last one."""
        if reply.body is not None:
            waiting.earlier_bodies.append(reply.body)
        if waiting.recorder is None:
            waiting.recorder = self._recorder(waiting.place)
        waiting.recorder.fail(fault)

    def _finished(self, waiting: _Waiting, case: Case, reply: Reply) -> Finished:
        recorder = waiting.recorder or self._recorder(waiting.place)
        run = concluded(waiting.place, case, reply, waiting.attempts, recorder, self._redaction, self._faults)
        run.started_at = waiting.attempts[0].started_at
        return Finished(run, recorder.close(), recorder.appended, waiting.earlier_bodies)

    def _recorder(self, place: Place) -> Recorder:
        live = LiveEvents(self._store, place)
        return Recorder(place.run_id, place.experiment_id, self._clock, self._redaction, live.append)

    def _case(self, waiting: _Waiting) -> Case:
        return self._store.case(waiting.place.experiment_id, waiting.place.key.case_id)


def _waiting(trial: Trial) -> _Waiting:
    place = Place(run_id=trial.run_id, experiment_id=trial.experiment_id, key=trial.key, tool_access=trial.tool_access)
    return _Waiting(place, trial.deadline_s, trial.suite_file)
