"""Experiments and cases, on both stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import Case
from seatrial.store import CaseTags, Store, schema
from seatrial.transcript import Note


def test_an_experiment_comes_back_as_it_was_stored(store: Store) -> None:
    experiment = records.experiment()
    experiment.suite = {"agents": [{"name": "crew", "token": "${TOKEN}"}], "padding": "x" * 5000}
    assert store.create_experiment(experiment, records.cases(3)) == 3
    assert store.resolve_experiment("exp-1") == experiment


def test_notes_of_agents_are_added_to_those_before_and_leave_the_suite_as_it_was(store: Store) -> None:
    notes = [Note("batch_id_unknown", f"/{line}", "the id is 'ü'") for line in range(3)]
    experiment = records.experiment()
    experiment.notes = {"mate": notes[:1]}
    store.create_experiment(experiment, [])
    store.add_notes("exp-1", "crew", notes[:1]).wait()
    store.add_notes("exp-1", "crew", notes[1:]).wait()
    found = store.resolve_experiment("exp-1")
    assert found.notes == {"mate": notes[:1], "crew": notes}
    assert found.suite == experiment.suite


@pytest.mark.parametrize("selected", [None, {}, {"crew": ["case-0", "case-2"], "mate": ["case-1"]}])
def test_the_cases_of_each_agent_come_back_and_are_not_in_the_suite(
    store: Store, selected: dict[str, list[str]] | None
) -> None:
    experiment = records.experiment()
    experiment.selected = selected
    store.create_experiment(experiment, records.cases(3))
    found = store.resolve_experiment("exp-1")
    assert found.selected == selected
    assert found.suite == experiment.suite


def test_cases_come_back_in_the_order_of_the_suite(store: Store) -> None:
    cases = [
        Case(id="zebra", instruction="last letter first", expected={"a": [1, None]}, tags=["x"], timeout_s=1.5),
        Case(id="apple", instruction="y" * 10_000, world={"initial_state": {"orders": {}}}),
        *records.cases(1200),
    ]
    store.create_experiment(records.experiment(), iter(cases))
    assert list(store.cases("exp-1")) == cases
    assert store.case("exp-1", "apple") == cases[1]


def test_the_tags_of_all_cases_come_back_each_once(store: Store) -> None:
    tags = [["refund", "slow", "refund"], [], ["refund"]]
    cases = [Case(id=f"case-{number}", instruction="x" * 5000, tags=some) for number, some in enumerate(tags)]
    store.create_experiment(records.experiment(), cases)
    assert store.case_tags("exp-1") == CaseTags({"case-0": ("refund", "slow"), "case-2": ("refund",)}, cases=3)


@pytest.mark.parametrize("broken", [b"{", b'{"tags":3}', b'{"tags":["\xff"]}'])
def test_a_case_that_is_damaged_has_unknown_tags_and_not_none(store: Store, broken: bytes) -> None:
    store.create_experiment(records.experiment(), [Case(id=name, instruction="x", tags=["t"]) for name in "ab"])
    with store._dialect.migrating() as connection:
        change = sa.update(schema.cases).where(schema.cases.c.case_id == "b").values(packed=0, data=broken)
        connection.execute(change)
    assert store.case_tags("exp-1") == CaseTags({"a": ("t",)}, cases=2, unread=1)


def test_cases_are_taken_as_they_come(store: Store) -> None:
    stored: list[int] = []

    def generated() -> Iterator[Case]:
        for case in records.cases(2000):
            if case.id == "case-1999":
                stored.append(sum(1 for _ in store.cases("exp-1")))
            yield case

    store.create_experiment(records.experiment(), generated())
    assert stored[0] >= 500


def test_an_experiment_without_cases_is_one(store: Store) -> None:
    assert store.create_experiment(records.experiment(), []) == 0
    assert list(store.cases("exp-1")) == []
    assert store.runs("exp-1") == []


def test_the_latest_experiment_is_the_last_created_whatever_the_clock_says(store: Store) -> None:
    for experiment_id, created_at in (("b", 2), ("c", 9), ("a", 1)):  # the clock was set back
        store.create_experiment(records.experiment(experiment_id, created_at=created_at), [])
    assert store.resolve_experiment("latest").experiment_id == "a"
    assert store.resolve_experiment("refunds").experiment_id == "a"
    assert [found.experiment_id for found in store.experiments()] == ["a", "c", "b"]
    assert [found.experiment_id for found in store.experiments(limit=1)] == ["a"]


def test_a_name_means_the_newest_of_that_name(store: Store) -> None:
    store.create_experiment(records.experiment("e1", name="refunds", created_at=1), [])
    store.create_experiment(records.experiment("e2", name="refunds", created_at=2), [])
    store.create_experiment(records.experiment("e3", name="returns", created_at=3), [])
    assert store.resolve_experiment("refunds").experiment_id == "e2"


def test_the_beginning_of_an_id_is_enough_when_only_one_has_it(store: Store) -> None:
    store.create_experiment(records.experiment("0199aa"), [])
    store.create_experiment(records.experiment("0199bb"), [])
    assert store.resolve_experiment("0199b").experiment_id == "0199bb"
    with pytest.raises(SeatrialError, match="several") as caught:
        store.resolve_experiment("0199")
    assert caught.value.code == "ambiguous"


def test_what_is_not_there_is_not_found(store: Store) -> None:
    for ref in ("latest", "nope", "", "%", "_", "'; DROP TABLE runs; --", "\N{SNOWMAN}"):
        with pytest.raises(SeatrialError) as caught:
            store.resolve_experiment(ref)
        assert caught.value.code == "not_found"


def test_an_experiment_ends_and_goes_on(store: Store) -> None:
    store.create_experiment(records.experiment(), [])
    store.finish_experiment("exp-1", finished_at=7, stop_reason="interrupted").wait()
    stopped = store.resolve_experiment("exp-1")
    assert (stopped.status, stopped.finished_at, stopped.stop_reason) == ("stopped", 7, "interrupted")
    store.resume_experiment("exp-1").wait()
    assert store.resolve_experiment("exp-1") == records.experiment()
    store.finish_experiment("exp-1", finished_at=9).wait()
    assert store.experiments()[0].status == "finished"


def test_two_cases_of_one_id_are_refused_and_the_experiment_is_not_seen(store: Store) -> None:
    twice = [*records.cases(2), Case(id="case-0", instruction="again")]
    with pytest.raises(SeatrialError) as caught:
        store.create_experiment(records.experiment(), twice)
    assert caught.value.code == "conflict"
    assert store.experiments() == []


def test_an_experiment_that_was_given_up_can_be_stored_again(store: Store) -> None:
    def broken() -> Iterator[Case]:
        yield from records.cases(700)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.create_experiment(records.experiment(), broken())
    assert store.experiments() == []
    store.create_experiment(records.experiment(), [Case(id="only", instruction="this")])
    assert [case.id for case in store.cases("exp-1")] == ["only"]


def test_an_id_is_used_once(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(1))
    with pytest.raises(SeatrialError) as caught:
        store.create_experiment(records.experiment(), records.cases(2))
    assert caught.value.code == "conflict"
    assert len(list(store.cases("exp-1"))) == 1


def test_an_id_that_a_database_cannot_keep_is_refused(store: Store) -> None:
    for case_id in ("", "a\0b", "\ud800", "x" * 1025, "\N{GRINNING FACE}" * 257):
        with pytest.raises(SeatrialError) as caught:
            store.create_experiment(records.experiment(), [Case(id=case_id, instruction="")])
        assert caught.value.code == "unstorable"


def test_any_other_id_is_kept(store: Store) -> None:
    odd = ["x" * 1024, "\N{GRINNING FACE}" * 256, " ", "Größe/äöü", "a\nb", "'\"`;--"]
    store.create_experiment(records.experiment(), [Case(id=case_id, instruction="") for case_id in odd])
    for number, case_id in enumerate(odd):
        assert store.record_run(records.run(case_id, run_id=f"run-{number}")).wait()
    assert [run.key.case_id for run in store.runs("exp-1")] == odd


def test_what_is_not_json_in_a_suite_is_refused(store: Store) -> None:
    experiment = records.experiment()
    experiment.suite = {"agent": object()}
    with pytest.raises(SeatrialError) as caught:
        store.create_experiment(experiment, [])
    assert caught.value.code == "unstorable"
