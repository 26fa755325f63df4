"""Text of agents made fit for people: nothing in it can steer a terminal, reorder a line or hide itself."""

from __future__ import annotations

import os
import re
from typing import TextIO

# C0 and C1 controls (escape sequences start with them), and the marks that reorder or hide text.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_BLANK = re.compile(rf"[\s{_CONTROLS.pattern[1:]}*")

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "bold": 1, "dim": 2}


def printable(text: str) -> str:
    """The text with every character that could steer a terminal written as an escape."""
    return _CONTROLS.sub(lambda match: _escaped(match.group()), text)


def is_blank(text: str) -> bool:
    """Whether there is nothing in a text that people would see: only white space, and marks that are not shown."""
    return _BLANK.fullmatch(text) is not None


def one_line(text: str, width: int = 100) -> str:
    """The text on one line, cut to a width, harmless."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= width else f"{text[: width - 1]}…"


def coloured(text: str, colour: str) -> str:
    """The text in a colour, for a terminal."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def paint(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour, where the stream is a terminal and nobody asked for none."""
    return coloured(text, colour) if wants_colour(stream) else text


def wants_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal, and nobody asked for no colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
