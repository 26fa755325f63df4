"""Expectations: a configuration, checked and compiled before anything runs.

Keys of a configuration: `mode`; `expected` (items), or for `any_order` `minimums` and `maximums` (counts by name or
glob); `defaults` for items, of which `args_match` may also stand alone; the constraints `forbidden`, `allowed`,
`max_calls`, `min_calls`, `no_errors`; `failed_calls`, `retries`, `min_score`.

An empty configuration never scores: an empty `expected` is refused in every mode ("no calls at all" is said with
`any_order` and `maximums: {"*": 0}`), and so is what could never fail: minimums of zero and nothing else,
`min_score: 0`, `no_errors` when failed calls are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast, get_args

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.nesting import is_value_too_deep
from seatrial.trajectory import config
from seatrial.trajectory.item import ExpectedCall, is_plain, item_of
from seatrial.trajectory.matchers import Names, compile_value
from seatrial.trajectory.step import Status, Step
from seatrial.trajectory.values import ArgsMatch, Matcher, Path, keys, value_at

Mode = Literal["any_order", "in_order", "exact", "superset", "subset", "unordered", "partial_order"]
MODES: tuple[Mode, ...] = get_args(Mode)

_REFERENCE_MODES = ("in_order", "exact", "superset", "subset", "unordered")
_EMPTY_MEANS_NO_CALLS = ("exact", "unordered", "subset")
_NO_CALLS = 'to expect no calls at all, say so: mode any_order with maximums {"*": 0}'
_ONLY_FORBIDDEN = (
    'to forbid calls and expect none: mode any_order with maximums such as {"refund": 0}, or `never_calls`; '
    'to forbid them by their arguments: `forbidden` with mode subset and expected ["*"]'
)
_WILDCARD = re.compile(r"([*?\[])")
_FORBIDDEN_KEYS = ("tool", "args", "args_match", "result", "status", "actor")
_ITEM_KEYS = (*_FORBIDDEN_KEYS, "max_duration_ms", "id", "after")
_DEFAULT_KEYS = ("args_match", "status", "actor", "max_duration_ms")
_COUNTING_KEYS = ("minimums", "maximums")
_ASSIGNING_KEYS = ("expected", "defaults", "args_match")
_CONSTRAINT_KEYS = ("forbidden", "allowed", "max_calls", "min_calls", "no_errors")
CONFIG_KEYS = (
    *("mode", *_ASSIGNING_KEYS, *_COUNTING_KEYS),
    *_CONSTRAINT_KEYS,
    *("failed_calls", "retries", "min_score"),
)


class Bounds(msgspec.Struct, frozen=True):
    """How often a tool may be called (mode `any_order`)."""

    tool: Names
    least: int | None = None
    most: int | None = None


class Expectation(msgspec.Struct, frozen=True):
    """What a trajectory is matched with."""

    mode: Mode
    tools: list[str] = []
    """What each expected call is a call of, in words."""
    items: list[ExpectedCall] = []
    reference: list[Step] | None = None
    """In place of items: the steps of another run, each standing for a call just like it."""
    keys: list[bytes] | None = None
    """When all items are plain: the key of each (see `keys`)."""
    by_name: frozenset[str] = frozenset()
    """With `keys`: the tools of which only the name counts."""
    timed: bool = False
    """Whether any item says how long its call may take."""
    bounds: list[Bounds] = []
    before: list[int] = []
    """For `partial_order`: for each item the set of items that come before it, one bit each."""
    constrained: bool = False
    """Whether any of the constraints that follow is set."""
    forbidden: list[ExpectedCall] = []
    allowed: Names | None = None
    """With the expected tools, which are allowed anyway."""
    max_calls: int | None = None
    min_calls: int | None = None
    no_errors: bool = False
    ignore_failed: bool = False
    collapse_retries: bool = False
    min_score: float | None = None

    def item(self, index: int) -> ExpectedCall:
        """One expected call."""
        return self.items[index] if self.reference is None else item_of(self.reference[index])


def expectation_from_steps(mode: Mode, steps: list[Step]) -> Expectation:
    """Expect the calls of another run: the same names, the same arguments. Not for `any_order`, which counts."""
    check_reference(mode, len(steps))
    # The fourth element keeps arguments that are not JSON apart from those of a step: such fit nothing.
    values = [
        [step.name, step.arguments] if step.arguments_text is None else [step.name, None, step.arguments_text, None]
        for step in steps
    ]
    return Expectation(mode, [step.name for step in steps], reference=steps, keys=keys(values, b"expected"))


def expected_as_made(steps: Iterable[Step]) -> dict[str, Any]:
    """The configuration of an expectation that just these calls of the agent meet, for people to read and change."""
    items: list[dict[str, Any]] = []
    for step in steps:
        if step.executed_by == "user":
            continue
        item: dict[str, Any] = {"tool": _WILDCARD.sub(r"[\1]", step.name)}
        if step.arguments_text is None:
            item["args"] = _literal(step.arguments)
        items.append(item)
    # An empty list of expected calls would be satisfied by anything.
    return {"mode": "exact", "expected": items} if items else {"mode": "any_order", "maximums": {"*": 0}}


def _literal(value: Any) -> Any:
    """The value as arguments that only it meets: keys with `$` would be matchers."""
    if isinstance(value, dict):
        if any(key.startswith("$") for key in value):
            return {"$in": [value]}
        return {key: _literal(inner) for key, inner in value.items()}
    return [_literal(inner) for inner in value] if isinstance(value, list) else value


def check_reference(mode: Mode, size: int) -> None:
    """Refuse a mode that a reference of so many calls cannot be used with."""
    if mode not in _REFERENCE_MODES:
        config.choice(mode, _REFERENCE_MODES, "mode with a reference", ("mode",))
    if not size and mode not in _EMPTY_MEANS_NO_CALLS:
        config.refuse(f"the reference has no calls, so {mode} could never fail")


def compile_expectation(configuration: Mapping[str, Any]) -> Expectation:
    """Check and compile; raises `SeatrialError("invalid_config")` that says where and what was probably meant."""
    if is_value_too_deep(configuration):
        raise wire.too_deep()
    return _compile(configuration)


def _compile(given: Mapping[str, Any]) -> Expectation:
    if not isinstance(given, Mapping):
        config.refuse(f"a configuration is an object, got {config.short(given)}")
    config.check_keys(given, CONFIG_KEYS, "an expectation", ())
    if "mode" not in given:
        config.refuse("an expectation needs a mode", hint=f"one of: {', '.join(MODES)}")
    mode = cast("Mode", config.choice(given["mode"], MODES, "mode", ("mode",)))
    for key in _ASSIGNING_KEYS if mode == "any_order" else _COUNTING_KEYS:
        if key in given:
            wanted = "minimums" if mode == "any_order" else "expected"
            config.refuse(f"{mode} does not take {key!r}", (key,), hint=f"{mode} takes {wanted!r}")
    items: list[ExpectedCall] = []
    bounds: list[Bounds] = []
    if mode == "any_order":
        bounds = _bounds(given)
    else:
        items = _expected(given, mode)
    forbidden = _forbidden(given)
    keys_of_items, by_name = _keys(items)
    expectation = Expectation(
        mode=mode,
        tools=[str(item.tool) for item in items],
        items=items,
        keys=keys_of_items,
        by_name=by_name,
        timed=any(item.max_duration_ms is not None for item in items),
        bounds=bounds,
        before=_order(items) if mode == "partial_order" else [],
        constrained=any(key in given for key in _CONSTRAINT_KEYS),
        forbidden=forbidden,
        allowed=_allowed(given, [*(item.tool for item in items), *(bound.tool for bound in bounds)]),
        max_calls=config.count(given["max_calls"], "max_calls", ("max_calls",)) if "max_calls" in given else None,
        min_calls=config.count(given["min_calls"], "min_calls", ("min_calls",)) if "min_calls" in given else None,
        no_errors="no_errors" in given and config.flag(given["no_errors"], "no_errors", ("no_errors",)),
        ignore_failed=_policy(given, "failed_calls", "ignore"),
        collapse_retries=_policy(given, "retries", "collapse"),
        min_score=_min_score(given),
    )
    if expectation.no_errors and expectation.ignore_failed:
        config.refuse("no_errors can never be violated when failed calls are ignored", ("no_errors",))
    return expectation


def _expected(given: Mapping[str, Any], mode: Mode) -> list[ExpectedCall]:
    if "expected" not in given:
        hint = _ONLY_FORBIDDEN if "forbidden" in given else "add the key 'expected', an array of items"
        config.refuse(f"{mode} needs the calls that are expected", hint=hint)
    expected = given["expected"]
    if not isinstance(expected, list | tuple):
        config.refuse(f"expected is an array of items, got {config.short(expected)}", ("expected",))
    if not expected:
        hint = _ONLY_FORBIDDEN if "forbidden" in given else _NO_CALLS
        config.refuse("nothing is expected", ("expected",), hint=hint)
    defaults = given.get("defaults", {})
    if not isinstance(defaults, Mapping):
        config.refuse(f"defaults is an object, got {config.short(defaults)}", ("defaults",))
    config.check_keys(defaults, _DEFAULT_KEYS, "defaults", ("defaults",))
    if "args_match" in given:
        if "args_match" in defaults:
            config.refuse("args_match is given twice", ("defaults", "args_match"))
        defaults = {**defaults, "args_match": given["args_match"]}
    items = [_item(entry, defaults, _ITEM_KEYS, ("expected", index)) for index, entry in enumerate(expected)]
    for index, item in enumerate(items):
        if item.after and mode != "partial_order":
            config.refuse(
                f"{mode} does not take 'after'", ("expected", index, "after"), hint="the mode may be partial_order"
            )
    return items


def _forbidden(given: Mapping[str, Any]) -> list[ExpectedCall]:
    forbidden = given.get("forbidden", [])
    if not isinstance(forbidden, list | tuple):
        config.refuse(f"forbidden is an array of items, got {config.short(forbidden)}", ("forbidden",))
    for index, entry in enumerate(forbidden):
        if isinstance(entry, Mapping) and "args" in entry and entry["args"] is None:
            at = ("forbidden", index, "args")
            config.refuse("args is null, which no call has", at, hint="leave it out for any arguments")
    # A call must not escape by an argument more.
    defaults = {"args_match": "superset"}
    return [_item(entry, defaults, _FORBIDDEN_KEYS, ("forbidden", index)) for index, entry in enumerate(forbidden)]


def _item(entry: Any, defaults: Mapping[str, Any], known: tuple[str, ...], at: config.Path) -> ExpectedCall:
    if isinstance(entry, str):
        entry = {"tool": entry}
    if not isinstance(entry, Mapping):
        config.refuse(f"an item is an object, got {config.short(entry)}", at, hint='such as {"tool": "search"}')
    config.check_keys(entry, known, "an item", at)
    if "tool" not in entry:
        config.refuse("an item without 'tool' describes no call", at)
    tool = entry["tool"]
    tools = [tool] if isinstance(tool, str) else tool
    merged = {**defaults, **entry}
    args = compile_value(entry["args"], (*at, "args")) if "args" in entry else UNSET
    args_match, paths = _args_match(merged.get("args_match", "exact"), (*at, "args_match"))
    for path in paths or ():
        for end in range(len(path) + 1):
            if type(value_at(args, path[:end])) is Matcher and end < len(path):
                config.refuse(f"the path {'.'.join(map(str, path))!r} leads into a matcher", (*at, "args_match"))
    duration = merged.get("max_duration_ms")
    return ExpectedCall(
        tool=Names.of(config.names(tools, "tool", (*at, "tool"))),
        args=UNSET if args_match == "ignore" else args,
        args_match=args_match,
        paths=paths,
        result=compile_value(entry["result"], (*at, "result")) if "result" in entry else UNSET,
        status=_status(merged["status"], (*at, "status")) if "status" in merged else None,
        actor=config.text(merged["actor"], "actor", (*at, "actor")) if "actor" in merged else None,
        max_duration_ms=None
        if duration is None
        else config.number(duration, "max_duration_ms", (*at, "max_duration_ms")),
        id=config.text(entry["id"], "id", (*at, "id")) if "id" in entry else None,
        after=tuple(config.names(entry["after"], "after", (*at, "after"), empty=True)) if "after" in entry else (),
    )


def _args_match(value: Any, at: config.Path) -> tuple[ArgsMatch, list[Path] | None]:
    if isinstance(value, list | tuple):
        paths = config.names(value, "args_match", at)
        return "exact", [tuple(path.split(".")) for path in paths]
    known = get_args(ArgsMatch)
    if not isinstance(value, str):
        config.refuse(f"args_match is one of {', '.join(known)}, or an array of paths", at)
    return cast("ArgsMatch", config.choice(value, known, "args_match", at)), None


def _status(value: Any, at: config.Path) -> Status:
    return cast("Status", config.choice(value, get_args(Status), "status", at))


def _bounds(given: Mapping[str, Any]) -> list[Bounds]:
    least, most = (_counts(given, key) for key in _COUNTING_KEYS)
    if not least and not most:
        hint = _ONLY_FORBIDDEN if "forbidden" in given else "add the key 'minimums', such as {\"search\": 1}"
        config.refuse("any_order needs counts to check", hint=hint)
    if not most and not any(least.values()):
        config.refuse("minimums of 0 without a maximum could never fail", ("minimums",))
    for name, number in least.items():
        if number > most.get(name, number):
            config.refuse(f"at least {number} but at most {most[name]}", ("minimums", name))
    return [Bounds(Names.of([name]), least.get(name), most.get(name)) for name in {**least, **most}]


def _counts(given: Mapping[str, Any], key: str) -> dict[str, int]:
    counts = given.get(key, {})
    if not isinstance(counts, Mapping):
        config.refuse(f"{key} is an object of counts by tool, got {config.short(counts)}", (key,))
    return {
        config.text(name, "a tool", (key,)): config.count(number, f"the count for {config.short(name)}", (key, name))
        for name, number in counts.items()
    }


def _allowed(given: Mapping[str, Any], expected: Iterable[Names]) -> Names | None:
    if "allowed" not in given:
        return None
    allowed = config.names(given["allowed"], "allowed", ("allowed",), empty=True)
    return Names.of([*allowed, *(name for names in expected for name in names.given)])


def _policy(given: Mapping[str, Any], key: str, word: str) -> bool:
    return config.choice(given.get(key, "count"), ("count", word), key, (key,)) == word


def _min_score(given: Mapping[str, Any]) -> float | None:
    if "min_score" not in given:
        return None
    score = config.number(given["min_score"], "min_score", ("min_score",))
    if not 0 < score <= 1:
        config.refuse("min_score is above 0, which everything reaches, and at most 1", ("min_score",))
    return score


def _keys(items: list[ExpectedCall]) -> tuple[list[bytes] | None, frozenset[str]]:
    if not all(is_plain(item) for item in items):
        return None, frozenset()
    by_name = {item.tool.given[0] for item in items if item.args is UNSET}
    if any(item.tool.given[0] in by_name for item in items if item.args is not UNSET):
        return None, frozenset()
    values = [[item.tool.given[0]] if item.args is UNSET else [item.tool.given[0], item.args] for item in items]
    return keys(values, b"expected"), frozenset(by_name)


def _order(items: list[ExpectedCall]) -> list[int]:
    """For each item, as bits, every item that `after` puts before it, directly or through others."""
    places: dict[str, int] = {}
    for index, item in enumerate(items):
        if item.id is not None and places.setdefault(item.id, index) != index:
            config.refuse(f"two items have the id {config.short(item.id)}", ("expected", index, "id"))
    direct: list[list[int]] = []
    for index, item in enumerate(items):
        for position, name in enumerate(item.after):
            if name not in places:
                at = ("expected", index, "after", position)
                config.refuse(f"no item has the id {config.short(name)}", at, hint=config.nearest(name, places))
        direct.append([places[name] for name in item.after])
    before = [0] * len(items)
    waiting = set(range(len(items)))
    while waiting:
        ready = [index for index in waiting if not any(earlier in waiting for earlier in direct[index])]
        if not ready:
            index = min(waiting)
            config.refuse("circular `after`: these items wait for each other", ("expected", index, "after"))
        for index in ready:
            for earlier in direct[index]:
                before[index] |= before[earlier] | 1 << earlier
        waiting.difference_update(ready)
    return before
