"""Calls that a test expects: equal to a list of steps that fits them, and able to say why another one does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from seatrial._support import wire
from seatrial._support.printable import one_line, printable
from seatrial.trajectory import MatchResult, Mode, Step, compile_expectation, match
from seatrial.trajectory.calls import Calls, NoVerdictError

CallPattern: TypeAlias = str | Mapping[str, Any]
"""A tool's name, or an item as a `tool_trajectory` grader has it: `{"tool": ..., "args": ...}`."""


class Expected:
    """What the calls of a run are compared with: `result.calls == in_order("find_order", "refund")`."""

    __hash__ = None  # type: ignore[assignment]  # equal to many lists, so there is no hash

    def __init__(self, mode: Mode, items: Sequence[CallPattern], options: Mapping[str, Any]) -> None:
        self.items = [{"tool": item} if isinstance(item, str) else dict(item) for item in items]
        self._name: str = mode
        expected = {} if mode == "any_order" else {"expected": self.items}
        self._expectation = compile_expectation({"mode": mode, **expected, **options})

    def __eq__(self, other: object) -> bool:
        """Whether the calls fit. Raises `NoVerdictError` where that depends on calls that are not known.

        Anything but calls is a `TypeError`: were it just not equal, `!=` would hold, whatever was called.
        """
        __tracebackhide__ = True
        steps = self.steps_of(other)
        result = self.match(other if isinstance(other, Calls) else steps)
        if result.errored is not None:
            hint = f" To do: {result.hint}." if result.hint else ""
            prose = other.redact(result.prose) if isinstance(other, Calls) else result.prose
            raise NoVerdictError(printable(f"{prose} [{result.error_code}]{hint}"))
        return result.passed

    def __repr__(self) -> str:
        return f"{self._name}({', '.join([_item(item) for item in self.items])})"

    def steps_of(self, calls: object) -> list[Step]:
        """The steps that are known of what this is compared with. Raises `TypeError` for anything but calls."""
        __tracebackhide__ = True
        steps = calls.known if isinstance(calls, Calls) else calls
        if not isinstance(steps, list | tuple) or not all(isinstance(step, Step) for step in steps):
            got = "names" if isinstance(calls, Calls) else f"a {type(calls).__name__}"
            raise TypeError(f"{self!r} is compared with calls (`result.calls`, a list of `Step`), not with {got}")
        return list(steps)

    def match(self, steps: list[Step] | Calls[Step]) -> MatchResult:
        """Hold steps against it. A plain list is all that there are."""
        if isinstance(steps, Calls):
            return match(self._expectation, steps.known, steps.completeness)
        return match(self._expectation, steps)

    def explain(self, steps: list[Step] | Calls[Step]) -> list[str]:
        """Lines on how the steps fit: the verdict in prose, then expected and made calls side by side."""
        result = self.match(steps)
        prose, made = result.prose, steps
        if isinstance(steps, Calls):
            prose, made = steps.redact(prose), steps.shown
        return [printable(prose), *call_lines(self.items, made, result)]


def exact(*items: CallPattern, **options: Any) -> Expected:
    """Just these calls, in this order. Options are the keys of a `tool_trajectory` grader, here and below."""
    return Expected("exact", items, options)


def in_order(*items: CallPattern, **options: Any) -> Expected:
    """These calls in this order, perhaps with others between."""
    return Expected("in_order", items, options)


def unordered(*items: CallPattern, **options: Any) -> Expected:
    """Just these calls, in any order."""
    return Expected("unordered", items, options)


def superset(*items: CallPattern, **options: Any) -> Expected:
    """These calls in any order, perhaps with others."""
    return Expected("superset", items, options)


def subset(*items: CallPattern, **options: Any) -> Expected:
    """Nothing but these calls."""
    return Expected("subset", items, options)


def call_lines(items: Sequence[Mapping[str, Any]], steps: Sequence[Step], result: MatchResult) -> list[str]:
    """One line for each call, as a diff has it: ` ` as expected, `-` missing, `+` made but matched with nothing."""
    pairs = {pair.actual: pair.expected for pair in result.matched}
    missing = iter(result.missing)
    lines = []
    due = next(missing, None)
    for index, step in enumerate(steps):
        item = pairs.get(index)
        # A missing call stands where it was expected: before the first match of a later one.
        while item is not None and due is not None and due < item:
            lines.append(f"- {_item(items[due])}")
            due = next(missing, None)
        lines.append(f"{'+' if item is None else ' '} {step_line(step)}")
    while due is not None:
        lines.append(f"- {_item(items[due])}")
        due = next(missing, None)
    return lines


def step_line(step: Step) -> str:
    """A call on one line: name, arguments, its status when it did not go well, and whether our tool proxy saw it."""
    arguments = wire.encode(step.arguments).decode() if step.arguments_text is None else step.arguments_text
    status = f"  [{step.status}]" if step.status in ("error", "timeout") else ""
    observed = "  [observed]" if step.source == "observed" else ""
    return one_line(f"{step.name} {arguments}", 160) + status + observed


def _item(item: Mapping[str, Any]) -> str:
    arguments = f" {wire.encode(item['args']).decode()}" if "args" in item else ""
    return one_line(f"{item.get('tool')}{arguments}", 160)
