"""Texts of a run: folded when they are long, whole when they were opened, and always with how much there is."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from markupsafe import Markup

from seatrial.explorer.markup import is_marked_up, markdown, visible
from seatrial.explorer.render import address
from seatrial.store.documents import LongText

FOLD_LINES, FOLD_BYTES = 12, 2_000
"""A text with more of either is folded."""
SHOWN_LINES, SHOWN_CHARACTERS = 6, 700
"""What is shown of a folded text."""
OPEN_BYTES = 256_000
"""A text up to here opens in its place; a longer one on a page of its own, a range at a time."""


class Passage(msgspec.Struct, frozen=True):
    """A text as a page shows it."""

    pointer: str
    text: str
    """What is shown of it, everything in it visible."""
    html: Markup | None
    """The same read as Markdown; None where it has no marks, or is no prose."""
    lines: int
    size: int
    """Bytes of the whole."""
    folded: bool
    opens_here: bool
    """Whether the whole is short enough to be opened in its place."""
    page: str
    """The address of the whole text."""
    opened: bool = False
    """Whether it is long, and shown whole because the reader asked for it."""
    prose: bool = True
    """Whether it is set as reading text, and not as output."""


def text_page(run_id: str, pointer: str) -> str:
    """The address of one text of a run, by its pointer."""
    return address("runs", run_id, "text") + quote(pointer, safe="/~")


def passage(
    run_id: str, pointer: str, text: str, cut: LongText | None = None, *, prose: bool = True, opened: bool = False
) -> Passage:
    """A text, or the beginning of one that is kept elsewhere. `opened`: `text` is all of it, and all is shown."""
    lines, size = (text.count("\n") + 1, len(text.encode("utf-8", "replace"))) if cut is None else (cut.lines, cut.size)
    is_long = cut is not None or lines > FOLD_LINES or size > FOLD_BYTES
    folded = is_long and not opened
    shown = "\n".join(text[:SHOWN_CHARACTERS].split("\n")[:SHOWN_LINES]) if folded else text
    return Passage(
        pointer=pointer,
        text=visible(shown),
        html=markdown(shown) if prose and is_marked_up(shown) else None,
        lines=lines,
        size=size,
        folded=folded,
        opens_here=size <= OPEN_BYTES,
        page=text_page(run_id, pointer),
        opened=is_long and opened,
        prose=prose,
    )
