"""Calling graders that are not Seatrial's own: functions and classes of a suite's author, or of an installed package.

Such code may block, never return, or end the process: it runs in a thread, and is given up at its time limit. What is
async runs in an event loop that all of it shares.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Any

import msgspec

from seatrial._support.excerpt import exception_excerpt
from seatrial._support.portal import Portal
from seatrial._support.threads import InterruptedCallError, Threads, ends_us
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, ChatModel, Completion
from seatrial.graders.grader import Finding, Subject, Surroundings, errored
from seatrial.graders.reported import finding_of

RESPONSE_S = 2.0
"""How long the loop of async functions may take to respond after one of them was given up."""


class UnusableTargetError(Exception):
    """A target names nothing that can be called."""


async def found_by(function: Callable[[], Any], name: str, limit_s: float) -> Finding:
    """The finding that a function returns, or one that says why there is none."""
    try:
        async with asyncio.timeout(limit_s) as deadline:
            said = await _said(function)
    except UnusableTargetError as error:
        return errored(str(error))
    except BaseException as error:  # the function may raise anything
        if ends_us(error, ran_here=False):
            raise
        if isinstance(error, TimeoutError) and deadline.expired():
            told = f"{name} took longer than {limit_s:g} s, its time limit (`timeout_s`)"
            return errored(told, code="grader_timeout")
        head, text = exception_excerpt(error, error.__traceback__)
        found = errored(f"{name} raised {head}")
        found.details = {"traceback": text}
        return found
    try:
        return finding_of(said)
    except SeatrialError as error:
        return errored(f"{name} gave no verdict: {error}")


def own_copy(subject: Subject) -> Subject:
    """The subject for code that may change it: what is stored, and what others judge, stays as it is."""
    return Subject(deepcopy(subject.run), deepcopy(subject.case))


def seen_elsewhere(surroundings: Surroundings) -> Surroundings:
    """The surroundings for code in another thread or loop: its model is asked in the loop that it belongs to."""
    if surroundings.model is None:
        return surroundings
    model = _ModelOfLoop(surroundings.model, asyncio.get_running_loop())
    return msgspec.structs.replace(surroundings, model=model)


class _ModelOfLoop:
    """A chat model, asked from any event loop."""

    def __init__(self, model: ChatModel, loop: asyncio.AbstractEventLoop) -> None:
        self._model = model
        self._loop = loop

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, messages: list[ChatMessage], *, schema: dict[str, Any] | None = None) -> Completion:
        asking = asyncio.run_coroutine_threadsafe(self._model.complete(messages, schema=schema), self._loop)
        return await asyncio.wrap_future(asking)


async def _said(function: Callable[[], Any]) -> Any:
    threads = Threads()
    try:
        said = await threads.call(function, interrupts=True)
    finally:
        threads.close()
    return await _in_shared_loop(said) if isinstance(said, Awaitable) else said


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
