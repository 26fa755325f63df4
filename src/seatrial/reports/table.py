"""Plain text tables that stay straight whatever is written in them, and fit the terminal where they can."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial._support.printable import one_line
from seatrial.reports.layout import MAX_PROSE, cells, prose

MAX_CELL = 60
_GAP = 2


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
