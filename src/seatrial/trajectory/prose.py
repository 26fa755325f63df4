"""One paragraph on a match: what was expected, what happened, where they diverge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.trajectory.expectation import Expectation, Mode
from seatrial.trajectory.result import MatchResult

MAX_NAMES = 8
"""Names in a list: a paragraph on a thousand calls is still a paragraph."""
MAX_TEXT = 60

_EXPECTED = {
    "exact": ("exactly ", " in this order"),
    "unordered": ("exactly ", " in any order"),
    "in_order": ("", " in this order, perhaps with others between"),
    "superset": ("", " in any order, perhaps with others"),
    "subset": ("nothing but ", ""),
    "partial_order": ("", ", each after those it waits for"),
}


def paragraph(
    expectation: Expectation, called: Sequence[str], kept: Sequence[int], result: MatchResult, hits: int, total: int
) -> str:
    """The whole of it. The assertions so far are those of the mode and the durations; `called` are all steps' names."""
    complete = result.level == "complete"
    as_expected = complete and len(result.matched) == len(expectation.tools) == len(called) > 0
    happened = "The agent made exactly these." if as_expected else _happened(called, kept, result)
    sentences = [_expected(expectation), happened]
    if result.errored is not None:
        return " ".join([*sentences, f"No verdict: {result.errored}."])
    checked = result.assertions
    if expectation.mode != "any_order":
        if not as_expected:
            sentences += _parted(expectation, called, result)
        checked = checked[1:]
    if checked and (failed := [found.text for found in checked if not (found.passed or found.skipped)]):
        sentences.append(f"Not met: {'; '.join(failed[:MAX_NAMES])}{_more(len(failed))}.")
    if result.violations:
        first = result.violations[0]
        at = "" if first.actual is None else f" (step {first.actual})"
        more = f", and {len(result.violations) - 1} more" if len(result.violations) > 1 else ""
        sentences.append(f"The constraint {first.constraint} is violated: {first.message}{at}{more}.")
    fraction = f" ({hits} of {total})" if total and not result.violations else ""
    sentences.append(f"{'Passed' if result.passed else 'Failed'} with a score of {result.score:.3g}{fraction}.")
    return " ".join(sentences)


def calls(number: int) -> str:
    """So many calls, in words."""
    return "1 call" if number == 1 else f"{number or 'no'} calls"


def times(number: int) -> str:
    """So many times, in words."""
    return ("never", "once", "twice")[number] if number < 3 else f"{number} times"


def shown(name: str) -> str:
    """A tool's name in a sentence: an agent can call its tools anything."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def _expected(expectation: Expectation) -> str:
    if expectation.mode == "any_order":
        bounds, forbidden = [], []
        for bound in expectation.bounds:
            if bound.most == 0:
                forbidden.append(f"{bound.tool}")
                continue
            limits = []
            if bound.least is not None:
                limits.append(f"at least {times(bound.least)}")
            if bound.most is not None:
                limits.append(f"at most {times(bound.most)}")
            bounds.append(f"{bound.tool} {' and '.join(limits)}")
        sentences = [f"Expected {_listed(bounds, len(bounds))}."] if bounds else []
        sentences += [f"{_listed(forbidden, len(forbidden))} must not be called."] if forbidden else []
        return " ".join(sentences)
    return _expected_calls(expectation.mode, len(expectation.tools), tuple(expectation.tools[:MAX_NAMES]))


@lru_cache(maxsize=1024)
def _expected_calls(mode: Mode, size: int, first: tuple[str, ...]) -> str:
    """Kept: many runs are held against the same few expectations."""
    if not size:
        return "Expected no calls."
    before, after = _EXPECTED[mode]
    return f"Expected {before}{calls(size)}{after}: {_listed(first, size)}."


def _happened(called: Sequence[str], kept: Sequence[int], result: MatchResult) -> str:
    failed = len(called) - len(kept) - result.user_calls
    left = [f"{calls(failed)} that failed"] if failed > 0 else []
    left += [f"{calls(result.user_calls)} of the user"] if result.user_calls else []
    left_out = f" ({' and '.join(left)} left out)" if left else ""
    if result.level == "complete":
        made = f"The agent made {calls(len(kept))}"
    else:
        made = f"{calls(len(kept))} {'is' if len(kept) == 1 else 'are'} known".capitalize()
    if not kept:
        return f"{made}{left_out}."
    names = called if len(kept) == len(called) else [called[index] for index in kept[:MAX_NAMES]]
    return f"{made}{left_out}: {_listed(names, len(kept))}."


def _parted(expectation: Expectation, called: Sequence[str], result: MatchResult) -> list[str]:
    """What is missing or too much, and the first place where it shows."""
    sentences = []
    mode = expectation.mode
    complete = result.level == "complete"
    if result.missing and mode != "subset":
        names = [f"{expectation.tools[item]} (item {item})" for item in result.missing[:MAX_NAMES]]
        head = "Missing" if complete else "Not among the calls that are known"
        sentences.append(f"{head}: {_listed(names, len(result.missing))}.")
    if result.extra and mode in ("exact", "unordered", "subset"):
        names = [f"{called[index]} (step {index})" for index in result.extra[:MAX_NAMES]]
        sentences.append(f"Beyond what was expected: {_listed(names, len(result.extra))}.")
    if not sentences:
        if mode == "subset":
            return ["No other call was made." if complete else "No other call is known."]
        return ["Every call that was expected was made."]
    parting = result.first_divergence
    if parting is None:
        return sentences
    near = next((found for found in result.mismatches if found.expected == parting.expected), None)
    if near is not None and near.differences:
        first = near.differences[0]
        sentences.append(
            f"They diverge at item {near.expected}: the nearest call is step {near.actual}, where {first.pointer} is "
            f"{_value(first.actual)} instead of {_value(first.expected)}."
        )
    elif near is not None:
        sentences.append(
            f"They diverge at item {near.expected}: step {near.actual} is that call, but in the wrong place."
        )
    else:
        item, index = parting.expected, parting.actual
        wanted = "no further call" if item is None else f"{shown(expectation.tools[item])} (item {item})"
        got = "" if index is None else f", and step {index} is {shown(called[index])}"
        sentences.append(f"They diverge where {wanted} was expected{got}.")
    return sentences


def _listed(names: Sequence[str], total: int) -> str:
    """The first names of so many."""
    names = names[:MAX_NAMES]
    text = ", ".join(names)
    if len(text) > MAX_NAMES * MAX_TEXT or not text.isprintable():
        text = ", ".join(map(shown, names))
    return text if total <= MAX_NAMES else text + _more(total)


def _more(total: int) -> str:
    return f" and {total - MAX_NAMES} more" if total > MAX_NAMES else ""


def _value(value: Any) -> str:
    if value is UNSET:
        return "missing"
    try:
        text = wire.encode(value).decode()
    except (SeatrialError, TypeError, ValueError):
        text = type(value).__name__
    return shown(text)
