"""Expected against actual: what a grader of tool calls expected, what the agent called, and how they belong together.

The expected calls are those of the suite as its experiment has it. A verdict may be older than that, or newer: where
what it says does not fit what the suite expects, the expected calls are not shown, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from seatrial._support.time_limit import TimeLimit
from seatrial.errors import SeatrialError
from seatrial.explorer.call_boxes import CallBox, call_box
from seatrial.explorer.markup import visible
from seatrial.graders.tool_trajectory import expected_calls
from seatrial.reports.detail import cut, difference_text, value_text
from seatrial.runs.removed import SECRET_REMOVED
from seatrial.store import RunRecord, Store, StoredStep
from seatrial.suites.case_yaml import grader_lines
from seatrial.trajectory.completeness import known_calls, what_is_missing
from seatrial.trajectory.expectation import Expectation, compile_expectation, expected_as_made
from seatrial.trajectory.item import fits
from seatrial.trajectory.result import Assertion, MatchResult

ROWS = 100
"""Rows of a page."""
MAX_COPIED = 100
"""Calls that are offered as YAML."""
MAX_YAML = 32_000
"""Characters of it, and of the suite's lines."""
MAX_ITEM = 400
MAX_TOLD = 8
MAX_CHECKED = 100
CHECK_S = 0.2
"""How long the expected calls are held against the verdict; what is not reached in this time is shown as it is."""

Relation: TypeAlias = Literal["matches", "differs", "missing", "extra_allowed", "extra_forbidden", "left_out", "open"]
"""`left_out`: a call that counts for nothing; `open`: nothing was decided of it."""

WORDS: dict[Relation, str] = {
    "matches": "matches",
    "differs": "differs",
    "missing": "missing",
    "extra_allowed": "extra, allowed",
    "extra_forbidden": "extra, forbidden",
    "left_out": "not counted",
    "open": "not decided",
}
MARKS: dict[Relation, str] = {
    "matches": "passed",
    "differs": "failed",
    "missing": "failed",
    "extra_allowed": "skipped",
    "extra_forbidden": "failed",
    "left_out": "skipped",
    "open": "errored",
}
_COUNT = " must "
"""What sentences on counts have behind the name of the tool."""
_NOTHING_ELSE = ("exact", "unordered", "subset")
"""Modes in which a call beyond the expected ones is wrong."""
_ITEM_FACTS = ("status", "actor", "max_duration_ms", "result", "args_match", "id", "after")


class ExpectedItem(msgspec.Struct, frozen=True):
    """An expected call, as the suite has it."""

    number: int
    """From 0, as in verdicts."""
    tool: str
    args: str | None
    facts: list[str]
    """What else is asked of it: `after find_order`."""


class MatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """An expected call beside an actual one, or one of them alone."""

    relation: Relation
    number: int | None = None
    """Which expected call it is."""
    expected: ExpectedItem | None = None
    """None where nothing was expected, or nobody knows what."""
    step: int | None = None
    actual: CallBox | None = None
    told: list[str] = []
    """What differs, what is violated."""
    first: bool = False
    """Whether they diverge here first."""

    @property
    def words(self) -> str:
        """The relation in words."""
        return WORDS[self.relation]

    @property
    def mark(self) -> str:
        """The mark that is drawn beside it."""
        return MARKS[self.relation]

    @property
    def wrong(self) -> bool:
        """Whether the verdict is against it."""
        return self.mark == "failed" or bool(self.told)


class MatchFigure(msgspec.Struct, frozen=True):
    """A figure with what it was made of."""

    name: str
    value: float | None
    fraction: str = ""


class CountLine(msgspec.Struct, frozen=True):
    """How often a tool was to be called, and how often it was."""

    expected: str
    actual: str
    relation: Relation

    @property
    def words(self) -> str:
        """The relation in words."""
        return {"matches": "holds", "differs": "broken", "open": "not decided"}[self.relation]

    @property
    def mark(self) -> str:
        """The mark that is drawn beside it."""
        return MARKS[self.relation]


class ExpectedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Expected against actual calls of one verdict."""

    result: MatchResult
    rows: list[MatchRow]
    counts: list[CountLine]
    """In place of rows, for a grader that counts."""
    total: int
    first_row: int
    before: int | None
    after: int | None
    """The first row of the pages beside this one."""
    checked: list[Assertion]
    """But for the counts."""
    more_checked: int
    figures: list[MatchFigure]
    suite: str
    """The grader as the suite has it."""
    copied: str
    """The actual calls, as a grader that expects them."""
    not_copied: str
    """Why there are none to copy."""
    complaint: str


def expected_page(
    store: Store,
    record: RunRecord,
    result: MatchResult,
    configs: Sequence[Mapping[str, Any]],
    *,
    step: int | None = None,
    first: int | None = None,
) -> ExpectedPage:
    """The page of a match; `configs` are the graders of the suite that it may be by."""
    run_id = record.summary.run_id
    order = [*_order(result, record.summary.steps or 0)]
    if first is None:
        at = next((place for place, (_, _, actual) in enumerate(order) if actual == step), 0) if step is not None else 0
        first = at // ROWS * ROWS
    first = min(first, max(0, (len(order) - 1) // ROWS * ROWS))
    shown = order[first : first + ROWS]
    steps = _steps(store, run_id, [actual for _, _, actual in shown if actual is not None])
    config, expectation = _chosen(configs, result, shown, steps)
    items = [] if config is None else _items(config)
    copied, not_copied = _copied(store, record)
    checked = [check for check in result.assertions if not (result.mode == "any_order" and _COUNT in check.text)]
    return ExpectedPage(
        result=result,
        rows=[*_rows(shown, result, steps, items)],
        counts=[*_counts(result)][:ROWS],
        total=len(order),
        first_row=first,
        before=max(0, first - ROWS) if first else None,
        after=first + ROWS if first + ROWS < len(order) else None,
        checked=checked[:MAX_CHECKED],
        more_checked=max(0, len(checked) - MAX_CHECKED),
        figures=[*_figures(result)],
        suite="" if config is None else _yaml(config),
        copied=copied,
        not_copied=not_copied,
        complaint=""
        if expectation is not None
        else "What the suite expects now is not what this verdict was found with, so the expected calls are not shown."
        if configs
        else "The grader is not in the suite as its experiment has it, so the expected calls are not shown.",
    )


def _order(result: MatchResult, steps: int) -> Iterator[tuple[Relation, int | None, int | None]]:
    """Every row: steps in their order, and missing calls where they were due."""
    if result.mode == "any_order":
        return
    matched = {pair.actual: pair.expected for pair in result.matched}
    near = {found.actual: found.expected for found in result.mismatches}
    extra = {*result.extra}
    waiting = [item for item in result.missing if item not in {found.expected for found in result.mismatches}]
    forbidden = {each.actual for each in result.violations if each.constraint in ("forbidden", "allowed")}
    # What was expected before any step that follows is due before it.
    due: dict[int, list[int]] = {}
    order = sorted((item, step) for step, item in {**near, **matched}.items())
    at = 0
    for item in waiting:
        while at < len(order) and order[at][0] < item:
            at += 1
        due.setdefault(order[at][1] if at < len(order) else steps, []).append(item)
    undecided = result.errored is not None and not (matched or extra or result.missing)
    for index in range(steps):
        yield from (("missing", item, None) for item in due.get(index, ()))
        if index in matched:
            yield "matches", matched[index], index
        elif index in near:
            yield "differs", near[index], index
        elif undecided:
            yield "open", None, index
        elif index in forbidden or (index in extra and result.mode in _NOTHING_ELSE):
            yield "extra_forbidden", None, index
        else:
            yield ("extra_allowed" if index in extra else "left_out"), None, index
    yield from (("missing", item, None) for item in due.get(steps, ()))


def _steps(store: Store, run_id: str, wanted: Sequence[int]) -> dict[int, StoredStep]:
    if not wanted:
        return {}
    some = store.steps(run_id, wanted[0], wanted[-1] - wanted[0] + 1)
    return {stored.step.index: stored for stored in some}


def _chosen(
    configs: Sequence[Mapping[str, Any]],
    result: MatchResult,
    shown: Sequence[tuple[Relation, int | None, int | None]],
    steps: Mapping[int, StoredStep],
) -> tuple[Mapping[str, Any] | None, Expectation | None]:
    """The grader that the verdict is by; none when it is not certain which."""
    fitting: list[tuple[Mapping[str, Any], Expectation]] = []
    for config in configs:
        expected = expected_calls(config)
        try:
            expectation = None if expected is None else compile_expectation(expected)
        except SeatrialError:
            continue
        if expectation is not None and _is_by(expectation, result, shown, steps):
            fitting.append((config, expectation))
    return fitting[0] if len(fitting) == 1 else (None, None)


def _is_by(
    expectation: Expectation,
    result: MatchResult,
    shown: Sequence[tuple[Relation, int | None, int | None]],
    steps: Mapping[int, StoredStep],
) -> bool:
    """Whether nothing that a verdict says speaks against its being found with this expectation."""
    if expectation.mode != result.mode:
        return False
    if expectation.mode == "any_order":
        names = {f"{bound.tool}{_COUNT}" for bound in expectation.bounds}
        said = [check.text for check in result.assertions]
        return all(any(text.startswith(name) for text in said) for name in names) or result.errored is not None
    known = len(result.matched) + len(result.missing)
    if known != len(expectation.items) and (known or result.errored is None):
        return False
    in_place = {found.expected for found in result.mismatches if not found.differences}
    with TimeLimit(CHECK_S) as limit:
        for relation, number, index in shown:
            stored = None if index is None else steps.get(index)
            # Of long arguments only the beginning is at hand.
            if number is None or stored is None or stored.long_texts:
                continue
            try:
                if fits(expectation.items[number], stored.step) != (relation == "matches" or number in in_place):
                    return False
            except SeatrialError:
                if limit.expired:
                    break
    return True


def _items(config: Mapping[str, Any]) -> list[ExpectedItem]:
    """The expected calls in the words of the suite."""
    expected = expected_calls(config) or {}
    defaults = expected.get("defaults") or {}
    items = []
    for number, given in enumerate(expected.get("expected") or ()):
        item = given if isinstance(given, dict) else {"tool": given}
        tool = item.get("tool")
        name = " or ".join(map(str, tool)) if isinstance(tool, list) else str(tool)
        facts = [f"{key.replace('_', ' ')} {_short({**defaults, **item}[key])}" for key in _ITEM_FACTS if key in item]
        facts += [f"{key.replace('_', ' ')} {_short(value)}" for key, value in defaults.items() if key not in item]
        items.append(
            ExpectedItem(
                number,
                visible(cut(name, 120)),
                visible(cut(value_text(item["args"]), MAX_ITEM)) if "args" in item else None,
                [visible(fact) for fact in facts],
            )
        )
    return items


def _short(value: Any) -> str:
    return cut(value if isinstance(value, str) else value_text(value), 80)


def _rows(
    shown: Sequence[tuple[Relation, int | None, int | None]],
    result: MatchResult,
    steps: Mapping[int, StoredStep],
    items: Sequence[ExpectedItem],
) -> Iterator[MatchRow]:
    differences = {found.actual: found.differences for found in result.mismatches}
    violated: dict[int, list[str]] = {}
    for violation in result.violations:
        if violation.actual is not None:
            violated.setdefault(violation.actual, []).append(f"{violation.constraint}: {violation.message}")
    for undecided in result.undecided:
        if undecided.actual is not None:
            violated.setdefault(undecided.actual, []).append(f"not known: {undecided.message}")
    diverges = result.first_divergence
    told_first = False
    for relation, number, index in shown:
        stored = None if index is None else steps.get(index)
        found = [] if index is None else differences.get(index, [])
        told = [difference_text(each) for each in found[:MAX_TOLD]]
        if relation == "differs" and not found:
            told = ["It is that call, in another place than where it was expected."]
        if len(found) > MAX_TOLD:
            told.append(f"and {len(found) - MAX_TOLD} more differences")
        told += violated.get(index, [])[:MAX_TOLD] if index is not None else []
        first = (
            diverges is not None
            and not told_first
            and relation != "matches"
            and (
                (number is not None and number == diverges.expected) or (index is not None and index == diverges.actual)
            )
        )
        told_first = told_first or first
        yield MatchRow(
            relation=relation,
            number=number,
            expected=items[number] if number is not None and number < len(items) else None,
            step=index,
            actual=None if stored is None else call_box(stored, [], found),
            told=[visible(text) for text in told],
            first=first,
        )


def _counts(result: MatchResult) -> Iterator[CountLine]:
    if result.mode != "any_order":
        return
    for check in result.assertions:
        if _COUNT not in check.text:
            continue
        expected, _, actual = check.text.rpartition("; ")
        relation: Relation = "matches" if check.passed else "open" if check.skipped else "differs"
        yield CountLine(visible(expected or check.text), visible(actual if expected else ""), relation)


def _figures(result: MatchResult) -> Iterator[MatchFigure]:
    """Figures of the calls that are known; of a match that gave up there are none."""
    if result.errored is not None and not result.assertions:
        return
    found, expected = len(result.matched), len(result.matched) + len(result.missing)
    made = found + len(result.extra)
    score = None if result.errored is not None else result.score
    if result.mode == "any_order":
        bounds = [check for check in result.assertions if _COUNT in check.text]
        held = sum([check.passed for check in bounds])
        yield MatchFigure("score", score, "" if result.violations else f"{held} of {len(bounds)} bounds")
        return
    goal = result.assertions[0].text.rpartition(": ")[2].replace(" of ", "/") if result.assertions else ""
    broken = "a constraint is violated" if result.violations else goal.replace("/", " of ")
    yield MatchFigure("score", score, broken if score is not None else "")
    yield MatchFigure("precision", result.precision if made else None, f"{found} of {made} calls")
    yield MatchFigure("recall", result.recall if expected else None, f"{found} of {expected} expected")
    yield MatchFigure("F1", result.f1 if made and expected else None)


def _copied(store: Store, record: RunRecord) -> tuple[str, str]:
    """The actual calls as a grader that only they meet; or why there is none."""
    known, count = known_calls(record.completeness), record.summary.steps or 0
    if record.completeness is None or known.level != "complete":
        return "", f"Not all calls are known: {what_is_missing(known)}. A grader that expects these could be wrong."
    notes = store.run_notes([record.summary.run_id], limit=1).get(record.summary.run_id)
    if notes is not None and (SECRET_REMOVED, "serious") in notes.counts:
        return "", "A secret was removed from a call: what is stored is not what the agent sent."
    if count > MAX_COPIED:
        return (
            "",
            f"There are {count} calls. `seatrial case from {record.summary.run_id}` writes a case of all of them.",
        )
    stored = store.steps(record.summary.run_id, 0, MAX_COPIED)
    if any(text.pointer.startswith("/arguments") for each in stored for text in each.long_texts):
        return "", f"Some arguments are long. `seatrial case from {record.summary.run_id}` writes a case of them."
    text = _yaml({"kind": "tool_trajectory", **expected_as_made([each.step for each in stored])})
    return (text, "") if text else ("", f"They are long. `seatrial case from {record.summary.run_id}` writes them.")


def _yaml(grader: Mapping[str, Any]) -> str:
    text = "\n".join(grader_lines(grader))
    return text if len(text) <= MAX_YAML else ""
