"""Matchers: what a configuration can say of a value, or of a tool's name, beyond the value itself.

| matcher | fits |
| --- | --- |
| `{$any: true}` | every value that is there |
| `{$regex: s}` | text in which the pattern is found (search, as `pattern` of JSON Schema; anchor it with `^` and `$`) |
| `{$glob: s}` | text that the glob covers whole; case matters |
| `{$approx: x, abs: d}`, `{$approx: x, rel: r}` | a number at most d, or r times x, away; else r is 1e-6 |
| `{$in: [..]}` | one of these values, which are taken literally: the way to write a value that has `$` keys itself |
| `{$gt: x}`, `$gte`, `$lt`, `$lte`, also together | a number, or text if x is text, on that side of x |
| `{$len: n}` | text, an array or an object of that length; n may be a matcher |
| `{$contains: v}` | text with the text v in it, an array with an item that fits v, an object with the key v |
| `{$schema: {..}}` | a value that is valid under the JSON Schema, which refers to nothing outside itself |
| `{$not: v}` | every value that does not fit v, which may be a matcher |

Patterns and globs look at text of at most `MAX_SUBJECT` characters, and everything here has the time limit of the
match. What cannot be compared within these limits neither fits nor does not fit: `SeatrialError`, and the match is
errored. A JSON Schema's patterns are matched without backtracking, so look-around and back references are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import Any

import msgspec

from seatrial._support.json_schema import Schema
from seatrial._support.patterns import Pattern, check_length
from seatrial.errors import SeatrialError
from seatrial.trajectory import config
from seatrial.trajectory.values import Matcher, differences, key

_WILDCARDS = frozenset("*?[")
DEFAULT_TOLERANCE = 1e-6
Test = Callable[[Any], bool]


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


def compile_value(value: Any, at: config.Path) -> Any:
    """The value with every matcher in it compiled."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                config.refuse(f"keys of an object are text, got {config.short(name)}", at)
        if any(name.startswith("$") for name in value):
            return _compile_matcher(value, at)
        return {name: compile_value(item, (*at, name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [compile_value(item, (*at, index)) for index, item in enumerate(value)]
    return value


def has_matcher(value: Any) -> bool:
    """Whether a compiled value has a matcher anywhere."""
    if type(value) is dict:
        return any(has_matcher(item) for item in value.values())
    if type(value) is list:
        return any(has_matcher(item) for item in value)
    return type(value) is Matcher


def _compile_matcher(given: Mapping[str, Any], at: config.Path) -> Matcher:
    kinds = [name for name in given if name.startswith("$")]
    for name in kinds:
        if name not in _KINDS:
            config.refuse(f"there is no matcher {config.short(name)}", at, config.nearest(name, _KINDS))
    if len(kinds) > 1 and not _BOUNDS.keys() >= set(kinds):
        config.refuse(f"{' and '.join(kinds)} cannot be combined in one matcher; only bounds can", at)
    allowed = _TOLERANCES if kinds == ["$approx"] else ()
    for name in given:
        if name not in kinds and name not in allowed:
            config.refuse(f"{kinds[0]} cannot stand beside the key {config.short(name)}", at)
    if kinds == ["$approx"]:
        return Matcher(given, _approx(given, at))
    tests = [_COMPILERS[name](given[name], (*at, name)) for name in kinds]
    return Matcher(given, tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests))


def _any(wanted: Any, at: config.Path) -> Test:
    if wanted is not True:
        config.refuse(f"$any takes true, got {config.short(wanted)}", at)
    return lambda value: True


def _regex(wanted: Any, at: config.Path) -> Test:
    if not isinstance(wanted, str):
        config.refuse(f"$regex takes a pattern, got {config.short(wanted)}", at)
    try:
        search = Pattern(wanted).search
    except SeatrialError as error:
        config.refuse(f"$regex: {error.message}", at, error.hint or "")
    return lambda value: type(value) is str and search(value) is not None


def _glob(wanted: Any, at: config.Path) -> Test:
    if not isinstance(wanted, str):
        config.refuse(f"$glob takes a glob, got {config.short(wanted)}", at)
    fits = Names.of([wanted]).fits

    def test(value: Any) -> bool:
        if type(value) is not str:
            return False
        check_length(value)
        return fits(value)

    return test


def _approx(given: Mapping[str, Any], at: config.Path) -> Test:
    wanted = given["$approx"]
    if not config.is_number(wanted):
        config.refuse(f"$approx takes a number, got {config.short(wanted)}", (*at, "$approx"))
    if "abs" in given and "rel" in given:
        config.refuse("$approx takes abs or rel, not both", at)
    config.number(abs(wanted), "$approx", (*at, "$approx"))
    exact = config.as_written(wanted)
    if "abs" in given:
        tolerance = config.as_written(config.number(given["abs"], "abs", (*at, "abs")))
    else:
        relative = config.number(given.get("rel", DEFAULT_TOLERANCE), "rel", (*at, "rel"))
        tolerance = config.as_written(relative) * abs(exact)
    return lambda value: config.is_number(value) and abs(config.as_written(value) - exact) <= tolerance


def _in(wanted: Any, at: config.Path) -> Test:
    if not isinstance(wanted, list | tuple) or not wanted:
        config.refuse(f"$in takes an array of values, got {config.short(wanted)}", at)
    accepted = frozenset(key(item, b"expected") for item in wanted)
    return lambda value: key(value) in accepted


def _bound(holds: Callable[[Any, Any], bool]) -> Callable[[Any, config.Path], Test]:
    def compile_bound(wanted: Any, at: config.Path) -> Test:
        if isinstance(wanted, str):
            return lambda value: type(value) is str and holds(value, wanted)
        if not config.is_number(wanted):
            config.refuse(f"a bound is a number or text, got {config.short(wanted)}", at)
        return lambda value: config.is_number(value) and holds(value, wanted)

    return compile_bound


def _len(wanted: Any, at: config.Path) -> Test:
    length = compile_value(wanted, at)
    if type(length) is Matcher:
        return lambda value: isinstance(value, str | list | dict) and length.test(len(value))
    config.count(wanted, "$len", at)
    return lambda value: isinstance(value, str | list | dict) and len(value) == wanted


def _contains(wanted: Any, at: config.Path) -> Test:
    fits = _fits(compile_value(wanted, at))

    def test(value: Any) -> bool:
        if type(value) is list:
            return any(fits(item) for item in value)
        return isinstance(value, str | dict) and isinstance(wanted, str) and wanted in value

    return test


def _schema(wanted: Any, at: config.Path) -> Test:
    try:
        return Schema(wanted).fits
    except SeatrialError as error:
        config.refuse(f"$schema: {error.message}", at)


def _not(wanted: Any, at: config.Path) -> Test:
    fits = _fits(compile_value(wanted, at))
    return lambda value: not fits(value)


def _fits(compiled: Any) -> Test:
    return lambda value: next(differences(compiled, value), None) is None


_BOUNDS: dict[str, Callable[[Any, config.Path], Test]] = {
    "$gt": _bound(lambda value, wanted: value > wanted),
    "$gte": _bound(lambda value, wanted: value >= wanted),
    "$lt": _bound(lambda value, wanted: value < wanted),
    "$lte": _bound(lambda value, wanted: value <= wanted),
}
_COMPILERS: dict[str, Callable[[Any, config.Path], Test]] = {
    "$any": _any,
    "$regex": _regex,
    "$glob": _glob,
    "$in": _in,
    **_BOUNDS,
    "$len": _len,
    "$contains": _contains,
    "$schema": _schema,
    "$not": _not,
}
_KINDS = (*_COMPILERS, "$approx")
_TOLERANCES = ("abs", "rel")
