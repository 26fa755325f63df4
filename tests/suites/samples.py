"""Graders to name in suites, and ways to write suites and look at their problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from seatrial.errors import SeatrialError
from seatrial.graders import Check, Finding, Grader, Subject, Surroundings
from seatrial.graders.grader import FOR_GRADERS
from seatrial.suites import InvalidSuiteError, Suite, load_suite
from seatrial.trajectory.expectation import compile_expectation


def find(subject: Subject, surroundings: Surroundings) -> Finding:
    return Finding(judgement="passed")


class Sample(Grader):
    def prepare(self) -> Check:
        return Check(find)


class Equals(Sample):
    kind: ClassVar[str] = "equals"
    value: Any
    """What the answer must be."""


class Order(Grader):
    """Checks its configuration by itself, as `tool_trajectory` does."""

    kind: ClassVar[str] = "order"
    mode: Literal["exact", "in_order"]
    expected: list[dict[str, Any]]

    def prepare(self) -> Check:
        for index, item in enumerate(self.expected):
            if "tool" not in item:
                raise SeatrialError(
                    "invalid_config", "an item needs `tool`", pointer=f"/expected/{index}", hint="name a tool"
                )
        return Check(find)


class Contains(Sample):
    kind: ClassVar[str] = "contains"
    value: str


class ToolTrajectory(Grader):
    kind: ClassVar[str] = "tool_trajectory"
    mode: str
    expected: list[Any]

    def prepare(self) -> Check:
        compile_expectation({"mode": self.mode, "expected": self.expected})
        return Check(find)


class Composite(Sample):
    kind: ClassVar[str] = "composite"
    graders: list[dict[str, Any]]


class Judge(Grader):
    kind: ClassVar[str] = "judge"

    def prepare(self) -> Check:
        return Check(find, asks_model=True, reads=FOR_GRADERS)


KINDS: dict[str, type[Grader]] = {
    kind.kind: kind for kind in (Equals, Order, Composite, Contains, ToolTrajectory, Judge)
}

AGENT = "agents: {mine: {kind: python, target: 'agent:answer'}}\n"
CASE = "cases: [{id: one, instruction: hello}]\n"


def write(folder: Path, text: str, name: str = "shop.suite.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def load(folder: Path, text: str, variables: dict[str, str] | None = None, **options: Any) -> Suite:
    return load_suite(write(folder, text), graders=KINDS, variables=variables or {}, **options)


def problems_of(folder: Path, text: str, variables: dict[str, str] | None = None, **options: Any) -> list[str]:
    """What is said of a suite, without the folder."""
    try:
        load(folder, text, variables, **options)
    except InvalidSuiteError as error:
        return [str(problem).replace(f"{folder}/", "") for problem in error.problems]
    return []
