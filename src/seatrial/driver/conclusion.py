"""The record of a run that has ended, whatever the agent returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from seatrial.agents.agent import Reply
from seatrial.agents.output import last_turn_fault
from seatrial.agents.streamed import reported_end, reported_failure
from seatrial.driver.exchange import internal_fault
from seatrial.driver.recording import Recording
from seatrial.driver.redaction import Redaction, set_body
from seatrial.errors import SeatrialError
from seatrial.events.order import Terminal
from seatrial.events.types import CancelledOutcome, RunFinished
from seatrial.runs import Attempt, Exchange, Fault, FaultRules, Run, RunKey, RunStatus, ServedKey
from seatrial.runs.conclusion import conclude, done_record, says_nothing
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.extraction import TRACE_REF_NOT_READ
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import Message, Note, note_code

CALLS_BESIDE_ANSWER = note_code(
    "calls_beside_answer",
    "The agent sent events of calls beside an answer that lists its calls itself; those of the events are not steps.",
    "serious",
)


class RunSpec(msgspec.Struct, kw_only=True):
    """Which run it is, and which tools its agent has."""

    run_id: str
    experiment_id: str | None = None
    key: RunKey | ServedKey
    tool_access: ToolAccess = "own"


def attempt_of(number: int, started_at: int, duration_ms: float, reply: Reply, observed: ObservedCalls) -> Attempt:
    """The record of one try at an exchange."""
    attempt = Attempt(
        number=number,
        started_at=started_at,
        duration_ms=duration_ms,
        fault=reply.fault,
        observed_calls=len(observed.steps or ()),
        http_status=reply.http_status,
    )
    set_body(attempt, reply.body)
    return attempt


def earlier_body(attempt: Attempt, reply: Reply, redaction: Redaction) -> bytes | None:
    """What is stored of the body of an attempt after which another one follows. The attempt has the address of it."""
    body = redaction.body(reply.body, reply.reading, streamed=reply.streamed)
    if body is not reply.body:
        set_body(attempt, body)
    return body


class Conclusion(NamedTuple):
    """What a run came to."""

    run: Run
    """As the agent said it, ungraded."""
    kept: Run
    """What is stored of it: the same without secrets."""
    terminal: Terminal
    """The event that ends its log."""


def conclude_run(
    spec: RunSpec,
    reply: Reply,
    exchanges: list[Exchange],
    recording: Recording,
    *,
    started_at: int | None,
    duration_ms: float | None = None,
    faults: FaultRules | None = None,
    given: Sequence[Message] = (),
    observed: ObservedCalls | None = None,
    terminal: Terminal | None = None,
    may_cancel: bool = False,
) -> Conclusion:
    """The record of a run that has ended, from an experiment or the run service; its last event is recorded.

    `terminal` ends a run that its agent did not end: the agent is then not blamed for what it left unsaid. With
    `may_cancel`, an agent may end its run as cancelled; in an experiment, where nobody asked for that, it has failed.

    What cannot be made a record of, whatever it is, has the fault `internal_error`, and keeps what the agent sent.
    """
    rules = FaultRules() if faults is None else faults
    redaction = recording.redaction
    own, attempt = recording.terminal, exchanges[-1].attempts[-1]
    if terminal is None and may_cancel and is_cancelled(own):
        terminal, reply.fault, attempt.fault = own, None, None
    if terminal is None and reply.fault is None:
        fault = _unsaid_fault(own, reply)
        reply.fault = attempt.fault = None if fault is None else redaction.fault(fault)
    rules.apply(reply.fault)
    run = _read_run(spec, reply, exchanges, recording, given, observed)
    run.started_at, run.duration_ms = started_at, duration_ms
    if terminal is None and run.fault is None and says_nothing(run):
        fault = Fault("agent_output_missing", "the agent ended without an answer: no text to be seen, and no call")
        rules.apply(fault)
        set_fault(run, fault)
    terminal = own if own is not None and recording.ended else _record_end(recording, run, reply, terminal)
    if run.fault is None and is_cancelled(terminal):
        run.status = "cancelled"
    return Conclusion(run, _kept(run, redaction, streamed=reply.streamed), terminal)


def _unsaid_fault(own: Terminal | None, reply: Reply) -> Fault | None:
    """The fault of a run whose agent kind names none: the agent says that it failed, or there is nothing to read."""
    fault = reported_end(own)
    if fault is not None:
        return fault
    if reply.reading is None:
        return Fault("agent_output_missing", "the agent ended without an answer to read")
    return reported_failure(reply.reading) or last_turn_fault(reply.reading)


def is_cancelled(terminal: Terminal | None) -> bool:
    """Whether this event ends a run as cancelled."""
    return isinstance(terminal, RunFinished) and isinstance(terminal.outcome, CancelledOutcome)


def _read_run(
    spec: RunSpec,
    reply: Reply,
    exchanges: list[Exchange],
    recording: Recording,
    given: Sequence[Message],
    observed: ObservedCalls | None,
) -> Run:
    """The record by what the agent said."""
    if reply.reading is not None:
        reply.reading.notes += recording.notes
        if recording.has_calls and not reply.streamed:
            text = "the agent sent events of calls, and an answer that was read in their place"
            reply.reading.notes.append(Note(CALLS_BESIDE_ANSWER, "", text))
    try:
        run = _run(spec, reply, exchanges, recording.redaction, given, observed)
    except Exception as error:  # noqa: BLE001 (what an agent sent must not end anything but its own run)
        reply.reading = None
        if reply.fault is None:
            reply.fault = exchanges[-1].attempts[-1].fault = internal_fault(error, recording.redaction)
        run = _run(spec, reply, exchanges, recording.redaction, given, observed)
    if run.reading is None:
        run.unread_notes = list(recording.notes)
    return run


def _record_end(recording: Recording, run: Run, reply: Reply, terminal: Terminal | None) -> Terminal:
    """Record the last events of a run: this terminal event, or the one that follows from how the run ended.

    What had to be added to the log is noted in the run.
    """
    noted = len(recording.notes)
    try:
        terminal = _last_event(recording, run, reply) if terminal is None else recording.end(terminal)
    except Exception as error:  # noqa: BLE001 (what an agent sent must not end anything but its own run)
        # What cannot be written as events cannot be stored as a transcript either.
        run.reading, run.steps, run.steps_source, run.completeness = None, [], None, None
        set_fault(run, internal_fault(error, recording.redaction))
        terminal = _last_event(recording, run, reply)
    if run.reading is not None:
        run.reading.notes += recording.notes[noted:]
    else:
        run.unread_notes += recording.notes[noted:]
    return terminal


def _kept(run: Run, redaction: Redaction, *, streamed: bool) -> Run:
    """What is stored of a run. Of one that cannot be looked through, nothing is stored or graded."""
    try:
        return redaction.run(run, streamed=streamed)
    except Exception as error:  # noqa: BLE001 (what an agent sent must not end anything but its own run)
        fault = internal_fault(error, redaction)
        kept = without_content(run, SeatrialError("unstorable", fault.message))
        run.status, run.fault = kept.status, kept.fault
        return kept


def _last_event(recording: Recording, run: Run, reply: Reply) -> Terminal:
    if run.fault is not None:
        return recording.fail(run.fault)
    if reply.streamed or reply.reading is None:
        return recording.finish()
    own = done_record(run, reply.reading)
    return recording.unfold(own.transcript, own.facts, own.partial)


def set_fault(run: Run, fault: Fault) -> None:
    """Give a run the fault that its last attempt turned out to have."""
    run.fault = run.attempts[-1].fault = fault
    run.status = status_of(fault)


def status_of(fault: Fault | None) -> RunStatus:
    """How a run ended that had this fault, or none."""
    return "completed" if fault is None else "failed"


def without_content(run: Run, error: SeatrialError) -> Run:
    """What is kept of a run that no store can keep: that it was, and why there is no more of it."""
    fault = Fault("recording_failed", f"the run cannot be stored: {error.message}")
    return Run(
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        key=run.key,
        status="failed",
        exchanges=[Exchange(number=one.number, attempts=list(map(_timing, one.attempts))) for one in run.exchanges],
        fault=fault,
        started_at=run.started_at,
        duration_ms=run.duration_ms,
    )


def _timing(attempt: Attempt) -> Attempt:
    return Attempt(number=attempt.number, started_at=attempt.started_at, duration_ms=attempt.duration_ms)


def _run(
    spec: RunSpec,
    reply: Reply,
    exchanges: list[Exchange],
    redaction: Redaction,
    given: Sequence[Message],
    observed: ObservedCalls | None,
) -> Run:
    run = Run(
        run_id=spec.run_id,
        experiment_id=spec.experiment_id,
        key=spec.key,
        status=status_of(reply.fault),
        body=reply.body,
        exchanges=exchanges,
        fault=reply.fault,
        metadata=reply.metadata,
        diff=reply.diff,
        world=reply.world,
    )
    trace_file = reply.trace_file
    # A run that was stored has the trace of its file.
    if trace_file is None and reply.reading is not None and reply.reading.trace_ref and not reply.replayed:
        trace_file = Note(TRACE_REF_NOT_READ, "/trace_ref", "files of an agent of this kind are not read")
    conclude(
        run,
        reply.reading,
        given,
        observed=observed,
        trace_file=trace_file,
        tool_access=spec.tool_access,
        replayed=reply.replayed,
    )
    if reply.replayed:
        redaction.note_removals(run)  # a record in another format than ours lost its notes
    return run
