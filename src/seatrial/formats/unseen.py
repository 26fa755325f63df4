"""What a reader did not see: calls that may stand among the metadata, and keys that occur twice in an object.

Both are looked for once a record is read, whatever its format. Of a key that occurs twice, readers keep the last, and
what stood under the first is lost; the decoder does not say so, so the bytes are looked at again.
"""

from __future__ import annotations

import json
from typing import Any, Final

from seatrial.formats.keys import CALLS_IN_METADATA, calls_in_metadata
from seatrial.formats.reading import Reading
from seatrial.transcript.note import Note, note_code

KEY_TWICE_IN_OBJECT = note_code(
    "key_twice_in_object", "An object of the record has a key twice; the last one counts, the first is lost.", "serious"
)
_SHOWN: Final = 3


def note_unseen(data: bytes, reading: Reading) -> Reading:
    """The reading, with notes for all that its reader did not see."""
    return note_repeated_keys(data, note_calls_in_metadata(reading))


def note_calls_in_metadata(reading: Reading) -> Reading:
    """The reading, with a note for everything beside its messages that looks like calls."""
    if not any(note.code == CALLS_IN_METADATA for note in reading.notes):
        run = reading.transcript
        found = [calls_in_metadata(key, value, messages=run.messages) for key, value in run.metadata.items()]
        reading.notes += [note for note in found if note is not None]
    return reading


def note_repeated_keys(data: bytes, reading: Reading) -> Reading:
    """The reading, with a note for keys that occur twice in an object of its record: a document, lines or events."""
    if any(note.code == KEY_TWICE_IN_OBJECT for note in reading.notes):
        return reading
    repeated: dict[str, None] = {}
    if not _look(data, repeated):
        for line in data.splitlines():
            _look(line.removeprefix(b"data:"), repeated)
    if repeated:
        names = ", ".join([repr(name[:40]) for name in [*repeated][:_SHOWN]])
        text = f"{names} {'occurs' if len(repeated) == 1 else 'occur'} twice in one object"
        reading.notes.append(Note(KEY_TWICE_IN_OBJECT, "", text))
    return reading


def _look(data: bytes, repeated: dict[str, None]) -> bool:
    """Whether the data is JSON; adds the keys that occur twice in an object."""

    def look(members: list[tuple[str, Any]]) -> None:
        if len(members) > 1 and len(members) != len({key for key, _ in members}):
            seen: set[str] = set()
            for key, _ in members:
                if key in seen:
                    repeated[key] = None
                seen.add(key)

    try:
        json.loads(data, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return False
    return True
