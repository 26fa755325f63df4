"""Whether a tool's result says that it failed, in any of the spellings that records have for it.

Text is never read as an error: only what a record says beside its text counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from seatrial import wire

if TYPE_CHECKING:
    from seatrial.formats.call_facts import CallStatus

_FLAGS: Final = ("is_error", "isError")
_WORDS: Final = ("status", "outcome", "state")
_EXIT_CODES: Final = ("exit_code", "exitCode", "returncode", "return_code")
_STATUS_OF_WORD: Final[Mapping[str, CallStatus]] = {
    **dict.fromkeys(
        ("error", "errored", "failed", "failure", "fail", "denied", "rejected", "refused", "exception", "aborted",
         "incomplete", "interrupted", "output-error", "output-denied", "approval-denied", "crashed", "invalid",
         "retried"),
        "error",
    ),
    **dict.fromkeys(("timeout", "timed_out", "timedout", "deadline_exceeded", "expired"), "timeout"),
    **dict.fromkeys(("cancelled", "canceled"), "cancelled"),
    **dict.fromkeys(("ok", "success", "succeeded", "completed", "complete", "done", "output-available"), "ok"),
}  # fmt: skip
FAILURE_KEYS: Final = frozenset({*_FLAGS, *_WORDS, *_EXIT_CODES, "error", "success"})
"""Keys of a result that this module looks at."""


class Failure(msgspec.Struct, frozen=True):
    """How a result failed."""

    status: CallStatus
    """`error`, `timeout` or `cancelled`."""
    error: str | None
    """What the record says of it, in words."""


def find_failure(result: Mapping[str, Any]) -> Failure | None:
    """How this result failed, by the keys that it has; None when nothing says that it did."""
    if FAILURE_KEYS.isdisjoint(result):
        return None
    status: CallStatus | None = None
    for key in _WORDS:
        word = result.get(key)
        if type(word) is str and (known := _STATUS_OF_WORD.get(word.lower(), "ok")) != "ok":
            status = known
    error = result.get("error")
    text = _error_text(error)
    if error is True or (error and type(error) in (str, dict, list)):
        status = status or "error"
    if any(_says_true(result.get(key)) for key in _FLAGS) or result.get("success") is False:
        status = status or "error"
    if any(type(code := result.get(key)) is int and code != 0 for key in _EXIT_CODES):
        status = status or "error"
    return None if status is None else Failure(status, text)


def read_status(word: Any) -> CallStatus | None:
    """The status that a word stands for; None for a word that nobody uses for one."""
    return _STATUS_OF_WORD.get(word.lower()) if type(word) is str else None


def _says_true(flag: Any) -> bool:
    return flag is True or flag == 1 or (type(flag) is str and flag.lower() == "true")


def _error_text(error: Any) -> str | None:
    if type(error) is str:
        return error or None
    if type(error) is dict and error:
        message = error.get("message")
        return message if type(message) is str and message else wire.encode(error).decode()
    return None
