"""Notes: what the reader of foreign data had to drop, guess or repair.

Every code is declared once, with what it means, next to the code that uses it. The list in
`docs/notes.md` is generated from these declarations.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seatrial.wire import Repair

NOTE_CODES: dict[str, str] = {}
"""Every declared note code and what it means."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that had to be dropped, guessed or repaired."""

    code: str
    """Stable identifier, for programs; declared with `note_code`."""
    pointer: str
    """JSON pointer into the input, "" for the whole of it."""
    message: str
    """One sentence, for people."""


def note_code(code: str, meaning: str) -> str:
    """Declare a note code; returns the code, to be kept as a module constant."""
    if NOTE_CODES.setdefault(code, meaning) != meaning:
        raise ValueError(f"note code {code!r} is declared twice with different meanings")
    return code


def pointer(*parts: str | int) -> str:
    """Build a JSON pointer (RFC 6901) from keys and indices."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def repair_notes(repairs: Iterable[Repair], pointer: str = "") -> list[Note]:
    """Notes for what `wire.decode` had to repair in the text at the pointer."""
    return [Note(repair, pointer, NOTE_CODES[repair]) for repair in repairs]


note_code("bom_removed", "The input starts with a byte order mark; it was skipped.")
note_code("invalid_utf8_replaced", "Bytes that are not UTF-8 were replaced by U+FFFD.")
note_code("lone_surrogate_replaced", "Escaped surrogates without a partner were replaced by U+FFFD.")
