"""`python`: a function of the user's."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored
from seatrial.graders.reported import finding_of
from seatrial.target import load_target
from seatrial.threads import Threads

_MAX_TRACEBACK = 4000


class Python(Grader):
    """What a function says of the run. It is called with the subject (`answer`, `run`, `case`), and gives `True`, a
    score, a mapping (`passed`, `score`, `reasons`, ...) or a `Finding`. One that is not async is called in a thread."""

    kind: ClassVar[str] = "python"

    target: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$(?!\n)", description="`package.module:function`"
        ),
    ]
    """`package.module:function`, importable from the suite file's directory."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further keyword arguments."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    """How long it may take. A thread cannot be stopped: the grader is errored, and the function goes on unheard."""

    def prepare(self) -> Check:
        # Imported with the first run, and not here: validating a suite runs no code of its author.
        return Check(self._find, repeatable=False)

    async def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        try:
            function = load_target(self.target, surroundings.directory)
        except SeatrialError as error:
            return errored(str(error))
        if not callable(function):
            return errored(f"`{self.target}` is not a function")
        try:
            async with asyncio.timeout(self.timeout_s) as deadline:
                said = await self._call(function, subject)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the function may raise anything)
            if isinstance(error, TimeoutError) and deadline.expired():
                return errored(f"`{self.target}` took longer than {self.timeout_s:g} s")
            found = errored(f"`{self.target}` raised {type(error).__name__}: {error}"[:500])
            found.details = {"traceback": "".join(traceback.format_exception(error))[-_MAX_TRACEBACK:]}
            return found
        try:
            return finding_of(said)
        except SeatrialError as error:
            return errored(f"`{self.target}` gave no verdict: {error}")

    async def _call(self, function: Callable[..., Any], subject: Subject) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(subject, **self.arguments)
        threads = Threads()
        try:
            said = await threads.call(partial(function, subject, **self.arguments))
        finally:
            threads.close()
        # What a plain function gives may still be a coroutine: `functools.partial`, a callable object.
        return await said if isinstance(said, Awaitable) else said
