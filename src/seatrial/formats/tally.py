"""Findings under way: what happens again and again is one note with a count."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seatrial.formats.parts import At
from seatrial.transcript import NOTE_CODES, Note, Weight, pointer
from seatrial.wire import Repair


class Tally:
    """Collects the notes of one reading, or the losses of one writing."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
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
        return self.notes
