"""Whether a tool's result says that it failed, in any of the spellings that records have for it.

Text is never read as an error: only what a record says beside its text counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from seatrial._support import wire

CallStatus: TypeAlias = Literal["ok", "error", "timeout", "cancelled", "unknown"]

_FLAGS: Final = ("is_error", "isError")
_FLAGS_BESIDE: Final = (
    *_FLAGS, "failed", "errored", "has_error", "hasError", "timed_out", "timedOut", "denied", "aborted",
)  # fmt: skip
"""What stands beside a result is about the call; an object that is one may count how many of its tests have failed."""
_SUCCESSES: Final = ("success", "ok", "succeeded")
_WORDS: Final = ("status", "outcome", "state")
_INSIDE_WORDS: Final = ("state", "status", "outcome", "type", "code")
"""Where the word stands, when a status is an object."""
_HTTP_STATUSES: Final = ("status_code", "statusCode")
_EXIT_CODES: Final = ("exit_code", "exitCode", "exitcode", "exit_status", "exitStatus", "returncode", "return_code")
_ERRORS: Final = ("error", "errorText", "error_text", "errorMessage", "error_message", "exception")
_ERRORS_BESIDE: Final = (
    *_ERRORS, "errors", "error_code", "errorCode", "error_type", "errorType", "failure", "traceback", "stack_trace",
)  # fmt: skip
_STATUS_OF_WORD: Final[Mapping[str, CallStatus]] = {
    **dict.fromkeys(
        ("error", "errored", "failed", "failure", "fail", "denied", "rejected", "refused", "exception", "aborted",
         "incomplete", "interrupted", "output-error", "output-denied", "approval-denied", "crashed", "invalid",
         "retried", "permission_denied", "forbidden", "unauthorized", "unauthenticated", "blocked", "killed",
         "terminated", "not_found", "unavailable", "internal_error", "bad_request", "rate_limited", "skipped",
         "tool_error"),
        "error",
    ),
    **dict.fromkeys(("timeout", "timed_out", "timedout", "deadline_exceeded", "expired"), "timeout"),
    **dict.fromkeys(("cancelled", "canceled"), "cancelled"),
    **dict.fromkeys(
        ("ok", "success", "successful", "succeeded", "completed", "complete", "done", "finished", "passed",
         "output-available", "result", "final"),
        "ok",
    ),
}  # fmt: skip
_UNDER_WAY: Final = frozenset(
    {"pending", "in_progress", "in-progress", "running", "queued", "started", "requested", "streaming", "searching",
     "generating", "interpreting", "calling", "call", "partial-call", "input-available", "input-streaming"}
)  # fmt: skip
"""What is said of a call that has not ended."""
_BESIDE: Final = ("metadata", "additional_kwargs", "_meta", "meta", "extra")
"""Where libraries keep what their messages have no field for."""
_OF_TOOL: Final = "artifact"
"""What a tool gave for other programs: anything at all, of which only a flag is taken for a failure."""
_DEFINITE: Final = frozenset(
    {"error", "errored", "failed", "failure", "fail", "exception", "tool_error", "internal_error", "output-error",
     "timeout", "timed_out", "timedout"}
)  # fmt: skip
"""Words that say of any object that it is a failure. Others may be about what a tool was asked for: an order that was
cancelled, a door that is blocked."""
FAILURE_KEYS: Final = frozenset({*_FLAGS_BESIDE, *_WORDS, *_HTTP_STATUSES, *_EXIT_CODES, *_ERRORS_BESIDE, *_SUCCESSES})
"""Keys of a result that this module looks at."""
_LOOKED_AT: Final = FAILURE_KEYS | {*_BESIDE, _OF_TOOL}


class Failure(msgspec.Struct, frozen=True):
    """How a result failed, or that nobody knows whether it did."""

    status: CallStatus
    """`error`, `timeout` or `cancelled`; `unknown` for a word that nobody uses for a status."""
    error: str | None
    """What the record says of it, in words."""


def find_failure(result: Mapping[str, Any]) -> Failure | None:
    """How this result failed, by the keys that it has; None when nothing says that it did."""
    if _LOOKED_AT.isdisjoint(result):
        return None
    said = {status for key in (*_WORDS, *_HTTP_STATUSES) if (status := _status(result.get(key))) is not None}
    failed = next((status for status in _BY_WEIGHT if status in said), None)
    errors = [error for key in _ERRORS_BESIDE if _says_error(error := result.get(key))]
    if failed is None or failed == "unknown":
        artifact = result.get(_OF_TOOL)
        flagged = type(artifact) is dict and any(_says_true(artifact.get(key)) for key in _FLAGS)
        if errors or flagged or _is_marked(result, _FLAGS_BESIDE, _SUCCESSES):
            failed = "error"
        for key in _BESIDE:
            if (beside := find_failure_inside(result.get(key))) is not None:
                return Failure(beside.status, _first_text(errors) or beside.error)
    return None if failed is None else Failure(failed, _first_text(errors))


def find_failure_inside(value: Any) -> Failure | None:
    """How a call failed, by an object that may say much else: what libraries keep beside a result, or the result of an
    API that has its errors inside."""
    if type(value) is not dict:
        return None
    errors = [error for key in _ERRORS if _says_error(error := value.get(key))]
    words = [plain for key in _WORDS if type(word := value.get(key)) is str and (plain := _plain(word)) in _DEFINITE]
    if not (words or errors or _is_marked(value, _FLAGS, ("success",))):
        return None
    return Failure(_STATUS_OF_WORD[words[0]] if words else "error", _first_text(errors))


def is_failed_mcp_result(value: Any) -> bool:
    """Whether a value is what a tool of an MCP server gives when it fails."""
    return (
        type(value) is dict
        and any(_says_true(value.get(key)) for key in _FLAGS)
        and ("content" in value or "structuredContent" in value)
    )


def is_failed_part(part: Any) -> bool:
    """Whether a part of a result's content says that the call failed."""
    if type(part) is not dict:
        return False
    kind = part.get("type")
    return (type(kind) is str and kind.endswith("error")) or any(_says_true(part.get(key)) for key in _FLAGS)


def _is_marked(result: Mapping[str, Any], flags: tuple[str, ...], successes: tuple[str, ...]) -> bool:
    """Whether a flag, an exit code or `success` says that something failed."""
    return (
        any(_says_true(result.get(key)) for key in flags)
        or any(_says_not_zero(result.get(key)) for key in _EXIT_CODES)
        or any(_says_false(result.get(key)) for key in successes)
    )


def _first_text(errors: list[Any]) -> str | None:
    return next((text for error in errors if (text := _error_text(error)) is not None), None)


def says_failed(result: Mapping[str, Any]) -> bool:
    """Whether the keys of a result say that it failed."""
    failure = find_failure(result)
    return failure is not None and failure.status != "unknown"


def is_under_way(word: Any) -> bool:
    """Whether a word says that a call has not ended."""
    return type(word) is str and _plain(word) in _UNDER_WAY


def read_status(word: Any) -> CallStatus | None:
    """The status that a word stands for; None for a word that nobody uses for one."""
    return _STATUS_OF_WORD.get(_plain(word)) if type(word) is str else None


_BY_WEIGHT: Final[tuple[CallStatus, ...]] = ("error", "timeout", "cancelled", "unknown")


def _status(word: Any) -> CallStatus | None:
    """What is said under a key that tells how a call ended; None for what says nothing."""
    if type(word) is str:
        plain = _plain(word)
        if plain.isdecimal():
            return _status(int(plain)) if len(plain) < 10 else "unknown"
        return _STATUS_OF_WORD.get(plain, "unknown") if plain else None
    if type(word) is bool:
        return "ok" if word else "error"
    if type(word) is int or type(word) is float:
        # As HTTP has them; 0 is how programs say that all is well.
        return "ok" if word == 0 or 200 <= word < 400 else "error"
    if type(word) is dict:
        said = [_status(inside) for key in _INSIDE_WORDS if type(inside := word.get(key)) is str]
        return next((status for status in said if status not in ("ok", "unknown")), None)
    return None


def _plain(word: str) -> str:
    return word.strip().lower()


def _says_true(flag: Any) -> bool:
    """Whether a flag is raised: some write the error itself in its place."""
    return _plain(flag) not in ("no", "0") and _says_error(flag) if type(flag) is str else _says_error(flag)


def _says_false(flag: Any) -> bool:
    return (
        flag is False
        or (type(flag) in (int, float) and flag == 0)
        or (type(flag) is str and _plain(flag) in ("false", "0", "no"))
    )


def _says_not_zero(code: Any) -> bool:
    if type(code) is str:
        digits = code.strip().removeprefix("-")
        return digits.isdecimal() and bool(digits.strip("0"))
    return type(code) in (int, float) and code != 0


def _says_error(error: Any) -> bool:
    if type(error) is str:
        return _plain(error) not in ("", "false", "none", "null")
    return (
        error is True or (type(error) in (int, float) and error != 0) or (bool(error) and type(error) in (dict, list))
    )


def _error_text(error: Any) -> str | None:
    if type(error) is int or type(error) is float:
        return str(error)
    if type(error) is str:
        return error or None
    if type(error) is dict and error:
        message = error.get("message")
        return message if type(message) is str and message else wire.encode(error).decode()
    return None
