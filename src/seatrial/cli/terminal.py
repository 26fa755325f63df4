"""Text for people: agent text made harmless, colour only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from seatrial.printable import coloured, one_line, printable
from seatrial.transcript.note import Note

__all__ = ["one_line", "paint", "print_notes", "printable", "wants_colour"]


def paint(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour, where the stream is a terminal and nobody asked for none."""
    return coloured(text, colour) if wants_colour(stream) else text


def wants_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal, and nobody asked for no colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def print_notes(notes: Iterable[Note], kind: str, *, stream: TextIO | None = None) -> None:
    """One line for each note: kind, code, place, sentence."""
    stream = sys.stderr if stream is None else stream
    for note in notes:
        place = f" at {printable(note.pointer)}" if note.pointer else ""
        print(f"{paint(kind, 'yellow', stream)} {note.code}{place}: {printable(note.message)}", file=stream)
