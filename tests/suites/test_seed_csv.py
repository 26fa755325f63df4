"""Seed CSVs are read as they are; what is wrong with one is told with its line and column."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.runs import Case
from seatrial.suites import CaseSource, PythonConfig, Suite, read_cases
from suites.samples import AGENT, problems_of


def read(folder: Path, data: str | bytes) -> list[Case]:
    (folder / "seeds.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    suite = Suite(
        agents={"a": PythonConfig(target="m:f")}, cases=[CaseSource(source="seeds.csv")], file=folder / "s.yaml"
    )
    return list(read_cases(suite, variables={}, checked=False))


def told(folder: Path, data: str | bytes) -> list[str]:
    (folder / "seeds.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    return problems_of(folder, AGENT + "cases:\n  - from: seeds.csv\n")


def table(*rows: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def test_the_seed_columns_fill_the_axes_of_the_world(tmp_path: Path) -> None:
    state = {"orders": {"o-1": {"status": "open"}}}
    rules = [{"trigger": "refund", "error": {"code": 500, "message": "down"}}]
    row = {
        "user": "Refund o-1, please.",
        "behavior": "Be slow.",
        "state": json.dumps(state),
        "failure_rules": json.dumps(rules),
        "expected_outcome": "refusal",
        "turn_mode": "model_as_user",
        "max_turns": "5",
        "memory_mode": "stateful",
        "simulator_mode": "scripted",
        "user_simulator_persona": "A hurried buyer",
        "scripted_user_turns": '["yes", "no"]',
        "tracked_constraints": '["total is 3"]',
        "termination_keyword": "DONE",
    }
    data = table(list(row), list(row.values()))
    assert read(tmp_path, data) == [
        Case(
            id="seeds-1",
            instruction="Refund o-1, please.",
            expected_outcome="refusal",
            world={
                "behavior_instructions": "Be slow.",
                "initial_state": state,
                "failure_rules": rules,
                "turn_mode": "model_as_user",
                "max_turns": 5,
                "memory_mode": "stateful",
                "simulator_mode": "scripted",
                "user_simulator_persona": "A hurried buyer",
                "scripted_user_turns": ["yes", "no"],
                "tracked_constraints": ["total is 3"],
                "termination_keyword": "DONE",
            },
        )
    ]


def test_coding_and_later_columns_are_kept(tmp_path: Path) -> None:
    row = {
        "user": "x",
        "scenario_ref": "s-1",
        "workspace_seed": '{"git": "u"}',
        "setup_command": "make",
        "eval": "pytest -q",
        "user_goal": "a refund",
        "expected_tool_sequence": '["find", "refund"]',
        "xfail": "true",
        "scorers": "[]",
        "expected_outcome_detail": "polite",
        "current_state": '{"o": 1}',
    }
    data = table(list(row), list(row.values()))
    (case,) = read(tmp_path, data)
    assert case.world == {
        "scenario_ref": "s-1",
        "workspace_seed": {"git": "u"},
        "setup_command": "make",
        "eval": "pytest -q",
        "user_goal": "a refund",
        "expected_tool_sequence": ["find", "refund"],
        "xfail": True,
        "scorers": [],
    }
    assert (case.expected_outcome_detail, case.input) == ("polite", {"o": 1})


def test_the_keys_of_a_case_are_columns_too(tmp_path: Path) -> None:
    data = table(
        ["id", "instruction", "input", "expected", "tags", "threshold", "metadata.source", "metadata.page", "graders"],
        ["a", "x", '{"n": 1}', "42", "fast, safe", "0.5", "book", "7", '[{"kind": "equals", "value": 1}]'],
    )
    assert read(tmp_path, data) == [
        Case(
            id="a",
            instruction="x",
            input={"n": 1},
            expected="42",
            tags=["fast", "safe"],
            threshold=0.5,
            metadata={"source": "book", "page": "7"},
            graders=[{"kind": "equals", "value": 1}],
        )
    ]


def test_a_byte_order_mark_and_spaces_around_headers_are_no_trouble(tmp_path: Path) -> None:
    (case,) = read(tmp_path, b"\xef\xbb\xbf user , behavior\r\nhello,b\r\n")
    assert (case.instruction, case.world) == ("hello", {"behavior_instructions": "b"})


def test_prompts_are_kept_to_the_character(tmp_path: Path) -> None:
    (case,) = read(tmp_path, 'user\n"  two\n lines, ""quoted""  "\n')
    assert case.instruction == '  two\n lines, "quoted"  '


def test_empty_cells_are_absent_and_empty_rows_are_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, "user,state,expected_outcome\nhello,,  \n\n , ,\nbye\n") == [
        Case(id="seeds-1", instruction="hello"),
        Case(id="seeds-2", instruction="bye"),
    ]


def test_trailing_commas_of_spreadsheets_are_no_trouble(tmp_path: Path) -> None:
    assert read(tmp_path, "user,,\nhello,,\n") == [Case(id="seeds-1", instruction="hello")]


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("user_instruction", "`user_instruction` is the name of an axis, not of a column (did you mean `user`?)"),
        ("user,behavior_instructions", "`behavior_instructions` is the name of an axis, not of a column "
         "(did you mean `behavior`?)"),
        ("user,initial_state", "`initial_state` is the name of an axis, not of a column (did you mean `state`?)"),
        ("user,behaviour", "unknown column `behaviour` (did you mean `behavior`?)"),
        ("user,initial_stat", "unknown column `initial_stat` (did you mean `state`?)"),
        ("user,colour", "unknown column `colour`"),
        ("user,User", "unknown column `User` (did you mean `user`?)"),
        ("user;behavior", "unknown column `user;behavior` (only commas separate columns)"),
        ("behavior", "the column `user` is missing (it holds the prompt)"),
        ("user,user", "the column `user` is here twice (keep one of them)"),
        ("user,instruction", "the columns `user` and `instruction` fill the same place (keep one of them)"),
        ("user,input.a,input", "the columns `input.a` and `input` fill the same place (keep one of them)"),
        ("user,input,current_state", "the columns `input` and `current_state` fill the same place (keep one of them)"),
        ("user,input.", "unknown column `input.` (did you mean `input`?)"),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_used_is_told(header: str, says: str, tmp_path: Path) -> None:
    assert told(tmp_path, f"{header}\nhello\n") == [f"seeds.csv:1: {says}"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("hello,{,\n", "2: `state` is not JSON: the JSON is cut off at byte 1: it ends before it is complete"),
        ('hello,"{""a"": {}, ""a"": {}}",\n',
         "2: `state` is ambiguous: the key 'a' occurs twice in one object (keep one of them)"),
        ("hello,[],\n", "2: `initial_state` must be a mapping, not a list"),
        ('hello,"{""orders"": []}",\n', "2: `orders` must be a mapping, not a list"),
        ("hello,,51\n", "2: `max_turns` must be at most 50, not 51"),
        ("hello,,many\n", "2: `max_turns` is not JSON: JSON is malformed: invalid character (byte 0)"),
        ('"two\nlines",,\n,{},\n', "4: the cell of `user` is empty"),
        ("hello,,,extra\n", '2: cell 4 has no column (is a comma in some text not in quotes?)'),
        ('hello,"unclosed\n', "2: this is not CSV: unexpected end of data"),
        ('hello,"a"b,\n', "2: this is not CSV: ',' expected after '\"'"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_told(rows: str, says: str, tmp_path: Path) -> None:
    assert told(tmp_path, "user,state,max_turns\n" + rows) == [f"seeds.csv:{says}"]


def test_values_outside_their_choices_are_told(tmp_path: Path) -> None:
    assert told(tmp_path, 'user,expected_outcome,turn_mode,failure_rules\nx,success,,\nx,,multi,"[{}]"\n') == [
        "seeds.csv:2: `expected_outcome` must be one of `completion`, `refusal`, not `success`",
        "seeds.csv:3: the key `trigger` is missing in item 1 of `failure_rules`",
        "seeds.csv:3: `turn_mode` must be one of `model_as_user`, `single_shot`, not `multi`",
    ]


def test_an_unnamed_column_with_something_in_it_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, "user,\nhello,what\n") == [
        "seeds.csv:2: cell 2 has no column (is a comma in some text not in quotes?)"
    ]


@pytest.mark.parametrize("data", [b"user\nhello\n\xff\n", b"user\nhello\n\xc3(\n"])
def test_a_file_that_is_not_utf_8_is_told_with_its_line(data: bytes, tmp_path: Path) -> None:
    assert told(tmp_path, data) == ["seeds.csv:3: the file is not UTF-8 text (save it as CSV UTF-8)"]


def test_a_file_in_utf_16_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, "user\nhello\n".encode("utf-16")) == [
        "seeds.csv:1: the file is not UTF-8 text (save it as CSV UTF-8)"
    ]


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, b"") == ["seeds.csv:1: the file is empty (its first line names the columns; `user` is one)"]
    assert told(tmp_path, "user\n") == ["shop.suite.yaml:3:5: there are no cases in `seeds.csv`"]


def test_a_cell_may_be_larger_than_the_csv_module_likes(tmp_path: Path) -> None:
    (case,) = read(tmp_path, f"user\n{'x' * 300_000}\n")
    assert len(case.instruction) == 300_000


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(cells.filter(str.strip), cells), min_size=1, max_size=5))
def test_whatever_csv_can_write_is_read_back(
    rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data: Any = table(["user", "behavior"], *[[user, behavior] for user, behavior in rows])
    cases = read(tmp_path_factory.getbasetemp(), data)
    assert [case.instruction for case in cases] == [user for user, _ in rows]
    assert [case.world.get("behavior_instructions", "") for case in cases] == [
        behavior if behavior.strip() else "" for _, behavior in rows
    ]
