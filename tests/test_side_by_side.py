"""The same program in Seatrial and in other libraries: ours is not the longest way to say it, and theirs run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent.parent / "examples" / "side_by_side"
OURS = PROGRAMS / "seatrial_program.py"
THEIRS = {"pydantic_evals": PROGRAMS / "pydantic_evals_program.py", "inspect_ai": PROGRAMS / "inspect_program.py"}


def lines(program: Path) -> int:
    return sum(bool(line.strip()) for line in program.read_text(encoding="utf-8").splitlines())


def ran(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100"}
    environment.pop("SEATRIAL_STORE", None)
    command = [sys.executable, str(program)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("library", THEIRS)
def test_our_program_is_not_longer(library: str) -> None:
    theirs = THEIRS[library]
    assert lines(OURS) <= lines(theirs)
    assert len(OURS.read_text(encoding="utf-8")) <= len(theirs.read_text(encoding="utf-8"))


def test_our_program_shows_its_results(tmp_path: Path) -> None:
    done = ran(OURS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mine      3       3       0        0       100%" in done.stdout


@pytest.mark.parametrize("library", THEIRS)
def test_their_program_shows_its_results(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is installed by `make bench` only")
    done = ran(THEIRS[library], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "100.0%" in done.stdout or "accuracy  1.000" in done.stdout
