"""What becomes of a run of the run service after it was admitted: its status, its end, and what is forgotten of it."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.runs import RunKey, ServedRun
from seatrial.store import rows, served
from seatrial.store.appending import find, following, sequence_conflict
from seatrial.store.bodies import Packer
from seatrial.store.recording import Record
from seatrial.store.schema import events, runs, served_runs
from seatrial.store.served import Ending, ServedData
from seatrial.store.transaction import Operation, Transaction

_BY_ID = served.SELECT.add_columns(runs.c.experiment, runs.c.case_id, runs.c.trial, following()).where(
    runs.c.run_id == sa.bindparam("run_id")
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
        self._record = Record(ending.run, ending.events, counted=rows.NEVER_COUNTED)
        self._data = rows.encode(ServedData(ending.interrupts, ending.error_code, ending.error_message))
        self._tried = False
        self.size = self._record.size + len(self._data)

    def prepare(self, packer: Packer) -> None:
        self._record.prepare(packer)

    def run(self, to: Transaction) -> bool | SeatrialError:
        ending = self._ending
        record = self._record
        found = to.execute(_BY_ID, run_id=record.run_id).first()
        if found is None:
            return rows.no_run(record.run_id)
        number = found.run
        if found.status not in served.ACTIVE:
            return self._tried and record.is_at(to, number, ending.first)
        if ending.first != found.following:
            return sequence_conflict(record.run_id, found.following, ending.first)
        record.key = RunKey(found.agent, found.case_id, found.trial)
        record.add(to, number, found.experiment, ending.first, begun=True)
        to.execute(
            sa.update(served_runs)
            .where(served_runs.c.run == number)
            .values(status=ending.status, ended_at=ending.ended_at, data=self._data)
        )
        to.live.pop(record.run_id, None)
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
        # The last row stays: it has the terminal event, or tells a run that goes on where it goes on.
        last = to.execute(sa.select(sa.func.max(events.c.first)).where(of_run)).scalar()
        if last is None:
            return 0  # a run of an experiment that has said nothing yet
        gone = events.c.first + events.c.count <= self._before
        to.execute(sa.delete(events).where(of_run, events.c.first < last, gone))
        first: int = to.execute(sa.select(sa.func.min(events.c.first)).where(of_run)).scalar_one()
        if first == last and found.status not in rows.UNFINISHED:
            to.execute(sa.update(served_runs).where(served_runs.c.run == number).values(trimmed=1))
        return first


def ended_before(connection: sa.Connection, ended_at: int, limit: int) -> list[str]:
    """Ids of runs that ended earlier and have events that can be forgotten, the longest ended first."""
    found = connection.execute(
        sa.select(runs.c.run_id)
        .join(served_runs, served_runs.c.run == runs.c.id)
        .where(served_runs.c.trimmed == 0, served_runs.c.ended_at < ended_at)
        .order_by(served_runs.c.ended_at)
        .limit(limit)
    )
    return list(found.scalars())
