from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from strategies.events import legal_runs

from seatrial.events import Event, replay, to_transcript
from seatrial.events.deltas import CompactEvents
from seatrial.events.types import (
    CustomEvent,
    RunFinished,
    RunStarted,
    TextMessageContent,
    TextMessageEnd,
    TextMessageStart,
)
from seatrial.transcript import Notes

STARTED = RunStarted(thread_id="t", run_id="r")
FINISHED = RunFinished(thread_id="t", run_id="r")


def compacted(events: list[Event]) -> list[Event]:
    kept = CompactEvents()
    for event in events:
        kept.append(event)
    assert len(kept) == len(events)
    return kept.all()


def pieces(*texts: str, **fields: object) -> list[Event]:
    return [TextMessageContent(message_id="m", delta=text, **fields) for text in texts]  # type: ignore[arg-type]


@given(legal_runs(), st.integers(1, 4))
def test_what_events_add_up_to_is_the_same(events: list[Event], times: int) -> None:
    repeated = [copy for event in events for copy in [event] * (times if isinstance(event, TextMessageContent) else 1)]
    before, after = replay(repeated), replay(compacted(repeated))
    assert to_transcript(after.folded, Notes()) == to_transcript(before.folded, Notes())
    assert (after.notes, after.violation) == (before.notes, before.violation)


def test_a_text_in_many_pieces_takes_no_more_than_its_text_and_keeps_every_place() -> None:
    begun = TextMessageStart(message_id="m", role="assistant")
    events = [STARTED, begun, *pieces("a", "b", "c"), TextMessageEnd(message_id="m"), FINISHED]
    kept = compacted(events)
    assert [getattr(event, "delta", None) for event in kept] == [None, None, "abc", "", "", None, None]
    assert kept[3] is kept[4]
    assert events[2] == TextMessageContent(message_id="m", delta="a"), "the agent's own event is not touched"


def test_pieces_that_say_more_than_their_text_stay_as_they_are() -> None:
    events = [*pieces("a"), *pieces("b", metadata={"seen": 1}), *pieces("c", metadata={"seen": 2}), *pieces("d")]
    assert compacted(events) == events


def test_times_of_pieces_do_not_keep_them_apart() -> None:
    first, second = compacted([*pieces("a", timestamp=1), *pieces("b", timestamp=2)])
    assert first == TextMessageContent(message_id="m", delta="ab", timestamp=1)
    assert second == TextMessageContent(message_id="m", delta="")


def test_a_compacted_text_and_the_message_it_becomes_are_one_text() -> None:
    begun = TextMessageStart(message_id="m", role="assistant")
    kept = compacted([STARTED, begun, *pieces("a", "b", "c"), TextMessageEnd(message_id="m"), FINISHED])
    (message,) = replay(kept).folded.messages
    assert message.content == "abc"
    assert message.content is kept[2].delta  # type: ignore[union-attr]


def test_custom_events_without_room_for_a_call_take_a_place_and_nothing_else() -> None:
    values = (1, 0.5, True, None)
    kept = compacted([CustomEvent(name="progress", value=value, timestamp=7) for value in values])
    assert all(event is kept[0] for event in kept)


def test_custom_events_that_may_say_something_of_calls_stay_as_they_are() -> None:
    events: list[Event] = [
        CustomEvent(name="n", value={"tool": "search"}),
        CustomEvent(name="n", value=["search"]),
        CustomEvent(name="n", value='{"tool": "search", "arguments": {}}'),
        CustomEvent(name="n", value=1, metadata={"tool": "search"}),
        CustomEvent(name="n", value=1, raw_event={"tool": "search"}),
        CustomEvent(name="n", value=1, subagent_run_id="s"),
    ]
    assert all(after is before for after, before in zip(compacted(events), events, strict=True))
