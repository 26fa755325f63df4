"""How the program of a CLI agent is called: arguments, directory, variables, and where the instruction goes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

from seatrial.agents.config import CliConfig, argv
from seatrial.agents.placeholders import PLACEHOLDERS, put_in, used
from seatrial.agents.process import Process
from seatrial.errors import SeatrialError
from seatrial.runs import Fault

HEALTHCHECK_S = 60.0


class Invocation:
    """The command of an agent, ready to be filled in."""

    def __init__(self, config: CliConfig, directory: Path) -> None:
        self._arguments = _split(config.command)
        self._healthcheck = None if config.healthcheck is None else _split(config.healthcheck)
        self.names = {name for argument in self._arguments for name in used(argument) if name is not None}
        self.cwd = str(directory / config.cwd if config.cwd is not None else directory)
        self.env = {**os.environ, **config.env}
        self.input = config.input or self._input()
        self.has_output_file = "OUTPUT_FILE" in self.names
        unknown = self.names - PLACEHOLDERS.keys()
        if unknown:
            raise SeatrialError("invalid_config", f"unknown placeholder `{{{min(unknown)}}}`")

    async def start(self, stack: AsyncExitStack, values: Mapping[str, str], prompt: Path) -> Process | Fault:
        """Start the program with these values in place; it ends with the stack at the latest."""
        try:
            stdin = stack.enter_context(prompt.open("rb")) if self.input == "stdin" else None
            process = Process(
                [put_in(argument, values) for argument in self._arguments],
                cwd=self.cwd,
                env=self.env,
                stdin=stdin,
                has_output=not self.has_output_file,
            )
            return await stack.enter_async_context(process)
        except (OSError, ValueError) as error:
            return Fault("agent_exit", f"the program {not_started(error)}")

    async def check_health(self) -> None:
        """Run the healthcheck, if there is one. Raises `SeatrialError` when it does not end with 0."""
        if self._healthcheck is None:
            return
        command = [put_in(argument, {}) for argument in self._healthcheck]
        try:
            async with (
                asyncio.timeout(HEALTHCHECK_S),
                Process(command, cwd=self.cwd, env=self.env, has_output=False) as process,
            ):
                code = await process.wait()
                problem = None if code == 0 else f"{ending(code)}\n{process.log_lines()}".rstrip()
        except TimeoutError:
            problem = f"did not end within {HEALTHCHECK_S:g} s"
        except (OSError, ValueError) as error:
            problem = not_started(error)
        if problem is not None:
            raise SeatrialError("agent_unhealthy", f"the healthcheck {problem}")

    def _input(self) -> Literal["prompt_file", "stdin", "arg"]:
        if "PROMPT_FILE" in self.names:
            return "prompt_file"
        return "arg" if "PROMPT" in self.names else "stdin"


def exit_fault(code: int, log: str) -> Fault:
    """The fault of a program that did not end with 0."""
    return Fault("agent_exit", f"the program {ending(code)}", detail=log or None)


def ending(code: int) -> str:
    """How a program ended, in words."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def not_started(error: OSError | ValueError) -> str:
    """Why a program did not start, in words. Not with its arguments: they may be secret."""
    return f"cannot be started: {error.strerror if isinstance(error, OSError) else error}"


def _split(command: str | list[str]) -> list[str]:
    try:
        arguments = argv(command)
    except ValueError as error:
        raise SeatrialError("invalid_config", f"the command cannot be split into arguments: {error}") from None
    if not arguments:
        raise SeatrialError("invalid_config", "the command names no program")
    return arguments
