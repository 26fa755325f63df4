"""What is read of a record that has far too much in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response
from seatrial.formats.chat import Chat
from seatrial.formats.limits import LEAST_PIECES, RECORD_CUT
from seatrial.formats.tally import Tally
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
from seatrial.formats import agent_response
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
    run = Run(run_id="r", experiment_id="e", key=RunKey("a", "c", 0), status="completed")
    conclude(run, reading)
    assert run.completeness is not None
    assert run.completeness.level == "partial"


def test_past_the_limits_one_note_says_that_the_record_was_cut() -> None:
    tally = Tally(100)
    chat = Chat(tally)
    chat.read_all({"role": "user", "content": "a"} for _ in range(LEAST_PIECES + 10))
    assert len(chat.messages) == LEAST_PIECES
    assert [note.code for note in tally.total()] == [RECORD_CUT]
    tally = Tally(100)
    chat = Chat(tally)
    calls = [{"id": "1", "name": "f", "arguments": "{}"}] * (LEAST_PIECES // 2 + 10)
    chat.read_all([{"role": "assistant", "tool_calls": calls}] * 2)
    assert [note.code for note in tally.total()] == [RECORD_CUT]


def test_a_file_with_too_much_in_it_is_refused() -> None:
    with pytest.raises(SeatrialError) as caught:
        formats.read(b"[" + b",".join([b"{}"] * 600_000) + b"]")
    assert caught.value.code == "too_large"
