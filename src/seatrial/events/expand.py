"""Chunks into start, content and end (events.md B6).

Each agent of a run has a lane, the parent agent too, and a lane holds at most one stream that is being put
together from chunks. A chunk without an id continues it; a chunk of something else, and most other events of
that agent, end it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from seatrial.events import types as t
from seatrial.events.violation import OrderFault, OrderViolation, Owner, agent, name_of, quoted

StreamKind: TypeAlias = Literal["text", "tool", "reasoning"]
Chunk: TypeAlias = t.TextMessageChunk | t.ToolCallChunk | t.ReasoningMessageChunk

CHUNKS: dict[type, StreamKind] = {
    t.TextMessageChunk: "text",
    t.ToolCallChunk: "tool",
    t.ReasoningMessageChunk: "reasoning",
}

# What an event other than a chunk does to the lanes; all others end the stream of their own agent.
ENDS_ALL = (t.RunStarted, t.RunFinished, t.RunError, t.MessagesSnapshot)
ENDS_NONE = (t.RawEvent, t.ActivitySnapshot, t.ActivityDelta, t.ReasoningEncryptedValue, t.SubagentStarted)


Established: TypeAlias = tuple[tuple[str, str | UnsetType], ...]


class _Stream(msgspec.Struct):
    """A stream that chunks are building."""

    kind: StreamKind
    id: str
    established: Established
    """What the opener said; a later chunk may repeat it but not change it."""

    def goes_on(self, kind: StreamKind, chunk_id: str | UnsetType) -> bool:
        """Whether a chunk of that kind and id, in the same lane, continues this stream."""
        return self.kind == kind and (chunk_id is UNSET or chunk_id == self.id)


def expand(events: Iterable[t.Event]) -> tuple[list[t.Event], OrderViolation | None]:
    """The events without chunks, up to the first chunk that cannot be expanded, and what is wrong with that one."""
    expander = Expander()
    expanded: list[t.Event] = []
    for index, event in enumerate(events):
        result = expander.feed(event, index)
        if isinstance(result, OrderViolation):
            return expanded, result
        expanded += result
    return expanded, None


class Expander:
    """The open streams of every lane."""

    def __init__(self) -> None:
        self.lanes: dict[Owner, _Stream] = {}
        """While this is empty, every event but a chunk stands for itself."""
        self._holders: dict[StreamKind, dict[str, Owner]] = {"text": {}, "tool": {}, "reasoning": {}}
        """Which lane holds an id."""

    def feed(self, event: t.Event, index: int) -> list[t.Event] | OrderViolation:
        """What the event with this index stands for; or why it stands for nothing, and then it changes nothing."""
        kind = CHUNKS.get(type(event))
        if kind is not None:
            result = self._chunk(event, kind)  # type: ignore[arg-type]  # in CHUNKS, so it is one
            return OrderViolation(index, *result) if isinstance(result, OrderFault) else result
        if not self.lanes or isinstance(event, ENDS_NONE):
            return [event]
        if isinstance(event, ENDS_ALL):
            return [*[self._end(lane) for lane in list(self.lanes)], event]
        lane = event.subagent_run_id
        return [self._end(lane), event] if lane in self.lanes else [event]

    def holder(self, kind: StreamKind, item: str) -> Owner | None:
        """The lane in which chunks are building this; None when none is."""
        return self._holders[kind].get(item)

    def return_to(self, lanes: dict[Owner, _Stream]) -> None:
        """Forget what happened since `lanes` were like this."""
        self.lanes.clear()
        self.lanes.update(lanes)
        for kind, holders in self._holders.items():
            holders.clear()
            holders.update({stream.id: lane for lane, stream in lanes.items() if stream.kind == kind})

    def _chunk(self, chunk: Chunk, kind: StreamKind) -> list[t.Event] | OrderFault:
        chunk_id = chunk.tool_call_id if isinstance(chunk, t.ToolCallChunk) else chunk.message_id
        lane = chunk.subagent_run_id
        stream = self.lanes.get(lane)
        if stream is None or not stream.goes_on(kind, chunk_id):
            found = self._lane(chunk, kind, chunk_id)
            if isinstance(found, OrderFault):
                return found
            lane = found
            stream = self.lanes.get(lane)
            if stream is None or not stream.goes_on(kind, chunk_id):
                return self._opened(chunk, kind, chunk_id, lane)
        for field, value in stream.established:
            repeated = getattr(chunk, field)
            if repeated is not UNSET and repeated != value:
                changed = f"the {field} of {quoted(stream.id)} from {quoted(value)} to {quoted(repeated)}"
                return OrderFault("chunk_changed", f"{name_of(chunk)} changes {changed}")
        if chunk.delta is UNSET and chunk.metadata is UNSET and chunk.raw_event is UNSET:
            return []
        return [_content(chunk, stream.id, lane)]

    def _opened(
        self, chunk: Chunk, kind: StreamKind, chunk_id: str | UnsetType, lane: Owner
    ) -> list[t.Event] | OrderFault:
        if chunk_id is UNSET:
            return OrderFault("chunk_without_id", f"{name_of(chunk)} has no id, and no open stream to continue")
        started = _start(chunk, chunk_id)
        if isinstance(started, OrderFault):
            return started
        start, established = started
        opened = [self._end(lane), start] if lane in self.lanes else [start]
        self.lanes[lane] = _Stream(kind, chunk_id, established)
        self._holders[kind][chunk_id] = lane
        # Metadata alone makes no content event here: the opener has it already.
        if chunk.delta is not UNSET or chunk.raw_event is not UNSET:
            opened.append(_content(chunk, chunk_id, lane))
        return opened

    def _lane(self, chunk: Chunk, kind: StreamKind, chunk_id: str | UnsetType) -> Owner | OrderFault:
        tag = chunk.subagent_run_id
        holders = self._holders[kind]
        if chunk_id is not UNSET:
            if chunk_id not in holders:
                return tag
            holder = holders[chunk_id]
            if tag is not UNSET and tag != holder:
                whose = f"{agent(tag)}, but {quoted(chunk_id)} belongs to {agent(holder)}"
                return OrderFault("attribution", f"{name_of(chunk)} is attributed to {whose}")
            return holder
        if tag is not UNSET:
            return tag
        parent = self.lanes.get(UNSET)
        if (parent is not None and parent.kind == kind) or not holders:
            return UNSET
        # Producers that attribute only the first chunk: what else could this one continue?
        if len(holders) == 1:
            return next(iter(holders.values()))
        several = f"could continue {len(holders)} streams"
        return OrderFault("chunk_ambiguous", f"{name_of(chunk)} has no id and no attribution, and {several}")

    def _end(self, lane: Owner) -> t.Event:
        stream = self.lanes.pop(lane)
        del self._holders[stream.kind][stream.id]
        if stream.kind == "text":
            return t.TextMessageEnd(message_id=stream.id, subagent_run_id=lane)
        if stream.kind == "tool":
            return t.ToolCallEnd(tool_call_id=stream.id, subagent_run_id=lane)
        return t.ReasoningMessageEnd(message_id=stream.id, subagent_run_id=lane)


def _start(chunk: Chunk, chunk_id: str) -> tuple[t.Event, Established] | OrderFault:
    """The opening event, and what it establishes."""
    start: t.TextMessageStart | t.ToolCallStart | t.ReasoningMessageStart
    established: Established = ()
    if isinstance(chunk, t.TextMessageChunk):
        role = "assistant" if chunk.role is UNSET else chunk.role
        start = t.TextMessageStart(message_id=chunk_id, role=role, name=chunk.name)
        established = (("role", role), ("name", chunk.name))
    elif isinstance(chunk, t.ReasoningMessageChunk):
        start = t.ReasoningMessageStart(message_id=chunk_id)
    else:
        name, parent = chunk.tool_call_name, chunk.parent_message_id
        if name is UNSET:
            return OrderFault(
                "chunk_without_name", f"{name_of(chunk)} opens tool call {quoted(chunk_id)} without a tool name"
            )
        start = t.ToolCallStart(tool_call_id=chunk_id, tool_call_name=name, parent_message_id=parent)
        established = (("tool_call_name", name), ("parent_message_id", parent))
    _carry(chunk, start, chunk.subagent_run_id)
    return start, established


def _content(chunk: Chunk, stream_id: str, lane: Owner) -> t.Event:
    """The content event of a chunk. Its own attribution never differs from the lane."""
    delta = "" if chunk.delta is UNSET else chunk.delta
    content: t.TextMessageContent | t.ToolCallArgs | t.ReasoningMessageContent
    if isinstance(chunk, t.TextMessageChunk):
        content = t.TextMessageContent(message_id=stream_id, delta=delta)
    elif isinstance(chunk, t.ToolCallChunk):
        content = t.ToolCallArgs(tool_call_id=stream_id, delta=delta)
    else:
        content = t.ReasoningMessageContent(message_id=stream_id, delta=delta)
    if chunk.raw_event is not UNSET:
        content.raw_event = chunk.raw_event
    _carry(chunk, content, lane)
    return content


def _carry(chunk: Chunk, event: t.AgentEvent, lane: Owner) -> None:
    """Give an event what its chunk has. Most have nothing, and to set a field is dearer than to look at it."""
    if lane is not UNSET:
        event.subagent_run_id = lane
    if chunk.metadata is not UNSET:
        event.metadata = chunk.metadata
    if chunk.timestamp is not UNSET:
        event.timestamp = chunk.timestamp
