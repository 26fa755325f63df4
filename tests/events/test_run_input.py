"""What a run starts from, and the answers to open interrupts."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.errors import SeatrialError
from seatrial.events import read_run_input, resume_problem, start_messages
from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import Interrupt
from seatrial.transcript import Note

FULL = {
    "threadId": "t",
    "runId": "r",
    "protocolVersion": "1.0",
    "parentRunId": "p",
    "state": {"a": None},
    "messages": [{"role": "user", "id": "u", "content": "hi"}],
    "tools": [{"name": "f", "description": "d", "parameters": {"type": "object"}}],
    "context": [{"description": "d", "value": "v"}],
    "forwardedProps": {"x": 1},
    "resume": [{"interruptId": "i", "status": "resolved", "payload": {"ok": True}}],
}


def test_a_run_input_round_trips() -> None:
    assert msgspec.to_builtins(read_run_input(msgspec.json.encode(FULL))) == FULL


def test_only_ids_and_messages_are_required() -> None:
    small = {"threadId": "t", "runId": "r", "messages": []}
    assert msgspec.to_builtins(read_run_input(msgspec.json.encode(small))) == small
    for key in small:
        with pytest.raises(SeatrialError) as caught:
            read_run_input(msgspec.json.encode({name: value for name, value in small.items() if name != key}))
        assert caught.value.code == "invalid_document"


def test_the_messages_to_start_from_are_read_leniently() -> None:
    notes: list[Note] = []
    run_input = read_run_input(msgspec.json.encode({**FULL, "messages": [*FULL["messages"], {"role": "alien"}]}))
    assert [message.id for message in start_messages(run_input, notes)] == ["u"]
    assert [(note.code, note.pointer) for note in notes] == [("agui_message_dropped", "/messages/1")]


def test_a_resume_answers_every_open_interrupt_and_no_other() -> None:
    interrupts = [Interrupt("a", "confirmation"), Interrupt("b", "tool_call")]
    a, b, c = (ResumeEntry(name, "resolved") for name in "abc")
    assert resume_problem(interrupts, [a, b]) is None
    assert resume_problem([], []) is None
    assert "'b'" in str(resume_problem(interrupts, [a]))
    assert "'a', 'b'" in str(resume_problem(interrupts, []))
    assert "'c' is not open" in str(resume_problem(interrupts, [a, b, c]))


def test_an_expired_interrupt_can_only_be_cancelled() -> None:
    interrupts = [Interrupt("a", "confirmation")]
    expired = frozenset({"a"})
    assert "expired" in str(resume_problem(interrupts, [ResumeEntry("a", "resolved")], expired=expired))
    assert resume_problem(interrupts, [ResumeEntry("a", "cancelled")], expired=expired) is None
