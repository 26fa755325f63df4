"""What the page on suites says is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seatrial.suites import InvalidSuiteError, load_suite
from seatrial.suites.reference import with_reference
from suites.samples import write

PAGE = Path(__file__).parents[2] / "docs" / "suites.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the examples name."""
    write(tmp_path, '{"instruction": "One more."}\n', "more.jsonl")
    write(tmp_path, "user,state\nFrom a sheet.,\n", "seeds.csv")
    return tmp_path


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_example_is_a_sound_suite(text: str, folder: Path) -> None:
    load_suite(write(folder, text), variables={"SHOP_TOKEN": "x"}, grading="all")


def test_the_typo_on_the_page_is_told_as_the_page_says(folder: Path) -> None:
    text = blocks("yaml")[0].replace("target", "taget")
    with pytest.raises(InvalidSuiteError) as caught:
        load_suite(write(folder, text, "suite.yaml"), variables={})
    told = [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]
    assert blocks("text")[0].strip() in told


def test_the_python_on_the_page_finds_no_problems(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    assert capsys.readouterr().out == ""


def test_the_tables_of_keys_have_not_drifted() -> None:
    assert with_reference(TEXT) == TEXT, "run `make schemas`"
