"""Carrying out all runs of an agent that takes them at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from seatrial.agents.agent import BatchAgent, Reply, RunRequest
from seatrial.engine.clock import Clock
from seatrial.engine.recorder import Recorder
from seatrial.engine.redaction import Redaction
from seatrial.engine.trial import Finished, LiveEvents, Place, Trial, concluded, internal_fault
from seatrial.errors import SeatrialError
from seatrial.runs import Attempt, Case, Fault
from seatrial.store import Store, address


class BatchRunner:
    """Carries out the trials of one agent, all at once. Each run has one attempt, which begins with the batch."""

    def __init__(self, agent: BatchAgent, clock: Clock, store: Store, redaction: Redaction) -> None:
        self.agent = agent
        self._clock = clock
        self._store = store
        self._redaction = redaction

    async def carry_out(self, trials: Iterator[Trial]) -> AsyncGenerator[tuple[Case, Finished], None]:
        """Run all trials; they come as they end."""
        # Without the cases: how many wait for an answer must not matter to the memory.
        waiting: dict[str, Place] = {}

        def requests() -> Iterator[RunRequest]:
            for trial in trials:
                waiting[trial.run_id] = Place(run_id=trial.run_id, experiment_id=trial.experiment_id, key=trial.key)
                yield RunRequest(
                    run_id=trial.run_id,
                    experiment_id=trial.experiment_id,
                    case=trial.case,
                    trial=trial.key.trial,
                    attempt=1,
                    timeout_s=trial.deadline_s,
                    suite_file=trial.suite_file,
                )

        begun, started_at = self._clock.monotonic_s(), self._clock.now_ms()
        fault = Fault("internal_error", "the agent ended without a reply to this request")
        try:
            async with aclosing(self.agent.run_batch(requests())) as replies:
                async for request, reply in replies:
                    place = waiting.pop(request.run_id)
                    yield request.case, self._finished(place, self._redaction.reply(reply), begun, started_at)
        except SeatrialError:
            raise  # the cases cannot be read
        except Exception as error:  # noqa: BLE001 (a fault of ours in one agent must not end the others)
            fault = internal_fault(error, self._redaction)
        for _ in requests():
            pass  # what the agent never asked for is unanswered, too
        for place in waiting.values():
            case = self._store.case(place.experiment_id, place.key.case_id)
            yield case, self._finished(place, Reply(fault=fault), begun, started_at)

    def _finished(self, place: Place, reply: Reply, begun: float, started_at: int) -> Finished:
        attempt = Attempt(
            number=1,
            started_at=started_at,
            duration_ms=(self._clock.monotonic_s() - begun) * 1000,
            fault=reply.fault,
            body_hash=None if reply.body is None else address(reply.body),
            body_bytes=None if reply.body is None else len(reply.body),
        )
        live = LiveEvents(self._store, place)
        recorder = Recorder(place.run_id, place.experiment_id, self._clock, self._redaction, live.append)
        run = concluded(place, reply, [attempt], recorder, self._redaction)
        run.started_at = started_at
        return Finished(run, recorder.close(), recorder.appended, [], live.receipts)
