"""What the pages on graders and judges say is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graders.subjects import subject, verdict
from seatrial.graders import GRADERS
from seatrial.suites import load_suite
from seatrial.suites.reference import with_reference

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "graders.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = "graders.md") -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_example_is_a_sound_suite(text: str, tmp_path: Path) -> None:
    file = tmp_path / "example.suite.yaml"
    file.write_text(text, encoding="utf-8")
    load_suite(file, variables={"OPENAI_API_KEY": "x"}, grading="all")


def test_the_function_on_the_page_grades(tmp_path: Path) -> None:
    (tmp_path / "checks_of_the_page.py").write_text(blocks("python")[0], encoding="utf-8")
    grader = {"kind": "python", "target": "checks_of_the_page:polite", "arguments": {"words": ["please", "thank"]}}
    found = verdict(subject("thank you"), grader, directory=tmp_path)
    assert (found.outcome, found.score, found.reasons) == ("passed", 0.5, ["1 of 2 polite words"])


def test_the_program_on_the_page_of_judges_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    [program], [printed] = blocks("python", "judges.md"), blocks("text", "judges.md")
    exec(compile(program, "judges.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == printed


def test_every_kind_is_on_the_page_and_the_tables_have_not_drifted() -> None:
    assert [kind for kind in GRADERS if f"### {kind}\n" not in TEXT] == []
    assert with_reference(TEXT) == TEXT, "run `make schemas`"
