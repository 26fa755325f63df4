"""Names of tools as a configuration gives them: plain names and globs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

import msgspec


class Names(msgspec.Struct, frozen=True):
    """One or more names and globs (`*`, `?`, `[...]`, case matters); fits what any of them fits."""

    given: tuple[str, ...]
    plain: frozenset[str]
    """Every given name as it is: a name with `[` in it fits itself too."""
    globs: re.Pattern[str] | None = None

    @classmethod
    def of(cls, given: Iterable[str]) -> Names:
        """Compile names and globs."""
        names = tuple(given)
        globs = [translate(name) for name in names if is_glob(name)]
        return cls(names, frozenset(names), re.compile("|".join(globs)) if globs else None)

    @classmethod
    def literal(cls, name: str) -> Names:
        """Just this name, whatever characters it has."""
        return cls((name,), frozenset((name,)))

    def fits(self, name: str) -> bool:
        """Whether a tool of that name is meant."""
        return name in self.plain or (self.globs is not None and self.globs.match(name) is not None)

    def __str__(self) -> str:
        return " or ".join(self.given)


def is_glob(name: str) -> bool:
    """Whether a name has a wildcard in it."""
    return not _WILDCARDS.isdisjoint(name)


_WILDCARDS = frozenset("*?[")
