"""The notes of one reading: where they point, and those that repeat counted as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from seatrial._support.wire import Repair
from seatrial.transcript import NOTE_CODES, Note, Notes, Weight, note_code, pointer
from seatrial.transcript.failure import find_failure, read_status
from seatrial.transcript.note import MAX_NOTES

FAILURE_REPORTED = note_code(
    "failure_reported",
    "The record says beside an answer that something failed (`error`, `status`): a call may be missing in it.",
    "serious",
)

RUN_FAILURE_REPORTED = note_code(
    "run_failure_reported",
    "The record says of the run itself that it failed (`status` and `error`); the run is failed "
    "(`agent_reported_error`).",
    "serious",
)

_FAILURE_KEYS: Final = ("error", "errors", "exception", "is_error", "isError", "status")
_FAILURE_KEYS_OF_RUN: Final = (*_FAILURE_KEYS, "outcome", "success")
_LOOKED_AT: Final = frozenset(_FAILURE_KEYS_OF_RUN)
At: TypeAlias = tuple[str | int, ...]
"""Where in the input something stands; made into a pointer only when there is something to say about it."""


def json_kind(value: Any) -> str:
    """What a decoded JSON value is, with its article, for a sentence."""
    if value is None:
        return "null"
    return _JSON_KINDS.get(type(value), "a number")


_JSON_KINDS: dict[type, str] = {dict: "an object", list: "an array", str: "text", bool: "true or false"}


class NoteTally:
    """Collects the notes of one reading, or the losses of one writing."""

    def __init__(self, size: int | None = None) -> None:
        """`size` is that of the record in bytes, where it is known; how much of it is read goes by it."""
        self.size = size
        self.notes: list[Note] = Notes()
        """What was found so far, in order; the counts are still missing."""
        self._repeats: dict[tuple[str, str], list[int]] = {}
        """Where in `notes` the first finding of a kind stands, and how often it came again."""
        self._open: dict[object, Note] = {}
        """What is a finding only if nothing that comes later settles it."""

    def add(self, code: str, at: At, message: str, *, each: str | None = None, weight: Weight | None = None) -> None:
        """Note a finding. Findings of one code that agree in `each` are one note: the first, with a count."""
        if each is not None:
            known = self._repeats.get((code, each))
            if known is not None:
                known[1] += 1
                return
            if len(self._repeats) < MAX_NOTES and len(self.notes) < MAX_NOTES:
                self._repeats[code, each] = [len(self.notes), 0]
        self.notes.append(Note(code, pointer(*at), message, weight))

    def add_unless_settled(self, key: object, code: str, at: At, message: str) -> None:
        """Note a finding at the end, unless something that comes before it settles it."""
        self._open[at if key is None else key] = Note(code, pointer(*at), message)

    def settle(self, key: object) -> None:
        """What was found under this key is no finding any more."""
        if isinstance(key, str):
            self._open.pop(key, None)

    def add_repairs(self, repairs: Iterable[Repair], at: At) -> None:
        """Note what `wire.decode` had to repair."""
        for repair in repairs:
            self.add(repair, at, NOTE_CODES[repair].meaning, each="")

    def total(self) -> list[Note]:
        """All notes, the repeated ones with their count."""
        for index, more in self._repeats.values():
            if more:
                note = self.notes[index]
                self.notes[index] = msgspec.structs.replace(note, message=f"{note.message} (and {more} more like it)")
        self._repeats.clear()
        for note in self._open.values():
            self.notes.append(note)
        self._open.clear()
        return list(self.notes)


def note_failure(said: Mapping[str, Any], tally: NoteTally, at: At = (), *, of_run: bool = False) -> None:
    """Note what the keys of a record, or of an assistant's message, say of its end; a result of a tool has its own.

    `of_run`: they are about the run as a whole. One that says by `status` or `outcome` that it failed, and by `error`
    how, has.
    """
    if _LOOKED_AT.isdisjoint(said):
        return
    for key in ("status", "outcome") if of_run else ():
        if read_status(said.get(key)) not in ("error", "timeout"):
            continue
        failure = find_failure({name: said[name] for name in ("error", "errors", "exception") if said.get(name)})
        if failure is not None:
            word = str(said[key])[:40]
            text = f"the record says that the run is {word!r}: {(failure.error or 'it does not say why')[:200]}"
            tally.add(RUN_FAILURE_REPORTED, (*at, key), text, each="")
            return
    for key in _FAILURE_KEYS_OF_RUN if of_run else _FAILURE_KEYS:
        if key not in said:
            continue
        failure = find_failure({"error" if key == "errors" else key: said[key]})
        if failure is not None and failure.status != "unknown":
            text = "" if failure.error is None else f": {failure.error[:200]}"
            tally.add(FAILURE_REPORTED, (*at, key), f"{key!r} says that it failed{text}", each="")
            return
