"""Graders of the answer as JSON."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, passed_if
from seatrial.graders.quote import listed, quoted

_FENCE = re.compile(r"\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(.*)\n?```\s*\Z", re.DOTALL)
_EVIDENCE = ["/answer"]
_MAX_PROBLEMS = 20


class IsJson(Grader):
    """Whether the answer is JSON and nothing else."""

    kind: ClassVar[str] = "is_json"
    version: ClassVar[int] = 2

    fenced: bool = False
    """Whether the JSON may also stand in a Markdown fence."""

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            try:
                value = json_of(subject.answer, self.fenced)
            except SeatrialError as error:
                return not_json(subject.answer, error)
            return passed_if(True, f"the answer is JSON: {quoted(value)}", evidence=_EVIDENCE)

        return Check(find)


class JsonSchema(Grader):
    """Whether the answer is JSON that is valid under a JSON Schema."""

    kind: ClassVar[str] = "json_schema"
    version: ClassVar[int] = 2

    schema: dict[str, Any]
    """The schema. It refers to nothing outside itself."""
    fenced: bool = False
    """Whether the JSON may also stand in a Markdown fence."""

    def prepare(self) -> Check:
        import jsonschema_rs

        if not self.schema:
            raise SeatrialError("invalid_config", "everything is valid under an empty schema", pointer="/schema")
        try:
            validator = jsonschema_rs.validator_for(self.schema, offline=True)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            message = f"the schema cannot be used: {str(error).splitlines()[0]}"
            raise SeatrialError("invalid_config", message, pointer="/schema") from None

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            try:
                value = json_of(subject.answer, self.fenced)
            except SeatrialError as error:
                return not_json(subject.answer, error)
            try:
                problems = []
                for problem in validator.iter_errors(value):
                    at = "".join(f"/{part}" for part in problem.instance_path) or "the whole"
                    problems.append(f"{at}: {problem.message[:200]}")
                    if len(problems) == _MAX_PROBLEMS:
                        break
            except ValueError as error:
                return errored(f"the answer cannot be validated: {error}")
            if not problems:
                return passed_if(True, "the answer is valid under the schema", evidence=_EVIDENCE)
            return passed_if(False, f"not valid under the schema: {listed(problems)}", evidence=_EVIDENCE)

        return Check(find)


def json_of(answer: str | None, fenced: bool) -> Any:
    """The answer as JSON; `fenced` takes it out of a Markdown fence around the whole of it."""
    text = answer or ""
    if fenced and (match := _FENCE.match(text)):
        text = match.group(1)
    return wire.decode(text.encode("utf-8", "replace"))


def not_json(answer: str | None, error: SeatrialError) -> Finding:
    """The finding for an answer that is not JSON."""
    return passed_if(False, f"the answer {quoted(answer or '')} is not JSON: {error.message}", evidence=_EVIDENCE)
