"""Timing: contenders take turns in one process, so that whatever slows the machine slows them all.

CPU time is measured, not wall time: nothing here waits, and the machine may be shared. The garbage collector stays
on, as in real use, but starts every sample with nothing of the others' to look through.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Collection
from statistics import median, quantiles

import msgspec

Work = Callable[[], object]

SAMPLE_NS = 10_000_000
"""A sample repeats its work until it lasts this long, far above the clock's own cost."""


class Ratio(msgspec.Struct, frozen=True):
    """How one contender's time relates to another's, taken round by round."""

    median: float
    low: float
    """A tenth of the rounds were below."""
    high: float
    """A tenth of the rounds were above."""


class Race(msgspec.Struct, frozen=True):
    """CPU nanoseconds of each contender for one execution of its work, one sample per round."""

    samples: dict[str, list[float]]

    def best(self, name: str) -> float:
        return min(self.samples[name])

    def median(self, name: str) -> float:
        """For differences of two measurements, of which the smallest is no better than the largest."""
        return median(self.samples[name])

    def ratio(self, slower: str, faster: str) -> Ratio:
        """Time of the first over time of the second: how many times faster the second is."""
        rounds = [a / b for a, b in zip(self.samples[slower], self.samples[faster], strict=True)]
        tenths = quantiles(rounds, n=10, method="inclusive")
        return Ratio(median(rounds), tenths[0], tenths[-1])


def race(contenders: dict[str, Work], *, seconds: float = 2.0, least_rounds: int = 7) -> Race:
    """Let the contenders take turns for about so many seconds, and at least so many rounds."""
    # What exists now (modules, inputs) is set aside: no sample pays for walking through a peer's imports.
    gc.collect()
    gc.freeze()
    try:
        repeats = {name: _repeats(work) for name, work in contenders.items()}
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        end = time.monotonic() + seconds
        rounds = 0
        while rounds < least_rounds or time.monotonic() < end:
            for name, work in contenders.items():
                gc.collect()
                samples[name].append(_sample(work, repeats[name]) / repeats[name])
            rounds += 1
        return Race(samples)
    finally:
        gc.unfreeze()


def race_processes(contenders: dict[str, tuple[str, ...]], *, rounds: int = 25) -> Race:
    """The same for whole processes: user and system time of each, as the kernel counted it."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, argv in contenders.items():
            spent = run_process(argv).cpu_ns
            if turn:  # the first turn writes the bytecode caches
                samples[name].append(spent)
    return Race(samples)


class Growing(msgspec.Struct, frozen=True):
    """A program whose work grows with the number of cases."""

    argv: Callable[[int], tuple[str, ...]]
    """The command for so many cases."""
    few: int = 1000
    many: int = 5000

    def marginal_ns(self) -> float:
        """CPU time of one case more: what the program costs whatever it does falls out."""
        few, many = (run_process(self.argv(cases)).cpu_ns for cases in (self.few, self.many))
        return (many - few) / (self.many - self.few)


def race_growing(contenders: dict[str, Growing], *, rounds: int = 5) -> Race:
    """CPU time of one case more, for each program and all processes that it starts."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, program in contenders.items():
            print(f"  round {turn + 1} of {rounds}: {name}", file=sys.stderr)
            samples[name].append(program.marginal_ns())
    return Race(samples)


class Spent(msgspec.Struct, frozen=True):
    """What a process used, with those that it started and waited for."""

    cpu_ns: float
    wall_s: float
    max_resident: int
    """Bytes, of the largest of them."""


def run_process(argv: tuple[str, ...], *, allowed: Collection[int] = (0,)) -> Spent:
    """Run a program to its end, without its output; `RuntimeError` when it ends with another status than these."""
    output = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    begun = time.monotonic()
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=output)
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in allowed:
        raise RuntimeError(f"{' '.join(argv)} ended with status {os.waitstatus_to_exitcode(status)}")
    # Linux counts kilobytes.
    return Spent((usage.ru_utime + usage.ru_stime) * 1e9, time.monotonic() - begun, usage.ru_maxrss * 1024)


def _repeats(work: Work) -> int:
    """How often to repeat the work in a sample; running it here also warms it up."""
    repeats = 1
    while (spent := _sample(work, repeats)) < SAMPLE_NS:
        repeats = max(2 * repeats, int(repeats * SAMPLE_NS / max(spent, 1)))
    return repeats


def _sample(work: Work, repeats: int) -> int:
    start = time.process_time_ns()
    for _ in range(repeats):
        work()
    return time.process_time_ns() - start
