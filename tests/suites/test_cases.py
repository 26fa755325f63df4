"""Cases come one at a time, from wherever they are, and each is checked where it is written."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.runs import Case
from seatrial.suites import CaseSource, InvalidSuiteError, PythonConfig, Suite, load_suite, read_cases
from seatrial.suites.record import MAX_LINE
from suites.samples import AGENT, load, problems_of, write


def suite_of(folder: Path, *sources: CaseSource | Case) -> Suite:
    return Suite(agents={"a": PythonConfig(target="m:f")}, cases=list(sources), file=folder / "shop.suite.yaml")


def cases_of(folder: Path, *sources: CaseSource | Case) -> list[Case]:
    return list(read_cases(suite_of(folder, *sources), variables={}))


def told_of(folder: Path, text: str, name: str = "cases.jsonl") -> list[str]:
    write(folder, text, name)
    return problems_of(folder, AGENT + f"cases:\n  - from: {name}\n")


def test_json_lines_are_cases(tmp_path: Path) -> None:
    case = Case(id="a", instruction="hé", input={"x": [1, None]}, files=[], tags=["t"], expected={"y": 1}, timeout_s=5)
    write(tmp_path, f"{msgspec.json.encode(case).decode()}\n\n   \n" + '{"id": "b", "instruction": "x"}', "c.jsonl")
    assert cases_of(tmp_path, CaseSource(source="c.jsonl")) == [case, Case(id="b", instruction="x")]


def test_a_byte_order_mark_and_windows_line_ends_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(
        b'\xef\xbb\xbf{"id": "a", "instruction": "x"}\r\n{"id": "b", "instruction": "y"}\r\n'
    )
    assert [case.id for case in cases_of(tmp_path, CaseSource(source="c.jsonl"))] == ["a", "b"]


def test_cases_without_an_id_are_called_by_file_and_number(tmp_path: Path) -> None:
    write(tmp_path, '{"instruction": "x"}\n\n{"instruction": "y"}\n', "refunds.v2.jsonl")
    write(tmp_path, "user\nhello\n\nbye\n", "seeds.csv")
    sources = (CaseSource(source="refunds.v2.jsonl"), CaseSource(source="seeds.csv"))
    assert [case.id for case in cases_of(tmp_path, *sources)] == ["refunds.v2-1", "refunds.v2-2", "seeds-1", "seeds-2"]


def test_the_order_is_that_of_the_suite(tmp_path: Path) -> None:
    write(tmp_path, '{"id": "2", "instruction": "x"}\n', "c.jsonl")
    first, last = Case(id="1", instruction="x"), Case(id="3", instruction="x")
    assert [case.id for case in cases_of(tmp_path, first, CaseSource(source="c.jsonl"), last)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "a"}', "the key `instruction` is missing"),
        ('{"id": "a", "instruction": "x", "expcted": 1}', "unknown key `expcted` (did you mean `expected`?)"),
        ('{"id": "a", "instruction": 3}', "`instruction` must be text, not a whole number"),
        ('["a"]', "this must be a mapping, not a list"),
        ("null", "this must be a mapping, not empty"),
        ('{"instruction": "x", "graders": [{"kind": "eqals"}]}', "unknown kind `eqals` (did you mean `equals`?)"),
        ('{"instruction": "x", "graders": [1]}', "item 1 of `graders` must be a mapping, not a whole number"),
        ('{"id": "a", "instruction": "x", "world": {"max_turns": 0}}', "`max_turns` must be at least 1, not 0"),
        ('{"id": "a", "instruction": "x", "files": ["none.txt"]}', "there is no file `none.txt`"),
        ('{"id": "a", "instruction": "x"', "the JSON is cut off at byte 30: it ends before it is complete"),
        ('{"id": "a", "instruction": "x", "graders": [{"kind": "contains", "value": "y"}], "graders": []}',
         "the key 'graders' occurs twice in one object (keep one of them)"),
        ('{"instruction": "x", "graders": [{"kind": "contains", "value": "y", "value": "z"}]}',
         "the key 'value' occurs twice in one object (keep one of them)"),
        ("[" * 5000, "the JSON is nested more than 200 levels deep "
         "(no real transcript is nested hundreds of levels deep; look at how the input was made)"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_case_is_told_with_its_number(line: str, told: str, tmp_path: Path) -> None:
    good = '{"id": "good", "instruction": "x"}\n'
    assert told_of(tmp_path, f"{good}\n{line}\n") == [f"cases.jsonl:3: {told}"]


def test_every_bad_line_is_told_not_only_the_first(tmp_path: Path) -> None:
    assert [problem.split(":")[1] for problem in told_of(tmp_path, "nope\n{}\n[]\n")] == ["1", "2", "3"]


def test_bytes_that_are_not_utf_8_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_bytes(b'{"id": "a", "instruction": "x"}\n{"id": "b", "instruction": "\xff"}\n')
    (told,) = problems_of(tmp_path, AGENT + "cases: [{from: cases.jsonl}]\n")
    assert told.startswith("cases.jsonl:2: the input is not valid JSON")


def test_a_line_that_would_fill_the_memory_is_told(tmp_path: Path) -> None:
    with (tmp_path / "cases.jsonl").open("wb") as stream:
        stream.write(b'{"id": "a", "instruction": "x"}\n')
        stream.truncate(MAX_LINE + 100)  # a hole, read as zeros
    assert problems_of(tmp_path, AGENT + "cases: [{from: cases.jsonl}]\n") == [
        "cases.jsonl:2: a line is longer than 64 MiB"
    ]


def test_an_empty_file_has_no_cases(tmp_path: Path) -> None:
    assert told_of(tmp_path, "\n\n") == ["shop.suite.yaml:3:5: there are no cases in `cases.jsonl`"]


def test_an_id_that_is_taken_names_both_places(tmp_path: Path) -> None:
    write(tmp_path, '{"id": "a", "instruction": "x"}\n{"id": "b", "instruction": "x"}\n', "one.jsonl")
    write(tmp_path, "id,user\nb,x\nc,x\nc,y\n", "two.csv")
    text = AGENT + "cases:\n  - {id: a, instruction: x}\n  - from: one.jsonl\n  - from: two.csv\n"
    assert problems_of(tmp_path, text) == [
        "one.jsonl:1: the id `a` is taken (by a case in shop.suite.yaml:3:5)",
        "two.csv:2: the id `b` is taken (by a case in one.jsonl:2)",
        "two.csv:4: the id `c` is taken (by a case in two.csv:3)",
    ]


def test_an_id_that_was_made_up_may_be_taken_too(tmp_path: Path) -> None:
    assert told_of(tmp_path, '{"id": "cases-2", "instruction": "x"}\n{"instruction": "y"}\n') == [
        "cases.jsonl:2: the id `cases-2` is taken (by a case in cases.jsonl:1)"
    ]


def test_a_source_may_say_its_format_and_name_a_variable(tmp_path: Path) -> None:
    write(tmp_path, "user\nhi\n", "data/seeds.txt")
    suite = suite_of(tmp_path, CaseSource(source="${DATA}/seeds.txt", format="csv"))
    assert [case.id for case in read_cases(suite, variables={"DATA": "data"})] == ["seeds-1"]


def test_arguments_for_a_file_are_told(tmp_path: Path) -> None:
    write(tmp_path, "user\nhi\n", "seeds.csv")
    assert problems_of(tmp_path, AGENT + "cases: [{from: seeds.csv, arguments: {n: 1}}]\n") == [
        "shop.suite.yaml:2:27: `arguments` are for a function, and `from` names a file"
    ]


def test_a_case_that_went_bad_since_it_was_checked_stops_the_reading(tmp_path: Path) -> None:
    write(tmp_path, '{"id": "a", "instruction": "x"}\n{"id": "b", "instruction": "x"}\n', "c.jsonl")
    suite = load(tmp_path, AGENT + "cases: [{from: c.jsonl}]\n")
    write(tmp_path, '{"id": "a", "instruction": "x"}\nnope\n', "c.jsonl")
    cases = read_cases(suite, variables={})
    assert next(cases).id == "a"
    with pytest.raises(InvalidSuiteError, match=r"c\.jsonl:2"):
        next(cases)


def test_cases_of_a_file_are_not_held_in_memory(tmp_path: Path) -> None:
    with (tmp_path / "c.jsonl").open("w", encoding="utf-8") as stream:
        for number in range(2000):
            stream.write(json.dumps({"id": f"c{number}", "instruction": "x" * 10_000}) + "\n")
    tracemalloc.start()
    try:
        suite = load(tmp_path, AGENT + "cases: [{from: c.jsonl}]\n")
        assert sum(1 for _ in read_cases(suite, variables={})) == 2000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (tmp_path / "c.jsonl").stat().st_size / 2


# Functions that make cases


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    """The name of a module that can be written for one test."""
    name = f"cases_of_{abs(hash(tmp_path))}"
    before = list(sys.path)
    yield name
    sys.path[:] = before
    sys.modules.pop(name, None)


def test_a_function_makes_cases(tmp_path: Path, module: str) -> None:
    write(
        tmp_path,
        "from seatrial.runs import Case\n"
        "def make(count):\n"
        "    yield Case(id='first', instruction='x')\n"
        "    for n in range(count):\n"
        "        yield {'instruction': f'do {n}', 'input': {'n': n}}\n",
        f"{module}.py",
    )
    source = CaseSource(source=f"{module}:make", arguments={"count": 2})
    assert cases_of(tmp_path, source) == [
        Case(id="first", instruction="x"),
        Case(id="make-2", instruction="do 0", input={"n": 0}),
        Case(id="make-3", instruction="do 1", input={"n": 1}),
    ]


def test_a_function_is_asked_for_one_case_at_a_time(tmp_path: Path, module: str) -> None:
    write(
        tmp_path,
        "made = []\ndef make():\n    while True:\n        made.append(1)\n        yield {'instruction': 'x'}\n",
        f"{module}.py",
    )
    cases = read_cases(suite_of(tmp_path, CaseSource(source=f"{module}:make")), variables={})
    assert [next(cases).id, next(cases).id] == ["make-1", "make-2"]
    assert sys.modules[module].made == [1, 1]


FUNCTIONS = {
    "def make(): raise ValueError('no data')": "`MODULE:make` raised ValueError at case 1: no data",
    "def make():\n    yield {'instruction': 'x'}\n    1 / 0": (
        "`MODULE:make` raised ZeroDivisionError at case 2: division by zero"
    ),
    "def make(): return 3": "`MODULE:make` raised TypeError at case 1: 'int' object is not iterable",
    "async def make():\n    yield 1": (
        "`MODULE:make` raised TypeError at case 1: 'async_generator' object is not iterable"
    ),
    "def maker(): pass": "`MODULE` has no `make` (did you mean `maker`?)",
    "import nothing_of_that_name": (
        "`MODULE` cannot be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'"
    ),
    "def make(": "`MODULE` cannot be imported: SyntaxError: '(' was never closed (MODULE.py, line 1)",
    "def make(): return []": "there are no cases in `MODULE:make`",
    "def make(): return [{'id': 'a', 'instruction': 'x'}, {'id': 'a', 'instruction': 'y'}]": (
        "the id `a` is taken (by a case in shop.suite.yaml:3:5)"
    ),
    "def make(): raise SystemExit(0)": "`MODULE:make` raised SystemExit at case 1: 0",
    "def make():\n    yield {'instruction': 'x'}\n    raise GeneratorExit": (
        "`MODULE:make` raised GeneratorExit at case 2: "
    ),
    "raise SystemExit(0)": "`MODULE` cannot be imported: SystemExit: 0",
    "raise GeneratorExit": "`MODULE` cannot be imported: GeneratorExit: ",
    "def make(): return [3]": "this must be a mapping, not a whole number",
    "def make(): return [object()]": "this must be a mapping, not something of type `object`",
    "def make(): return [{'instruction': 'x', 'expected': object()}]": (
        "`MODULE:make` raised TypeError at case 1: Encoding objects of type object is unsupported"
    ),
    "def make(): return [{'instruction': 'x', 'inptu': 1}]": "unknown key `inptu` (did you mean `input`?)",
}


@pytest.mark.parametrize(("body", "told"), FUNCTIONS.items())
def test_a_function_that_makes_no_cases_is_told(body: str, told: str, tmp_path: Path, module: str) -> None:
    write(tmp_path, body + "\n", f"{module}.py")
    text = f"agents: {{a: {{kind: stream, url: 'http://x/'}}}}\ncases:\n  - from: {module}:make\n"
    assert problems_of(tmp_path, text, run_python=True) == [f"shop.suite.yaml:3:5: {told.replace('MODULE', module)}"]


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200), ending=st.sampled_from(["csv", "jsonl"]))
def test_any_bytes_are_cases_or_our_error(data: bytes, ending: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / f"any.{ending}").write_bytes(data)
    file = write(folder, AGENT + f"cases: [{{from: any.{ending}}}]\n", f"any-{ending}.yaml")
    with pytest.raises(InvalidSuiteError):
        load_suite(file, variables={})


def test_files_of_a_case_are_from_where_the_case_is_written(tmp_path: Path) -> None:
    write(tmp_path, "x", "data/a.txt")
    write(tmp_path, '{"id": "a", "instruction": "x", "files": ["a.txt"]}\n', "data/c.jsonl")
    (case,) = cases_of(tmp_path, CaseSource(source="data/c.jsonl"))
    assert case.files == [os.path.join("data", "a.txt")]
