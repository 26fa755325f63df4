"""Runs of the run service on their way into a store.

A thread has one run at a time: the newest one of a thread tells whether it is free. Every admission looks before it
writes, so that one that is refused costs the others nothing. Another process may do the same at the same time; then
the indexes of the table let only one of them through, and the other one looks again.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import astuple

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.events.run_input import ResumeEntry, resume_problem
from seatrial.events.types import Interrupt
from seatrial.runs import Run, RunKey, ServedRun
from seatrial.store import inserts, rows, served
from seatrial.store.appending import EventRow, add_events, divided, joined
from seatrial.store.bodies import Document, Packer, address, digest
from seatrial.store.schema import runs, served_runs
from seatrial.store.served import Admission, Admitted
from seatrial.store.transaction import SMALL, Operation, Transaction

_SORTED = msgspec.json.Encoder(order="sorted")
_NEWEST = (
    served.SELECT.where(served_runs.c.thread_id == sa.bindparam("thread_id"))
    .order_by(served_runs.c.position.desc())
    .limit(1)
)
_BY_KEY = served.SELECT.where(
    served_runs.c.agent == sa.bindparam("agent"), served_runs.c.idempotency_key == sa.bindparam("idempotency_key")
)
_BY_RESUME = (
    served.SELECT.where(served_runs.c.resume == sa.bindparam("resume")).order_by(served_runs.c.position.desc()).limit(1)
)
_BY_ID = (
    sa.select(runs.c.experiment, served_runs.c.created_at)
    .outerjoin(served_runs, served_runs.c.run == runs.c.id)
    .where(runs.c.run_id == sa.bindparam("run_id"))
)
_ANSWERED = sa.update(served_runs).where(served_runs.c.run == sa.bindparam("answered")).values(status="completed")


class AdmitRun(Operation[Admitted]):
    """Take the thread, and store the run with its first event; or give the run that the same request made before."""

    def __init__(self, admission: Admission, experiment: int) -> None:
        run_id = rows.identifier("id", admission.run_id)
        rows.identifier("id of a thread", admission.thread_id)
        rows.identifier("name of an agent", admission.agent)
        if admission.idempotency_key is not None:
            rows.identifier("idempotency key", admission.idempotency_key)
        if admission.case.id != run_id:
            raise SeatrialError("invalid_request", f"the case of run {run_id!r} has another id: {admission.case.id!r}")
        self._admission = admission
        self._experiment = experiment
        self._case = rows.encode(admission.case)
        self._event = joined([admission.first_event])
        self._events: list[EventRow] = []
        self._request = digest(address(admission.request))
        self._resume = resume_digest(admission.thread_id, admission.resume) if admission.resume else None
        self._columns = rows.run_columns(
            Run(
                run_id=run_id,
                experiment_id="",
                key=RunKey(admission.agent, run_id, 0),
                status="running",
                started_at=admission.created_at,
            ),
            counted=rows.NEVER_COUNTED,
        )
        self._input = b""
        self._packed_input = self._packed_case = Document(b"")
        self._tried = False
        self.size = SMALL + len(self._case) + len(admission.input) + len(self._event)

    def prepare(self, packer: Packer) -> None:
        self._events = divided(self._event, 1, packer)
        self._packed_case = packer.add(self._case)
        given = self._admission.input
        self._input = digest(address(given))
        self._packed_input = packer.add(given)

    def run(self, to: Transaction) -> Admitted | SeatrialError:
        admission = self._admission
        # What another process commits between two of these queries is seen by those that follow. So the one whose
        # answer goes before all others comes last.
        same_id = to.execute(_BY_ID, run_id=admission.run_id).first()
        if self._tried and same_id == self._trace():
            return Admitted(self._served(), True)  # the commit that broke off went through
        newest = to.execute(_NEWEST, thread_id=admission.thread_id).first()
        if admission.idempotency_key is not None:
            same = to.execute(_BY_KEY, agent=admission.agent, idempotency_key=admission.idempotency_key).first()
            if same is not None:
                if same.request == self._request:
                    return Admitted(served.of_row(same), False)
                return SeatrialError(
                    "idempotency_conflict",
                    f"idempotency key {admission.idempotency_key!r} was used for another request to this agent",
                    details={"runId": same.run_id},
                )
        refused = self._refusal(newest)
        if refused is not None:
            if self._resume is not None and (made := to.execute(_BY_RESUME, resume=self._resume).first()) is not None:
                return Admitted(served.of_row(made), False)
            return refused
        if same_id is not None:
            return SeatrialError("conflict", f"run id {admission.run_id!r} belongs to another run already")
        if newest is not None and newest.status == "input_required":
            to.execute(_ANSWERED, answered=newest.run)
            to.changed.append(newest.run_id)
        self._add(to, 0 if newest is None else newest.position + 1)
        self._tried = True
        return Admitted(self._served(), True)

    def _refusal(self, newest: sa.Row[Any] | None) -> SeatrialError | None:
        """Why the thread cannot take this run after its newest one."""
        admission = self._admission
        if newest is not None and newest.status in served.ACTIVE:
            return SeatrialError(
                "thread_busy",
                f"run {newest.run_id} is still active in thread {admission.thread_id!r}",
                hint="wait until it has ended, or cancel it",
                details={"runId": newest.run_id},
            )
        open_: list[Interrupt] = []
        if newest is not None and newest.status == "input_required":
            open_ = wire.decode(newest.data, served.DATA).interrupts
        expired = frozenset(interrupt.id for interrupt in open_ if _expired(interrupt, admission.created_at))
        problem = resume_problem(open_, admission.resume or [], expired=expired)
        return SeatrialError("resume_refused", problem) if problem is not None else None

    def _add(self, to: Transaction, position: int) -> None:
        admission = self._admission
        number = to.new_run()
        run_id, agent = admission.run_id, admission.agent
        # Each server has one experiment for all its runs; a run's integer is a place in it that no other case has.
        case, given = self._packed_case, self._packed_input
        to.add(inserts.CASE, self._experiment, number, run_id, case.packed, case.data)
        to.add(inserts.BODY, self._input, len(admission.input), given.packed, given.data)
        to.add(inserts.RUN, number, run_id, self._experiment, run_id, agent, 0, *astuple(self._columns))
        add_events(to, number, 0, self._events)
        to.add(
            inserts.SERVED_RUN,
            number,
            admission.thread_id,
            position,
            agent,
            admission.status,
            admission.created_at,
            None,
            int(admission.pushed),
            None if admission.pushed else admission.server_id,
            admission.idempotency_key,
            self._request,
            self._resume,
            0,
            0,
            self._input,
            b"{}",
        )
        to.live[run_id] = (number, 1)
        to.changed.append(run_id)

    def _trace(self) -> tuple[int, int]:
        """What only a run of this admission has under its id."""
        return self._experiment, self._admission.created_at

    def _served(self) -> ServedRun:
        admission = self._admission
        return ServedRun(
            run_id=admission.run_id,
            thread_id=admission.thread_id,
            agent=admission.agent,
            status=admission.status,
            created_at=served.moment(admission.created_at),
            pushed=admission.pushed,
            server_id=None if admission.pushed else admission.server_id,
            idempotency_key=admission.idempotency_key,
        )


def resume_digest(thread_id: str, resume: list[ResumeEntry]) -> bytes:
    """What two requests have in common that give the same answers to the same interrupts of a thread."""
    answers = sorted(
        _SORTED.encode(wire.decode(rows.encode(ResumeEntry(entry.interrupt_id, entry.status, entry.payload))))
        for entry in resume
    )
    return hashlib.sha256(b"\n".join([rows.encode(thread_id), *answers])).digest()


def _expired(interrupt: Interrupt, now: int) -> bool:
    """Whether an interrupt can only be cancelled. A time that cannot be understood never comes; one without a zone is
    in UTC."""
    if not isinstance(interrupt.expires_at, str):
        return False
    try:
        expires_at = datetime.fromisoformat(interrupt.expires_at)
    except ValueError:
        return False
    if expires_at.tzinfo is None:
        expires_at = expires_at.replace(tzinfo=UTC)
    return expires_at <= served.moment(now)
