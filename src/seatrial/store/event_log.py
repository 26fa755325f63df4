"""The event logs of runs: appending to them, and reading them by range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store.database import SMALL, Transaction
from seatrial.store.documents import PACK_FROM, Packer, unpack
from seatrial.store.rows import UNFINISHED, EventsRow, no_run
from seatrial.store.schema import events, runs

MAX_EVENTS_A_ROW = 256
MAX_EVENT_BYTES_A_ROW = 64 * 1024
"""Beyond either, an append takes several rows: a reader of the end of a long run unpacks little."""

_LINE_BREAK = 10  # an integer is looked for several times faster than bytes are

_BEYOND = 2**62  # no run has so many events, and no database a much larger number


class AppendEvents(msgspec.Struct, eq=False, gc=False):
    """Store events of a run that was begun, behind those it has. Gives the sequence of the last.

    Much of what a store does is this, for one small event at a time. So it is a Struct, which is made in a third of the
    time that another object takes, and `append` is how it is made.
    """

    run_id: str
    lines: bytes
    expected: int | None
    """The sequence of the first of them, when the caller knows."""
    size: int
    count: int = 1
    ready: bool = True
    rows: list[EventsRow] | None = None
    """None for one event that is not worth compressing."""
    tried: int | None = None
    """The sequence that they were given in the last transaction."""
    unsure: bool = False

    def prepare(self, packer: Packer) -> None:
        self.rows = divided(self.lines, self.count)
        packer.add(self.rows)

    def run(self, to: Transaction) -> int | SeatrialError:
        run_id, expected = self.run_id, self.expected
        known = to.live.get(run_id)
        if known is None or to.careful or (expected is not None and expected != known[1]):
            found = self._found(to)
            if not isinstance(found, tuple):
                return found
            known = found
        number, first = known
        self.tried = first
        following = first + self.count
        if self.rows is None:
            to.events.append(EventsRow(run=number, first=first, count=1, data=self.lines))
        else:
            add_events(to, number, first, self.rows)
        to.live[run_id] = (number, following)
        to.changed.append(run_id)
        return following - 1

    def _found(self, to: Transaction) -> tuple[int, int] | int | SeatrialError:
        """Where to append, as the database has it: another process may have appended, too, or ended the run."""
        run_id = self.run_id
        found = find(to, run_id)
        if found is None:
            return no_run(run_id)
        stored = self.rows if self.rows is not None else [EventsRow(count=1, data=self.lines)]
        # The same events may stand there because another process appended them, so being there is not enough.
        if self.unsure and self.tried is not None and are_at(to, found.id, self.tried, stored):
            return self.tried + self.count - 1  # the commit that broke off went through
        if found.status not in UNFINISHED:
            to.live.pop(run_id, None)
            return SeatrialError("run_ended", f"run {run_id} has ended, and takes no more events")
        if self.expected is not None and self.expected != found.following:
            return sequence_conflict(run_id, found.following, self.expected)
        return found.id, found.following


def append(run_id: str, events: Sequence[bytes], first: int | None) -> AppendEvents:
    """The operation that appends these events."""
    count = len(events)
    if count == 1:
        event = events[0]
        if len(event) < PACK_FROM and _LINE_BREAK not in event:
            return AppendEvents(run_id, event, first, SMALL + len(event))
    lines = joined(events)
    return AppendEvents(run_id, lines, first, SMALL + len(lines), count, ready=False)


def joined(events: Sequence[bytes]) -> bytes:
    """Events as lines, one each."""
    if _LINE_BREAK in b"".join(events):
        # Inside JSON it is white space: a space says the same, and keeps each event on its own line.
        events = [event.replace(b"\n", b" ") for event in events]
    return b"\n".join(events)


def divided(lines: bytes, count: int) -> list[EventsRow]:
    """The rows for so many lines, the first of them with sequence 0: several when they are too much for one."""
    if len(lines) <= MAX_EVENT_BYTES_A_ROW and count <= MAX_EVENTS_A_ROW:
        return [EventsRow(count=count, data=lines)] if count else []
    events = lines.split(b"\n")
    found: list[EventsRow] = []
    start = size = 0
    for index, event in enumerate(events):
        if index > start and (size + len(event) > MAX_EVENT_BYTES_A_ROW or index - start == MAX_EVENTS_A_ROW):
            found.append(EventsRow(first=start, count=index - start, data=b"\n".join(events[start:index])))
            start, size = index, 0
        size += len(event)
    found.append(EventsRow(first=start, count=count - start, data=b"\n".join(events[start:])))
    return found


def add_events(to: Transaction, number: int, first: int, rows: list[EventsRow]) -> None:
    """Gather rows of events of a run, the first of them with this sequence."""
    _place_at(number, first, rows)
    to.events += rows


def are_at(to: Transaction, number: int, first: int, rows: list[EventsRow]) -> bool:
    """Whether just these rows of events are stored from this sequence on."""
    following = first + sum([row.count for row in rows])
    stored = to.execute(
        sa.select(events)
        .where(events.c.run == number, events.c.first >= first, events.c.first < following)
        .order_by(events.c.first)
    ).mappings()
    _place_at(number, first, rows)
    return [EventsRow(**row) for row in stored] == rows


def _place_at(number: int, first: int, rows: list[EventsRow]) -> None:
    for row in rows:
        row.run, row.first = number, first
        first += row.count


def find(to: Transaction, run_id: str) -> sa.Row[Any] | None:
    """The integer `id`, the `status` and the `following` sequence of a run.

    In one query, and so as of one moment: a run that another process ends meanwhile has its terminal event and its
    status, or neither.
    """
    return to.execute(_FIND, run_id=run_id).first()


def following() -> sa.Label[int]:
    """The sequence of the next event of a run, in a query for runs."""
    last = sa.select(events.c.first + events.c.count).where(events.c.run == runs.c.id)
    return sa.func.coalesce(last.order_by(events.c.first.desc()).limit(1).scalar_subquery(), 0).label("following")


def sequence_conflict(run_id: str, following: int, expected: int) -> SeatrialError:
    """The error for events that were to be stored at another place than behind the last one."""
    return SeatrialError(
        "sequence_conflict",
        f"the next event of run {run_id} is {following}, but {expected} was to be appended",
        details={"head": following - 1},
    )


def event_page(connection: sa.Connection, run_id: str, after: int, limit: int) -> list[tuple[int, bytes]]:
    """(sequence, event) of at most `limit` events behind the sequence `after`."""
    after = min(after, _BEYOND)
    place = connection.execute(_PLACE, {"run_id": run_id, "wanted": after + 1}).first()
    if place is None:
        raise no_run(run_id)
    holding = place.holding
    if holding is None:
        if place.first_kept is None:
            return []
        holding, after = place.first_kept, place.first_kept - 1
    stored = connection.execute(_EVENTS, {"number": place.id, "first": holding, "last": after + limit})
    found: list[tuple[int, bytes]] = []
    for row in stored:
        skipped = max(0, after + 1 - row.first)
        found.extend(enumerate(unpack(row.packed, row.data).split(b"\n")[skipped:], row.first + skipped))
    return found[:limit]


def _place() -> sa.Select[Any]:
    # The event that is wanted stands in the last row that begins at it or before it, unless it was forgotten.
    of_run = events.c.run == runs.c.id
    holding = sa.select(sa.func.max(events.c.first)).where(of_run, events.c.first <= sa.bindparam("wanted"))
    first_kept = sa.select(sa.func.min(events.c.first)).where(of_run)
    return sa.select(
        runs.c.id, holding.scalar_subquery().label("holding"), first_kept.scalar_subquery().label("first_kept")
    ).where(runs.c.run_id == sa.bindparam("run_id"))


_PLACE = _place()
_FIND = sa.select(runs.c.id, runs.c.status, following()).where(runs.c.run_id == sa.bindparam("run_id"))
_EVENTS = (
    sa.select(events.c.first, events.c.packed, events.c.data)
    .where(events.c.run == sa.bindparam("number"), events.c.first.between(sa.bindparam("first"), sa.bindparam("last")))
    .order_by(events.c.first)
)
