"""Many matches at once: a JSON line for each, `{id?, mode, expected | minimums, actual: [step], level?, ...}`.

The steps of a line are all that there were, unless the line says otherwise: with `level` (`complete`, `partial` or
`none`), or with `completeness`, an object as `seatrial steps --json` and a stored run have it.

A line that cannot be used gets an error, which names it by its number, and the others get their results all the same;
so one bad line costs nothing but itself, and whoever runs the batch can tell that there was one. Blank lines are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.trajectory.completeness import COMPLETE, Completeness
from seatrial.trajectory.expectation import compile_expectation
from seatrial.trajectory.matching import match
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import steps_given

_OWN_KEYS = ("id", "actual", "level", "completeness")


class LineResult(msgspec.Struct):
    """What came of one line: a result or an error."""

    line: int
    """From 1."""
    id: str | int | float | None
    """As given; None when the line has none."""
    result: MatchResult | None
    error: SeatrialError | None
    json: bytes
    """The line to write, without a newline: `id` if there is one, `line`, and the fields of the result or `error`."""


def match_lines(lines: Iterable[bytes]) -> Iterator[LineResult]:
    """One result for each line that is not blank, in order."""
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line and not line.isspace():
            yield match_line(line, number)


def match_line(line: bytes, number: int = 1) -> LineResult:
    """The result of one line, or the error that it cannot be used."""
    head: dict[str, Any] = {"line": number}
    try:
        given = wire.decode_unambiguous(line)
        if type(given) is not dict:
            raise SeatrialError("invalid_document", "a line is a JSON object")
        if isinstance(given.get("id"), str | int | float):
            head = {"id": given["id"], **head}
        elif given.get("id") is not None:
            raise SeatrialError("invalid_document", "an id is text or a number", pointer="/id")
        if "actual" not in given:
            raise SeatrialError("invalid_document", "a line needs the key 'actual', an array of steps")
        expectation = compile_expectation({key: value for key, value in given.items() if key not in _OWN_KEYS})
        known = _completeness(given)
        result = match(expectation, steps_given(given["actual"], ("actual",)), known)
        result.basis = known.basis if "completeness" in given else None
        written = wire.encode(head)[:-1] + b"," + wire.encode(result)[1:]
    except SeatrialError as error:
        error.line = number
        told = {"code": error.code, "message": error.message, "pointer": error.pointer, "hint": error.hint}
        head["error"] = {name: value for name, value in told.items() if value is not None}
        return LineResult(number, head.get("id"), None, error, wire.encode(head))
    return LineResult(number, head.get("id"), result, None, written)


def _completeness(given: dict[str, Any]) -> Completeness:
    if "completeness" in given:
        if "level" in given:
            raise SeatrialError("invalid_document", "a line has `level` or `completeness`, not both", pointer="/level")
        value, at = given["completeness"], "/completeness"
    elif "level" in given:
        value, at = {"level": given["level"]}, ""
    else:
        return COMPLETE
    try:
        return msgspec.convert(value, Completeness)
    except msgspec.ValidationError as error:
        found = wire.invalid_document(error)
        raise SeatrialError("invalid_document", found.message, pointer=at + (found.pointer or "")) from None
