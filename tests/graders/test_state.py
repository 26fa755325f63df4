"""Graders of the state of a world, over records of what calls did."""

from __future__ import annotations

from typing import Any

import msgspec

from graders.subjects import subject
from seatrial.graders import Surroundings, build_graders
from seatrial.graders.grader import Finding
from seatrial.ledger.changes import FieldChange, LedgerChange
from seatrial.ledger.record import WorldCall, WorldRecord
from seatrial.runs.removed import SECRET_REMOVED, WORLD
from seatrial.transcript import Note


def added(entity: str, **fields: Any) -> LedgerChange:
    entity_type, _, row_id = entity.partition("/")
    return LedgerChange("add", entity_type, row_id, {name: FieldChange(after=value) for name, value in fields.items()})


def judged(
    calls: list[list[LedgerChange]], start: str = "{}", notes: list[Note] | None = None, **config: Any
) -> Finding:
    made = [WorldCall(number, "tool", "ok", changes=changes) for number, changes in enumerate(calls, 1)]
    over = subject("Done.")
    over.run.world = WorldRecord(start, id_fields={"order": "number"}, calls=made)
    assert over.run.reading is not None
    over.run.reading.notes += notes or []
    [grader] = build_graders([config])
    found = grader.prepare().find(over, Surroundings())
    assert isinstance(found, Finding)
    return found


def test_the_same_thing_twice_in_one_call_is_twice() -> None:
    refunds = [added("refund/r-1", order="o-1"), added("refund/r-2", order="o-1")]
    assert judged([refunds], kind="effects", op="add", unique_by="order").outcome == "failed"
    assert judged([refunds[:1], refunds[1:]], kind="effects", op="add", unique_by="order").outcome == "failed"
    assert judged([refunds], kind="effects", op="add", unique_by="id").outcome == "passed"
    assert judged([refunds], kind="effects", op="add", unique_by="ordr").outcome == "errored"


def test_an_id_is_known_by_the_name_that_the_world_has_for_it() -> None:
    start = '{"order": {"o-1": {}}}'
    assert judged([], start, kind="entity_count", type="order", where={"number": "o-1"}, count=0).outcome == "failed"
    assert (
        judged([], start, kind="invariants", always=[{"entity": "order", "where": {"number": "o-1"}}]).outcome
        == "passed"
    )


def test_no_id_that_an_agent_chooses_makes_a_row_a_field() -> None:
    start = '{"file": {"a": {"text": "x"}}}'
    text = LedgerChange("update", "file", "a", {"text": FieldChange("x", "y")})
    mode = LedgerChange("update", "file", "a", {"mode": FieldChange("r", "w")})
    allow = ["file/*.text"]
    assert judged([[text]], start, kind="side_effects", allow=allow).outcome == "passed"
    assert judged([[mode]], start, kind="side_effects", allow=allow).outcome == "failed"
    assert judged([[added("file/evil.text", mode="w")]], start, kind="side_effects", allow=allow).outcome == "failed"
    assert (
        judged([[added("file/b.ini", text="y")]], start, kind="side_effects", allow=["file/b.ini"]).outcome == "passed"
    )


def test_a_record_from_which_a_secret_was_removed_is_not_judged_again() -> None:
    note = Note(SECRET_REMOVED, WORLD, "what was done in the world has a secret of the suite in it")
    found = judged([], notes=[note], kind="entity_absent", entity="mail/m-1")
    assert (found.outcome, found.code) == ("errored", "secret_removed")


def test_a_run_without_a_world_is_not_judged() -> None:
    over = subject("Done.")
    [grader] = build_graders([{"kind": "flag_set", "flag": "f", "clear": True}])
    found = grader.prepare().find(over, Surroundings())
    assert msgspec.to_builtins(found)["outcome"] == "errored"
