"""Graders of the answer as JSON."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from seatrial._support import wire
from seatrial._support.json_schema import Schema
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, passed_if
from seatrial.graders.quote import listed, quoted

_FENCE = re.compile(r"\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(.*)\n?```\s*\Z", re.DOTALL)
_EVIDENCE = ["/answer"]


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
