"""What an agent streams in pieces: no piece is held back for longer than it may be the beginning of a secret."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.driver.redaction import Redaction
from seatrial.events.deltas import Deltas
from seatrial.events.types import (
    CustomEvent,
    Event,
    MessagesSnapshot,
    RawEvent,
    RunError,
    StateSnapshot,
    TextMessageChunk,
    TextMessageContent,
    TextMessageEnd,
    ToolCallArgs,
    ToolCallChunk,
)
from seatrial.suites import Secrets

SECRETS = Secrets({"KEY": "hunter2", "OTHER": "terhunt!"})


def through(events: list[Event]) -> list[Any]:
    deltas = Deltas(Redaction(SECRETS).split)
    return [*(ready for event in events for ready in deltas.take(event)), *deltas.rest()]


@given(st.lists(st.sampled_from(["h", "hun", "ter", "hunter", "2", "t!", "x", "hunt", "hunter2", ""]), max_size=12))
def test_pieces_together_are_what_the_whole_is_without_secrets(pieces: list[str]) -> None:
    said = through([TextMessageContent(message_id="m", delta=piece) for piece in pieces])
    assert "".join(event.delta for event in said) == SECRETS.redact("".join(pieces))


def test_what_is_no_beginning_of_a_secret_goes_on_at_once() -> None:
    deltas = Deltas(Redaction(SECRETS).split)
    event = TextMessageContent(message_id="m", delta="Good day")
    assert deltas.take(event) == [event]
    assert deltas.rest() == []
    assert not deltas.found


def test_a_secret_that_was_in_pieces_is_known_to_have_been_there() -> None:
    deltas = Deltas(Redaction(SECRETS).split)
    for piece, found in (("a hun", False), ("ter", False), ("2!", True), ("x", True)):
        deltas.take(TextMessageContent(message_id="m", delta=piece))
        assert deltas.found == found


def test_what_is_held_back_comes_before_the_end_of_its_message_and_texts_do_not_mix() -> None:
    said = through(
        [
            TextMessageContent(message_id="m", delta="a hun"),
            ToolCallArgs(tool_call_id="c", delta='{"k": "hunter'),
            TextMessageContent(message_id="m", delta="gry man, hunt"),
            ToolCallArgs(tool_call_id="c", delta='2"}'),
            TextMessageEnd(message_id="m"),
        ]
    )
    assert [getattr(event, "delta", None) for event in said] == [
        *("a ", '{"k": "', "hungry man, ", '${KEY}"}', "hunt", None),
    ]


@pytest.mark.parametrize("kind", [TextMessageContent, TextMessageChunk])
def test_what_comes_in_the_midst_of_a_text_gives_no_piece_of_a_secret_away(kind: Any) -> None:
    between: list[Event] = [RawEvent(event={})]
    if kind is TextMessageContent:  # these would end what chunks are building
        between += [StateSnapshot(snapshot={}), CustomEvent(name="progress", value=1)]
    said = through([kind(message_id="m", delta="it is hun"), *between, kind(message_id="m", delta="ter2")])
    assert "".join(getattr(event, "delta", "") for event in said) == "it is ${KEY}"
    assert [event for event in said if event in between] == between


@pytest.mark.parametrize("last", [RunError(message="no"), MessagesSnapshot(messages=[])])
def test_what_is_held_back_comes_before_what_ends_every_text(last: Event) -> None:
    said = through([TextMessageContent(message_id="m", delta="hun"), last])
    assert [type(event) for event in said] == [TextMessageContent, type(last)]


def test_a_first_piece_that_is_held_back_keeps_what_it_says_of_its_call() -> None:
    first = ToolCallChunk(tool_call_id="c", tool_call_name="dig", delta="hun")
    said = through([first, ToolCallChunk(tool_call_id="c", delta="gry")])
    assert [(event.tool_call_name, event.delta) for event in said] == [("dig", "hungry")]
    assert first.delta == "hun", "the agent's own event is not touched"


def test_chunks_that_do_not_say_what_they_continue_are_one_text() -> None:
    said = through([TextMessageChunk(message_id="m", delta="it is hun"), TextMessageChunk(delta="ter2")])
    assert "".join(event.delta for event in said) == "it is ${KEY}"


def test_what_is_held_back_of_chunks_comes_before_what_ends_them() -> None:
    said = through(
        [
            TextMessageChunk(message_id="m", delta="a hun"),
            ToolCallChunk(tool_call_id="c", tool_call_name="f", delta="hunt"),
            TextMessageChunk(message_id="n", delta="b"),
        ]
    )
    assert [(type(event).__name__, event.delta) for event in said] == [
        ("TextMessageChunk", "a "),
        ("TextMessageChunk", "hun"),
        ("ToolCallChunk", "hunt"),
        ("TextMessageChunk", "b"),
    ]
