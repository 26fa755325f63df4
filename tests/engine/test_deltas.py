from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.setting import Scripted, a_suite, run_suite, runs_of
from seatrial import wire
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.streamed import StreamedRun
from seatrial.engine.deltas import Deltas
from seatrial.engine.redaction import SECRET_REMOVED, Redaction
from seatrial.events import encode_event
from seatrial.events.types import (
    Event,
    RunStarted,
    TextMessageChunk,
    TextMessageContent,
    TextMessageEnd,
    ToolCallArgs,
    ToolCallChunk,
)
from seatrial.store import Store
from seatrial.suites import Secrets

SECRETS = Secrets({"KEY": "hunter2", "OTHER": "terhunt!"})


def through(events: list[Event]) -> list[Any]:
    deltas = Deltas(Redaction(SECRETS))
    return [*(ready for event in events for ready in deltas.take(event)), *deltas.rest()]


@given(st.lists(st.sampled_from(["h", "hun", "ter", "hunter", "2", "t!", "x", "hunt", "hunter2", ""]), max_size=12))
def test_pieces_together_are_what_the_whole_is_without_secrets(pieces: list[str]) -> None:
    said = through([TextMessageContent(message_id="m", delta=piece) for piece in pieces])
    assert "".join(event.delta for event in said) == SECRETS.redact("".join(pieces))


def test_what_is_no_beginning_of_a_secret_goes_on_at_once() -> None:
    deltas = Deltas(Redaction(SECRETS))
    event = TextMessageContent(message_id="m", delta="Good day")
    assert deltas.take(event) == [event]
    assert deltas.rest() == []


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


def test_a_first_piece_that_is_held_back_keeps_what_it_says_of_its_call() -> None:
    first = ToolCallChunk(tool_call_id="c", tool_call_name="dig", delta="hun")
    said = through([first, ToolCallChunk(tool_call_id="c", delta="gry")])
    assert [(event.tool_call_name, event.delta) for event in said] == [("dig", "hungry")]
    assert first.delta == "hun", "the agent's own event is not touched"


@pytest.mark.parametrize("before", ["", "hunter2 and "], ids=["in pieces only", "once whole, too"])
def test_a_secret_that_is_streamed_piece_by_piece_is_in_no_event_and_no_body(store: Store, before: str) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        stream = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
        for piece in (before, "ok, my key is hun", "te", "r2, and now you know"):
            stream.put(encode_event(TextMessageChunk(message_id="m", delta=piece)))
        stream.finish()
        return stream.reply(None)

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=SECRETS)
    assert tally.outcomes == {"passed": 1}
    (run,) = runs_of(store, experiment)
    events = b"\n".join(event for _, event in store.events(run.run_id))
    assert b"${KEY}, and now" in events
    assert b'"te"' not in events
    assert store.run(run.run_id).body is None
    assert run.attempts[0].body_hash is None
    assert run.reading is not None
    assert SECRET_REMOVED in [note.code for note in run.reading.notes]
    assert b"my key is ${KEY}, and now" in wire.encode(run.reading)
