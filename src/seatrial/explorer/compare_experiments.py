"""The page of two experiments, or of two agents of one: which is better, how sure that is, and which cases moved.

The figures and the sentences are those of `seatrial compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
from markupsafe import Markup

from seatrial.errors import SeatrialError
from seatrial.explorer import numbers
from seatrial.explorer.plots.interval import interval_plot, rate_axis
from seatrial.explorer.render import address
from seatrial.reports import figures
from seatrial.reports.compare import (
    MAX_LISTED,
    CaseChange,
    Comparison,
    Side,
    agent_pairs,
    compare,
    refuse_itself,
)
from seatrial.reports.compare_text import (
    cautions,
    comparison_remarks,
    sides_table,
    suite_remarks,
    tag_remarks,
    tag_sentences,
    tag_table,
    why_left_out,
)
from seatrial.reports.sentences import HeadSentence, Tone, comparison_sentence, tone_of
from seatrial.reports.stored import NamedAgents, named_agents, stored
from seatrial.reports.stored_findings import StoredFailure, stored_failures
from seatrial.runs import Experiment
from seatrial.store import RunFilter, Store
from seatrial.store.filter import FilterTerm

ROWS = 50
"""Cases of a page."""
MAX_OTHERS = 30
"""Experiments that can be chosen in place of one."""
MAX_NAMED = 200
"""Cases of a folded list."""
MAX_TAGS = 30

MovedOrder: TypeAlias = Literal["change", "better", "score", "case"]
ORDERS: tuple[MovedOrder, ...] = ("change", "better", "score", "case")


class OtherSide(msgspec.Struct, frozen=True):
    """Something else that can be compared, and the page that does."""

    label: str
    href: str
    when: int | None = None
    current: bool = False


class ComparedExperiment(msgspec.Struct, frozen=True):
    """One of the two sides."""

    letter: str
    experiment: Experiment
    others: list[OtherSide]


class SideRow(msgspec.Struct, frozen=True):
    """The figures of a side."""

    letter: str
    agent: str
    experiment: Experiment
    rate: str
    plot: Markup
    cells: list[str]


class MovedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that one side passes more often."""

    change: CaseChange
    worse: bool
    difference: str
    score: str
    failure: StoredFailure | None
    """Why the failed one of the two runs failed; None where there is no such run."""
    failed_run: str | None
    href: str
    compare: str | None


class CompareExperimentsPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    title: str
    kind: str
    a: ComparedExperiment
    b: ComparedExperiment
    swapped: str
    pairs: list[OtherSide]
    """The agents that can be compared, where these are several."""
    problem: SeatrialError | None
    """Why there is nothing to compare."""
    comparison: Comparison | None
    sentence: HeadSentence | None
    tag_sentences: list[tuple[Tone, str]]
    warnings: list[str]
    remarks: list[str]
    columns: list[str]
    sides: list[SideRow]
    axis: tuple[str, str]
    tags: tuple[list[str], list[list[str]], list[str]]
    """Head, rows and remarks of the table of tags."""
    moved: list[MovedCase]
    matching: int
    """Cases that moved and match the filter."""
    unlisted: int
    """Cases that moved and are not in the list, whatever the filter."""
    first: int
    """Which of the matching ones the first of the list is, from 1."""
    before: str | None
    after: str | None
    orders: dict[str, str]
    """The address for each order."""
    order: MovedOrder
    unpaired: list[tuple[str, str]]
    """Cases that are left out, each with its page."""
    left_out: str
    """Why they are."""
    edited: list[tuple[str, str]]
    complaint: str | None


def compare_experiments_page(
    store: Store,
    a: str,
    b: str,
    terms: tuple[FilterTerm, ...] = (),
    *,
    query: str = "",
    order: MovedOrder = "change",
    after: str | None = None,
) -> CompareExperimentsPage:
    """Two experiments side by side; of the cases that moved, those behind the case `after`."""
    named_a, named_b = named_agents(store, a), named_agents(store, b)
    pairs: list[tuple[str, str]] = []
    comparison, problem = None, None
    try:
        pairs = agent_pairs(named_a.agents, named_b.agents)
        refuse_itself(named_a.experiment, named_b.experiment, pairs)
        comparison = _compared(store, named_a.experiment, named_b.experiment, *pairs[0])
    except SeatrialError as error:
        if error.code not in ("usage", "empty_input"):
            raise
        problem = error

    def link(**changed: object) -> str:
        given = {"a": a, "b": b, "q": query or None, "sort": None if order == "change" else order}
        return address("compare", **{**given, **changed})

    moved: list[CaseChange] = []
    if comparison is not None:
        moved = _ordered([*comparison.regressions, *comparison.improvements], order)
        moved = _matching(store, comparison, moved, terms) if terms else moved
    place = next((index for index, each in enumerate(moved) if each.case_id == after), None) if after else None
    start = 0 if place is None else place + 1
    shown = moved[start : start + ROWS]
    columns, sides, axis = _sides(comparison, named_a.experiment, named_b.experiment)
    names = _names(named_a, named_b, pairs[0] if pairs else None)
    warnings = [] if comparison is None else [*cautions(comparison), *suite_remarks(comparison)]
    return CompareExperimentsPage(
        title=" → ".join(names),
        kind="two agents"
        if named_a.experiment.experiment_id == named_b.experiment.experiment_id
        else "two experiments",
        a=_compared_experiment(store, "a", named_a, lambda other: address("compare", a=other, b=b)),
        b=_compared_experiment(store, "b", named_b, lambda other: address("compare", a=a, b=other)),
        swapped=link(a=b, b=a),
        pairs=_pairs(named_a, named_b, pairs),
        problem=problem,
        comparison=comparison,
        sentence=None if comparison is None else comparison_sentence(comparison, *names),
        tag_sentences=[] if comparison is None else [(tone_of(tag), text) for tag, text in tag_sentences(comparison)],
        warnings=warnings,
        remarks=[] if comparison is None else [text for text in comparison_remarks(comparison) if text not in warnings],
        columns=columns,
        sides=sides,
        axis=axis,
        tags=_tags(comparison),
        moved=[] if comparison is None else _moved(store, comparison, named_a, named_b, shown),
        matching=len(moved),
        unlisted=0 if comparison is None else comparison.worse + comparison.better - _listed(comparison),
        first=start + 1,
        before=None if not start else link(after=moved[start - ROWS - 1].case_id if start > ROWS else None),
        after=link(after=shown[-1].case_id) if start + ROWS < len(moved) else None,
        orders={each: link(sort=None if each == "change" else each) for each in ORDERS},
        order=order,
        unpaired=[] if comparison is None else _unpaired(store, comparison),
        left_out="" if comparison is None else why_left_out(comparison.left_out),
        edited=[]
        if comparison is None
        else [(case_id, _case_address(comparison.b, case_id)) for case_id in comparison.edited_cases[:MAX_NAMED]],
        complaint=f"No case “{after[:80]}” is in this list." if after and place is None else None,
    )


def _compared(store: Store, a: Experiment, b: Experiment, agent_a: str, agent_b: str) -> Comparison:
    # To look for damaged runs, all would be read.
    source_a = stored(store, a, checked=False)
    source_b = source_a if b.experiment_id == a.experiment_id else stored(store, b, checked=False)
    return compare(source_a, source_b, agent_a, agent_b, explained=False)


def _names(a: NamedAgents, b: NamedAgents, pair: tuple[str, str] | None) -> tuple[str, str]:
    """What the sides are called: by what is not the same of them."""
    if pair is None or (pair[0] == pair[1] and a.experiment.name != b.experiment.name):
        return a.experiment.name, b.experiment.name
    if a.experiment.experiment_id == b.experiment.experiment_id:
        return pair
    return f"{a.experiment.name}:{pair[0]}", f"{b.experiment.name}:{pair[1]}"


def _compared_experiment(
    store: Store, letter: str, named: NamedAgents, link: Callable[[str], str]
) -> ComparedExperiment:
    here = named.experiment
    agents = named.of_experiment
    others = [
        OtherSide(f"{agent} in {here.name}", link(f"{here.experiment_id}:{agent}"), here.created_at)
        for agent in (agents if len(agents) > 1 else ())
    ]
    agent = "" if named.all_agents else f":{named.agents[0]}"
    others += [
        OtherSide(each.name, link(f"{each.experiment_id}{agent}"), each.created_at)
        for each in store.experiments(MAX_OTHERS)
        if each.experiment_id != here.experiment_id
    ]
    return ComparedExperiment(letter, here, others)


def _pairs(a: NamedAgents, b: NamedAgents, pairs: Sequence[tuple[str, str]]) -> list[OtherSide]:
    if len(pairs) < 2:
        return []
    return [
        OtherSide(
            one if one == other else f"{one} → {other}",
            address("compare", a=f"{a.experiment.experiment_id}:{one}", b=f"{b.experiment.experiment_id}:{other}"),
            current=index == 0,
        )
        for index, (one, other) in enumerate(pairs)
    ]


def _sides(
    comparison: Comparison | None, a: Experiment, b: Experiment
) -> tuple[list[str], list[SideRow], tuple[str, str]]:
    """The table of both: its columns behind the pass rate, its rows, and the ends of the axis of its plots."""
    if comparison is None:
        return [], [], ("", "")
    titles, rows = sides_table(comparison)
    rate = titles.index("pass rate")
    others = [at for at in range(3, len(titles)) if at != rate]
    intervals = [side.summary.interval for side in (comparison.a, comparison.b)]
    axis = rate_axis([interval for interval in intervals if interval is not None])
    found = []
    for row, side, experiment in zip(rows, (comparison.a, comparison.b), (a, b), strict=True):
        summary = side.summary
        plot = interval_plot(
            summary.pass_rate,
            summary.interval,
            axis,
            words=f"pass rate {row[rate]}, 95% interval {figures.percent_range(summary.interval)}",
            tone="bad" if side is comparison.b and comparison.is_worse else "",
            lines=() if comparison.a.summary.pass_rate is None else (comparison.a.summary.pass_rate,),
        )
        found.append(SideRow(row[0], side.agent, experiment, row[rate], plot, [row[at] for at in others]))
    return [titles[at] for at in others], found, (numbers.percent(axis.low), numbers.percent(axis.high))


def _tags(comparison: Comparison | None) -> tuple[list[str], list[list[str]], list[str]]:
    if comparison is None:
        return [], [], []
    head, rows = tag_table(comparison)
    return head, rows[:MAX_TAGS], tag_remarks(comparison)


def _listed(comparison: Comparison) -> int:
    return min(comparison.worse, MAX_LISTED) + min(comparison.better, MAX_LISTED)


def _ordered(moved: list[CaseChange], order: MovedOrder) -> list[CaseChange]:
    if order == "case":
        return sorted(moved, key=lambda change: change.case_id)
    if order == "score":
        return sorted(moved, key=lambda change: (_score_change(change) is None, _score_change(change) or 0.0))
    # As they come: what fell most, then what rose, the most first.
    return sorted(moved, key=lambda change: change.difference < 0) if order == "better" else moved


def _score_change(change: CaseChange) -> float | None:
    return None if change.score_a is None or change.score_b is None else change.score_b - change.score_a


def _matching(
    store: Store, comparison: Comparison, moved: list[CaseChange], terms: tuple[FilterTerm, ...]
) -> list[CaseChange]:
    """Those of which a run of either side is one that is asked for."""
    if not moved:
        return moved
    cases = frozenset(change.case_id for change in moved)
    found: frozenset[str] = frozenset()
    for side in (comparison.a, comparison.b):
        where = RunFilter(cases=cases, agents=frozenset([side.agent]), terms=terms)
        found |= store.cases_with_runs(side.experiment_id, where)
    return [change for change in moved if change.case_id in found]


def _moved(
    store: Store, comparison: Comparison, a: NamedAgents, b: NamedAgents, shown: Sequence[CaseChange]
) -> list[MovedCase]:
    failed = [(change.run_b, b) if change.difference < 0 else (change.run_a, a) for change in shown]
    failures: dict[str, StoredFailure] = {}
    for side in (a, b):
        some = frozenset(run_id for run_id, of in failed if of is side and run_id is not None)
        if some:
            experiment_id = side.experiment.experiment_id
            runs = store.runs(experiment_id, RunFilter(run_ids=some), limit=len(some))
            failures |= stored_failures(store, experiment_id, runs)
    found = []
    for change, (run_id, _) in zip(shown, failed, strict=True):
        worse = change.difference < 0
        score = _score_change(change)
        found.append(
            MovedCase(
                change=change,
                worse=worse,
                difference=numbers.change(change.difference),
                score="" if score is None else numbers.change(score),
                failure=failures.get(run_id or ""),
                failed_run=run_id,
                href=_case_address(comparison.b, change.case_id),
                compare=None
                if change.run_a is None or change.run_b is None
                else address("compare", "runs", a=change.run_a, b=change.run_b),
            )
        )
    return found


def _unpaired(store: Store, comparison: Comparison) -> list[tuple[str, str]]:
    some = comparison.unpaired_cases[:MAX_NAMED]
    where = RunFilter(cases=frozenset(some), agents=frozenset([comparison.b.agent]))
    in_b = store.cases_with_runs(comparison.b.experiment_id, where) if some else frozenset()
    return [(case_id, _case_address(comparison.b if case_id in in_b else comparison.a, case_id)) for case_id in some]


def _case_address(side: Side, case_id: str) -> str:
    return address("experiments", side.experiment_id, "cases", case_id, agents=side.agent)
