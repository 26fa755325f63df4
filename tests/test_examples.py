"""The examples of the README and the docs do what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.suites import load_suite

ROOT = Path(__file__).resolve().parent.parent
# Run against stores of their own, by tests/reports/test_comparing_page.py and tests/cli/test_looking_page.py; in a
# folder of their own, by tests/agents/test_coding_page.py; and with packages of others, by `make frameworks`.
ELSEWHERE = {"comparing.md", "looking.md", "coding.md", "frameworks.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE)]
# Suites of other pages are held to by tests of their own.
SUITES = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("judges.md", "tags.md", "coming-from.md"))]
BLOCK = re.compile(r"^```(console|python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(kind: str, pages: Sequence[Path] = PAGES) -> list[Any]:
    found = [
        pytest.param(match[2], id=f"{page.name}:{page.read_text()[: match.start()].count(chr(10)) + 1}")
        for page in pages
        for match in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if match[1] == kind
    ]
    assert found, f"no {kind} example is left in the docs"
    return found


@pytest.mark.parametrize("example", examples("console"))
def test_a_command_prints_what_the_docs_show(example: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for shown in re.split(r"^(?=\$ )", example, flags=re.MULTILINE)[1:]:
        command, _, expected = shown.removeprefix("$ ").partition("\n")
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stderr + ran.stdout == expected


@pytest.mark.parametrize("example", examples("python"))
def test_a_python_example_runs(example: str) -> None:
    ran = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("example", [each for each in examples("yaml", SUITES) if "\nagents:" in f"\n{each.values[0]}"])
def test_a_suite_of_the_docs_is_sound(example: str, tmp_path: Path) -> None:
    (tmp_path / "a.suite.yaml").write_text(example)
    load_suite(tmp_path / "a.suite.yaml", variables={"OPENAI_API_KEY": "x"}, grading="all")
