"""Findings under way: what happens again and again is one note with a count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

import msgspec

from seatrial.formats.parts import At
from seatrial.transcript import NOTE_CODES, Note, Weight, note_code, pointer
from seatrial.wire import Repair

MAX_NOTES: Final = 1_000
"""Notes of one reading that are kept; a record can be wrong in as many places as it has bytes."""
NOTES_OMITTED = note_code(
    "notes_omitted", "There is more to note about a record than is kept; serious when one of those notes is.", "look"
)


class _Notes(list[Note]):
    """Notes up to a limit, and what is known of those beyond it."""

    def __init__(self) -> None:
        self.omitted = 0
        self.serious = False

    def append(self, note: Note) -> None:
        if len(self) < MAX_NOTES:
            super().append(note)
        else:
            self.omitted += 1
            self.serious = self.serious or note.serious

    def extend(self, notes: Iterable[Note]) -> None:
        for note in notes:
            self.append(note)

    def __iadd__(self, notes: Iterable[Note]) -> Self:  # type: ignore[misc, override]
        self.extend(notes)
        return self


class Tally:
    """Collects the notes of one reading, or the losses of one writing."""

    def __init__(self, size: int | None = None) -> None:
        """`size` is that of the record in bytes, where it is known; how much of it is read goes by it."""
        self.size = size
        self._notes = _Notes()
        self.notes: list[Note] = self._notes
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
        if self._notes.omitted:
            text = f"{self._notes.omitted} more notes were left out"
            weight: Weight = "serious" if self._notes.serious else "look"
            return [*self.notes, Note(NOTES_OMITTED, "", text, weight)]
        return list(self.notes)
