"""Terms of a filter as SQL expressions; what was typed is only ever a parameter of them.

A condition on what is not known of a run (its cost, or whether it made a call that is not in its record) is NULL: the
run matches neither the term nor its negation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from seatrial.store.filter.fields import FieldName
from seatrial.store.filter.language import AnyOf, FieldCondition, FilterTerm, FilterValue, TextSearch
from seatrial.store.schema import FLAKY, case_tags, cells, experiments, notes, reviews, runs, steps, verdicts
from seatrial.store.search import Phrase, phrases
from seatrial.trajectory.step import FAILED

Condition: TypeAlias = sa.ColumnElement[bool]

_COMPARE: Final[dict[str, Callable[[Any, Any], Condition]]] = {
    "=": operator.eq,
    "!=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPLETE = runs.c.calls == "complete"


def conditions(terms: Sequence[FilterTerm]) -> Iterator[Condition]:
    """What a row of `runs` must meet."""
    for term in terms:
        condition = _condition(term.condition)
        yield sa.not_(condition) if term.negated else condition


def _condition(condition: FieldCondition | TextSearch | AnyOf) -> Condition:
    if isinstance(condition, AnyOf):
        return sa.or_(*(sa.and_(sa.true(), *conditions(terms)) for terms in condition.filters))
    if isinstance(condition, TextSearch):
        return _Contains(phrases(f'"{condition.text}"' if " " in condition.text else condition.text))
    found = sa.or_(*(_CONDITIONS[condition.field](value, condition.operator) for value in condition.values))
    return sa.not_(found) if condition.operator == "!=" else found


_Maker: TypeAlias = Callable[[FilterValue, str], Condition]


def _text(column: sa.Column[Any]) -> _Maker:
    """A column that is never unknown: where it is null there is nothing that could match."""
    filled = sa.func.coalesce(column, "") if column.nullable else column
    return lambda value, _: _matches(filled, value)


def _matches(column: sa.ColumnElement[Any], value: FilterValue) -> Condition:
    # No text in a store has these, and databases refuse to compare with them.
    if "\0" in value.text or value.text.encode("utf-8", "ignore").decode() != value.text:
        return sa.false()
    return _Like(column, value.text) if value.pattern else column == value.text


def _number(column: sa.ColumnElement[Any]) -> _Maker:
    def made(value: FilterValue, sign: str) -> Condition:
        return column.is_(None) if value.unknown else _COMPARE[sign](column, value.number)

    return made


def _calls(value: FilterValue, sign: str) -> Condition:
    return runs.c.calls.is_(None) if value.unknown else runs.c.calls == value.text


def _steps(value: FilterValue, sign: str) -> Condition:
    if value.unknown:
        return sa.func.coalesce(runs.c.calls, "") != "complete"
    # Where not all calls are known there may be more, but not fewer.
    holds = _COMPARE[sign](runs.c.steps, value.number)
    settled: tuple[Condition, Condition]
    if sign in (">", ">="):
        settled = (holds, sa.true())
    elif sign in ("<", "<="):
        settled = (sa.not_(holds), sa.false())
    else:
        settled = (runs.c.steps > value.number, sa.false())
    return sa.case(settled, (_COMPLETE, holds), else_=None)


def _tool(value: FilterValue, sign: str) -> Condition:
    called = sa.exists().where(steps.c.run == runs.c.id, _matches(steps.c.name, value))
    return sa.case((called, sa.true()), (_COMPLETE, sa.false()), else_=None)


def _toolfail(value: FilterValue, sign: str) -> Condition:
    called = sa.exists().where(steps.c.run == runs.c.id, _matches(steps.c.name, value))
    failed = called.where(steps.c.status.in_(FAILED))
    unclear = called.where(steps.c.status.notin_((*FAILED, "ok")))
    return sa.case((failed, sa.true()), (unclear, None), (_COMPLETE, sa.false()), else_=None)


def _grader(value: FilterValue, sign: str) -> Condition:
    return sa.exists().where(
        verdicts.c.run == runs.c.id,
        verdicts.c.grading == runs.c.grading,
        _matches(verdicts.c.grader, value),
        verdicts.c.outcome == value.verdict,
    )


def _note(value: FilterValue, sign: str) -> Condition:
    return sa.exists().where(notes.c.run == runs.c.id, _matches(notes.c.code, value))


def _tag(value: FilterValue, sign: str) -> Condition:
    same = (case_tags.c.experiment == runs.c.experiment) & (case_tags.c.case_id == runs.c.case_id)
    return sa.exists().where(same, _matches(case_tags.c.tag, value))


def _experiment(value: FilterValue, sign: str) -> Condition:
    named = _matches(experiments.c.name, value) | _matches(experiments.c.experiment_id, value)
    return runs.c.experiment.in_(sa.select(experiments.c.id).where(named))


def _flaky(value: FilterValue, sign: str) -> Condition:
    found = sa.exists().where(
        cells.c.experiment == runs.c.experiment,
        cells.c.case_id == runs.c.case_id,
        cells.c.agent == runs.c.agent,
        sa.text(FLAKY),
    )
    return found if value.text == "yes" else sa.not_(found)


def _suite(value: FilterValue, sign: str) -> Condition:
    column = experiments.c.suite_hash
    begins = _Like(column, value.text) if value.pattern else sa.func.substr(column, 1, len(value.text)) == value.text
    return runs.c.experiment.in_(sa.select(experiments.c.id).where(begins))


def _change(value: FilterValue, sign: str) -> Condition:
    own, earlier = experiments.alias("own"), experiments.alias("earlier")
    before = (
        sa.select(sa.func.max(earlier.c.id))
        .select_from(own.join(earlier, (earlier.c.suite_hash == own.c.suite_hash) & (earlier.c.id < own.c.id)))
        .where(own.c.id == runs.c.experiment, earlier.c.status == "finished", own.c.suite_hash != "")
        .correlate(runs)
        .scalar_subquery()
    )
    here, there = cells.alias("here"), cells.alias("there")
    graded, was = here.c.passed + here.c.failed, there.c.passed + there.c.failed
    same_case = (there.c.case_id == here.c.case_id) & (there.c.agent == here.c.agent)
    pair = (
        sa.exists()
        .select_from(here.join(there, same_case))
        .where(
            here.c.experiment == runs.c.experiment,
            here.c.case_id == runs.c.case_id,
            here.c.agent == runs.c.agent,
            there.c.experiment == before,
            graded > 0,
            was > 0,
        )
        .correlate(runs)
    )
    compare = {"worse": operator.lt, "better": operator.gt, "same": operator.eq}[value.text]
    # Where there is nothing to compare with, nobody knows.
    return sa.case(
        (pair.where(compare(here.c.passed * was, there.c.passed * graded)), sa.true()), (pair, sa.false()), else_=None
    )


def _counted_review(latest: sa.FromClause) -> Condition:
    """That nothing later was said by the same person of the same."""
    later = reviews.alias("later")
    same_grader = sa.func.coalesce(later.c.grader, "") == sa.func.coalesce(latest.c.grader, "")
    said_later = (later.c.run == latest.c.run) & (later.c.reviewer == latest.c.reviewer) & same_grader
    return ~sa.exists().where(said_later, later.c.id > latest.c.id).correlate(latest)


def _reviewed(value: FilterValue, sign: str) -> Condition:
    found = sa.exists().where(reviews.c.run == runs.c.id)
    if value.text in ("yes", "no"):
        return found if value.text == "yes" else sa.not_(found)
    return found.where(reviews.c.word == value.text, _counted_review(reviews))


def _agrees(value: FilterValue, sign: str) -> Condition:
    said = sa.case(
        (reviews.c.grader.is_(None), runs.c.outcome),
        else_=sa.select(verdicts.c.outcome)
        .where(verdicts.c.run == runs.c.id, verdicts.c.grading == runs.c.grading, verdicts.c.grader == reviews.c.grader)
        .correlate(runs, reviews)
        .scalar_subquery(),
    )
    decided = sa.exists().where(
        reviews.c.run == runs.c.id,
        reviews.c.word.in_(("right", "wrong")),
        said.in_(("passed", "failed")),
        _counted_review(reviews),
    )
    objects = decided.where((reviews.c.word == "right") != (said == "passed"))
    against = value.text == "no"
    return sa.case(
        (objects, sa.true() if against else sa.false()),
        (decided, sa.false() if against else sa.true()),
        else_=None,
    )


def _since(value: FilterValue, sign: str) -> Condition:
    return runs.c.started_at >= value.number


def _until(value: FilterValue, sign: str) -> Condition:
    return runs.c.started_at < value.number


_CONDITIONS: Final[dict[FieldName, _Maker]] = {
    "agent": _text(runs.c.agent),
    "agrees": _agrees,
    "attempts": _number(runs.c.attempts),
    "calls": _calls,
    "case": _text(runs.c.case_id),
    "change": _change,
    "cost": _number(runs.c.cost_usd),
    "duration": _number(runs.c.duration_ms),
    "error": _text(runs.c.error_class),
    "experiment": _experiment,
    "flaky": _flaky,
    "grader": _grader,
    "note": _note,
    "outcome": _text(runs.c.outcome),
    "reviewed": _reviewed,
    "score": _number(runs.c.score),
    "since": _since,
    "status": _text(runs.c.status),
    "steps": _steps,
    "suite": _suite,
    "tag": _tag,
    "tokens": _number(runs.c.input_tokens + runs.c.output_tokens),
    "tool": _tool,
    "toolfail": _toolfail,
    "trial": _number(runs.c.trial),
    "until": _until,
    "why": _text(runs.c.signature),
}


class _Like(sa.ColumnElement[bool]):
    """Whether a text matches a pattern with `*` and `?`, upper and lower case apart, on either database."""

    inherit_cache = False
    type = sa.Boolean()

    def __init__(self, column: sa.ColumnElement[Any], pattern: str) -> None:
        self.column = column
        self.pattern = pattern


@compiles(_Like, "sqlite")
def _sqlite_like(element: _Like, compiler: Any, **options: Any) -> str:
    made: str = compiler.process(element.column.op("GLOB")(element.pattern.replace("[", "[[]")), **options)
    return made


@compiles(_Like, "postgresql")
def _postgresql_like(element: _Like, compiler: Any, **options: Any) -> str:
    pattern = element.pattern
    for sign in "\\%_":
        pattern = pattern.replace(sign, f"\\{sign}")
    pattern = pattern.replace("*", "%").replace("?", "_")
    made: str = compiler.process(element.column.like(pattern, escape="\\"), **options)
    return made


class _Contains(sa.ColumnElement[bool]):
    """Whether what was said and called in a run has all of these phrases."""

    inherit_cache = False
    type = sa.Boolean()

    def __init__(self, wanted: list[Phrase]) -> None:
        self.wanted = wanted


@compiles(_Contains, "sqlite")
def _sqlite_contains(element: _Contains, compiler: Any, **options: Any) -> str:
    from seatrial.store.sqlite import matching

    made: str = compiler.process(runs.c.id.in_(matching(element.wanted)), **options)
    return made


@compiles(_Contains, "postgresql")
def _postgresql_contains(element: _Contains, compiler: Any, **options: Any) -> str:
    from seatrial.store.postgres import matching

    made: str = compiler.process(runs.c.id.in_(matching(element.wanted)), **options)
    return made
