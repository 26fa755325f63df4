"""Whether a pattern is found in every text: such a check cannot fail, and says nothing of the agent.

It is found out by trying: a pattern that fits none of the texts here may be a sensible one, whatever it looks like. So
that a pattern which fails on few texts is not taken for one of these, there are texts made for it among them: of its
own words, and of what it says must not occur.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from seatrial._support.patterns import Pattern
from seatrial._support.time_limit import TimeLimit
from seatrial.errors import SeatrialError

PROBING_S = 1.0
"""How long may be tried. A pattern that takes longer is let through: it says itself that it takes too long."""

_USUAL = (
    "",
    "x",
    "0",
    " ",
    "Done. Your refund of $20.00 is on its way to jane.doe@example.com!",
    "first line\nsecond line\n\n- a list\n",
    '{"ok": true, "items": [1, 2, 3], "at": "2026-11-18T06:30:00Z"}',
    "0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\t\r\n",
    "déjà vu, schöne Grüße, 日本語, \u0645\u0631\u062d\u0628\u0627, \U0001f600",
)


def cannot_fail(pattern: Pattern, *, whole: bool) -> bool:
    """Whether a pattern fits every text that is tried."""
    fits = pattern.covered if whole else pattern.search
    try:
        with TimeLimit(PROBING_S):
            return _fits_all(fits, pattern.text)
    except (SeatrialError, TimeoutError):
        return False


def _fits_all(fits: Callable[[str], str | None], text: str) -> bool:
    return all(fits(probe) is not None for probes in (_USUAL, _random(), _made_for(text)) for probe in probes)


def _random() -> Iterator[str]:
    chance = random.Random(0)  # noqa: S311 (the same texts every time)
    for length in (3, 20, 80):
        yield "".join(chance.choice("aeiou nrst.,\n0189-_<>äß漢") for _ in range(length))


def _made_for(text: str) -> Iterator[str]:
    words = re.findall(r"[^\W_]+", re.sub(r"\\.", " ", text))
    yield from words
    yield "".join(words)
    yield " ".join(words)
    yield text
    try:
        yield from _denied(_parsed(text))
    except (re.error, RecursionError, OverflowError, ValueError, TypeError):
        return


def _parsed(text: str) -> Any:
    from re import _parser  # what `re` itself makes of a pattern, and does not offer

    return _parser.parse(text)


def _denied(parsed: Any) -> Iterator[str]:
    """A text for each thing that the pattern says must not be there."""
    for op, value in parsed:
        if str(op) == "ASSERT_NOT":
            yield from _examples(value[1])
        for inner in _parts(value):
            yield from _denied(inner)


def _parts(value: Any) -> Iterator[Any]:
    """The patterns inside what an operation is given."""
    if hasattr(value, "getwidth"):
        yield value
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _parts(inner)


def _examples(parsed: Any) -> Iterator[str]:
    """Texts that a pattern fits: one for each of its alternatives, where it is nothing but these."""
    if len(parsed) == 1 and str(parsed[0][0]) == "BRANCH":
        for alternative in parsed[0][1][1]:
            yield _example(alternative)
    else:
        yield _example(parsed)
        # What may be absent is, too.
        yield _example(parsed, more=False)


def _example(parsed: Any, *, more: bool = True) -> str:
    return "".join([_piece(str(op), value, more) for op, value in parsed])


def _piece(op: str, value: Any, more: bool) -> str:
    if op == "LITERAL":
        return chr(value)
    if op == "NOT_LITERAL":
        return "y" if value == ord("x") else "x"
    if op == "ANY":
        return "x"
    if op == "IN":
        return _member(value)
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = value
        count = max(int(least), int(most > 0 and more))
        return _example(inner, more=more) * min(count, _LONGEST)
    if op == "SUBPATTERN":
        return _example(value[-1], more=more)
    if op == "ATOMIC_GROUP":
        return _example(value, more=more)
    if op == "BRANCH":
        return _example(value[1][0], more=more)
    return ""


def _member(members: Any) -> str:
    (op, value), *_ = members
    if str(op) == "NEGATE":
        inside = {chr(each) for kind, each in members[1:] if str(kind) == "LITERAL"}
        return next((char for char in "x0 -\n" if char not in inside), "x")
    if str(op) == "LITERAL":
        return chr(value)
    if str(op) == "RANGE":
        return chr(value[0])
    return _OF_CATEGORY.get(str(value), "x")


_LONGEST = 200
_OF_CATEGORY = {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "x", "CATEGORY_NOT_WORD": "-"}
