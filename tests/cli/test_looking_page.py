"""What the page on looking at runs shows is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from strategies.looked_at import fill

from seatrial.cli.main import main

TEXT = (Path(__file__).parents[2] / "docs" / "looking.md").read_text(encoding="utf-8")
CONSOLE = [block.split("\n", 1) for block in re.findall(r"^```console\n\$ (.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)]


@pytest.mark.parametrize(("command", "output"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_every_command_prints_what_the_page_shows(
    command: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEATRIAL_STORE", raising=False)
    fill(tmp_path / "seatrial.db")
    program, *arguments = shlex.split(command)
    assert program == "seatrial"
    assert main(arguments) == (3 if "run-v1-late" in arguments else 0)
    assert capsys.readouterr().out == output


def test_the_page_shows_every_command_that_looks_at_a_store() -> None:
    assert {command.split()[1] for command, _ in CONSOLE} == {"list", "show", "search", "diff", "case"}
