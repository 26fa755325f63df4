"""What may be meant while a filter is being typed: fields, and the values that an experiment has, with their counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec
import sqlalchemy as sa

from seatrial.store.filter.fields import FIELDS, VERDICT_WORDS, FieldName
from seatrial.store.filter.language import written_term
from seatrial.store.schema import case_tags, cases, experiments, runs, steps, tallies
from seatrial.trajectory.step import FAILED

MOST: Final = 8
"""Suggestions at once."""
RUNS_LOOKED_AT: Final = 1_000
"""The newest runs of the experiment, of which the names of tools are taken."""
_ROWS: Final = 2_000

_WORD = re.compile(r'(-?)(?:([A-Za-z_]{1,40})(:|!=|=))?("?)((?:[^\s,()"]+,)*)([^\s,()"]*)$')


class Suggestion(msgspec.Struct, frozen=True):
    """One thing to type."""

    insert: str
    """What stands between `start` and `end` afterwards."""
    start: int
    end: int
    about: str
    """What it means; of a value, which runs were counted, where not all were."""
    runs: int | None = None
    """How many runs of the experiment have it; None where that is not counted."""


def suggestions(connection: sa.Connection, experiment: int | None, text: str, caret: int) -> list[Suggestion]:
    """What may follow at the caret, the most frequent first."""
    caret = max(0, min(caret, len(text)))
    found = _WORD.search(text, 0, caret)
    # Nothing has a NUL in its name, and PostgreSQL refuses to look for one.
    if found is None or "\0" in text:
        return []
    sign, name, operator, quote, before, part = found.groups()
    start = found.start() + len(sign)
    if name is None:
        if quote:
            return []
        fields = [field for field in FIELDS.values() if field.name.startswith(part)]
        return [Suggestion(f"{field.name}:", start, caret, field.meaning) for field in fields[:MOST]]
    field = FIELDS.get(name)
    if field is None or field.kind in ("number", "time"):
        return []
    if field.name == "grader" and "=" in part:
        grader, _, verdict = part.rpartition("=")
        words = [word for word in VERDICT_WORDS if word.startswith(verdict)]
        return [Suggestion(f"grader:{before}{grader}={word}", start, caret, "") for word in words]
    made = []
    sampled = field.name in ("tool", "toolfail") and experiment is not None and _has_many_runs(connection, experiment)
    about = f"of the newest {RUNS_LOOKED_AT:,}" if sampled else ""
    for value, count in _values(connection, experiment, field.name, part)[:MOST]:
        term = written_term(field.name, value).removeprefix(f"{field.name}:")
        made.append(Suggestion(f"{name}{operator}{before}{term}", start, caret, about, count))
    return made


def _has_many_runs(connection: sa.Connection, experiment: int) -> bool:
    """Whether only some of the runs were looked at."""
    query = sa.select(runs.c.id).where(runs.c.experiment == experiment).offset(RUNS_LOOKED_AT).limit(1)
    return connection.execute(query).first() is not None


def _values(
    connection: sa.Connection, experiment: int | None, field: FieldName, part: str
) -> list[tuple[str, int | None]]:
    """Values that contain what was typed, those that begin with it first."""
    source = _SOURCES.get(field)
    if source is not None and experiment is not None:
        found: Iterable[tuple[str, int | None]] = source(connection, experiment, part)
    elif field == "experiment":
        found = _experiments(connection, part)
    else:
        found = [(word, None) for word in FIELDS[field].words]
    wanted = part.lower()
    having = [(value, count) for value, count in found if wanted in value.lower()]
    return sorted(having, key=lambda pair: (not pair[0].lower().startswith(wanted), -(pair[1] or 0), pair[0]))


_Source = Callable[[sa.Connection, int, str], Iterable[tuple[str, int | None]]]


def _tallied(kind: str, name_of: Callable[[str], str | None] = lambda name: name) -> _Source:
    def source(connection: sa.Connection, experiment: int, part: str) -> Iterable[tuple[str, int | None]]:
        counted: Counter[str] = Counter()
        query = sa.select(tallies.c.name, tallies.c.runs).where(
            tallies.c.experiment == experiment, tallies.c.kind == kind, tallies.c.runs > 0
        )
        for row in connection.execute(query.limit(_ROWS)):
            name = name_of(row.name)
            if name is not None:
                counted[name] += row.runs
        return list(counted.items())

    return source


def _failed_by(name: str) -> str | None:
    outcome, _, grader = name.partition("|")
    return grader if outcome == "failed" else None


def _agents(connection: sa.Connection, experiment: int, part: str) -> Iterable[tuple[str, int | None]]:
    query = sa.select(tallies.c.agent, sa.func.sum(tallies.c.runs)).where(
        tallies.c.experiment == experiment, tallies.c.kind == "outcome"
    )
    return [(row[0], int(row[1])) for row in connection.execute(query.group_by(tallies.c.agent).limit(_ROWS))]


def _tags(connection: sa.Connection, experiment: int, part: str) -> Iterable[tuple[str, int | None]]:
    query = sa.select(case_tags.c.tag).where(case_tags.c.experiment == experiment).distinct().limit(_ROWS)
    return [(row.tag, None) for row in connection.execute(query)]


def _cases(connection: sa.Connection, experiment: int, part: str) -> Iterable[tuple[str, int | None]]:
    query = sa.select(cases.c.case_id).where(cases.c.experiment == experiment).order_by(cases.c.position)
    if part:
        query = query.where(cases.c.case_id.contains(part, autoescape=True))
    return [(row.case_id, None) for row in connection.execute(query.limit(MOST))]


def _tools(
    connection: sa.Connection, experiment: int, part: str, *, failed: bool = False
) -> Iterable[tuple[str, int | None]]:
    newest = sa.select(runs.c.id).where(runs.c.experiment == experiment).order_by(runs.c.id.desc())
    some = newest.limit(RUNS_LOOKED_AT).subquery()
    query = (
        sa.select(steps.c.name, sa.func.count(sa.distinct(steps.c.run)).label("runs"))
        .join(some, some.c.id == steps.c.run)
        .group_by(steps.c.name)
        .limit(_ROWS)
    )
    if failed:
        query = query.where(steps.c.status.in_(sorted(FAILED)))
    return [(row.name, int(row.runs)) for row in connection.execute(query)]


def _experiments(connection: sa.Connection, part: str) -> Iterable[tuple[str, int | None]]:
    query = sa.select(experiments.c.name).where(experiments.c.name.contains(part, autoescape=True)).distinct()
    return [(row.name, None) for row in connection.execute(query.limit(MOST))]


_SOURCES: Final[dict[FieldName, _Source]] = {
    "agent": _agents,
    "case": _cases,
    "tag": _tags,
    "outcome": _tallied("outcome"),
    "error": _tallied("error_class"),
    "grader": _tallied("grader", _failed_by),
    "note": _tallied("note", lambda name: name.partition("|")[2]),
    "tool": _tools,
    "toolfail": partial(_tools, failed=True),
    "why": _tallied("signature"),
}
