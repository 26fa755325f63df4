"""Suites of Python objects, run from a program."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seatrial as st
from seatrial.graders.metrics import Latency

CALLED = [
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "find_order", "arguments": {"order": "A-1009"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "shipped"},
    {"role": "assistant", "content": "Your order is on its way."},
]


def answer(instruction: str) -> dict[str, Any]:
    return {"final_response": "Your order is on its way.", "messages": CALLED}


@st.grader(name="is short", weight=2)
def short(subject: st.Subject) -> tuple[float, str]:
    words = len((subject.answer or "").split())
    return min(1.0, 5 / words), f"{words} words"


def suite(*graders: Any, agents: dict[str, Any] | None = None, **keys: Any) -> st.Suite:
    case = st.Case("where-is-it", "Where is order A-1009?", graders=list(graders))
    return st.Suite(agents=agents or {"mine": answer}, cases=[case], **keys)


def run(*graders: Any, trials: int = 1, agents: dict[str, Any] | None = None, **keys: Any) -> st.Result:
    return st.run(suite(*graders, agents=agents, **keys), trials=trials, store="memory:", progress=False)


def test_a_suite_of_functions_runs_and_its_result_has_the_runs() -> None:
    with run(st.contains("on its way"), st.calls("find_order", order="A-1009"), trials=3) as result:
        assert result.ok
        assert (len(result.runs), len(result.passed), len(result.failed)) == (3, 3, 0)
        found = result.runs[-1]
        assert (found.trial, found.outcome, found.answer) == (3, "passed", "Your order is on its way.")
        assert [step.name for step in found.steps] == ["find_order"]
        assert [verdict.grader for verdict in found.verdicts] == ["contains", "calls"]
        assert (found.cost, found.notes) == (None, [])
        assert found.transcript is not None
        assert "mine" in str(result)
        assert "3 passed" in repr(result)


@pytest.mark.parametrize("kind", ["closure", "lambda", "object", "method", "async"])
def test_an_agent_is_anything_that_can_be_called(kind: str) -> None:
    greeting = "hi"

    class Agent:
        def __call__(self, instruction: str) -> str:
            return greeting

        def ask(self, instruction: str) -> str:
            return greeting

    def closure(instruction: str) -> str:
        return greeting

    async def later(instruction: str) -> str:
        await asyncio.sleep(0)
        return greeting

    agents: dict[str, Callable[..., Any]] = {
        "closure": closure,
        "lambda": lambda instruction: greeting,
        "object": Agent(),
        "method": Agent().ask,
        "async": later,
    }
    with run(st.equals("hi"), agents={"mine": agents[kind]}) as result:
        assert result.ok


def test_two_closures_of_one_name_are_two_agents() -> None:
    def says(text: str) -> Callable[[str], str]:
        def agent(instruction: str) -> str:
            return text

        return agent

    with run(st.equals("a"), agents={"a": says("a"), "b": says("b")}) as result:
        assert {each.agent: each.outcome for each in result.runs} == {"a": "passed", "b": "failed"}


@pytest.mark.parametrize(
    ("said", "outcome", "score", "reasons"),
    [
        (True, "passed", 1.0, []),
        (0.25, "failed", 0.25, []),
        ((0.25, "too long"), "failed", 0.25, ["too long"]),
        ((False, "rude"), "failed", 0.0, ["rude"]),
        (st.Verdict(outcome="failed", score=0.5, reasons=["half"]), "failed", 0.5, ["half"]),
        (None, "errored", None, None),
        ("yes", "errored", None, None),
        ((True, 1), "errored", None, None),
    ],
    ids=str,
)
def test_a_function_that_grades_says_it_in_one_of_several_ways(
    said: Any, outcome: str, score: float | None, reasons: list[str] | None
) -> None:
    with run(lambda subject: said) as result:
        (verdict,) = result.runs[0].verdicts
        assert (verdict.outcome, verdict.score) == (outcome, score)
        assert reasons is None or verdict.reasons == reasons


def test_a_decorated_function_is_a_grader_with_its_options_and_still_a_function() -> None:
    with run(short) as result:
        (verdict,) = result.failed[0].verdicts
        assert (verdict.grader, verdict.weight, verdict.reasons) == ("is short", 2.0, ["6 words"])
    assert short(st.Subject(result_run := _run_saying("a b"), st.Case("a", "b")))[1] == "2 words"
    assert result_run.answer == "a b"


def _run_saying(text: str) -> st.Run:
    with run(st.contains("zzz"), agents={"mine": lambda instruction: text}) as result:
        return result.runs[0]


def test_an_option_that_no_grader_has_is_refused_by_name() -> None:
    with pytest.raises(st.SeatrialError, match="no argument `wieght`"):
        st.grader(wieght=2)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: suite(agents={"mine": "text"}), r"`agents\['mine'\]` is a str"),
        (lambda: st.Suite(cases=json.loads('["hello"]')), r"`cases\[0\]` is a str"),
        (lambda: suite(7), r"`cases\[0\].graders\[0\]` is a int"),
        (lambda: suite(st.Grader), r"is the class Grader"),
    ],
)
def test_a_wrong_argument_is_named(make: Callable[[], st.Suite], said: str) -> None:
    with pytest.raises(st.SeatrialError, match=said):
        make()


def test_a_suite_without_graders_is_refused_before_anything_runs() -> None:
    asked: list[str] = []
    with pytest.raises(st.SeatrialError, match="grader"):
        st.run(suite(agents={"mine": asked.append}), store="memory:")
    assert asked == []


def test_what_is_not_known_never_passes() -> None:
    with run(st.never_calls("refund"), agents={"mine": lambda instruction: "Done."}) as result:
        assert not result.ok
        assert [verdict.code for verdict in result.errored[0].verdicts] == ["calls_unknown"]


def test_results_are_kept_where_the_command_line_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.cli.main import main

    monkeypatch.chdir(tmp_path)
    with st.run(suite(st.contains("on its way")), name="first", progress=False) as result:
        assert (tmp_path / "seatrial.db").exists()
    assert main(["report", "first"]) == 0
    assert main(["report", result.experiment_id]) == 0


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.csv", "report.json", "junit.xml", "a.ctrf.json"])
def test_a_result_is_saved_in_the_form_that_the_name_ends_with(tmp_path: Path, name: str) -> None:
    with run(st.contains("nowhere")) as result:
        assert "where-is-it" in result.save(str(tmp_path / name)).read_text()
        with pytest.raises(st.SeatrialError, match=r"\.html"):
            result.save(tmp_path / "report.pdf")


def test_a_result_is_rows_for_a_data_frame() -> None:
    with run(st.contains("on its way"), trials=2) as result:
        rows = result.to_dicts()
    assert [(row["agent"], row["case_id"], row["trial"], row["outcome"]) for row in rows] == [
        ("mine", "where-is-it", 1, "passed"),
        ("mine", "where-is-it", 2, "passed"),
    ]
    assert rows[0]["cost_usd"] is None
    assert rows[0]["tags"] == []


def test_two_results_compare_case_by_case() -> None:
    with (
        run(st.contains("on its way")) as before,
        run(st.contains("on its way"), agents={"mine": lambda instruction: "no"}) as after,
    ):
        (found,) = st.compare(before, after)
        assert (found.rate_a, found.rate_b, found.worse) == (1.0, 0.0, 1)
        assert "where-is-it" in str(st.compare(before, after))
        with pytest.raises(st.SeatrialError, match="`after` is a str"):
            st.compare(before, "latest")  # type: ignore[arg-type]


def test_only_some_agents_cases_and_tags_are_run() -> None:
    cases = [st.Case(f"case-{n}", "Go.", tags=["even"] if n % 2 == 0 else []) for n in range(4)]
    both = st.Suite(agents={"a": answer, "b": answer}, cases=cases, graders=[st.contains("way")])
    with st.run(both, agents=["a"], tags=["even"], store="memory:", progress=False) as result:
        assert [(each.agent, each.case_id) for each in result.runs] == [("a", "case-0"), ("a", "case-2")]
    with pytest.raises(st.SeatrialError, match="no agent 'c'"):
        st.run(both, agents=["c"], store="memory:")


def test_an_experiment_is_continued_with_what_is_missing(tmp_path: Path) -> None:
    asked: list[str] = []

    def agent(instruction: str) -> str:
        asked.append(instruction)
        return "way"

    store = tmp_path / "runs.db"
    one = suite(st.contains("way"), agents={"mine": agent})
    with st.run(one, store=store, progress=False) as first:
        pass
    with st.run(one, store=store, resume=first.experiment_id, progress=False) as again:
        assert again.ok
    assert len(asked) == 1


def test_in_an_event_loop_there_is_run_async() -> None:
    async def notebook() -> bool:
        with pytest.raises(st.SeatrialError, match="event loop"):
            st.run(suite(st.contains("way")))
        with await st.run_async(suite(st.contains("way")), store="memory:", progress=False) as result:
            return result.ok

    assert asyncio.run(notebook())


def test_a_judge_is_asked_through_a_scripted_model() -> None:
    model = st.ScriptedModel([{"reasoning": "fine", "outcome_met": True, "criteria": {"c1": {"score": 1}}}])
    with run(st.judge("is polite"), judge=model) as result:
        assert result.ok
    assert len(model.asked) == 1


def test_a_scripted_agent_says_its_lines_and_then_raises() -> None:
    agents = {"mine": st.scripted_agent("one", "two")}
    with run(st.regex("one|two"), trials=3, agents=agents, concurrency=1) as result:
        assert [each.outcome for each in result.runs] == ["passed", "passed", "failed"]
        assert "at its end" in str(result.failed[0].fault)


def test_a_function_of_this_program_is_not_there_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with st.run(suite(lambda subject: True), name="mine", progress=False) as result:
        assert result.ok
    command = [sys.executable, "-c", "from seatrial.cli import main; raise SystemExit(main())", "grade", "mine"]
    graded = subprocess.run(command, capture_output=True, text=True, check=False)
    assert graded.returncode == 3, graded.stdout + graded.stderr


def test_a_function_that_was_defined_anew_does_not_run_under_the_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = suite(st.contains("way"))
    monkeypatch.setattr(f"{__name__}.answer", lambda instruction: "no")
    with pytest.raises(st.SeatrialError, match="defined anew"):
        st.run(made, store="memory:")


def test_a_name_that_was_given_to_a_closure_is_not_given_to_another() -> None:
    def says(text: str) -> Callable[[str], str]:
        def agent(instruction: str) -> str:
            return text

        return agent

    old = st.Suite(agents={"old": says("old")}).agents
    agents: dict[str, Any] = {"new": says("new"), **old}
    with run(st.equals("new"), agents=agents) as result:
        assert {each.agent: each.answer for each in result.runs} == {"new": "new", "old": "old"}


@pytest.mark.parametrize(
    "grader",
    [
        lambda: st.contains("way", negate="no"),  # type: ignore[arg-type]
        lambda: st.contains("way", min_score=0),
        lambda: st.contains_all(""),
        lambda: st.contains("way", weight=-1),
        lambda: Latency(max_ms=float("nan")),
    ],
)
def test_a_grader_that_no_suite_file_could_have_is_refused(grader: Callable[[], st.Grader]) -> None:
    case = st.Case("a", "b")
    with pytest.raises(st.SeatrialError):
        st.run(st.Suite(agents={"mine": answer}, cases=[case], graders=[grader()]), store="memory:")
    with pytest.raises(st.SeatrialError):
        st.run(suite(grader()), store="memory:")


@pytest.mark.parametrize("chosen", [{"tags": "even"}, {"cases": "zz*"}, {"cases": ["zz"]}, {"tags": ["odd"]}])
def test_a_choice_that_means_nothing_is_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(st.SeatrialError):
        st.run(suite(st.contains("way")), store="memory:", **chosen)


def test_one_forbidden_call_is_a_score_of_0() -> None:
    with run(st.never_calls("find_order", "a", "b", "c", min_score=0.5)) as result:
        (verdict,) = result.failed[0].verdicts
        assert verdict.score == 0


def test_a_grader_of_ones_own_cannot_take_unknown_calls_for_none() -> None:
    def never_refunds(subject: st.Subject) -> bool:
        return not any(call.name == "refund" for call in subject.run.calls)

    agents = {"silent": lambda instruction: "Done.", "told": answer}
    with run(never_refunds, agents=agents) as result:
        assert {each.agent: each.outcome for each in result.runs} == {"silent": "errored", "told": "passed"}


def test_runs_are_read_by_pages_and_counted_without_reading_them() -> None:
    with run(st.contains("on its way"), trials=5) as result:
        assert [[each.trial for each in page] for page in result.runs.pages(2)] == [[1, 2], [3, 4], [5]]
        assert [row.trial for row in result.runs.rows()] == [1, 2, 3, 4, 5]
        assert (len(result.runs), bool(result.passed), bool(result.failed)) == (5, True, False)
        with pytest.raises(st.SeatrialError, match="`size` is a number from 1"):
            next(result.runs.pages(0))


def test_what_print_shows_is_saved_as_text(tmp_path: Path) -> None:
    with run(st.contains("nowhere")) as result:
        assert result.save(tmp_path / "report.txt").read_text() == str(result)


def costly(instruction: str) -> dict[str, Any]:
    """Says what it costs in the last case alone, so that all rows decide on the type of a column."""
    return {"final_response": "way", **({"metadata": {"cost_usd": 0.25}} if instruction.endswith("149?") else {})}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_result_is_a_data_frame_of_the_library_that_is_there(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed: it is large, and no test needs it else")
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    cases = [st.Case(f"case-{number:03}", f"Is it {number}?", tags=["a", "b"]) for number in range(150)]
    suite = st.Suite(agents={"mine": costly}, cases=cases, graders=[st.contains("way")])
    with st.run(suite, store="memory:", progress=False) as result:
        frame, rows = result.to_dataframe(), result.to_dicts()
    assert type(frame) is module.DataFrame
    assert list(frame.columns) == list(rows[0])
    assert len(frame) == 150
    assert frame["cost_usd"].sum() == 0.25
    assert list(frame["tags"][0]) == ["a", "b"]


def test_without_a_library_for_data_frames_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with run(st.contains("way")) as result, pytest.raises(st.SeatrialError, match="pip install pandas"):
        result.to_dataframe()


def test_a_broken_library_for_data_frames_is_not_taken_for_an_absent_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pandas.py").write_text("import numpy_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with run(st.contains("way")) as result, pytest.raises(ModuleNotFoundError, match="numpy_that_is_not_there"):
        result.to_dataframe()


def test_a_closed_result_in_memory_says_so() -> None:
    with run(st.contains("way")) as result:
        pass
    assert "1 passed" in repr(result)
    with pytest.raises(st.SeatrialError, match="the store is closed"):
        result.to_dicts()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: st.Suite(agents={"mine": answer}, cases=st.Case("a", "b")), "`cases` is a Case"),  # type: ignore[arg-type]
        (lambda: st.Suite(agents=answer, cases=[]), "`agents` is a function"),  # type: ignore[arg-type]
        (lambda: suite(st.calls("find_order", 3)), "`find_order` are a int"),  # type: ignore[arg-type]
        (lambda: run(st.contains("way"), trials="3"), "`trials` is a number"),  # type: ignore[arg-type]
        (lambda: run(st.contains("way"), agents={"mine": lambda a, b: a}), "has a parameter `b`"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named_before_anything_runs(
    make: Callable[[], object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(st.SeatrialError, match=said):
        make()
    assert capsys.readouterr().err == ""
