"""A stream from end to end: the stages one after the other and in one pass, and what comes after a violation."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events, legal_runs

import seatrial.events
from seatrial.events import Violation, expand, fold, replay, verify
from seatrial.events import types as t
from seatrial.events.types import Event

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")


@given(legal_runs())
def test_one_pass_gives_what_the_stages_give(run: list[Event]) -> None:
    result = replay(run)
    assert result.violation is None
    assert result.folded == fold(run)


@given(st.lists(events(), max_size=10))
def test_one_pass_finds_the_violation_that_the_stages_find(stream: list[Event]) -> None:
    run = [STARTED, *stream]
    result = replay(run)
    expanded, broken = expand(run)
    order = verify(expanded)
    if order is None:
        assert result.violation == broken
        if broken is None:
            assert result.folded.messages == fold(expanded).messages
    else:
        # Expansion moves events, so only the finding itself can be compared.
        assert result.violation is not None
        assert (result.violation.code, result.violation.message) == (order.code, order.message)


def test_a_violation_has_the_index_in_the_original_stream() -> None:
    run: list[Event] = [
        STARTED,
        t.TextMessageChunk(message_id="m", delta="a"),
        t.TextMessageChunk(delta="b"),
        t.CustomEvent(name="n", value=1),
        t.TextMessageContent(message_id="m", delta="late"),
    ]
    assert replay(run).violation == Violation(4, "not_open", "TEXT_MESSAGE_CONTENT names 'm', which is not open")
    broken = replay([STARTED, t.ReasoningMessageChunk(delta="x"), FINISHED]).violation
    assert broken is not None
    assert (broken.index, broken.code) == (1, "chunk_without_id")


def test_a_stream_is_folded_on_after_a_violation() -> None:
    run: list[Event] = [
        STARTED,
        STARTED,
        t.TextMessageChunk(delta="nowhere"),
        t.TextMessageStart(message_id="m"),
        t.TextMessageContent(message_id="m", delta="still read"),
        FINISHED,
    ]
    result = replay(run)
    assert result.violation is not None
    assert result.violation.index == 1
    assert [message.content for message in result.folded.messages] == ["still read"]


def test_a_run_starts_from_what_is_given() -> None:
    messages = seatrial.events.agui_messages.read_messages([{"role": "user", "id": "u", "content": "hi"}], (), [])
    result = replay(
        [STARTED, t.StateDelta(delta=[{"op": "add", "path": "/b", "value": 2}])], messages=messages, state={"a": 1}
    )
    assert [message.id for message in result.folded.messages] == ["u"]
    assert result.folded.state == {"a": 1, "b": 2}


@pytest.mark.parametrize("kind", [t.TextMessageChunk, t.TextMessageContent])
def test_a_message_of_many_deltas_costs_linear_time(kind: type[t.TextMessageChunk | t.TextMessageContent]) -> None:
    def seconds(deltas: int) -> float:
        opening: Event = t.TextMessageStart(message_id="m")
        if kind is t.TextMessageChunk:
            opening = t.TextMessageChunk(message_id="m")
        run: list[Event] = [STARTED, opening, *[kind(message_id="m", delta="0123456789") for _ in range(deltas)]]
        began = time.perf_counter()
        result = replay(run)
        took = time.perf_counter() - began
        assert result.violation is None
        assert result.folded.messages[0].content == "0123456789" * deltas
        return took

    seconds(1000)
    # Quadratic cost would be a hundred times as much.
    assert seconds(100_000) < 40 * seconds(10_000)


def test_the_package_offers_what_it_says() -> None:
    for name in seatrial.events.__all__:
        assert getattr(seatrial.events, name) is not None
    with pytest.raises(AttributeError):
        _ = seatrial.events.nothing


def test_functions_win_over_the_modules_that_are_named_after_them() -> None:
    import seatrial.events.fold
    import seatrial.events.unfold

    for name in ("expand", "fold", "replay", "unfold", "verify"):
        assert callable(getattr(seatrial.events, name))
    assert msgspec.json.encode(seatrial.events.fold([STARTED]).messages) == b"[]"
