"""Python's garbage collector while there is much to do."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 50_000
"""Objects more than before after which the collector looks for cycles among the new ones; Python's own is 700."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the collector look less often.

    Modules are never garbage, and runs are freed without it. With a thousand of them under way there are always many
    new objects, hardly any of them garbage, and they are looked through again and again. A collector that was switched
    off, or made to look more rarely still, stays as it is.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < NEW_OBJECTS:
        yield
        return
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
