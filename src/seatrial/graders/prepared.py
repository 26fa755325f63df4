"""A grader ready to grade: its check, and the keys that every grader has."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Iterable
from math import inf
from typing import get_args
from weakref import WeakKeyDictionary

import msgspec

from seatrial._support.excerpt import exception_excerpt
from seatrial._support.printable import is_blank
from seatrial._support.threads import Threads
from seatrial._support.time_limit import TimeLimit
from seatrial.errors import SeatrialError
from seatrial.graders.answer_gap import ANSWER_INCOMPLETE, TO_DO, answer_gap
from seatrial.graders.calls import to_do
from seatrial.graders.chat_model import CountedModel
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored
from seatrial.graders.key import configuration_digest, verdict_key
from seatrial.graders.registry import GRADERS
from seatrial.graders.user_code import found_by, own_copy, seen_elsewhere
from seatrial.runs import Outcome, Verdict
from seatrial.runs.removed import (
    RUN_AGAIN,
    SECRET_REMOVED,
    are_calls_redacted,
    is_answer_redacted,
    is_diff_redacted,
    is_redacted,
)
from seatrial.trajectory.completeness import Claim, ScoreRange, judged, reached, reaches

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
AT_ONCE_S = 0.05
"""How long a check may keep the event loop."""
GRACE_S = 5.0
"""How much later than its limit a check that ends by itself is given up."""
MAX_THREADS = 2
"""Checks that compute in threads at once."""


class Prepared(msgspec.Struct, frozen=True):
    """One grader of a suite or a case, compiled."""

    grader: Grader
    name: str
    check: Check
    configuration: bytes
    """Digest of what is checked."""
    built_in: bool = True
    """Whether it is one of Seatrial's: others may block, or never return."""

    def judge(self, subject: Subject, surroundings: Surroundings) -> Verdict | Awaitable[Verdict]:
        """The verdict on a run. Whatever goes wrong in a check is a verdict too: `errored`, never `passed`.

        Most checks take microseconds and are done here and now. One that turns out to take longer is begun again in a
        thread, so that other runs go on meanwhile. What is not Seatrial's own always runs in a thread.
        """
        if (lacking := self._lacks(subject)) is not None:
            return self.verdict(lacking, subject)
        if not self.check.parts and (self.check.asks_model or not self.built_in):  # each of several counts its own
            surroundings = surroundings.for_one_verdict()
        counted = surroundings.counted
        if not self.built_in:
            beside = seen_elsewhere(surroundings)

            def find() -> Finding | Awaitable[Finding]:
                return self.check.find(own_copy(subject), beside)

            limit_s = self.grader.limit_s
            return self._wait(found_by(find, "the grader", limit_s), subject, limit_s + GRACE_S, counted)
        limit = TimeLimit(AT_ONCE_S)
        try:
            if self.check.parts:  # each of them has its own limit
                found = self.check.find(subject, surroundings)
            else:
                with limit:
                    found = self.check.find(subject, surroundings)
        except Exception as error:  # noqa: BLE001 (a fault of one grader must not end the experiment)
            found = _raised(error)
        if not isinstance(found, Finding):
            return self._wait(found, subject, self._waits_s(), counted)
        if limit.expired:
            return self._wait(self._find_in_thread(subject, surroundings), subject)
        return self.verdict(found, subject)

    def _lacks(self, subject: Subject) -> Finding | None:
        """Why a run that is not as the agent said it any more cannot be graded by this; None where it can."""
        check, run = self.check, subject.run
        if check.parts or run.reading is None:
            return None  # each grader of several says it for itself
        if check.of_answer:
            if is_answer_redacted(run):
                return errored(
                    "the answer had a secret of the suite in it, which is not stored", RUN_AGAIN, code=SECRET_REMOVED
                )
        elif check.of_calls and self.built_in:
            # A mark in the place of a secret must not fulfil an expectation, nor be the reason why one is not.
            if are_calls_redacted(run):
                return errored(
                    "a call had a secret of the suite in it, which is not stored", RUN_AGAIN, code=SECRET_REMOVED
                )
        elif check.of_diff and self.built_in:
            if is_diff_redacted(run):
                told = "what changed in the workspace had a secret of the suite in it, which is not stored"
                return errored(told, RUN_AGAIN, code=SECRET_REMOVED)
        elif (not self.built_in or not check.repeatable) and is_redacted(run):
            # Nobody knows what such code looks at.
            return errored(
                "the run had a secret of the suite in it, which is not stored", RUN_AGAIN, code=SECRET_REMOVED
            )
        return None

    def _waits_s(self) -> float | None:
        """How long a check that waits for something is waited for."""
        limit_s = self.grader.limit_s
        if limit_s == inf or self.check.queues:
            return None
        return limit_s + GRACE_S if self.check.keeps_time else limit_s

    async def _wait(
        self,
        waiting: Awaitable[Finding],
        subject: Subject,
        limit_s: float | None = None,
        counted: CountedModel | None = None,
    ) -> Verdict:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(limit_s) as deadline:
                found = await waiting
        except Exception as error:  # noqa: BLE001 (as above)
            late = isinstance(error, TimeoutError) and deadline.expired()
            found = _too_long(limit_s or 0.0) if late else _raised(error)
        verdict = self.verdict(found, subject, counted)
        verdict.duration_ms = (time.perf_counter() - begun) * 1000
        return verdict

    async def _find_in_thread(self, subject: Subject, surroundings: Surroundings) -> Finding:
        limit_s = self.grader.limit_s

        def find() -> Finding:
            with TimeLimit(limit_s) as limit:
                found = self.check.find(subject, surroundings)
            if not isinstance(found, Finding):
                raise TypeError("a check that took long gave something to wait for when it was begun again")
            return _too_long(limit_s) if limit.expired else found

        async with _places():
            threads = Threads()
            try:
                async with asyncio.timeout(limit_s + GRACE_S) as deadline:
                    return await threads.call(find)
            except TimeoutError:
                if not deadline.expired():
                    raise
                return _too_long(limit_s)
            except SeatrialError as error:
                if error.code != "time_limit":
                    raise
                return _too_long(limit_s)
            finally:
                threads.close()

    def key(self, content: bytes | None, surroundings: Surroundings) -> str:
        """The content key of this grader's verdict on a run."""
        model = surroundings.model
        return verdict_key(content, self.configuration, self.check, None if model is None else model.name)

    def verdict(self, found: Finding, subject: Subject, counted: CountedModel | None = None) -> Verdict:
        """A finding with the common keys applied, and what the model cost that was asked for it."""
        grader = self.grader
        if counted is not None:
            found.add_costs(counted.costs)
        paid = found  # also where something else comes of it below
        if (problem := _unusable(found)) is not None:
            found = errored(problem)
        elif self._goes_by_answer and self._would_pass(found) and not _has_answer(subject):
            # That an answer is, has or lacks something must not be shown by a run that has none: an answer that is
            # absent is not an empty text.
            found = errored("there is no answer, so nothing is known of what it says", *found.reasons, code="no_answer")
        elif self.check.of_answer and not self.check.parts and (gap := answer_gap(subject)) is not None:
            found = self._of_a_part(found, gap)
        outcome, score, reasons, score_range = found.outcome, found.score, found.reasons, found.score_range
        if outcome == "passed" or outcome == "failed":
            if score is None:
                score = 1.0 if outcome == "passed" else 0.0
            if grader.min_score is not None and not self.check.uses_min_score:
                outcome = judged(_reaches(found, score, grader.min_score))
                reasons = [*reasons, _against(found, score, outcome, grader.min_score)]
            if grader.negate and outcome != "errored":
                reasons = [*reasons, f"negated: the check {outcome}"]
                outcome = "failed" if outcome == "passed" else "passed"
                score, score_range = (1.0 if outcome == "passed" else 0.0), None
        code = found.code
        if outcome not in ("passed", "failed"):
            score = None
            code = code or ("" if score_range is None else score_range.code)
            score_range = None
        return Verdict(
            grader=self.name,
            kind=grader.kind,
            outcome=outcome,
            score=score,
            score_range=score_range,
            reasons=reasons,
            code=_code(outcome, code),
            evidence=found.evidence,
            details=found.details,
            basis=found.basis,
            weight=grader.weight,
            required=grader.required,
            cost_usd=paid.cost_usd,
            least_cost_usd=paid.least_cost_usd,
            tokens=paid.tokens,
            least_tokens=paid.least_tokens,
        )

    def _of_a_part(self, found: Finding, gap: str) -> Finding:
        """A finding on an answer of which a part is missing: what was found in it stays, everything else is unknown."""
        if found.outcome not in ("passed", "failed") or (self.check.positive and found.outcome == "passed"):
            return found
        reasons = [f"a part of the answer is missing: {gap}", *found.reasons, to_do(TO_DO)]
        if self.check.positive and self.grader.min_score is not None:
            known = ScoreRange(found.score or 0.0, 1.0, ANSWER_INCOMPLETE)
            return msgspec.structs.replace(found, score_range=known, reasons=reasons)
        return errored(*reasons, code=ANSWER_INCOMPLETE)

    @property
    def _goes_by_answer(self) -> bool:
        """Whether it passes or fails by the answer. Each grader of several says so for itself, and none of them makes
        the whole pass by failing, unless that is negated."""
        return self.check.of_answer and (self.grader.negate or not self.check.parts)

    def _would_pass(self, found: Finding) -> bool:
        """Whether a finding passes once the common keys are applied."""
        if found.outcome not in ("passed", "failed"):
            return False
        passed = found.outcome == "passed"
        least = self.grader.min_score
        if least is not None and not self.check.uses_min_score:
            passed = _reaches(found, float(passed) if found.score is None else found.score, least) is True
        return passed != self.grader.negate

    def unjudged(self, outcome: Outcome, reason: str) -> Verdict:
        """The verdict on a run that there is nothing to check in."""
        return Verdict(
            grader=self.name,
            kind=self.grader.kind,
            outcome=outcome,
            score=0.0 if outcome == "failed" else None,
            reasons=[reason],
            code="no_answer" if outcome == "skipped" else "",
            weight=self.grader.weight,
            required=self.grader.required,
        )

    def adopt(self, known: Verdict) -> Verdict:
        """An earlier verdict with the same key as this grader's: found before, and not paid for again."""
        return msgspec.structs.replace(
            known,
            grader=self.name,
            weight=self.grader.weight,
            required=self.grader.required,
            cost_usd=None,
            least_cost_usd=None,
            tokens=None,
            least_tokens=None,
        )


def prepare_all(graders: Iterable[Grader], taken: Iterable[str] = ()) -> list[Prepared]:
    """Compile graders. Those without a name are called by their kind, with a number from the second on."""
    graders = list(graders)
    names = {*taken, *(grader.name for grader in graders)}
    prepared = []
    for index, grader in enumerate(graders):
        name = grader.name
        number = 1
        while not name:
            candidate = grader.kind if number == 1 else f"{grader.kind}-{number}"
            name = candidate if candidate not in names else ""
            number += 1
        names.add(name)
        try:
            check = prepare(grader)
        except SeatrialError as error:
            error.pointer = f"/{index}{error.pointer or ''}"
            raise
        built_in = GRADERS.is_built_in(grader.kind)
        prepared.append(Prepared(grader, name, check, configuration_digest(grader), built_in))
    return prepared


def prepare(grader: Grader) -> Check:
    """The check of a grader, whoever wrote it. Raises `SeatrialError("invalid_config")`."""
    if GRADERS.is_built_in(grader.kind):
        return grader.prepare()
    try:
        check: object = grader.prepare()
    except SeatrialError:
        raise
    except Exception as error:
        head, _ = exception_excerpt(error, None)
        raise SeatrialError("invalid_config", f"`prepare` of the grader raised {head}") from error
    if not isinstance(check, Check) or not callable(check.find):
        message = f"`prepare` of the grader must return a `Check` with a function, not {type(check).__name__}"
        raise SeatrialError("invalid_config", message)
    # Code of others may change without a word, unless its author keeps a version.
    return check if "version" in vars(type(grader)) else msgspec.structs.replace(check, repeatable=False)


def _places() -> asyncio.Semaphore:
    """Places for checks that take long. Only a few at once: they compute, and the time of each is limited."""
    loop = asyncio.get_running_loop()
    places = _places_of.get(loop)
    if places is None:
        places = _places_of[loop] = asyncio.Semaphore(MAX_THREADS)
    return places


_places_of: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _too_long(limit_s: float) -> Finding:
    return errored(f"the grader took longer than {limit_s:g} s, its time limit (`timeout_s`)", code="grader_timeout")


def _code(outcome: Outcome, code: str) -> str:
    """Why a grader did not judge; of code that is not ours, only what can be a code."""
    if outcome not in ("errored", "skipped"):
        return ""
    return code if _CODE.fullmatch(code) else f"grader_{outcome}"


def _unusable(found: Finding) -> str | None:
    """What is wrong with a finding, which may be made by code that is not ours; None when nothing is."""
    if found.outcome not in get_args(Outcome):
        return f"the grader gave {str(found.outcome)[:60]!r}, which is not an outcome"
    # Written so that NaN is refused too.
    if found.score is not None and not (isinstance(found.score, int | float) and 0 <= found.score <= 1):
        return f"the grader gave a score of {found.score}, which is not from 0 to 1"
    if (known := found.score_range) is not None and not 0 <= known.lowest <= known.highest <= 1:
        return f"the grader gave a score from {known.lowest} to {known.highest}, which is not from 0 to 1"
    return None


def _reaches(found: Finding, score: float, bar: float) -> Claim:
    """Whether the score of a finding reaches a bar, whatever is not known of it."""
    if found.score_range is None:
        return reaches(score, bar)
    return reached(found.score_range.lowest, found.score_range.highest, bar)


def _against(found: Finding, score: float, outcome: Outcome, bar: float) -> str:
    sign = {"passed": ">=", "failed": "<"}.get(outcome, "may be below or above")
    known = found.score_range
    shown = f"{score:.4g}" if known is None else f"{known.lowest:.4g} to {known.highest:.4g}"
    return f"{outcome}: score {shown} {sign} min_score {bar:g}"


def _has_answer(subject: Subject) -> bool:
    return not is_blank(subject.answer or "")


def _raised(error: Exception) -> Finding:
    head, _ = exception_excerpt(error, None)
    return errored(f"the grader raised {head}")
