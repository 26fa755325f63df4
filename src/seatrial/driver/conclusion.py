"""What a run comes to when it has ended: its record, whatever the agent brought."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seatrial.agents.agent import Reply
from seatrial.driver.exchange import internal_fault
from seatrial.driver.recording import Recording
from seatrial.driver.redaction import Redaction, set_body
from seatrial.errors import SeatrialError
from seatrial.events.order import Terminal
from seatrial.runs import Attempt, Exchange, Fault, Run, RunKey, RunStatus, ServedKey
from seatrial.runs.conclusion import conclude
from seatrial.trajectory.completeness import ToolAccess
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


def concluded(
    spec: RunSpec,
    reply: Reply,
    exchanges: list[Exchange],
    redaction: Redaction,
    *,
    given: Sequence[Message] = (),
    observed: ObservedCalls | None = None,
    notes: Sequence[Note] = (),
    emitted_calls: bool = False,
) -> Run:
    """The record of a run that has ended, ungraded, and as the agent said it. `notes` are on its events;
    `emitted_calls`: some were calls.

    What cannot be made a record of, whatever it is, has the fault `internal_error`, and keeps what the agent sent.
    """
    if reply.reading is not None:
        reply.reading.notes += notes
        if emitted_calls and not reply.streamed:
            text = "the agent sent events of calls, and an answer that was read in their place"
            reply.reading.notes.append(Note(CALLS_BESIDE_ANSWER, "", text))
    try:
        return _run(spec, reply, exchanges, redaction, given, observed)
    except Exception as error:  # noqa: BLE001 (what an agent sent must not end anything but its own run)
        reply.reading = None
        if reply.fault is None:
            reply.fault = exchanges[-1].attempts[-1].fault = internal_fault(error, redaction)
        return _run(spec, reply, exchanges, redaction, given, observed)


def record_end(recording: Recording, run: Run, reply: Reply, terminal: Terminal | None = None) -> Terminal:
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
    return terminal


def kept_of(run: Run, redaction: Redaction, *, streamed: bool) -> Run:
    """What is stored of a run: the same without secrets. Of one that cannot be looked through, nothing is stored or
    graded."""
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
    transcript = reply.reading.transcript
    transcript = msgspec.structs.replace(transcript, messages=transcript.done(), given=[])
    return recording.unfold(recording.redaction.transcript(transcript))


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
    )
    conclude(run, reply.reading, given, observed=observed, trace_file=reply.trace_file, tool_access=spec.tool_access)
    if reply.replayed:
        redaction.note_removals(run)  # a record in another format than ours lost its notes
    return run
