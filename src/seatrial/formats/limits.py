"""How much of one record is read. What an agent sends is anybody's: five megabytes of `{}` are two million messages.

Past a limit the record is cut, with one serious note: it is partial, so no check on its calls passes by what is
missing.
"""

from __future__ import annotations

from typing import Final

from seatrial.formats.parts import At
from seatrial.formats.tally import Tally
from seatrial.transcript.note import note_code

LEAST_PIECES: Final = 20_000
MOST_PIECES: Final = 60_000
BYTES_A_PIECE: Final = 150
"""A message, a part, a call or a result of fewer bytes than this takes more memory than twenty times its size."""
MAX_NODES: Final = 500_000
"""Objects and arrays in a record, counted by their opening brackets, also those inside texts."""
MAX_VALUES: Final = 2_000_000
"""Values in a record, counted by the commas between them, also those inside texts."""
LARGE_BYTES: Final = 256 * 1024
"""From this size on, a record is read beside the event loop."""

RECORD_CUT = note_code(
    "record_cut",
    "A record has more messages, parts or nesting than is read; what is beyond that was dropped.",
    "serious",
)


def most_pieces(size: int | None) -> int:
    """How many messages, parts, calls and results are read of a record of this many bytes, all together."""
    return MOST_PIECES if size is None else min(max(LEAST_PIECES, size // BYTES_A_PIECE), MOST_PIECES)


def has_too_many_nodes(data: bytes) -> bool:
    """Whether opening the whole of a record would take far more memory than it is long."""
    if len(data) <= MAX_NODES:
        return False
    return data.count(b"{") + data.count(b"[") > MAX_NODES or data.count(b",") > MAX_VALUES


def note_cut(tally: Tally, at: At, limit: int, what: str = "messages, parts and calls") -> None:
    """Note, once, that a record was cut."""
    tally.add(RECORD_CUT, at, f"read no more than {limit:,} {what}", each="")
