"""Outlines: what a timeline of a run is drawn from, without its messages.

An outline has an entry for each message: what kind it is, who did it, when, how it ended, how large it is. That of a
long run is written with it, in rows of `MAX_ENTRIES`; that of a short one is made from its messages when it is asked
for. Beside it is an overview of at most `MAX_SPANS` entries, each for a range of messages, so that a page can draw all
of a run however long it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.store import rows
from seatrial.store.documents import encode, unpack
from seatrial.store.items import READING_OF_RUN, Readings
from seatrial.store.rows import OutlineRow
from seatrial.store.schema import outlines, readings, runs, steps
from seatrial.trajectory.step import Moment, ProxyMode, Status, Step, milliseconds
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from seatrial.transcript.salvage import GENERATED_ID_PREFIX

MAX_ENTRIES = 1000
"""Entries of one row."""
MAX_SPANS = 512
"""Entries of an overview."""

ENTRIES, SPANS = range(2)
"""What `outlines.level` says."""

ItemKind: TypeAlias = Literal["system", "user", "assistant", "call", "result", "custom", "several"]
"""`call` is a message of the assistant with tool calls; `several` are messages of different kinds."""


class OutlineEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One message of a timeline, or in an overview a range of them."""

    first: int
    """The index of the message, or of the first of them."""
    count: int
    kind: ItemKind
    given: bool
    """Whether the run started from it: then it is not the agent's doing. Of several, whether that is so of all."""
    size: int
    """Bytes as JSON."""
    status: Status | None = None
    """How its calls ended, the worst of them; None where there are none, and `unknown` where that is not known."""
    started_at: float | None = None
    ended_at: float | None = None
    """Milliseconds since the epoch; None when the agent did not say. Nothing is made up from the order."""
    step: int | None = None
    """The index of the first step that was called or answered here."""
    name: str | None = None
    """The tool, where it is one."""
    actor: str | None = None
    mode: ProxyMode | None = None
    """How the tool proxy answered."""


_ENTRIES = msgspec.json.Decoder(list[OutlineEntry])
_WORST: tuple[Status | None, ...] = (None, "ok", "unknown", "cancelled", "timeout", "error")


def outline_rows(transcript: Transcript, steps: Sequence[Step]) -> list[OutlineRow]:
    """The rows of the outline of a run, and of its overview."""
    entries = list(outline_of(transcript, steps))
    spans = overview(entries)
    return [*_rows(ENTRIES, entries), *_rows(SPANS, spans)]


def outline_of(transcript: Transcript, steps: Sequence[Step]) -> Iterator[OutlineEntry]:
    """An entry for each message."""
    waiting: defaultdict[str | tuple[str, ...], list[Step]] = defaultdict(list)
    for step in reversed(steps):
        if step.id is not None:
            waiting[step.id].append(step)
        elif step.source in ("messages", "events"):
            # The call was sent without an id; the one that it has was made up by the reader.
            waiting[step.name,].append(step)
    called: dict[str, Step] = {}
    given = frozenset(transcript.given)
    for index, message in enumerate(transcript.messages):
        some: list[Step] = []
        status: Status | None = None
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if type(block) is ToolCall:
                    # Ids may occur again: calls and steps of one id belong together in their order.
                    made_up = block.id.startswith(GENERATED_ID_PREFIX) and index not in given
                    its_own = waiting[(block.name,) if made_up and not waiting[block.id] else block.id]
                    if its_own:
                        some.append(its_own.pop())
                        called[block.id] = some[-1]
                    else:
                        status = "unknown"
        elif isinstance(message, ToolResultMessage):
            status = "error" if message.is_error else "ok"
            if message.tool_call_id in called:
                some.append(called[message.tool_call_id])
        yield _entry(index, message, index in given, some, status)


def _entry(index: int, message: Message, given: bool, some: list[Step], status: Status | None) -> OutlineEntry:
    said = None if isinstance(message, CustomMessage) else message.timestamp
    starts = _moments([*[step.started_at for step in some], said])
    ends = _moments([*[step.ended_at for step in some], said])
    first = some[0] if some else None
    name = first.name if first is not None else None
    if isinstance(message, ToolResultMessage):
        # What the call took is drawn where it was made; its result is there at once.
        name = message.tool_name
        starts = ends = _moments([said])
    return OutlineEntry(
        first=index,
        count=1,
        kind=_kind(message),
        given=given,
        size=len(encode(message)),
        status=_worst([status, *[step.status for step in some]]),
        started_at=min(starts, default=None),
        ended_at=max(ends, default=None),
        step=first.index if first is not None else None,
        name=name,
        actor=first.actor if first is not None else None,
        mode=first.mode if first is not None else None,
    )


def _kind(message: Message) -> ItemKind:
    if isinstance(message, AssistantMessage):
        return "call" if any(type(block) is ToolCall for block in message.content) else "assistant"
    if isinstance(message, ToolResultMessage):
        return "result"
    if isinstance(message, UserMessage):
        return "user"
    return "system" if isinstance(message, SystemMessage) else "custom"


def overview(entries: Sequence[OutlineEntry]) -> list[OutlineEntry]:
    """At most `MAX_SPANS` entries for all of these."""
    size = -(-len(entries) // MAX_SPANS)
    return [_merged(entries[start : start + size]) for start in range(0, len(entries), size)] if size else []


def _merged(some: Sequence[OutlineEntry]) -> OutlineEntry:
    kinds = {entry.kind for entry in some}
    names = {entry.name for entry in some}
    actors = {entry.actor for entry in some}
    modes = {entry.mode for entry in some}
    return OutlineEntry(
        first=some[0].first,
        count=sum([entry.count for entry in some]),
        kind=some[0].kind if len(kinds) == 1 else "several",
        given=all(entry.given for entry in some),
        size=sum([entry.size for entry in some]),
        status=_worst([entry.status for entry in some]),
        started_at=min([entry.started_at for entry in some if entry.started_at is not None], default=None),
        ended_at=max([entry.ended_at for entry in some if entry.ended_at is not None], default=None),
        step=min([entry.step for entry in some if entry.step is not None], default=None),
        name=names.pop() if len(names) == 1 else None,
        actor=actors.pop() if len(actors) == 1 else None,
        mode=modes.pop() if len(modes) == 1 else None,
    )


def _worst(statuses: Collection[Status | None]) -> Status | None:
    return max(statuses, key=_WORST.index, default=None)


def _moments(moments: Iterable[Moment | None]) -> list[float]:
    return [at for moment in moments if moment is not None and (at := milliseconds(moment)) is not None]


def _rows(level: int, entries: Sequence[OutlineEntry]) -> Iterator[OutlineRow]:
    for first in range(0, len(entries), MAX_ENTRIES):
        some = entries[first : first + MAX_ENTRIES]
        yield OutlineRow(level=level, first=first, count=len(some), data=encode(some))


def outline_page(connection: sa.Connection, run_id: str, first: int, count: int) -> list[OutlineEntry]:
    """So many entries of the outline of a run, from the message with the index `first` on."""
    head = _head(connection, run_id)
    first, end = max(0, first), first + count
    if end <= first or head.run is None:
        return []
    if not head.outlined:
        return _made(connection, head.run)[first:end]
    begin = first - first % MAX_ENTRIES
    stored = _stored(connection, (outlines.c.level == ENTRIES) & outlines.c.first.between(begin, end - 1), head.run)
    found = [entry for entry in stored if first <= entry.first < end]
    if len(found) != max(0, min(end, head.messages) - first):
        raise _damaged(run_id)
    return found


def overview_of(connection: sa.Connection, run_id: str) -> list[OutlineEntry]:
    """The overview of a run."""
    head = _head(connection, run_id)
    if head.run is None:
        return []
    if not head.outlined:
        return overview(_made(connection, head.run))
    found = _stored(connection, outlines.c.level == SPANS, head.run)
    if sum([span.count for span in found]) != head.messages:
        raise _damaged(run_id)
    return found


def _head(connection: sa.Connection, run_id: str) -> sa.Row[Any]:
    """The integer `run`, None when there was no answer; how many `messages`; and whether it is `outlined`."""
    outlined = sa.exists().where(outlines.c.run == readings.c.run).label("outlined")
    head = connection.execute(READING_OF_RUN.add_columns(outlined).where(runs.c.run_id == run_id)).first()
    if head is None:
        raise rows.no_run(run_id)
    return head


def _stored(connection: sa.Connection, where: sa.ColumnElement[bool], number: int) -> list[OutlineEntry]:
    found: list[OutlineEntry] = []
    query = sa.select(outlines).where(outlines.c.run == number, where).order_by(outlines.c.first)
    for row in connection.execute(query):
        found.extend(_entries(row))
    return found


def _damaged(run_id: str) -> SeatrialError:
    return SeatrialError("damaged", f"the outline of run {run_id} is damaged: some of it is missing")


def _entries(row: sa.Row[Any]) -> list[OutlineEntry]:
    return wire.decode(unpack(row.packed, row.data), _ENTRIES)


def _made(connection: sa.Connection, number: int) -> list[OutlineEntry]:
    """The outline of a run that has none stored: it is short, or an earlier version wrote it."""
    reading = Readings(connection, [number]).reading(number)
    if reading is None:
        return []
    query = sa.select(steps.c.data).where(steps.c.run == number).order_by(steps.c.position)
    done = [wire.decode(row.data, rows.STEP) for row in connection.execute(query)]
    return list(outline_of(reading.transcript, done))
