"""A stream from end to end: the stages one after the other and in one pass, and what comes after a violation."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.events import events, legal_runs
from strategies.growth import growth

import seatrial.events
from seatrial.events import Expander, Folded, Folding, OrderViolation, Verifier, expand, fold, replay, verify
from seatrial.events import types as t
from seatrial.events.types import Event

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")


def staged(run: list[Event]) -> tuple[OrderViolation | None, Folded]:
    """The stages one after the other, event by event, without a shortcut."""
    expander, verifier, folding = Expander(), Verifier(), Folding()
    violation: OrderViolation | None = None
    for index, event in enumerate(run):
        expanded = expander.feed(event, index)
        if isinstance(expanded, OrderViolation):
            violation = violation or expanded
            continue
        for part in expanded:
            violation = violation or verifier.feed(part, index)
            folding.feed(part, index)
    return violation, folding.result()


@given(legal_runs())
def test_a_legal_run_gives_in_one_pass_what_the_stages_give(run: list[Event]) -> None:
    result = replay(run)
    assert result.violation is None
    assert (result.violation, result.folded) == staged(run)
    assert expand(run) == (run, None)
    assert verify(run) is None
    assert result.folded == fold(run)


@given(st.lists(events(), max_size=10))
def test_any_stream_gives_in_one_pass_what_the_stages_give(stream: list[Event]) -> None:
    result = replay([STARTED, *stream])
    assert (result.violation, result.folded) == staged([STARTED, *stream])


@st.composite
def busy_lanes(draw: st.DrawFn) -> list[Event]:
    """Few ids and agents, many deltas: whole events and chunks that continue, interrupt and repeat each other."""
    menu: list[Event] = []
    for tag in (msgspec.UNSET, "s"):
        for item in ("a", "b"):
            menu += [
                t.TextMessageStart(message_id=item, subagent_run_id=tag),
                t.TextMessageContent(message_id=item, delta="x", subagent_run_id=tag),
                t.TextMessageEnd(message_id=item, subagent_run_id=tag),
                t.TextMessageChunk(message_id=item, delta="c", subagent_run_id=tag),
                t.ToolCallChunk(tool_call_id=item, tool_call_name="f", delta="{", subagent_run_id=tag),
                t.ReasoningMessageChunk(message_id=item, delta="r", subagent_run_id=tag),
            ]
        menu += [
            t.TextMessageChunk(delta="d", subagent_run_id=tag),
            t.TextMessageChunk(subagent_run_id=tag),
            t.ToolCallChunk(delta="}", subagent_run_id=tag),
            t.CustomEvent(name="n", value=1, subagent_run_id=tag),
        ]
    menu.append(t.MessagesSnapshot(messages=[{"id": "a", "role": "user", "content": "u"}]))
    drawn = draw(st.lists(st.sampled_from(range(len(menu))), max_size=30))
    # Runs of the same event are what the shortcut is about.
    return [STARTED, *[menu[at] for at in drawn for _ in range(draw(st.integers(1, 3)))]]


@settings(max_examples=300)
@given(busy_lanes())
def test_deltas_of_several_lanes_give_in_one_pass_what_the_stages_give(run: list[Event]) -> None:
    result = replay(run)
    assert (result.violation, result.folded) == staged(run)


def test_a_chunk_without_attribution_may_continue_another_lane_than_the_parents() -> None:
    run: list[Event] = [
        STARTED,
        t.ToolCallChunk(tool_call_id="b", tool_call_name="f", delta="1", subagent_run_id="s"),
        t.ToolCallChunk(tool_call_id="c", tool_call_name="f", delta="2"),
        t.ToolCallChunk(tool_call_id="b", delta="3"),
        t.ToolCallChunk(tool_call_id="b", delta="4"),
    ]
    folded = replay(run).folded
    calls = [call for message in folded.messages for call in message.tool_calls]  # type: ignore[union-attr]
    assert [(call.id, call.function.arguments) for call in calls] == [("b", "134"), ("c", "2")]


def test_a_violation_has_the_index_in_the_original_stream() -> None:
    run: list[Event] = [
        STARTED,
        t.TextMessageChunk(message_id="m", delta="a"),
        t.TextMessageChunk(delta="b"),
        t.CustomEvent(name="n", value=1),
        t.TextMessageContent(message_id="m", delta="late"),
    ]
    assert replay(run).violation == OrderViolation(4, "not_open", "TEXT_MESSAGE_CONTENT names 'm', which is not open")
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
    def replaying(deltas: int) -> Callable[[], None]:
        opening: Event = t.TextMessageStart(message_id="m")
        if kind is t.TextMessageChunk:
            opening = t.TextMessageChunk(message_id="m")
        run: list[Event] = [STARTED, opening, *[kind(message_id="m", delta="0123456789") for _ in range(deltas)]]

        def replay_all() -> None:
            result = replay(run)
            assert result.violation is None
            assert result.folded.messages[0].content == "0123456789" * deltas

        return replay_all

    # Quadratic cost would be a hundred times as much.
    assert growth(replaying, 10_000, 100_000, below=40) < 40


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
