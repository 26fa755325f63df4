"""**A store that grows**: what pages ask of a store of 1,000,000 runs, 100,000 of them in one experiment, against the
same of a store of 1,000 runs. The large store is made of copies of the runs of the small one, by the database itself.
Times are by the clock on the wall, in turns; on SQLite each must also stay under 30 ms. What the rollups cost is CPU
time of all threads: runs of 8 messages, 3 calls, 2 verdicts and 24 events are recorded 64 at a time, in turns with a
store that keeps no rollups and has no index for pages.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bench.append import _postgres
from bench.clock import Race
from bench.figure import Figure, Level, cost
from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Case, Exchange, Experiment, Grade, Outcome, Run, RunKey, Verdict
from seatrial.store import RunFilter, Store, open_store
from seatrial.store.database import Transaction
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)

CASES, AGENTS, TRIALS = 100, ("crew", "other"), 5
LARGE = 100
"""Copies of the runs in the large experiment."""
OTHERS = 900
"""Further experiments of the size of the small one."""
MESSAGES = 12_480
ROUNDS = 40
RECORDED = 64
"""Runs that are recorded together."""
SMALL = "a store of 1,000 runs"

Work = Callable[[Store, str], object]

_FAILED = RunFilter(outcomes=frozenset({"failed"}))
WORK: dict[str, Work] = {
    "summary of an experiment": lambda store, name: store.totals(name),
    "50 cases of the matrix": lambda store, name: store.matrix(name, first=25, limit=50),
    "a page of 50 runs": lambda store, name: store.runs(name, after=RunKey("other", "case-50", 2), limit=50),
    "50 runs that failed": lambda store, name: store.runs(name, _FAILED, after=RunKey("other", "case-50", 2), limit=50),
    "a long run without its messages": lambda store, name: store.run_record("long"),
    "100 messages of a long run": lambda store, name: store.items("long", MESSAGES - 130, 100),
}


def measure() -> list[Figure | Level]:
    figures: list[Figure | Level] = [_recording()]
    with (
        tempfile.TemporaryDirectory() as folder,
        _stores(str(Path(folder, "small.db")), str(Path(folder, "large.db"))) as (small, large),
    ):
        figures += _figures(small, large, "SQLite", 30e6)
    with _postgres() as one, _postgres() as other, _stores(one, other) as (small, large):
        figures += _figures(small, large, "PostgreSQL", None)
    return figures


def _recording() -> Figure:
    """What a run costs to record, against the same without rollups."""
    plain = "without rollups"
    samples: dict[str, list[float]] = {"seatrial": [], plain: []}
    kept = Transaction.count
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder, "kept.db")) as one,
        open_store(Path(folder, "plain.db")) as other,
    ):
        with other._dialect.migrating() as connection:
            connection.exec_driver_sql("DROP INDEX runs_page")
        for store in (one, other):
            store.create_experiment(_experiment("small"), [_case(index) for index in range((ROUNDS + 1) * RECORDED)])
        for number in range(ROUNDS + 1):
            some = [_talk(number * RECORDED + index) for index in range(RECORDED)]
            for contender, store in (("seatrial", one), (plain, other)):
                Transaction.count = kept if store is one else _uncounted  # type: ignore[method-assign, assignment]
                begun = time.process_time_ns()
                for receipt in [store.record_run(run, events=_EVENTS) for run in some]:
                    receipt.wait()
                if number:
                    samples[contender].append((time.process_time_ns() - begun) / RECORDED)
        Transaction.count = kept  # type: ignore[method-assign]
    return cost(Race(samples), "recording a run, SQLite", plain, at_most=1.15)


def _uncounted(self: Transaction, *given: object) -> None:
    """Count nothing."""


@contextmanager
def _stores(small: str, large: str) -> Iterator[tuple[Store, Store]]:
    with open_store(small) as few, open_store(large) as many:
        _fill(few)
        _fill(many)
        _multiply(many)
        yield few, many


def _figures(small: Store, large: Store, database: str, at_most_ns: float | None) -> list[Figure | Level]:
    figures: list[Figure | Level] = []
    for name, work in WORK.items():
        samples: dict[str, list[float]] = {"seatrial": [], SMALL: []}
        for number in range(ROUNDS + 1):
            for contender, store, experiment in (("seatrial", large, "large"), (SMALL, small, "small")):
                begun = time.perf_counter_ns()
                work(store, experiment)
                if number:  # the first round warms up
                    samples[contender].append(time.perf_counter_ns() - begun)
        title = f"{name}, {database}"
        figures.append(cost(Race(samples), title, SMALL, at_most=2))
        if at_most_ns is not None:
            figures.append(Level(f"{title}: median", sorted(samples["seatrial"])[ROUNDS // 2], at_most_ns, "ns"))
    return figures


def _fill(store: Store) -> None:
    """One experiment of 1,000 runs, and a long run in another one."""
    store.create_experiment(_experiment("small"), [_case(index) for index in range(CASES)])
    for case in range(CASES):
        for agent in AGENTS:
            for trial in range(1, TRIALS + 1):
                store.record_run(_run("small", agent, case, trial))
    store.create_experiment(_experiment("long"), [_case(0)])
    long = _run("long", "crew", 0, 1)
    long.run_id = "long"
    long.reading = _reading(MESSAGES, "a long message " * 200)
    store.record_run(long).wait()


def _multiply(store: Store) -> None:
    with store._dialect.migrating() as connection:
        for number in range(OTHERS):
            _copy(connection, 1000 + number, f"other-{number}", 0, "", 1 + number)
        _copy(connection, 100, "large", 0, "", 2000, copies=LARGE)
        for number in range(1, LARGE):
            _copy_runs(connection, 100, number * CASES, f"-{number}", 2000 + number)
    with store._dialect.migrating() as connection:
        connection.exec_driver_sql("ANALYZE")


def _copy(
    connection: sa.Connection, number: int, name: str, shift: int, suffix: str, block: int, copies: int = 1
) -> None:
    connection.execute(
        sa.text(
            "INSERT INTO experiments (id, experiment_id, name, suite_hash, created_at, status, version, cases, packed,"
            " suite) SELECT :number, :name, :name, suite_hash, created_at, status, version, cases * :copies, packed,"
            " suite FROM experiments WHERE experiment_id = 'small'"
        ),
        {"number": number, "name": name, "copies": copies},
    )
    connection.execute(
        sa.text(
            "INSERT INTO tallies SELECT :number, kind, agent, name, runs * :copies, counted * :copies, total * :copies"
            " FROM tallies WHERE experiment = 1"
        ),
        {"number": number, "copies": copies},
    )
    _copy_runs(connection, number, shift, suffix, block)


def _copy_runs(connection: sa.Connection, number: int, shift: int, suffix: str, block: int) -> None:
    """The cases of the small experiment, their cells and their runs, in another one and under other ids."""
    values = {"number": number, "shift": shift, "suffix": suffix, "first": block * 10_000, "block": f"-{block}"}
    shifted = {
        "cases": {"experiment": ":number", "position": "position + :shift", "case_id": "case_id || :suffix"},
        "cells": {"experiment": ":number", "case_id": "case_id || :suffix"},
        "runs": {
            "id": "id + :first",
            "run_id": "run_id || :block",
            "experiment": ":number",
            "case_id": "case_id || :suffix",
            "position": "position + :shift",
        },
    }
    for table, changed in shifted.items():
        columns = [column["name"] for column in sa.inspect(connection).get_columns(table)]
        given = ", ".join(changed.get(column, column) for column in columns)
        used = {name: value for name, value in values.items() if f":{name}" in given}
        connection.execute(
            sa.text(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {given} FROM {table} WHERE experiment = 1"),
            used,
        )
    connection.execute(
        sa.text(
            "INSERT INTO readings (run, packed, data) SELECT readings.run + :first, readings.packed, readings.data"
            " FROM readings JOIN runs ON runs.id = readings.run WHERE runs.experiment = 1"
        ),
        {"first": values["first"]},
    )


def _experiment(name: str) -> Experiment:
    return Experiment(experiment_id=name, name=name, suite={}, suite_hash="", created_at=0)


def _case(index: int) -> Case:
    return Case(id=f"case-{index}", instruction=f"Do the task number {index}.")


def _reading(messages: int, text: str) -> Reading:
    said: list[Message] = [
        UserMessage(f"{index} {text}") if index % 2 == 0 else AssistantMessage([TextBlock(text)], StopReason.END_TURN)
        for index in range(messages)
    ]
    return Reading("agent_response", Transcript(said), [])


_SENTENCE = "The order was shipped on Monday and is expected to arrive by the end of the week. "
_EVENTS = [
    b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-%d","delta":"%s"}' % (index, _SENTENCE.encode())
    for index in range(24)
]


def _talk(number: int) -> Run:
    """A run of a usual size: three calls and an answer."""
    run = _run("small", "crew", number // TRIALS, number % TRIALS)
    said: list[Message] = [UserMessage(f"Where is order {number}? {_SENTENCE}")]
    run.steps = []
    for index in range(3):
        arguments = {"order": number, "part": index}
        call = ToolCall(f"c{index}", "lookup_order", arguments)
        said.append(AssistantMessage([TextBlock(_SENTENCE), call], StopReason.TOOL_USE))
        said.append(ToolResultMessage(call.id, call.name, [TextBlock(_SENTENCE)]))
        run.steps.append(Step(index, call.name, arguments, call.id, "messages", "ok", _SENTENCE))
    said.append(AssistantMessage([TextBlock(3 * _SENTENCE)], StopReason.END_TURN))
    run.reading = Reading("openai", Transcript(said), [])
    run.verdicts = [*run.verdicts, Verdict(grader="answer", kind="contains", outcome="passed", score=1.0)]
    return run


def _run(experiment: str, agent: str, case: int, trial: int) -> Run:
    outcome: Outcome = "failed" if (case + trial) % 7 == 0 else "passed"
    score = 0.0 if outcome == "failed" else 1.0
    fields: dict[str, Any] = {
        "reading": _reading(4, "Some words that were said."),
        "steps": [Step(0, "lookup_order", {"order": case}, "c", "messages", "ok", "shipped")],
        "completeness": Completeness("complete", "messages", ["messages"]),
        "exchanges": [Exchange(number=1, attempts=[Attempt(number=1, started_at=0, duration_ms=12.5)])],
        "verdicts": [Verdict(grader="calls", kind="equals", outcome=outcome, score=score)],
        "grade": Grade(outcome=outcome, score=score),
        "duration_ms": 100.0 + 37 * case + trial,
    }
    key = RunKey(agent, f"case-{case}", trial)
    return Run(
        run_id=f"{experiment}-{agent}-{case}-{trial}", experiment_id=experiment, key=key, status="completed", **fields
    )
