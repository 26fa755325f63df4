"""Text laid out for a terminal: as wide as the terminal is, folded between words, and in tables that stay straight."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence

from seatrial._support.printable import one_line, printable

NO_TERMINAL = 110
"""Columns of output that goes to a file or a pipe."""
MIN_WIDTH = 40
MAX_PROSE = 120
"""Sentences that are wider than this are hard to read, however wide the terminal is."""
MAX_CELL = 60
"""Columns of one cell of a table."""

_GAP = 2
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


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
    indent: str = "",
    width: int | None = None,
    droppable: Sequence[str] = (),
) -> list[str]:
    """Lines of a table. The first `left` columns are aligned to the left, numbers after them to the right.

    Without a width the lines are as long as they have to be: what they are written to may be a file. With one, columns
    are left out until the others fit, those of `droppable` in this order, and a last line names them; a table that is
    still too wide is written as a block for each row.
    """
    whole = head, rows, left
    left_out: list[str] = []
    for title in droppable if width is not None else ():
        if _width(head, rows, indent) <= (width or 0):
            break
        if title in head:
            at = list(head).index(title)
            head = [*head[:at], *head[at + 1 :]]
            rows = [[*row[:at], *row[at + 1 :]] for row in rows]
            left_out.append(title)
            left -= at < left
    if width is not None and _width(head, rows, indent) > width:
        return _stacked(*whole, indent, width)  # where there is room for every column again
    lines = _drawn(head, rows, left, indent)
    if left_out:
        lines += prose(f"(too narrow for: {', '.join(left_out)})", width or MAX_PROSE, indent)
    return lines


def _width(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str) -> int:
    columns = [max([cells(one_line(row[at], MAX_CELL)) for row in (head, *rows)]) for at in range(len(head))]
    return len(indent) + sum(columns) + _GAP * (len(columns) - 1)


def _drawn(head: Sequence[str], rows: Sequence[Sequence[str]], left: int, indent: str) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for index in range(len(head)):
        grid.add_column(justify="left" if index < left else "right", no_wrap=True)
    for row in (head, *rows):
        # As `Text`, in which rich looks for neither markup nor emoji codes.
        grid.add_row(*[Text(one_line(cell, MAX_CELL)) for cell in row])
    widest = len(head) * (2 * MAX_CELL + 2)  # a character takes two columns at most
    console = Console(width=widest, color_system=None, force_terminal=False, force_jupyter=False)
    return [
        (indent + "".join(segment.text for segment in line)).rstrip() for line in console.render_lines(grid, pad=False)
    ]


def _stacked(head: Sequence[str], rows: Sequence[Sequence[str]], left: int, indent: str, width: int) -> list[str]:
    """Each row as its names, and below them each figure with its title."""
    lines: list[str] = []
    for row in rows:
        lines.append(indent + "  ".join([one_line(cell, MAX_CELL) for cell in row[:left] if cell]))
        line = f"{indent}  "
        for title, cell in zip(head[left:], row[left:], strict=True):
            figure = one_line(f"{title} {cell}", MAX_CELL)
            if line.strip() and cells(line) + cells(figure) > width:
                lines.append(line.rstrip())
                line = f"{indent}  "
            line += f"{figure}{' ' * _GAP}"
        lines.append(line.rstrip())
    return lines
