"""A call as pages that compare calls show it: its arguments one by one, those that differ marked."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import msgspec
from msgspec import UNSET

from seatrial.explorer import numbers
from seatrial.reports.detail import cut, value_text
from seatrial.store import StoredStep
from seatrial.trajectory.step import Step, duration
from seatrial.trajectory.values import Difference

MAX_VALUE = 300
MAX_RESULT = 200
"""Characters."""
MAX_ARGUMENTS = 40


class ArgumentLine(msgspec.Struct, frozen=True):
    """An argument of a call."""

    name: str
    value: str
    changed: bool = False
    beside: str = ""
    """How a number changed: `× 10, + 214.2`."""


class CallBox(msgspec.Struct, frozen=True):
    """A call, as a row shows it."""

    index: int
    name: str
    ended: str
    """`ok · 410 ms`."""
    bad: bool
    mode: str | None
    arguments: list[ArgumentLine]
    more_arguments: int
    result: str | None


def call_line(step: Step) -> str:
    arguments = step.arguments if step.arguments_text is None else step.arguments_text
    return cut(f"{step.name} {value_text(arguments)}", MAX_VALUE)


def call_box(stored: StoredStep, marked: Sequence[Difference], differing: Sequence[Difference]) -> CallBox:
    """A call with its arguments; of those in `differing` the values are marked, of `marked` also how they changed."""
    step = stored.step
    lines = _arguments(step, differing, beside=bool(marked))
    took = duration(step)
    ended = step.status if took is None else f"{step.status} · {numbers.duration(took)}"
    return CallBox(
        index=step.index,
        name=step.name,
        ended="" if ended == "unknown" else ended,
        bad=step.status in ("error", "timeout"),
        mode=step.mode,
        arguments=lines[:MAX_ARGUMENTS],
        more_arguments=max(len(lines) - MAX_ARGUMENTS, 0),
        result=_result(stored),
    )


def _arguments(step: Step, differing: Sequence[Difference], *, beside: bool) -> list[ArgumentLine]:
    if step.arguments_text is not None:
        return [ArgumentLine("not JSON", cut(step.arguments_text, MAX_VALUE), bool(differing))]
    if not isinstance(step.arguments, dict):
        return [ArgumentLine("arguments", cut(value_text(step.arguments), MAX_VALUE), bool(differing))]
    by_key: dict[str, list[Difference]] = {}
    for difference in differing:
        by_key.setdefault(_key(difference), []).append(difference)
    lines = []
    for name in {**step.arguments, **{key: None for key in by_key if key}}:
        its = by_key.get(name, [])
        whole = any(difference.pointer.count("/") <= 2 for difference in its)
        if name in step.arguments:
            text = cut(value_text(step.arguments[name]), MAX_VALUE)
            lines.append(ArgumentLine(name, text, whole, _number_change(its[0]) if whole and beside else ""))
        elif whole:
            lines.append(ArgumentLine(name, "none", True))
        for difference in its:
            if difference.pointer.count("/") > 2:
                value = difference.actual if beside else difference.expected
                text = "none" if value is UNSET else cut(value_text(value), MAX_VALUE)
                path = difference.pointer.removeprefix("/arguments/")
                lines.append(ArgumentLine(path, text, True, _number_change(difference) if beside else ""))
    return lines


def _key(difference: Difference) -> str:
    parts = difference.pointer.split("/")
    return parts[2].replace("~1", "/").replace("~0", "~") if len(parts) > 2 else ""


def _number_change(difference: Difference) -> str:
    """`× 10, + 214.2`, of a number that was another one in a."""
    before, after = difference.expected, difference.actual
    for value in (before, after):
        if type(value) not in (int, float) or not abs(value) < 1e15:
            return ""
    change = after - before
    text = f"{'+' if change > 0 else '−'} {abs(change):.6g}"
    if before and after and (before > 0) == (after > 0):
        ratio = after / before
        if isfinite(ratio) and ratio:
            text = f"{f'× {ratio:.3g}' if ratio > 1 else f'÷ {1 / ratio:.3g}'}, {text}"
    return text.replace(" ", numbers.NBSP).replace(f",{numbers.NBSP}", ", ")


def _result(stored: StoredStep) -> str | None:
    step = stored.step
    if step.error is not None:
        return cut(step.error, MAX_RESULT)
    if any(text.pointer == "/result" for text in stored.long_texts) and step.result in (None, UNSET):
        size = sum(text.size for text in stored.long_texts)
        return f"({numbers.size(size)}, see the run)"
    if step.result is UNSET:
        return None
    return cut(step.result if isinstance(step.result, str) else value_text(step.result), MAX_RESULT)
