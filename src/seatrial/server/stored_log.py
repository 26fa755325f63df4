"""What the store has of a run's events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from seatrial.events import Event, EventReader
from seatrial.events.order import Order
from seatrial.store import Store
from seatrial.transcript import Note

EVENTS_AT_ONCE = 2000


class StoredEvent(NamedTuple):
    sequence: int
    data: bytes
    event: Event


class StoredLog(msgspec.Struct):
    """All events of a run, and where its log stands."""

    events: list[Event]
    order: Order
    following: int
    """The sequence that the next event will have."""
    notes: list[Note]
    """What had to be repaired; pointers are indices of events."""


def stored_events(store: Store, run_id: str, reader: EventReader | None = None) -> Iterator[StoredEvent]:
    """The events of a run in their order, by a reader that is to know what was opened. Blocks."""
    reader = EventReader() if reader is None else reader
    after = -1
    while page := store.events(run_id, after=after, limit=EVENTS_AT_ONCE):
        for sequence, data in page:
            yield StoredEvent(sequence, data, reader.read(data, sequence))
        after = page[-1][0]


def read_log(store: Store, run_id: str) -> StoredLog:
    """Read the whole log of a run. Blocks."""
    reader = EventReader()
    log = StoredLog([], Order(), 0, reader.notes)
    for sequence, _, event in stored_events(store, run_id, reader):
        log.order.feed(event)
        log.events.append(event)
        log.following = sequence + 1
    return log
