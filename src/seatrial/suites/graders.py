"""The graders of a suite: each a mapping whose `kind` says which other keys it takes, or a grader made in Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from seatrial._support.target import is_target
from seatrial.errors import SeatrialError
from seatrial.graders.code import Code
from seatrial.graders.grader import FOR_GRADERS, Check, Grader, errored
from seatrial.graders.prepared import prepare
from seatrial.graders.python import Python
from seatrial.graders.registry import GRADERS, KIND, check_grader, grader_class, grader_config
from seatrial.problems import KeyPath, Problems, path_of
from seatrial.suites.shape import choose, fit


class Imports(msgspec.Struct, frozen=True):
    """Which code of the suite's author may be imported to check graders."""

    directory: Path = Path()
    """Where the suite is: it is looked for there first."""
    classes: bool = False
    """Classes that a `kind` names."""
    functions: bool = False
    """Functions that graders of the kind `python` call; then programs of the kind `code` must exist, too."""


class _NotImported(Grader, forbid_unknown_fields=False):
    """Stands for a class that is not imported, so that nothing is known of it but the keys that all graders have."""

    def prepare(self) -> Check:
        return Check(lambda subject, surroundings: errored("the grader was not imported"), reads=FOR_GRADERS)


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
    configs: Iterable[object], path: KeyPath, problems: Problems, imports: Imports
) -> list[SoundGrader] | None:
    """The graders of a list; None with everything told that is wrong with them."""
    before = problems.count
    named: dict[str, int] = {}
    sound: list[SoundGrader] = []
    for index, config in enumerate(configs):
        found = _check_grader(config, index, (*path, index), problems, imports)
        if found is None:
            continue
        sound.append(found)
        name = found.grader.name
        if name and named.setdefault(name, index) != index:
            first = problems.place((*path, named[name]))
            problems.add((*path, index, "name"), f"the name `{name}` is taken", f"by a grader in {first}")
    return sound if problems.count == before else None


def _check_grader(
    config: object, index: int, path: KeyPath, problems: Problems, imports: Imports
) -> SoundGrader | None:
    try:
        if isinstance(config, Grader):
            grader_config(config)
            if GRADERS.is_built_in(config.kind):
                check_grader(config)
            return SoundGrader(index, config, prepare(config))
        if not isinstance(config, dict):
            return None  # told with the list it is in
        kind = _class_of(config, path, problems, imports)
        if kind is None:
            return None
        before = problems.count
        # A grader of graders (`composite`) has them under the same key as a suite.
        if isinstance(inner := config.get("graders"), list):
            check_graders(inner, (*path, "graders"), problems, imports)
        grader = _fitted({key: value for key, value in config.items() if key != KIND}, kind, path, problems)
        if grader is None or problems.count > before:
            return None
        if imports.functions and isinstance(grader, Python | Code):
            grader.check_presence(imports.directory)
        return SoundGrader(index, grader, prepare(grader))
    except SeatrialError as error:
        problems.add((*path, *path_of(error.pointer)), error.message, error.hint)
        return None


def _class_of(config: dict[str, Any], path: KeyPath, problems: Problems, imports: Imports) -> type[Grader] | None:
    kind = config.get(KIND)
    if isinstance(kind, str) and is_target(kind):
        if not imports.classes:
            return _NotImported
    elif choose(config, KIND, dict.fromkeys(GRADERS, KIND), path, problems) is None:
        return None
    try:
        return grader_class(str(kind), imports.directory)
    except SeatrialError as error:
        problems.add((*path, KIND), error.message, error.hint)
        return None


def _fitted(own: dict[str, Any], kind: type[Grader], path: KeyPath, problems: Problems) -> Grader | None:
    try:
        return fit(own, kind, path, problems)
    except (TypeError, NameError) as error:
        # An annotation of a class of others that msgspec cannot use.
        raise SeatrialError("invalid_config", f"`{kind.kind}` cannot be read from a suite: {error}") from error
