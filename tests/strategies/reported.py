"""Rows that are good enough to be reported, in as few words as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from seatrial.reports.findings import RunFinding
from seatrial.reports.report import Report, report_on
from seatrial.reports.rows import (
    CallLine,
    CompletenessLine,
    CountedRows,
    NoteCount,
    NoteLine,
    ReportSource,
    RunDetail,
    RunRow,
    SpeechLine,
    VerdictLine,
)
from seatrial.reports.votes import CriterionLine, JudgeLine, VoteLine
from seatrial.runs import Experiment
from seatrial.store import CaseTags, GraderCounts, NoteCounts, NoteTotals, StoredOutcome
from seatrial.trajectory.completeness import Basis, Level
from seatrial.trajectory.step import Source
from seatrial.transcript import Note

CREATED_AT = 1_790_000_000_000

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]><!-- --><evil/>",
    "\x1b[31mred\x1b[0m\x07\x00",
    "right\u202eto left\u200b",
    '=HYPERLINK("http://evil.example","click")',
    "@everyone #1 [link](http://evil.example) ![i](x) `code` **bold** | cell | https://evil.example",
    "two\nlines\r\nand | a pipe",
    "\ud800 lone \ufffe\uffff",
    "</code></pre></td></table>",
    "'\" onmouseover=alert(1) x='",
    "```\n````\nfence",
]
"""What an agent may say, to make a report say something else."""

COMPLETE = CompletenessLine("complete", "reported", "messages", ["messages"], [], 0)


def incomplete(level: Level, *reasons: NoteLine, omitted: int = 0) -> CompletenessLine:
    """What is known of the calls of a run whose messages were not all read."""
    source: Source | None = "messages" if level == "partial" else None
    basis: Basis | None = "reported" if level == "partial" else None
    return CompletenessLine(level, basis, source, [source] if source else [], list(reasons), omitted)


LETTERS: dict[str, StoredOutcome] = {
    "p": "passed",
    "f": "failed",
    "e": "errored",
    "s": "skipped",
    "c": "cancelled",
    "u": "unfinished",
    "g": "ungraded",
}


def row(case_id: str = "case-0", outcome: StoredOutcome = "passed", **fields: Any) -> RunRow:
    """A run of the agent `crew`."""
    agent = fields.setdefault("agent", "crew")
    trial = fields.setdefault("trial", 1)
    given: dict[str, Any] = {
        "run_id": f"run-{agent}-{case_id}-{trial}",
        "case_id": case_id,
        "outcome": outcome,
        "status": {"errored": "failed", "cancelled": "cancelled"}.get(outcome, "completed"),
        "score": {"passed": 1.0, "failed": 0.25}.get(outcome),
        "error_class": "agent_unreachable" if outcome == "errored" else None,
        "started_at": CREATED_AT,
        "duration_ms": 120.0,
        "steps": 2,
        "calls": "complete",
        "completeness": COMPLETE,
    }
    if outcome == "errored":
        given |= {"steps": None, "calls": None, "completeness": None}
    return RunRow(**{**given, **fields})


def rows_of(**agents: str) -> list[RunRow]:
    """`crew="p f pf"`: a word for each case, a letter for each trial."""
    words = {agent: text.split() for agent, text in agents.items()}
    return [
        row(f"case-{index}", LETTERS[letter], agent=agent, trial=trial)
        for index in range(max(map(len, words.values()), default=0))
        for agent, cases in words.items()
        if index < len(cases)
        for trial, letter in enumerate(cases[index], 1)
    ]


def detail(text: str = "they part at step 1") -> RunDetail:
    """Everything that a detail can have, with the same text everywhere."""
    return RunDetail(
        message=text,
        sentence=text,
        findings=[RunFinding(kind="trajectory", title=text, sentence=text, place="/steps/1", grader=text)],
        instruction=text,
        answer=text,
        fault_detail=text,
        verdicts=[
            VerdictLine(
                grader=text,
                kind="tool_trajectory",
                outcome="failed",
                score=0.5,
                required=True,
                reasons=[text],
                calls=[
                    CallLine("differs", text, text, [text]),
                    CallLine("missing", text),
                    CallLine("extra", None, text),
                ],
                judges=[
                    JudgeLine(
                        grader=text,
                        model=text,
                        asked=2,
                        votes=[
                            VoteLine(
                                passed=False,
                                score=0.5,
                                outcome_met=False,
                                criteria=[CriterionLine(text, 0.5, text)],
                                failure_mode=text,
                                reasoning=f"{text} again",
                            ),
                            VoteLine(problem=text),
                        ],
                    )
                ],
            )
        ],
        speech=[
            SpeechLine("user", "text", text, given=True),
            SpeechLine(text, "result", text, message=1, notes=[NoteLine(text, "look", text, text)]),
        ],
        speech_left_out=3,
    )


def source(
    rows: Sequence[RunRow],
    *,
    name: str = "refunds",
    experiment_id: str = "exp-1",
    suite_hash: str = "5u17e",
    graders: list[GraderCounts] | None = None,
    note_totals: NoteTotals | None = None,
    errored_with_failure: dict[str, int] | None = None,
    planned: int | None = None,
    tags: Mapping[str, Sequence[str]] | None = None,
    **fields: Any,
) -> ReportSource:
    """An experiment that has these rows, of cases with these tags."""
    tagged = {case_id: tuple(of_case) for case_id, of_case in (tags or {}).items() if of_case}
    for each in rows:
        each.tags = tagged.get(each.case_id, ())
    cases = len({each.case_id for each in rows} | set(tags or {}))
    experiment = Experiment(
        experiment_id=experiment_id,
        name=name,
        suite={},
        suite_hash=suite_hash,
        created_at=CREATED_AT,
        finished_at=CREATED_AT + 83_000,
        **{"status": "finished", **fields},
    )

    def given(
        *,
        agent: str | None = None,
        detailed: bool = False,
        outcomes: frozenset[StoredOutcome] = frozenset(),
        run_ids: frozenset[str] = frozenset(),
    ) -> Iterator[RunRow]:
        found = (row for row in rows if agent is None or row.agent == agent)
        found = (row for row in found if not outcomes or row.outcome in outcomes)
        return (row for row in found if not run_ids or row.run_id in run_ids)

    return ReportSource(
        experiment,
        given,
        CountedRows(given),
        graders or [],
        note_totals or NoteTotals(),
        errored_with_failure or {},
        planned,
        tags=lambda: CaseTags(tagged, cases),
    )


def report(rows: Sequence[RunRow], **fields: Any) -> Report:
    """A report on these rows."""
    return report_on(source(rows, **fields))


def hostile_report(text: str) -> Report:
    """A report in which everything that is not ours says this."""
    noted: dict[str, Any] = {
        "calls": "partial",
        "completeness": incomplete("partial", NoteLine(text, "serious", text, text)),
        "notes": [NoteLine(text, "serious", text, text), NoteLine(text, "look", text, text)],
        "note_counts": [NoteCount(text, "serious", 20), NoteCount(text, "look", 1)],
    }
    rows = [
        row(text, "failed", agent=text, run_id=f"{text}1", detail=detail(text), **noted),
        row(text, "errored", agent=text, run_id=f"{text}2", trial=2, detail=detail(text)),
        row(text, "passed", agent=text, run_id=f"{text}3", trial=3, **noted),
        row(text, "skipped", agent=text, run_id=f"{text}4", trial=4, detail=detail(text)),
    ]
    graders = [GraderCounts(text, text, 0.5, {"failed": 1})]
    notes = {text: [Note(text, text, text)]}
    totals = NoteTotals([NoteCounts(text, text, "serious", 20, 2), NoteCounts(text, text, "look", 1, 2)], 2, 2)
    names = {"name": text, "experiment_id": text, "stop_reason": text, "version": text}
    return report(rows, graders=graders, notes=notes, note_totals=totals, tags={text: [text, f"{text}!"]}, **names)


def joined(pieces: Iterable[str]) -> str:
    """A document that comes in pieces."""
    return "".join(pieces)
