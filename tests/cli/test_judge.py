"""`seatrial judge check`: a judge over HTTP is asked what people have said already."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.main import main


class _Model(BaseHTTPRequestHandler):
    """A model that likes every answer with the word `sure` in it, and is out of order where it reads `broken`."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        server.asked += 1
        prompt = body["messages"][1]["content"]
        if "broken" in prompt:
            self.send_error(400)
            return
        ballot = {"reasoning": "because I say so", "outcome_met": "sure" in prompt, "criteria": {}, "evidence": []}
        answer = {
            "model": "judge-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": json.dumps(ballot)}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Judged:
    """A suite with a judge, in a folder of its own."""

    def __init__(self, port: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.port = port
        self.capsys = capsys
        self.judge: dict[str, Any] = {"model": "judge-1", "base_url": f"http://127.0.0.1:{port}/v1", "attempts": 1}
        self.suite()

    def suite(self, *graders: dict[str, Any], **keys: Any) -> None:
        suite = {
            "agents": {"mine": {"kind": "python", "target": "judged_agent:answer", "tool_access": "none"}},
            "judge": self.judge,
            "cases": [{"id": word, "instruction": f"Say {word}."} for word in ("one", "two", "three")],
            "graders": list(graders) or [{"kind": "judge", "name": "right"}],
            **keys,
        }
        Path("s.suite.yaml").write_text(json.dumps(suite))

    def check(self, lines: list[str], *options: str) -> int:
        Path("labels.csv").write_text("\n".join(lines) + "\n")
        self.capsys.readouterr()
        return main(["judge", "check", "s.suite.yaml", "labels.csv", *options])

    def data(self, lines: list[str], *options: str) -> tuple[int, list[dict[str, Any]]]:
        code = self.check(lines, "--json", *options)
        return code, json.loads(self.capsys.readouterr().out)

    def refused(self, lines: list[str], *options: str) -> str:
        assert self.check(lines, *options) == 2
        return self.capsys.readouterr().err


@pytest.fixture(name="judged")
def _judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[Judged, Any]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "judged_agent", raising=False)
    Path("judged_agent.py").write_text("def answer(instruction):\n    return 'sure: ' + instruction\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        server.asked = 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield Judged(server.server_address[1], capsys), server
        server.shutdown()
        thread.join()


HEAD = "case,answer,label,comment"
MIXED = [
    HEAD,
    "one,sure it is,passed,",
    "two,sure it is,failed,it is not",
    "two,no idea,failed,",
    "three,no idea,passed,honest at least",
    "three,nobody knows,failed,",
]


def test_agreement_is_counted_with_kappa_and_a_confusion_table(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    code, (found,) = suite.data(MIXED)
    assert code == 0
    assert (found["grader"], found["labels"], found["judged"]) == ("right", 5, 5)
    assert found["confusion"] == {
        "both_passed": 1,
        "only_judge_passed": 1,
        "only_people_passed": 1,
        "both_failed": 2,
    }
    assert found["agreed"] == pytest.approx(3 / 5)
    # By hand: chance is (2 * 2 + 3 * 3) / 25.
    assert found["kappa"] == pytest.approx((0.6 - 0.52) / (1 - 0.52))
    low, high = found["kappa_interval"]
    assert low < found["kappa"] < high
    assert found["too_few"]
    assert [(each["line"], each["judge_passed"]) for each in found["disagreements"]] == [(3, True), (5, False)]


def test_people_see_the_same_with_the_answers_and_what_both_said(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    assert suite.check(MIXED) == 0
    shown = suite.capsys.readouterr().out
    assert "agreement  3 of 5, 60.0% (95% interval 23.1–88.2%)" in shown
    assert "Fewer than 20 labels were judged" in shown
    assert "people failed             1             2" in shown
    assert "Of 3 that people failed, the judge passed 1 (33.3%)." in shown
    assert "line 3  two  judge passed (score 1), people failed" in shown
    assert "people: it is not" in shown
    assert "because I say so" in shown


def test_what_a_judge_costs_is_unknown_without_prices_and_never_nothing(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    _, (found,) = suite.data(MIXED)
    assert (found["cost_usd"], found["least_cost_usd"]) == (None, 0.0)
    assert found["tokens"] == 5 * 110
    assert suite.check(MIXED) == 0
    assert "cost of asking  ?" in suite.capsys.readouterr().out
    suite.judge |= {"input_usd_per_mtok": 1000, "output_usd_per_mtok": 0}
    suite.suite()
    assert suite.check(MIXED) == 0
    assert "cost of asking  $0.50" in suite.capsys.readouterr().out


def test_a_run_that_was_not_judged_is_in_no_figure_and_the_exit_code_says_so(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    code, (found,) = suite.data([HEAD, "one,sure,passed,", "two,broken,failed,"])
    assert code == 3
    assert (found["labels"], found["judged"]) == (2, 1)
    (missing,) = found["not_judged"]
    assert (missing["line"], missing["case_id"]) == (3, "two")
    assert "400" in missing["reason"]
    assert found["kappa"] is None, "both said one and the same of the only run that was judged"


def test_labels_of_stored_runs_are_judged_by_the_verdicts_that_are_known(judged: tuple[Judged, Any]) -> None:
    suite, server = judged
    assert main(["run", "s.suite.yaml", "--quiet", "--name", "mine", "--csv", "runs.csv"]) == 0
    before = server.asked
    head, *rows = Path("runs.csv").read_text().splitlines()
    labelled = [f"label,{head}", *(f"{label},{row}" for label, row in zip(("pass", "fail", ""), rows, strict=True))]
    code, (found,) = suite.data(labelled)
    assert code == 0
    assert (found["labels"], found["reused"], server.asked) == (2, 2, before)
    assert found["confusion"]["only_judge_passed"] == 1
    assert found["cost_usd"] is None
    assert suite.check(["run,label", "mine:one,passed", "mine:two:mine:1,failed"]) == 0
    assert "known already" in suite.capsys.readouterr().out


def test_a_label_of_a_run_that_failed_without_an_answer_is_not_the_judge_s_word(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    Path("judged_agent.py").write_text("def answer(instruction):\n    raise ValueError('no')\n")
    main(["run", "s.suite.yaml", "--quiet", "--name", "mine"])
    code, (found,) = suite.data(["run,label", "mine:one,failed"])
    assert code == 3
    assert (found["judged"], found["not_judged"][0]["line"]) == (0, 2)


def test_a_kappa_below_the_one_asked_for_fails(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    assert suite.check(MIXED, "--min-kappa", "0.6") == 1
    assert "the kappa of right is below 0.6" in suite.capsys.readouterr().err
    assert suite.check(MIXED, "--min-kappa", "0.1") == 0
    assert suite.check([HEAD, "one,sure,passed,"], "--min-kappa", "0.1") == 3, "no kappa is not a good one"
    assert suite.check(MIXED, "--min-kappa", "6") == 2


def test_of_several_judges_it_must_be_said_which_one(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    suite.suite({"kind": "judge", "name": "right"}, {"kind": "judge", "name": "kind", "negate": True})
    assert "has several judges: right, kind" in suite.refused(MIXED)
    code, (found,) = suite.data(MIXED, "--grader", "kind")
    assert (code, found["grader"]) == (0, "kind")
    assert found["confusion"]["both_passed"] == 1
    assert found["confusion"]["only_judge_passed"] == 2
    _, both = suite.data(["case,answer,label,grader", "one,sure,passed,right", "one,sure,passed,kind"])
    assert [(each["grader"], each["agreed"]) for each in both] == [("right", 1.0), ("kind", 0.0)]
    assert "no judge of these runs is called `knd` (did you mean `kind`?)" in suite.refused(MIXED, "--grader", "knd")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([""], "is empty"),
        (["case,answer,lable", "one,sure,passed"], "there is no column `label` (did you mean `lable`?)"),
        (["case,label", "one,passed"], "a label is of a `run`, or of a `case` and an `answer`"),
        ([HEAD], "there is no label in it"),
        ([HEAD, "one,sure,maybe,"], "labels.csv:2: `maybe` is not a label"),
        ([HEAD, "one,,passed,"], "labels.csv:2: there is no `run`, and no `answer` either"),
        ([HEAD, "one,sure,passed,", "one,sure,failed,"], "labels.csv:3: this answer has a label in line 2 already"),
        ([HEAD, "tow,sure,passed,"], "labels.csv:2: the suite has no case `tow` (did you mean `two`?)"),
        ([HEAD, "one,sure,unsure,"], "no line of labels.csv says passed or failed"),
        ([HEAD, 'one,"sure,passed,'], "this is not CSV"),
        (["run,label", "nope,passed"], "there is no store at seatrial.db"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_the_labels_is_said_before_anything_is_asked(
    judged: tuple[Judged, Any], lines: list[str], said: str
) -> None:
    suite, server = judged
    assert said in suite.refused(lines)
    assert server.asked == 0


def test_a_suite_without_a_judge_has_nothing_to_check(judged: tuple[Judged, Any]) -> None:
    suite, _ = judged
    suite.suite({"kind": "contains", "value": "sure"})
    assert "`judge` names a model, and no grader asks it" in suite.refused(MIXED)
    suite.suite({"kind": "contains", "value": "sure"}, judge=None)
    assert "no grader of the suite asks a model" in suite.refused(MIXED)


def test_a_secret_in_a_labelled_answer_is_not_sent_to_the_model(
    judged: tuple[Judged, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, _ = judged
    monkeypatch.setenv("JUDGE_KEY", "sure-9271-sure-9271")
    suite.judge |= {"api_key": "${JUDGE_KEY}"}
    suite.suite()
    _, (found,) = suite.data([HEAD, "one,it is sure-9271-sure-9271,failed,"])
    # The model likes every answer with `sure` in it: it has not seen this one.
    assert found["confusion"]["both_failed"] == 1
