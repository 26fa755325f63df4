"""Keys of cases that nothing acts on, and cases that nothing judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.graders import GRADERS, build_graders
from seatrial.graders.grader import FOR_GRADERS
from seatrial.runs import Case
from seatrial.suites import HttpConfig, InvalidSuiteError, PythonConfig, Suite, load_suite, read_cases, validate_suite
from suites.samples import AGENT, CASE, write

HTTP = "http: {kind: http, endpoint_url: 'http://localhost:1/'}"
STREAM = "stream: {kind: stream, url: 'http://localhost:1/'}"
CLI = "cli: {kind: cli, command: 'agent {PROMPT}'}"
CLI_FILES = "cli: {kind: cli, command: 'agent {PROMPT} {FILES}'}"
BATCH = "cli: {kind: cli, command: agent, batch: true}"
REPLAY = "old: {kind: replay, experiment: e}"
GRADED = "graders: [{kind: contains, value: x}]\n"


def problems(folder: Path, text: str, **options: Any) -> list[str]:
    """What is said of a suite, without its file."""
    file = write(folder, text)
    try:
        load_suite(file, variables={}, **options)
    except InvalidSuiteError as error:
        return [str(problem).replace(f"{folder}/", "").replace(f"{file.name}:", "") for problem in error.problems]
    return []


def code(folder: Path, text: str, **options: Any) -> str:
    with pytest.raises(InvalidSuiteError) as caught:
        load_suite(write(folder, text), variables={}, **options)
    return caught.value.code


def suite_of(agents: list[str], case: str) -> str:
    listed = "".join(f"  {agent}\n" for agent in agents)
    return f"agents:\n{listed}{GRADED}cases: [{{id: one, instruction: hello, {case}}}]\n"


INPUT, MESSAGES, FILES = "input: {a: 1}", "messages: [{role: user, content: hi}]", "files: [shop.suite.yaml]"


@pytest.mark.parametrize(
    ("agents", "case"),
    [
        ([HTTP], INPUT),
        ([HTTP], MESSAGES),
        ([STREAM], INPUT),
        ([STREAM], MESSAGES),
        ([CLI_FILES], FILES),
        ([BATCH], INPUT),
        ([BATCH], MESSAGES),
        ([BATCH], FILES),
        ([REPLAY], INPUT),
        ([REPLAY], FILES),
        # One agent that takes it is enough: a file of cases may serve several.
        ([HTTP, CLI], INPUT),
        ([HTTP, CLI_FILES], FILES),
    ],
)
def test_a_key_that_an_agent_takes_is_fine(agents: list[str], case: str, tmp_path: Path) -> None:
    assert problems(tmp_path, suite_of(agents, case)) == []


@pytest.mark.parametrize(
    ("agents", "case", "named", "hint"),
    [
        ([HTTP], FILES, "`http` (kind http)", ""),
        ([STREAM], FILES, "`stream` (kind stream)", ""),
        ([CLI], INPUT, "`cli` (kind cli)", " (only `batch: true` sends it to a program)"),
        ([CLI], MESSAGES, "`cli` (kind cli)", " (only `batch: true` sends it to a program)"),
        ([CLI], FILES, "`cli` (kind cli)", " (name `{FILES}` in its `command`)"),
        ([HTTP, STREAM], FILES, "`http` (kind http), `stream` (kind stream)", ""),
    ],
)
def test_a_key_that_no_agent_takes_is_told_with_case_key_and_agents(
    agents: list[str], case: str, named: str, hint: str, tmp_path: Path
) -> None:
    key = case.partition(":")[0]
    (told,) = problems(tmp_path, suite_of(agents, case))
    assert told.endswith(f": `{key}` of the case `one` reaches no agent: it is not taken by {named}{hint}")


@pytest.mark.parametrize(
    ("parameters", "case", "taken"),
    [
        ("prompt", INPUT, False),
        ("prompt", MESSAGES, False),
        ("prompt", FILES, False),
        ("prompt, input", INPUT, True),
        ("prompt, input", MESSAGES, False),
        ("instruction, messages", MESSAGES, True),
        ("files", FILES, True),
        ("task_input", INPUT, True),
        ("task_input", MESSAGES, True),
        ("task_input", FILES, False),
        ("prompt, run_input", INPUT, False),
    ],
)
def test_a_function_takes_what_its_parameters_are_named_after(
    parameters: str, case: str, taken: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    module = f"agent_{abs(hash(request.node.name))}"
    write(tmp_path, f"def answer({parameters}): return 'x'\n", f"{module}.py")
    text = suite_of([f"mine: {{kind: python, target: '{module}:answer'}}"], case)
    assert bool(problems(tmp_path, text, import_agents=True)) is not taken
    # While a suite is only read, no code of its author runs.
    assert problems(tmp_path, text) == []


@pytest.mark.parametrize(
    ("key", "graders", "read"),
    [
        ("expected: x", "[{kind: contains, value: y}]", False),
        ("expected: x", "[{kind: contains}]", True),
        ("expected: x", "[{kind: equals}]", True),
        ("expected: {a: 1}", "[{kind: field_accuracy}]", True),
        ("expected: {a: 1}", "[{kind: field_accuracy, expected: {a: 2}}]", False),
        ("expected: {a: 1}", "[{kind: field_accuracy, fields: [{path: a, value: 2}]}]", False),
        ("expected: {a: 1}", "[{kind: field_accuracy, fields: [{path: a}]}]", True),
        ("expected: x", "[{kind: composite, graders: [{kind: ends_with}]}]", True),
        ("expected: x", "[{kind: tool_trajectory, mode: exact, expected: [{tool: t}]}]", False),
        ("expected: x", "[{kind: judge}]", True),
        ("expected: x", "[{kind: code, command: check}]", True),
        ("expected_outcome: refusal", "[{kind: contains, value: y}]", False),
        ("expected_outcome: refusal", "[{kind: python, target: 'm:f'}]", True),
        ("expected_outcome: refusal", "[{kind: judge}]", True),
        ("expected_outcome: completion", "[{kind: contains, value: y}]", True),
        ("expected_outcome_detail: No.", "[{kind: is_json}]", False),
        ("expected_outcome_detail: No.", "[{kind: judge}]", True),
    ],
)
def test_what_a_case_expects_is_read_by_a_grader_or_told(key: str, graders: str, read: bool, tmp_path: Path) -> None:
    case = f"cases: [{{id: one, instruction: hello, {key}}}]\n"
    own = f"cases: [{{id: one, instruction: hello, {key}, graders: {graders}}}]\n"
    for text in (f"{AGENT}graders: {graders}\n{case}", AGENT + own):
        told = problems(tmp_path, text)
        assert (told == []) is read
        if not read:
            assert f"`{key.partition(':')[0]}` of the case `one` is read by no grader" in told[0]


def test_which_kinds_read_what_a_case_expects() -> None:
    least: dict[str, dict[str, Any]] = {
        "tool_trajectory": {"mode": "exact", "expected": [{"tool": "t"}]},
        "calls": {"tool": "t"},
        "never_calls": {"tools": ["t"]},
        "contract": {"response_mode": "thin"},
        **{key: {"values": ["x"]} for key in ("contains_any", "contains_all")},
        "regex": {"pattern": "x"},
        "json_schema": {"schema": {"type": "object"}},
        "latency": {"max_ms": 1},
        "cost": {"max_usd": 1},
        **{key: {"max": 1} for key in ("tokens", "steps", "model_calls")},
        **{key: {"paths": ["x"]} for key in ("allowed_paths", "forbidden_paths")},
        "diff": {"max_files": 1},
        **{key: {"command": "x"} for key in ("command", "code")},
        "entity_field": {"entity": "t/i", "fields": {"f": 1}},
        "entity_absent": {"entity": "t/i"},
        "entity_count": {"type": "t", "count": 1},
        "flag_set": {"flag": "f"},
        "effects": {"max": 0},
        "side_effects": {"allow": []},
        "invariants": {"never": [{"flag": "f"}]},
        "python": {"target": "m:f"},
        "composite": {"graders": [{"kind": "is_json"}]},
    }
    graders = build_graders([{"kind": kind, **least.get(kind, {})} for kind in GRADERS])
    reading = {grader.kind: grader.prepare().reads for grader in graders if grader.prepare().reads}
    compared = frozenset({"expected"})
    assert reading == {
        **dict.fromkeys(("equals", "contains", "icontains", "starts_with", "ends_with", "field_accuracy"), compared),
        **dict.fromkeys(("judge", "code", "python"), FOR_GRADERS),
    }


def test_of_a_file_of_cases_a_key_is_told_once(tmp_path: Path) -> None:
    write(tmp_path, "user,state,turn_mode,input.order\n" + 'x,"{""o"": {}}",single_shot,1\n' * 50, "seeds.csv")
    told = problems(tmp_path, f"agents: {{{CLI}}}\n{GRADED}cases: [{{from: seeds.csv}}]\n")
    assert [line.removeprefix("seeds.csv:") for line in told] == [
        "2: `world.turn_mode` is not supported yet: nothing would act on it",
        "2: the suite has no world that a case could seed (name its tools under `world` of the suite)",
        "2: `input` of the case `seeds-1` reaches no agent: it is not taken by `cli` (kind cli) "
        "(only `batch: true` sends it to a program)",
    ]


def test_columns_of_the_world_whose_cells_are_empty_are_fine(tmp_path: Path) -> None:
    write(tmp_path, "user,state,failure_rules\nx,,\ny,,\n", "seeds.csv")
    assert problems(tmp_path, f"{AGENT}{GRADED}cases: [{{from: seeds.csv}}]\n") == []


def test_cases_that_a_function_makes_are_checked_when_they_are_made(tmp_path: Path) -> None:
    write(
        tmp_path, "def make(): yield {'id': 'a', 'instruction': 'x', 'files': ['shop.suite.yaml']}\n", "made_cases.py"
    )
    suite = load_suite(write(tmp_path, f"agents: {{{HTTP}}}\n{GRADED}cases: [{{from: 'made_cases:make'}}]\n"))
    with pytest.raises(InvalidSuiteError, match="`files` of the case `a` reaches no agent"):
        list(read_cases(suite))


UNJUDGED = {
    "no graders at all": AGENT + CASE,
    "only some cases have graders": AGENT
    + "cases: [{id: one, instruction: x}, {id: two, instruction: x, graders: [{kind: is_json}]}]\n",
    "none is required": AGENT + "graders: [{kind: is_json, required: false}]\n" + CASE,
    "none weighs anything": AGENT + "graders: [{kind: is_json, required: false, weight: 0}]\nthreshold: 0.5\n" + CASE,
    "nothing to compare with": AGENT + "graders: [{kind: equals}]\n" + CASE,
    "nothing to compare with, among others": AGENT + "graders: [{kind: is_json}, {kind: contains}]\n" + CASE,
    "nothing to compare with, within": AGENT
    + "graders: [{kind: composite, graders: [{kind: field_accuracy}]}]\n"
    + CASE,
}


@pytest.mark.parametrize("text", UNJUDGED.values(), ids=UNJUDGED)
def test_a_case_that_nothing_judges_is_told_before_it_is_run(text: str, tmp_path: Path) -> None:
    assert code(tmp_path, text, grading="all") == "not_judged"
    assert code(tmp_path, text, grading="without_judges") == "not_judged"
    assert problems(tmp_path, text, grading="none") == []
    (told,) = problems(tmp_path, text, grading="all")
    assert "the case `one`" in told


def test_a_suite_with_a_mistake_and_without_graders_is_a_suite_with_a_mistake(tmp_path: Path) -> None:
    assert code(tmp_path, AGENT + CASE + "trails: 3\n", grading="all") == "invalid_suite"


def test_a_suite_without_graders_is_told_once_whatever_the_number_of_cases(tmp_path: Path) -> None:
    cases = "".join(f"  - {{id: c{number}, instruction: x}}\n" for number in range(20))
    told = problems(tmp_path, f"{AGENT}cases:\n{cases}", grading="all")
    assert told == [
        "3:5: no grader judges the case `c0` (add graders to the suite or the case, or run it with --no-grade)"
    ]


JUDGED = "graders: [{kind: judge, name: friendly}]\n" + CASE
JUDGED_IN_A_CASE = "cases: [{id: one, instruction: x, graders: [{kind: judge, name: friendly, required: false}]}]\n"
JUDGED_WITHIN = "graders: [{kind: composite, name: friendly, graders: [{kind: judge}]}]\n" + CASE


@pytest.mark.parametrize("text", [JUDGED, GRADED + JUDGED_IN_A_CASE, JUDGED_WITHIN])
def test_a_judge_without_a_model_is_told_before_it_is_run(text: str, tmp_path: Path) -> None:
    (told,) = problems(tmp_path, AGENT + text, grading="all")
    assert told.endswith(
        ": the grader `friendly` asks a model, and the suite names none (name one under `judge` (`model`, `base_url`, "
        "`api_key`), or leave judges out with --skip-judges)"
    )
    assert code(tmp_path, AGENT + text, grading="all") == "invalid_suite"
    assert problems(tmp_path, AGENT + text, grading="without_judges") == []
    model = "judge: {model: m, base_url: 'http://localhost:1/'}\n"
    assert problems(tmp_path, AGENT + model + text, grading="all") == []


def test_a_suite_built_in_python_is_checked_alike() -> None:
    case = Case(id="one", instruction="x", files=["pyproject.toml"], graders=[{"kind": "is_json"}])
    suite = Suite(agents={"a": HttpConfig(endpoint_url="http://localhost:1/")}, cases=[case])
    assert [problem.pointer for problem in validate_suite(suite, variables={})] == ["/cases/0/files"]
    suite = Suite(agents={"a": PythonConfig(target="m:f")}, cases=[Case(id="one", instruction="x", expected="y")])
    assert [problem.not_judged for problem in validate_suite(suite, variables={}, grading="all")] == [True]
    suite.grading = "none"
    assert validate_suite(suite, variables={}, grading="all") == []


@pytest.mark.parametrize(
    ("message", "place", "said"),
    [
        ("{content: hi}", "", "dropped a message without a role"),
        ("{role: usr, content: hi}", "/role", "a message of the unknown role 'usr'"),
        ("{role: assistant, tool_calls: find}", "/tool_calls", "tool_calls is text, not an array"),
        ("{role: assistant, tool_calls: [{function: {arguments: x}}]}", "/tool_calls/0", "a tool call without a name"),
        ("{role: user, content: [{type: hologram}]}", "/content/0", "dropped a part of the type 'hologram'"),
    ],
)
def test_a_message_that_cannot_be_read_is_a_problem_at_its_place(
    message: str, place: str, said: str, tmp_path: Path
) -> None:
    text = suite_of([HTTP], f"messages: [{{role: user, content: hi}}, {message}]")
    with pytest.raises(InvalidSuiteError) as caught:
        load_suite(write(tmp_path, text), variables={})
    (found,) = caught.value.problems
    assert found.pointer == f"/cases/0/messages/1{place}"
    assert said in found.message
    assert found.line == text.splitlines().index(next(line for line in text.splitlines() if "cases:" in line)) + 1


def test_a_message_in_a_file_of_cases_is_read_too(tmp_path: Path) -> None:
    lines = ['{"instruction": "a"}', '{"instruction": "b", "messages": [{"content": "hi"}]}']
    (tmp_path / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")
    suite = f"agents:\n  {HTTP}\n{GRADED}cases: [{{from: cases.jsonl}}]\n"
    (found,) = problems(tmp_path, suite)
    assert "cases.jsonl:2" in found
    assert "without a role" in found


@pytest.mark.parametrize(
    "message",
    [
        "{role: tool, tool_call_id: c1, content: found}",
        "{role: assistant, content: hi, annotations_of_mine: {a: [1]}}",
        "{role: user, content: [{type: input_audio, input_audio: {data: AAAA, format: wav}}]}",
        "{role: developer, content: be brief}",
    ],
)
def test_a_message_that_can_be_read_is_fine_whatever_else_is_in_it(message: str, tmp_path: Path) -> None:
    assert problems(tmp_path, suite_of([HTTP], f"messages: [{message}]")) == []
