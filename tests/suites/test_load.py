"""A suite file is checked whole before anything runs: every problem, with its line and what was probably meant."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import SeatrialError
from seatrial.problems import MAX_PROBLEMS
from seatrial.runs import Case
from seatrial.suites import (
    Budget,
    CaseSource,
    CliConfig,
    HttpConfig,
    InvalidSuiteError,
    PythonConfig,
    Retry,
    Suite,
    Timeouts,
    load_suite,
    validate_suite,
)
from seatrial.suites.load import MAX_INCLUDE_DEPTH
from suites.samples import AGENT, CASE, load, problems_of, write

WHOLE = """\
name: shop
description: What the shop's agent must do.
agents:
  shop:
    kind: http
    endpoint_url: https://shop.example/dispatch
    auth_credential_value: Bearer ${SHOP_TOKEN}
    headers: {X-Tenant: blue}
    endpoint_rule: public
    response_mode: rich
    strictness: strict
    sub_agents: [refunds, {actor_id: orders}]
    concurrency: 4
    timeout_s: 20
    run_timeout_s: 90
    retry: {attempts: 2}
  cli: {kind: cli, command: "agent {PROMPT_FILE} --out {OUTPUT_FILE}", env: {MODEL: small}}
  py: {kind: python, target: "agent:answer"}
  stream: {kind: stream, url: "http://localhost:9/run", format: native, resume: true}
  old: {kind: replay, experiment: exp-1}
graders:
  - {kind: equals, value: 3, name: three, weight: 2, required: false}
  - {kind: judge}
threshold: 0.5
trials: 3
concurrency: 8
timeouts: {connect_s: 2, run_s: 60}
retry: {attempts: 5, first_wait_s: 0.1}
budget: {cost_usd: 1.5, tokens: 1000, wall_time_s: 60}
judge: {model: small, base_url: "http://localhost:8/v1", api_key: "${JUDGE_KEY}"}
cases:
  - id: refund
    instruction: Refund the order.
    input: {order: o-1}
    expected_outcome: refusal
    threshold: 1
    graders: [{kind: tool_trajectory, mode: exact, expected: [{tool: refund}]}]
  - instruction: Say hello.
  - from: more.jsonl
"""
VARIABLES = {"SHOP_TOKEN": "s3cr3t", "JUDGE_KEY": "k3y-value"}


def test_a_whole_suite_becomes_typed_objects(tmp_path: Path) -> None:
    write(tmp_path, '{"id": "more", "instruction": "And this."}\n', "more.jsonl")
    suite = load(tmp_path, WHOLE, VARIABLES)
    assert suite.name == "shop"
    shop = suite.agents["shop"]
    assert isinstance(shop, HttpConfig)
    assert (shop.strictness, shop.retry, shop.timeout_s) == ("strict", Retry(attempts=2), 20)
    assert isinstance(suite.agents["cli"], CliConfig)
    assert (suite.trials, suite.concurrency, suite.threshold) == (3, 8, 0.5)
    assert suite.timeouts == Timeouts(connect_s=2, run_s=60)
    assert suite.budget == Budget(cost_usd=1.5, tokens=1000, wall_time_s=60)
    assert suite.cases[0] == Case(
        id="refund",
        instruction="Refund the order.",
        input={"order": "o-1"},
        expected_outcome="refusal",
        threshold=1,
        graders=[{"kind": "tool_trajectory", "mode": "exact", "expected": [{"tool": "refund"}]}],
    )
    assert suite.cases[1:] == [Case(id="shop-2", instruction="Say hello."), CaseSource(source="more.jsonl")]
    assert suite.directory == tmp_path


def test_a_small_suite_has_sensible_defaults(tmp_path: Path) -> None:
    suite = load(tmp_path, AGENT + CASE)
    assert suite == Suite(
        name="shop",
        agents={"mine": PythonConfig(target="agent:answer")},
        cases=[Case(id="one", instruction="hello")],
        file=tmp_path / "shop.suite.yaml",
    )


BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
"""Suites with something wrong, and at their end what must be said of it, to the letter."""


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_a_bad_suite_is_told_exactly(file: Path) -> None:
    told = [line.removeprefix("# ") for line in file.read_text(encoding="utf-8").split("# problems:\n")[1].splitlines()]
    with pytest.raises(InvalidSuiteError) as caught:
        load_suite(file, variables={})
    said = [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]
    assert [problem.replace(str(file), file.name) for problem in said] == told


def test_a_problem_has_a_pointer_and_the_error_lists_all(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuiteError) as caught:
        load(tmp_path, AGENT + CASE + "trails: 1\ngraders: [{kind: eqals}]\n")
    error = caught.value
    assert error.code == "invalid_suite"
    assert [problem.pointer for problem in error.problems] == ["/trails", "/graders/0/kind"]
    assert str(error).splitlines()[0] == "the suite has 2 problems"
    assert str(error).splitlines()[1].endswith("unknown key `trails` (did you mean `trials`?)")


def test_an_expectation_that_cannot_be_compiled_is_told_with_its_line(tmp_path: Path) -> None:
    text = (
        AGENT
        + CASE
        + "graders:\n  - kind: tool_trajectory\n    mode: exact\n    expected:\n      - tool: a\n      - {}\n"
    )
    with pytest.raises(InvalidSuiteError) as caught:
        load(tmp_path, text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.pointer) == (8, "/graders/0/expected/1")


def test_past_a_hundred_problems_the_rest_is_counted(tmp_path: Path) -> None:
    text = AGENT + "cases:\n" + "  - {x: 1}\n" * 200
    with pytest.raises(InvalidSuiteError) as caught:
        load(tmp_path, text)
    assert len(caught.value.problems) == MAX_PROBLEMS
    assert str(caught.value).endswith("and 300 more")


def test_no_value_of_a_variable_is_in_an_error(tmp_path: Path) -> None:
    text = """\
agents:
  a: {kind: http, endpoint_url: "${SECRET}", proxy_url: "http://u:${SECRET}@x y/", headers: {X: "${SECRET}\\n"}}
  b: {kind: cli, command: "${SECRET} {NOPE}", cwd: "${SECRET}"}
  c: {kind: replay, path: "${SECRET}"}
judge: {model: m, base_url: "${SECRET}", api_key: "${SECRET}", timeout_s: "${SECRET}"}
cases: [{from: "${SECRET}.jsonl"}]
include: ["${SECRET}.yaml"]
"""
    with pytest.raises(InvalidSuiteError) as caught:
        load(tmp_path, text, {"SECRET": "hunter22"})
    assert "hunter22" not in str(caught.value) + repr(caught.value) + repr(caught.value.problems)


def test_no_secret_of_the_file_is_in_an_error() -> None:
    file = Path(__file__).parent / "bad" / "secrets-in-the-file.yaml"
    assert "hunter22" in file.read_text(encoding="utf-8")
    with pytest.raises(InvalidSuiteError) as caught:
        load_suite(file, variables={})
    assert "hunter22" not in str(caught.value) + repr(caught.value.problems)


def test_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.yaml", tmp_path):
        with pytest.raises(SeatrialError) as caught:
            load_suite(path)
        assert caught.value.code == "unreadable_file"


def test_variables_are_those_of_the_process_unless_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "agents: {a: {kind: http, endpoint_url: 'http://x/${SUITE_TEST_VARIABLE}'}}\n" + CASE)
    with pytest.raises(InvalidSuiteError):
        load_suite(file)
    monkeypatch.setenv("SUITE_TEST_VARIABLE", "y")
    load_suite(file)


def test_an_address_may_be_a_variable(tmp_path: Path) -> None:
    text = "agents: {a: {kind: http, endpoint_url: '${URL}'}}\n" + CASE
    assert problems_of(tmp_path, text, {"URL": "http://x/"}) == []
    assert problems_of(tmp_path, text, {"URL": "nonsense"}) == [
        "shop.suite.yaml:1:26: `endpoint_url` must be an http or https URL when its variables are filled in"
    ]


def test_braces_that_are_doubled_are_text(tmp_path: Path) -> None:
    text = "agents: {a: {kind: cli, command: [agent, '{{\"q\": \"{PROMPT}\"}}', '$${{HOME}}']}}\n" + CASE
    assert problems_of(tmp_path, text) == []


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=120))
def test_any_bytes_give_a_suite_or_our_error(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(data)
    with pytest.raises(InvalidSuiteError):
        load_suite(file, variables={})


keys = st.sampled_from(
    ["agents", "cases", "graders", "include", "kind", "from", "id", "instruction", "judge", "retry", "world", "files",
     "command", "endpoint_url", "headers", "value", "expected", "timeouts", "name", "x"]
)  # fmt: skip
words = st.sampled_from(
    ["http", "cli", "python", "replay", "equals", "steps", "m:f", "x.jsonl", "${A}", "{PROMPT}", "http://x", ""]
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(value=st.dictionaries(keys, junk, max_size=6))
def test_any_values_give_a_suite_or_our_error(
    value: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "junk.yaml"
    file.write_text(json.dumps(value), encoding="utf-8")
    try:
        suite = load_suite(file, variables={})
    except InvalidSuiteError:
        return
    assert validate_suite(suite, variables={}) == []


# Includes


def test_included_agents_cases_and_graders_come_first(tmp_path: Path) -> None:
    write(tmp_path, "graders: [{kind: equals, value: 1}]\n" + CASE, "shared/one.yaml")
    write(tmp_path, "agents: {other: {kind: python, target: 'm:f'}}\ncases: [{instruction: two}]\n", "two.yaml")
    text = (
        "include: [shared/one.yaml, two.yaml]\n"
        + AGENT
        + "cases: [{instruction: own}]\ngraders: [{kind: equals, value: 2}]\n"
    )
    suite = load(tmp_path, text)
    assert list(suite.agents) == ["other", "mine"]
    assert [case.id for case in suite.cases if isinstance(case, Case)] == ["one", "two-1", "shop-1"]
    assert suite.graders == [{"kind": "equals", "value": 1}, {"kind": "equals", "value": 2}]


def test_paths_are_from_the_file_they_are_written_in(tmp_path: Path) -> None:
    write(tmp_path, "x", "shared/data/x.txt")
    write(tmp_path, '{"id": "far", "instruction": "x", "files": ["x.txt"]}\n', "shared/data/cases.jsonl")
    write(
        tmp_path,
        "agents: {cli: {kind: cli, command: a, cwd: data}, old: {kind: replay, path: data/cases.jsonl}}\n"
        "cases: [{from: data/cases.jsonl}, {id: near, instruction: x, files: [data/x.txt]}, {from: 'm:f'}]\n",
        "shared/part.yaml",
    )
    suite = load(tmp_path, "include: shared/part.yaml\n")
    cli, old = suite.agents["cli"], suite.agents["old"]
    assert getattr(cli, "cwd", None) == "shared/data"
    assert getattr(old, "path", None) == "shared/data/cases.jsonl"
    assert suite.cases == [
        CaseSource(source="shared/data/cases.jsonl"),
        Case(id="near", instruction="x", files=["shared/data/x.txt"]),
        CaseSource(source="m:f"),
    ]


def test_an_included_suite_is_the_same_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "agents: {cli: {kind: cli, command: a, cwd: .}}\n" + CASE, "shared/part.yaml")
    file = write(tmp_path, "include: ../shared/part.yaml\n", "suites/shop.yaml")
    monkeypatch.chdir(tmp_path / "suites")
    near = load_suite("shop.yaml").agents
    monkeypatch.chdir(tmp_path)
    far = load_suite(os.path.relpath(file)).agents
    assert near == far == {"cli": CliConfig(command="a", cwd="../shared")}


def test_what_a_suite_sets_counts_before_what_it_includes(tmp_path: Path) -> None:
    write(tmp_path, "name: part\ntrials: 5\nconcurrency: 2\n" + CASE, "part.yaml")
    suite = load(tmp_path, "include: part.yaml\ntrials: 7\n" + AGENT)
    assert (suite.name, suite.trials, suite.concurrency) == ("shop", 7, 2)


def test_two_includes_that_set_the_same_key_are_told(tmp_path: Path) -> None:
    write(tmp_path, "trials: 5\n" + CASE, "a.yaml")
    write(tmp_path, "trials: 6\n", "b.yaml")
    assert problems_of(tmp_path, "include: [a.yaml, b.yaml]\n" + AGENT) == [
        "b.yaml:1:1: two included files set `trials` (set it in the suite itself; also set in a.yaml:1:1)"
    ]


def test_two_agents_of_one_name_are_told(tmp_path: Path) -> None:
    write(tmp_path, AGENT + CASE, "a.yaml")
    assert problems_of(tmp_path, "include: a.yaml\n" + AGENT) == [
        "shop.suite.yaml:2:10: the name `mine` is taken (by an agent in a.yaml:1:10)"
    ]


def test_a_file_that_two_include_counts_once(tmp_path: Path) -> None:
    write(tmp_path, AGENT + CASE, "base.yaml")
    write(tmp_path, "include: base.yaml\n", "a.yaml")
    write(tmp_path, "include: ./base.yaml\n", "b.yaml")
    assert len(load(tmp_path, "include: [a.yaml, b.yaml, base.yaml]\n").cases) == 1


def test_an_include_of_itself_is_told(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "include: shop.suite.yaml\n" + AGENT + CASE) == [
        "shop.suite.yaml:1:1: circular include: `shop.suite.yaml` -> `shop.suite.yaml`"
    ]


def test_a_circle_of_includes_is_told_where_it_closes(tmp_path: Path) -> None:
    write(tmp_path, "include:\n  - b.yaml\n", "sub/a.yaml")
    write(tmp_path, "include: [../shop.suite.yaml]\n", "sub/b.yaml")
    assert problems_of(tmp_path, "include: sub/a.yaml\n" + AGENT + CASE) == [
        "sub/b.yaml:1:11: circular include: `shop.suite.yaml` -> `a.yaml` -> `b.yaml` -> `shop.suite.yaml`"
    ]


def test_a_circle_through_a_link_is_a_circle(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to(tmp_path / "shop.suite.yaml")
    assert "circular include" in problems_of(tmp_path, "include: link.yaml\n" + AGENT + CASE)[0]


def test_includes_nest_only_so_deep(tmp_path: Path) -> None:
    for level in range(MAX_INCLUDE_DEPTH + 5):
        write(tmp_path, f"include: {level + 1}.yaml\n", f"{level}.yaml")
    write(tmp_path, CASE, f"{MAX_INCLUDE_DEPTH + 5}.yaml")
    assert problems_of(tmp_path, "include: 0.yaml\n" + AGENT + CASE) == [
        f"{MAX_INCLUDE_DEPTH - 2}.yaml:1:1: includes are nested more than {MAX_INCLUDE_DEPTH} deep"
    ]


@pytest.mark.parametrize(
    ("include", "told"),
    [
        ("nowhere.yaml", "`nowhere.yaml` cannot be read: No such file or directory"),
        (
            "'${NOPE}.yaml'",
            "the environment variable `NOPE` is not set (set it, or give a default: `${NOPE:-default}`)",
        ),
        ("3", "`include` must be text or a list, not a whole number"),
        ('"a\\0b"', "`include` has a character that no file name can have"),
    ],
)
def test_an_include_that_cannot_be_read_is_told_where_it_stands(include: str, told: str, tmp_path: Path) -> None:
    assert problems_of(tmp_path, AGENT + CASE + f"include: {include}\n") == [f"shop.suite.yaml:3:1: {told}"]


def test_a_wrong_type_in_an_included_file_is_told_though_the_suite_has_the_key_too(tmp_path: Path) -> None:
    write(tmp_path, "agents: 3\ncases: x.csv\n", "part.yaml")
    assert problems_of(tmp_path, "include: part.yaml\n" + AGENT + CASE) == [
        "part.yaml:1:1: `agents` must be a mapping, not a whole number",
        "part.yaml:2:1: `cases` must be a list, not text",
    ]


def test_an_included_file_that_is_no_yaml_is_told_with_its_own_line(tmp_path: Path) -> None:
    write(tmp_path, "a: 1\nb: [\n", "bad.yaml")
    assert problems_of(tmp_path, "include: bad.yaml\n" + AGENT + CASE)[0].startswith("bad.yaml:3:1: this is not YAML")


def test_a_problem_in_an_included_file_is_told_with_its_own_line(tmp_path: Path) -> None:
    write(tmp_path, "\n\ncases:\n  - {id: x, instrction: y}\n", "part.yaml")
    assert problems_of(tmp_path, "include: part.yaml\n" + AGENT) == [
        "part.yaml:4:5: the key `instruction` is missing in item 1 of `cases`",
        "part.yaml:4:13: unknown key `instrction` (did you mean `instruction`?)",
    ]


# Suites built in Python


def test_a_suite_built_in_python_is_checked_alike() -> None:
    suite = Suite(
        agents={"a": HttpConfig(endpoint_url="nonsense", auth_credential_value="literal")},
        cases=[Case(id="a", instruction="x", graders=[{"kind": "eqals"}]), Case(id="a", instruction="y")],
        graders=[{"kind": "contains_any"}],
        trials=0,
    )
    assert [(problem.pointer, problem.message) for problem in validate_suite(suite, variables={})] == [
        ("/trials", "`trials` must be at least 1, not 0"),
        ("/agents/a/endpoint_url", "`endpoint_url` must be an http or https URL"),
        ("/agents/a/auth_credential_value", "`auth_credential_value` holds a secret, and a suite is stored and shown"),
        ("/graders/0", "the key `values` is missing in item 1 of `graders`"),
        ("/cases/0/graders/0/kind", "unknown kind `eqals`"),
        ("/cases/1/id", "the id `a` is taken"),
    ]


def test_a_sound_suite_built_in_python_has_no_problems() -> None:
    suite = Suite(agents={"a": PythonConfig(target="m:f")}, cases=[Case(id="a", instruction="x")])
    assert validate_suite(suite, variables={}) == []


def test_what_json_cannot_hold_is_a_problem_not_an_exception() -> None:
    circle: dict[str, object] = {}
    circle["self"] = circle
    for odd in ({"x": object()}, circle):
        suite = Suite(agents={"a": PythonConfig(target="m:f")}, cases=[Case(id="a", instruction="x", input=odd)])
        (problem,) = validate_suite(suite, variables={})
        assert problem.message.startswith("the suite holds something that JSON cannot")


def test_no_code_runs_unless_asked(tmp_path: Path) -> None:
    write(tmp_path, "raise RuntimeError('imported')\n", "loud_module.py")
    text = "agents: {a: {kind: python, target: 'loud_module:f'}}\ncases: [{from: 'loud_module:g'}]\n"
    assert problems_of(tmp_path, text) == []
    told = "`loud_module` cannot be imported: RuntimeError: imported"
    assert problems_of(tmp_path, text, run_python=True) == [
        f"shop.suite.yaml:1:28: {told}",
        f"shop.suite.yaml:2:10: {told}",
    ]


def test_functions_that_grade_are_looked_for_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "stern_module.py").write_text("def grade(subject): return True\n")
    file = write(
        tmp_path,
        """agents: {a: {kind: python, target: 'stern_module:grade'}}
graders:
  - {kind: python, target: 'stern_module:grade'}
  - {kind: composite, graders: [{kind: python, target: 'stern_module:grad'}]}
cases:
  - {id: c, instruction: hi, graders: [{kind: python, target: 'no_such_module:grade'}]}
""",
    )
    load_suite(file)
    with pytest.raises(InvalidSuiteError) as caught:
        load_suite(file, run_python=True)
    missing = (
        "`no_such_module` cannot be imported: ModuleNotFoundError: No module named 'no_such_module' "
        "(it is looked for beside the suite file, then on the Python path)"
    )
    assert [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems] == [
        "shop.suite.yaml:4:33: `stern_module` has no `grad` (did you mean `grade`?)",
        f"shop.suite.yaml:6:40: {missing}",
    ]


# Whose fault a fault is


@pytest.mark.parametrize("blame", ["agent", "infrastructure"])
def test_a_suite_and_an_agent_say_whose_fault_a_class_is_and_the_agent_counts_first(tmp_path: Path, blame: str) -> None:
    other = "agent" if blame == "infrastructure" else "infrastructure"
    text = f"""\
faults: {{agent_timeout: {blame}, agent_bad_response: {blame}}}
agents:
  mine: {{kind: python, target: "agent:answer", faults: {{agent_bad_response: {other}}}}}
  other: {{kind: python, target: "agent:answer", infrastructure_errors: [openai.APIError]}}
{CASE}"""
    suite = load(tmp_path, text)
    assert suite.fault_rules("mine").moved == {"agent_timeout": blame, "agent_bad_response": other}
    assert suite.fault_rules("other").moved == {"agent_timeout": blame, "agent_bad_response": blame}


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ("{agent_timout: agent}", "unknown class of fault `agent_timout` (did you mean `agent_timeout`?)"),
        ("{agent_timeout: me}", "`agent_timeout` must be one of `agent`, `infrastructure`, not `me`"),
        ("{internal_error: agent}", "`internal_error` cannot be moved: it is never the agent's doing"),
        ("{transport_error: agent}", "no fault has the class `transport_error` any more"),
    ],
)
@pytest.mark.parametrize("where", ["suite", "agent"])
def test_a_class_of_fault_that_cannot_be_moved_is_told_with_the_nearest_one(
    tmp_path: Path, faults: str, said: str, where: str
) -> None:
    of_suite, of_agent = (f"faults: {faults}\n", "") if where == "suite" else ("", f", faults: {faults}")
    text = f"{of_suite}agents: {{mine: {{kind: python, target: 'agent:answer'{of_agent}}}}}\n{CASE}"
    (problem,) = problems_of(tmp_path, text)
    assert said in problem
    assert problem.startswith("shop.suite.yaml:1:")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nosuch.Error", "there is no exception `nosuch.Error`: `nosuch` cannot be imported: ModuleNotFoundError"),
        ("builtins.ConectionError", "`builtins` has no `ConectionError` (did you mean `ConnectionError`?)"),
        ("json.JSONDecoder", "`json.JSONDecoder` is not an exception class (name an exception with its module"),
        ("json.dumps", "`json.dumps` is not an exception class"),
        ("json.nosuch.Error", "there is no exception `json.nosuch.Error`"),
    ],
)
@pytest.mark.parametrize("asked", ["run_python", "import_agents"])
def test_an_exception_that_is_none_is_told_with_its_line(tmp_path: Path, name: str, said: str, asked: str) -> None:
    module = f"agent_{abs(hash(tmp_path))}"  # a module of this process keeps its name
    (tmp_path / f"{module}.py").write_text("def answer(prompt): return 'x'")
    mine = f"{{kind: python, target: '{module}:answer', infrastructure_errors: [builtins.OSError, {name}]}}"
    text = f"agents:\n  mine: {mine}\n{CASE}"
    imports = asked == "import_agents"
    (problem,) = problems_of(tmp_path, text, run_python=not imports, import_agents=imports)
    assert problem.startswith("shop.suite.yaml:2:")
    assert said in problem


def test_exceptions_of_the_suites_own_modules_and_in_classes_are_found(tmp_path: Path) -> None:
    (tmp_path / "errors_of_mine.py").write_text("class Client:\n    class Busy(Exception): pass")
    (tmp_path / "agent_with_errors.py").write_text("def answer(prompt): return 'x'")
    mine = "{kind: python, target: 'agent_with_errors:answer', infrastructure_errors: [errors_of_mine.Client.Busy]}"
    assert load(tmp_path, f"agents:\n  mine: {mine}\n{CASE}", import_agents=True).agents


def test_an_exception_that_is_named_without_its_module_is_told(tmp_path: Path) -> None:
    text = f"agents: {{mine: {{kind: python, target: 'a:b', infrastructure_errors: [APIError]}}}}\n{CASE}"
    (problem,) = problems_of(tmp_path, text)
    assert "item 1 of `infrastructure_errors` must be an exception with its module: `openai.APIError`" in problem
