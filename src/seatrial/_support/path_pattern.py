"""Patterns for paths in a tree, relative to its top: `src`, `src/*.py`, `**/*.lock`.

`*` and `?` do not cross a `/`, `**` does. A pattern that fits a folder fits all that is in it. One with a wildcard and
without a `/` is refused: to some it means the top alone, to others any folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from seatrial.errors import SeatrialError

_PART = re.compile(r"\*\*/|\*\*|\*|\?|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class PathPatterns:
    """Patterns of which a path may fit any."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises `SeatrialError("invalid_config")`, with the index of the pattern, for one that is none."""
        self._compiled = []
        for index, text in enumerate(patterns):
            try:
                self._compiled.append((text, _compiled(text)))
            except SeatrialError as error:
                error.pointer = f"/{index}"
                raise

    def fitting(self, path: str) -> str | None:
        """The first pattern that fits; None when none does."""
        return next((text for text, pattern in self._compiled if pattern.match(path)), None)


def _compiled(text: str) -> re.Pattern[str]:
    plain = text.removeprefix("/").removesuffix("/")
    if not plain or "\0" in plain or any(part in ("", ".", "..") for part in plain.split("/")):
        raise SeatrialError("invalid_config", f"{text[:100]!r} is not a path pattern: `src`, `src/*.py`, `**/*.lock`")
    if "[" in plain:
        hint = "write `?` for the bracket itself, or one pattern for each character"
        raise SeatrialError("invalid_config", f"{text[:100]!r} has a bracket, which has no meaning here", hint=hint)
    if "/" not in text and any(character in text for character in "*?") and text != "**":
        hint = f"write `**/{text}` for every folder, or `/{text}` for the top alone"
        raise SeatrialError("invalid_config", f"{text[:100]!r} does not say in which folder", hint=hint)
    parts = [found.group() for found in _PART.finditer(plain)]
    pattern = "".join([_MEANING.get(part) or re.escape(part) for part in parts])
    return re.compile(rf"(?s:{pattern})(?:/|\Z)")
