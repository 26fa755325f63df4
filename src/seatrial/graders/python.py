"""`python`: a function of the user's."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Awaitable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.graders.grader import FOR_GRADERS, Check, Finding, Grader, Subject, Surroundings, errored
from seatrial.graders.reported import finding_of
from seatrial.portal import Portal
from seatrial.target import load_target
from seatrial.threads import InterruptedCallError, Threads, ends_us

RESPONSE_S = 2.0
"""How long the loop of async functions may take to respond after one of them was given up."""
_MAX_TRACEBACK = 4000


class Python(Grader):
    """What a function says of the run. It is called with the subject (`answer`, `run`, `case`), and gives `True`, a
    score, a mapping (`passed`, `score`, `reasons`, ...) or a `Finding`. It is called in a
    thread; one that is async runs in an event loop that all such functions share."""

    kind: ClassVar[str] = "python"
    default_timeout_s: ClassVar[float] = 60.0

    target: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$(?!\n)", description="`package.module:function`"
        ),
    ]
    """`package.module:function`, importable from the suite file's directory."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further keyword arguments."""

    def prepare(self) -> Check:
        # Imported with the first run, and not here: validating a suite runs no code of its author.
        return Check(self._find, repeatable=False, keeps_time=True, reads=FOR_GRADERS)

    async def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        try:
            async with asyncio.timeout(self.limit_s) as deadline:
                said = await self._said(subject, surroundings.directory)
        except _UnusableTargetError as error:
            return errored(str(error))
        except BaseException as error:  # the function may raise anything
            if ends_us(error, ran_here=False):
                raise
            if isinstance(error, TimeoutError) and deadline.expired():
                told = f"`{self.target}` took longer than {self.limit_s:g} s, its time limit (`timeout_s`)"
                return errored(told, code="grader_timeout")
            found = errored(f"`{self.target}` raised {type(error).__name__}: {error}"[:500])
            found.details = {"traceback": "".join(traceback.format_exception(error))[-_MAX_TRACEBACK:]}
            return found
        try:
            return finding_of(said)
        except SeatrialError as error:
            return errored(f"`{self.target}` gave no verdict: {error}")

    async def _said(self, subject: Subject, directory: Path) -> Any:
        threads = Threads()
        try:
            said = await threads.call(partial(self._call, subject, directory), interrupts=True)
        finally:
            threads.close()
        return await _in_shared_loop(said) if isinstance(said, Awaitable) else said

    def _call(self, subject: Subject, directory: Path) -> Any:
        """Called in a thread, the import too: both run code of the suite's author, which may never end."""
        try:
            function = load_target(self.target, directory)
        except SeatrialError as error:
            raise _UnusableTargetError(str(error)) from error
        if not callable(function):
            raise _UnusableTargetError(f"`{self.target}` is not a function")
        return function(subject, **self.arguments)


class _UnusableTargetError(Exception):
    """The target names no function."""


class _SharedLoop:
    """The event loop of async functions: not that of the experiment, which a function that blocks would stop, and one
    for all of them, because clients and their connections belong to a loop. A function that blocks it makes the others
    wait until its time limit has passed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: Portal | None = None

    def portal(self) -> Portal:
        with self._lock:
            if self._portal is None:
                self._portal = Portal()
            return self._portal

    def free(self, portal: Portal) -> None:
        """Make sure that a function which was given up does not keep the loop from the others."""
        if portal.responds(RESPONSE_S):
            return
        portal.interrupt()
        if portal.responds(RESPONSE_S):
            return
        with self._lock:
            if self._portal is portal:
                self._portal = None  # nothing ends a call to C; the next function gets another loop


_shared_loop = _SharedLoop()


async def _in_shared_loop(awaitable: Awaitable[Any]) -> Any:
    portal = _shared_loop.portal()
    future = portal.submit(_outcome(awaitable))
    try:
        outcome, error = await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        threads = Threads()
        await threads.call(partial(_shared_loop.free, portal))
        threads.close()
        raise
    if error is not None:
        raise error
    return outcome


async def _outcome(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await awaitable, None
    except BaseException as error:
        # Not passed on as it is: a loop ends with a SystemExit in one of its tasks.
        if isinstance(error, InterruptedCallError) or ends_us(error, ran_here=False):
            raise
        return None, error
