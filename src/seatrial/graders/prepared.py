"""A grader ready to grade: its check, and the keys that every grader has."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterable

import msgspec

from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored
from seatrial.graders.key import configuration_digest, verdict_key
from seatrial.runs import Judgement, Verdict

MAX_ERROR = 500


class Prepared(msgspec.Struct, frozen=True):
    """One grader of a suite or a case, compiled."""

    grader: Grader
    name: str
    check: Check
    configuration: bytes
    """Digest of what is checked."""

    def judge(self, subject: Subject, surroundings: Surroundings) -> Verdict | Awaitable[Verdict]:
        """The verdict on a run. Whatever goes wrong in a check is a verdict too: `errored`, never `passed`."""
        try:
            found = self.check.find(subject, surroundings)
        except Exception as error:  # noqa: BLE001 (a fault of one grader must not end the experiment)
            found = _raised(error)
        return self.verdict(found) if isinstance(found, Finding) else self._wait(found)

    async def _wait(self, waiting: Awaitable[Finding]) -> Verdict:
        begun = time.perf_counter()
        try:
            found = await waiting
        except Exception as error:  # noqa: BLE001 (as above)
            found = _raised(error)
        verdict = self.verdict(found)
        verdict.duration_ms = (time.perf_counter() - begun) * 1000
        return verdict

    def key(self, content: bytes | None, surroundings: Surroundings) -> str:
        """The content key of this grader's verdict on a run."""
        model = surroundings.model
        return verdict_key(content, self.configuration, self.check, None if model is None else model.name)

    def verdict(self, found: Finding) -> Verdict:
        """A finding with the common keys applied."""
        grader = self.grader
        judgement, score, reasons = found.judgement, found.score, found.reasons
        if judgement == "passed" or judgement == "failed":
            if score is None:
                score = 1.0 if judgement == "passed" else 0.0
            if grader.min_score is not None and not self.check.uses_min_score:
                judgement = "passed" if score >= grader.min_score else "failed"
                sign = ">=" if judgement == "passed" else "<"
                reasons = [*reasons, f"{judgement}: score {score:.4g} {sign} min_score {grader.min_score:g}"]
            if grader.negate:
                reasons = [*reasons, f"negated: the check {judgement}"]
                judgement = "failed" if judgement == "passed" else "passed"
                score = 1.0 if judgement == "passed" else 0.0
        else:
            score = None
        return Verdict(
            grader=self.name,
            kind=grader.kind,
            judgement=judgement,
            score=score,
            reasons=reasons,
            evidence=found.evidence,
            details=found.details,
            weight=grader.weight,
            required=grader.required,
            cost_usd=found.cost_usd,
            tokens=found.tokens,
        )

    def unjudged(self, judgement: Judgement, reason: str) -> Verdict:
        """The verdict on a run that there is nothing to check in."""
        return Verdict(
            grader=self.name,
            kind=self.grader.kind,
            judgement=judgement,
            score=0.0 if judgement == "failed" else None,
            reasons=[reason],
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
            tokens=None,
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
            check = grader.prepare()
        except SeatrialError as error:
            error.pointer = f"/{index}{error.pointer or ''}"
            raise
        prepared.append(Prepared(grader, name, check, configuration_digest(grader)))
    return prepared


def _raised(error: Exception) -> Finding:
    return errored(f"the grader raised {type(error).__name__}: {error}"[:MAX_ERROR])
