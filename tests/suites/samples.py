"""Ways to write suites and look at their problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.suites import InvalidSuiteError, Suite, load_suite

AGENT = "agents: {mine: {kind: python, target: 'agent:answer'}}\n"
CASE = "cases: [{id: one, instruction: hello}]\n"


def write(folder: Path, text: str, name: str = "shop.suite.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def load(folder: Path, text: str, variables: dict[str, str] | None = None, **options: Any) -> Suite:
    return load_suite(write(folder, text), variables=variables or {}, **options)


def problems_of(folder: Path, text: str, variables: dict[str, str] | None = None, **options: Any) -> list[str]:
    """What is said of a suite, without the folder."""
    try:
        load(folder, text, variables, **options)
    except InvalidSuiteError as error:
        return [str(problem).replace(f"{folder}/", "") for problem in error.problems]
    return []
