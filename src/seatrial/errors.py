"""The one exception family of Seatrial.

Programs match on `code`, people read `message`. A finding about an agent's data is a note
(`seatrial.transcript.Note`), not an error; an error means that there was nothing to go on with.
"""

from __future__ import annotations

ERROR_CODES: dict[str, str] = {
    "not_json": "The input is not JSON, and its format must be.",
    "not_utf8": "The input is not UTF-8 text.",
    "too_deep": "The input is nested more deeply than a reader follows.",
    "too_large": "The input, or one frame of it, is larger than the limit.",
    "empty_input": "There is nothing in the input to read.",
    "invalid_document": "The input is JSON, but not a document of the format it was read as.",
    "unknown_format": "No format of that name exists.",
    "undetected_format": "The input looks like none of the known formats; name one.",
    "not_writable": "The format can be read but not written.",
    "invalid_config": "A configuration cannot be used: unknown key, wrong type, or nothing to check.",
    "search_budget": "A search that is exponential in the worst case passed its budget.",
    "unreadable_file": "A file could not be opened or read.",
    "usage": "The command line cannot be understood.",
}


class SeatrialError(Exception):
    """What was expected, what came, where, and what to do next."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        pointer: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        if code not in ERROR_CODES:
            raise ValueError(f"undeclared error code {code!r}: add it to ERROR_CODES")
        super().__init__(message)
        self.code = code
        self.message = message
        self.pointer = pointer
        """JSON pointer to the offending value, where there is one."""
        self.line = line
        """Line of the input, from 1, where it has lines."""
        self.hint = hint
        """What the reader of the message can do about it."""

    def __str__(self) -> str:
        where = []
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.pointer:
            where.append(f"at {self.pointer}")
        text = f"{', '.join(where)}: {self.message}" if where else self.message
        return f"{text} ({self.hint})" if self.hint else text
