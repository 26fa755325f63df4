"""Running one trial: attempts until there is an answer, or a fault that trying again will not fix."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.agents.off_loop import off_loop
from seatrial.agents.output import read_remains
from seatrial.driver import Driver, Recorder, Redaction, RunSpec, conclude_run
from seatrial.driver.clock import Clock
from seatrial.driver.conclusion import attempt_of, earlier_body
from seatrial.engine.limit import AttemptGate
from seatrial.engine.stop import Stop
from seatrial.runs import (
    Attempt,
    Case,
    Exchange,
    Fault,
    FaultRules,
    Run,
    RunKey,
    WorkspaceDiff,
    WorkspaceSource,
)
from seatrial.runs.conclusion import UNKNOWN_CALL, called_tools, given_messages
from seatrial.runs.workspace import workspace_of
from seatrial.store import Store
from seatrial.suites import Retry, Suite
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls

if TYPE_CHECKING:
    from seatrial.agents.cli.sandbox import Sandbox
    from seatrial.workspaces import Workspaces
    from seatrial.workspaces.live import LiveWorkspace

FLUSH_S = 0.1
"""How soon the events of a run are stored while it is running. A shorter run is stored at once, with its end."""
TOO_MUCH = frozenset({429, 503})
"""Statuses by which an agent says that it is overloaded."""
_TAKEN = frozenset({"conflict", "sequence_conflict", "run_ended", "not_found"})
"""How the store refuses events of a run that another process has replaced."""


class TrialSpec(RunSpec, kw_only=True):
    """Which run of an experiment it is."""

    experiment_id: str
    key: RunKey


class Trial(TrialSpec, kw_only=True):
    """One run to be made."""

    case: Case
    deadline_s: float | None
    """For all attempts together."""
    suite_file: Path | None = None
    interrupted: list[Attempt] = msgspec.field(default_factory=list)
    """Attempts of runs that were begun under this key, and did not end."""
    fault: Fault | None = None
    """Why the agent is not asked: those attempts have shown it."""


def trial_of(
    suite: Suite, experiment_id: str, run_id: str, key: RunKey, case: Case, interrupted: Sequence[Attempt] = ()
) -> Trial:
    """The run of a case by an agent of a suite."""
    config = suite.agents[key.agent]
    return Trial(
        run_id=run_id,
        experiment_id=experiment_id,
        key=key,
        tool_access=config.tool_access,
        case=case,
        deadline_s=case.timeout_s or config.run_timeout_s or suite.timeouts.run_s,
        suite_file=suite.file,
        interrupted=list(interrupted),
    )


class Finished(msgspec.Struct):
    """A run that has ended, and what of it is not stored yet."""

    run: Run
    """As the agent said it, to be graded."""
    kept: Run
    """The same, without secrets: to be stored and shown."""
    events: list[bytes]
    first_event: int
    """The sequence of the first of them."""
    earlier_bodies: list[bytes]
    """What the attempts before the last one brought."""
    redaction: Redaction
    """For what is written about it."""
    workspace: LiveWorkspace | None = None
    """Where the agent worked, if it had a workspace: for graders, then to be closed."""

    async def close(self) -> None:
        """Let go of what only graders needed."""
        if self.workspace is not None:
            await self.workspace.close()


class TrialRunner:
    """Runs the trials of one agent."""

    def __init__(
        self,
        agent: Agent,
        retry: Retry,
        driver: Driver,
        store: Store,
        chance: random.Random,
        *,
        faults: FaultRules | None = None,
        stop: Stop | None = None,
        workspaces: Workspaces | None = None,
    ) -> None:
        """`faults` are the suite's; `workspaces` makes those of its cases, if they have any."""
        self.agent = agent
        self.retry = retry
        self._driver = driver
        self._store = store
        self._chance = chance
        self._faults = FaultRules() if faults is None else faults
        self._stop = Stop() if stop is None else stop
        self._workspaces = workspaces

    async def run(self, trial: Trial, gate: AttemptGate) -> Finished:
        """Run a trial to its end; `gate` lets its attempts begin.

        Raises `StopRequestedError` when a stop comes while no attempt is running, and `SeatrialError` when the store
        fails.
        """
        recorder = recorder_of(trial, self._driver, self._store)
        desk = self._desk(trial)
        try:
            return await self._run(trial, gate, recorder, desk)
        except BaseException:
            await recorder.abandon()
            if desk is not None:
                await desk.close()
            raise

    def _desk(self, trial: Trial) -> _Desk | None:
        source = trial.case.workspace
        # Agent kinds of others need not know of workspaces.
        if source is None or not getattr(self.agent, "uses_workspace", False):
            return None
        if self._workspaces is None:
            raise RuntimeError("a case has a workspace, and nothing makes it")
        return _Desk(self._workspaces, workspace_of(source), getattr(self.agent, "sandbox", None))

    async def _run(self, trial: Trial, gate: AttemptGate, recorder: Recorder, desk: _Desk | None) -> Finished:
        clock = self._driver.clock
        exchange = Exchange(number=1, attempts=list(trial.interrupted))
        for lost in trial.interrupted:
            if lost.fault is not None:
                recorder.begin_with_interrupted(lost.fault, lost.called)
        bodies: list[bytes] = []
        ticket = await gate.enter()
        # The deadline is the agent's: waiting for a place is none of its doing.
        started_at, time = clock.now_ms(), _RunTime(clock, trial.deadline_s)
        while True:
            # Those that were interrupted took none of the deadline, nor of the attempts.
            number = len(exchange.attempts) + 1 - len(trial.interrupted)
            reply, attempt, observed = await self._attempt(trial, gate, ticket, number, time, recorder, desk)
            attempt.number += len(trial.interrupted)
            exchange.attempts.append(attempt)
            fault = reply.fault
            if fault is None or fault is trial.fault or not fault.retryable or number >= self.retry.attempts:
                break
            wait_s = retry_wait_s(self.retry, number, fault.retry_after_s, self._chance)
            # What the agent asked of another run keeps this one waiting too.
            wait_s = max(wait_s, gate.pause_s())
            left_s = time.left_s()
            if left_s is not None and wait_s >= left_s:
                break
            body = await off_loop(reply.size, partial(earlier_body, attempt, reply, recorder.redaction))
            if body is not None:
                bodies.append(body)
            attempt.called = await off_loop(reply.size, partial(tools_called, trial.case, reply, trial.tool_access))
            recorder.fail(fault)
            await self._stop.sleep(wait_s)
            try:
                async with asyncio.timeout(time.left_s()):
                    ticket = await gate.enter()
            except TimeoutError:
                reply = Reply(fault=self._out_of_time(trial, number + 1))
                break
        await recorder.close(broken_off=reply.fault is not None or reply.reading is None)
        if recorder.failure is not None and recorder.failure.code not in _TAKEN:
            raise recorder.failure
        duration_ms = None if reply.replayed else time.passed_s() * 1000
        ended = await off_loop(
            reply.size + observed.size,
            lambda: conclude_run(
                trial,
                reply,
                [exchange],
                recorder,
                started_at=started_at,
                duration_ms=duration_ms,
                faults=self._faults,
                given=given_messages(trial.case),
                observed=observed,
            ),
        )
        return Finished(
            ended.run,
            ended.kept,
            recorder.pending,
            recorder.stored,
            bodies,
            recorder.redaction,
            None if desk is None else desk.workspace,
        )

    async def _attempt(
        self,
        trial: Trial,
        gate: AttemptGate,
        ticket: int,
        number: int,
        time: _RunTime,
        recorder: Recorder,
        desk: _Desk | None,
    ) -> tuple[Reply, Attempt, ObservedCalls]:
        clock = self._driver.clock
        fault: Fault | None = None
        request = RunRequest(
            run_id=trial.run_id,
            experiment_id=trial.experiment_id,
            case=trial.case,
            trial=trial.key.trial,
            attempt=number,
            timeout_s=None,
            suite_file=trial.suite_file,
        )
        try:
            unprepared = None
            if desk is not None:
                with time.stopped():
                    unprepared = await desk.prepare(request)
            started_at, begun = clock.now_ms(), clock.monotonic_s()
            left_s = time.left_s()
            request.timeout_s = None if left_s is None else max(left_s, 0.0)
            if unprepared is None:
                reply = await self._reply(request, trial, recorder, desk)
            else:
                reply = Reply(fault=recorder.redaction.fault(unprepared))
            duration_ms = (clock.monotonic_s() - begun) * 1000
            fault = reply.fault
            self._faults.apply(fault)
            if desk is not None and unprepared is None:
                with time.stopped():
                    reply.diff = await desk.diff(reply)
        finally:
            gate.leave(
                ticket,
                refused=fault is not None and fault.http_status in TOO_MUCH,
                retry_after_s=None if fault is None else fault.retry_after_s,
            )
        return reply, attempt_of(number, started_at, duration_ms, reply, request.observed), request.observed

    async def _reply(self, request: RunRequest, trial: Trial, recorder: Recorder, desk: _Desk | None) -> Reply:
        if trial.fault is not None:
            return Reply(fault=trial.fault)
        if request.timeout_s is not None and request.timeout_s <= 0:
            return Reply(fault=self._out_of_time(trial, request.attempt))
        asked = await self._driver.ask(self.agent, trial.key.agent, request, recorder)
        reply = asked.reply
        if reply is None or asked.stopped:
            reply = Reply() if reply is None else reply
            reply.fault = self._out_of_time(trial, request.attempt)
            if asked.left_running:
                reply.fault.message += "; the agent ignored its cancellation, and was left running"
                if desk is not None:
                    desk.abandon("the agent was left running, and may change the workspace still")
        elif request.attempt > 1 and reply.fault is not None and reply.fault.error_class == "deadline_exceeded":
            reply.fault = self._out_of_time(trial, request.attempt)
        reply.world = asked.world
        if asked.world_fault is not None:
            reply.fault = asked.world_fault
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


class _RunTime:
    """The time that a run takes, without what is not the agent's doing."""

    def __init__(self, clock: Clock, deadline_s: float | None) -> None:
        self._clock = clock
        self._begun = clock.monotonic_s()
        self._deadline_s = deadline_s

    def passed_s(self) -> float:
        return self._clock.monotonic_s() - self._begun

    def left_s(self) -> float | None:
        """How much there is until the deadline; None when there is none, not positive when it has passed."""
        return None if self._deadline_s is None else self._deadline_s - self.passed_s()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """What is done meanwhile takes nothing of it."""
        before = self._clock.monotonic_s()
        try:
            yield
        finally:
            self._begun += self._clock.monotonic_s() - before


class _Desk:
    """The workspace of one run: another one for each attempt."""

    def __init__(self, workspaces: Workspaces, source: WorkspaceSource, sandbox: Sandbox | None) -> None:
        self._workspaces = workspaces
        self._sandbox = sandbox
        self._source = source
        self.workspace: LiveWorkspace | None = None

    async def prepare(self, request: RunRequest) -> Fault | None:
        """Give an attempt its workspace, in the place of that of the one before; the fault when there is none."""
        await self.close()
        prepared = await self._workspaces.prepare(self._source, self._sandbox)
        if isinstance(prepared, Fault):
            return prepared
        self.workspace = prepared
        request.workspace = prepared.place
        return None

    def abandon(self, why: str) -> None:
        """Say that nobody knows any more what is in it."""
        if self.workspace is not None:
            self.workspace.abandoned = why

    async def diff(self, reply: Reply) -> WorkspaceDiff | None:
        """What an attempt changed in it."""
        from seatrial.agents.cli.program import PROCESSES_LEFT

        if any(note.code == PROCESSES_LEFT for note in reply.notes):
            self.abandon("processes of the agent outlive it, and may change the workspace still")
        return None if self.workspace is None else await self.workspace.diff()

    async def close(self) -> None:
        """Remove it."""
        if self.workspace is not None:
            await self.workspace.close()
            self.workspace = None


class RunEvents:
    """Takes the events of a run of an experiment to the store while it is running."""

    def __init__(self, store: Store, spec: TrialSpec) -> None:
        self._store = store
        self._spec = spec

    async def append(self, events: list[bytes], first: int) -> None:
        """Store events; the run is begun with the first of them."""
        spec = self._spec
        if first == 0:
            self._store.begin_run(spec.experiment_id, spec.key, spec.run_id)
        await self._store.append_events(spec.run_id, events, first=first)


def recorder_of(spec: TrialSpec, driver: Driver, store: Store) -> Recorder:
    """The recorder of a run of an experiment, which is the thread of all its runs."""
    return Recorder(
        spec.run_id,
        spec.experiment_id,
        driver.clock,
        driver.redaction,
        RunEvents(store, spec),
        flush_after_s=FLUSH_S,
    )


def retry_wait_s(retry: Retry, number: int, retry_after_s: float | None, chance: random.Random) -> float:
    """How long to wait after so many attempts; an agent that asks for longer gets it."""
    wait_s = min(retry.first_wait_s * 2.0 ** (number - 1), retry.longest_wait_s) * chance.uniform(0.75, 1.25)
    return max(wait_s, retry_after_s or 0.0)


def tools_called(case: Case, reply: Reply, tool_access: ToolAccess = "own") -> list[str]:
    """The tools that an attempt called whose reply is not the run's.

    An agent that had begun may have called any, unless something lists its calls, or it has no tools.
    """
    fault = reply.fault
    unlisted = [] if tool_access == "none" or (fault is not None and fault.before_agent) else [UNKNOWN_CALL]
    try:
        given = given_messages(case)
        if reply.reading is not None:
            return called_tools(reply.reading, given, trace_file=reply.trace_file, tool_access=tool_access)
        if reply.body is None:
            return [UNKNOWN_CALL] if reply.cut else unlisted
        reading, in_doubt = read_remains(reply.body)
        if reading is None:
            return [UNKNOWN_CALL] if in_doubt else unlisted
        called = called_tools(reading, given, tool_access=tool_access)
        return [*called, UNKNOWN_CALL] if in_doubt and UNKNOWN_CALL not in called else called
    except Exception:  # noqa: BLE001 (what an agent sent must not end the experiment, whatever it is)
        return [UNKNOWN_CALL]
