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
    "invalid_cursor": "A cursor is not `<runId>:<sequence>`, or a field of an SSE frame is not one line of text.",
    "bad_record": "A record of a batch belongs to no case: it has no id, an unknown or a used one; or it never came.",
    "unknown_format": "No format of that name exists.",
    "undetected_format": "The input looks like none of the known formats; name one.",
    "not_writable": "The format can be read but not written.",
    "invalid_config": "A configuration cannot be used: unknown key, wrong type, or nothing to check.",
    "agent_unhealthy": "An agent is not ready to be tested: its healthcheck failed.",
    "invalid_suite": "A suite cannot be run; every problem is listed with its file and line.",
    "model_failed": "A chat model could not be asked, or gave no usable answer.",
    "search_budget": "A search that is exponential in the worst case passed its budget.",
    "unreadable_file": "A file could not be opened or read.",
    "unwritable_file": "A file could not be written.",
    "not_found": "The store has no such thing.",
    "ambiguous": "A name or the beginning of an id fits several things.",
    "conflict": "Something else is stored under that id already, or changed meanwhile.",
    "unstorable": "A value cannot be kept in a store: an id with unusual characters, or more than a database takes.",
    "not_a_store": "The database is not a store of Seatrial, and is left alone.",
    "store_too_new": "The store was written by a newer version of Seatrial.",
    "store_unavailable": "The store cannot be reached, is locked, or is closed.",
    "store_full": "There is no room left where the store is.",
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
