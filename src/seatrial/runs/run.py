"""The record of a run."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.events.types import RunStatus
from seatrial.formats.reading import Reading
from seatrial.ledger.record import WorldRecord
from seatrial.runs.fault import Fault
from seatrial.runs.verdict import Grade, Outcome, Verdict
from seatrial.runs.workspace import WorkspaceDiff
from seatrial.trajectory.calls import Calls
from seatrial.trajectory.completeness import NO_ANSWER_TO_READ, Completeness, known_calls
from seatrial.trajectory.step import Step
from seatrial.transcript import Note, Transcript


class RunKey(msgspec.Struct, frozen=True, order=True, tag_field="kind", tag="case"):
    """Which run of an experiment this is; unique in it."""

    agent: str
    case_id: str
    trial: int
    """Counts repeats of the same case, from 1."""


class ServedKey(msgspec.Struct, frozen=True, tag_field="kind", tag="served"):
    """Which agent a run of the run service asked, and in which conversation. Such a run has no case and no trial."""

    agent: str
    thread_id: str


class Attempt(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One try at an exchange. Every one is kept."""

    number: int
    """From 1 in its exchange; a later one exists only after an infrastructure fault."""
    started_at: int
    """Milliseconds since the epoch."""
    duration_ms: float
    """By the monotonic clock, so that it is never negative."""
    fault: Fault | None = None
    observed_calls: int = 0
    """Calls that went through the tool proxy."""
    http_status: int | None = None
    body_hash: str | None = None
    """Content address of what the agent sent, verbatim."""
    body_bytes: int | None = None
    called: list[str] = []
    """Tools that the agent said it had called before a fault ended the attempt, the first of them, and "?" for what may
    be a call and could not be read; only where another attempt followed, and the run has the calls of its last one."""


class Exchange(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One request to the agent, and its reply, within a run."""

    number: int
    """From 1."""
    attempts: list[Attempt] = []
    """In order. The last one brought the reply, if there was any."""


class Run(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One execution by one agent, of a case of an experiment or for the run service: what graders, stores and reports
    work on."""

    run_id: str
    experiment_id: str | None = None
    """None for a run of the run service, which belongs to no experiment."""
    key: RunKey | ServedKey
    status: RunStatus
    reading: Reading | None = None
    """The transcript with its notes; None when there was no answer to read."""
    unread_notes: list[Note] = []
    """The notes of a run without a reading, which has none to keep them in."""
    body: bytes | None = None
    """What the agent sent, verbatim, in the last attempt."""
    steps: list[Step] = []
    """The calls that count: those that our tool proxy observed (`source: observed`), and those that the agent reports
    besides, unless it has no other tools."""
    steps_source: str | None = None
    reported: list[Step] | None = None
    """The calls as the agent reports them, where our tool proxy observed calls too; None where it did not."""
    completeness: Completeness | None = None
    """What is known of the agent's calls; None when there was no answer to read, or nobody had worked it out yet."""
    exchanges: list[Exchange] = []
    """In order; a run has one, as long as there are no conversations. None when nobody knows of its attempts."""
    fault: Fault | None = None
    verdicts: list[Verdict] = []
    grade: Grade | None = None
    started_at: int | None = None
    duration_ms: float | None = None
    metadata: dict[str, Any] = {}
    diff: WorkspaceDiff | None = None
    """What the agent changed in its workspace; None when it had none."""
    world: WorldRecord | None = None
    """What its calls did to the world; None when it had none."""

    @property
    def answer(self) -> str | None:
        """The agent's answer; None when there is none."""
        return None if self.reading is None else self.reading.transcript.final_text()

    @property
    def transcript(self) -> Transcript | None:
        """What was said; None when there was no answer to read."""
        return None if self.reading is None else self.reading.transcript

    @property
    def notes(self) -> list[Note]:
        """What had to be dropped, guessed or repaired in what the agent sent."""
        return self.unread_notes if self.reading is None else self.reading.notes

    @property
    def calls(self) -> Calls[Step]:
        """The agent's calls, in order. Unlike `steps`, it raises where something depends on calls that are unknown."""
        if self.reading is None and self.completeness is None:
            text = "the run has no answer, so nothing is known of the calls that it may have made"
            known = Completeness("none", reasons=[Note(NO_ANSWER_TO_READ, "", text)])
        else:
            known = known_calls(self.completeness, self.steps_source)
        return Calls([step for step in self.steps if step.executed_by != "user"], known)

    @property
    def cost(self) -> float | None:
        """What the agent says that it cost, in US dollars; None when it does not say."""
        return None if self.reading is None else self.reading.transcript.cost_usd

    @property
    def outcome(self) -> Outcome | None:
        """What the graders say in one word; None when it was not graded."""
        return None if self.grade is None else self.grade.outcome

    @property
    def agent(self) -> str:
        """The name of its agent."""
        return self.key.agent

    @property
    def case_id(self) -> str | None:
        """The case that it is a run of; None for a run of the run service."""
        return self.key.case_id if isinstance(self.key, RunKey) else None

    @property
    def trial(self) -> int | None:
        """Which repeat of its case it is; None for a run of the run service."""
        return self.key.trial if isinstance(self.key, RunKey) else None

    @property
    def errored(self) -> bool:
        """Whether it failed through no fault of the agent's: there is no answer, and nothing to judge."""
        return self.status == "failed" and self.fault is not None and self.fault.blame != "agent"

    @property
    def attempts(self) -> list[Attempt]:
        """Those of all exchanges, in order."""
        return [attempt for exchange in self.exchanges for attempt in exchange.attempts]

    @property
    def earlier_attempts(self) -> list[Attempt]:
        """Those that another attempt at the same exchange followed: a fault ended them."""
        return [attempt for exchange in self.exchanges for attempt in exchange.attempts[:-1]]

    @property
    def has_uncounted_attempts(self) -> bool:
        """Whether attempts before the last one may have used up money and tokens, of which nothing is known."""
        return any(attempt.fault is not None and not attempt.fault.before_agent for attempt in self.earlier_attempts)

    @property
    def observed(self) -> list[Step]:
        """The steps that went through our tool proxy."""
        return [step for step in self.steps if step.source == "observed"]


class Experiment(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One execution of a suite."""

    experiment_id: str
    name: str
    suite: dict[str, Any]
    """The suite as it was run, secrets left as `${NAME}`."""
    suite_hash: str
    """The content of the suite but its agents: where two experiments have the same, their results can be compared."""
    created_at: int
    finished_at: int | None = None
    status: Literal["running", "finished", "stopped"] = "running"
    """`stopped`: ended before all was run, by Ctrl-C or a budget; can be resumed."""
    stop_reason: str | None = None
    version: str = ""
    """The Seatrial version that ran it."""
    notes: dict[str, list[Note]] = {}
    """What an agent said that belongs to no run, by the agent's name."""
    selected: dict[str, list[str]] | None = None
    """Ids of the cases that each agent runs, where these are not all: an agent that is not named runs none."""

    def planned_runs(self, cases: int) -> int:
        """How many runs it has in all, with this many cases."""
        trials: int = self.suite.get("trials", 1)
        if self.selected is not None:
            return trials * sum(len(chosen) for chosen in self.selected.values())
        return trials * len(self.suite.get("agents", ())) * cases
