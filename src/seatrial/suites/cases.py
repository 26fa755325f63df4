"""The cases of a suite, one at a time: inline, from files, or from a function."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial._support.environment import fill
from seatrial._support.target import is_target, load_target
from seatrial.errors import SeatrialError
from seatrial.problems import Place, Problems, quoted
from seatrial.runs import Case
from seatrial.suites.case_check import CaseCheck
from seatrial.suites.graders import Imports, check_graders
from seatrial.suites.record import SuiteRecord, TooLongLineError, read_lines
from seatrial.suites.seed_csv import read_csv
from seatrial.suites.shape import fit
from seatrial.suites.suite import CaseSource, Grading, Suite

CaseFormat: TypeAlias = Literal["jsonl", "csv", "python"]

_CASE = msgspec.json.Decoder(Case)
_ENDINGS: dict[str, CaseFormat] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}


def read_cases(
    suite: Suite,
    *,
    variables: Mapping[str, str] | None = None,
    grading: Grading | None = None,
    checked: bool = True,
) -> Iterator[Case]:
    """Every case of a suite, in order; those from files and functions are read as they are asked for.

    Raises `InvalidSuiteError` at the first that cannot be used; with `grading`, also at one that nothing would judge.
    Without `checked`, only the types of the cases are looked at.
    """
    problems = Problems()
    entries = enumerate(suite.cases)
    check = case_check(suite, grading) if checked else None
    for case in checked_cases(entries, suite.directory, problems, check, variables=variables):
        if problems.count:
            break
        yield case
    if problems.count:
        raise problems.error()


def checked_cases(
    entries: Iterable[tuple[int, Case | CaseSource]],
    directory: Path,
    problems: Problems,
    check: CaseCheck | None,
    *,
    variables: Mapping[str, str] | None = None,
    run_python: bool = True,
    import_functions: bool = False,
) -> Iterator[Case]:
    """The cases that can be used, and a problem for everything that cannot. Entries come with their place in the list.

    Without `run_python`, functions that make cases are not called; with `import_functions`, one that does not exist is
    a problem all the same.
    """
    variables = os.environ if variables is None else variables
    places: dict[str, Place] = {}
    for index, entry in entries:
        here = problems.within(("cases", index))
        if isinstance(entry, Case):
            cases: Iterable[tuple[Case, Place]] = ((entry, here.place()),)
        elif run_python or case_format(entry) != "python":
            cases = _read(entry, directory, variables, here)
        else:
            if not is_target(entry.source):
                here.add(("from",), f"{quoted(entry.source)} is not `package.module:function`")
            elif import_functions:
                try:
                    load_target(entry.source, directory)
                except SeatrialError as error:
                    here.add(("from",), error.message, error.hint)
            continue
        for case, place in cases:
            if "\0" in case.id:
                told = here if case is entry else problems.at(place)
                told.add(("id",), "`id` has a character that no id can have")
                continue
            told = here if case is entry else problems.at(place)
            taken = places.get(case.id)
            if taken is not None:
                told.add(("id",), f"the id `{case.id}` is taken", f"by a case in {taken}")
                continue
            places[case.id] = place
            if check is None or check.check(case, index, told):
                yield case


def case_format(source: CaseSource) -> CaseFormat | None:
    """What a source is: what it says, else what the ending of its name tells; None when neither does."""
    if source.format is not None:
        return source.format
    ending = Path(source.source).suffix.lower()
    return _ENDINGS.get(ending) or ("python" if ":" in source.source else None)


def case_check(suite: Suite, grading: Grading | None) -> CaseCheck:
    """What the cases of a suite are checked with when they are about to be run."""
    imports = Imports(suite.directory, classes=suite.grading != "none")
    return CaseCheck(
        suite.agents,
        check_graders(suite.graders, ("graders",), Problems(), imports),
        imports,
        threshold=suite.threshold,
        has_model=suite.judge is not None,
        grading="none" if suite.grading == "none" else grading,
        import_agents=True,
        world=suite.compiled_world(imports=False),
    )


def _read(
    source: CaseSource, directory: Path, variables: Mapping[str, str], problems: Problems
) -> Iterator[tuple[Case, Place]]:
    before = problems.count
    read = 0
    try:
        name = fill(source.source, variables)
        python = case_format(source) == "python"
        stem = name.rpartition(":")[2] if python else Path(name).stem
        folder = "" if python else os.path.dirname(name)
        for record in _records(source, name, directory, problems):
            read += 1
            value = record.value
            if isinstance(value, dict) and "id" not in value:
                value = {"id": f"{stem}-{record.number}", **value}
            case = value if isinstance(value, Case) else fit(value, Case, (), problems.at(record.place))
            if case is not None:
                if case.files:
                    case.files = [os.path.join(folder, file) for file in case.files]
                yield case, record.place
    except SeatrialError as error:
        problems.add(("from",), error.message, error.hint)
    except OSError as error:
        problems.add(("from",), f"`{source.source}` cannot be read: {error.strerror or error}")
    if not read and problems.count == before:
        problems.add(("from",), f"there are no cases in `{source.source}`")


def _records(source: CaseSource, name: str, directory: Path, problems: Problems) -> Iterator[SuiteRecord]:
    form = case_format(source)
    if form == "python":
        if not is_target(name):
            raise SeatrialError("invalid_config", f"{quoted(name)} is not `package.module:function`")
        return _read_python(name, source.arguments, directory, problems)
    if form is None:
        raise SeatrialError(
            "invalid_config",
            f"`{source.source}` is neither a `.jsonl` nor a `.csv` file, nor `package.module:function`",
            hint="say which with `format`",
        )
    if source.arguments:
        problems.add(("arguments",), "`arguments` are for a function, and `from` names a file")
    if "\0" in name:
        raise SeatrialError("invalid_config", "`from` has a character that no file name can have")
    path = directory / name
    return _read_jsonl(path, problems) if form == "jsonl" else read_csv(path, problems)


def _read_jsonl(path: Path, problems: Problems) -> Iterator[SuiteRecord]:
    file = str(path)
    number = line_number = 0
    try:
        for line in read_lines(path):
            line_number += 1
            if line.isspace():
                continue
            number += 1
            place = Place(file, line_number)
            try:
                value = _decoded(line)
            except SeatrialError as error:
                problems.at(place).add((), error.message, error.hint)
            else:
                yield SuiteRecord(value, number, place)
    except TooLongLineError as error:
        problems.at(Place(file, line_number + 1)).add((), str(error))


def _decoded(line: bytes) -> Any:
    try:
        return wire.decode_unambiguous(line, _CASE)
    except SeatrialError as error:
        if error.code != "invalid_document":
            raise
        return wire.decode_unambiguous(line)


def _read_python(
    target: str, arguments: Mapping[str, Any], directory: Path, problems: Problems
) -> Iterator[SuiteRecord]:
    function = load_target(target, directory)
    place = problems.place(("from",))
    number = 0
    items: Iterator[Any] | None = None
    while True:
        try:
            items = iter(function(**arguments)) if items is None else items
            item = next(items)
            # What was built by hand may hold anything, and its author may go on changing it.
            value = msgspec.to_builtins(item) if isinstance(item, Case | dict) else item
        except StopIteration:
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # The function is the suite author's, and may raise anything, sys.exit() included.
            raise SeatrialError(
                "invalid_config", f"`{target}` raised {type(error).__name__} at case {number + 1}: {error}"
            ) from error
        number += 1
        yield SuiteRecord(value, number, place)
