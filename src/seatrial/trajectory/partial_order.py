"""The largest assignment of items to steps that respects a partial order among the items.

Which item comes before which is given with everything that follows from it, so an item that is left out still keeps
those on its two sides apart. The problem is hard in general (any set of steps may be compatible with an item), so this
is a search with a budget; it is best-first, and uses what makes such problems easy as a rule:

- Steps are taken in order. A state is the next step and the items that may still get one. An item gets the step, which
  rules out those that had to come before it, or the step is passed over.
- A step is never passed over if a compatible item waits for nothing: to give it this step costs nothing.
- Of items that are alike in every respect only the first is tried.
- No state is better than the number of items that still have steps, counted together where they share the same ones.
- Items that share neither steps nor order are solved apart.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TypeAlias

from seatrial._support.time_limit import check_time
from seatrial.errors import SeatrialError
from seatrial.trajectory.assign import Assignment, bits

SEARCH_BUDGET = 2_000_000
"""Work before the search gives up, which is a second or two: for each state that is looked at, its number of items."""
Pairs: TypeAlias = dict[int, int]
"""Steps by item."""
CandidateSets: TypeAlias = tuple[int, ...]
"""For each item the steps it can get, one bit each."""
Trail: TypeAlias = "tuple[int, int, Trail] | None"
"""The last pair of a state, and the trail to it."""


def in_partial_order(rows: list[int], before: list[int], budget: int = SEARCH_BUDGET) -> Assignment:
    """The largest assignment in which f(u) < f(v) for every u in `before[v]`, among those the smallest (see `assign`).

    Raises `SeatrialError("search_budget")` when the search passes its budget.
    """
    search = _Search(rows, before, budget)
    witness = search.solve(tuple(rows))
    # Every way to have the smallest steps so far: unlike in other modes, which items have them can make a difference
    # to what comes after.
    front = [_Start([], [], tuple(rows), witness)]
    for missing in range(len(witness) - 1, -1, -1):
        reachable = 0
        for start in front:
            for row in start.rows:
                reachable |= row
        front = next(longer for step in bits(reachable) if (longer := _with_step(front, step, search, missing)))
    return front[0].items, front[0].steps


class _Start:
    """The first pairs of a largest assignment."""

    def __init__(self, items: list[int], steps: list[int], rows: CandidateSets, witness: Pairs) -> None:
        self.items = items
        self.steps = steps
        self.rows = rows
        """The steps that each item can still get; none for those that are matched or passed over."""
        self.witness = witness
        """One way to go on."""


def _with_step(front: list[_Start], step: int, search: _Search, missing: int) -> list[_Start]:
    """Every start with this step as the next, after which so many more matches are possible."""
    found: dict[CandidateSets, _Start] = {}
    for start in front:
        taken: list[int] = []
        check_time()
        for item, row in enumerate(start.rows):
            if not row >> step & 1 or any(search.leaves_more(other, item) for other in taken):
                continue
            rows = search.rows_after(start.rows, item, step)
            if start.witness.get(item) == step and min(start.witness) == item:
                witness = {later: its_step for later, its_step in start.witness.items() if later != item}
            else:
                witness = search.solve(rows, missing)
            if len(witness) == missing:
                taken.append(item)
                found.setdefault(rows, _Start([*start.items, item], [*start.steps, step], rows, witness))
    return list(found.values())


class _Search:
    """A problem, cut into independent parts, with what was found out about them so far."""

    def __init__(self, rows: list[int], before: list[int], budget: int) -> None:
        self._before = before
        self._after = [0] * len(rows)
        for item, earlier in enumerate(before):
            for other in bits(earlier):
                self._after[other] |= 1 << item
        self._parts = _parts(rows, before, self._after)
        self._solved: dict[tuple[int, CandidateSets], Pairs] = {}
        self._budget = budget

    def solve(self, rows: CandidateSets, least: int = 0) -> Pairs:
        """A largest assignment by these rows; fewer pairs than `least`, and not the largest, if that is not reached."""
        own = [tuple([rows[item] for item in part]) for part in self._parts]
        within = [
            min(len(part) - sub.count(0), _union(sub).bit_count()) for part, sub in zip(self._parts, own, strict=True)
        ]
        best = sum(within)
        pairs: Pairs = {}
        for index, part in enumerate(self._parts):
            if best < least:
                break
            known = self._solved.get((index, own[index]))
            if known is None:
                known = self._solved[index, own[index]] = self._solve_part(part, own[index])
            pairs.update(known)
            best -= within[index] - len(known)
        return pairs

    def rows_after(self, rows: CandidateSets, item: int, step: int) -> CandidateSets:
        """What the items after this one can still get once it has this step."""
        others = ~(1 << step)
        below = (1 << step) - 1
        before, after = self._before[item], self._after[item]
        return tuple(
            [
                0
                if other <= item
                else row & below
                if before >> other & 1
                else row & others & ~below
                if after >> other & 1
                else row & others
                for other, row in enumerate(rows)
            ]
        )

    def leaves_more(self, one: int, other: int) -> bool:
        """Whether whatever can follow once `other` has a step can follow as well if `one`, before it, has that step."""
        later = -2 << other
        return not (self._before[one] & later & ~self._before[other] or self._after[one] & later & ~self._after[other])

    def _solve_part(self, part: list[int], rows: CandidateSets) -> Pairs:
        place = {item: index for index, item in enumerate(part)}
        before, after = (
            [sum([1 << place[other] for other in bits(side[item]) if other in place]) for item in part]
            for side in (self._before, self._after)
        )
        pairs, self._budget = _best_first(rows, before, after, self._budget)
        return {part[item]: step for item, step in pairs.items()}


def _best_first(rows: CandidateSets, before: list[int], after: list[int], budget: int) -> tuple[Pairs, int]:
    """A largest assignment, and what is left of the budget."""
    steps = bits(_union(rows))
    compatible = [sum([1 << item for item, row in enumerate(rows) if row >> step & 1]) for step in steps]
    alive = [sum([1 << item for item, row in enumerate(rows) if row >> step]) for step in steps] + [0]
    sharing: dict[int, int] = {}
    for item, row in enumerate(rows):
        sharing[row] = sharing.get(row, 0) | 1 << item
    kinds = [(rows[item], before[item], after[item]) for item in range(len(rows))]
    best_known: dict[tuple[int, int], int] = {}
    heap: list[tuple[int, int, int, int, int, Trail]] = []

    def push(place: int, waiting: int, count: int, trail: Trail) -> None:
        waiting &= alive[place]
        while waiting and not waiting & compatible[place]:
            place += 1
            waiting &= alive[place]
        if best_known.get((place, waiting), -1) >= count:
            return
        best_known[place, waiting] = count
        most = 0
        if waiting:
            step = steps[place]
            for row, members in sharing.items():
                if members := members & waiting:
                    most += min(members.bit_count(), (row >> step).bit_count())
            most = min(most, len(steps) - place)
        # The number in the middle is unique, so that trails are never compared.
        heappush(heap, (-count - most, -place, len(best_known), waiting, count, trail))

    push(0, (1 << len(rows)) - 1, 0, None)
    while True:
        _, minus_place, _, waiting, count, trail = heappop(heap)
        if not waiting:
            return _pairs(trail), budget
        place = -minus_place
        if best_known[place, waiting] > count:
            continue
        check_time()
        budget -= len(rows)
        if budget < 0:
            raise SeatrialError(
                "search_budget",
                "the search for the best assignment in partial order passed its budget",
                hint="say more about the expected calls, or match fewer of them",
            )
        tried = set()
        passing_over = True
        for item in bits(waiting & compatible[place]):
            if kinds[item] in tried:
                continue
            tried.add(kinds[item])
            if not before[item] & waiting:
                passing_over = False
            push(place + 1, waiting & ~before[item] & ~(1 << item), count + 1, (item, steps[place], trail))
        if passing_over:
            push(place + 1, waiting, count, trail)


def _pairs(trail: Trail) -> Pairs:
    pairs: Pairs = {}
    while trail is not None:
        item, step, trail = trail
        pairs[item] = step
    return pairs


def _parts(rows: list[int], before: list[int], after: list[int]) -> list[list[int]]:
    """The items that can be matched at all, those together that share steps or order, directly or through others."""
    left = {item for item, row in enumerate(rows) if row}
    parts: list[list[int]] = []
    while left:
        part: list[int] = []
        queue = [left.pop()]
        for item in queue:
            part.append(item)
            near = before[item] | after[item]
            found = [other for other in left if near >> other & 1 or rows[item] & rows[other]]
            left.difference_update(found)
            queue.extend(found)
        parts.append(sorted(part))
    return parts


def _union(rows: CandidateSets) -> int:
    union = 0
    for row in rows:
        union |= row
    return union
