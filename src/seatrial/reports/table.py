"""Plain text tables that stay straight whatever is written in them."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial._support.printable import one_line

MAX_CELL = 60


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, indent: str = "") -> list[str]:
    """Lines of a table. The first `left` columns are aligned to the left, numbers after them to the right.

    The lines are as long as they have to be: what they are written to may be a file.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
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
