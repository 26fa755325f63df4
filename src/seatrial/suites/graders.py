"""The graders of a suite: each a mapping whose `kind` says which other keys it takes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from seatrial.errors import SeatrialError
from seatrial.graders.grader import Grader
from seatrial.graders.python import Python
from seatrial.suites.problem import KeyPath, Problems, path_of
from seatrial.suites.shape import choose, fit
from seatrial.target import load_target

GraderKinds: TypeAlias = Mapping[str, type[Grader]]
"""Every kind of grader that a suite may name."""

KIND = "kind"


def grader_config(grader: Grader) -> dict[str, Any]:
    """A grader as a suite has it."""
    return {KIND: grader.kind, **msgspec.to_builtins(grader)}


def check_graders(
    configs: Iterable[object],
    kinds: GraderKinds,
    path: KeyPath,
    problems: Problems,
    *,
    import_from: Path | None = None,
) -> None:
    """Tell everything that is wrong with a list of graders; with `import_from`, also whether functions are there."""
    named: dict[str, int] = {}
    for index, config in enumerate(configs):
        grader = check_grader(config, kinds, (*path, index), problems, import_from=import_from)
        if grader is not None and grader.name and named.setdefault(grader.name, index) != index:
            first = problems.place((*path, named[grader.name]))
            problems.add((*path, index, "name"), f"the name `{grader.name}` is taken", f"by a grader in {first}")


def check_grader(
    config: object, kinds: GraderKinds, path: KeyPath, problems: Problems, *, import_from: Path | None = None
) -> Grader | None:
    """A grader ready to grade, or None with problems told."""
    if not isinstance(config, dict):
        return None  # told with the list it is in
    kind = choose(config, KIND, kinds, path, problems)
    if kind is None:
        return None
    before = problems.count
    # A grader of graders (`composite`) has them under the same key as a suite.
    if isinstance(inner := config.get("graders"), list):
        check_graders(inner, kinds, (*path, "graders"), problems, import_from=import_from)
    grader = fit({key: value for key, value in config.items() if key != KIND}, kind, path, problems)
    if grader is None or problems.count > before:
        return None
    try:
        grader.prepare()
        if import_from is not None and isinstance(grader, Python):
            load_target(grader.target, import_from)
    except SeatrialError as error:
        problems.add((*path, *path_of(error.pointer)), error.message, error.hint)
        return None
    return grader


def registered() -> GraderKinds:
    """The kinds that Seatrial has. Imported here, since not every kind is needed for every command."""
    kinds: GraderKinds = importlib.import_module("seatrial.graders.registry").GRADERS
    return kinds
