"""Graders that are not Seatrial's own, of a suite's author or an installed package: calling them, and what they report.

Such code may block, never return, or end the process: it runs in a thread, and is given up at its time limit. What is
async runs in an event loop that all of it shares.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seatrial._support import wire
from seatrial._support.excerpt import exception_excerpt
from seatrial._support.portal import Portal
from seatrial._support.threads import InterruptedCallError, Threads, ends_us
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, ChatModel, Completion
from seatrial.graders.grader import Finding, Subject, Surroundings, errored
from seatrial.runs import Outcome, Verdict
from seatrial.trajectory.completeness import reaches


class ReportedVerdict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of a verdict that a command prints or a function returns. One of the first three says it."""

    passed: bool | None = None
    score: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Alone, it passes when it is 1; `min_score` of the grader sets another bar."""
    outcome: Outcome | None = None
    """Instead of `passed`, for `errored` and `skipped`."""
    reason: str | None = None
    reasons: list[str] = []
    evidence: list[str] = []
    details: Any = None
    cost_usd: Annotated[float, Meta(ge=0)] | None = None


def finding_of(value: Any) -> Finding:
    """A finding from `True`, a score, one of both with a reason, a mapping of `ReportedVerdict`'s keys, a finding or a
    verdict. Raises `SeatrialError`."""
    if isinstance(value, Finding):
        return _checked(value)
    if isinstance(value, Verdict):
        return _checked(
            Finding(
                outcome=value.outcome,
                score=value.score,
                reasons=value.reasons,
                code=value.code,
                evidence=value.evidence,
                details=value.details,
                cost_usd=value.cost_usd,
                least_cost_usd=value.least_cost_usd,
                tokens=value.tokens,
                least_tokens=value.least_tokens,
            )
        )
    reasons: list[str] = []
    if isinstance(value, tuple) and [*map(type, value)] in ([bool, str], [int, str], [float, str]):
        value, reasons = value[0], [value[1]]
    if isinstance(value, bool):
        value = {"passed": value, "reasons": reasons}
    elif isinstance(value, int | float):
        value = {"score": value, "reasons": reasons}
    if not isinstance(value, dict):
        raise SeatrialError(
            "invalid_document",
            f"a verdict is true, false or a score, perhaps with a reason, a mapping or a `Verdict`, not {_kind(value)}",
        )
    if "judgement" in value:
        raise SeatrialError("invalid_document", "a verdict has no `judgement`: its key is `outcome`")
    try:
        report = msgspec.convert(value, ReportedVerdict)
    except msgspec.ValidationError as error:
        raise wire.invalid_document(error) from None
    return _checked(
        Finding(
            outcome=_outcome(report),
            score=report.score,
            reasons=report.reasons if report.reason is None else [report.reason, *report.reasons],
            evidence=report.evidence,
            details=report.details,
            cost_usd=report.cost_usd,
        )
    )


def _checked(finding: Finding) -> Finding:
    """The finding, if it is one that can be stored: a struct takes whatever it is made of, and `outcome="fail"` must
    not pass for a pass, nor may details that are no JSON cost the whole run."""
    try:
        checked = wire.decode_input(wire.encode(finding), _FINDING)
    except (TypeError, ValueError, OverflowError) as error:
        raise SeatrialError("invalid_document", f"it has a part that is not JSON: {error}") from None
    # As it was given: JSON has no NaN, which is null there.
    if finding.score is not None and not 0 <= finding.score <= 1:
        raise SeatrialError("invalid_document", f"a score is from 0 to 1, not {finding.score}")
    if (finding.outcome, finding.score) in (("passed", 0), ("failed", 1)):
        # One of the two is a mistake, and which one nobody knows.
        message = f"a verdict that {finding.outcome} with the score {finding.score:g} contradicts itself"
        raise SeatrialError("invalid_document", message)
    return checked


def _outcome(report: ReportedVerdict) -> Outcome:
    if report.outcome is not None:
        if report.passed is not None:
            raise SeatrialError("invalid_document", "a verdict has `outcome` or `passed`, not both")
        return report.outcome
    if report.passed is not None:
        return "passed" if report.passed else "failed"
    if report.score is None:
        raise SeatrialError("invalid_document", "a verdict needs `passed`, `score` or `outcome`")
    return "passed" if reaches(report.score, 1.0) else "failed"


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


_FINDING = msgspec.json.Decoder(Finding)


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
            late = f"{name} took longer than {limit_s:g} s, its time limit (`timeout_s`)"
            return errored(late, code="grader_timeout")
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
    future = portal.submit(_ending(awaitable))
    try:
        result, error = await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        threads = Threads()
        await threads.call(partial(_shared_loop.free, portal))
        threads.close()
        raise
    if error is not None:
        raise error
    return result


async def _ending(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await awaitable, None
    except BaseException as error:
        # Not passed on as it is: a loop ends with a SystemExit in one of its tasks.
        if isinstance(error, InterruptedCallError) or ends_us(error, ran_here=False):
            raise
        return None, error
