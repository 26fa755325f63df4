"""Plain text tables that stay straight whatever is written in them."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, east_asian_width

from seatrial.printable import one_line

MAX_CELL = 60


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, indent: str = "") -> list[str]:
    """Lines of a table. The first `left` columns are aligned to the left, numbers after them to the right."""
    cells = [[one_line(cell, MAX_CELL) for cell in row] for row in (head, *rows)]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        parts = [
            cell + " " * (wide - width(cell)) if index < left else " " * (wide - width(cell)) + cell
            for index, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def width(text: str) -> int:
    """Columns that a terminal needs for a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if category(character) in ("Mn", "Me") else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )
