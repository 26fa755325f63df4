"""Foreign shapes, one module each: bytes to a transcript with notes, and back with a list of losses.

    reading = formats.read(data)                    # found out from the content; or formats.read(data, "openai")
    written = formats.write(reading.transcript, "anthropic")

`reading.notes` says what had to be dropped, guessed or repaired; `written.losses` what the format cannot carry.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.formats.detection import Detection, detect
    from seatrial.formats.reading import Reading, Written
    from seatrial.formats.registry import FORMATS, Format, read, read_many, write

__all__ = ["FORMATS", "Detection", "Format", "Reading", "Written", "detect", "read", "read_many", "write"]

# Loaded when first asked for: commands that need one reader start without the others.
_HOMES = {
    "FORMATS": "registry",
    "Detection": "detection",
    "Format": "registry",
    "Reading": "reading",
    "Written": "reading",
    "detect": "detection",
    "read": "registry",
    "read_many": "registry",
    "write": "registry",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
