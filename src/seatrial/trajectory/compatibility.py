"""Which steps each item is compatible with, found out when it is asked and only once."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.time_limit import check_time
from seatrial.trajectory.assign import bits
from seatrial.trajectory.item import ExpectedCall, fits, is_name_only
from seatrial.trajectory.names import Names
from seatrial.trajectory.step import Step


class Compatibility:
    """A table of items and steps. Names are looked up first, so that only steps of the right tools are compared."""

    def __init__(self, items: Sequence[ExpectedCall], steps: Sequence[Step]) -> None:
        self._items = items
        self._steps = steps
        self._by_name: dict[str, int] = {}
        for index, step in enumerate(steps):
            self._by_name[step.name] = self._by_name.get(step.name, 0) | 1 << index
        self._open: list[int] = []
        """For each item, the steps that it has not been compared with."""
        self._fit: list[int] = []
        for item in items:
            candidates = self._named(item.tool)
            self._open.append(0 if is_name_only(item) else candidates)
            self._fit.append(candidates if is_name_only(item) else 0)

    def rows(self) -> list[int]:
        """For each item the steps that fit it, one bit each."""
        for item, left in enumerate(self._open):
            for step in bits(left):
                self._compare(item, step)
        return self._fit

    def leftmost(self) -> list[int] | None:
        """For each item the first step that fits it after that of the item before, or None when one has none."""
        found: list[int] = []
        after = 0
        for item in range(len(self._items)):
            left = (self._open[item] | self._fit[item]) >> after << after
            while left:
                step = (left & -left).bit_length() - 1
                if self._compare(item, step):
                    break
                left &= left - 1
            else:
                return None
            found.append(step)
            after = step + 1
        return found

    def _compare(self, item: int, step: int) -> bool:
        bit = 1 << step
        if self._open[item] & bit:
            self._open[item] ^= bit
            check_time()
            if fits(self._items[item], self._steps[step]):
                self._fit[item] |= bit
        return bool(self._fit[item] & bit)

    def _named(self, tool: Names) -> int:
        if tool.globs is None:
            names = [name for name in tool.plain if name in self._by_name]
        else:
            names = [name for name in self._by_name if tool.fits(name)]
        union = 0
        for name in names:
            union |= self._by_name[name]
        return union
