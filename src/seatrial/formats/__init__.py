"""Foreign shapes, one module each: bytes to a transcript with notes, and back with a list of losses.

    reading = formats.read(data)                    # found out from the content; or formats.read(data, "openai")
    written = formats.write(reading.transcript, "anthropic")

`reading.notes` says what had to be dropped, guessed or repaired; `written.losses` what the format cannot carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.formats.reading import Reading, Written
    from seatrial.formats.registry import (
        FORMATS,
        WRITABLE,
        Detection,
        Format,
        detect,
        find_format,
        read,
        read_many,
        register_format,
        writable,
        write,
    )

__all__ = [
    "FORMATS",
    "WRITABLE",
    "Detection",
    "Format",
    "Reading",
    "Written",
    "detect",
    "find_format",
    "read",
    "read_many",
    "register_format",
    "writable",
    "write",
]

__getattr__ = attach(
    __name__,
    {
        "reading": (
            "Reading",
            "Written",
        ),
        "registry": (
            "FORMATS",
            "WRITABLE",
            "Detection",
            "Format",
            "detect",
            "find_format",
            "read",
            "read_many",
            "register_format",
            "writable",
            "write",
        ),
    },
)
