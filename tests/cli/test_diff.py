"""`seatrial diff` on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from strategies.looked_at import fill

from seatrial.cli.main import main


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.db")
    monkeypatch.setenv("SEATRIAL_STORE", str(tmp_path / "runs.db"))


def test_the_first_divergence_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run-v1-broken", "run-v2-broken"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "They diverge at step 1: a calls refund, b calls find_order."
    assert '  + find_order {"order": "A-1009"}' in rest
    assert "  ~     /arguments/amount: 200, not 20 as in a" in rest
    assert "answer of b" in rest


def test_equal_calls_that_are_not_all_known_are_not_called_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run-v1-late", "run-v2-late"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("No calls are known of either run; some may have been made.")
    assert "a: not all of the agent's calls are known: expected a message" in text
    assert "b gave no answer to read: the calls that it may have made are not known." in text


def test_a_run_equals_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run-v1-broken", "refunds:broken:v1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Both runs make the same calls, in the same order (2 calls).\n")
    assert "The answers are the same.\n" in text
    assert "verdicts that differ" not in text


def test_json_has_both_sides_and_the_alignment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run-v1-broken", "run-v2-broken", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["a"]["outcome"], found["b"]["outcome"]) == ("passed", "failed")
    assert found["diff"]["first_divergence"] == {"a": 1, "b": 1}


def test_a_case_with_several_runs_needs_an_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "refunds:broken", "run-v2-broken"]) == 2
    assert ":v2:1 (failed), :v1:1 (passed)" in capsys.readouterr().err
    assert main(["diff", "refunds", "run-v2-broken"]) == 2
    assert main(["diff", "nothing", "run-v2-broken"]) == 2
