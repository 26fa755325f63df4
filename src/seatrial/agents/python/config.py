"""The kind `python`: keys and checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from seatrial._support.target import load_target
from seatrial.agents.config import CASE_KEYS, AgentCheck, AgentConfig, AgentStart, Target
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.agents.python.agent import PythonAgent

_EXCEPTION = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$(?!\n)"
ExceptionName = Annotated[str, Meta(pattern=_EXCEPTION, description="an exception with its module: `openai.APIError`")]


class PythonConfig(AgentConfig):
    """A function in Python, sync or async."""

    kind: ClassVar[str] = "python"
    started_by: ClassVar[str | None] = "target"
    own_faults: ClassVar[frozenset[str]] = frozenset({"agent_exception", "agent_exit", "infrastructure_error"})

    target: Target
    """`package.module:function`, importable from the suite file's directory."""
    infrastructure_errors: list[ExceptionName] = msgspec.field(default_factory=list)
    """Exceptions that are not the agent's doing: `openai.APIConnectionError`. Their subclasses, and exceptions raised
    from them, count too. They are imported before anything runs: one that does not exist is an error."""

    def imports_code(self) -> bool:
        return True

    def build(self, start: AgentStart) -> PythonAgent:
        from seatrial.agents.python.agent import PythonAgent

        return PythonAgent(self, directory=start.directory, timeout_s=self.read_timeout_s(start))

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        if import_from is None:
            return frozenset(CASE_KEYS)
        from seatrial.agents.python.calling import Calling

        try:
            return Calling(load_target(self.target, import_from), import_from).case_keys | {"timeout_s"}
        except SeatrialError:
            return frozenset(CASE_KEYS)  # told where it is started

    def check(self, check: AgentCheck) -> None:
        if not check.needed:
            return
        if check.run_python:
            from seatrial.agents.python.calling import Calling

            try:
                Calling(load_target(self.target, check.directory), check.directory)
            except SeatrialError as error:
                check.problems.add(("target",), error.message, error.hint)
        if not self.infrastructure_errors or not (check.run_python or check.import_errors):
            return
        from seatrial.agents.python.exception import exception_class

        for index, name in enumerate(self.infrastructure_errors):
            try:
                exception_class(name, check.directory)
            except SeatrialError as error:
                check.problems.add(("infrastructure_errors", index), error.message, error.hint)
