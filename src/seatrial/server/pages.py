"""What the store has of a thread or a run, as resources. Every function blocks."""

from __future__ import annotations

import msgspec

from seatrial.api import EventPage, Thread
from seatrial.errors import SeatrialError
from seatrial.events import envelope_bytes, envelope_head
from seatrial.server.block import native_event
from seatrial.server.history import Histories
from seatrial.store import Store


def thread(store: Store, histories: Histories, thread_id: str) -> Thread:
    """A conversation: its runs, and what they add up to."""
    runs = store.thread_runs(thread_id)
    if not runs:
        raise SeatrialError("not_found", f"there is no thread {thread_id!r}")
    history = histories.of(thread_id, runs)
    return Thread(
        thread_id=thread_id,
        runs=runs,
        messages=[msgspec.to_builtins(message) for message in history.messages],
        state=history.state,
        active_run_id=None if runs[-1].ended_at is not None else runs[-1].run_id,
    )


def events(store: Store, run_id: str, after: int | None, limit: int) -> EventPage:
    """Events of any run, those behind `after`; a gap is an error, as it is in a stream."""
    head = store.run_head(run_id)
    if after is not None and after >= head.following:
        raise SeatrialError("cursor_ahead", f"the run has no event {after} yet", details={"head": head.following - 1})
    wanted = 0 if after is None else after + 1
    if wanted < head.first:
        raise SeatrialError(
            "cursor_expired", f"events before {head.first} are not kept any more", details={"first": head.first}
        )
    page = store.events(run_id, after=wanted - 1, limit=limit)
    start = envelope_head(run_id, head.thread_id)
    last = page[-1][0] if page else wanted - 1
    more = last + 1 < head.following
    return EventPage(
        run_id=run_id,
        thread_id=head.thread_id,
        events=[msgspec.Raw(envelope_bytes(start, sequence, native_event(data))) for sequence, data in page],
        next=last if more else None,
        closed=head.closed and not more,
    )
