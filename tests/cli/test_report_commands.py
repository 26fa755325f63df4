"""`seatrial report` and `seatrial compare` on a real store."""

from __future__ import annotations

import csv
import html
import json
import re
import sys
from pathlib import Path

import pytest
from strategies import records
from strategies.monday import fill

from seatrial.cli.commands.report import FORMS
from seatrial.cli.main import main
from seatrial.runs import Case, Experiment, Fault, Grade, Outcome, Run, RunKey
from seatrial.store import open_store
from seatrial.transcript import Note


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "runs.db"
    fill(path)
    return str(path)


def test_report_shows_the_latest_experiment(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--store", store]) == 0
    assert capsys.readouterr().out.startswith("tuesday  exp-tuesday  8 cases, 8 runs, finished in 4.2 s\n")


def test_report_writes_every_form_that_is_asked_for(store: str, tmp_path: Path) -> None:
    options = [option for form in FORMS for option in (f"--{form}", str(tmp_path / f"report.{form}"))]
    assert main(["report", "monday", "--store", store, *options]) == 0
    for form in FORMS:
        assert "gift" in (tmp_path / f"report.{form}").read_text("utf-8")


def test_report_as_json_is_one_document(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "exp-mon", "--store", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["errored"] == 1


def test_harmless_notes_are_counted_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as opened:
        opened.create_experiment(records.experiment(), records.cases(1))
        noted = records.reading("a", "b", notes=[Note("bom_removed", "", "a mark", "harmless")])
        opened.record_run(records.run(0, reading=noted))
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT).wait()
    assert main(["report", "--store", str(path)]) == 0
    assert "bom_removed" not in capsys.readouterr().out
    assert main(["report", "--store", str(path), "--all-notes"]) == 0
    assert "crew   harmless  bom_removed      1     1" in capsys.readouterr().out


def test_the_store_may_be_named_by_the_environment(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_STORE", store)
    assert main(["report"]) == 0


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--store", str(tmp_path / "none.db")]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_compare_passes_when_no_condition_is_given(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "monday", "tuesday", "--store", store]) == 0
    assert "regressions (2)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("conditions", "code"),
    [(["regression"], 1), (["drop=0.02"], 1), (["drop=0.2"], 0), (["drop=0.2", "regression"], 1), (["regressions"], 2)],
)
def test_compare_fails_on_what_it_is_told_to(store: str, conditions: list[str], code: int) -> None:
    options = [option for condition in conditions for option in ("--fail-on", condition)]
    assert main(["compare", "monday", "tuesday", "--store", store, *options]) == code


def test_the_reason_of_a_failure_is_on_standard_error(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", "monday", "tuesday", "--store", store, "--fail-on", "regression", "--json"])
    written = capsys.readouterr()
    assert written.err == "seatrial: shop: 2 cases passed less often than before\n"
    (comparison,) = json.loads(written.out)
    assert (comparison["better"], comparison["worse"]) == (1, 2)
    assert comparison["worst"]["diff"]["first_divergence"] == {"a": 1, "b": 1}


def test_an_agent_can_be_named(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "monday:shop", "latest:shop", "--store", store, "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("## <code>shop in monday</code> against")
    assert main(["compare", "monday:ghost", "tuesday", "--store", store]) == 2
    assert "no runs of an agent 'ghost'" in capsys.readouterr().err


def test_a_gate_is_not_open_when_b_could_not_judge_what_a_could(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Monday has a case that errored, and tuesday has judged it."""
    assert main(["compare", "tuesday", "monday", "--store", store]) == 0
    assert "1 case could be judged in a, and not in b" in capsys.readouterr().out
    assert main(["compare", "tuesday", "monday", "--store", store, "--fail-on", "drop=0.9"]) == 3
    assert "1 of the cases that a could judge, b could not" in capsys.readouterr().err
    assert main(["compare", "monday", "tuesday", "--store", store, "--fail-on", "drop=0.9"]) == 0


def test_an_agent_that_cannot_be_compared_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs.db"
    outcomes: dict[str, dict[str, Outcome]] = {
        "before": {"good": "passed", "down": "passed", "old": "passed"},
        "after": {"good": "failed", "down": "errored"},
    }
    with open_store(path) as store:
        for name, agents in outcomes.items():
            experiment = Experiment(experiment_id=name, name=name, suite={}, suite_hash="", created_at=0)
            store.create_experiment(experiment, [Case(id="a", instruction="Do it.")])
            for agent, outcome in agents.items():
                store.record_run(
                    Run(
                        run_id=f"{name}-{agent}",
                        experiment_id=name,
                        key=RunKey(agent, "a", 1),
                        status="failed" if outcome == "errored" else "completed",
                        fault=Fault("agent_unreachable", "refused") if outcome == "errored" else None,
                        grade=Grade(outcome=outcome, verdicts=0),
                    )
                ).wait()
    options = ["--store", str(path)]
    assert main(["compare", "before", "after", *options]) == 3
    written = capsys.readouterr()
    assert "regressions (1)" in written.out
    assert written.err.splitlines() == [
        "seatrial: old: not compared, since only 'before' has runs of it",
        "seatrial: there is nothing to compare: no case has a graded run of 'down' on both sides "
        "(runs that errored cannot be compared; cases are paired by their ids)",
    ]
    assert main(["compare", "before", "after", *options, "--fail-on", "regression"]) == 1
    assert main(["compare", "before:down", "after", *options]) == 3
    capsys.readouterr()
    assert main(["compare", "before:good", "after", *options]) == 0
    assert capsys.readouterr().err == ""
    assert main(["compare", "before:ghost", "after", *options]) == 2
    assert "no runs of an agent 'ghost' (one of down, good, old)" in capsys.readouterr().err


def test_compare_writes_a_page_beside_what_it_prints(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "page.html"
    assert main(["compare", "monday", "tuesday", "--store", store, "--html", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["worse"] == 2
    assert "monday → tuesday" in path.read_text(encoding="utf-8")


def test_an_experiment_is_not_compared_with_itself(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    for b in ("monday", "exp-monday", "monday:shop"):
        assert main(["compare", "monday", b, "--store", store]) == 2
        assert "it cannot be compared with itself" in capsys.readouterr().err


TAGGED = {
    "agents": {"m": {"kind": "python", "target": "tagged_crew:answer"}},
    "graders": [{"kind": "contains", "value": "ok"}],
    "cases": [
        {"id": f"c{number}", "instruction": tag, "tags": [tag, "all"]}
        for number, tag in enumerate(["account"] * 10 + ["refund"] * 10 + ["down"] * 6)
    ],
}


@pytest.fixture
def regressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two experiments: in the later one the agent fails every case with the tag `account`, and those with the tag
    `down` errored both times."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEATRIAL_STORE", "runs.db")
    monkeypatch.delitem(sys.modules, "tagged_crew", raising=False)
    (tmp_path / "tagged_crew.py").write_text(
        "import os, seatrial\n"
        "def answer(instruction):\n"
        "    if instruction == 'down': raise seatrial.InfrastructureError('no')\n"
        "    return 'no' if instruction == os.environ.get('BROKEN') else 'ok'\n"
    )
    (tmp_path / "s.yaml").write_text(json.dumps({**TAGGED, "retry": {"attempts": 1}}))
    assert main(["run", "s.yaml", "--quiet", "--name", "before"]) == 3
    monkeypatch.setenv("BROKEN", "account")
    assert main(["run", "s.yaml", "--quiet", "--name", "after"]) == 1
    return tmp_path


def test_a_regression_in_a_tag_is_reported_first_and_can_fail_a_build(
    regressed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["compare", "before", "after"]) == 0
    assert capsys.readouterr().out.startswith(
        "worse in tag account: 100 → 0 % (−100.0 points, 95% interval −100.0 to −"
    )
    for condition, code in {
        "tag:account:significantly-worse": 1,
        "tag:account:drop=5points": 1,
        "tag:refund:significantly-worse": 0,
        "tag:refund:regression": 0,
        "tag:*:significantly-worse": 1,
        "tag:down:regression": 3,
        "tag:down:significantly-worse": 3,
        "tag:acount:regression": 2,
        "significantly-worse": 1,
    }.items():
        assert main(["compare", "before", "after", "--fail-on", condition]) == code, condition
    assert "did you mean `account`?" in capsys.readouterr().err
    assert main(["compare", "after", "before", "--fail-on", "tag:*:significantly-worse"]) == 3
    assert "tag down: cannot say whether b regressed: no case with it has graded runs" in capsys.readouterr().err


def test_run_and_report_show_results_by_tag(capsys: pytest.CaptureFixture[str], regressed: Path) -> None:
    ran = capsys.readouterr().out
    main(["report", "after", "--group-by", "tag"])
    reported = capsys.readouterr().out
    for out in (ran, reported):
        assert re.search(r"account +10 +10 +0 +10 +0 +0% ", out)
        assert re.search(r"down +6 +6 +0 +0 +6 +– ", out)
    main(["report", "after", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {row["tag"]: row["left_out"] for row in found["by_tag"]["rows"]}["down"] == {"infrastructure_error": 6}
    assert found["runs"][0]["tags"] == ["account", "all"]


def test_an_experiment_that_is_not_there_is_named(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "monday", "ghost", "--store", store]) == 2
    assert "no experiment 'ghost'" in capsys.readouterr().err
    assert main(["compare", "monday", "no:ghost", "--store", store]) == 2


UNGRADED = {
    "agents": {"crew": {"kind": "python", "target": "silent_crew:answer"}},
    "judge": {"model": "m", "base_url": "http://127.0.0.1:9/"},
    "budget": {"cost_usd": 1},
    "cases": [
        {
            "id": "unknown",
            "instruction": "x",
            "graders": [{"kind": "tool_trajectory", "mode": "any_order", "maximums": {"rm": 0}}],
        },
        {"id": "unjudged", "instruction": "x", "graders": [{"kind": "judge", "instructions": "Is it good?"}]},
        {"id": "broken", "instruction": "x", "graders": [{"kind": "python", "target": "silent_crew:check"}]},
    ],
}
CODES = {"unknown": "calls_unknown", "unjudged": "judge_skipped", "broken": "grader_errored"}


def test_a_run_that_errored_with_a_failed_grader_is_counted_and_its_total_is_called_errored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half_crew.py").write_text("def answer(p): return 'ok'\ndef check(subject): raise ValueError\n")
    broken = {"kind": "python", "target": "half_crew:check"}
    wrong, right = {"kind": "equals", "value": "no"}, {"kind": "equals", "value": "ok"}
    suite = {
        "agents": {"crew": {"kind": "python", "target": "half_crew:answer"}},
        "cases": [
            {"id": "both", "instruction": "x", "graders": [wrong, wrong | {"name": "again"}, broken]},
            {"id": "one", "instruction": "x", "graders": [right, broken]},
            {"id": "none", "instruction": "x", "graders": [right]},
            {"id": "failed", "instruction": "x", "graders": [wrong]},
        ],
    }
    (tmp_path / "s.suite.yaml").write_text(json.dumps(suite))  # JSON is YAML, too
    monkeypatch.chdir(tmp_path)
    assert main(["run", "s.suite.yaml", "--store", "runs.db"]) == 1
    sentence = (
        "2 of 4 runs are not counted: errored (2); of all runs, 25% passed. 2 errored, of which 1 has a failed grader."
    )
    assert sentence.replace("25%", "25.0%") in " ".join(capsys.readouterr().out.split())
    assert main(["report", "--store", "runs.db", "--json"]) == 0
    (agent,) = json.loads(capsys.readouterr().out)["summary"]["agents"]
    assert agent["left_out"] == {"errored": 2}
    assert (agent["errored"], agent["errored_with_failure"]) == (2, 1)


def test_every_form_says_why_a_run_could_not_be_graded_and_what_the_budget_could_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "silent_crew.py").write_text("def answer(p): return 'ok'\ndef check(subject): raise ValueError\n")
    (tmp_path / "s.suite.yaml").write_text(json.dumps(UNGRADED))  # JSON is YAML, too
    monkeypatch.chdir(tmp_path)
    options = [option for form in FORMS for option in (f"--{form}", f"report.{form}")]
    assert main(["run", "s.suite.yaml", "--skip-judges", "--store", "runs.db", *options]) == 3
    told = capsys.readouterr()
    for code in CODES.values():
        assert f"{code}: " in told.out
    assert told.err.count("warning: crew: a run did not say what it cost") == 1
    assert "3 of 3 runs did not say what they cost" in told.out
    for form in FORMS:
        written = html.unescape(Path(f"report.{form}").read_text("utf-8"))
        for code in (*CODES.values(), "budget_cost_unknown"):
            assert code in written, (form, code)
    assert sorted(re.findall(r'<error [^>]*type="(\w+)"', Path("report.junit").read_text())) == sorted(CODES.values())
    with Path("report.csv").open(newline="") as lines:
        assert {row["case_id"]: row["left_out"] for row in csv.DictReader(lines) if row["case_id"]} == CODES
    tests = json.loads(Path("report.ctrf").read_text())["results"]["tests"]
    assert {test["extra"]["case_id"]: test["extra"]["left_out"] for test in tests} == CODES
    assert main(["report", "--store", "runs.db", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert {run["case_id"]: run["detail"]["code"] for run in runs} == CODES


def test_a_comparison_with_an_experiment_that_was_stopped_or_selected_says_what_it_did_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spending.py").write_text(
        "def answer(instruction):\n"
        "    return {'final_response': 'ok', 'metadata': {'total_input_tokens': 20, 'total_output_tokens': 0}}\n"
    )
    suite = {
        "agents": {"m": {"kind": "python", "target": "spending:answer"}},
        "trials": 3,
        "concurrency": 1,
        "graders": [{"kind": "contains", "value": "ok"}],
        "cases": [{"id": "c1", "instruction": "hi"}, {"id": "c2", "instruction": "hi"}],
    }
    (tmp_path / "a.yaml").write_text(json.dumps(suite))
    (tmp_path / "b.yaml").write_text(json.dumps({**suite, "budget": {"tokens": 30}}))
    options = ["--quiet", "--store", "runs.db"]
    assert main(["run", "a.yaml", "--name", "A", *options]) == 0
    assert main(["run", "b.yaml", "--name", "B", *options]) == 3
    assert main(["run", "a.yaml", "--name", "C", "--case", "c1", *options]) == 0
    gate = ["--store", "runs.db", "--fail-on", "regression"]
    capsys.readouterr()
    assert main(["compare", "A", "B", *gate]) == 3
    assert "b stopped after 2 of 6 runs" in capsys.readouterr().err
    assert main(["compare", "B", "A", *gate]) == 3
    assert "a stopped after 2 of 6 runs" in capsys.readouterr().err
    assert main(["compare", "A", "C", *gate]) == 0
    out, err = capsys.readouterr()
    assert "1 case of a was not selected in b: c2" in err
    assert "1 case of a was not selected in b: c2" in out
