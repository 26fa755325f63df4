"""A suite file and what it includes, as one suite."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial._support.environment import fill
from seatrial._support.target import is_target
from seatrial.errors import SeatrialError
from seatrial.problems import Problems
from seatrial.suites.shape import compare
from seatrial.suites.suite import Grading, Suite, SuiteFile
from seatrial.suites.validate import build_suite
from seatrial.suites.yaml_source import MAX_FILE_BYTES, Mark, parse_yaml

MAX_INCLUDE_DEPTH = 20

_OF_THE_FILE = frozenset({"name", "description"})
"""What a file says of itself alone, and not of those that include it."""
_COLLECTIONS: dict[str, type] = {"agents": dict, "cases": list, "graders": list}
"""What grows with every file, where other keys are set by one."""
_PATHS = {"agents": ("cwd", "path"), "cases": ("from", "files", "workspace")}


def load_suite(
    path: str | os.PathLike[str],
    *,
    variables: Mapping[str, str] | None = None,
    run_python: bool = False,
    cases_needed: bool = True,
    grading: Grading | None = None,
    import_agents: bool = False,
    import_graders: bool = False,
    agents_used: Collection[str] | None = None,
    startable: bool = False,
) -> Suite:
    """Read a suite file and check all of it, to the last case of every file it names.

    Raises `InvalidSuiteError` with every problem, or `SeatrialError("unreadable_file")`. `variables` are the process
    environment unless given. With `run_python`, what the suite names in Python is imported, and functions that make
    cases are called; without, no code of the suite's author runs. Agents can be served without any case
    (`cases_needed`). With `grading`, a case that would get no verdict is a problem too; with `import_agents`, agents
    that are functions are imported where it matters what they take; with `import_graders`, grader classes are, and
    their keys checked.

    With `agents_used`, what the other agents need of this machine (variables, files) need not be there. With
    `startable`, it is also a problem when one of these agents could not be started, or a grader not be called, because
    a module, function, program or record does not exist: what the suite names in Python is imported for that.
    """
    file = Path(path)
    variables = os.environ if variables is None else variables
    problems = Problems()
    files = _Files(file, variables, problems)
    try:
        fragment = files.read(file)
    except OSError as error:
        raise SeatrialError("unreadable_file", f"{file} cannot be read: {error.strerror or error}") from None
    if fragment is None or files.unread:
        # What else is wrong would be guesswork.
        raise problems.error()
    fragment.plain.setdefault("name", _stem(file))
    suite = build_suite(
        fragment.plain,
        problems.at(fragment.mark.locate),
        file,
        variables=variables,
        run_python=run_python,
        cases_needed=cases_needed,
        grading=grading,
        import_agents=import_agents,
        import_graders=import_graders,
        agents_used=agents_used,
        startable=startable,
    )
    if suite is None or problems.count:
        raise problems.error()
    return suite


class _Fragment(msgspec.Struct):
    """What one file and its includes say."""

    plain: dict[str, Any]
    mark: Mark


class _Files:
    """Reads files, each once, and those that they include before them."""

    def __init__(self, root: Path, variables: Mapping[str, str], problems: Problems) -> None:
        self.root = root.parent
        self.variables = variables
        self.problems = problems
        self.chain: list[Path] = []
        self.seen: set[Path] = set()
        self.unread = False
        """Whether a file could not be read at all."""

    def read(self, file: Path) -> _Fragment | None:
        """What a file says with its includes in place; None, with problems told, when it cannot be read."""
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        parsed = parse_yaml(data, str(file), self.problems)
        if parsed is None:
            self.unread = True
            return None
        own, mark = parsed
        if not isinstance(own, dict):
            self.unread = True
            compare(own, SuiteFile, (), self.problems.at(mark.locate))
            return None
        real = file.resolve()
        self.seen.add(real)
        self.chain.append(real)
        merged = _Fragment({}, Mark(mark.place, {}))
        for included in self._included(own.get("include", []), file, self.problems.at(mark.locate)):
            self._merge(merged, self._shared(included), included.mark, override=False)
        self.chain.pop()
        self._merge(merged, self._settled(own, file), mark, override=True)
        return merged

    def _included(self, names: object, file: Path, problems: Problems) -> list[_Fragment]:
        if not isinstance(names, str | list) or not all(isinstance(name, str) for name in names):
            compare(names, str | list[str], ("include",), problems)
            return []
        fragments = []
        for index, name in enumerate([names] if isinstance(names, str) else names):
            path = ("include",) if isinstance(names, str) else ("include", index)
            try:
                fragment = self._include(file, fill(name, self.variables))
            except SeatrialError as error:
                problems.add(path, error.message, error.hint)
            except OSError as error:
                self.unread = True
                problems.add(path, f"`{name}` cannot be read: {error.strerror or error}")
            else:
                if fragment is not None:
                    fragments.append(fragment)
        return fragments

    def _include(self, file: Path, name: str) -> _Fragment | None:
        if "\0" in name:
            raise SeatrialError("invalid_suite", "`include` has a character that no file name can have")
        target = Path(os.path.normpath(file.parent / name))
        real = target.resolve()
        if real in self.chain:
            circle = [*self.chain[self.chain.index(real) :], real]
            shown = " -> ".join(f"`{step.name}`" for step in circle)
            raise SeatrialError("invalid_suite", f"circular include: {shown}")
        if real in self.seen:
            # Two files may share a third; what it says is there already.
            return None
        if len(self.chain) >= MAX_INCLUDE_DEPTH:
            raise SeatrialError("invalid_suite", f"includes are nested more than {MAX_INCLUDE_DEPTH} deep")
        return self.read(target)

    def _shared(self, included: _Fragment) -> dict[str, Any]:
        """What an included file gives to those that include it."""
        shared = {}
        for key, value in included.plain.items():
            if not isinstance(value, _COLLECTIONS.get(key, object)):
                compare({key: value}, SuiteFile, (), self.problems.at(included.mark.locate))
            elif key not in _OF_THE_FILE:
                shared[key] = value
        return shared

    def _merge(self, merged: _Fragment, added: dict[str, Any], mark: Mark, *, override: bool) -> None:
        """Put what a file says, or an include of it, to what is there."""
        plain, children = merged.plain, merged.mark.children
        told = self.problems.at(mark.locate)
        for key, value in added.items():
            here = mark.children[key]
            present = plain.get(key)
            if key in _COLLECTIONS and isinstance(value, dict) and isinstance(present, dict):
                for name in value.keys() & present.keys():
                    first = children[key].children[name].place
                    told.add((key, name), f"the name `{name}` is taken", f"by an agent in {first}")
                plain[key] = {**present, **value}
                children[key] = Mark(here.place, {**children[key].children, **here.children})
            elif key in _COLLECTIONS and isinstance(value, list) and isinstance(present, list):
                plain[key] = [*present, *value]
                children[key] = Mark(here.place, dict(children[key].children))
                for index in range(len(value)):
                    children[key].children[len(present) + index] = here.children[index]
            elif key in plain and not override:
                first = children[key].place
                told.add((key,), f"two included files set `{key}`", f"set it in the suite itself; also set in {first}")
            else:
                plain[key] = value
                children[key] = here

    def _settled(self, own: dict[str, Any], file: Path) -> dict[str, Any]:
        """What a file says, with an id for each of its cases, and paths from where the suite is."""
        settled = {key: value for key, value in own.items() if key != "include"}
        cases = own.get("cases")
        if isinstance(cases, list):
            number = 0
            settled["cases"] = list(cases)
            for index, case in enumerate(cases):
                if isinstance(case, dict) and "from" not in case:
                    number += 1
                    settled["cases"][index] = {"id": f"{_stem(file)}-{number}", **case}
        folder = os.path.relpath(file.parent, self.root)
        if folder != os.curdir:
            if isinstance(settled.get("cases"), list):
                settled["cases"] = [_moved(case, _PATHS["cases"], folder) for case in settled["cases"]]
            if isinstance(own.get("agents"), dict):
                agents = own["agents"].items()
                settled["agents"] = {name: _moved(agent, _PATHS["agents"], folder) for name, agent in agents}
        return settled


def _stem(file: Path) -> str:
    # `shop.suite.yaml` is `shop`.
    return file.name.split(".")[0] or file.stem


def _moved(value: Any, keys: tuple[str, ...], folder: str) -> Any:
    """A copy in which the paths under these keys start where the suite is."""
    if not isinstance(value, dict):
        return value
    moved = dict(value)
    for key in keys:
        found = value.get(key)
        if isinstance(found, str):
            moved[key] = _path(found, folder)
        elif isinstance(found, dict):
            moved[key] = _moved(found, ("from",), folder)
        elif isinstance(found, list):
            moved[key] = [_path(item, folder) if isinstance(item, str) else item for item in found]
    return moved


def _path(text: str, folder: str) -> str:
    # `${DATA}/cases.csv` says itself where it is, and `module:function` is no path.
    return text if text.startswith("${") or is_target(text) else os.path.normpath(os.path.join(folder, text))
