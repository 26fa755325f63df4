"""What an export says of its experiment as a whole, and of each run in a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice

import msgspec

from seatrial._support.printable import one_line
from seatrial.explorer import numbers
from seatrial.reports import figures
from seatrial.reports.figures import left_out_sentence, left_out_sentences
from seatrial.reports.html import PassRate, pass_rate_bar
from seatrial.reports.notes import notes_table, remarks, without_run
from seatrial.reports.report import UNPASSED, Alike, Report, headline, runs_alike
from seatrial.reports.rows import NoteLine, RunRow, matrix
from seatrial.reports.sentences import HeadSentence, experiment_sentence
from seatrial.reports.summary import AgentSummary
from seatrial.reports.tags import tag_remarks, tags_table
from seatrial.reports.terminal import agents_table, graders_table
from seatrial.runs import Experiment, Outcome
from seatrial.store import Cell, RunNotes, Store, StoredOutcome
from seatrial.transcript import Note

MAX_CAUSES = 50
MAX_WHY = 240
NOTES_AT_ONCE = 500
OTHERS: frozenset[StoredOutcome] = frozenset({"skipped", "ungraded", "cancelled", "unfinished"})


class OverviewTable(msgspec.Struct, frozen=True):
    """A table: its titles, and rows of a name, a drawn rate, and the other cells."""

    titles: list[str]
    rows: list[tuple[list[str], PassRate | None, list[str]]]


class OverviewCause(msgspec.Struct, frozen=True):
    """Runs that did not pass in the same way."""

    outcome: StoredOutcome
    count: int
    why: str
    first: str


class OverviewGrader(msgspec.Struct, frozen=True):
    """A grader, and what it said of each agent, with the class of the worst of it."""

    name: str
    cells: list[tuple[str, str]]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment at a glance. What is listed here in part is counted in full."""

    experiment: Experiment
    sentence: HeadSentence
    took: str
    tiles: list[tuple[str, str, str]]
    """Of each figure: the class, the name, the value."""
    banners: list[str]
    agents: OverviewTable
    cautions: list[tuple[str, str]]
    """What the rates of an agent leave out."""
    faults: list[tuple[str, list[tuple[str, str]]]]
    """Of each agent, how many runs had a fault of each class."""
    remarks: list[tuple[str, str]]
    tags: OverviewTable
    names: int
    """Columns of the table of tags that are names."""
    tag_remarks: list[str]
    causes: list[OverviewCause]
    more_causes: int
    grader_titles: list[str]
    graders: list[OverviewGrader]
    flaky: list[tuple[str, str, str]]
    flaky_cases: int
    notes: tuple[list[str], list[list[str]]]
    stray_notes: list[tuple[str, Sequence[NoteLine | Note], int]]

    @property
    def agent_names(self) -> list[str]:
        """The agents, as columns of the table of cases."""
        return [names[0] for names, _, _ in self.agents.rows]


class CaseCell(msgspec.Struct, frozen=True):
    """What an agent made of a case, in words and as a mark."""

    kind: str
    words: str
    remark: str = ""
    """What is unknown."""
    run: str | None = None
    """The run to look at."""


class CaseLine(msgspec.Struct, frozen=True):
    """A case, and a cell for each agent."""

    case_id: str
    cells: list[CaseCell]


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a line, with what it is searched and sorted by."""

    row: RunRow
    why: str
    chips: list[str]

    @property
    def kind(self) -> str:
        """Its mark."""
        return self.row.outcome

    @property
    def tags(self) -> str:
        """Those of its case, a line each."""
        return "\n".join(self.row.tags)

    @property
    def values(self) -> dict[str, object]:
        """Figures that are known; none of those that are not."""
        row = self.row
        of = {"score": row.score, "steps": row.steps, "duration": row.duration_ms, "cost": row.cost_usd}
        return {"trial": row.trial, **{name: value for name, value in of.items() if value is not None}}

    @property
    def figures(self) -> list[str]:
        """Score, steps, duration and cost, as they are read."""
        row = self.row
        steps = numbers.UNKNOWN if row.steps is None else numbers.count(row.steps)
        if row.steps is not None and row.calls_incomplete:
            steps = f"≥ {steps}"
        return [numbers.score(row.score), steps, numbers.duration(row.duration_ms), numbers.money(row.cost_usd)]


def overview(report: Report) -> Overview:
    """The head of an export."""
    experiment, summary = report.experiment, report.summary
    titles, rows = agents_table(report)
    rate = titles.index("pass rate") if "pass rate" in titles else 0
    others = [at for at in range(1, len(titles)) if at != rate]
    # The worst first; what its rate leaves out cannot make an agent better.
    paired = sorted(zip(rows, summary.agents, strict=True), key=lambda pair: _badness(pair[1]))
    agents = [agent for _, agent in paired]
    groups = [group for group in runs_alike(report.rows, UNPASSED) if group.outcome in UNPASSED]
    causes = [*_causes(report, groups[:MAX_CAUSES])] if groups else []
    tag_titles, tag_rows = tags_table(report.by_tag)
    names = 2 if "agent" in tag_titles else 1
    tag_rate = tag_titles.index("pass rate") if tag_rows else 0
    tag_others = [at for at in range(names, len(tag_titles)) if at != tag_rate]
    grader_titles, grader_rows = graders_table(report)
    took = "" if report.duration_ms is None else figures.duration(report.duration_ms)
    return Overview(
        experiment=experiment,
        sentence=experiment_sentence(summary.agents, running=experiment.status == "running"),
        took=took,
        tiles=[*_tiles(report)],
        banners=[*_banners(report)],
        agents=OverviewTable(
            [titles[0], titles[rate], *(titles[at] for at in others)],
            [
                (
                    [row[0]],
                    pass_rate_bar(agent.pass_rate, agent.interval, left_out_sentence(agent)),
                    [row[rate], *(row[at] for at in others)],
                )
                for row, agent in paired
            ],
        ),
        cautions=[*left_out_sentences(agents)],
        faults=[
            (agent.agent, [(name, f"{number:,}") for name, number in agent.error_classes.items()])
            for agent in agents
            if agent.error_classes
        ],
        remarks=[(agent.agent, remark) for agent in agents if (remark := remarks(agent))],
        tags=OverviewTable(
            [*tag_titles[:names], tag_titles[tag_rate], *(tag_titles[at] for at in tag_others)] if tag_rows else [],
            [
                (
                    row[:names],
                    pass_rate_bar(found.pass_rate, found.interval, None),
                    [row[tag_rate], *(row[at] for at in tag_others)],
                )
                for row, found in zip(tag_rows, report.by_tag.rows, strict=True)
            ],
        ),
        names=names,
        tag_remarks=[*tag_remarks(report.by_tag)],
        causes=causes,
        more_causes=max(0, len(groups) - len(causes)) if causes else 0,
        grader_titles=grader_titles,
        graders=[*_graders(report, grader_titles[1:], grader_rows)] if report.graders else [],
        flaky=[(case.agent, case.case_id, f"{case.passed} of {case.graded}") for case in summary.flaky],
        flaky_cases=summary.flaky_cases,
        notes=notes_table(report, harmless=True),
        stray_notes=[*without_run(report)],
    )


def _tiles(report: Report) -> Iterator[tuple[str, str, str]]:
    summary = report.summary
    incomplete = sum(agent.incomplete for agent in summary.agents)
    for kind, name, number, always in (
        ("", "runs", summary.runs, True),
        ("passed", "passed", summary.passed, True),
        ("failed", "failed", summary.failed, True),
        ("errored", "errored", summary.errored, True),
        ("", "skipped or unfinished", summary.other, False),
        ("", "cases", summary.cases, True),
        ("errored", "flaky cases", summary.flaky_cases, summary.trials > 1),
        ("errored", "calls not all known", incomplete, False),
        ("errored", "with notes to look at", report.notes.runs, False),
    ):
        if number or always:
            # A count of nothing bad needs no alarming colour.
            yield kind if number else "", name, f"{number:,}"


def _banners(report: Report) -> Iterator[str]:
    if report.experiment.stop_reason:
        yield f"{report.stopped.capitalize()}: {report.experiment.stop_reason}"
    elif report.lost is not None:
        yield report.lost.capitalize()
    elif report.progress is not None:
        yield f"{report.experiment.status.capitalize()}: {report.progress} so far"


def _badness(agent: AgentSummary) -> tuple[float, float]:
    return (2.0 if agent.pass_rate is None else agent.pass_rate, agent.rate_of_all or 0.0)


def _causes(report: Report, groups: Sequence[Alike]) -> Iterator[OverviewCause]:
    """Why runs did not pass, each way once."""
    wanted = frozenset(group.first for group in groups)
    first = {row.run_id: row for row in report.rows(detailed=True, run_ids=wanted)}
    for group in groups:
        if group.first in first:
            yield OverviewCause(
                group.outcome, group.count, one_line(headline(first[group.first]), MAX_WHY), group.first
            )


def _graders(report: Report, agents: Sequence[str], rows: Iterable[list[str]]) -> Iterator[OverviewGrader]:
    counted = {(counts.grader, counts.agent): counts.outcomes for counts in report.graders}
    for row in rows:
        found = [counted.get((row[0], agent), {}) for agent in agents]
        yield OverviewGrader(row[0], [(_worst(each), cell) for each, cell in zip(found, row[1:], strict=True)])


def _worst(outcomes: Mapping[Outcome, int]) -> str:
    words: tuple[Outcome, ...] = ("failed", "errored", "passed")
    return next((word for word in words if outcomes.get(word)), "f")


def case_lines(report: Report, agents: Sequence[str]) -> Iterator[CaseLine]:
    """Every case, in the order of the suite."""
    for case_id, cells in matrix(report.rows()):
        yield _case_line(case_id, cells, agents)


def worst_cases(report: Report, agents: Sequence[str], limit: int) -> list[CaseLine]:
    """The cases that not all agents passed every time, the worst first."""
    bad = (found for found in matrix(report.rows()) if not _all_passed(found[1], agents))
    worst = nsmallest(limit, bad, key=lambda found: _case_badness(found[1], agents))
    return [_case_line(case_id, cells, agents) for case_id, cells in worst]


def bad_cases(report: Report, agents: Sequence[str]) -> tuple[int, int]:
    """How many cases there are, and how many of them not all agents passed every time."""
    found = [_all_passed(cells, agents) for _, cells in matrix(report.rows())]
    return len(found), found.count(False)


def _case_line(case_id: str, cells: Mapping[str, Cell], agents: Sequence[str]) -> CaseLine:
    return CaseLine(case_id, [case_cell(cells.get(agent)) for agent in agents])


def _all_passed(cells: Mapping[str, Cell], agents: Sequence[str]) -> bool:
    if len(cells) < len(agents):
        return False
    return not any(cell.failed or cell.errored or cell.other for cell in cells.values())


def _case_badness(cells: Mapping[str, Cell], agents: Sequence[str]) -> tuple[float, int]:
    """The share of graded runs that passed, over all agents; then how many passed at all."""
    passed = sum(cell.passed for cell in cells.values())
    graded = sum(cell.graded for cell in cells.values())
    missing = sum(cell.errored + cell.other for cell in cells.values()) + len(agents) - len(cells)
    if not graded:
        return 0.5, -missing
    failed = any(cell.failed for cell in cells.values())
    # A case that nobody failed is behind those that somebody did.
    return passed / graded if failed else 1.0, -missing


def case_cell(cell: Cell | None) -> CaseCell:
    """A cell of the table of cases. Passed is only what passed every time: a run without a verdict did not."""
    if cell is None:
        return CaseCell("unrun", "not run")
    if cell.flaky:
        kind = "flaky"
    elif cell.failed:
        kind = "failed"
    elif cell.errored:
        kind = "errored"
    else:
        kind = "ungraded" if cell.other else "passed"
    run = cell.failed_run
    if cell.graded:
        words = kind if cell.runs == 1 else f"{cell.passed}/{cell.graded}"
        words += " passed" if cell.runs > 1 and kind in ("errored", "ungraded") else ""
        words += f" · {cell.errored} errored" if cell.errored else ""
        words += f" · {cell.other} not graded" if cell.other else ""
    else:
        words = "errored" if cell.errored else "not graded"
    if cell.errored:
        run = run or cell.errored_run
    remark = ""
    if cell.incomplete:
        remark = f"{'calls' if cell.runs == 1 else f'calls of {cell.incomplete}'} not all known"
        run = run or (cell.passed_run if cell.incomplete == cell.runs else None)
    return CaseCell(kind, words, remark, run or cell.passed_run)


def ordered_rows(store: Store, report: Report) -> Iterator[tuple[RunRow, list[str]]]:
    """Every run with what must be known of its record: what failed first, then what errored, what was not judged, what
    passed although its record needs a look, and what passed."""
    unpassed = chain.from_iterable(
        report.rows(outcomes=outcomes)
        for outcomes in (frozenset[StoredOutcome]({"failed"}), frozenset[StoredOutcome]({"errored"}), OTHERS)
    )
    for row, chips in _with_chips(store, unpassed):
        yield row, chips
    for looked_at in (True, False):
        for row, chips in _with_chips(store, report.rows(outcomes=frozenset({"passed"}))):
            if bool(chips) is looked_at:
                yield row, chips


def _with_chips(store: Store, rows: Iterable[RunRow]) -> Iterator[tuple[RunRow, list[str]]]:
    remaining = iter(rows)
    while some := list(islice(remaining, NOTES_AT_ONCE)):
        notes = store.run_notes([row.run_id for row in some], limit=1)
        for row in some:
            yield row, [*_chips(row, notes.get(row.run_id))]


def _chips(row: RunRow, notes: RunNotes | None) -> Iterator[str]:
    if row.calls_incomplete:
        yield "calls not all known" if row.calls == "partial" else "calls unknown"
    counts = {} if notes is None else notes.counts
    for weight, noun, after in (("serious", "serious note", ""), ("look", "note", " to look at")):
        number = sum([count for (_, found), count in counts.items() if found == weight])
        if number:
            yield f"{figures.plural(number, noun)}{after}"
