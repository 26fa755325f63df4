"""Hashing what is neither short nor long without waiting for other threads."""

from __future__ import annotations

from typing import Protocol

PIECE = 2047
"""The most bytes that `hashlib` hashes without letting other threads run meanwhile."""
LONG = 1 << 16
"""Bytes that take longer to hash than it takes to have Python's lock back."""


class Hash(Protocol):
    """Any hash object of `hashlib`."""

    def update(self, data: bytes | memoryview, /) -> None: ...


def feed(hash_: Hash, data: bytes) -> None:
    """Hash bytes.

    For more than a `PIECE` at once, `hashlib` gives up Python's lock and then waits for it: with a busy thread beside,
    for much longer than the hashing of a few kilobytes takes.
    """
    if not PIECE < len(data) < LONG:
        hash_.update(data)
        return
    view = memoryview(data)
    for start in range(0, len(view), PIECE):
        hash_.update(view[start : start + PIECE])
