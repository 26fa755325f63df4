"""The page of two runs side by side: where they diverge, call by call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from seatrial.explorer import numbers
from seatrial.explorer.call_boxes import CallBox, call_box, call_line
from seatrial.explorer.plots.ribbon import RibbonBox, ribbon
from seatrial.explorer.render import address
from seatrial.reports.detail import summary_text
from seatrial.reports.run_diff import (
    FirstDivergence,
    VerdictChange,
    differing_verdicts,
    divergence_parts,
)
from seatrial.reports.stored_diff import NONE, AlignedRows, RowKind, aligned_rows, divergence_of, knows_all_calls
from seatrial.reports.text_diff import TextDiff, text_diff
from seatrial.reports.turns import StoredAnswer, Turn, last_turn, stored_answer, turn_before
from seatrial.runs import RunKey
from seatrial.store import RunFilter, RunRecord, RunSummary, Store, StoredStep
from seatrial.trajectory.comparison import call_differences
from seatrial.trajectory.completeness import known_calls, what_is_missing

ROWS = 100
"""Rows of a page: a stretch of equal calls is one, unless all are shown."""
MAX_OTHERS = 60
"""Other runs of a case that can be chosen."""
MAX_NAMES = 6
MAX_LISTED = 30
"""Equal calls that a folded stretch can list."""
MAX_UNFOLDED = 6
"""Equal calls that the ribbon shows one by one."""
MAX_BOXES = 40

Letter = Literal["a", "b"]


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    letter: str
    record: RunRecord
    experiment: str | None
    """The name of its experiment; None for a run of the run service."""
    others: list[tuple[RunSummary, str]]
    """Other runs of its case, each with the address of the page that has it in place of this one."""
    more: bool
    """Whether there are others that are not listed."""
    remark: str | None
    """What is not known of its calls."""

    @property
    def trial(self) -> int | None:
        """Which trial it is."""
        return self.record.key.trial if isinstance(self.record.key, RunKey) else None


class ComparedFigure(msgspec.Struct, frozen=True):
    """A figure of both runs."""

    label: str
    a: str
    b: str
    change: str = ""
    worse: bool = False


class CallRow(msgspec.Struct, frozen=True):
    """A call of one run beside the one of the other that goes with it."""

    row: int
    kind: RowKind
    name: str
    a: CallBox | None
    b: CallBox | None
    here: bool
    lacking: str
    """What stands in place of the call that one run has not."""


class EqualStretch(msgspec.Struct, frozen=True, kw_only=True):
    """Equal calls that follow each other, as one line."""

    row: int
    count: int
    title: str
    """`Steps 0 to 3 are equal`."""
    names: list[str]
    other_results: int
    """In how many of them the results differ."""
    slower: str
    """`B is 0.2 s slower in them`; "" where nobody knows."""
    listed: list[str]
    """The calls on a line each, of a short stretch."""
    here: bool
    unfolded: str
    """The address of the page that shows them all."""


class PriorThoughts(msgspec.Struct, frozen=True):
    """What both thought just before they diverge."""

    a: Turn | None
    b: Turn | None


class CompareRunsPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    title: str
    a: ComparedSide
    b: ComparedSide
    head: str
    rest: str
    remarks: list[str]
    diverge: bool
    figures: list[ComparedFigure]
    ribbon: object
    rows: list[CallRow | EqualStretch]
    divergence_row: int | None
    """The row before which the first divergence is announced."""
    thought: PriorThoughts | None
    show: str
    total: int
    """Rows in all."""
    first_row: int
    last_row: int
    before: str | None
    after: str | None
    """The addresses of the pages before and after this one."""
    answers: TextDiff | None
    answer_a: StoredAnswer | None
    answer_b: StoredAnswer | None
    changes_a: str | None
    changes_b: str | None
    """What each left changed in its workspace."""
    verdicts: list[VerdictChange]
    complaint: str | None
    """What is wrong with the place that was asked for."""
    swapped: str
    views: list[tuple[str, str, bool]]
    """The tabs: what each says, its address, and whether it is this one."""


def compare_runs_page(store: Store, a: str, b: str, at: str | None = None, show: str = "changes") -> CompareRunsPage:
    """Two stored runs side by side, from the place `at` on: `b/steps/4`, or `/steps/4` for the same."""
    record_a, record_b = store.run_record(a), store.run_record(b)
    rows = aligned_rows(store, record_a, record_b)
    found = divergence_of(store, record_a, record_b, rows)
    here = _row_at(rows, at)
    place = here or 0
    stretches = list(rows.stretches()) if show == "changes" else [(row, 1) for row in range(len(rows))]
    current = next((index for index, (first, count) in enumerate(stretches) if first <= place < first + count), 0)
    start = current - current % ROWS
    shown = stretches[start : start + ROWS]

    def link(row: int) -> str:
        return address("compare", "runs", a=a, b=b, at=_place(rows, row), show=None if show == "changes" else show)

    def nearest(row: int) -> str:
        return next((f"#r{first}" for first, count in shown if first <= row < first + count), None) or link(row)

    answer_a, answer_b = stored_answer(store, record_a), stored_answer(store, record_b)
    last_row = sum(shown[-1]) - 1 if shown else -1
    divergence_row = found.index if found.first is not None else None
    announced = shown and divergence_row is not None and shown[0][0] <= divergence_row <= last_row
    head, rest = divergence_parts(found, "A", "B")
    return CompareRunsPage(
        title=_title(record_a, record_b),
        a=_side(store, "A", record_a, b, a),
        b=_side(store, "B", record_b, a, b),
        head=head,
        rest=rest,
        remarks=list(_remarks(record_a, record_b, found, rows, answer_a, answer_b)),
        diverge=found.first is not None,
        figures=_figures(record_a, record_b),
        ribbon=_ribbon(
            rows,
            record_a,
            record_b,
            found,
            nearest,
            same_answer=None if answer_a is None and answer_b is None else _same(answer_a, answer_b),
        ),
        rows=_rows(store, record_a, record_b, rows, shown, here, a, b),
        divergence_row=divergence_row if announced else None,
        thought=_thought(store, record_a, record_b, found) if announced else None,
        show=show,
        total=len(rows),
        first_row=shown[0][0] if shown else 0,
        last_row=last_row,
        before=link(stretches[start - ROWS][0]) if start else None,
        after=link(stretches[start + ROWS][0]) if start + ROWS < len(stretches) else None,
        answers=None if answer_a is None or answer_b is None else text_diff(answer_a.text, answer_b.text),
        answer_a=answer_a,
        answer_b=answer_b,
        changes_a=None if record_a.diff is None else summary_text(record_a.diff),
        changes_b=None if record_b.diff is None else summary_text(record_b.diff),
        verdicts=differing_verdicts(record_a.verdicts, record_b.verdicts),
        complaint=None if at is None or here is not None else f"Neither run has a step “{at[:80]}”.",
        swapped=address("compare", "runs", a=b, b=a, at=_swapped(at), show=None if show == "changes" else show),
        views=[
            (
                label,
                address("compare", "runs", a=a, b=b, at=at, show=word),
                word == (None if show == "changes" else show),
            )
            for label, word in (("Changes", None), ("All", "all"))
        ],
    )


def _title(a: RunRecord, b: RunRecord) -> str:
    names = list(dict.fromkeys(_named(record) for record in (a, b)))
    return " and ".join(names)


def _named(record: RunRecord) -> str:
    return record.key.case_id if isinstance(record.key, RunKey) else f"thread {record.key.thread_id}"


def _same(a: StoredAnswer | None, b: StoredAnswer | None) -> bool:
    return (None if a is None else a.text) == (None if b is None else b.text)


def _remarks(
    a: RunRecord,
    b: RunRecord,
    found: FirstDivergence,
    rows: AlignedRows,
    answer_a: StoredAnswer | None,
    answer_b: StoredAnswer | None,
) -> list[str]:
    remarks = []
    if a.summary.run_id == b.summary.run_id:
        return ["Both sides are the same run."]
    if _named(a) != _named(b):
        remarks.append("These are runs of different cases: what they were asked for is not the same.")
    if found.first is not None and found.index:
        count = found.index
        remarks.append("The first step is equal." if count == 1 else f"The first {count:,} steps are equal.")
    if found.first is None and answer_a is not None and answer_b is not None:
        same = _same(answer_a, answer_b)
        remarks.append("Their answers are the same." if same else "Their answers differ.")
    if not rows.whole:
        remarks.append("The runs are so long that they were aligned in parts: more of their steps may be equal.")
    return remarks


def _side(store: Store, letter: str, record: RunRecord, other: str, own: str) -> ComparedSide:
    others: list[RunSummary] = []
    experiment = None
    if record.experiment_id is not None and isinstance(record.key, RunKey):
        experiment = store.resolve_experiment(record.experiment_id).name
        of_case = RunFilter(cases=frozenset([record.key.case_id]))
        others = store.runs(record.experiment_id, of_case, limit=MAX_OTHERS + 1)
    linked = []
    for run in others[:MAX_OTHERS]:
        if run.run_id != own:
            first, second = (run.run_id, other) if letter == "A" else (other, run.run_id)
            linked.append((run, address("compare", "runs", a=first, b=second)))
    return ComparedSide(
        letter=letter,
        record=record,
        experiment=experiment,
        others=linked,
        more=len(others) > MAX_OTHERS,
        remark=_unknown(letter, record),
    )


def _unknown(letter: str, record: RunRecord) -> str | None:
    """What is not known of the calls of a run, in a sentence."""
    if record.summary.status in ("pending", "running"):
        return f"{letter} is still running: these are its calls so far."
    if record.completeness is None and record.format is None:
        return f"{letter} gave no answer to read: the calls that it may have made are not known."
    if knows_all_calls(record):
        return None
    return f"{letter}: {what_is_missing(known_calls(record.completeness))}."


# Figures


def _figures(a: RunRecord, b: RunRecord) -> list[ComparedFigure]:
    one, other = a.summary, b.summary
    changed = differing_verdicts(a.verdicts, b.verdicts)
    graders = len({verdict.grader for verdict in (*a.verdicts, *b.verdicts)})
    worse = sum(
        each.verdict_a is not None
        and each.verdict_b is not None
        and (each.verdict_a.outcome, each.verdict_b.outcome) == ("passed", "failed")
        for each in changed
    )
    tokens_a, tokens_b = _tokens(one), _tokens(other)
    score_a, score_b = one.score, other.score
    return [
        ComparedFigure(
            "score",
            numbers.score(score_a),
            numbers.score(score_b),
            "" if score_a is None or score_b is None else numbers.change(score_b - score_a),
            score_a is not None and score_b is not None and score_b < score_a,
        ),
        ComparedFigure("steps", _steps(a), _steps(b), _steps_change(a, b)),
        ComparedFigure(
            "duration",
            numbers.duration(one.duration_ms),
            numbers.duration(other.duration_ms),
            _signed(one.duration_ms, other.duration_ms, numbers.duration),
        ),
        ComparedFigure(
            "tokens",
            numbers.UNKNOWN if tokens_a is None else numbers.count(tokens_a),
            numbers.UNKNOWN if tokens_b is None else numbers.count(tokens_b),
            _signed(tokens_a, tokens_b, lambda value: numbers.count(int(value))),
        ),
        ComparedFigure(
            "cost",
            numbers.money(one.cost_usd),
            numbers.money(other.cost_usd),
            _signed(one.cost_usd, other.cost_usd, numbers.money),
        ),
        ComparedFigure("graders that changed", "", f"{len(changed)} of {graders}", "", bool(worse)),
    ]


def _tokens(run: RunSummary) -> int | None:
    if run.input_tokens is None or run.output_tokens is None:
        return None
    return run.input_tokens + run.output_tokens


def _steps(record: RunRecord) -> str:
    steps = record.summary.steps
    if steps is None:
        return numbers.UNKNOWN
    return f"{'' if knows_all_calls(record) else '≥' + numbers.NBSP}{numbers.count(steps)}"


def _steps_change(a: RunRecord, b: RunRecord) -> str:
    if not (knows_all_calls(a) and knows_all_calls(b)):
        return ""
    return _signed(a.summary.steps, b.summary.steps, lambda value: numbers.count(int(value)))


def _signed(a: float | None, b: float | None, written: Any) -> str:
    if a is None or b is None:
        return ""
    return "0" if a == b else f"{'+' if b > a else '−'}{written(abs(b - a))}"


# Rows


def _row_at(rows: AlignedRows, at: str | None) -> int | None:
    """The row of a place: `/steps/4`, `b/steps/4` or `a/steps/4`; None where there is no such step."""
    side: Letter = "a" if (at or "").startswith("a/") else "b"
    step = (at or "").removeprefix(f"{side}/").removeprefix("/").removeprefix("steps/")
    return rows.row_of(side, int(step)) if step.isascii() and step.isdigit() and len(step) < 12 else None


def _place(rows: AlignedRows, row: int) -> str:
    return f"b/steps/{rows.b[row]}" if rows.b[row] != NONE else f"a/steps/{rows.a[row]}"


def _swapped(at: str | None) -> str | None:
    if at is None:
        return None
    return f"b{at[1:]}" if at.startswith("a/") else f"a/{at.removeprefix('b').lstrip('/')}"


def _rows(
    store: Store,
    a: RunRecord,
    b: RunRecord,
    rows: AlignedRows,
    shown: Sequence[tuple[int, int]],
    here: int | None,
    run_a: str,
    run_b: str,
) -> list[CallRow | EqualStretch]:
    wanted = [row for first, count in shown for row in ([first] if count == 1 else _listed(first, count))]
    of_a = _steps_of(store, run_a, [rows.a[row] for row in wanted])
    of_b = _steps_of(store, run_b, [rows.b[row] for row in wanted])
    found: list[CallRow | EqualStretch] = []
    for first, count in shown:
        if count > 1:
            found.append(_stretch(rows, first, count, here, of_b, run_a, run_b))
            continue
        one, other = of_a.get(rows.a[first]), of_b.get(rows.b[first])
        differing = [] if one is None or other is None else call_differences(one.step, other.step)
        kind = rows.kind(first)
        lacks, known = ("A", knows_all_calls(a)) if kind == "only_b" else ("B", knows_all_calls(b))
        name = rows.names[first]
        found.append(
            CallRow(
                row=first,
                kind=kind,
                name=name,
                a=None if one is None else call_box(one, [], differing),
                b=None if other is None else call_box(other, differing, differing),
                here=first == here,
                lacking=f"{lacks} does not call {name}" if known else f"no such call of {lacks} is known: {name}",
            )
        )
    return found


def _listed(first: int, count: int) -> range:
    return range(first, first + count) if count <= MAX_LISTED else range(0)


def _steps_of(store: Store, run_id: str, steps: Sequence[int]) -> dict[int, StoredStep]:
    """These steps, read in few ranges: they ascend, with gaps where others are folded."""
    wanted = [step for step in steps if step != NONE]
    found: dict[int, StoredStep] = {}
    start = 0
    for index in range(1, len(wanted) + 1):
        if index == len(wanted) or wanted[index] > wanted[index - 1] + 20:
            first, last = wanted[start], wanted[index - 1]
            for stored in store.steps(run_id, first, last - first + 1, whole_arguments=True):
                found[stored.step.index] = stored
            start = index
    return found


def _stretch(
    rows: AlignedRows,
    first: int,
    count: int,
    here: int | None,
    steps: Mapping[int, StoredStep],
    run_a: str,
    run_b: str,
) -> EqualStretch:
    last = first + count - 1
    a, b = (rows.a[first], rows.a[last]), (rows.b[first], rows.b[last])
    title = f"Steps {a[0]:,} to {a[1]:,} are equal"
    if a != b:
        title = f"Steps {a[0]:,} to {a[1]:,} of A are equal to {b[0]:,} to {b[1]:,} of B"
    took = rows.slower_in(first, count)
    slower = ""
    if took is not None and abs(took) >= 1:
        slower = f"B is {numbers.duration(abs(took))} {'slower' if took > 0 else 'faster'} in them"
    listed = []
    for row in _listed(first, count):
        if (stored := steps.get(rows.b[row])) is not None:
            other = "" if rows.kind(row) == "equal" else " (another result)"
            listed.append(f"{stored.step.index} {call_line(stored.step)}{other}")
    return EqualStretch(
        row=first,
        count=count,
        title=title,
        names=rows.names[first : first + min(count, MAX_NAMES)],
        other_results=sum(rows.kind(row) == "result" for row in range(first, first + count)),
        slower=slower,
        listed=listed,
        here=here is not None and first <= here <= last,
        unfolded=address("compare", "runs", a=run_a, b=run_b, at=_place(rows, first), show="all"),
    )


# Thoughts and the ribbon


def _thought(store: Store, a: RunRecord, b: RunRecord, found: FirstDivergence) -> PriorThoughts | None:
    """What each thought just before they diverge; None where neither says."""
    turns = [
        turn_before(store, record, step) if step is not None else last_turn(store, record)
        for record, step in ((a, found.step_a), (b, found.step_b))
    ]
    return PriorThoughts(*turns) if any(turn is not None and turn.parts for turn in turns) else None


def _ribbon(
    rows: AlignedRows, a: RunRecord, b: RunRecord, found: FirstDivergence, link: Any, *, same_answer: bool | None
) -> object:
    boxes = []
    for first, count in rows.stretches():
        if count > MAX_UNFOLDED:
            in_a, in_b = (f"{side[first]:,} to {side[first + count - 1]:,}" for side in (rows.a, rows.b))
            boxes.append(RibbonBox("equal", in_a, in_b, link(first), first, count))
            continue
        for row in range(first, first + count):
            name = rows.names[row]
            side_a = None if rows.a[row] == NONE else f"{rows.a[row]} {name}"
            side_b = None if rows.b[row] == NONE else f"{rows.b[row]} {name}"
            boxes.append(RibbonBox(rows.kind(row), side_a, side_b, link(row), row))
        if len(boxes) > MAX_BOXES:
            break
    return ribbon(
        boxes[:MAX_BOXES],
        outcomes=(a.summary.outcome, b.summary.outcome),
        diverge_at=found.index if found.first is not None else None,
        left=len(boxes) > MAX_BOXES,
        known=(knows_all_calls(a), knows_all_calls(b)),
        same_answer=same_answer,
    )
