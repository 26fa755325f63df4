"""`seatrial init`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.agents.http.config import HttpConfig
from seatrial.cli import main
from seatrial.cli.commands.init import STARTERS
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


SEATRIAL = Path(sys.executable).with_name("seatrial")


def run_starter(folder: Path) -> subprocess.CompletedProcess[str]:
    # `python3` of the suite is the one that runs the tests.
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [str(SEATRIAL), "run", "first.suite.yaml", "--store", "runs.db"]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("starter", STARTERS)
def test_the_suite_of_every_starter_loads(starter: str, tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), f"--{starter}"]) == 0
    assert load_suite(tmp_path / "first.suite.yaml").cases
    agent = tmp_path / "first_agent.py"
    assert agent.exists() == (starter != "codex")
    if agent.exists():
        compile(agent.read_text(), str(agent), "exec")


def test_two_starters_at_once_are_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--http", "--cli"]) == 2
    assert "not allowed with" in capsys.readouterr().err


def test_the_program_that_init_writes_passes_and_can_fail(tmp_path: Path) -> None:
    main(["init", str(tmp_path), "--cli"])
    ran = run_starter(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    agent = tmp_path / "first_agent.py"
    agent.write_text(agent.read_text().replace('"find_order"', '"refund"'))
    assert run_starter(tmp_path).returncode == 1


def test_the_server_that_init_writes_passes_and_can_fail(tmp_path: Path) -> None:
    main(["init", str(tmp_path), "--http"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in ("first.suite.yaml", "first_agent.py"):
        path = tmp_path / name
        path.write_text(path.read_text().replace("8080", str(port)))
    agent = subprocess.Popen([sys.executable, "first_agent.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert agent.stdout is not None
        assert "listening" in agent.stdout.readline()
        # It prints before it listens.
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        ran = run_starter(tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        suite = tmp_path / "first.suite.yaml"
        suite.write_text(suite.read_text().replace("on its way", "lost"))
        assert run_starter(tmp_path).returncode == 1
    finally:
        agent.kill()
        agent.communicate()


def test_the_suite_for_codex_reads_what_codex_prints(tmp_path: Path) -> None:
    main(["init", str(tmp_path), "--codex"])
    sample = Path(__file__).parents[2] / "samples" / "codex-exec.jsonl"
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    codex.write_text(f"#!/bin/sh\ncat {sample}\n")
    codex.chmod(0o755)
    ran = run_starter(tmp_path)
    assert "does not go in circles" in ran.stdout
    assert "could not be read" not in ran.stdout + ran.stderr
    assert ran.returncode == 1, ran.stdout + ran.stderr  # the sample is of another task


def test_what_a_starter_lacks_is_found_by_the_command_that_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    for starter, said in (
        ("codex", "there is no program 'codex'"),
        ("langgraph", "`first_agent` cannot be imported: ModuleNotFoundError"),
    ):
        monkeypatch.setitem(sys.modules, "langchain", None)
        monkeypatch.delitem(sys.modules, "first_agent", raising=False)
        assert main(["init", str(tmp_path / starter), f"--{starter}"]) == 0
        doctor = next(line.split("#")[0].split() for line in capsys.readouterr().out.splitlines() if "doctor" in line)
        assert main(doctor[1:]) in (2, 3)
        printed = capsys.readouterr()
        assert said in printed.out + printed.err
