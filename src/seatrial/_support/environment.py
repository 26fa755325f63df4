"""`${NAME}` and `${NAME:-default}`: how a suite names what must not be written in it.

A suite keeps the text as it is written, and a variable's value enters only the copy that an agent is started with
(`resolve`). So whatever is stored, printed or hashed has `${NAME}` in it, because there is nothing else to have.

A variable that is set to nothing counts as unset. Before a brace, `$$` is a plain `$`: `$${HOME}` means `${HOME}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from seatrial.errors import SeatrialError

T = TypeVar("T")

STORE_VARIABLE = "SEATRIAL_STORE"
"""The variable that says where the store is."""

_DOLLARS = re.compile(r"(\$+)\{")
_BODY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET_NAME = re.compile(
    r"(^|[-_])(authorization|cookie|key|credentials?)$|(apikey|token|secret|password|passwd|passphrase)$", re.IGNORECASE
)


class Reference(msgspec.Struct, frozen=True):
    """One `${NAME}` or `${NAME:-default}`."""

    name: str
    default: str | None = None


TextPart: TypeAlias = str | Reference


class Resolved(str):
    """Text with the values in it. It shows itself as it was written, and our encoders refuse to write it at all."""

    written: str

    def __new__(cls, value: str, written: str) -> Resolved:
        text = super().__new__(cls, value)
        text.written = written
        return text

    def __repr__(self) -> str:
        return repr(self.written)


def parts(text: str) -> list[TextPart]:
    """Plain text and references, in order. Raises `SeatrialError` for a `${` that names no variable."""
    found: list[TextPart] = []
    plain: list[str] = []
    done = 0
    while match := _DOLLARS.search(text, done):
        plain.append(text[done : match.start()])
        dollars = len(match.group(1))
        plain.append("$" * (dollars // 2))
        done = match.end()
        if dollars % 2 == 0:
            plain.append("{")
            continue
        body = _BODY.match(text, done)
        if body is None:
            raise SeatrialError(
                "invalid_config",
                "there is a `${` that names no variable",
                hint="write `${NAME}` or `${NAME:-default}`, or `$${` for the two characters themselves",
            )
        if before := "".join(plain):
            found.append(before)
        plain.clear()
        found.append(Reference(body.group(1), body.group(2)))
        done = body.end()
    plain.append(text[done:])
    if rest := "".join(plain):
        found.append(rest)
    return found


def references(text: str) -> list[Reference]:
    """The variables that a text names."""
    return [part for part in parts(text) if isinstance(part, Reference)] if "${" in text else []


def fill(text: str, variables: Mapping[str, str], *, double_braces: bool = False) -> str:
    """The text with the values in place. Raises `SeatrialError` when a variable is not set.

    With `double_braces`, braces in values are doubled, for text that is a template of placeholders afterwards.
    """
    if "${" not in text:
        return text
    filled = []
    named = False
    for part in parts(text):
        if isinstance(part, str):
            filled.append(part)
            continue
        value = variables.get(part.name) or part.default
        if value is None:
            raise unset(part.name)
        filled.append(value.replace("{", "{{").replace("}", "}}") if double_braces else value)
        named = True
    return Resolved("".join(filled), text) if named else "".join(filled)


def resolve(config: T, variables: Mapping[str, str]) -> T:
    """A copy of a configuration in which every text is filled; a whole one, for starting an agent with."""
    resolved: T = _resolved(config, variables)
    return resolved


def unset(name: str) -> SeatrialError:
    """The error for a variable that is not set."""
    return SeatrialError(
        "invalid_config",
        f"the environment variable `{name}` is not set",
        hint=f"set it, or give a default: `${{{name}:-default}}`",
    )


def names_secret(name: str) -> bool:
    """Whether a header or variable of this name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None


def texts(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text in a configuration, with where it is; keys are not among them."""
    if isinstance(value, str):
        yield path, value
        return
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, msgspec.Struct):
        members = ((field, getattr(value, field)) for field in value.__struct_fields__)
    elif isinstance(value, Mapping):
        members = value.items()
    elif isinstance(value, list | tuple):
        members = enumerate(value)
    for key, item in members:
        yield from texts(item, (*path, key))


def _resolved(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return fill(value, variables)
    if isinstance(value, msgspec.Struct):
        fields = {name: _resolved(getattr(value, name), variables) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, dict):
        return {key: _resolved(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, variables) for item in value]
    return value
