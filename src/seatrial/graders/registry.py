"""Every kind of grader, open to others, and graders from configurations.

A kind is a name in `GRADERS`: one of Seatrial's, one that `@grader("name")` registered, or one that an installed
package offers by an entry point in the group `seatrial.graders`. A class that has no name is called by where it is:
`package.module:Class`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import isabstract
from math import isnan
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from seatrial._support import wire
from seatrial._support.registry import Registry, nearest, where
from seatrial._support.target import LOOKED_FOR, is_target, load_target
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Grader
from seatrial.transcript.note import pointer

G = TypeVar("G", bound=type[Grader])

GraderConfig: TypeAlias = dict[str, Any]
"""A grader as a suite has it: its `kind`, the common keys, and the keys of its kind."""

KIND = "kind"
_IMPORTABLE = "install it, or let it be importable from the suite file's directory (`grade` without --suite: from here)"


def _accept(name: str, value: object) -> type[Grader]:
    if not isinstance(value, type) or not issubclass(value, Grader):
        raise TypeError(f"`{where(value)}` is not a subclass of `seatrial.graders.Grader`")
    if isabstract(value):
        raise TypeError(f"`{where(value)}` has no method `prepare`")
    if value.kind not in (name, where(value)):
        raise TypeError(f"its `kind` is {value.kind!r}")
    value.kind = name
    return value


_HERE = "seatrial.graders"
GRADERS: Registry[type[Grader]] = Registry(
    "kind of grader",
    "seatrial.graders",
    {
        "tool_trajectory": f"{_HERE}.tool_trajectory:ToolTrajectory",
        "calls": f"{_HERE}.tool_trajectory:CallsMade",
        "never_calls": f"{_HERE}.tool_trajectory:NeverCalls",
        "honesty": f"{_HERE}.honesty:Honesty",
        "contract": f"{_HERE}.contract:Contract",
        "equals": f"{_HERE}.answer:Equals",
        "contains": f"{_HERE}.answer:Contains",
        "contains_any": f"{_HERE}.answer:ContainsAny",
        "contains_all": f"{_HERE}.answer:ContainsAll",
        "icontains": f"{_HERE}.answer:IContains",
        "regex": f"{_HERE}.answer:Regex",
        "starts_with": f"{_HERE}.answer:StartsWith",
        "ends_with": f"{_HERE}.answer:EndsWith",
        "is_json": f"{_HERE}.json_answer:IsJson",
        "json_schema": f"{_HERE}.json_answer:JsonSchema",
        "field_accuracy": f"{_HERE}.json_answer:FieldAccuracy",
        "latency": f"{_HERE}.metrics:Latency",
        "cost": f"{_HERE}.metrics:Cost",
        "tokens": f"{_HERE}.metrics:TokensGrader",
        "steps": f"{_HERE}.metrics:Steps",
        "model_calls": f"{_HERE}.metrics:ModelCalls",
        "judge": f"{_HERE}.judge:Judge",
        "allowed_paths": f"{_HERE}.workspace:AllowedPaths",
        "forbidden_paths": f"{_HERE}.workspace:ForbiddenPaths",
        "diff": f"{_HERE}.workspace:Diff",
        "command": f"{_HERE}.workspace:WorkspaceCommand",
        "entity_field": f"{_HERE}.state:EntityField",
        "entity_absent": f"{_HERE}.state:EntityAbsent",
        "entity_count": f"{_HERE}.state:EntityCount",
        "flag_set": f"{_HERE}.state:FlagSet",
        "effects": f"{_HERE}.state:Effects",
        "side_effects": f"{_HERE}.state:SideEffects",
        "invariants": f"{_HERE}.state:Invariants",
        "code": f"{_HERE}.code:Code",
        "python": f"{_HERE}.python:Python",
        "composite": f"{_HERE}.composite:Composite",
    },
    _accept,
)
"""Every kind that a suite can name, in the order in which they are listed to people."""


def grader(name: str) -> Callable[[G], G]:
    """Register a grader class under a name, which is its `kind` in suites: `@grader("mentions_order")`."""
    return GRADERS.register(name)


def grader_class(kind: str, directory: Path | None = None) -> type[Grader]:
    """The class of a kind: a name, or `package.module:Class`, which is looked for in `directory` first.

    Raises `SeatrialError("invalid_config")` for a name that nothing has or two have, and for a class that cannot be
    imported or used.
    """
    if not is_target(kind):
        GRADERS.check_name(kind)
        return GRADERS.find(kind)
    try:
        found = load_target(kind, directory)
        if not isinstance(found, type) or not issubclass(found, Grader):
            raise SeatrialError("invalid_config", f"`{kind}` is not a subclass of `seatrial.graders.Grader`")
    except SeatrialError as error:
        hint = _IMPORTABLE if error.hint in (None, LOOKED_FOR) else error.hint
        raise SeatrialError("invalid_config", f"the grader class {error.message}", hint=hint) from error
    GRADERS.check_kind(found)
    return found


def grader_config(grader: Grader) -> GraderConfig:
    """A grader as a suite file has it."""
    GRADERS.check_kind(type(grader))
    return {KIND: grader.kind, **msgspec.to_builtins(grader)}


def check_grader(grader: Grader) -> None:
    """Raise `SeatrialError("invalid_config")` for a grader made in Python whose keys no suite file could have."""
    own = msgspec.to_builtins(grader)
    if any(type(value) is float and isnan(value) for value in own.values()):
        raise SeatrialError("invalid_config", f"`{grader.kind}`: a number is NaN, which nothing can be held against")
    _converted(own, grader.kind, type(grader))


def build_graders(configs: Iterable[Mapping[str, Any] | Grader], directory: Path | None = None) -> list[Grader]:
    """Graders of configurations, each a mapping with its `kind`; graders among them are taken as they are.

    Classes are looked for in `directory` first. Raises `SeatrialError("invalid_config")`.
    """
    return [_build(config, index, directory) for index, config in enumerate(configs)]


def _build(config: Mapping[str, Any] | Grader, index: int, directory: Path | None) -> Grader:
    try:
        if isinstance(config, Grader):
            GRADERS.check_kind(type(config))
            return config
        kind = config.get(KIND) if isinstance(config, Mapping) else None
        if not isinstance(kind, str):
            raise SeatrialError("invalid_config", "a grader needs a `kind`", hint=f"one of: {', '.join(GRADERS)}")
        own = {key: value for key, value in config.items() if key != KIND}
        if isinstance(inner := own.get("graders"), list):
            # A grader of graders is not told where the suite is: so their classes are imported here.
            try:
                build_graders(inner, directory)
            except SeatrialError as error:
                error.pointer = f"/graders{error.pointer or ''}"
                raise
        return _converted(own, kind, grader_class(kind, directory))
    except RecursionError:
        raise wire.too_deep() from None
    except SeatrialError as error:
        error.pointer = f"{pointer(index)}{error.pointer or ''}"
        raise


def _converted(own: dict[str, Any], kind: str, struct: type[Grader]) -> Grader:
    for key in own:
        if key not in struct.__struct_encode_fields__:
            hint = nearest(str(key), struct.__struct_encode_fields__)
            raise SeatrialError(
                "invalid_config", f"`{kind}` has no key {str(key)[:60]!r}", pointer=pointer(key), hint=hint
            )
    try:
        return msgspec.convert(own, struct)
    except msgspec.ValidationError as error:
        told = wire.invalid_document(error)
        raise SeatrialError("invalid_config", f"`{kind}`: {told.message}", pointer=told.pointer) from None
    except (TypeError, NameError) as error:
        # An annotation of a class of others that msgspec cannot use.
        raise SeatrialError("invalid_config", f"`{kind}` cannot be read from a suite: {error}") from error
