"""How much of one record is read. What an agent sends is anybody's: five megabytes of `{}` are two million messages.

Past a limit the record is cut, with one serious note: it is partial, so no check on its calls passes by what is
missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from seatrial.formats.chat.notes import At, NoteTally
from seatrial.transcript.note import note_code

LEAST_PIECES: Final = 20_000
MOST_PIECES: Final = 60_000
BYTES_A_PIECE: Final = 150
"""A message, a part, a call or a result of fewer bytes than this takes more memory than twenty times its size."""
MAX_NODES: Final = 500_000
"""Objects and arrays in a record, counted by their opening brackets."""
MAX_VALUES: Final = 200_000
"""Values in a record, counted by the commas between them. Nothing else runs while one object is decoded, so that it
must not take long."""
LARGE_BYTES: Final = 256 * 1024
"""From this size on, a record is read beside the event loop."""
_SLICE: Final = 256 * 1024

RECORD_CUT = note_code(
    "record_cut",
    "A record has more messages, parts or nesting than is read; what is beyond that was dropped.",
    "serious",
)


def most_pieces(size: int | None) -> int:
    """How many messages, parts, calls and results are read of a record of this many bytes, all together."""
    return MOST_PIECES if size is None else min(max(LEAST_PIECES, size // BYTES_A_PIECE), MOST_PIECES)


def excess(data: bytes) -> str | None:
    """What a record has too much of: opening all of it would take far more memory, or time, than it is long."""
    if len(data) <= MAX_VALUES or not _is_excess(_counted(data)):
        return None
    # There may be commas and brackets inside texts, which cost nothing.
    counts: Counter[bytes] = Counter()
    for outside in _outside_texts(data):
        counts += _counted(outside)
        if _is_excess(counts):
            many = counts[b"{"] + counts[b"["] > MAX_NODES
            return f"more than {MAX_NODES:,} objects and arrays" if many else f"more than {MAX_VALUES:,} values"
    return None


def _counted(data: bytes) -> Counter[bytes]:
    return Counter({sign: data.count(sign) for sign in (b"{", b"[", b",")})


def _is_excess(counts: Counter[bytes]) -> bool:
    return counts[b"{"] + counts[b"["] > MAX_NODES or counts[b","] > MAX_VALUES


def _outside_texts(data: bytes) -> Iterator[bytes]:
    """JSON without the texts in it, slice by slice."""
    inside = False
    held = b""
    for start in range(0, len(data), _SLICE):
        piece = held + data[start : start + _SLICE]
        # A backslash that has no partner yet belongs to what comes next.
        held = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece[: len(piece) - len(held)]
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        texts = b"".join(parts[not inside :: 2])
        if b"\n" in texts or b"\r" in texts:
            # No text of JSON goes over a line: a quote is missing somewhere, and lines behind it may be sound.
            yield data[start:]
            return
        yield b"".join(parts[inside::2])
        if len(parts) % 2 == 0:
            inside = not inside


def note_cut(tally: NoteTally, at: At, limit: int) -> None:
    """Note, once, that a record was cut."""
    tally.add(RECORD_CUT, at, f"read no more than {limit:,} messages, parts and calls", each="")


def note_answer_only(tally: NoteTally, excess: str) -> None:
    """Note that a record has too much in it to be opened, and that nothing but its answer was read."""
    tally.add(RECORD_CUT, (), f"there are {excess}, so nothing but the answer was read")
