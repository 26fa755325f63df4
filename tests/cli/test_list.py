"""`seatrial list` on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from strategies import records
from strategies.monday import fill

from seatrial.cli.main import main
from seatrial.store import open_store


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "runs.db"
    fill(path)
    return str(path)


def test_the_newest_experiment_is_first_with_its_rate_and_what_that_leaves_out(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--store", store]) == 0
    head, tuesday, monday = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["name", "id", "when", "agents"]
    assert tuesday.split()[:2] == ["tuesday", "exp-tuesday"]
    assert "85.7%  1 agent_unreachable" in monday


def test_a_page_ends_with_what_shows_the_next(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--store", store, "--limit", "1"]) == 0
    assert capsys.readouterr().out.endswith("… there are more: --from 1\n")
    assert main(["list", "--store", store, "--limit", "1", "--from", "1"]) == 0
    shown = capsys.readouterr().out
    assert "monday" in shown
    assert "more" not in shown
    assert main(["list", "--store", store, "--from", "9"]) == 0
    assert capsys.readouterr().out == "There are no more experiments.\n"


def test_a_filter_leaves_the_experiments_that_have_such_a_run(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--store", store, "--filter", "error:agent_unreachable", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["monday"]
    assert main(["list", "--store", store, "--filter", "agent:nobody"]) == 0
    assert "no experiments" in capsys.readouterr().out


def test_json_has_the_figures_of_each_agent(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--store", store, "--json"]) == 0
    newest, _ = json.loads(capsys.readouterr().out)
    assert newest["experiment_id"] == "exp-tuesday"
    assert newest["summary"]["agents"][0]["passed"] == 6


def test_a_store_that_does_not_exist_is_usage(tmp_path: Path) -> None:
    assert main(["list", "--store", str(tmp_path / "none.db")]) == 2


def test_a_store_without_experiments_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(tmp_path / "empty.db"):
        pass
    assert main(["list", "--store", str(tmp_path / "empty.db")]) == 0
    assert capsys.readouterr().out == "There are no experiments in this store.\n"


def test_a_hostile_name_does_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(tmp_path / "runs.db") as store:
        store.create_experiment(records.experiment(name="\x1b[31mred\u202e"), records.cases(1))
    assert main(["list", "--store", str(tmp_path / "runs.db")]) == 0
    assert "\\x1b[31mred\\u202e" in capsys.readouterr().out
