"""Events on their way into a store."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store import inserts, rows, schema
from seatrial.store.bodies import PACK_FROM, pack
from seatrial.store.transaction import SMALL, Operation, Transaction

MAX_EVENTS_A_ROW = 256
MAX_EVENT_BYTES_A_ROW = 64 * 1024
"""Beyond either, an append takes several rows: a reader of the end of a long run unpacks little."""


class AppendEvents(Operation[int]):
    """Store events of a run that was begun, behind those it has. Gives the sequence of the last."""

    def __init__(self, run_id: str, events: Sequence[bytes], first: int | None) -> None:
        self._run_id = run_id
        self._events = EventRows(events)
        self._expected = first
        self._tried: int | None = None
        self.size = SMALL + self._events.size

    def prepare(self) -> None:
        self._events.prepare()

    def run(self, to: Transaction) -> int:
        number, first = place(to, self._run_id)
        events = self._events
        if to.careful and self._tried is not None and events.are_at(to, number, self._tried):
            return self._tried + events.count - 1  # the commit that broke off went through
        if self._expected is not None and self._expected != first:
            raise SeatrialError(
                "conflict", f"the next event of run {self._run_id} is {first}, but {self._expected} was to be appended"
            )
        self._tried = first
        events.add(to, number, first)
        following = first + events.count
        to.live[self._run_id] = (number, following)
        return following - 1


class EventRows:
    """Events on their way into rows."""

    __slots__ = ("_rows", "count", "size")

    def __init__(self, events: Sequence[bytes]) -> None:
        self.count = count = len(events)
        lines = b"\n".join(events)
        if count and lines.count(b"\n") != count - 1:
            # A line break inside JSON is white space: a space says the same, and keeps each event on its own line.
            lines = b"\n".join([event.replace(b"\n", b" ") for event in events])
        self.size = len(lines)
        self._rows: list[tuple[int, int, int, bytes]] = [(0, count, 0, lines)] if count else []

    def prepare(self) -> None:
        """Compress, and divide into several rows what is too much for one."""
        if self.size < PACK_FROM and self.count <= MAX_EVENTS_A_ROW:
            return
        events = self._rows.pop()[-1].split(b"\n")
        start = size = 0
        for index, event in enumerate(events):
            if index > start and (size + len(event) > MAX_EVENT_BYTES_A_ROW or index - start == MAX_EVENTS_A_ROW):
                self._rows.append((start, index - start, *pack(b"\n".join(events[start:index]))))
                start, size = index, 0
            size += len(event)
        self._rows.append((start, self.count - start, *pack(b"\n".join(events[start:]))))

    def add(self, to: Transaction, number: int, first: int) -> None:
        for offset, count, packed, data in self._rows:
            to.add(inserts.EVENTS, number, first + offset, count, packed, data)

    def are_at(self, to: Transaction, number: int, first: int) -> bool:
        table = schema.events
        stored = to.execute(
            sa.select(table.c.first, table.c.count, table.c.packed, table.c.data)
            .where(table.c.run == number, table.c.first >= first, table.c.first < first + self.count)
            .order_by(table.c.first)
        ).all()
        return [tuple(row) for row in stored] == [(first + offset, *row) for offset, *row in self._rows]


def place(to: Transaction, run_id: str) -> tuple[int, int]:
    """(integer, next sequence) of a run."""
    place = to.live.get(run_id)
    if place is None:
        number = to.execute(sa.select(schema.runs.c.id).where(schema.runs.c.run_id == run_id)).scalar()
        if number is None:
            raise rows.no_run(run_id)
        place = to.live[run_id] = (number, next_sequence(to, number))
    return place


def next_sequence(to: Transaction, number: int) -> int:
    table = schema.events
    last = to.execute(
        sa.select(table.c.first + table.c.count).where(table.c.run == number).order_by(table.c.first.desc()).limit(1)
    ).scalar()
    return int(last) if last is not None else 0
