"""`contract`: whether the answer keeps what an agent behind the dispatch contract promises."""

from __future__ import annotations

from typing import ClassVar

from seatrial.formats.contract import ResponseMode, Strictness, check
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, listed


class Contract(Grader):
    """Whether the response has what its `response_mode` asks for."""

    kind: ClassVar[str] = "contract"

    response_mode: ResponseMode
    """`thin`: a final response. `rich`: messages too, with at least one assistant text."""
    strictness: Strictness = "strict"
    """Whether missing messages fail the check, or are only noted."""

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            if subject.run.reading is None:
                return errored("the run has no answer that could be read")
            report = check(subject.run.reading, self.response_mode, self.strictness)
            told = [f"{note.code}: {note.message}" for note in report.notes]
            reasons = [f"response_mode {self.response_mode}, strictness {self.strictness}: {report.message}"]
            return Finding(
                outcome="passed" if report.ok else "failed",
                reasons=[*reasons, f"notes: {listed(told)}"] if told else reasons,
                evidence=["/answer"] if report.violation == "agent_bad_response" else [],
                details=report,
            )

        return Check(find)
