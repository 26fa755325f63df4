"""`seatrial show` on a real store: an experiment, a case, a run."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from strategies import records
from strategies.looked_at import fill

import seatrial as st
from seatrial.cli.main import main
from seatrial.formats.reading import Reading
from seatrial.runs import Attempt
from seatrial.store import Store, open_store
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, Note, StopReason, TextBlock, ToolCall, Transcript, UserMessage


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runs.db"
    fill(path)
    monkeypatch.setenv("SEATRIAL_STORE", str(path))
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["show", *arguments]) == code
    return capsys.readouterr().out


def outcomes(text: str) -> list[str]:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("outcome"))
    return [line.split()[0] for line in lines[at + 1 :] if line and not line.startswith("one run: ")]


@pytest.mark.usefixtures("store")
def test_an_experiment_lists_its_failures_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcomes(shown(capsys, "refunds")) == ["failed", "errored", "passed", "passed"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (["--agent", "v2"], ["run-v2-broken", "run-v2-late"]),
        (["--case", "late"], ["run-v2-late", "run-v1-late"]),
        (["--tag", "money"], ["run-v2-broken", "run-v1-broken"]),
        (["--tag", "money", "--case", "late", "--case", "broken"], ["run-v2-broken", "run-v1-broken"]),
        (["--outcome", "passed", "--tool", "refund"], ["run-v1-broken"]),
        (["--error", "agent_unreachable"], ["run-v2-late"]),
        (["--tool", "refund"], ["run-v2-broken", "run-v1-broken"]),
        (["--tool", "send_email"], []),
        (["--filter", "tag:money -outcome:failed"], ["run-v1-broken"]),
        (["--filter", "tool:refund", "--agent", "v2"], ["run-v2-broken"]),
    ],
)
def test_runs_are_filtered(options: list[str], runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "refunds", "--json", *options))
    assert [run["run_id"] for run in found["runs"]] == runs


@pytest.mark.usefixtures("store")
def test_a_filter_that_cannot_be_read_is_shown_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "refunds", "--filter", "agent:v1 tol:refund"]) == 2
    assert capsys.readouterr().err == (
        "seatrial: There is no field “tol”. Did you mean tool:?\n"
        "  agent:v1 tol:refund\n"
        "           ^^^ (text that has such a sign in it is put in quotes) [invalid_filter]\n"
    )


@pytest.mark.usefixtures("store")
def test_an_experiment_is_shown_a_page_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    first = shown(capsys, "refunds", "--limit", "3")
    assert outcomes(first)[:3] == ["failed", "errored", "passed"]
    assert first.endswith("… there are more: --from 3\n")
    assert outcomes(shown(capsys, "refunds", "--from", "3")) == ["passed"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "arguments",
    [
        ["nobody"],
        ["refunds:nothing"],
        ["refunds", "--agent", "v9"],
        ["refunds", "--case", "nothing"],
        ["refunds", "--tag", "nothing"],
        ["refunds", "--outcome", "lost"],
        ["refunds", "--limit", "-1"],
    ],
)
def test_what_does_not_exist_is_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, *arguments, code=2)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "arguments",
    [
        ["run-v2-broken"],
        ["refunds:broken:v2"],
        ["exp-1:broken:v2:1"],
        ["latest", "--case", "broken", "--agent", "v2"],
        ["refunds", "--case", "broken", "--agent", "v2", "--trial", "1"],
        ["refunds:broken", "--agent", "v2"],
    ],
)
def test_a_run_is_named_in_several_ways(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *arguments)
    assert text.startswith("failed  broken  v2\n  First wrong at step 1: find_order was called beyond what was")
    assert "  b  step 2: Wrong argument: refund has /amount 200, expected 20. (calls)\n" in text
    assert "  0 user (given)\n" in text
    assert "    (thinking) First I look at the order.\n" in text
    assert "  2   ✗ failed find_order: database locked\n" in text
    assert "  1  30 ms, agent_unavailable: the agent answered 503\n" in text


@pytest.mark.usefixtures("store")
def test_a_run_that_passed_is_shown_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "run-v1-broken")
    assert text.startswith("passed  broken  v1\n")
    assert '    → refund {"amount": 20}\n' in text
    assert "calls: complete, 2 calls, reported\n" in text


@pytest.mark.usefixtures("store")
def test_calls_that_are_not_all_known_are_never_shown_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "run-v1-late")
    assert "calls: partial. not all of the agent's calls are known" in text
    assert "0 calls" not in text
    assert "serious: message_dropped at /messages/3: expected a message, got a number" in text


@pytest.mark.usefixtures("store")
def test_a_run_without_an_answer_shows_the_instruction_and_the_fault(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "run-v2-late")
    assert text.startswith("errored  late  v2\n  Not counted, the fault was not the agent's: agent_unreachable: no")
    asked = "    instruction (of the case; not in the messages)\n    Where is order A-1009?\n"
    assert f"{asked}  There are no messages: there was no answer to read.\n" in text
    assert "calls: unknown, there was no answer to read\n" in text
    assert "fault: agent_unreachable, the fault of the infrastructure\n  connect to 10.0.0.1:80\n  refused\n" in text


def test_a_run_whose_messages_leave_out_the_instruction_shows_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATRIAL_STORE", str(tmp_path / "runs.db"))
    said: list[dict[str, str]] = [{"role": "assistant", "content": "On its way."}]
    agents: dict[str, Any] = {
        "without": lambda instruction: said,
        "with_it": lambda instruction: [{"role": "user", "content": instruction}, *said],
    }
    case = st.Case("late", "Where is order A-1009?", graders=[st.contains("way")])
    with st.run(st.Suite(agents=agents, cases=[case]), name="asked", progress=False):
        pass
    text = shown(capsys, "asked:late:without")
    assert "instruction (of the case; not in the messages)\n    Where is order A-1009?\n  0 assistant" in text
    assert shown(capsys, "asked:late:with_it").count("Where is order A-1009?") == 1


@pytest.mark.usefixtures("store")
def test_a_case_has_its_runs_by_all_agents(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "refunds:late", "--json"))
    assert found["case"]["instruction"] == "Where is order A-1009?"
    assert [run["agent"] for run in found["runs"]] == ["v2", "v1"]


def record(path: Path, run: Any) -> None:
    with open_store(path) as opened:
        opened.create_experiment(records.experiment(), records.cases(1))
        opened.record_run(run)
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT).wait()


def test_a_long_run_is_read_by_the_page_and_never_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    messages: list[Any] = [AssistantMessage([TextBlock(f"word {n}")], StopReason.END_TURN) for n in range(5000)]
    record(path, records.run(0, reading=Reading("agui", Transcript(messages), [])))
    read: list[int] = []
    items = Store.items

    def counted(self: Store, run_id: str, first: int = 0, count: int = 100) -> Any:
        read.append(count)
        return items(self, run_id, first, count)

    monkeypatch.setattr(Store, "items", counted)
    monkeypatch.setattr(Store, "run", None)
    monkeypatch.setattr(Store, "whole_runs", None)
    monkeypatch.setattr(Store, "events", None)
    text = shown(capsys, "run-crew-case-0-1", "--store", str(path))
    assert "transcript: messages 0 to 39 of 5,000\n" in text
    assert "  … 4,960 more: --from 40\n" in text
    text = shown(capsys, "run-crew-case-0-1", "--store", str(path), "--from", "4998", "--messages", "10")
    assert "word 4998" in text
    assert "word 4997" not in text
    assert "more: --from" not in text
    assert "there is no message 6,000" in shown(capsys, "run-crew-case-0-1", "--store", str(path), "--from", "6000")
    assert read == [40, 10, 40]


def test_nothing_that_an_agent_says_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b[2J\u202ehidden\x07"
    messages: list[Any] = [
        UserMessage(bad),
        AssistantMessage([TextBlock(bad), ToolCall("1", bad, {bad: bad})], StopReason.ERROR, bad),
    ]
    run = records.run(
        0,
        reading=Reading("agui", Transcript(messages, answer=bad), [Note("message_dropped", "/messages/0", bad)]),
        steps=[Step(0, bad, {bad: bad})],
        verdicts=[records.verdict("failed", grader=bad)],
        outcome="failed",
        completeness=Completeness("partial", "messages", ["messages"], [Note("message_dropped", bad, bad)]),
    )
    record(tmp_path / "runs.db", run)
    text = shown(capsys, "run-crew-case-0-1", "--store", str(tmp_path / "runs.db"))
    assert not any(character in text for character in "\x1b\x07\u202e")
    assert "\\x1b[2J\\u202ehidden" in text


def test_a_note_stands_at_its_message_where_that_is_certain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = b'{"messages": [1, 2]}'
    note = Note("invalid_utf8_replaced", "/messages/1/content", "a byte was replaced")
    path = tmp_path / "runs.db"
    attempt = Attempt(number=1, started_at=records.CREATED_AT, duration_ms=1.0)
    record(path, records.run(0, reading=records.reading("a", "b", notes=[note]), body=body, attempts=[attempt]))
    text = shown(capsys, "run-crew-case-0-1", "--store", str(path))
    assert "look: invalid_utf8_replaced at /messages/1/content: a byte was replaced\n" in text


def test_observed_calls_are_listed_beside_the_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Step(0, "refund", {"amount": 20}, None, "observed", "error", error="refused")]
    known = Completeness("complete", "observed", ["observed"])
    record(tmp_path / "runs.db", records.run(0, steps=steps, completeness=known))
    text = shown(capsys, "run-crew-case-0-1", "--store", str(tmp_path / "runs.db"))
    assert (
        'calls, as observed by Seatrial\n  0 → refund {"amount": 20} [observed]\n      ✗ failed error: refused\n'
        in text
    )


def test_a_damaged_run_is_named_and_could_not_be_read(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(store) as database:
        database.execute("UPDATE runs SET data = x'00' WHERE run_id = 'run-v2-broken'")
    assert main(["show", "run-v2-broken"]) == 3
    assert "the stored record of run run-v2-broken is damaged" in capsys.readouterr().err
    assert main(["show", "refunds:broken"]) == 3
    seen = capsys.readouterr()
    assert "run-v1-broken" in seen.out
    assert "run run-v2-broken is damaged" in seen.err


@pytest.mark.usefixtures("store")
def test_lines_fit_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.reports.layout.terminal_width", lambda: 80)
    for arguments in (["refunds"], ["refunds:broken"], ["run-v2-broken"], ["run-v1-late"]):
        assert max(map(len, shown(capsys, *arguments).splitlines())) <= 80
