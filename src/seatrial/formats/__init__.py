"""Foreign shapes, one module each: bytes to a transcript with notes, and back with a list of losses.

    reading = formats.read(data)                    # found out from the content; or formats.read(data, "openai")
    written = formats.write(reading, "anthropic")

`reading.notes` says what had to be dropped, guessed or repaired; `written.losses` what the format cannot carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.formats.reading import Reading as Reading
    from seatrial.formats.reading import Written as Written
    from seatrial.formats.registry import FORMATS as FORMATS
    from seatrial.formats.registry import WRITABLE as WRITABLE
    from seatrial.formats.registry import Detection as Detection
    from seatrial.formats.registry import Format as Format
    from seatrial.formats.registry import detect as detect
    from seatrial.formats.registry import find_format as find_format
    from seatrial.formats.registry import read as read
    from seatrial.formats.registry import read_many as read_many
    from seatrial.formats.registry import register_format as register_format
    from seatrial.formats.registry import writable as writable
    from seatrial.formats.registry import write as write

__getattr__, __all__ = attach(
    __name__,
    {
        "reading": "Reading Written",
        "registry": (
            "FORMATS WRITABLE Detection Format detect find_format read read_many register_format writable write"
        ),
    },
)
