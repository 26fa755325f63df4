"""A reader of the output that goes away (`| head`) changes neither the exit code nor the files that are written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SEATRIAL = [sys.executable, "-c", "from seatrial.cli import main; raise SystemExit(main())"]
SUITE = """
agents: {m: {kind: python, target: "answering:answer"}}
graders: [{kind: contains, value: ok}]
cases: [{id: c1, instruction: hi}]
"""


def unread(*arguments: str, stream: str = "stdout", given: str | None = None) -> int:
    """How a command ends of which nobody reads a stream, from its first byte on."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writer}
    out, error = streams["stdout"], streams["stderr"]
    try:
        command = [*SEATRIAL, *arguments]
        ran = subprocess.run(command, input=given, text=True, timeout=180, check=False, stdout=out, stderr=error)
    finally:
        os.close(writer)
    return ran.returncode


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that fails."""
    (tmp_path / "answering.py").write_text('def answer(instruction):\n    return "no"\n')
    (tmp_path / "s.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("options", [["--quiet"], [], ["--json"]])
def test_a_run_that_failed_ends_with_1_and_writes_its_reports(failing: None, stream: str, options: list[str]) -> None:
    assert unread("run", "s.yaml", *options, "--junit", "report.xml", stream=stream) == 1
    assert "<failure" in Path("report.xml").read_text()


def test_grading_again_and_comparing_and_reporting_end_as_they_would_with_a_reader(failing: None) -> None:
    # A file of another size: Python takes its cached bytecode for that of a file changed within the same second.
    Path("answering.py").write_text('def answer(instruction):\n    return "all is ok"\n')
    assert unread("run", "s.yaml", "--quiet", "--name", "a") == 0
    Path("answering.py").write_text('def answer(instruction):\n    return "no"\n')
    assert unread("run", "s.yaml", "--quiet", "--name", "b") == 1
    assert unread("grade", "latest") == 1
    assert unread("report", "latest", "--junit", "report.xml") == 0
    assert "<failure" in Path("report.xml").read_text()
    assert unread("compare", "a", "b", "--fail-on", "regression") == 1


def test_a_match_that_failed_ends_with_1() -> None:
    line = json.dumps({"mode": "exact", "expected": [{"tool": "x"}], "actual": []})
    assert unread("match", "-", given=line) == 1


def test_a_file_of_which_a_line_cannot_be_read_is_converted_with_3() -> None:
    lines = '{"final_response": "a"}\nnot json\n'
    assert unread("convert", "-", "--to", "transcript", given=lines) == 3
