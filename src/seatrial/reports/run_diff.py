"""Two runs side by side: where their calls diverge, then outcomes, answers and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from seatrial._support.printable import coloured, one_line
from seatrial.reports import figures
from seatrial.reports.compare import TrajectoryDiff
from seatrial.reports.compare_text import diff_lines, painted_diff
from seatrial.reports.detail import cut
from seatrial.reports.layout import NO_TERMINAL, folded, prose, table
from seatrial.runs import Run, RunKey, Verdict
from seatrial.trajectory.comparison import Parting, call_differences, compare
from seatrial.trajectory.completeness import known_calls, what_is_missing
from seatrial.trajectory.step import Step

MAX_ANSWER = 1500
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class FirstDivergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where the calls of two runs first differ, and what each of them calls there."""

    first: Parting | None
    """None when all calls are equal."""
    calls: int
    """How many the first run made."""
    step_a: Step | None = None
    step_b: Step | None = None
    """None when the run makes no further call."""
    all_known_a: bool
    """Whether all calls of the run are known."""
    all_known_b: bool

    @property
    def index(self) -> int | None:
        """The step at which they diverge, as both count it: what is before it is equal."""
        if self.first is None:
            return None
        return self.first.a if self.first.a is not None else self.first.b


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
    return divergence_sentence(
        FirstDivergence(
            first=first,
            calls=len(found.a.steps),
            step_a=None if first is None or first.a is None else found.a.steps[first.a],
            step_b=None if first is None or first.b is None else found.b.steps[first.b],
            all_known_a=found.calls.calls_a == "complete",
            all_known_b=found.calls.calls_b == "complete",
        )
    )


def divergence_sentence(found: FirstDivergence, a: str = "a", b: str = "b") -> str:
    """Where the calls of two runs first differ; a and b are how the runs are named."""
    head, rest = divergence_parts(found, a, b)
    return f"{head}: {rest}." if rest else f"{head}."


def divergence_parts(found: FirstDivergence, a: str = "a", b: str = "b") -> tuple[str, str]:
    """The sentence in two: that they diverge, and how."""
    if found.first is None:
        if found.all_known_a and found.all_known_b:
            if not found.calls:
                return "Neither run makes a call", ""
            return f"Both runs make the same calls, in the same order ({figures.plural(found.calls, 'call')})", ""
        if not found.calls:
            return "No calls are known of either run; some may have been made", ""
        count = figures.plural(found.calls, "call")
        return f"The calls that are known are the same, in the same order ({count}); others may have been made", ""
    head = f"They diverge at step {found.index}"
    one, other = found.step_a, found.step_b
    if one is not None and other is not None and one.name == other.name:
        return head, f"both call {one_line(one.name, 60)}, {b} {_other_arguments(one, other)}"
    sides = [
        f"{letter} calls {one_line(step.name, 60)}"
        if step is not None
        else f"{letter} makes no further call{'' if known else ' that is known'}"
        for letter, step, known in ((a, one, found.all_known_a), (b, other, found.all_known_b))
    ]
    return head, ", ".join(sides)


def _other_arguments(one: Step, other: Step) -> str:
    """`with another amount`; `with other arguments` where more than two differ, or they have no plain names."""
    pointers = [difference.pointer.split("/")[2:] for difference in call_differences(one, other)]
    names = list(dict.fromkeys(place[0] if place else "" for place in pointers))
    if not names or len(names) > 2 or not all(_PLAIN_NAME.fullmatch(name) for name in names):
        return "with other arguments"
    return f"with another {names[0]}" if len(names) == 1 else f"with another {names[0]} and {names[1]}"


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
    return [[each.grader, each.a, each.b] for each in differing_verdicts(found.a.verdicts, found.b.verdicts)]


class VerdictChange(msgspec.Struct, frozen=True):
    """A grader that does not say the same of two runs."""

    grader: str
    a: str
    """`failed 0.667`; `–` for none."""
    b: str
    verdict_a: Verdict | None
    verdict_b: Verdict | None


def differing_verdicts(a: Sequence[Verdict], b: Sequence[Verdict]) -> list[VerdictChange]:
    """Which graders do not say the same of two runs."""
    of_a, of_b = [{verdict.grader: verdict for verdict in side} for side in (a, b)]
    found = [(name, of_a.get(name), of_b.get(name)) for name in {**of_a, **of_b}]
    words = [VerdictChange(name, _word(one), _word(other), one, other) for name, one, other in found]
    return [each for each in words if each.a != each.b]


def _word(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    code = f" ({verdict.code})" if verdict.code else ""
    return f"{verdict.outcome}{code}{'' if verdict.score is None else f' {figures.decimal(verdict.score)}'}"


def _bold(lines: list[str], colour: bool) -> Iterator[str]:
    return (coloured(line, "bold") if colour else line for line in lines)
