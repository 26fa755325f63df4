"""How far an experiment has come, on standard error: a line that is drawn over in a terminal and in a notebook, else
one now and then."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from seatrial._support.printable import paint, printable
from seatrial.engine import RunEnd
from seatrial.reports.figures import plural
from seatrial.runs import Experiment
from seatrial.transcript import Note

TERMINAL_INTERVAL_S = 0.1
NOTEBOOK_INTERVAL_S = 0.5
PLAIN_INTERVAL_S = 10.0
TERMINAL_IDLE_S = 1.0
PLAIN_IDLE_S = 60.0
"""How soon a line follows another when no run has ended meanwhile: a slow agent must not look like a hung command."""
_BAR = 24
_SHORTEST_BAR = 8


class RunProgress:
    """Shows how far an experiment has come, with counts and rates; when quiet, it only warns."""

    def __init__(self, experiment: Experiment, total: int, *, quiet: bool) -> None:
        self._experiment = experiment
        self._total = total
        self._quiet = quiet
        self._notebook = notebook = _is_notebook()
        self._live = notebook or sys.stderr.isatty()
        self._drawn = 0
        """How long the line is that stands there."""
        self._interval = NOTEBOOK_INTERVAL_S if notebook else TERMINAL_INTERVAL_S if self._live else PLAIN_INTERVAL_S
        self._idle = TERMINAL_IDLE_S if self._live else PLAIN_IDLE_S
        self._counts: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._next = self._begun + self._interval
        self._before = 0

    def __enter__(self) -> RunProgress:
        if not self._quiet:
            print(f"experiment {self._experiment.experiment_id}: {plural(self._total, 'run')}", file=sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._quiet and self._live:
            sys.stderr.write(self._erase())
            sys.stderr.flush()

    def resumed(self, done: int) -> None:
        """So many runs were there already."""
        self._before = done
        if done and not self._quiet:
            print(f"{plural(done, 'run')} {'is' if done == 1 else 'are'} there already", file=sys.stderr)

    def finished(self, end: RunEnd) -> None:
        self._counts[end.outcome] += 1
        if not self._quiet and (now := time.monotonic()) >= self._next:
            self._next = now + self._interval
            self._draw(now)

    async def keep_showing(self) -> None:
        """Show how far it has come also while no run ends, until cancelled."""
        while not self._quiet:
            await asyncio.sleep(self._idle)
            if (now := time.monotonic()) >= self._next:
                self._next = now + self._interval
                self._draw(now)

    def stopping(self, reason: str) -> None:
        if not self._quiet:
            lead = "\n" if self._live else ""
            print(f"{lead}{reason}: nothing new is started", file=sys.stderr)

    def noted(self, agent: str, notes: Sequence[Note]) -> None:
        first = notes[0]
        more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
        where = f"line {first.pointer[1:]} belongs to no run: " if first.pointer else ""
        self.warned(f"{agent}: {where}{first.message} [{first.code}]{more}")

    def warned(self, message: str) -> None:
        lead = self._erase() if self._live and not self._quiet else ""
        print(f"{lead}{printable(f'warning: {message}')}", file=sys.stderr)

    def _draw(self, now: float) -> None:
        done = self._before + sum(self._counts.values())
        rate = sum(self._counts.values()) / (now - self._begun)
        parts = [
            (f"{self._counts[word]} {word}", colour)
            for word, colour in (("passed", "green"), ("failed", "red"), ("errored", "yellow"), ("skipped", "dim"))
            if self._counts[word]
        ]
        head, tail = f"{done}/{self._total} runs", f" ({now - self._begun:.0f} s)"
        if parts:
            head, tail = f"{head}: ", f" ({rate:.1f}/s"
            if done < self._total:
                tail += f", about {(self._total - done) / rate:.0f} s left"
            tail += ")"
        if self._live:
            width = len(head) + len(", ".join(text for text, _ in parts)) + len(tail)
            # A line that wraps cannot be drawn over.
            room = shutil.get_terminal_size().columns - width - 4
            bar = min(_BAR, room)
            if bar >= _SHORTEST_BAR:
                filled = round(bar * min(done / self._total, 1)) if self._total else bar
                head = f"[{'#' * filled}{'.' * (bar - filled)}] {head}"
            elif room < 0:
                tail = ""
        line = head + ", ".join(paint(text, colour, sys.stderr) for text, colour in parts) + tail
        if self._live:
            print(f"{self._erase()}{line}", end="", file=sys.stderr, flush=True)
            self._drawn = len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def _erase(self) -> str:
        """What removes the line that stands there. A notebook knows no command for that."""
        return f"\r{' ' * self._drawn}\r" if self._notebook else "\r\x1b[K"


def _is_notebook() -> bool:
    """Whether standard error is the output of a cell: Jupyter and its like draw over a line, and are no terminal."""
    return type(sys.stderr).__module__ == "ipykernel.iostream"
