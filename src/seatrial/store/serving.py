"""Runs of the run service on their way into a store: admitted, changed, ended, and in part forgotten.

A thread has one run at a time: the status of its newest run says whether it is free. Every admission looks before it
writes, so that one that is refused costs the others nothing. Another process may do the same at the same time; then
the indexes of the table let only one of them through, and the other one looks again.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial._version import __version__
from seatrial.errors import SeatrialError
from seatrial.events.run_input import ResumeEntry, resume_problem
from seatrial.events.types import Interrupt
from seatrial.runs import Case, ServedRun
from seatrial.store import rows, served
from seatrial.store.database import SMALL, Operation, Transaction
from seatrial.store.documents import Packer, address, digest, encode, identifier
from seatrial.store.event_log import add_events, divided, find, following, joined, sequence_conflict
from seatrial.store.ingest import RunRows, begun_row
from seatrial.store.schema import events, experiments, runs, served_runs
from seatrial.store.served import Admission, Admitted, Ending, ServedData

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
_SAME_ID = (
    sa.select(runs.c.experiment, served_runs.c.created_at)
    .outerjoin(served_runs, served_runs.c.run == runs.c.id)
    .where(runs.c.run_id == sa.bindparam("run_id"))
)
_ANSWERED = sa.update(served_runs).where(served_runs.c.run == sa.bindparam("answered")).values(status="completed")
_BY_ID = served.SELECT.add_columns(runs.c.experiment, runs.c.case_id, runs.c.trial, following()).where(
    runs.c.run_id == sa.bindparam("run_id")
)


class BeginServing(Operation[int]):
    """Store what the runs of a server belong to: an experiment that never has all its cases. Gives its integer."""

    def __init__(self, server_id: str, created_at: int) -> None:
        self._server_id = identifier("id of a server", server_id)
        self._created_at = created_at

    def run(self, to: Transaction) -> int | SeatrialError:
        number: int
        table = experiments
        found = to.execute(sa.select(table.c.id, table.c.cases).where(table.c.experiment_id == self._server_id)).first()
        if found is None:
            values = {"experiment_id": self._server_id, "name": "served runs", "suite_hash": "", "packed": 0}
            made = sa.insert(table).values(
                **values, created_at=self._created_at, status="running", version=__version__, suite=b"{}"
            )
            number = to.execute(made.returning(table.c.id)).scalar_one()
        elif found.cases is not None:
            return SeatrialError("conflict", f"there is an experiment {self._server_id!r} already")
        else:
            number = found.id
        return number


class AdmitRun(Operation[Admitted]):
    """Take the thread, and store the run with its first event; or give the run that the same request made before."""

    def __init__(self, admission: Admission, experiment: int) -> None:
        run_id = identifier("id", admission.run_id)
        identifier("id of a thread", admission.thread_id)
        identifier("name of an agent", admission.agent)
        if admission.idempotency_key is not None:
            identifier("idempotency key", admission.idempotency_key)
        self._admission = admission
        self._experiment = experiment
        # A run refers to an experiment and a case in the tables; nobody reads these.
        self._case = rows.CaseRow(experiment=experiment, case_id=run_id, data=encode(Case(id=run_id, instruction="")))
        self._events = divided(joined([admission.first_event]), 1)
        self._request = digest(address(admission.request))
        self._resume = resume_digest(admission.thread_id, admission.resume) if admission.resume else None
        key = rows.served_key(run_id, admission.agent)
        self._run = begun_row(run_id, key, admission.created_at, counted=rows.NEVER_COUNTED)
        self._input = rows.BodyRow(hash=b"", size=len(admission.input), data=admission.input)
        self._tried = False
        self.size = SMALL + len(self._case.data) + len(admission.input) + len(admission.first_event)

    def prepare(self, packer: Packer) -> None:
        self._input.hash = digest(address(self._input.data))
        packer.add([self._case, self._input, *self._events])

    def run(self, to: Transaction) -> Admitted | SeatrialError:
        admission = self._admission
        # What another process commits between two of these queries is seen by those that follow. So the one whose
        # answer goes before all others comes last.
        same_id = to.execute(_SAME_ID, run_id=admission.run_id).first()
        if self._tried and same_id is not None and self._made(same_id):
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
        # Each server has one experiment for all its runs; a run's integer is a place in it that no other case has.
        self._case.position = number
        self._run.id, self._run.experiment = number, self._experiment
        to.add(rows.INSERT_CASE, [self._case])
        to.add(rows.INSERT_BODY, [self._input])
        to.add(rows.INSERT_RUN, [self._run])
        add_events(to, number, 0, self._events)
        served_run = rows.ServedRunRow(
            run=number,
            thread_id=admission.thread_id,
            position=position,
            agent=admission.agent,
            status=admission.status,
            created_at=admission.created_at,
            pushed=int(admission.pushed),
            server_id=None if admission.pushed else admission.server_id,
            idempotency_key=admission.idempotency_key,
            request=self._request,
            resume=self._resume,
            input=self._input.hash,
        )
        to.add(rows.INSERT_SERVED_RUN, [served_run])
        to.live[admission.run_id] = (number, 1)
        to.changed.append(admission.run_id)

    def _made(self, run: sa.Row[Any]) -> bool:
        """Whether a run of the same id is one that only this admission can have made."""
        return (run.experiment, run.created_at) == (self._experiment, self._admission.created_at)

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


class EndRun(Operation[bool]):
    """Store the last events and the record of a run, and free its thread. Gives whether this ended it."""

    def __init__(self, ending: Ending) -> None:
        if (ending.status == "input_required") != bool(ending.interrupts):
            raise SeatrialError(
                "invalid_request", f"a run with {len(ending.interrupts)} open interrupts cannot end as {ending.status}"
            )
        if not ending.events:
            raise SeatrialError("invalid_request", "a run ends with an event")
        self._ending = ending
        self._record = RunRows(ending.run, ending.events, counted=rows.NEVER_COUNTED)
        self._data = encode(ServedData(ending.interrupts, ending.error_code, ending.error_message))
        self._tried = False
        self.size = self._record.size + len(self._data)

    def prepare(self, packer: Packer) -> None:
        packer.add(self._record.large)

    def run(self, to: Transaction) -> bool | SeatrialError:
        ending = self._ending
        record = self._record
        found = to.execute(_BY_ID, run_id=record.run.run_id).first()
        if found is None:
            return rows.no_run(record.run.run_id)
        number = found.run
        if found.status not in served.ACTIVE:
            return self._tried and record.is_at(to, number, ending.first)
        if ending.first != found.following:
            return sequence_conflict(record.run.run_id, found.following, ending.first)
        record.run.agent, record.run.case_id, record.run.trial = found.agent, found.case_id, found.trial
        record.add(to, number, found.experiment, ending.first, begun=True)
        to.execute(
            sa.update(served_runs)
            .where(served_runs.c.run == number)
            .values(status=ending.status, ended_at=ending.ended_at, data=self._data)
        )
        to.live.pop(record.run.run_id, None)
        self._tried = True
        return True


class MarkRun(Operation[ServedRun]):
    """Change what is known of a run that has not ended."""

    def __init__(
        self, run_id: str, status: Literal["pending", "running"] | None, cancel_requested: bool | None
    ) -> None:
        if status is not None and status not in served.ACTIVE:
            raise SeatrialError("invalid_request", f"a run becomes {status} by its end")
        self._run_id = run_id
        self._values: dict[str, Any] = {}
        if status is not None:
            self._values["status"] = status
        if cancel_requested is not None:
            self._values["cancel_requested"] = int(cancel_requested)

    def run(self, to: Transaction) -> ServedRun | SeatrialError:
        if self._values:
            this = sa.select(runs.c.id).where(runs.c.run_id == self._run_id).scalar_subquery()
            going_on = served_runs.c.status.in_(served.ACTIVE)
            update = sa.update(served_runs).where(served_runs.c.run == this, going_on)
            if to.execute(update.values(**self._values)).rowcount:
                to.changed.append(self._run_id)
        found = to.execute(_BY_ID, run_id=self._run_id).first()
        return served.of_row(found) if found is not None else rows.no_run(self._run_id)


class ForgetEvents(Operation[int]):
    """Remove the oldest events of a run. Gives the first sequence that is left."""

    def __init__(self, run_id: str, before: int) -> None:
        self._run_id = run_id
        self._before = before

    def run(self, to: Transaction) -> int | SeatrialError:
        found = find(to, self._run_id)
        if found is None:
            return rows.no_run(self._run_id)
        number = found.id
        of_run = events.c.run == number
        # The last row stays: it has the terminal event, or says at which sequence a run continues.
        last = to.execute(sa.select(sa.func.max(events.c.first)).where(of_run)).scalar()
        if last is None:
            return 0  # a run of an experiment that has said nothing yet
        gone = events.c.first + events.c.count <= self._before
        to.execute(sa.delete(events).where(of_run, events.c.first < last, gone))
        first: int = to.execute(sa.select(sa.func.min(events.c.first)).where(of_run)).scalar_one()
        if first == last and found.status not in rows.UNFINISHED:
            to.execute(sa.update(served_runs).where(served_runs.c.run == number).values(trimmed=1))
        return first


def resume_digest(thread_id: str, resume: list[ResumeEntry]) -> bytes:
    """What two requests have in common that give the same answers to the same interrupts of a thread."""
    answers = sorted(
        _SORTED.encode(wire.decode(encode(ResumeEntry(entry.interrupt_id, entry.status, entry.payload))))
        for entry in resume
    )
    return hashlib.sha256(b"\n".join([encode(thread_id), *answers])).digest()


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
