"""How the time that something takes grows with its size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TRIES = 3


def growth(prepare: Callable[[int], Callable[[], object]], small: int, large: int) -> float:
    """How many times as long the large size takes, without what it takes to prepare it.

    In time of our own on a processor, and the best of several tries in turns: what else the machine does can make a
    try slower, but none faster. Nothing is collected meanwhile: what that takes grows with all that the process holds.
    """
    best = {small: float("inf"), large: float("inf")}
    for _ in range(_TRIES):
        for size in best:
            work = prepare(size)
            with _uncollected():
                began = time.process_time()
                work()
                best[size] = min(best[size], time.process_time() - began)
    return best[large] / best[small]


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
