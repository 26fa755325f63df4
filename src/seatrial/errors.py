"""The one exception family of Seatrial.

Programs match on `code`, people read `message`. A finding about an agent's data is a note
(`seatrial.transcript.Note`), not an error; an error means that there was nothing to go on with.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

ERROR_CODES: dict[str, str] = {
    "not_json": "The input is not JSON, and its format must be.",
    "not_utf8": "The input is not UTF-8 text.",
    "too_deep": "The JSON is nested more than 200 levels deep (250 for what Seatrial writes).",
    "too_large": "The input, or one frame of it, is larger than the limit.",
    "empty_input": "There is nothing in the input to read.",
    "invalid_document": "The input is JSON, but not a document of the format it was read as.",
    "invalid_cursor": "A cursor is not `<runId>:<sequence>`, or a field of an SSE frame is not one line of text.",
    "bad_record": "A record of a batch could not be read.",
    "unknown_format": "No format of that name exists.",
    "undetected_format": "The input looks like none of the known formats; name one.",
    "unread_format": "The input is of a format that Seatrial recognises and does not read.",
    "ambiguous_format": "Two formats are equally likely; name one.",
    "not_writable": "The format can be read but not written.",
    "format_failed": "A format that is not Seatrial's own raised, or gave something that is not a reading.",
    "invalid_config": "A configuration cannot be used: unknown key, wrong type, or nothing to check.",
    "agent_failed": "In a test, an agent raised, did not answer in time, or broke its contract.",
    "agent_unhealthy": "An agent is not ready to be tested: its healthcheck failed.",
    "invalid_suite": "A suite cannot be run; every problem is listed with its file and line.",
    "not_judged": "A suite would give no verdict: a case without graders, or with none that can decide.",
    "model_failed": "A chat model could not be asked, or gave no usable answer.",
    "search_budget": "A search that is exponential in the worst case passed its budget.",
    "time_limit": "A check took longer than its time limit: a pattern that backtracks, or too much to compare.",
    "text_too_long": "A text is too long to be matched with a pattern.",
    "workspace_failed": "The workspace of a case cannot be made, or no command can be run in it.",
    "ambiguous_record": "A program left several files that may be the record of its run.",
    "unreadable_file": "A file could not be opened or read.",
    "unwritable_file": "A file could not be written.",
    "not_found": "The store does not have it.",
    "ambiguous": "A name or the beginning of an id matches several things.",
    "conflict": "Something else is already stored under that id, or it changed in the meantime.",
    "unstorable": "A value cannot be stored: an id with unusual characters, or more than the database accepts.",
    "not_a_store": "The database is not a store of Seatrial, and is left alone.",
    "store_too_new": "The store was written by a newer version of Seatrial.",
    "store_outdated": "The store was written by an older version of Seatrial, and cannot be brought up to date here.",
    "store_unavailable": "The store cannot be reached, is locked, or is closed.",
    "damaged": "Stored data is damaged and cannot be read.",
    "store_full": "The disk of the store is full.",
    "usage": "The command line cannot be understood.",
    "invalid_filter": "A filter of runs cannot be read; the error shows the place, and what may have been meant.",
    "invalid_request": "A request is not valid for the operation.",
    "unauthorized": "A request has no key, or one that is unknown, revoked or expired.",
    "forbidden": "The key does not have the scope that the operation needs, or the Host or Origin is not allowed.",
    "rate_limited": "A key has used up its requests for now.",
    "cursor_ahead": "A cursor names an event that the run does not have yet.",
    "cursor_expired": "A cursor names an event whose successors are no longer kept.",
    "agent_busy": "The queue of the agent is full; try again later.",
    "thread_busy": "The thread has an active run; a thread has one at a time.",
    "resume_refused": "The thread's open interrupts are not answered, or answered in a way that they do not allow.",
    "idempotency_conflict": "The idempotency key or event id was used for something else before.",
    "sequence_conflict": "Events can be appended only after the last one.",
    "event_refused": "The event is not allowed at this position of the run.",
    "run_ended": "The run has ended, and accepts nothing more.",
    "shutting_down": "The server is shutting down, and accepts nothing new.",
    "cannot_listen": "The server cannot listen there: the port is in use, or the address is not one of this machine's.",
    "service_failed": "The service could not be reached, or answered with an error.",
    "stream_broken": "A stream could not be followed to its end: a gap, an invalid frame, or no connection.",
    "executor_failed": "The executor could not start a worker, or lost all of them.",
    "internal_error": "A fault of Seatrial itself.",
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
        details: Mapping[str, str | int | None] | None = None,
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
        self.details = {} if details is None else dict(details)
        """What a program needs to go on, by name: the id of the run in the way, the head of a log."""

    def __str__(self) -> str:
        where = []
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.pointer:
            where.append(f"at {self.pointer}")
        text = f"{', '.join(where)}: {self.message}" if where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class InfrastructureError(Exception):
    """Raised by an agent function: what happened is not its doing, so the run is `errored` and may be tried again.

    Not a `SeatrialError`: it is an agent's word about itself, not an error of Seatrial.
    """


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """One clear error out of several, one of ours first: they have the same cause more often than not."""
    error = (errors.subgroup(SeatrialError) or errors).exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error


_LACKING = {
    errno.ENOMEM: "memory",
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.ENOSPC: "space on the disk",
    errno.EDQUOT: "space on the disk",
}


def lacking(error: BaseException) -> str | None:
    """What the machine, or a limit that was set for us, has no more of, when that is what an exception says."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError):
        return _LACKING.get(error.errno or 0)
    # By what it was made with: what an exception of others says may take long to write.
    if isinstance(error, RuntimeError) and error.args == ("can't start new thread",):
        return "threads, or memory for one"
    return None
