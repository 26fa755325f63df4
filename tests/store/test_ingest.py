"""Runs, on both stores."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import messages, records

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.runs import Attempt, Case, ChangedFile, Exchange, Fault, Grade, Run, ServedKey, Verdict, WorkspaceDiff
from seatrial.store import Store, address
from seatrial.store.rows import StoredReading, reading_of
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, Note, StopReason, ToolCall, Transcript, Usage
from seatrial.transcript.call_facts import CallFacts, PlacedFacts

_numbers = itertools.count()


def full_run() -> Run:
    """A run that has everything a run can have."""
    reading = records.reading("Refund A-17", "Done.", usage=Usage(10, 20), cost=0.25)
    reading.notes = [Note("role_unknown", "/messages/3", "guessed"), Note("content_dropped", "", "dropped")]
    reading.id, reading.trace_ref = "line-7", "trace.json"
    reading.trace = [TraceEvent("tool_call", 12, "c", "refund", {"order": "A-17"}, None, None, {"k": [1]})]
    reading.transcript.answer = "Done."
    reading.transcript.metadata = {"model": "m", "nested": {"a": [None, 1.5]}}
    timeout = Fault("agent_timeout", "no answer in 30 s", detail="x" * 600, retry_after_s=1.5)
    return records.run(
        body=b"\x00\xff raw \r\n",
        reading=reading,
        steps=[
            Step(0, "refund", {"order": "A-17"}, "c1", "observed", "ok", None, mode="simulated", duration_ms=3),
            Step(1, "refund", None, arguments_text="{broken", status="error", error="not JSON"),
        ],
        steps_source="observed",
        reported=[Step(0, "refund", {"order": "A-18"}, "c1", "messages", "ok")],
        attempts=[
            Attempt(number=1, started_at=5, duration_ms=30_000.0, fault=timeout, body_hash=address(b"half")),
            Attempt(number=2, started_at=6, duration_ms=12.5, http_status=200, body_bytes=10),
        ],
        verdicts=[
            records.verdict("failed"),
            Verdict(grader="judge", kind="judge", outcome="errored", details={"votes": [1]}, cost_usd=0.1),
        ],
        grade=Grade(outcome="failed", score=0.5, threshold=0.8, reasons=["0.5 < 0.8"]),
        metadata={"seed": 7, "note": "\N{SNOWMAN}"},
    )


def test_a_run_comes_back_with_all_its_parts(filled: Store) -> None:
    run = full_run()
    assert filled.record_run(run, events=[b'{"type":"A"}', b'{"type":"B"}'], bodies=[b"half"]).wait()
    assert filled.run(run.run_id) == run
    assert filled.events(run.run_id) == [(0, b'{"type":"A"}'), (1, b'{"type":"B"}')]
    assert filled.body(address(b"half")) == b"half"


def test_every_attempt_comes_back_in_its_exchange(filled: Store) -> None:
    run = full_run()
    first, second = run.attempts
    run.exchanges = [Exchange(number=1, attempts=[first, second]), Exchange(number=2, attempts=[first])]
    assert filled.record_run(run, bodies=[b"half"]).wait()
    again = filled.run(run.run_id)
    assert again.exchanges == run.exchanges == filled.run_record(run.run_id).exchanges
    assert again.attempts == [first, second, first]
    assert filled.runs("exp-1")[0].attempts == 3


def test_a_run_without_an_answer_comes_back_too(filled: Store) -> None:
    fault = Fault("agent_unreachable", "connection refused")
    run = records.run(
        status="failed", outcome=None, said=(), body=None, steps=[], steps_source=None, attempts=[], fault=fault
    )
    filled.record_run(run).wait()
    assert filled.run(run.run_id) == run
    assert filled.done_keys("exp-1") == {run.key: "errored"}


@given(
    transcript=messages.transcripts(),
    arguments=messages.json_values(),
    metadata=messages.json_objects(),
    body=st.binary(max_size=5000),
    events=st.lists(messages.json_values().map(msgspec.json.encode), max_size=5),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_run_holds_comes_back(
    filled: Store, transcript: Transcript, arguments: Any, metadata: dict[str, Any], body: bytes, events: list[bytes]
) -> None:
    run = records.run(
        reading=Reading("openai", transcript, []), steps=[Step(0, "f", arguments)], metadata=metadata, body=body
    )
    run.run_id = f"run-{next(_numbers)}"
    assert filled.record_run(run, events=events, replace=True).wait()
    assert msgspec.json.encode(filled.run(run.run_id)) == msgspec.json.encode(run)
    assert [event for _, event in filled.events(run.run_id)] == events


def test_a_run_is_stored_as_it_was_when_it_was_handed_over(filled: Store) -> None:
    run = records.run(metadata={"seed": 1})
    receipt = filled.record_run(run)
    run.metadata["seed"] = 2
    receipt.wait()
    assert filled.run(run.run_id).metadata == {"seed": 1}


def test_recording_the_same_run_again_changes_nothing(filled: Store) -> None:
    run = records.run()
    receipts = [filled.record_run(run, events=[b"{}"]) for _ in range(3)]
    assert [receipt.wait() for receipt in receipts] == [True, True, True]
    assert filled.record_run(run, events=[b"{}"]).wait()
    assert len(filled.runs("exp-1")) == 1
    assert len(filled.events(run.run_id)) == 1


def test_a_second_run_of_the_same_key_is_not_stored(filled: Store) -> None:
    assert filled.record_run(records.run(run_id="first", outcome="failed")).wait()
    assert filled.record_run(records.run(run_id="second")).wait() is False
    assert [run.run_id for run in filled.runs("exp-1")] == ["first"]
    with pytest.raises(SeatrialError) as caught:
        filled.run("second")
    assert caught.value.code == "not_found"


def test_a_run_is_replaced_with_all_its_parts_when_that_is_asked_for(filled: Store) -> None:
    filled.record_run(full_run(), events=[b"1", b"2", b"3"]).wait()
    again = records.run(run_id="again")
    assert filled.record_run(again, events=[b"4"], replace=True).wait()
    assert filled.run("again") == again
    assert filled.events("again") == [(0, b"4")]
    assert len(filled.runs("exp-1")) == 1
    assert filled.totals("exp-1").agents[0].runs == 1


def test_one_bad_run_takes_no_other_with_it(filled: Store, caplog: pytest.LogCaptureFixture) -> None:
    receipts = {case: filled.record_run(records.run(case)) for case in (0, 1, "unknown", 2)}
    for case, receipt in receipts.items():
        if case == "unknown":
            with pytest.raises(SeatrialError, match="unknown") as caught:
                receipt.wait()
            assert caught.value.code == "not_found"
        else:
            assert receipt.wait()
    assert len(filled.done_keys("exp-1")) == 3
    assert not caplog.records, "it is the caller's business, not the log's"


def test_an_id_belongs_to_one_run(filled: Store) -> None:
    filled.record_run(records.run(0, run_id="same")).wait()
    with pytest.raises(SeatrialError) as caught:
        filled.record_run(records.run(1, run_id="same")).wait()
    assert caught.value.code == "conflict"


def test_runs_of_an_unknown_experiment_are_refused(filled: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        filled.record_run(records.run(experiment_id="nope"))
    assert caught.value.code == "not_found"


def test_a_run_of_the_run_service_is_not_recorded_in_an_experiment(filled: Store) -> None:
    run = Run(run_id="served", key=ServedKey("crew", "thread-1"), status="completed")
    with pytest.raises(SeatrialError) as error:
        filled.record_run(run)
    assert error.value.code == "conflict"


def test_ids_that_a_database_cannot_keep_are_refused(filled: Store) -> None:
    for text in ("a\0b", "\udfff", "x" * 1100):
        for run in (records.run(run_id=text), records.run(agent=text)):
            with pytest.raises(SeatrialError) as caught:
                filled.record_run(run)
            assert caught.value.code == "unstorable"


def test_a_run_that_goes_on_is_not_recorded(filled: Store) -> None:
    with pytest.raises(SeatrialError, match="running"):
        filled.record_run(records.run(status="running"))


def test_what_is_not_json_in_a_run_is_refused(filled: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        filled.record_run(records.run(metadata={"seed": object()}))
    assert caught.value.code == "unstorable"


def test_hostile_text_of_an_agent_is_kept_in_the_documents_and_mended_in_the_columns(filled: Store) -> None:
    name = "n\0ul " + "x" * 100_000
    run = records.run(
        said=("\0", "a\0b \ud83d lone"),
        steps=[Step(0, name, {"k\0": "\0"}, status="ok", duration_ms=1e308)],
        verdicts=[records.verdict(grader="g\0")],
    )
    assert filled.record_run(run).wait()
    stored = filled.run(run.run_id)
    assert stored.steps[0].name == name
    assert stored.reading is not None
    assert stored.reading.transcript.messages[0] == records.reading("\0").transcript.messages[0]
    assert filled.grader_counts("exp-1")[0].grader == "g\ufffd"


@pytest.mark.parametrize(("error_class", "cost"), [("connection_lost", None), ("agent_unreachable", 0.5)])
def test_what_a_run_used_up_is_unknown_when_an_earlier_attempt_reached_the_agent(
    filled: Store, error_class: str, cost: float | None
) -> None:
    first = Attempt(number=1, started_at=0, duration_ms=1, fault=Fault(error_class, "no answer"))
    reading = records.reading("a", usage=Usage(10, 20), cost=0.5)
    run = records.run(reading=reading, attempts=[first, Attempt(number=2, started_at=1, duration_ms=1)])
    filled.record_run(run).wait()
    (found,) = filled.runs("exp-1")
    assert (found.cost_usd, found.input_tokens) == (cost, None if cost is None else 10)


@pytest.mark.parametrize("absurd", [1e308, float("inf"), float("nan"), -1e200])
def test_absurd_numbers_of_an_agent_do_not_spoil_the_counts(filled: Store, absurd: float) -> None:
    most = 2**63 - 1
    for case in range(2):
        usage = Usage(most, most)
        run = records.run(case, reading=records.reading("a", usage=usage, cost=absurd), duration_ms=absurd)
        filled.record_run(run).wait()
    filled.record_run(records.run(2, reading=records.reading("a", cost=0.5))).wait()
    found = filled.runs("exp-1")
    assert [run.input_tokens for run in found] == [most, most, None]
    assert [(run.cost_usd, run.duration_ms) for run in found] == [(None, None), (None, None), (0.5, 12.5)]


def test_a_large_body_is_kept_once_and_compressed(filled: Store) -> None:
    body = b'{"text": "again and again"}' * 100_000
    for case in range(3):
        filled.record_run(records.run(case, body=body)).wait()
    assert filled.body(address(body)) == body
    assert filled.run("run-crew-case-2-1").body == body


def test_what_is_no_content_address_is_not_found(filled: Store) -> None:
    for wanted in ("", "zz", "ab" * 31, "ab" * 33, "x" * 10_000, address(b"never stored")):
        with pytest.raises(SeatrialError) as caught:
            filled.body(wanted)
        assert caught.value.code == "not_found"


def test_a_run_may_hold_thousands_of_steps_and_notes(filled: Store) -> None:
    reading = records.reading("a", "b")
    reading.notes = [Note("content_dropped", f"/messages/{index}", "") for index in range(3000)]
    run = records.run(reading=reading, steps=[Step(index, "f", {"n": index}) for index in range(3000)])
    filled.record_run(run).wait()
    assert filled.run(run.run_id) == run


def test_many_threads_record_at_once(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(200))

    def record(first: int) -> None:
        receipts = [store.record_run(records.run(case), events=[b"{}"]) for case in range(first, 200, 4)]
        assert all(receipt.wait() for receipt in receipts)

    threads = [threading.Thread(target=record, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.done_keys("exp-1")) == 200


def test_a_new_grading_counts_and_the_old_verdicts_stay_known(filled: Store) -> None:
    run = records.run(verdicts=[records.verdict("failed", key="a"), records.verdict("failed", key="b")])
    filled.record_run(run).wait()
    better = [records.verdict("passed", key="c")]
    filled.record_verdicts(run.run_id, better, records.grade("passed")).wait()
    stored = filled.run(run.run_id)
    assert (stored.verdicts, stored.grade) == (better, records.grade("passed"))
    assert filled.done_keys("exp-1") == {run.key: "passed"}
    assert set(filled.known_verdicts(run.run_id)) == {"a", "b", "c"}
    assert filled.grader_counts("exp-1")[0].outcomes == {"passed": 1}


def test_several_gradings_of_one_run_at_once_come_one_after_the_other(filled: Store) -> None:
    run = records.run()
    filled.record_run(run)
    for key in ("a", "b", "c"):
        last = filled.record_verdicts(run.run_id, [records.verdict(key=key)], records.grade())
    last.wait()
    assert [verdict.key for verdict in filled.run(run.run_id).verdicts] == ["c"]
    assert set(filled.known_verdicts(run.run_id)) == {"key-1", "a", "b", "c"}


def test_a_run_that_gave_no_answer_stays_failed_whatever_a_grader_says(filled: Store) -> None:
    run = records.run(status="failed", outcome=None)
    filled.record_run(run).wait()
    filled.record_verdicts(run.run_id, [records.verdict()], records.grade("passed")).wait()
    assert filled.done_keys("exp-1") == {run.key: "failed"}


def test_verdicts_on_an_unknown_run_are_refused(filled: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        filled.record_verdicts("nope", [], records.grade()).wait()
    assert caught.value.code == "not_found"


def test_cases_of_two_experiments_are_kept_apart(filled: Store) -> None:
    filled.create_experiment(records.experiment("exp-2"), [Case(id="case-0", instruction="other")])
    filled.record_run(records.run(0)).wait()
    filled.record_run(records.run(0, run_id="other", experiment_id="exp-2", outcome="failed")).wait()
    assert list(filled.done_keys("exp-1").values()) == ["passed"]
    assert list(filled.done_keys("exp-2").values()) == ["failed"]
    assert filled.run("other").experiment_id == "exp-2"


def test_a_reading_of_an_earlier_version_has_the_facts_of_a_call_by_its_id() -> None:
    calls = [AssistantMessage([ToolCall(name, "find", {})], StopReason.TOOL_USE) for name in ("a", "b", "a")]
    by_id = {"a": CallFacts(executed_by="user", status="error"), "b": CallFacts(executed_by="user"), "c": CallFacts()}
    stored = StoredReading("openai", Transcript([*calls]), calls=by_id)
    again = reading_of(wire.encode(stored), [])
    # Nobody knows which of the calls with one id it was.
    unknown = CallFacts(status="unknown")
    assert again.facts == [PlacedFacts(0, unknown), PlacedFacts(1, by_id["b"]), PlacedFacts(2, unknown)]


def test_a_stored_reading_knows_no_more_of_calls_than_it_did(filled: Store) -> None:
    reading = records.reading("Refund A-17", "Done.")
    reading.answer_only, reading.facts = True, [PlacedFacts(1, CallFacts(status="unknown"))]
    run = records.run(reading=reading)
    filled.record_run(run).wait()
    assert filled.run(run.run_id).reading == reading


def test_the_diff_of_a_workspace_comes_back_whole_however_long_its_patch_is(filled: Store) -> None:
    files = [ChangedFile(path="a.txt", change="modified", added=1, removed=0), ChangedFile(path="b", change="added")]
    patch = "".join(f"+line {number} \N{SNOWMAN}\n" for number in range(20_000))
    run = records.run(diff=WorkspaceDiff(files=files, patch=patch, unlisted="the folder x cannot be read"))
    filled.record_run(run).wait()
    assert filled.run(run.run_id).diff == run.diff
    record = filled.run_record(run.run_id)
    assert record.diff is not None
    assert record.diff.files == files
    [long] = [text for text in record.long_texts if text.pointer == "/diff/patch"]
    assert filled.text(long.address) == patch


def test_a_run_without_a_workspace_has_no_diff(filled: Store) -> None:
    run = records.run()
    filled.record_run(run).wait()
    assert filled.run(run.run_id).diff is None
