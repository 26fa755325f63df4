"""Which cases of a suite are run, by the globs and tags that a person gave."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from seatrial.errors import SeatrialError
from seatrial.problems import meant
from seatrial.runs import Case


def chosen_cases(
    cases: Iterable[Case],
    globs: Collection[str] | None,
    tags: Collection[str] | None,
    *,
    options: tuple[str, str] = ("cases", "tags"),
) -> set[str]:
    """The ids of the cases whose id fits one of the globs and that have one of the tags; None is no choice.

    Raises `SeatrialError` for a glob or a tag that no case has: it was meant to choose something. `options` is how the
    two are called where they were given.
    """
    found = list(cases)
    for glob in globs or ():
        if not any(fnmatchcase(case.id, glob) for case in found):
            hint = meant(glob, [case.id for case in found])
            raise SeatrialError("usage", f"`{options[0]}`: {glob!r} fits no case of the suite", hint=hint)
    known = dict.fromkeys(tag for case in found for tag in case.tags)
    for tag in tags or ():
        if tag not in known:
            hint = meant(tag, list(known)) or (f"one of {', '.join(list(known)[:20])}" if known else None)
            raise SeatrialError("usage", f"`{options[1]}`: no case of the suite has the tag {tag!r}", hint=hint)
    return {
        case.id
        for case in found
        if (globs is None or any(fnmatchcase(case.id, glob) for glob in globs))
        and (tags is None or not set(tags).isdisjoint(case.tags))
    }
