"""Stores of earlier versions become like new ones in the background, a few runs at a time.

A migration makes the tables, and touches no run: a store is open, and all of it readable, at once. What an earlier
version wrote is read in its own form until it has been converted. Every batch is one transaction, which converts just
those runs that need it: a process that dies in the middle costs nothing, and the next one to open the store continues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from msgspec.structs import asdict

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.runs import Verdict
from seatrial.store import items, rows
from seatrial.store.counts import COUNTED_RUNS, counted_runs, signature_in
from seatrial.store.database import Operation, Transaction
from seatrial.store.documents import Packer, unpack
from seatrial.store.schema import UNCOUNTED, cases, readings, runs, served_runs, verdicts
from seatrial.store.writer import Receipt

RUNS_AT_ONCE = 50
_PAUSE_S = 0.02
"""Between two batches, so that other writers have their turn."""

BYTES_AT_ONCE = 4 << 20
"""Bytes of readings, as they are stored, after which a batch takes no further run."""

_NEXT = (
    sa.select(runs.c.id, sa.func.coalesce(sa.func.length(readings.c.data), 0).label("size"))
    .outerjoin(readings, readings.c.run == runs.c.id)
    .where(sa.text(UNCOUNTED))
    .order_by(runs.c.experiment, runs.c.id)
    .limit(RUNS_AT_ONCE)
)


def next_batch(connection: sa.Connection) -> list[int]:
    """The integers of the runs that are to be converted together; none when all are converted."""
    batch: list[int] = []
    size = 0
    for row in connection.execute(_NEXT):
        if batch and size + row.size > BYTES_AT_ONCE:
            break
        batch.append(row.id)
        size += row.size
    return batch


def pending(connection: sa.Connection) -> int:
    """How many runs are not converted yet."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(runs).where(sa.text(UNCOUNTED))).scalar_one())


class ConvertRuns(Operation[None]):
    """Take runs of earlier versions into the rollups, find their signatures, give them their positions, and divide
    their transcripts."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def run(self, to: Transaction) -> None:
        these = runs.c.id.in_(self._numbers)
        served = sa.select(served_runs.c.run).where(served_runs.c.run.in_(self._numbers))
        to.execute(sa.update(runs).where(these, runs.c.id.in_(served)).values(counted=rows.NEVER_COUNTED))
        self._divide(to)
        # Those that another process has converted meanwhile are not among them.
        found = to.execute(COUNTED_RUNS.where(these, sa.text(UNCOUNTED)).order_by(runs.c.id).with_for_update()).all()
        for row, run in zip(found, counted_runs(to.execute, found), strict=True):
            signature = signature_in(to.execute, row.id, row.outcome, _verdicts(to, row.id, row.grading))
            run.run.signature = signature
            to.count(row.experiment, run)
            if signature is not None:
                to.execute(sa.update(runs).where(runs.c.id == row.id).values(signature=signature))
        same = (cases.c.experiment == runs.c.experiment) & (cases.c.case_id == runs.c.case_id)
        position = sa.select(cases.c.position).where(same).scalar_subquery()
        to.execute(
            sa.update(runs)
            .where(runs.c.id.in_([row.id for row in found]))
            .values(counted=rows.COUNTED, position=position)
        )

    def _divide(self, to: Transaction) -> None:
        """Put long transcripts into rows."""
        query = sa.select(readings).where(readings.c.run.in_(self._numbers), readings.c.messages.is_(None))
        for row in to.execute(query).all():
            try:
                document = unpack(row.packed, row.data)
                head, some, texts = items.divided(wire.decode(document, rows.READING), document)
            except SeatrialError:
                continue  # damaged, which is said where the whole of the run is read
            if head.messages is None:
                continue
            packer = Packer()
            packer.add([head, *some, *texts])
            packer.pack()
            for item in some:
                item.run = row.run
            to.add(rows.INSERT_BODY, texts)
            to.add(rows.INSERT_ITEMS, some)
            head.run = row.run
            to.execute(sa.update(readings).where(readings.c.run == row.run).values(**asdict(head)))


def _verdicts(to: Transaction, number: int, grading: int) -> list[Verdict]:
    query = sa.select(verdicts.c.data).where(verdicts.c.run == number, verdicts.c.grading == grading)
    found = []
    for row in to.execute(query.order_by(verdicts.c.position)):
        try:
            found.append(rows.decode_verdict(row.data))
        except SeatrialError:
            return []  # the run is damaged, which is said where the whole of it is read
    return found


class Conversion:
    """A thread that converts what there is to convert, until that is done or the store is closed."""

    def __init__(self, next_batch: Callable[[], list[int]], submit: Callable[[Operation[None]], Receipt[None]]) -> None:
        self._next_batch = next_batch
        self._submit = submit
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="seatrial-conversion", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End after the batch that is being written."""
        self._closed.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._closed.is_set() and (numbers := self._next_batch()):
                self._submit(ConvertRuns(numbers)).wait()
                self._closed.wait(_PAUSE_S)
        except SeatrialError:
            # Locked, full or away: reading works as before, and the next process that opens the store tries again.
            return
