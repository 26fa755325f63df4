"""Events for people: pieces joined, nothing that steers a terminal, colours where they are wanted."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events as any_event

from seatrial.cli.commands.tail import EventLines
from seatrial.events import types as t


def shown(*events: t.Event, first: int = 0) -> str:
    stream = io.StringIO()
    lines = EventLines(stream)
    for sequence, event in enumerate(events, start=first):
        lines.show(sequence, event)
    lines.end_line()
    return stream.getvalue()


def say(text: str, message_id: str = "m", **fields: Any) -> t.TextMessageContent:
    return t.TextMessageContent(message_id=message_id, delta=text, **fields)


def test_a_run_reads_like_a_conversation() -> None:
    assert (
        shown(
            t.RunStarted(thread_id="t-1", run_id="r"),
            t.StepStarted(step_name="look"),
            t.TextMessageStart(message_id="m", role="assistant"),
            say("Let me "),
            say("look."),
            t.TextMessageEnd(message_id="m"),
            t.ToolCallStart(tool_call_id="c", tool_call_name="find_order"),
            t.ToolCallArgs(tool_call_id="c", delta='{"order":'),
            t.ToolCallArgs(tool_call_id="c", delta='"o-1"}'),
            t.ToolCallEnd(tool_call_id="c"),
            t.ToolCallResult(message_id="x", tool_call_id="c", content="shipped\non Monday"),
            t.StepFinished(step_name="look"),
            t.RunFinished(thread_id="t-1", run_id="r", result={"ok": True}),
        )
        == """\
     0  run started thread t-1
     1  step look
     3  assistant Let me look.
     6  call find_order {"order":"o-1"}
    10  result find_order shipped on Monday
    11  step done look
    12  run finished {"ok":true}
"""
    )


def test_messages_that_take_turns_have_lines_of_their_own() -> None:
    assert (
        shown(say("a", "1"), say("b", "2"), say("c", "2"), say("d", "1"))
        == """\
     0  assistant a
     1  assistant bc
     3  assistant d
"""
    )


def test_chunks_are_joined_also_without_ids() -> None:
    assert (
        shown(
            t.TextMessageChunk(message_id="m", role="user", delta="Hel"),
            t.TextMessageChunk(delta="lo"),
            t.ToolCallChunk(tool_call_id="c", tool_call_name="find", delta="{"),
            t.ToolCallChunk(delta="}"),
            t.ReasoningMessageChunk(message_id="r", delta="hm"),
            t.ReasoningMessageChunk(delta="m"),
        )
        == """\
     0  user Hello
     2  call find {}
     4  reasoning hmm
"""
    )


def test_lines_of_a_text_stay_below_each_other() -> None:
    assert shown(say("one\ntwo\n\nthree")) == "     0  assistant one\n        two\n        \n        three\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (t.RunError(message="no", code="timeout"), "run failed no [timeout]"),
        (t.RunError(message="no"), "run failed no [no code]"),
        (t.RunFinished(thread_id="t", run_id="r", outcome=t.CancelledOutcome()), "run cancelled"),
        (
            t.RunFinished(
                thread_id="t",
                run_id="r",
                outcome=t.InterruptOutcome([t.Interrupt("i", "confirm", "Really?"), t.Interrupt("j", "confirm")]),
            ),
            "run waits for input i: Really?; j: confirm",
        ),
        (t.StateSnapshot(snapshot=None), 'state snapshot {"snapshot":null}'),
        (t.CustomEvent(name="mine", value=[1]), "custom mine [1]"),
        (t.SubagentStarted(subagent_run_id="s", name="helper"), "[s] started helper"),
        (t.SubagentError(subagent_run_id="s", message="lost"), "[s] failed lost"),
        (say("hi", subagent_run_id="s"), "[s] assistant hi"),
    ],
)
def test_what_an_event_says(event: t.Event, line: str) -> None:
    assert shown(event) == f"     0  {line}\n"


def test_hostile_text_cannot_steer_the_terminal() -> None:
    evil = "\x1b[2J\x9b\r\u202e"
    told = shown(
        say(evil),
        t.StepStarted(step_name=evil),
        t.ToolCallStart(tool_call_id="c", tool_call_name=evil),
        t.RunError(message=evil, code=evil),
        t.CustomEvent(name=evil, value=evil),
        say("x", subagent_run_id=evil),
    )
    assert not set(told) & set("\x1b\x9b\r\u202e")
    assert "\\x1b[2J" in told


def test_a_result_without_end_is_one_line() -> None:
    told = shown(t.ToolCallResult(message_id="x", tool_call_id="c", content="y\n" * 100_000))
    assert len(told) < 200


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    EventLines(stream).show(3, t.RunError(message="no"))
    assert stream.getvalue() == "\x1b[2m     3\x1b[0m  \x1b[31mrun failed\x1b[0m no [no code]\n"


@given(st.lists(any_event(), max_size=8))
def test_every_event_can_be_shown(events: list[t.Event]) -> None:
    told = shown(*events)
    assert told == "" or told.endswith("\n")
    assert "\x1b" not in told
