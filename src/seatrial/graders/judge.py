"""`judge`: a chat model reads the record of a run and votes."""

from __future__ import annotations

import asyncio
from math import fsum
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatModel, Completion
from seatrial.graders.grader import FOR_GRADERS, Check, Finding, Grader, Subject, Surroundings, skipped
from seatrial.graders.json_answer import json_of, json_text
from seatrial.graders.judge_prompt import Criterion, Prompt, prompt_for
from seatrial.runs import CriterionScore, JudgedBy, JudgeDetails, JudgeVote
from seatrial.trajectory.completeness import reaches
from seatrial.transcript.arguments import key_twice

PASS_SCORE = 0.5
"""The weighted score of the criteria from which a vote is for the run; `min_score` sets another."""
MAX_RAW = 2000


class Scored(msgspec.Struct, forbid_unknown_fields=True):
    """What a vote says of one criterion."""

    score: Annotated[float, Meta(ge=0, le=1)]
    reason: str = ""


class Ballot(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the model answers."""

    reasoning: str
    outcome_met: bool
    criteria: dict[str, Scored] = {}
    failure_mode: str | None = None
    evidence: list[str] = []


class Vote(msgspec.Struct):
    """One vote: a ballot, or why there is none."""

    asked: list[Completion]
    """One answer, or two where the first had to be repaired."""
    ballot: Ballot | None = None
    problem: str | None = None
    score: float = 0.0
    """The weighted mean of the criteria; 0 when the outcome is wrong."""


class Judge(Grader):
    """What a chat model says of the run: whether the expected outcome was reached, and how far a rubric is met. A vote
    is for the run when the outcome is right and the score of the criteria at least 0.5, or `min_score`; the majority
    decides, a tie is errored, and the score is the mean of the votes."""

    kind: ClassVar[str] = "judge"
    default_timeout_s: ClassVar[float] = 600.0
    version: ClassVar[int] = 5

    criteria: list[Criterion] = msgspec.field(default_factory=list)
    """The rubric; each criterion has a `name`, a `description` and a `weight`. Without one, only the outcome counts."""
    instructions: str = ""
    """What else the judge should know."""
    votes: Annotated[int, Meta(ge=1, le=25)] = 1
    """How often the model is asked."""
    last_messages: Annotated[int, Meta(ge=0, le=200)] = 6
    """How many of the last messages the judge sees, besides the answer and the tool calls."""

    def prepare(self) -> Check:
        names = [criterion.name for criterion in self.criteria]
        for index, name in enumerate(names):
            if name in names[:index]:
                message = f"two criteria are called {name[:60]!r}"
                raise SeatrialError("invalid_config", message, pointer=f"/criteria/{index}/name")
        if names and not sum(criterion.weight for criterion in self.criteria):
            raise SeatrialError("invalid_config", "no criterion weighs anything", pointer="/criteria")
        # A vote is held against `min_score`, and the majority decides: their mean could overrule it.
        return Check(self._find, asks_model=True, uses_min_score=True, reads=FOR_GRADERS)

    async def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        model = surroundings.model
        if model is None:
            if surroundings.skips_judges:
                return skipped("judges are left out, as it was asked for", code="judge_skipped")
            return skipped(
                "no model is configured: name one under `judge` in the suite (`model`, `base_url`, `api_key`)",
                code="judge_skipped",
            )
        prompt = prompt_for(subject.stored, self.criteria, self.instructions, self.last_messages)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._vote(model, prompt)) for _ in range(self.votes)]
        votes = [task.result() for task in tasks]
        asked = [completion for vote in votes for completion in vote.asked]
        judge = JudgedBy(
            model=next((completion.model for completion in asked if completion.model), model.name),
            votes=len(votes),
            cost_usd=None if surroundings.counted is None else surroundings.counted.costs.cost_usd,
            prompt_hash=prompt.digest,
        )
        problems = [vote.problem for vote in votes if vote.problem is not None]
        if problems:
            details = JudgeDetails(votes=self._told(votes), judge=judge)
            return Finding(outcome="errored", reasons=list(dict.fromkeys(problems)), details=details)
        return self._count(votes, _pointers(subject), judge)

    async def _vote(self, model: ChatModel, prompt: Prompt) -> Vote:
        vote = Vote([])
        messages = list(prompt.messages)
        for last in (False, True):
            try:
                answer = await model.complete(messages, schema=prompt.schema)
            except SeatrialError as error:
                vote.problem = str(error)
                return vote
            vote.asked.append(answer)
            try:
                vote.ballot = self._read(answer.text)
            except SeatrialError as error:
                vote.problem = f"{'after a repair, ' if last else ''}the model's answer cannot be used: {error}"
                repair = f"That cannot be used: {error}. Answer again, with the JSON object and nothing else."
                messages += [
                    {"role": "assistant", "content": answer.text[:MAX_RAW]},
                    {"role": "user", "content": repair},
                ]
                continue
            vote.problem = None
            vote.score = self._score(vote.ballot)
            break
        return vote

    def _read(self, text: str) -> Ballot:
        try:
            ballot = msgspec.convert(json_of(text, fenced=True), Ballot)
        except msgspec.ValidationError as error:
            raise wire.invalid_document(error) from None
        unanswered = [
            f"c{number} ({criterion.name})"
            for number, criterion in enumerate(self.criteria, 1)
            if f"c{number}" not in ballot.criteria
        ]
        if unanswered:
            raise SeatrialError("invalid_document", f"not every criterion is answered: {', '.join(unanswered)} missing")
        asked = {f"c{number}" for number in range(1, len(self.criteria) + 1)}
        if unknown := [name for name in ballot.criteria if name not in asked]:
            raise SeatrialError("invalid_document", f"nobody asked for the criterion {unknown[0][:40]!r}")
        if (key := key_twice(json_text(text, fenced=True).removeprefix("\ufeff"))) is not None:
            raise SeatrialError(
                "invalid_document", f"the key {key[:40]!r} occurs twice, and which one counts is not known"
            )
        named = (ballot.failure_mode or "").strip().casefold()
        if named not in _NO_FAILURE and reaches(self._score(ballot), 1.0):
            problem = f"nothing is wrong by `outcome_met` and the scores, and `failure_mode` names {named[:60]!r}"
            raise SeatrialError("invalid_document", f"the answer contradicts itself: {problem}")
        return ballot

    def _score(self, ballot: Ballot) -> float:
        if not ballot.outcome_met:
            return 0.0
        if not self.criteria:
            return 1.0
        total = fsum([criterion.weight for criterion in self.criteria])
        gained = [
            criterion.weight * ballot.criteria[f"c{number}"].score for number, criterion in enumerate(self.criteria, 1)
        ]
        return min(fsum(gained) / total, 1.0)

    @property
    def _bar(self) -> float:
        """What a vote for the run has to reach."""
        return PASS_SCORE if self.min_score is None else self.min_score

    def _told(self, votes: list[Vote]) -> list[JudgeVote]:
        """The votes as they are kept."""
        return [
            JudgeVote(problem=(vote.problem or "")[:MAX_RAW])
            if vote.ballot is None or vote.problem is not None
            else JudgeVote(
                passed=reaches(vote.score, self._bar),
                score=vote.score,
                outcome_met=vote.ballot.outcome_met,
                criteria={
                    criterion.name: CriterionScore(found.score, found.reason[:MAX_RAW])
                    for number, criterion in enumerate(self.criteria, 1)
                    if (found := vote.ballot.criteria[f"c{number}"])
                },
                failure_mode=None if vote.ballot.failure_mode is None else vote.ballot.failure_mode[:200],
                reasoning=vote.ballot.reasoning[:MAX_RAW],
            )
            for vote in votes
        ]

    def _count(self, votes: list[Vote], known: set[str], judge: JudgedBy) -> Finding:
        """What the votes come to, when each has a ballot."""
        bar = self._bar
        ballots = [vote.ballot for vote in votes if vote.ballot is not None]
        in_favour = [reaches(vote.score, bar) for vote in votes]
        count = sum(in_favour)
        told = self._told(votes)
        passed = 2 * count > len(votes)
        if 2 * count == len(votes):
            # No majority for either side. It must not fail: whatever this judge is a part of may be negated.
            reason = f"a tie: {count} of {len(votes)} votes for the run (a vote needs {bar:g}), so neither side has it"
            judge.agreement = 0.5
            return Finding(outcome="errored", reasons=[reason], details=JudgeDetails(votes=told, judge=judge))
        score = min(fsum([vote.score for vote in votes]) / len(votes), 1.0)
        # The first ballot of the majority speaks for it.
        speaker = ballots[in_favour.index(passed)]
        judge.agreement = max(count, len(votes) - count) / len(votes)
        said = list(dict.fromkeys(pointer for ballot in ballots for pointer in ballot.evidence))
        evidence = [pointer for pointer in said if pointer in known]
        subscores = {
            criterion.name: sum(ballot.criteria[f"c{number}"].score for ballot in ballots) / len(ballots)
            for number, criterion in enumerate(self.criteria, 1)
        }
        details = JudgeDetails(
            passed=passed,
            failure_mode=None if passed else speaker.failure_mode,
            subscores=subscores,
            reasoning=speaker.reasoning,
            evidence=evidence,
            votes=told,
            judge=judge,
        )
        if len(evidence) < len(said):
            details.unknown_evidence = [pointer[:200] for pointer in said if pointer not in known][:20]
        reasons = [f"{count} of {len(votes)} votes for the run (a vote needs {bar:g}); mean score {score:.3g}"]
        if self.criteria:
            met = sum(ballot.outcome_met for ballot in ballots)
            parts = [f"{item.name} {subscores[item.name]:.3g} x {item.weight:g}" for item in self.criteria]
            reasons.append(f"outcome right in {met} of {len(votes)}; {', '.join(parts)}")
        if not passed and speaker.failure_mode:
            reasons.append(f"failure mode: {speaker.failure_mode[:200]}")
        reasons.append(speaker.reasoning[:MAX_RAW])
        return Finding(
            outcome="passed" if passed else "failed", score=score, reasons=reasons, evidence=evidence, details=details
        )


_NO_FAILURE = frozenset({"", "none", "null", "n/a", "na", "no_failure", "-"})
"""How models write that there is no failure mode, where they do not write null."""


def _pointers(subject: Subject) -> set[str]:
    messages = [] if subject.run.reading is None else subject.run.reading.transcript.messages
    return {
        "/answer",
        *(f"/messages/{index}" for index in range(len(messages))),
        *(f"/steps/{index}" for index in range(len(subject.run.steps))),
    }
