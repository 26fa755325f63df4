"""The event log of a run as it was sent, a page at a time."""

from __future__ import annotations

import msgspec

from seatrial.events.codec import EVENT_TYPES
from seatrial.explorer.markup import visible
from seatrial.explorer.render import address
from seatrial.store import Store

AT_ONCE = 200
"""Events on a page."""
MAX_EVENT = 1_000
"""Characters of one event."""
MAX_LOOKED_AT = 10_000
"""Events that are looked at for a page that has only some types."""


class EventLine(msgspec.Struct, frozen=True):
    """One event."""

    sequence: int
    type: str
    text: str
    rest: int
    """Bytes that are not shown."""


class EventsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a run that follow each other."""

    run_id: str
    lines: list[EventLine]
    types: list[str]
    """Only these are shown; all when there are none."""
    unknown: list[str]
    """What was asked for and is no type of event."""
    looked_at: int
    first: int
    """The sequence of the first event that was looked at."""
    kept_from: int
    """The first sequence that is kept."""
    head: int
    """The last sequence."""
    after: str | None
    before: str | None
    ended: bool


def events_page(store: Store, run_id: str, after: int, types: list[str]) -> EventsPage:
    """Events behind a sequence, of these types."""
    head = store.run_head(run_id)
    wanted = frozenset(types)
    lines: list[EventLine] = []
    at, looked_at, first = after, 0, after + 1
    while len(lines) < AT_ONCE and looked_at < MAX_LOOKED_AT:
        some = store.events(run_id, after=at, limit=AT_ONCE if not wanted else 1000)
        if not some:
            break
        if not looked_at:
            first = some[0][0]
        for sequence, event in some:
            at = sequence
            looked_at += 1
            kind = _type_of(event)
            if not wanted or kind in wanted:
                lines.append(event_line(sequence, event, kind))
                if len(lines) == AT_ONCE:
                    break
    chosen = ",".join(types) or None
    before = after - AT_ONCE
    more = at < head.following - 1
    return EventsPage(
        run_id=run_id,
        lines=lines,
        types=types,
        unknown=[name for name in types if name not in EVENT_TYPES],
        looked_at=looked_at,
        first=first,
        kept_from=head.first,
        head=head.following - 1,
        after=address("runs", run_id, "events", after=at, types=chosen) if more else None,
        before=address("runs", run_id, "events", after=before if before >= 0 else None, types=chosen)
        if after >= head.first
        else None,
        ended=head.closed,
    )


class _Typed(msgspec.Struct):
    type: str = ""


_TYPE = msgspec.json.Decoder(_Typed)


def _type_of(event: bytes) -> str:
    try:
        return _TYPE.decode(event).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def event_line(sequence: int, event: bytes, kind: str | None = None) -> EventLine:
    """An event as a page shows it."""
    kind = _type_of(event) if kind is None else kind
    text = event[: 4 * MAX_EVENT].decode("utf-8", "ignore")[:MAX_EVENT]
    return EventLine(sequence, visible(kind[:60]), visible(text), len(event) - len(text.encode()))
