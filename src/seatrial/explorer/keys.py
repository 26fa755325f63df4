"""The keys of the pages. The table is here once: for its page, its dialog, and the module that acts on them."""

from __future__ import annotations

import msgspec


class KeyRow(msgspec.Struct, frozen=True):
    """A key, and what it does where."""

    keys: tuple[str, ...]
    everywhere: str = ""
    lists: str = ""
    run: str = ""
    compare: str = ""


KEYS = (
    KeyRow(("/",), everywhere="search", run="find in the run"),
    KeyRow(("Ctrl-K",), everywhere="search, go to"),
    KeyRow(("?",), everywhere="this table"),
    KeyRow(("j", "k"), lists="next, previous row", run="next, previous item", compare="next, previous row"),
    KeyRow(("J", "K"), lists="next, previous case", run="next, previous step"),
    KeyRow(
        ("n", "p"), lists="next, previous failed", run="next, previous finding", compare="next, previous difference"
    ),
    KeyRow(("Enter",), lists="open", run="open the item"),
    KeyRow(("u",), everywhere="up"),
    KeyRow(("f",), lists="filter"),
    KeyRow(("c",), lists="mark A, then B", run="compare with a passing run"),
    KeyRow(("x",), compare="swap the sides"),
    KeyRow(("[", "]"), run="pan the timeline"),
    KeyRow(("+", "-", "0"), run="zoom in, out, all"),
    KeyRow(("o", "O"), run="open or close the item, all items", compare="show or hide equal steps"),
    KeyRow(("g", "G"), lists="first, last", run="first or follow, end"),
    KeyRow(("m",), run="mark reviewed"),
    KeyRow(("1", "2", "3"), everywhere="on the page of reviews: right, wrong, unsure"),
    KeyRow(("r",), everywhere="on the page of reviews: the next run"),
    KeyRow(("y",), everywhere="copy the link to this place"),
    KeyRow(("Esc",), everywhere="close, leave the input"),
)
