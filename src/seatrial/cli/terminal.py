"""Text for people: agent text made harmless, colour and a counter only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TextIO

from seatrial._support.printable import one_line, paint, printable, wants_colour
from seatrial.transcript.note import Note

__all__ = ["one_line", "paint", "print_notes", "printable", "wants_colour"]


def print_notes(notes: Iterable[Note], kind: str, *, stream: TextIO | None = None) -> None:
    """One line for each note: kind, code, place, sentence."""
    stream = sys.stderr if stream is None else stream
    for note in notes:
        place = f" at {printable(note.pointer)}" if note.pointer else ""
        print(f"{paint(kind, 'yellow', stream)} {note.code}{place}: {printable(note.message)}", file=stream)


INTERVAL_S = 0.2
SILENT_S = 0.5
"""Work that ends sooner than this shows no counter at all."""


class Progress:
    """Counts things done; used as a context manager so that the line is always cleared."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.done = 0
        self.started = time.monotonic()
        self.next_draw = self.started + SILENT_S if sys.stderr.isatty() else float("inf")
        self.drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        if self.done & 63 == 0 and (now := time.monotonic()) >= self.next_draw:
            rate = self.done / (now - self.started)
            sys.stderr.write(f"\r\x1b[K{self.done:,} {self.noun} ({rate:,.0f}/s)")
            sys.stderr.flush()
            self.drawn = True
            self.next_draw = now + INTERVAL_S
