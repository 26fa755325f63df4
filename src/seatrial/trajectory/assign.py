"""Optimal one-to-one assignments of expected items to steps, in order and in any order.

All of these find the largest assignment and, among the largest, the one with the lexicographically smallest steps:
write the matched pairs down by expected item; the sequence of their step indices is the smallest there is, and where
two assignments have the same steps, the sequence of their items is.

Plain items and steps come as keys that are equal or not; assigning those takes linear time in any order and
bit-parallel time in order. All others come as rows: for each item the steps it is compatible with, one bit each.
Sets are Python integers throughout, so that one operation handles a whole set.

With rows and in any order (`any_order`) it is a maximum bipartite matching by augmenting paths, then made the smallest
one by exchanges along alternating paths. One breadth-first search costs at most as many set operations as there are
items. The matching takes one search for each item; making it the smallest takes one for each item that could be passed
over, for each pair.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from math import isqrt
from typing import TypeVar, cast

from seatrial._support.time_limit import check_time

_MAX_TABLE_BITS = 1 << 28
"""32 MiB: what a table of in-order assignments may take before it is thinned."""
_LONG_BITS = 512
"""From where on the digits of a set are searched, and not the number."""
K = TypeVar("K", bound=Hashable)
Assignment = tuple[list[int], list[int]]
"""Matched items in ascending order, and the step of each."""


def in_order_by_key(expected: Sequence[K], actual: list[K]) -> Assignment:
    """The largest assignment that ascends on both sides, for items and steps that are equal or not."""
    if (steps := _leftmost(expected, actual)) is not None:
        return list(range(len(expected))), steps
    # Items and steps that start out equal are matched by some best assignment, and none begins with smaller steps.
    start = 0
    while start < len(expected) and start < len(actual) and expected[start] == actual[start]:
        start += 1
    places: dict[K, list[int]] = {}
    for index in range(start, len(expected)):
        places.setdefault(expected[index], []).append(index - start)
    columns = [places.get(actual[index], []) for index in range(start, len(actual))]
    sets: dict[K, int] = {}
    for bit, index in enumerate(range(len(actual) - 1, start - 1, -1)):
        if (key := actual[index]) in places:
            sets[key] = sets.get(key, 0) | 1 << bit
    items, steps = _in_order([sets.get(expected[index], 0) for index in range(start, len(expected))], columns)
    return (
        [*range(start), *(index + start for index in items)],
        [*range(start), *(index + start for index in steps)],
    )


def in_order(rows: list[int], width: int) -> Assignment:
    """The largest assignment that ascends on both sides, by rows over `width` steps."""
    columns: list[list[int]] = [[] for _ in range(width)]
    mirrored = []
    for item, row in enumerate(rows):
        check_time()
        for step in bits(row):
            columns[step].append(item)
        mirrored.append(int(f"{row:0{width}b}"[::-1], 2) if width else 0)
    return _in_order(mirrored, columns)


def any_order_by_key(expected: Sequence[K], actual: list[K]) -> Assignment:
    """The largest assignment in any order, for items and steps that are equal or not."""
    place_of = dict(zip(actual, range(len(actual)), strict=True))
    found = list(map(place_of.get, expected))
    items = (
        [item for item, place in enumerate(found) if place is not None] if None in found else list(range(len(found)))
    )
    places = [place_of[expected[item]] for item in items] if None in found else cast("list[int]", found)
    if len(place_of) == len(actual) and len(set(places)) == len(places):
        return items, places  # all different on both sides, so there is nothing to choose
    steps_of: dict[K, list[int]] = {}
    for step, key in enumerate(actual):
        steps_of.setdefault(key, []).append(step)
    left: dict[K, int] = {}
    for key in expected:
        left[key] = left.get(key, 0) + 1
    # How many items of a kind may still be passed over. Every kind gives its smallest steps to its items in order;
    # the only choice is which items, where there are more of them than steps.
    spare = {key: count - len(steps_of.get(key, ())) for key, count in left.items()}
    used = dict.fromkeys(left, 0)
    items = []
    steps: list[int] = []
    for item, key in enumerate(expected):
        own = steps_of.get(key)
        if own is None:
            continue
        if used[key] == len(own):
            spare[key] -= 1
            continue
        step = own[used[key]]
        while steps and steps[-1] > step and spare[last := expected[items[-1]]] > 0:
            items.pop()
            steps.pop()
            used[last] -= 1
            spare[last] -= 1
        items.append(item)
        steps.append(step)
        used[key] += 1
    return items, steps


def bits(number: int) -> list[int]:
    """The positions of the bits that are set, ascending."""
    found = []
    if number.bit_length() > _LONG_BITS:
        # Taking one bit after the other off a long number is quadratic; its digits are not.
        digits = bin(number)[:1:-1]
        place = digits.find("1")
        while place >= 0:
            found.append(place)
            place = digits.find("1", place + 1)
        return found
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


def _leftmost(expected: Sequence[K], actual: list[K]) -> list[int] | None:
    """The first place of each item after that of the item before it, or None when one has none."""
    steps = []
    start = 0
    try:
        for key in expected:
            start = actual.index(key, start) + 1
            steps.append(start - 1)
    except ValueError:
        return None
    return steps


def _in_order(rows: list[int], columns: list[list[int]]) -> Assignment:
    """Rows are mirrored: the last step is bit 0. Columns hold, for each step, the items it is compatible with.

    The table of the longest assignments of all suffixes is filled by rows from the end (the bit-parallel LCS of
    Hyyrö, which needs no equality, only which pairs are compatible): bit `b` of a row is 0 where one more step, the
    one with that bit, allows one more match. Walking from the start, each match takes the first step, and for that
    the first item, which leaves as many matches as are needed; an earlier item leaves no fewer than a later one.
    """
    width = len(columns)
    suffixes = _Suffixes(rows, width)
    missing = suffixes.longest(0, width)
    items: list[int] = []
    steps: list[int] = []
    first_item = 0
    for step, column in enumerate(columns):
        if not missing:
            break
        check_time()
        place = bisect_left(column, first_item)
        if place == len(column):
            continue
        item = column[place]
        if suffixes.leaves(missing - 1, item + 1, width - step - 1):
            items.append(item)
            steps.append(step)
            first_item = item + 1
            missing -= 1
    return items, steps


class _Suffixes:
    """The table: for the items from each one on, the row that tells how many of them can be matched.

    A table too large to be kept is thinned to every √n-th row; those between are made again when they are needed.
    """

    def __init__(self, rows: list[int], width: int) -> None:
        self._rows = rows
        self._full = (1 << width) - 1
        self._stride = 1 if len(rows) * width <= _MAX_TABLE_BITS else isqrt(len(rows))
        self._kept = {len(rows): self._full}
        self._block: list[int] = []
        self._block_start = 0
        row = self._full
        for item in range(len(rows) - 1, -1, -1):
            check_time()
            row = self._next(row, item)
            if item % self._stride == 0:
                self._kept[item] = row

    def longest(self, item: int, steps: int) -> int:
        """How many of the items from this one on can be matched with the last so many steps."""
        row = self._kept.get(item)
        return _zeros(self._between(item) if row is None else row, steps)

    def leaves(self, least: int, item: int, steps: int) -> bool:
        """Whether at least so many can be."""
        if self._stride > 1:
            # Rows descend: the ones kept on both sides decide most questions.
            start = item - item % self._stride
            if _zeros(self._kept[start], steps) < least:
                return False
            if _zeros(self._kept[min(start + self._stride, len(self._rows))], steps) >= least:
                return True
        return self.longest(item, steps) >= least

    def _between(self, item: int) -> int:
        if not self._block_start <= item < self._block_start + len(self._block):
            self._block_start = item - item % self._stride
            end = min(self._block_start + self._stride, len(self._rows))
            block = [self._kept[end]]
            check_time()
            for index in range(end - 1, self._block_start, -1):
                block.append(self._next(block[-1], index))
            block.append(self._kept[self._block_start])
            self._block = block[::-1]
        return self._block[item - self._block_start]

    def _next(self, row: int, item: int) -> int:
        common = row & self._rows[item]
        return ((row + common) | (row - common)) & self._full


def _zeros(row: int, steps: int) -> int:
    return steps - (row & ((1 << steps) - 1)).bit_count()


def any_order(rows: list[int], width: int) -> Assignment:
    """The largest assignment in any order, among those the smallest, by rows over `width` steps."""
    matching = _Matching(rows, width)
    missing = sum(matching.augment(item) for item in range(len(rows)))
    later = [0] * (len(rows) + 1)
    for item in range(len(rows) - 1, -1, -1):
        later[item] = later[item + 1] | rows[item]
    items: list[int] = []
    steps: list[int] = []
    first = 0
    while missing:
        item, step = _next_pair(matching, first, later)
        for passed in range(first, item):
            matching.release(passed)
        matching.fix(item, step)
        items.append(item)
        steps.append(step)
        first = item + 1
        missing -= 1
    return items, steps


def _next_pair(matching: _Matching, item: int, later: list[int]) -> tuple[int, int]:
    """The smallest step that this item can have, or one after it if all items up to that are passed over."""
    best = item, matching.smallest(item)
    trial: _Matching | None = None
    # Go on while some later item is compatible with a smaller step at all, and this one need not be matched.
    while (smaller := later[item + 1] & matching.open) and best[1] > _lowest(smaller):
        trial = trial or matching.copy()
        if not trial.release(item):
            break
        item += 1
        if (step := trial.smallest(item)) < best[1]:
            best = item, step
    return best


class _Matching:
    """A maximum matching of the items that are not passed over; some of its pairs are fixed."""

    def __init__(self, rows: list[int], width: int) -> None:
        self._rows = rows
        self._columns = [0] * width
        for item, row in enumerate(rows):
            for step in bits(row):
                self._columns[step] |= 1 << item
        self._step_of = [-1] * len(rows)
        self._item_of = [-1] * width
        self.open = (1 << width) - 1
        """Steps that no fixed pair has."""
        self._free = self.open
        """Steps that no pair has."""

    def copy(self) -> _Matching:
        """The same matching, to try something on."""
        other = object.__new__(_Matching)
        other.__dict__.update(self.__dict__)
        other._step_of = self._step_of.copy()
        other._item_of = self._item_of.copy()
        return other

    def augment(self, item: int) -> bool:
        """Match one more item, if that is possible; others may change their steps for it."""
        seen = 0
        reached_from: dict[int, int] = {}
        queue = [item]
        for reached in queue:
            check_time()
            new = self._rows[reached] & self.open & ~seen
            if new & self._free:
                step = _lowest(new & self._free)
                self._free ^= 1 << step
                while step >= 0:
                    before = self._step_of[reached]
                    self._pair(reached, step)
                    step, reached = before, reached_from.get(before, -1)
                return True
            seen |= new
            for step in bits(new):
                reached_from[step] = reached
                queue.append(self._item_of[step])
        return False

    def smallest(self, item: int) -> int:
        """The smallest step of this item in any maximum matching of it and the items after it; width when none."""
        candidates = self._rows[item] & self.open
        own = self._step_of[item]
        if own < 0:
            # Every candidate belongs to a later item, or the matching were not maximum; that item can give it up.
            return _lowest(candidates) if candidates else len(self._item_of)
        smaller = candidates & ((1 << own) - 1)
        if not smaller:
            return own
        lowest = _lowest(smaller)
        if self._free >> lowest & 1:
            return lowest
        # A step can be had if the item that has it can move on to a free step or to `own`, perhaps by moving others;
        # and every step can be had if an unmatched item can get `own` in that way, for then its loss makes no odds.
        after = -2 << item
        vacant = self._free & self.open | 1 << own
        movable = vacant
        seen = 0
        queue: list[int] = []
        for other in range(item + 1, len(self._rows)):
            if self._rows[other] & vacant:
                seen |= 1 << other
                queue.append(other)
        for other in queue:
            check_time()
            if (step := self._step_of[other]) < 0:
                return lowest
            movable |= 1 << step
            new = self._columns[step] & after & ~seen
            seen |= new
            queue.extend(bits(new))
        return _lowest(candidates & movable)

    def release(self, item: int) -> bool:
        """Pass over an item without losing a match among those after it; False, and no change, if that cannot be."""
        own = self._step_of[item]
        if own < 0:
            return True
        takes: dict[int, int] = {}
        seen = (2 << item) - 1
        queue = [own]
        for step in queue:
            check_time()
            new = self._columns[step] & ~seen
            seen |= new
            for other in bits(new):
                takes[other] = step
                if self._step_of[other] >= 0:
                    queue.append(self._step_of[other])
                    continue
                self._step_of[item] = -1
                while other != item:
                    step = takes[other]
                    previous = self._item_of[step]
                    self._pair(other, step)
                    other = previous
                return True
        return False

    def fix(self, item: int, step: int) -> None:
        """Give the item that step for good; the matching stays maximum, because `smallest` said that it can."""
        own, previous = self._step_of[item], self._item_of[step]
        self.open ^= 1 << step
        if own == step:
            return
        self._free &= self.open
        self._pair(item, step)
        if own >= 0:
            self._item_of[own] = -1
            self._free |= 1 << own
        if previous >= 0:
            self._step_of[previous] = -1
        if own >= 0 and previous >= 0 and not self.augment(previous):
            for other in range(item + 1, len(self._rows)):
                if self._step_of[other] < 0 and self.augment(other):
                    break

    def _pair(self, item: int, step: int) -> None:
        self._step_of[item] = step
        self._item_of[step] = item


def _lowest(number: int) -> int:
    return (number & -number).bit_length() - 1
