"""Findings under way: what happens again and again is one note with a count."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seatrial.formats.parts import At
from seatrial.transcript import NOTE_CODES, Note, Notes, Weight, pointer
from seatrial.transcript.note import MAX_NOTES
from seatrial.wire import Repair


class NoteTally:
    """Collects the notes of one reading, or the losses of one writing."""

    def __init__(self, size: int | None = None) -> None:
        """`size` is that of the record in bytes, where it is known; how much of it is read goes by it."""
        self.size = size
        self.notes: list[Note] = Notes()
        """What was found so far, in order; the counts are still missing."""
        self._repeats: dict[tuple[str, str], list[int]] = {}
        """Where in `notes` the first finding of a kind stands, and how often it came again."""

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
        return list(self.notes)
