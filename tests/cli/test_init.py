"""`seatrial init`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.agents.http.config import HttpConfig
from seatrial.cli import main
from seatrial.suites import load_suite


def test_what_init_writes_runs_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "new" / "trials")]) == 0
    command = capsys.readouterr().out.splitlines()[-1].split()
    assert command[:2] == ["seatrial", "run"]
    ran = subprocess.run(
        [Path(sys.executable).with_name("seatrial"), *command[1:], "--store", tmp_path / "runs.db"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "3 cases, 3 runs" in ran.stdout


def test_what_was_written_is_told_as_data(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["init", str(tmp_path), "--json"]) == 0
    told = json.loads(capfdbinary.readouterr().out)
    assert told["written"] == [str(tmp_path / "first.suite.yaml"), str(tmp_path / "first_agent.py")]
    assert told["next"] == ["seatrial", "run", str(tmp_path / "first.suite.yaml")]


def test_the_agent_that_init_writes_can_fail(tmp_path: Path) -> None:
    main(["init", str(tmp_path)])
    agent = tmp_path / "first_agent.py"
    agent.write_text(agent.read_text().replace('"find_order"', '"guess"'))
    command = [str(Path(sys.executable).with_name("seatrial")), "run", "first.suite.yaml", "--store", "runs.db"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_the_comment_on_http_agents_is_a_suite_that_loads(tmp_path: Path) -> None:
    main(["init", str(tmp_path)])
    suite = tmp_path / "first.suite.yaml"
    written = suite.read_text()
    agent = written.index("  mine:\n    kind: python")
    comment = written.index("  # mine:")
    end = written.index("\n\n", comment)
    told = written[comment:end].replace("  # ", "  ")
    suite.write_text(written[:agent] + told + written[end:])
    assert isinstance(load_suite(suite, variables={"AGENT_TOKEN": "t-123"}).agents["mine"], HttpConfig)


def test_init_overwrites_nothing_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "first_agent.py"
    mine.write_text("mine")
    assert main(["init", str(tmp_path)]) == 3
    assert "first_agent.py is there already, so nothing was written (--force replaces it)" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert not (tmp_path / "first.suite.yaml").exists()
    assert main(["init", str(tmp_path), "--force"]) == 0
    assert mine.read_text() != "mine"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "below")]) == 3
    assert "cannot be written" in capsys.readouterr().err
