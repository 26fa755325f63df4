"""Reading a configuration: every slip is an error that says where, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from seatrial.errors import SeatrialError
from seatrial.transcript.note import pointer

if TYPE_CHECKING:
    from decimal import Decimal

Path = tuple[str | int, ...]
"""Where in the configuration a value stands."""


def refuse(message: str, at: Path = (), hint: str | None = None) -> NoReturn:
    """Raise the error for a configuration that cannot be used."""
    raise SeatrialError("invalid_config", message, pointer=pointer(*at) or None, hint=hint)


def check_keys(value: Mapping[Any, Any], known: Iterable[str], what: str, at: Path) -> None:
    """Refuse the first key that is not known."""
    known = tuple(known)
    for key in value:
        if key not in known:
            refuse(f"{what} has no key {short(key)}", at, hint=nearest(key, known))


def choice(value: Any, known: Iterable[str], what: str, at: Path) -> str:
    """One of the known words."""
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        refuse(f"{what} is {short(value)}, which is not one of {', '.join(known)}", at, hint=nearest(value, known))
    return value


def text(value: Any, what: str, at: Path) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        refuse(f"{what} must be text that is not empty, got {short(value)}", at)
    return value


def number(value: Any, what: str, at: Path, *, least: float = 0) -> float:
    """A number that is not below `least`."""
    if not is_number(value) or not least <= value <= 1e300:
        refuse(f"{what} must be a number from {least:g} on, got {short(value)}", at)
    return float(value)


def count(value: Any, what: str, at: Path) -> int:
    """A whole number, zero or more."""
    if type(value) is not int or value < 0:
        refuse(f"{what} must be a whole number, zero or more, got {short(value)}", at)
    return value


def flag(value: Any, what: str, at: Path) -> bool:
    """True or false."""
    if type(value) is not bool:
        refuse(f"{what} must be true or false, got {short(value)}", at)
    return value


def names(value: Any, what: str, at: Path, *, empty: bool = False) -> list[str]:
    """An array of names."""
    if not isinstance(value, list | tuple) or not (value or empty):
        refuse(f"{what} must be an array of names, got {short(value)}", at)
    return [text(name, "a name", (*at, index)) for index, name in enumerate(value)]


def is_number(value: Any) -> bool:
    """Whether this is a JSON number: neither a boolean, nor NaN or infinite."""
    return type(value) is int or (type(value) is float and value - value == 0)


def as_written(value: float) -> Decimal:
    """A number as it is written: 1.11 is 0.01 away from 1.1, but the floats nearest to them are a little more."""
    from decimal import Decimal  # which most expectations have no use for

    return Decimal(repr(value) if type(value) is float else value)


def nearest(word: Any, known: Iterable[str]) -> str | None:
    """The hint that names the nearest known word, if any is near."""
    from difflib import get_close_matches

    known = tuple(known)
    meant = _OTHER_WORDS.get(word) if isinstance(word, str) else None
    if meant in known:
        return f"did you mean {meant!r}?"
    close = get_close_matches(str(word)[:50].lower(), known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(known)}"


def short(value: Any) -> str:
    """A value for a message: quoted, and not longer than a line holds."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"  # longer ones cannot be written out
    shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


# What other matchers call the same thing.
_OTHER_WORDS = {
    "strict": "exact",
    "ordered": "in_order",
    "name": "tool",
    "tool_name": "tool",
    "tools": "tool",
    "arguments": "args",
    "input": "args",
    "output": "result",
    "depends_on": "after",
    "timeout_ms": "max_duration_ms",
}
