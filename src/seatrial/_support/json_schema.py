"""A JSON Schema of a suite, and values of an agent that are held against it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from seatrial._support import wire
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    import jsonschema_rs

MAX_WITH_PATTERNS = 1_000_000
"""Bytes of a value that a schema with patterns is applied to. Their engine does not backtrack, but it cannot be
interrupted either, and a long text may still take it seconds."""
MAX_LISTED = 20
MAX_SEARCHED = 16_384
"""Bytes of a value up to which every problem is searched for: the library finds all of them before it gives the first,
and a long array can have millions."""


class Schema:
    """A schema that refers to nothing outside itself, compiled."""

    __slots__ = ("_has_patterns", "_validator")

    def __init__(self, schema: Any) -> None:
        """Raises `SeatrialError("invalid_config")` when it is not a schema, or has a pattern that may backtrack."""
        import jsonschema_rs  # here: most commands need no schemas

        try:
            # Linear in the text, where the library's own choice gives up after so many steps and says "does not match".
            options = jsonschema_rs.RegexOptions()
            self._validator = jsonschema_rs.validator_for(schema, offline=True, pattern_options=options)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            message = str(error).splitlines()[0]
            if message.endswith('is not a "regex"'):
                message += (
                    "; patterns of a schema are matched without backtracking, so they can have no look-around and no"
                    " back references"
                )
            raise SeatrialError("invalid_config", f"the schema cannot be used: {message}") from None
        self._has_patterns = _has_patterns(schema)

    def fits(self, value: Any) -> bool:
        """Whether a value is valid. Raises `SeatrialError` when that cannot be said."""
        if self._has_patterns:
            self._check_size(len(wire.encode(value)))
        return self._is_valid(value)

    def problems(self, value: Any, size: int) -> list[str]:
        """Why a value is not valid, `size` bytes of JSON; empty when it is. Raises as `fits` does."""
        if self._has_patterns:
            self._check_size(size)
        if self._is_valid(value):
            return []
        if size <= MAX_SEARCHED:
            return [_told(problem) for problem in islice(self._validator.iter_errors(value), MAX_LISTED)]
        import jsonschema_rs

        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as problem:
            return [_told(problem)]
        return ["it is not valid"]

    def _is_valid(self, value: Any) -> bool:
        try:
            return self._validator.is_valid(value)
        except ValueError as error:
            raise SeatrialError("invalid_document", f"the value cannot be validated: {error}") from None

    def _check_size(self, size: int) -> None:
        if size > MAX_WITH_PATTERNS:
            raise SeatrialError(
                "text_too_long",
                f"a value of {size:,} bytes; a schema with patterns is applied to {MAX_WITH_PATTERNS:,} at most",
            )


def _told(problem: jsonschema_rs.ValidationError) -> str:
    at = "".join(f"/{part}" for part in problem.instance_path) or "the whole"
    return f"{at}: {problem.message[:200]}"


def _has_patterns(schema: Any) -> bool:
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "pattern" in value or "patternProperties" in value:
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False
