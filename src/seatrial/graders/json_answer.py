"""Graders of the answer as JSON: whether it is, whether it fits a schema, which of its fields are right."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from math import fsum, isfinite
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial._support import wire
from seatrial._support.json_schema import Schema
from seatrial.errors import SeatrialError
from seatrial.graders.grader import (
    Check,
    Finding,
    Grader,
    GraderWeight,
    Subject,
    Surroundings,
    errored,
    listed,
    passed_if,
    quoted,
)
from seatrial.trajectory.config import as_written, is_number
from seatrial.trajectory.values import key, value_at

_FENCE = re.compile(r"\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(.*)\n?```\s*\Z", re.DOTALL)
_EVIDENCE = ["/answer"]
MAX_FIELDS = 1000
MAX_DATE = 200
"""Characters of a date. Nothing longer is one, and formats are matched by patterns."""
FieldPath = tuple[str, ...]


class IsJson(Grader):
    """Whether the answer is JSON and nothing else."""

    kind: ClassVar[str] = "is_json"
    version: ClassVar[int] = 3

    fenced: bool = False
    """Whether the JSON may also stand in a Markdown fence."""

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            try:
                value = json_of(subject.answer, self.fenced)
            except SeatrialError as error:
                return not_json(subject.answer, error)
            return passed_if(True, f"the answer is JSON: {quoted(value)}", evidence=_EVIDENCE)

        return Check(find, of_answer=True)


class JsonSchema(Grader):
    """Whether the answer is JSON that is valid under a JSON Schema."""

    kind: ClassVar[str] = "json_schema"
    version: ClassVar[int] = 4

    schema: dict[str, Any]
    """The schema. It refers to nothing outside itself, and its patterns have no look-around and no back references."""
    fenced: bool = False
    """Whether the JSON may also stand in a Markdown fence."""

    def prepare(self) -> Check:
        if not self.schema:
            raise SeatrialError("invalid_config", "everything is valid under an empty schema", pointer="/schema")
        try:
            schema = Schema(self.schema)
        except SeatrialError as error:
            error.pointer = "/schema"
            raise

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            try:
                value = json_of(subject.answer, self.fenced)
            except SeatrialError as error:
                return not_json(subject.answer, error)
            try:
                problems = schema.problems(value, len(subject.answer or ""))
            except SeatrialError as error:
                return errored(f"the answer cannot be validated: {error}")
            if not problems:
                return passed_if(True, "the answer is valid under the schema", evidence=_EVIDENCE)
            return passed_if(False, f"not valid under the schema: {listed(problems)}", evidence=_EVIDENCE)

        return Check(find, of_answer=True)


def json_of(answer: str | None, fenced: bool) -> Any:
    """The answer as JSON; `fenced` takes it out of a Markdown fence around the whole of it."""
    return wire.decode_input(json_text(answer, fenced).encode("utf-8", "replace"))


def json_text(answer: str | None, fenced: bool) -> str:
    """What of the answer is to be JSON."""
    text = answer or ""
    match = _FENCE.match(text) if fenced else None
    return text if match is None else match.group(1)


def not_json(answer: str | None, error: SeatrialError) -> Finding:
    """The finding for an answer that is not JSON."""
    return passed_if(False, f"the answer {quoted(answer or '')} is not JSON: {error.message}", evidence=_EVIDENCE)


class Field(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field to compare."""

    path: Annotated[str, Meta(min_length=1)]
    """Where it is: keys and indices with dots between (`order.items.0.sku`), or a JSON pointer."""
    value: Any | UnsetType = UNSET
    """What it must be; what `expected` has at the path when absent."""
    match: Literal["exact", "number", "date", "text"] = "exact"
    """`exact`: the same JSON value. `number`: within the tolerance, text that is a number too. `date`: the same day.
    `text`: the same words, whatever case and spacing."""
    abs: Annotated[float, Meta(ge=0)] | None = None
    """For `number`: how far off it may be."""
    rel: Annotated[float, Meta(ge=0)] | None = None
    """For `number`: the same as a share of the expected number."""
    formats: list[str] = []
    """For `date`: how dates may be written besides ISO 8601, as in `%d.%m.%Y`."""
    weight: GraderWeight = 1.0
    """Its share in the score."""


class FieldResult(msgspec.Struct, omit_defaults=True):
    """How one field compares."""

    path: str
    passed: bool
    expected: Any
    actual: Any = UNSET
    """Left out when the answer has nothing there."""


class FieldAccuracy(Grader):
    """How many fields of the answer, read as JSON, are as expected. It passes when all are."""

    kind: ClassVar[str] = "field_accuracy"
    version: ClassVar[int] = 3

    expected: Any = None
    """The right answer; the case's `expected` when absent."""
    fields: list[Field] = msgspec.field(default_factory=list)
    """What to compare. When absent, every value in `expected`, exactly."""
    fenced: bool = False
    """Whether the JSON may also stand in a Markdown fence."""

    def prepare(self) -> Check:
        for index, field in enumerate(self.fields):
            _check(field, f"/fields/{index}")
        if self.fields and not sum(field.weight for field in self.fields):
            raise SeatrialError("invalid_config", "no field weighs anything", pointer="/fields")
        reads_case = self.expected is None and (not self.fields or any(field.value is UNSET for field in self.fields))
        if self.expected is not None and self.fields and all(field.value is not UNSET for field in self.fields):
            message = "every field has a `value` of its own, so nothing is compared with `expected`"
            raise SeatrialError("invalid_config", message, pointer="/expected")
        keys = frozenset({"expected"} if reads_case else ())
        return Check(self._find, of_answer=True, reads=keys, needs=keys)

    def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        expected = subject.case.expected if self.expected is None else self.expected
        fields = self.fields or [Field(path=path) for path in _leaves(expected)]
        if not fields:
            return errored("there are no fields to compare: neither `fields` nor anything in `expected`")
        if len(fields) > MAX_FIELDS:
            return errored(f"there are more than {MAX_FIELDS} fields to compare")
        try:
            answer = json_of(subject.answer, self.fenced)
        except SeatrialError as error:
            return not_json(subject.answer, error)
        results = []
        for field in fields:
            path = _path(field.path)
            wanted = value_at(expected, path) if field.value is UNSET else field.value
            if wanted is UNSET:
                return errored(f"`expected` has nothing at `{field.path}`, and the field no `value`")
            if _unusable(field, wanted):
                return errored(f"`expected` has {quoted(wanted)} at `{field.path}`, which is no {field.match}")
            actual = value_at(answer, path)
            results.append(FieldResult(field.path, _fits(field, wanted, actual), wanted, actual))
        return _finding(fields, results)


def _finding(fields: list[Field], results: list[FieldResult]) -> Finding:
    total = fsum([field.weight for field in fields])
    gained = fsum([field.weight for field, result in zip(fields, results, strict=True) if result.passed])
    wrong = [
        f"{result.path} is {quoted(result.actual)}, expected {quoted(result.expected)}{_tolerance(field)}"
        for field, result in zip(fields, results, strict=True)
        if not result.passed
    ]
    score = min(gained / total, 1.0)
    right = len(results) - len(wrong)
    weights = f", weights {gained:g} / {total:g}" if total != len(fields) else ""
    reason = f"{right} of {len(results)} fields are right{weights}: {score:.3g}"
    return Finding(
        outcome="failed" if wrong else "passed",
        score=score,
        reasons=[f"{reason}; {listed(wrong)}" if wrong else reason],
        evidence=["/answer"],
        details=results,
    )


def _fits(field: Field, wanted: Any, actual: Any) -> bool:
    if actual is UNSET:
        return False
    if field.match == "number":
        expected, found = _number(wanted), _number(actual)
        if expected is None or found is None:
            return False
        tolerances = as_written(field.abs or 0), as_written(field.rel or 0) * abs(expected)
        return abs(found - expected) <= max(tolerances)
    if field.match == "date":
        day = _day(actual, field.formats)
        return day is not None and day == _day(wanted, field.formats)
    if field.match == "text":
        return isinstance(wanted, str) and isinstance(actual, str) and _words(wanted) == _words(actual)
    return key(actual) == key(wanted, b"expected")


def _check(field: Field, at: str) -> None:
    if field.match != "number" and (field.abs is not None or field.rel is not None):
        raise SeatrialError("invalid_config", "`abs` and `rel` are for `match: number`", pointer=at)
    if field.match != "date" and field.formats:
        raise SeatrialError("invalid_config", "`formats` are for `match: date`", pointer=f"{at}/formats")
    if field.value is not UNSET and _unusable(field, field.value):
        raise SeatrialError("invalid_config", f"{quoted(field.value)} is no {field.match}", pointer=f"{at}/value")


def _unusable(field: Field, wanted: Any) -> bool:
    """Whether no answer could be right."""
    if field.match == "number":
        return _number(wanted) is None
    if field.match == "date":
        return _day(wanted, field.formats) is None
    return field.match == "text" and not isinstance(wanted, str)


def _tolerance(field: Field) -> str:
    parts = [f"{bound:g}" for bound in (field.abs,) if bound] + [f"{bound:.3%}" for bound in (field.rel,) if bound]
    return f" ± {' or '.join(parts)}" if parts else ""


def _path(path: str) -> FieldPath:
    if path.startswith("/"):
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))
    return tuple(path.split("."))


def _leaves(value: Any) -> list[str]:
    """JSON pointers to everything in a value that has nothing in it."""
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting and len(found) <= MAX_FIELDS:
        at, item = waiting.pop()
        members = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        inner = [(f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}", member) for name, member in members]
        waiting += reversed(inner)
        if not inner and at:
            found.append(at)
    return found


def _number(value: Any) -> Decimal | None:
    if is_number(value):
        return as_written(value)
    try:
        if isinstance(value, str) and isfinite(float(value)):
            return Decimal(value)
    except (ValueError, InvalidOperation):
        pass
    return None


def _day(value: Any, formats: list[str]) -> date | None:
    if not isinstance(value, str) or len(value) > MAX_DATE:
        return None
    text = value.strip()
    try:
        moment = datetime.fromisoformat(text)
        # Two ways to write one moment are on the same day; without an offset, a day is just as it is written.
        return (moment.astimezone(UTC) if moment.tzinfo else moment).date()
    except (ValueError, OverflowError):
        pass
    for form in formats:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


def _words(text: str) -> list[str]:
    return text.casefold().split()
