"""A record that says itself, beside its answer or its messages, that the run did not end well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from seatrial.formats.parts import At
from seatrial.formats.tally import NoteTally
from seatrial.transcript import note_code
from seatrial.transcript.failure import find_failure

FAILURE_REPORTED = note_code(
    "failure_reported",
    "The record says beside an answer that something failed (`error`, `status`): a call may be missing in it.",
    "serious",
)
_KEYS: Final = ("error", "errors", "exception", "is_error", "isError", "status")


def note_failure(said: Mapping[str, Any], tally: NoteTally, at: At = ()) -> None:
    """Note what the keys of a record, or of an assistant's message, say of its end; a result of a tool has its own."""
    for key in _KEYS:
        if key not in said:
            continue
        failure = find_failure({"error" if key == "errors" else key: said[key]})
        if failure is not None and failure.status != "unknown":
            text = "" if failure.error is None else f": {failure.error[:200]}"
            tally.add(FAILURE_REPORTED, (*at, key), f"{key!r} says that it failed{text}", each="")
            return
