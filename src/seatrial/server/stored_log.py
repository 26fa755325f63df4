"""What the store has of a run's events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from seatrial.events import Event, EventReader
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
    first: int
    """The sequence of the first of them."""
    notes: list[Note]
    """What had to be repaired; pointers are sequences of events."""


def stored_events(store: Store, run_id: str, reader: EventReader) -> Iterator[StoredEvent]:
    """The events of a run in their order, by a reader that is to know what was opened. Blocks."""
    after = -1
    while page := store.events(run_id, after=after, limit=EVENTS_AT_ONCE):
        for sequence, data in page:
            yield StoredEvent(sequence, data, reader.read(data, sequence))
        after = page[-1][0]


def read_log(store: Store, run_id: str, pending: Sequence[bytes] = ()) -> StoredLog:
    """Read the whole log of a run, with events that are about to be stored. Blocks."""
    reader = EventReader()
    stored = list(stored_events(store, run_id, reader))
    following = stored[-1].sequence + 1 if stored else 0
    events = [event for _, _, event in stored]
    events += [reader.read(data, following + index) for index, data in enumerate(pending)]
    return StoredLog(events, stored[0].sequence if stored else 0, reader.notes)
