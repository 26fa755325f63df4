"""Watching an experiment go: a live line on a terminal, a plain one now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType

from seatrial.cli.terminal import paint
from seatrial.runs import Experiment, Run

TERMINAL_INTERVAL_S = 0.1
PLAIN_INTERVAL_S = 10.0
_BAR = 24


class Watcher:
    """Shows how far an experiment has come, with counts and rates; says nothing when quiet."""

    def __init__(self, experiment: Experiment, total: int, *, quiet: bool) -> None:
        self._experiment = experiment
        self._total = total
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._interval = TERMINAL_INTERVAL_S if self._live else PLAIN_INTERVAL_S
        self._counts: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._next = self._begun + self._interval
        self._before = 0

    def __enter__(self) -> Watcher:
        if not self._quiet:
            print(f"experiment {self._experiment.experiment_id}: {self._total} runs", file=sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._quiet and self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def resumed(self, done: int) -> None:
        """So many runs were there already."""
        self._before = done
        if done and not self._quiet:
            print(f"{done} runs are there already", file=sys.stderr)

    def finished(self, run: Run) -> None:
        self._counts["errored" if run.grade is None else run.grade.judgement] += 1
        if not self._quiet and (now := time.monotonic()) >= self._next:
            self._next = now + self._interval
            self._draw(now)

    def stopping(self, reason: str) -> None:
        if not self._quiet:
            print(f"\n{reason}: nothing new is started", file=sys.stderr)

    def _draw(self, now: float) -> None:
        done = self._before + sum(self._counts.values())
        rate = sum(self._counts.values()) / (now - self._begun)
        left = f", about {(self._total - done) / rate:.0f} s left" if rate and done < self._total else ""
        told = ", ".join(
            paint(f"{self._counts[word]} {word}", colour, sys.stderr)
            for word, colour in (("passed", "green"), ("failed", "red"), ("errored", "yellow"), ("skipped", "dim"))
            if self._counts[word]
        )
        line = f"{done}/{self._total} runs: {told} ({rate:.1f}/s{left})"
        if self._live:
            filled = round(_BAR * done / self._total) if self._total else _BAR
            sys.stderr.write(f"\r\x1b[K[{'#' * filled}{'.' * (_BAR - filled)}] {line}")
            sys.stderr.flush()
        else:
            print(line, file=sys.stderr, flush=True)
