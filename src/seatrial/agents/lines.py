"""Lines out of chunks of any size, where one that is too long costs nothing but itself."""

from __future__ import annotations


class Lines:
    """Cuts chunks into lines without their ends, and counts them. The cost is linear in the bytes."""

    def __init__(self, limit: int) -> None:
        self.number = 0
        """Of the line that was given last, from 1; blank ones count."""
        self._limit = limit
        self._open = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[tuple[int, bytes | None]]:
        """The lines that this chunk completes, with their numbers; None in the place of one that is too long."""
        *ended, rest = chunk.split(b"\n")
        lines = [self._end(part) for part in ended]
        self._add(rest)
        return lines

    def close(self) -> list[tuple[int, bytes | None]]:
        """The last line, when it lacks its end."""
        return [self._end(b"")] if self._open or self._skipping else []

    def _add(self, part: bytes) -> None:
        if not self._skipping:
            self._open += part
            if len(self._open) > self._limit:
                self._skipping = True
                self._open.clear()

    def _end(self, part: bytes) -> tuple[int, bytes | None]:
        self._add(part)
        self.number += 1
        line = None if self._skipping else bytes(self._open)
        self._skipping = False
        self._open.clear()
        return self.number, line
