"""The last events of a run, in memory: what those who keep up are given, without asking the store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from seatrial.server.block import Block, Framing

BLOCK_BYTES = 32 * 1024
"""Those who are behind get this much at once; an event that is larger alone comes alone."""
WINDOW_BYTES = 1024 * 1024
KEPT_BYTES = 64 * 1024
"""What is kept of events that all have been given: somebody may come back after a short break."""
JOINED_AT_MOST = 16
"""Positions for which it is remembered what comes next. Those who keep up are at the same one."""
EVENT_OVERHEAD = 64
"""What an event takes in memory beside its bytes."""


class Window:
    """Blocks of events without a gap between them, up to the end of the log as it is known here."""

    def __init__(self, framing: Framing, following: int) -> None:
        self._framing = framing
        self._blocks: list[Block] = []
        self._size = 0
        self._joined: dict[int, Block] = {}
        """What those at a position are given next: all of them the same, until there is more."""
        self.base = following
        """The sequence of the first event that is here."""
        self.following = following
        """The sequence that the next event will have."""

    def append(self, events: Sequence[bytes]) -> None:
        """Add events behind the last one."""
        start = size = 0
        for index, event in enumerate(events):
            if index > start and size + len(event) > BLOCK_BYTES:
                self._add(events[start:index])
                start, size = index, 0
            size += len(event)
        self._add(events[start:])
        self._joined.clear()
        self._drop(WINDOW_BYTES, self.following)

    def jump(self, following: int) -> None:
        """There is more in the store, up to here; whoever wants it reads it there."""
        self._blocks.clear()
        self._joined.clear()
        self._size = 0
        self.base = self.following = following

    def holds(self, position: int) -> bool:
        """Whether everything behind this position is here."""
        return self.base <= position + 1 <= self.following

    def since(self, position: int) -> Block:
        """Some of the events behind this position, which is held and not the last."""
        block = self._joined.get(position)
        if block is None:
            if len(self._joined) == JOINED_AT_MOST:
                self._joined.clear()
            block = self._joined[position] = self._join(position)
        return block

    def release(self, position: int) -> None:
        """Let go of events up to this position, which all have been given."""
        self._drop(KEPT_BYTES, position + 1)

    def _add(self, events: Sequence[bytes]) -> None:
        block = Block(self._framing, self.following, events)
        self._blocks.append(block)
        self._size += block.size + EVENT_OVERHEAD * len(events)
        self.following = block.following

    def _drop(self, limit: int, before: int) -> None:
        """Drop the oldest blocks while the window is larger than this, and they lie wholly before a sequence."""
        dropped = 0
        for block in self._blocks:
            if self._size <= limit or block.following > before:
                break
            self._size -= block.size + EVENT_OVERHEAD * len(block.events)
            self.base = block.following
            dropped += 1
        if dropped:
            del self._blocks[:dropped]
            self._joined.clear()

    def _join(self, position: int) -> Block:
        blocks = self._blocks
        index = bisect_right(blocks, position + 1, key=lambda block: block.first) - 1
        first = blocks[index].behind(position)
        end, size = index + 1, first.size
        while end < len(blocks) and size + blocks[end].size <= BLOCK_BYTES:
            size += blocks[end].size
            end += 1
        if end == index + 1:
            return first
        events = list(first.events)
        for block in blocks[index + 1 : end]:
            events += block.events
        return Block(self._framing, first.first, events)
