"""The definition of the matcher, word by word and without a thought for speed: every assignment is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

Pairs = list[tuple[int, int]]


def assignments(rows: list[int], width: int, item: int = 0, used: int = 0) -> Iterator[Pairs]:
    """Every one-to-one assignment of compatible items and steps, partial ones too."""
    if item == len(rows):
        yield []
        return
    yield from assignments(rows, width, item + 1, used)
    for step in range(width):
        if rows[item] >> step & 1 and not used >> step & 1:
            for rest in assignments(rows, width, item + 1, used | 1 << step):
                yield [(item, step), *rest]


def best(rows: list[int], width: int, legal: Callable[[Pairs], bool] = lambda pairs: True) -> Pairs:
    """The largest legal one; among those the smallest steps by expected item, then the smallest items."""
    return min(
        (pairs for pairs in assignments(rows, width) if legal(pairs)),
        key=lambda pairs: (-len(pairs), [step for _, step in pairs], [item for item, _ in pairs]),
    )


def ascending(pairs: Pairs) -> bool:
    """Whether the steps come in the order of their items."""
    return all(one[1] < other[1] for one, other in pairwise(pairs))


def respects(before: list[int]) -> Callable[[Pairs], bool]:
    """Whether no item has a step before that of an item that comes before it."""
    return lambda pairs: all(
        not before[later] >> item & 1 or step < step_of_later for item, step in pairs for later, step_of_later in pairs
    )
