"""What the page on reports and comparing says is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from strategies.monday import fill

from seatrial.cli.commands.report import FORMS
from seatrial.cli.main import main

TEXT = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text(encoding="utf-8")
CONSOLE = [block.split("\n", 1) for block in re.findall(r"^```console\n\$ (.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)]
(PYTHON,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store of the examples is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEATRIAL_STORE", raising=False)
    fill(tmp_path / "seatrial.db")


@pytest.mark.parametrize(("command", "output"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_every_command_prints_what_the_page_shows(
    command: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *arguments = shlex.split(command.partition(">>")[0])
    assert program == "seatrial"
    code = main(arguments)
    assert code == (1 if "--fail-on" in arguments else 0)
    if ">>" not in command:
        assert capsys.readouterr().out == output


def test_the_python_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PYTHON, "comparing.md", "exec"), {})
    assert capsys.readouterr().out.startswith("Interval(low=0.40")


def test_every_form_of_a_report_is_on_the_page() -> None:
    assert set(re.findall(r"^\| `--(\w+) FILE`", TEXT, re.MULTILINE)) == set(FORMS)
