"""`{{instruction}}` and its like in the request of an HTTP agent. A literal `{{` is written `{{{{`.

A text is cut into pieces before anything is put into it, and the value of a placeholder or of a variable is a piece of
its own: nothing in it is read as a placeholder, and JSON, a header or a query is written only afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import msgspec

from seatrial._support import wire
from seatrial._support.environment import Reference, Resolved, fill, parts, unset
from seatrial.agents.config import HeaderName
from seatrial.errors import SeatrialError
from seatrial.problems import KeyPath, meant, quoted
from seatrial.runs import Case

PLACEHOLDERS: dict[str, str] = {
    "instruction": "the instruction of the case",
    "messages": "the conversation: the case's `messages`, and the instruction as the last message of the user",
    "input": "the case's `input`; `{{input.x}}` is what it has under `x`, `{{input.x.0}}` the first item of that",
    "case_id": "the id of the case",
    "run_id": "the id of the run",
}
"""Every placeholder and what stands there when the agent is asked."""

_BRACES = re.compile(r"(\{\{\{\{)|\{\{\s*([^{}]*?)\s*\}\}|\{\{")
_NAME = re.compile(r"[a-z_]+")


class RequestTemplate(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent is sent. Texts may have placeholders, as `{{instruction}}`, and variables, as `${NAME}`."""

    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    """How it is sent. With `GET` there is no body."""
    body: Any = None
    """The body, sent as JSON. A text that is one placeholder becomes its value, of whatever type that is; inside a
    longer text, the value's text stands there. With a `protocol`, these keys are added to those that it sends."""
    query: dict[str, str] = msgspec.field(default_factory=dict)
    """Parameters that are added to the address. One whose name suggests a secret must name a variable."""
    headers: dict[HeaderName, str] = msgspec.field(default_factory=dict)
    """Headers with placeholders; those without can be in the agent's `headers` as well."""


class Placeholder(msgspec.Struct, frozen=True):
    """One `{{name}}`, or `{{input.x}}` with the path `x`."""

    name: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join([self.name, *self.path])


TemplatePiece: TypeAlias = str | Placeholder


class TemplateText(Resolved):
    """A text of a template whose variables are filled in, in pieces."""

    pieces: list[TemplatePiece]


def split(text: str, variables: Mapping[str, str] | None = None) -> list[TemplatePiece]:
    """The pieces of a text; without `variables`, a variable stands for itself.

    Raises `SeatrialError` for an unknown placeholder, a `{{` that is not closed, and a variable that is not set.
    """
    found: list[TemplatePiece] = []
    for part in parts(text):
        if isinstance(part, str):
            found += _split(part)
        elif variables is None:
            found.append(f"${{{part.name}}}")
        else:
            found.append(_value_of(part, variables))
    return found


def texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every text of a body with where it is; keys of objects are not among them."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))


def keys(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Where the keys of a body are."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(value, dict):
            yield (*path, key)
        yield from keys(item, (*path, key))


def placeholders(template: RequestTemplate) -> list[Placeholder]:
    """Those that a template has. Raises `SeatrialError` as `split` does."""
    written = [text for _, text in texts([template.body, template.query, template.headers])]
    return [piece for text in written for piece in split(text) if isinstance(piece, Placeholder)]


def resolved(template: RequestTemplate, variables: Mapping[str, str]) -> RequestTemplate:
    """The template with its variables filled in. Raises `SeatrialError` as `split` does."""

    def in_pieces(text: str) -> str:
        pieced = TemplateText(str(fill(text, variables)), text)
        pieced.pieces = split(text, variables)
        return pieced

    return RequestTemplate(
        method=template.method,
        body=mapped(template.body, in_pieces),
        query=mapped(template.query, in_pieces),
        headers=mapped(template.headers, in_pieces),
    )


class Values:
    """What stands in the place of placeholders in one run."""

    def __init__(self, case: Case, run_id: str) -> None:
        self._values: dict[str, Any] = {
            "instruction": case.instruction,
            "messages": conversation(case),
            "input": case.input,
            "case_id": case.id,
            "run_id": run_id,
        }

    def json(self, value: Any) -> Any:
        """A body of a template with the values in place."""
        return mapped(value, self._json_text)

    def query(self, query: Mapping[str, str]) -> str:
        """Parameters as they stand in a URL: whatever they hold, they stay as many as they are."""
        pairs = [(name, self._text(text)) for name, text in query.items()]
        # Everything is escaped, in one way: so are the forms in which secrets are looked for.
        return "&".join([f"{_escaped(name)}={_escaped(text)}" for name, text in pairs])

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers; a value with anything but printable ASCII in it is escaped as in a URL."""
        return {name: self._text(text, header_text) for name, text in headers.items()}

    def find(self, placeholder: Placeholder) -> Any:
        """The value of a placeholder. Raises `SeatrialError` when the case has none there."""
        found = self._values[placeholder.name]
        for step in placeholder.path:
            if isinstance(found, dict) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                case_id = quoted(self._values["case_id"])
                raise SeatrialError(
                    "invalid_config", f"the case {case_id} has no `{placeholder}` to put in the request"
                )
        return found

    def _json_text(self, text: str) -> Any:
        pieces = _pieces(text)
        if len(pieces) == 1 and isinstance(pieces[0], Placeholder):
            return self.find(pieces[0])
        return self._text(text)

    def _text(self, text: str, written: Callable[[str], str] = str) -> str:
        found = []
        for piece in _pieces(text):
            if isinstance(piece, str):
                found.append(piece)
                continue
            value = self.find(piece)
            found.append(written(value if isinstance(value, str) else wire.encode(value).decode()))
        return "".join(found)


def conversation(case: Case) -> list[dict[str, Any]]:
    """What the agent is asked, as messages: those of the case as they are written, then the instruction."""
    return [*case.messages, {"role": "user", "content": case.instruction}] if case.instruction else [*case.messages]


def header_text(text: str) -> str:
    """Text as a header can have it: one line of ASCII, escaped where it is more."""
    return text if text.isascii() and text.isprintable() else _escaped(text)


def _escaped(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _pieces(text: str) -> list[TemplatePiece]:
    return text.pieces if isinstance(text, TemplateText) else split(text, {})


def _split(text: str) -> Iterator[TemplatePiece]:
    done = 0
    for match in _BRACES.finditer(text):
        if before := text[done : match.start()]:
            yield before
        done = match.end()
        literal, name = match.groups()
        if literal is not None:
            yield "{{"
        elif name is None:
            raise SeatrialError(
                "invalid_config", "there is a `{{` that no `}}` closes", hint="a literal `{{` is written `{{{{`"
            )
        else:
            yield _placeholder(name)
    if rest := text[done:]:
        yield rest


def _placeholder(written: str) -> Placeholder:
    name, *path = written.split(".")
    if name not in PLACEHOLDERS or not all(path) or (path and name != "input"):
        word = match[0] if name not in PLACEHOLDERS and (match := _NAME.search(name.lower())) else written
        raise SeatrialError(
            "invalid_config",
            f"unknown placeholder {quoted('{{' + written + '}}')}",
            hint=meant(word, PLACEHOLDERS),
        )
    return Placeholder(name, tuple(path))


def _value_of(reference: Reference, variables: Mapping[str, str]) -> str:
    value = variables.get(reference.name) or reference.default
    if value is None:
        raise unset(reference.name)
    return value


def mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """A copy of a JSON value in which every text is changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [mapped(item, change) for item in value]
    return value
