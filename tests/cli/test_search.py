"""`seatrial search` on a real store."""

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


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["search", *arguments, "--json"]) == 0
    return [hit["run_id"] for hit in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        (["trouble"], ["run-v2-broken", "run-v1-broken"]),
        (["trouble", "--outcome", "failed"], ["run-v2-broken"]),
        (["trouble", "--agent", "v1", "--experiment", "refunds"], ["run-v1-broken"]),
        (["order", "--case", "late"], ["run-v1-late"]),
        (["order", "--tool", "refund", "--limit", "1"], ["run-v2-broken"]),
        (["order", "--experiment", "refunds", "--tag", "status"], ["run-v1-late"]),
        (["order", "--tag", "status", "--tag", "money", "--outcome", "passed"], ["run-v1-late", "run-v1-broken"]),
        (["order", "--tag", "nothing"], []),
        (["order", "--filter", "tag:status outcome:passed"], ["run-v1-late"]),
        (["nowhere"], []),
    ],
)
def test_runs_are_found_by_words_and_filters(
    arguments: list[str], runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert found(capsys, *arguments) == runs


def test_a_hit_has_a_line_of_context_and_what_came_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", '"on its way"']) == 0
    assert capsys.readouterr().out == "passed  exp-1  late  v1  run-v1-late\n    /messages/1: It is on its way.\n"


def test_nothing_found_is_said_and_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "nowhere"]) == 0
    assert capsys.readouterr().out == "Nothing was found.\n"


def test_a_text_without_a_word_is_usage() -> None:
    assert main(["search", "---"]) == 2
    assert main(["search", "order", "--experiment", "refunds", "--tag", "nothing"]) == 2
