"""Text laid out for a terminal: as wide as the terminal is, and folded between words."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator

from seatrial._support.printable import printable

NO_TERMINAL = 110
"""Columns of output that goes to a file or a pipe."""
MIN_WIDTH = 40
MAX_PROSE = 120
"""Sentences that are wider than this are hard to read, however wide the terminal is."""

_PIECES = re.compile(r"\s+|\S+")


def terminal_width() -> int:
    """Columns of the terminal that standard output is; the same everywhere when it is none."""
    if not sys.stdout.isatty():
        return NO_TERMINAL
    return max(MIN_WIDTH, shutil.get_terminal_size((NO_TERMINAL, 24)).columns)


def cells(text: str) -> int:
    """Columns that a text takes: a wide character takes two, a combining one none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # only where it is needed: it has large tables

    return cell_len(text)


def prose(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """One paragraph, folded; `first` stands before its first line instead of the indent."""
    deeper = 0 if first is None else cells(first) - cells(indent)
    lines = list(_folded(" ".join(printable(text).split()), min(width, MAX_PROSE) - cells(indent), deeper))
    if not lines:
        return [] if first is None else [first.rstrip()]
    return [(indent if number or first is None else first) + line for number, line in enumerate(lines)]


def folded(text: str, width: int, indent: str = "") -> list[str]:
    """A text with its own line breaks, each line folded."""
    wide = min(width, MAX_PROSE) - cells(indent)
    lines = [part for line in printable(text.expandtabs(4)).split("\n") for part in list(_folded(line, wide)) or [""]]
    return [f"{indent}{line}".rstrip() for line in lines]


def _folded(text: str, width: int, deeper: int = 0) -> Iterator[str]:
    """Lines of at most this many columns, the first of them with so many less; a word that is longer is broken."""
    width = max(width, 10)
    deeper = min(deeper, width - 10)
    if cells(text) + deeper <= width:
        if text.strip():
            yield text.rstrip()
        return
    line, used = "", deeper
    for piece in _PIECES.findall(text):
        size = cells(piece)
        if used + size <= width:
            line, used = line + piece, used + size
            continue
        if piece.isspace():
            if line.strip():
                yield line.rstrip()
            line, used = "", 0
            continue
        if line.strip():
            yield line.rstrip()
            line, used = "", 0
        while used + cells(piece) > width:
            taken = _beginning(piece, width - used)
            yield taken
            piece, used = piece[len(taken) :], 0
            line = ""
        line, used = line + piece, used + cells(piece)
    if line.strip():
        yield line.rstrip()


def _beginning(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    end = used = 0
    for character in text:
        used += cells(character)
        if used > width:
            break
        end += 1
    return text[: max(end, 1)]
