"""Two runs side by side: where their calls diverge, then outcomes, answers and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from seatrial._support.printable import coloured, one_line
from seatrial.reports import figures
from seatrial.reports.compare import TrajectoryDiff
from seatrial.reports.compare_text import diff_lines, painted_diff
from seatrial.reports.detail import cut, step_text
from seatrial.reports.layout import NO_TERMINAL, folded, prose, table
from seatrial.runs import Run, RunKey, Verdict
from seatrial.trajectory.comparison import compare
from seatrial.trajectory.completeness import known_calls, what_is_missing

MAX_ANSWER = 1500


class RunComparison(msgspec.Struct, kw_only=True):
    """How run b differs from run a."""

    a: Run
    b: Run
    calls: TrajectoryDiff

    @property
    def known(self) -> bool:
        """Whether all calls of both are known."""
        return self.calls.calls_a == self.calls.calls_b == "complete"


def compare_runs(a: Run, b: Run) -> RunComparison:
    """Align the calls of two runs."""
    calls = TrajectoryDiff(
        case_id=b.case_id or "",
        run_a=a.run_id,
        run_b=b.run_id,
        diff=compare(a.steps, b.steps),
        steps_a=a.steps,
        steps_b=b.steps,
        calls_a=None if a.completeness is None else a.completeness.level,
        calls_b=None if b.completeness is None else b.completeness.level,
    )
    return RunComparison(a=a, b=b, calls=calls)


def divergence(found: RunComparison) -> str:
    """Where the calls first differ, in a sentence."""
    first = found.calls.diff.first_divergence
    if first is None:
        count = figures.plural(len(found.a.steps), "call")
        if found.known:
            return f"Both runs made the same calls, in the same order ({count})."
        return f"The calls that are known are the same, in the same order ({count}); others may have been made."
    sides = [
        f"{letter} {'made no further call' if step is None else f'called {step_text(run.steps[step])}'}"
        for letter, run, step in (("a", found.a, first.a), ("b", found.b, first.b))
    ]
    number = first.a if first.a is not None else first.b
    return f"They diverge at step {number}: {', '.join(sides)}."


def run_diff_text(found: RunComparison, *, colour: bool = False, width: int = NO_TERMINAL) -> str:
    """The two runs for a terminal; ends with a newline."""
    return "".join(f"{line}\n" for line in _lines(found, colour, width))


def run_diff_data(found: RunComparison) -> dict[str, Any]:
    """The same as data."""
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "divergence": divergence(found),
        "calls_known": found.known,
        "diff": found.calls.diff,
        "steps_a": found.a.steps,
        "steps_b": found.b.steps,
    }


def _side(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "experiment_id": run.experiment_id,
        "key": run.key,
        "outcome": run.outcome,
        "score": None if run.grade is None else run.grade.score,
        "answer": run.answer,
        "completeness": run.completeness,
        "fault": run.fault,
        "duration_ms": run.duration_ms,
        "verdicts": run.verdicts,
    }


def _lines(found: RunComparison, colour: bool, width: int) -> Iterator[str]:
    yield from _bold(prose(divergence(found), width), colour)
    for letter, run in (("a", found.a), ("b", found.b)):
        if run.completeness is None and run.reading is None:
            yield from prose(f"{letter} gave no answer to read: the calls that it may have made are not known.", width)
        elif (known := known_calls(run.completeness)).level != "complete":
            yield from prose(f"{letter}: {what_is_missing(known)}.", width)
    yield ""
    yield from table(*_sides(found), left=4, width=width, droppable=("time", "run"))
    for letter, run in (("a", found.a), ("b", found.b)):
        if run.fault is not None:
            yield from prose(f"{letter}: {run.fault.error_class}: {run.fault.message}", width, "   ", "")
    if found.calls.steps_a or found.calls.steps_b:
        yield ""
        yield from _bold(["calls, from a to b"], colour)
        yield from painted_diff(diff_lines(found.calls), colour, width)
    yield ""
    yield from _answers(found, colour, width)
    if verdicts := _verdicts(found):
        yield ""
        yield from _bold(["verdicts that differ"], colour)
        yield from table(["grader", "a", "b"], verdicts, left=3, indent="  ", width=width)


def _sides(found: RunComparison) -> tuple[list[str], list[list[str]]]:
    rows = []
    for letter, run in (("a", found.a), ("b", found.b)):
        key = run.key
        named = f"{key.case_id}, trial {key.trial}" if isinstance(key, RunKey) else f"thread {key.thread_id}"
        steps = f"{'' if known_calls(run.completeness).level == 'complete' else '≥ '}{len(run.steps)}"
        score = None if run.grade is None else run.grade.score
        rows.append(
            [
                letter,
                run.outcome or run.status,
                one_line(named, 40),
                one_line(run.agent, 24),
                steps,
                figures.decimal(score),
                figures.duration(run.duration_ms),
                run.run_id,
            ]
        )
    return ["", "outcome", "case", "agent", "calls", "score", "time", "run"], rows


def _answers(found: RunComparison, colour: bool, width: int) -> Iterator[str]:
    a, b = found.a.answer, found.b.answer
    if a == b:
        yield "Neither gave an answer." if a is None else "The answers are the same."
        if a is None:
            return
        yield from folded(cut(a, MAX_ANSWER), width, "  ")
        return
    for letter, answer, tone in (("a", a, "red"), ("b", b, "green")):
        yield from _bold([f"answer of {letter}"], colour)
        text = "(none)" if answer is None else cut(answer, MAX_ANSWER) or "(empty)"
        for line in folded(text, width, "  "):
            yield coloured(line, tone) if colour else line


def _verdicts(found: RunComparison) -> list[list[str]]:
    names = list(dict.fromkeys(verdict.grader for run in (found.a, found.b) for verdict in run.verdicts))
    sides = [{verdict.grader: verdict for verdict in run.verdicts} for run in (found.a, found.b)]
    words = [[name, *(_word(side.get(name)) for side in sides)] for name in names]
    return [row for row in words if row[1] != row[2]]


def _word(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    code = f" ({verdict.code})" if verdict.code else ""
    return f"{verdict.outcome}{code}{'' if verdict.score is None else f' {figures.decimal(verdict.score)}'}"


def _bold(lines: list[str], colour: bool) -> Iterator[str]:
    return (coloured(line, "bold") if colour else line for line in lines)
