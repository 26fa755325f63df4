"""`verdicts.md` 1, 2 and 5: whatever the record, one honest verdict."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from seatrial.trajectory import Step
from verdicts import frameworks, nested, observed, overlooked, readable, single_turns, streams, unreadable
from verdicts.corpus import Entry, Finding, run_corpus


@pytest.fixture(scope="module")
def workplace(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an empty store."""
    path = tmp_path_factory.mktemp("verdicts")
    shutil.copy(empty_store, path / "store.db")
    return path


def _dishonest(entries: Iterable[Entry], workplace: Path, name: str) -> list[str]:
    entries = list(entries)
    names = [entry.name for entry in entries]
    assert len({*names}) == len(names)
    store = workplace / f"{name}.db"
    shutil.copy(workplace / "store.db", store)
    runs = run_corpus(entries, store, workplace / name)
    assert runs.keys() == {*names}
    for found in runs.values():
        run = found.run
        # The events of a run are those of all its attempts, its steps those of the last one.
        if run.steps_source in ("trace", "messages", "events") and run.fault is None and len(run.attempts) == 1:
            if run.reading is not None and any(
                note.code == "trace_disagrees_with_messages" for note in run.reading.notes
            ):
                continue
            reported = run.steps if run.reported is None else run.reported
            assert _view(found.recorded) == _view(reported), "the events of a run and its steps disagree"
    return [_described(entry, runs[entry.name]) for entry in entries if runs[entry.name].outcome != entry.wanted]


def _view(steps: Iterable[Step]) -> list[tuple[str, str, str]]:
    return sorted([(step.name, step.status, step.executed_by) for step in steps])


def _described(entry: Entry, found: Finding) -> str:
    run = found.run
    reasons = [reason for verdict in run.verdicts for reason in verdict.reasons]
    fault = "" if run.fault is None else f" [{run.fault.error_class}: {run.fault.message}]"
    return f"{entry.name}: {found.outcome}, wanted {entry.wanted}{fault}; {' '.join(reasons)[:300]}"


def test_no_call_is_overlooked_and_none_is_counted_twice(workplace: Path) -> None:
    dishonest = _dishonest(overlooked.entries(), workplace, "overlooked")
    assert not dishonest, "\n".join(dishonest)


def test_who_did_the_forbidden_thing_fails_and_who_did_not_passes_in_every_readable_shape(workplace: Path) -> None:
    entries = list(readable.entries())
    assert len([entry for entry in entries if entry.guilty]) >= 150
    assert len([entry for entry in entries if not entry.guilty]) >= 150
    dishonest = _dishonest(entries, workplace, "readable")
    assert not dishonest, "\n".join(dishonest)


def test_nothing_that_is_not_read_whole_passes_a_check_on_calls(workplace: Path) -> None:
    entries = list(unreadable.entries())
    dishonest = _dishonest(entries, workplace, "unreadable")
    assert not dishonest, "\n".join(dishonest)


def test_what_frameworks_give_back_is_read_right_or_not_judged(workplace: Path) -> None:
    entries = list(frameworks.entries())
    assert len([entry for entry in entries if entry.guilty]) >= 100
    dishonest = _dishonest(entries, workplace, "frameworks")
    assert not dishonest, "\n".join(dishonest)


def test_calls_beside_the_events_for_calls_are_not_missed_and_repeated_ones_change_nothing(workplace: Path) -> None:
    dishonest = _dishonest(list(streams.entries()), workplace, "streams")
    assert not dishonest, "\n".join(dishonest)


def test_a_call_inside_something_else_passes_no_check_on_calls(workplace: Path) -> None:
    dishonest = _dishonest(nested.entries(), workplace, "nested")
    assert not dishonest, "\n".join(dishonest)


def test_what_our_proxy_saw_is_judged_whatever_the_agent_writes_down(workplace: Path) -> None:
    dishonest = _dishonest(observed.entries(), workplace, "observed")
    assert not dishonest, "\n".join(dishonest)


def test_one_turn_alone_or_text_that_was_yielded_passes_no_check_on_calls(workplace: Path) -> None:
    dishonest = _dishonest(single_turns.entries(), workplace, "single_turns")
    assert not dishonest, "\n".join(dishonest)
