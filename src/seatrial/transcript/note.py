"""Notes: what the reader of foreign data had to drop, guess or repair.

Every code is declared once, with what it means, next to the code that uses it. The list in
`docs/notes.md` is generated from these declarations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Self, TypeAlias

import msgspec

from seatrial._support.wire import Repair

Weight: TypeAlias = Literal["harmless", "look", "serious"]
"""`harmless`: nothing is lost (an id was made up). `look`: something was repaired or guessed. `serious`: something that
the agent said or did was dropped, so what is known of its calls is not all of them."""


class NoteCode(msgspec.Struct, frozen=True):
    """What is known of a code wherever it occurs."""

    meaning: str
    weight: Weight


NOTE_CODES: dict[str, NoteCode] = {}
"""Every declared note code."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that had to be dropped, guessed or repaired."""

    code: str
    """Stable identifier, for programs; declared with `note_code`."""
    pointer: str
    """JSON pointer into the input, "" for the whole of it."""
    message: str
    """One sentence, for people."""
    # A factory is never equal to a default, so msgspec writes the key always.
    weight: Weight | None = msgspec.field(default_factory=lambda: None)
    """That of the code, unless the place makes it heavier or lighter; None only for the code of another version."""

    def __post_init__(self) -> None:
        if self.weight is None and (known := NOTE_CODES.get(self.code)) is not None:
            msgspec.structs.force_setattr(self, "weight", known.weight)

    @property
    def serious(self) -> bool:
        """Whether something was dropped that the agent said or did; a code that nobody knows may mean that, too."""
        return self.weight is None or self.weight == "serious"


def note_code(code: str, meaning: str, weight: Weight) -> str:
    """Declare a note code; returns the code, to be kept as a module constant."""
    declared = NoteCode(meaning, weight)
    if NOTE_CODES.setdefault(code, declared) != declared:
        raise ValueError(f"note code {code!r} is declared twice with different meanings")
    return code


MAX_NOTES: Final = 1_000
"""Notes of one reading that are kept; a record can be wrong in as many places as it has bytes."""
NOTES_OMITTED = note_code(
    "notes_omitted", "There is more to note about a record than is kept; serious when one of those notes is.", "look"
)


class Notes(list[Note]):
    """Notes up to a limit, and one at the end for all that are beyond it."""

    def __init__(self) -> None:
        self._omitted = 0
        self._weight: Weight = "look"

    def append(self, note: Note) -> None:
        if len(self) < MAX_NOTES:
            super().append(note)
            return
        self._omitted += 1
        if note.serious:
            self._weight = "serious"
        self[MAX_NOTES:] = [Note(NOTES_OMITTED, "", f"{self._omitted} more notes were left out", self._weight)]

    def extend(self, notes: Iterable[Note]) -> None:
        for note in notes:
            self.append(note)

    def __iadd__(self, notes: Iterable[Note]) -> Self:  # type: ignore[misc, override]
        self.extend(notes)
        return self


def pointer(*parts: str | int) -> str:
    """Build a JSON pointer (RFC 6901) from keys and indices."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def repair_notes(repairs: Iterable[Repair], pointer: str = "") -> list[Note]:
    """Notes for what `wire.decode` had to repair in the text at the pointer."""
    return [Note(repair, pointer, NOTE_CODES[repair].meaning) for repair in repairs]


note_code("bom_removed", "The input starts with a byte order mark; it was skipped.", "harmless")
note_code("invalid_utf8_replaced", "Bytes that are not UTF-8 were replaced by U+FFFD.", "look")
note_code("lone_surrogate_replaced", "Escaped surrogates without a partner were replaced by U+FFFD.", "look")
