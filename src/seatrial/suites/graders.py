"""The graders of a suite: each a mapping whose `kind` says which other keys it takes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Grader
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


class SoundGrader(msgspec.Struct, frozen=True):
    """A grader of a suite or a case that can be used."""

    index: int
    """Which one of its list it is."""
    grader: Grader
    check: Check

    @property
    def name(self) -> str:
        """What it is called, its kind when it has no name."""
        return self.grader.name or self.grader.kind


def check_graders(
    configs: Iterable[object],
    kinds: GraderKinds,
    path: KeyPath,
    problems: Problems,
    *,
    import_from: Path | None = None,
) -> list[SoundGrader] | None:
    """The graders of a list; None with everything told that is wrong with them.

    With `import_from`, it is also told when functions are not there.
    """
    before = problems.count
    named: dict[str, int] = {}
    sound: list[SoundGrader] = []
    for index, config in enumerate(configs):
        found = _check_grader(config, index, kinds, (*path, index), problems, import_from=import_from)
        if found is None:
            continue
        sound.append(found)
        name = found.grader.name
        if name and named.setdefault(name, index) != index:
            first = problems.place((*path, named[name]))
            problems.add((*path, index, "name"), f"the name `{name}` is taken", f"by a grader in {first}")
    return sound if problems.count == before else None


def _check_grader(
    config: object,
    index: int,
    kinds: GraderKinds,
    path: KeyPath,
    problems: Problems,
    *,
    import_from: Path | None = None,
) -> SoundGrader | None:
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
        check = grader.prepare()
        if import_from is not None and isinstance(grader, Python):
            load_target(grader.target, import_from)
    except SeatrialError as error:
        problems.add((*path, *path_of(error.pointer)), error.message, error.hint)
        return None
    return SoundGrader(index, grader, check)


def registered() -> GraderKinds:
    """The kinds that Seatrial has. Imported here, since not every kind is needed for every command."""
    kinds: GraderKinds = importlib.import_module("seatrial.graders.registry").GRADERS
    return kinds
