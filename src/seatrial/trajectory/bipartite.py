"""The largest assignment of items to steps in any order, where compatibility is more than equality.

A maximum bipartite matching by augmenting paths, then made the smallest one (see `assign`) by exchanges along
alternating paths. One breadth-first search costs at most as many set operations as there are items. The matching takes
one search for each item; making it the smallest takes one for each item that could be passed over, for each pair.
"""

from __future__ import annotations

from seatrial.time_limit import check_time
from seatrial.trajectory.assign import Assignment, bits


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
