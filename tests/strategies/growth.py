"""How the time that something takes grows with its size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TRIES = 3


def growth(prepare: Callable[[int], Callable[[], object]], small: int, large: int, *, below: float) -> float:
    """How many times as long the large size takes, without what it takes to prepare it.

    In time of our own on a processor, and the best of several tries: what else the machine does can make a try slower,
    but none faster. The large size, which is most of the work, is tried again only while it is not `below`.
    """
    best_small = min(_taken_s(prepare(small)) for _ in range(_TRIES))
    best_large = float("inf")
    for _ in range(_TRIES):
        best_large = min(best_large, _taken_s(prepare(large)))
        if best_large < below * best_small:
            break
        best_small = min(best_small, _taken_s(prepare(small)))
    return best_large / best_small


def _taken_s(work: Callable[[], object]) -> float:
    # Nothing is collected meanwhile: what that takes grows with all that the process holds.
    with _uncollected():
        began = time.process_time()
        work()
        return time.process_time() - began


@contextmanager
def _uncollected() -> Iterator[None]:
    collected = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()
