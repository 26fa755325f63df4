"""Stores that earlier versions wrote: readable at once, converted in the background."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from strategies import records
from strategies.databases import database
from strategies.rollups import check_rollups

from seatrial.runs import RunKey, ServedKey
from seatrial.runs.signature import signature_of
from seatrial.store import Review, RunFilter, Store, conversion, open_store, schema
from seatrial.store.open import _dialect, migrate

STORES = Path(__file__).parent / "old_stores"
RUNS = 43


@pytest.fixture(params=["0001", "0004", "0005"])
def version(request: pytest.FixtureRequest) -> str:
    """A version of the schema."""
    found: str = request.param
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> Iterator[str]:
    """A store as that version wrote it."""
    made = STORES / f"{version}.db"
    if request.param == "sqlite" and made.exists():
        yield str(shutil.copy(made, tmp_path / "old.db"))
    elif request.param == "sqlite":
        _copy(STORES / "0005.db", str(tmp_path / "old.db"), version)
        yield str(tmp_path / "old.db")
    else:
        with database(request.getfixturevalue("postgres_server")) as url:
            _copy(made if made.exists() else STORES / "0005.db", url, version)
            yield url


def _opened(made: Path) -> sqlite3.Connection:
    """A store to read rows of. SQLite leaves nothing beside a file that it takes as immutable."""
    return sqlite3.connect(f"{made.as_uri()}?immutable=1", uri=True)


def _copy(made: Path, where: str, version: str) -> None:
    """Make a store of that version, with all rows of another one that it has tables and columns for."""
    dialect = _dialect(where, create=True)
    with dialect.migrating() as connection, closing(_opened(made)) as old:
        migrate(connection, dialect, version)
        there = sa.inspect(connection)
        for table in schema.metadata.sorted_tables:
            made_there = old.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table.name,)).fetchone()
            if made_there is None or not there.has_table(table.name):
                continue
            columns = [column["name"] for column in there.get_columns(table.name)]
            rows = old.execute(f"SELECT {', '.join(columns)} FROM {table.name}").fetchall()
            if rows:
                into = sa.table(table.name, *[sa.column(name) for name in columns])
                connection.execute(sa.insert(into), [dict(zip(columns, row, strict=True)) for row in rows])
        if connection.dialect.name == "postgresql":
            for counter in ("runs_id_seq", "experiments_id_seq"):
                connection.execute(sa.select(sa.func.setval(counter, 1000)))
    dialect.close()


def converted(store: Store) -> Store:
    """The store, when there is nothing left to convert."""
    deadline = time.monotonic() + 60
    while store.unconverted():
        assert time.monotonic() < deadline, "it is not converted"
        time.sleep(0.02)
    return store


def everything(store: Store) -> dict[str, Any]:
    """Whatever can be asked of the experiments of an old store, but what earlier versions did not have."""
    failed = RunFilter(outcomes=frozenset({"failed", "errored"}))
    return {
        "experiments": store.experiments(),
        "notes": store.resolve_experiment("exp-1").notes,
        "runs": [(run.key, run.run_id, run.outcome, run.steps, run.cost_usd) for run in store.runs("exp-1")],
        "failed": [run.run_id for run in store.runs("exp-1", failed)],
        "page": [run.run_id for run in store.runs("exp-1", after=store.runs("exp-1")[9].key, limit=7)],
        "totals": store.totals("exp-1"),
        "matrix": store.matrix("exp-1"),
        "cells": store.agent_cells("exp-1", "crew"),
        "graders": store.grader_counts("exp-1"),
        "noted": store.note_totals("exp-1"),
        "whole": list(store.whole_runs("exp-1")),
        "one": store.run("run-late-case-1-0"),
        "items": [item.index for item in store.items("run-late-case-1-0", 150, 60)],
        "record": store.run_record("run-crew-case-2-0"),
        "events": store.events("run-crew-case-0-0"),
        "hits": store.search("bollard", limit=100),
        "served": store.run("served-1"),
    }


@pytest.fixture
def without_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is converted by itself."""
    monkeypatch.setattr(Store, "convert", lambda self: None)


def test_an_old_store_is_read_the_same_before_and_after_it_is_converted(old: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Store, "convert", lambda self: None)
        with open_store(old) as store:
            assert store.unconverted() == RUNS
            before = everything(store)
    assert len(before["runs"]) == 40
    assert sum(agent.runs for agent in before["totals"].agents) == 40
    with open_store(old) as store:
        after = everything(converted(store))
        check_rollups(store)
        check_rollups(store, "exp-2")
        assert store.signatures("exp-1")[0].signature.startswith("tool_trajectory|trajectory")
        [last] = [item for item in store.items("run-late-case-1-0", 245, 100) if item.long_texts]
        assert (last.index, store.text(last.long_texts[0].address)) == (250, "x" * 40_000)
    assert after == before


@pytest.mark.parametrize("version", ["0008"])
def test_a_store_with_rollups_and_a_selection_inside_the_suite_is_read_as_it_was(old: str) -> None:
    with open_store(old) as store:
        assert store.unconverted() == 0
        check_rollups(store)
        assert len(everything(store)["runs"]) == 40
        second = store.resolve_experiment("exp-2")
        assert second.selected == {"crew": ["case-0"]}
        assert "selected" not in second.suite
        assert store.resolve_experiment("exp-1").selected is None
        # Written by a version that stored no outlines.
        assert [entry.first for entry in store.outline("run-late-case-1-0", 248, 10)] == [248, 249, 250]
        # It goes on with what is there.
        assert store.record_run(records.run(3, agent="late"), replace=True).wait()
        check_rollups(store)


@pytest.mark.parametrize("version", ["0008", "0009"])
def test_verdicts_and_grades_of_earlier_versions_have_outcomes(old: str) -> None:
    with open_store(old) as store:
        for run in store.whole_runs("exp-1"):
            assert run.fault is None or run.fault.error_class != "record_damaged"
        graded = store.run("run-crew-case-1-0")
        assert graded.grade is not None
        assert (graded.grade.outcome, [verdict.outcome for verdict in graded.verdicts]) == ("failed", ["failed"])
        assert store.known_verdicts("run-crew-case-1-0")["again"].outcome == "failed"
        assert store.grader_counts("exp-1")[0].outcomes["passed"] > 0


@pytest.mark.parametrize("version", ["0001", "0005", "0008", "0009"])
def test_trials_of_earlier_versions_are_counted_from_1(old: str, version: str) -> None:
    with open_store(old) as store:
        keys = {run.run_id: run.key for run in store.runs("exp-1")}
        for agent in ("crew", "other"):
            for case in range(6):
                for number in range(3):
                    found = keys[f"run-{agent}-case-{case}-{number}"]
                    assert found == RunKey(agent, f"case-{case}", number + 1)
        assert keys["left-behind"].trial == 1
        # The first version had no run service: its copy of the store has the run without its thread.
        served = RunKey("crew", "served-1", 1) if version == "0001" else ServedKey("crew", "served-1")
        assert store.run("served-1").key == served
        # What was done is not done again, and what was begun goes on.
        assert set(store.done_keys("exp-1")) == {key for run_id, key in keys.items() if run_id != "left-behind"}
        store.begin_run("exp-1", RunKey("late", "case-3", 1), "left-behind").wait()


@pytest.mark.parametrize("version", ["0009"])
def test_the_verdicts_in_a_composite_one_have_outcomes_and_details_of_others_stay_as_they_are(old: str) -> None:
    with open_store(old) as store:
        outer, own = store.run("run-late-case-1-0").verdicts
        assert (outer.outcome, own.outcome) == ("failed", "errored")
        assert own.details == {"judgement": "mine"}
        [composite] = outer.details
        assert [composite["outcome"], *(inner["outcome"] for inner in composite["details"])] == [
            "failed",
            "passed",
            "failed",
        ]
        assert "judgement" not in str(outer.details)
        assert signature_of("failed", None, [outer], lambda index: None) == "tool_trajectory|inner"


@pytest.mark.parametrize("version", ["0001", "0005", "0009", "0011"])
def test_runs_of_earlier_versions_have_one_exchange_with_all_their_attempts(old: str) -> None:
    dialect = _dialect(old, create=False)
    with dialect.migrating() as connection:
        for change in (
            "INSERT INTO attempts (run, number, data) SELECT run, 2, data FROM attempts WHERE run = (%s)",
            "UPDATE runs SET attempts = 2 WHERE id = (%s)",
        ):
            connection.exec_driver_sql(change % "SELECT id FROM runs WHERE run_id = 'run-crew-case-1-0'")
    dialect.close()
    with open_store(old) as store:
        found = {run.run_id: run for run in store.whole_runs("exp-1")}
        assert not [run.fault for run in found.values() if run.fault and run.fault.error_class == "record_damaged"]
        counts = {run.run_id: [len(exchange.attempts) for exchange in run.exchanges] for run in found.values()}
        assert counts.pop("run-crew-case-1-0") == [2]
        # One was recorded without its attempts, one had begun.
        without = {run_id for run_id, count in counts.items() if count != [1]}
        assert without == {"left-behind", next(run_id for run_id in counts if run_id.startswith("run-late-case-0"))}
        assert [counts[run_id] for run_id in without] == [[], []]
        assert found["run-crew-case-0-0"].exchanges[0].number == 1


@pytest.mark.parametrize("version", ["0001", "0005", "0008", "0012"])
def test_runs_of_earlier_versions_can_be_reviewed(old: str) -> None:
    with open_store(old) as store:
        assert store.reviews("exp-1") == []
        assert store.run_reviews("run-crew-case-1-0") == []
        store.add_review("run-crew-case-1-0", Review(at=1, reviewer="Ada", grader="trajectory", word="right")).wait()
        (found,) = store.reviews("exp-1")
        assert (found.run_id, found.said) == ("run-crew-case-1-0", "failed")
        # Votes of earlier versions are not looked through; what graders say otherwise is found in all.
        assert {each.chosen for each in store.doubtful_runs("exp-1", "trajectory")} <= {"contradicts"}


def test_a_conversion_that_breaks_off_goes_on_where_it_was(old: str, without_conversion: None) -> None:
    with open_store(old) as store:
        before = everything(store)
        done = 0
        for size in (1, 7, 20):
            numbers = store._next_batch()[:size]
            store._writer.submit(conversion.ConvertRuns(numbers)).wait()
            # The same again, as after a commit of which nobody knows whether it went through.
            store._writer.submit(conversion.ConvertRuns(numbers)).wait()
            done += size
            assert store.unconverted() == RUNS - done
            assert everything(store) == before
    with open_store(old) as store:
        conversion.Conversion(store._next_batch, store._writer.submit)._thread.join(60)
        assert store.unconverted() == 0
        assert everything(store) == before
        check_rollups(store)


def test_a_process_that_is_killed_while_it_converts_leaves_a_store_that_is_right(old: str) -> None:
    program = (
        "import os, sys; from seatrial.store import conversion, open_store;"
        "conversion.RUNS_AT_ONCE = 3; conversion._NEXT = conversion._NEXT.limit(3);"
        "store = open_store(sys.argv[1]);"
        "[None for _ in iter(lambda: store.unconverted() > 25, False)]; os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, old], timeout=120, check=False).returncode == 9
    with open_store(old) as store:
        converted(store)
        check_rollups(store)


def test_runs_that_are_not_converted_yet_can_be_graded_and_replaced(old: str, without_conversion: None) -> None:
    with open_store(old) as store:
        store.record_verdicts("run-crew-case-0-1", [records.verdict("failed")], records.grade("failed"))
        store.record_run(records.run(1, trial=1, run_id="new", said=("capstan",)), replace=True)
        store.record_run(records.run(3, agent="late", run_id="resumed")).wait()
        assert len(store.search("capstan")) == 1
        [crew, *_] = store.totals("exp-1").agents
        assert crew.runs == 18
        before = everything(store)
        conversion.Conversion(store._next_batch, store._writer.submit)._thread.join(60)
        assert everything(store) == before
        check_rollups(store)


def test_a_new_store_has_nothing_to_convert(filled: Store) -> None:
    filled.record_run(records.run()).wait()
    assert filled.unconverted() == 0
    assert filled._conversion is None


@pytest.mark.parametrize("version", ["0013"])
def test_the_tags_of_cases_of_earlier_versions_are_found_and_a_damaged_case_has_none(old: str) -> None:
    cases, tags = schema.cases, schema.case_tags
    dialect = _dialect(old, create=False)
    with dialect.migrating() as connection:
        for case_id, data in (
            ("case-0", b'{"id":"case-0","instruction":"x","tags":["account","vip","account"]}'),
            ("case-1", b'{"id":"case-1","tags":'),
        ):
            connection.execute(sa.update(cases).where(cases.c.case_id == case_id).values(packed=0, data=data))
    dialect.close()
    with open_store(old) as store:
        assert store.case_tags("exp-1").of == {"case-0": ("account", "vip")}
    dialect = _dialect(old, create=False)
    with dialect.migrating() as connection:
        found = connection.execute(sa.select(tags.c.tag, tags.c.case_id)).all()
    dialect.close()
    assert set(found) == {("account", "case-0"), ("vip", "case-0")}
