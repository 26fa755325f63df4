"""What is made of the bytes of a stream: the same however they are cut, nothing twice, no gap that goes unseen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import cuts

from client.scripted import RUN, a_stream, envelope, frame, keepalive, script, terminal
from seatrial.client.follow import MAX_NOTES, Follow, StreamForm
from seatrial.events import encode_ndjson, encode_sse
from seatrial.events.types import CustomEvent, RawEvent, SubagentStarted, TextMessageContent

EVENTS = script(8)


def followed(*chunks: bytes, **options: Any) -> tuple[list[int], Follow]:
    follow = Follow(RUN, **options)
    return [received.envelope.sequence for chunk in chunks for received in follow.feed(chunk)], follow


def frames(*numbers: int) -> bytes:
    return b"".join([frame(number, EVENTS[number]) for number in numbers])


def fault(*chunks: bytes, **options: Any) -> str:
    _, follow = followed(*chunks, **options)
    assert follow.fault is not None
    assert follow.fault.code == "stream_broken"
    return follow.fault.message


def test_a_whole_stream_is_every_event_and_how_the_run_ended() -> None:
    found, follow = followed(a_stream(8, "failed"))
    assert found == list(range(8))
    assert (follow.status, follow.position, follow.duplicates, follow.fault) == ("failed", 7, 0, None)


def test_an_envelope_comes_with_the_bytes_that_it_came_as() -> None:
    (received,) = Follow(RUN).feed(frame(0, {**EVENTS[0], "unknown": 1}))
    assert received.data == envelope(0, {**EVENTS[0], "unknown": 1})
    assert received.envelope.thread_id == "t"


@given(st.data(), st.sampled_from(["sse", "ndjson"]))
def test_what_is_followed_does_not_depend_on_how_the_bytes_are_cut(data: st.DataObject, form: StreamForm) -> None:
    pieces = st.one_of(
        st.integers(0, 7).map(lambda number: envelope(number, EVENTS[number])),
        st.integers(0, 7).map(keepalive),
        st.sampled_from([terminal(), terminal("running"), terminal(run_id="other"), b"{}", b"not json"]),
    )
    encode = encode_sse if form == "sse" else encode_ndjson
    stream = b"".join(encode(piece) for piece in data.draw(st.lists(pieces, max_size=8)))
    options = {"form": form, "filtered": data.draw(st.booleans())}
    whole, once = followed(stream, **options)
    for chunks in (data.draw(cuts(stream)), [bytes([byte]) for byte in stream]):
        found, follow = followed(*chunks, **options)
        assert found == whole
        assert (follow.status, follow.position, follow.duplicates) == (once.status, once.position, once.duplicates)
        assert str(follow.fault) == str(once.fault)


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 3)), max_size=12))
def test_every_event_comes_once_wherever_connections_are_cut_and_resumed(history: list[tuple[int, int]]) -> None:
    follow = Follow(RUN)
    found: list[int] = []
    for length, back in [*history, (10_000, 0)]:
        follow.connect()
        first = 0 if follow.position is None else max(follow.position + 1 - back, 0)
        stream = frames(*range(first, 8)) + encode_sse(terminal())
        found += [received.envelope.sequence for received in follow.feed(stream[:length])]
        assert follow.fault is None
        if follow.status is not None:
            break
    assert found == list(range(8))
    assert follow.status == "completed"


def test_half_a_frame_that_a_connection_leaves_is_not_mixed_with_the_next() -> None:
    follow = Follow(RUN)
    follow.feed(frames(0) + frames(1)[:40])
    follow.connect()
    assert [received.envelope.sequence for received in follow.feed(frames(1, 2))] == [1, 2]
    assert follow.fault is None


def test_events_that_come_again_are_dropped_and_counted() -> None:
    found, follow = followed(frames(0, 1, 2, 1, 2, 2, 3))
    assert found == [0, 1, 2, 3]
    assert follow.duplicates == 3


@pytest.mark.parametrize(("after", "numbers"), [(None, [1]), (None, [0, 1, 3]), (3, [5])])
def test_a_gap_is_a_fault(after: int | None, numbers: list[int]) -> None:
    last = numbers[-1]
    expected = numbers[-2] + 1 if len(numbers) > 1 else 0 if after is None else after + 1
    message = fault(frames(*numbers), after=after)
    assert message == f"the stream is broken: event {last} came where {expected} should have"


def test_what_came_before_a_gap_is_given_and_nothing_after_it() -> None:
    found, follow = followed(frames(0, 1, 3, 4))
    assert found == [0, 1]
    assert follow.position == 1
    assert follow.fault is not None
    assert follow.fault.details == {"runId": RUN, "after": 1}


def test_with_a_filter_sequences_may_be_skipped() -> None:
    found, follow = followed(frames(1, 4, 7), filtered=True, after=0)
    assert (found, follow.position, follow.fault) == ([1, 4, 7], 7, None)


def test_with_a_filter_events_that_come_again_are_dropped() -> None:
    found, follow = followed(frames(1, 4, 4), filtered=True)
    follow.connect()
    assert (found, follow.feed(frames(1, 4)), follow.duplicates) == ([1, 4], [], 3)
    assert [received.envelope.sequence for received in follow.feed(frames(6))] == [6]


def test_with_a_filter_an_event_out_of_order_is_a_fault() -> None:
    assert fault(frames(1, 4, 3), filtered=True) == "the stream is broken: event 3 came after event 4"


def test_a_keepalive_moves_the_cursor_over_events_that_were_filtered_out() -> None:
    _, follow = followed(frames(1), encode_sse(keepalive(5)), filtered=True)
    assert follow.position == 5


def test_a_keepalive_behind_the_position_moves_nothing() -> None:
    _, follow = followed(frames(0, 1, 2), encode_sse(keepalive(1)))
    assert (follow.position, follow.fault) == (2, None)


@pytest.mark.parametrize("received", [[], [0, 1]])
def test_a_keepalive_ahead_of_what_came_shows_a_gap(received: list[int]) -> None:
    assert "the service has sent event 4, and it has not come" in fault(frames(*received), encode_sse(keepalive(4)))


@pytest.mark.parametrize(
    "other",
    [frame(0, EVENTS[0], "other"), encode_sse(keepalive(0, "other")), encode_sse(terminal(run_id="other"))],
)
def test_a_frame_of_another_run_is_a_fault(other: bytes) -> None:
    assert "'other'" in fault(other)


@pytest.mark.parametrize("status", ["running", "pending"])
def test_a_terminal_frame_of_a_run_that_goes_on_is_a_fault(status: str) -> None:
    assert f"with the status {status}, which is no end" in fault(encode_sse(terminal(status)))


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "input_required"])
def test_a_terminal_frame_ends_the_stream_and_what_follows_is_not_read(status: str) -> None:
    found, follow = followed(frames(0) + encode_sse(terminal(status)) + frames(5) + b"data: no\n\n")
    assert (found, follow.status, follow.fault) == ([0], status, None)


@pytest.mark.parametrize(
    "data",
    [
        b"[DONE]",
        b"null",
        b"{}",
        b'{"type":"KEEPALIVE"}',
        b'{"type":"TERMINAL","runId":"run-1","status":"done"}',
        b'{"type":"RUN_STARTED","threadId":"t","runId":"run-1"}',
        b'{"runId":"run-1","threadId":"t","sequence":-1,"event":{"type":"RAW","event":1}}',
        b'{"runId":"run-1","threadId":"t","sequence":0,"event":{"type":"RAW","event":1},"more":1}',
        b'{"runId":"run-1","threadId":"t","sequence":0,"event":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b"\xff",
    ],
)
def test_a_frame_that_is_none_is_a_fault(data: bytes) -> None:
    assert "a frame is none" in fault(encode_sse(data))


def test_a_frame_without_an_end_is_a_fault() -> None:
    _, follow = followed(b"data: " + b"x" * (11 * 1024 * 1024))
    assert follow.fault is not None
    assert follow.fault.code == "too_large"


def test_comments_and_empty_frames_are_passed_over() -> None:
    found, follow = followed(b": hello\n\nid: x\ndata:\n\n" + frames(0))
    assert (found, follow.fault) == ([0], None)


def test_an_event_of_a_type_that_is_unknown_here_is_kept_as_raw_with_a_note() -> None:
    follow = Follow(RUN)
    (received,) = follow.feed(frame(0, {"type": "HOLOGRAM", "depth": 3}))
    assert isinstance(received.envelope.event, RawEvent)
    assert received.envelope.event.event == {"type": "HOLOGRAM", "depth": 3}
    assert [note.code for note in follow.notes] == ["unknown_event_type"]


def test_notes_do_not_pile_up_without_bound() -> None:
    follow = Follow(RUN)
    follow.feed(b"".join([frame(number, {"type": "HOLOGRAM"}) for number in range(3 * MAX_NOTES)]))
    assert len(follow.notes) == MAX_NOTES


def test_an_event_that_travels_as_custom_becomes_itself_again() -> None:
    carried = {"type": "CUSTOM", "name": "SUBAGENT_STARTED", "value": {"subagentRunId": "s", "name": "helper"}}
    (first, second) = Follow(RUN).feed(frame(0, carried) + frame(1, {"type": "CUSTOM", "name": "mine", "value": 1}))
    assert first.envelope.event == SubagentStarted(subagent_run_id="s", name="helper")
    assert second.envelope.event == CustomEvent(name="mine", value=1)


def test_text_of_any_language_and_with_line_ends_survives() -> None:
    text = "né\n\ndata: x\r\n\u2028\U0001f600"
    event = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text}
    (received,) = Follow(RUN).feed(frame(0, event))
    assert received.envelope.event == TextMessageContent(message_id="m", delta=text)


def test_the_wait_that_the_server_asks_for_is_remembered() -> None:
    follow = Follow(RUN)
    assert follow.retry_s is None
    follow.feed(b"retry: 1500\n\n")
    follow.connect()
    assert follow.retry_s == 1.5


def test_new_events_keepalives_and_the_end_are_progress_and_repetitions_are_not() -> None:
    follow = Follow(RUN)
    for chunk, progressed in (
        (frames(0), True),
        (frames(0), False),
        (encode_sse(keepalive(0)), True),
        (b": comment\n\n", False),
        (b"retry: 1\n\n", False),
        (frames(1)[:20], False),
        (frames(1)[20:], True),
        (encode_sse(terminal()), True),
    ):
        follow.feed(chunk)
        assert follow.progressed == progressed, chunk
