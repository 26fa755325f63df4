"""What is read of a record that has far too much in it."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial import formats
from seatrial.agents.output import read_record
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response, output_messages
from seatrial.formats.chat import hidden_calls
from seatrial.formats.chat.hidden_calls import KEY_TWICE_IN_OBJECT, note_repeated_keys
from seatrial.formats.chat.limits import _SLICE, LEAST_PIECES, MAX_NODES, MAX_VALUES, RECORD_CUT, excess
from seatrial.formats.chat.notes import NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.runs import Run, RunKey
from seatrial.runs.conclusion import conclude
from seatrial.transcript.note import MAX_NOTES

MEGABYTES = 6


def body(unit: bytes, size: int = MEGABYTES * 1024 * 1024) -> bytes:
    count = size // (len(unit) + 1)
    return b'{"final_response":"Done.","messages":[' + b",".join([unit] * count) + b"]}"


UNITS = {
    "empty objects": b"{}",
    "small objects": b'{"a":1}',
    "nested arrays": b"[[[]]]",
    "numbers": b"1",
    "texts": b'"ab"',
    "messages": b'{"role":"user","content":"a"}',
    "unknown parts": b'{"role":"assistant","content":[{"type":"x"},{"type":"text","text":"a"}]}',
    "calls": b'{"role":"assistant","tool_calls":[{"id":"1","name":"f","arguments":"{}"}]}',
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_an_answer_takes_no_more_memory_than_twenty_times_its_size(unit: bytes) -> None:
    # In a process of its own, whose peak is nobody else's; the peak of making the body is not counted.
    program = f"""
import resource, tracemalloc
from seatrial.formats import agent_response, output_messages
unit = {unit!r}
count = {MEGABYTES * 1024 * 1024} // (len(unit) + 1)
data = b'{{"final_response":"Done.","messages":[' + (unit + b",") * count + unit + b"]}}"
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reading = agent_response.read(data)
used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
assert used <= 20 * len(data) + 100 * 2**20, (used, len(data))
assert reading.transcript.answer == "Done."
print(len(reading.notes))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= MAX_NOTES + 1


@pytest.mark.parametrize("unit", [UNITS["empty objects"], UNITS["numbers"], UNITS["unknown parts"]])
def test_what_was_cut_makes_the_calls_partly_unknown(unit: bytes) -> None:
    reading = agent_response.read(body(unit))
    run = Run(run_id="r", experiment_id="e", key=RunKey("a", "c", 1), status="completed")
    conclude(run, reading)
    assert run.completeness is not None
    assert run.completeness.level == "partial"


def test_past_the_limits_one_note_says_that_the_record_was_cut() -> None:
    tally = NoteTally(100)
    chat = Chat(tally)
    chat.read_all({"role": "user", "content": "a"} for _ in range(LEAST_PIECES + 10))
    assert len(chat.messages) == LEAST_PIECES
    assert [note.code for note in tally.total()] == [RECORD_CUT]
    tally = NoteTally(100)
    chat = Chat(tally)
    calls = [{"id": "1", "name": "f", "arguments": "{}"}] * (LEAST_PIECES // 2 + 10)
    chat.read_all([{"role": "assistant", "tool_calls": calls}] * 2)
    assert [note.code for note in tally.total()] == [RECORD_CUT]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"[" + b",".join([b"{}"] * 600_000) + b"]", "200,000 values"),
        (b"[" * 300_000 + b"{" * 300_000, "500,000 objects and arrays"),
    ],
)
def test_a_file_with_too_much_in_it_is_refused_and_told_of_what(data: bytes, what: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        formats.read(data)
    assert caught.value.code == "too_large"
    assert what in caught.value.message


SIGNS = '[{"a, b",\\' + '\\"' + "}]"


@pytest.mark.parametrize("reader", [agent_response, output_messages])
def test_brackets_and_commas_inside_a_text_are_no_objects_and_values(reader: ModuleType) -> None:
    text = ",[{" * (MAX_NODES + 1) + SIGNS
    key = "final_response" if reader is agent_response else "text"
    reading = reader.read(msgspec.json.encode({key: text}))
    assert reading.transcript.answer == text
    assert RECORD_CUT not in [note.code for note in reading.notes]


@given(st.lists(st.text(alphabet='\\",[{ab\n', max_size=12), max_size=20), st.integers(-8, 8))
def test_only_what_is_outside_of_texts_counts_wherever_they_are_cut(texts: list[str], shift: int) -> None:
    # The texts lie across the border of two slices.
    before = '"' + "," * (_SLICE - 20 + shift) + '"'
    most = before + "".join("," + msgspec.json.encode(text).decode() for text in texts)
    values = MAX_VALUES - len(texts)
    at_the_limit = "[" + most + ",1" * values + "]"
    assert excess(at_the_limit.encode()) is None
    assert excess(at_the_limit.encode() + b",1") is not None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_text_that_lacks_its_end_hides_nothing_in_the_lines_behind_it(end: str) -> None:
    assert excess(('{"a": "b' + end + "[" + "1," * (MAX_VALUES + 1) + '1, "c"]').encode()) is not None


def test_of_a_provider_response_with_too_much_in_it_the_text_is_read_and_the_calls_are_unknown() -> None:
    reading = output_messages.read(b'{"text":"Done.","output_messages":[' + b",".join([b"{}"] * 600_000) + b"]}")
    assert reading.transcript.answer == "Done."
    assert [(note.code, note.message) for note in reading.notes] == [
        (RECORD_CUT, "there are more than 200,000 values, so nothing but the answer was read")
    ]
    run = Run(run_id="r", experiment_id="e", key=RunKey("a", "c", 1), status="completed")
    conclude(run, reading)
    assert run.completeness is not None
    assert run.completeness.level == "partial"


@pytest.mark.parametrize("text", [b"", b'"text":null,', b'"text":"",', b'"text":{"format":{}},'])
def test_a_provider_response_with_too_much_in_it_and_no_text_is_refused(text: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        output_messages.read(b"{" + text + b'"output":[' + b",".join([b"{}"] * 600_000) + b"]}")
    assert caught.value.code == "too_large"


def test_an_answer_that_is_a_huge_object_is_none_and_is_not_opened() -> None:
    reading = agent_response.read(b'{"final_response":{' + b",".join(b'"%d":1' % n for n in range(300_000)) + b"}}")
    assert not reading.transcript.answer
    assert [note.code for note in reading.notes] == [RECORD_CUT, "final_response_missing"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"final_response":"Deleted.","messages":[%s],"final_response":"Done."}',
        b'{"\\u0066inal_response":["Deleted."],"messages":[%s],"final_response":"Done."}',
        b'{"text":"Deleted.","output_messages":[%s],"text":"Done."}',
    ],
)
def test_an_answer_that_is_given_twice_is_noted_in_a_record_of_which_nothing_else_is_read(body: bytes) -> None:
    data = body % b",".join([b"1"] * (MAX_VALUES + 2))
    reading = note_repeated_keys(data, read_record(data))
    assert reading.transcript.answer == "Done."
    assert {RECORD_CUT, KEY_TWICE_IN_OBJECT} <= {note.code for note in reading.notes}


def test_an_answer_that_occurs_deeper_down_is_not_a_second_one() -> None:
    data = b'{"final_response":"Done.","messages":[%s],"a":{"final_response":"No."}}' % b",".join([b"1"] * MAX_VALUES)
    reading = note_repeated_keys(data, read_record(data))
    assert reading.transcript.answer == "Done."
    assert KEY_TWICE_IN_OBJECT not in {note.code for note in reading.notes}


def test_a_record_that_is_too_much_to_open_is_not_opened_to_look_for_keys_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 24 million numbers, each of them a text: seconds in which no other thread runs, and 26 times their size.
    data = body(b"12")
    monkeypatch.setattr(hidden_calls, "repeated_keys", pytest.fail)
    note_repeated_keys(data, read_record(data))
