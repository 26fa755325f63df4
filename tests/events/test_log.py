"""Recorded streams: every framing, bare or in envelopes, whole or in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import cuts, events, legal_runs
from strategies.mutations import mutations

from seatrial.errors import SeatrialError
from seatrial.events import (
    Cursor,
    EventLog,
    LogReader,
    RunStreamTerminal,
    StreamKeepalive,
    cursor_text,
    encode_event,
    encode_ndjson,
    encode_sse,
    encode_sse_comment,
    envelope_bytes,
    envelope_head,
    read_log,
    to_native,
)
from seatrial.events import log as log_module
from seatrial.events import types as t
from seatrial.events.types import Event
from seatrial.transcript import Note

RUN: list[Event] = [
    t.RunStarted(thread_id="t1", run_id="r1"),
    t.TextMessageStart(message_id="m"),
    t.TextMessageContent(message_id="m", delta="hé"),
    t.TextMessageEnd(message_id="m"),
    t.SubagentStarted(subagent_run_id="s", name="n"),
    t.SubagentFinished(subagent_run_id="s"),
    t.RunFinished(thread_id="t1", run_id="r1"),
]


def enveloped(run: list[Event], *, first: int = 0) -> list[bytes]:
    head = envelope_head("r1", "t1")
    return [envelope_bytes(head, first + at, encode_event(to_native(event))) for at, event in enumerate(run)]


def bare(run: list[Event]) -> list[bytes]:
    return [encode_event(event) for event in run]


def ndjson(frames: list[bytes]) -> bytes:
    return b"".join(map(encode_ndjson, frames))


def sse(frames: list[bytes]) -> bytes:
    return b"".join(map(encode_sse, frames))


def array(frames: list[bytes]) -> bytes:
    return b"[" + b",".join(frames) + b"]"


def codes(notes: list[Note]) -> list[str]:
    return [note.code for note in notes]


FRAMINGS = [ndjson, sse, array]
Framing = Callable[[list[bytes]], bytes]
Wrapping = Callable[[list[Event]], list[bytes]]


@pytest.mark.parametrize("frame", FRAMINGS)
@pytest.mark.parametrize("wrap", [bare, enveloped])
def test_every_framing_of_a_run_is_read(frame: Framing, wrap: Wrapping) -> None:
    log = read_log(frame(wrap(RUN)))
    assert log.events == RUN
    assert log.notes == []
    assert log.sequences == (list(range(len(RUN))) if wrap is enveloped else None)
    assert (log.run_id, log.thread_id) == (("r1", "t1") if wrap is enveloped else (None, None))


def test_the_ids_of_the_ag_ui_view_tell_run_and_sequence() -> None:
    frames = [encode_sse(data, id=cursor_text("r1", at)) for at, data in enumerate(bare(RUN))]
    log = read_log(b"".join(frames))
    assert (log.events, log.run_id, log.sequences) == (RUN, "r1", list(range(len(RUN))))
    assert read_log(b"id: 17\n" + sse(bare(RUN))).run_id is None


def test_keepalive_and_terminal_frames_are_no_events() -> None:
    frames = enveloped(RUN)
    frames.insert(3, msgspec.json.encode(StreamKeepalive(Cursor(run_id="r1", sequence=2))))
    frames.append(msgspec.json.encode(RunStreamTerminal("r1", "completed")))
    stream = encode_sse_comment("keepalive") + sse(frames) + b"\n"
    for log in (read_log(ndjson(frames)), read_log(stream)):
        assert (log.events, log.notes) == (RUN, [])
        assert log.terminal == RunStreamTerminal("r1", "completed")


def test_the_done_of_other_protocols_is_passed_over_with_a_note() -> None:
    log = read_log(sse([*bare(RUN), b"[DONE]"]))
    assert (log.events, codes(log.notes)) == (RUN, ["done_sentinel"])


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([0, 1, 2], []),
        ([5, 6, 7], ["sequence_gap"]),
        ([0, 2, 3], ["sequence_gap"]),
        ([0, 0, 1], ["sequence_repeated"]),
        ([1, 0, 2], ["sequence_gap", "sequence_repeated", "sequence_gap"]),
    ],
)
def test_gaps_and_repetitions_of_sequences_are_noted(sequences: list[int], expected: list[str]) -> None:
    run: list[Event] = [RUN[0], t.CustomEvent(name="n", value=1), RUN[-1]]
    head = envelope_head("r1", "t1")
    frames = [envelope_bytes(head, at, encode_event(event)) for at, event in zip(sequences, run, strict=True)]
    log = read_log(ndjson(frames))
    assert log.events == run
    assert codes(log.notes) == expected


def test_another_run_in_the_envelopes_is_noted_and_starts_its_own_sequence() -> None:
    frames = enveloped(RUN) + [
        envelope_bytes(envelope_head("r2", "t2"), at, encode_event(to_native(event))) for at, event in enumerate(RUN)
    ]
    log = read_log(ndjson(frames))
    assert log.events == RUN + RUN
    assert codes(log.notes) == ["run_changed", "run_changed"]
    assert (log.run_id, log.thread_id) == ("r2", "t2")


@pytest.mark.parametrize(
    "envelope",
    [
        b'{"threadId":"t1","sequence":1,"event":%b}',
        b'{"runId":"r1","sequence":1,"event":%b}',
        b'{"runId":"r1","threadId":"t1","event":%b}',
        b'{"runId":"r1","threadId":"t1","sequence":"1","event":%b}',
        b'{"runId":"r1","threadId":"t1","sequence":true,"event":%b}',
        b'{"runId":"","threadId":"t1","sequence":1,"event":%b}',
        b'{"runId":"r1","threadId":"t1","sequence":1,"more":0,"event":%b}',
        b'{"event":%b}',
    ],
)
def test_a_faulty_envelope_does_not_cost_its_event(envelope: bytes) -> None:
    frames = enveloped(RUN)
    frames[1] = envelope % encode_event(RUN[1])
    log = read_log(ndjson(frames))
    assert log.events == RUN
    assert "envelope_invalid" in codes(log.notes)


@pytest.mark.parametrize("frame", [b'{"type":"KEEPALIVE"}', b'{"type":"TERMINAL","runId":"r1","status":"over"}'])
def test_a_faulty_keepalive_or_terminal_is_noted(frame: bytes) -> None:
    log = read_log(ndjson([*enveloped(RUN), frame]))
    assert (log.events, codes(log.notes), log.terminal) == (RUN, ["envelope_invalid"], None)


def test_an_event_after_the_terminal_frame_is_noted() -> None:
    terminal = msgspec.json.encode(RunStreamTerminal("r1", "completed"))
    frames = enveloped(RUN)
    log = read_log(ndjson([*frames[:-1], terminal, frames[-1]]))
    assert (log.events, codes(log.notes)) == (RUN, ["after_terminal"])


def test_an_envelope_gives_a_run_the_ids_that_its_events_lack() -> None:
    log = read_log(b'{"runId":"r1","threadId":"t1","sequence":0,"event":{"type":"RUN_STARTED"}}\n')
    assert log.events == [t.RunStarted(thread_id="t1", run_id="r1")]


def test_a_stream_without_a_terminal_event_is_noted() -> None:
    assert codes(read_log(ndjson(bare(RUN[:-1]))).notes) == ["event_stream_truncated"]
    assert codes(read_log(ndjson(bare([*RUN, RUN[0]]))).notes) == ["event_stream_truncated"]
    assert codes(read_log(ndjson(bare([t.RunError(message="m")]))).notes) == []


@pytest.mark.parametrize("frame", [ndjson, sse])
def test_a_stream_that_is_cut_anywhere_gives_the_events_before_the_cut(frame: Framing) -> None:
    stream: bytes = frame(enveloped(RUN))
    for at in range(1, len(stream)):
        log = LogReader()
        got = [*log.feed(stream[:at]), *log.close()]
        assert got == RUN[: len(got)]
        if len(got) < len(RUN):
            assert "event_stream_truncated" in codes(log.notes)
            assert set(codes(log.notes)) <= {"event_stream_truncated", "frame_truncated"}


@given(legal_runs(), st.sampled_from([ndjson, sse]), st.booleans(), st.data())
def test_a_stream_in_pieces_is_the_stream_as_a_whole(
    run: list[Event], frame: Framing, wrapped: bool, data: st.DataObject
) -> None:
    stream: bytes = frame(enveloped(run) if wrapped else bare(run))
    reader = LogReader()
    got = [event for piece in data.draw(cuts(stream)) for event in reader.feed(piece)] + reader.close()
    whole = read_log(stream)
    assert got == whole.events == run
    assert reader.notes == whole.notes == []
    assert (reader.run_id, reader.thread_id) == (whole.run_id, whole.thread_id)


@given(st.lists(events(), min_size=1, max_size=4))
def test_any_events_come_back_from_the_native_view(run: list[Event]) -> None:
    assert read_log(ndjson(enveloped(run))).events == run


@pytest.mark.parametrize("data", [b"", b"   \n", b"\xef\xbb\xbf", b": only a comment\n\n", b"[]"])
def test_input_without_a_frame_is_an_error(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        read_log(data)
    assert caught.value.code == "empty_input"


def test_a_line_that_is_not_json_is_kept_as_raw_and_the_rest_is_read() -> None:
    frames = bare(RUN)
    log = read_log(ndjson([frames[0], b"oops", *frames[1:]]))
    assert log.events == [RUN[0], t.RawEvent(event="oops", source="seatrial"), *RUN[1:]]
    assert codes(log.notes) == ["event_unreadable"]


def test_an_array_is_a_document_and_no_stream() -> None:
    with pytest.raises(SeatrialError) as caught:
        LogReader().feed(array(bare(RUN)))
    assert caught.value.code == "invalid_document"
    with pytest.raises(SeatrialError) as caught:
        read_log(array(bare(RUN))[:-1])
    assert caught.value.code == "not_json"


def test_a_frame_over_the_limit_is_an_error() -> None:
    with pytest.raises(SeatrialError) as caught:
        read_log(b'{"type":"CUSTOM","name":"n","value":"' + b"x" * (10 * 1024 * 1024) + b'"}\n')
    assert caught.value.code == "too_large"


def test_a_long_stream_leaves_nothing_behind_but_the_last_place() -> None:
    reader = LogReader()
    line = encode_ndjson(encode_event(t.TextMessageContent(message_id="m", delta="x")))
    for _ in range(2000):
        assert len(reader.feed(line)) == 1
    assert reader.notes == []


def test_mutated_logs_give_events_or_one_clear_error() -> None:
    samples = [frame(wrap(RUN)) for frame in FRAMINGS for wrap in (bare, enveloped)]
    read = 0
    for sample in mutations(samples, 3000):
        try:
            log = read_log(sample)
        except SeatrialError:
            continue
        assert isinstance(log, EventLog)
        read += 1
    assert read > 2000


STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "TEXT_MESSAGE_START"},
        {"type": "TEXT_MESSAGE_START", "messageId": 5},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": None},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "metadata": None},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "robot"},
        {"type": "STATE_DELTA", "delta": 5},
        {"type": "STEP_STARTED", "name": "the seed calls it name"},
        {"no": "type"},
    ],
)
def test_a_bare_event_with_a_malformed_field_is_what_a_client_refuses(event: dict[str, Any]) -> None:
    (refused,) = read_log(json.dumps([STARTED, event]).encode(), check=True).refused
    assert refused.code == "event_refused"
    assert refused.pointer.startswith("/1")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": None},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": None},
        {"type": "SOMETHING_NEW"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "colour": "blue"},
    ],
)
def test_what_a_client_tolerates_is_not_refused(event: dict[str, Any]) -> None:
    assert read_log(json.dumps([STARTED, event]).encode(), check=True).refused == []


def test_an_event_in_an_envelope_is_checked_as_if_it_had_come_without() -> None:
    envelope = {"runId": "r", "threadId": "t", "sequence": 0, "event": {"type": "TEXT_MESSAGE_START"}}
    (refused,) = read_log(json.dumps([envelope]).encode(), check=True).refused
    assert refused.pointer == "/0/messageId"


@pytest.mark.parametrize(
    "stream",
    [
        b'data: {"type":"RUN_ERROR","message":"m"}\r\n\r\n',
        b'data: {"type":"RUN_ERROR","message":"m"}\n\ndata: [DONE]\n\n',
        b'data: {"type":"RUN_ERROR","message":"m"}\n\ndata: {"type":"RU',
        b'data: {"type":"RUN_ERROR","message":"m"}\n\ndata: nonsense\n\n',
    ],
)
def test_frames_that_a_client_cannot_take_are_refused(stream: bytes) -> None:
    log = read_log(stream, check=True)
    assert isinstance(log.events[0], t.RunError)
    assert len(log.refused) == 1


def test_nothing_is_checked_that_was_not_asked_for() -> None:
    assert read_log(json.dumps([STARTED, {"no": "type"}]).encode()).refused == []


def test_an_envelope_that_comes_again_counts_once() -> None:
    log = read_log(b"".join([enveloped(RUN)[0] + b"\n", enveloped(RUN)[0] + b"\n", enveloped(RUN)[1] + b"\n"]))
    assert len(log.events) == 2
    assert [note.code for note in log.notes] == ["envelope_repeated", "event_stream_truncated"]
    assert log.notes[0].weight == "harmless"


def test_another_event_under_a_sequence_that_was_used_cannot_hide_behind_it() -> None:
    first, second = enveloped(RUN)[:2]
    log = read_log(first + b"\n" + second.replace(b'"sequence":1', b'"sequence":0') + b"\n")
    assert log.events == RUN[:2]
    assert [note.code for note in log.notes] == ["sequence_repeated", "event_stream_truncated"]


@pytest.mark.parametrize("check", [False, True])
def test_an_envelope_is_repeated_for_its_own_run_alone(check: bool) -> None:
    lines = [
        json.dumps({"runId": run, "threadId": "t", "sequence": 0, "event": {**STARTED, "runId": run}}).encode() + b"\n"
        for run in ("a", "b", "a")
    ]
    log = read_log(b"".join(lines), check=check)
    assert len(log.events) == 2


def test_of_more_events_than_are_read_the_end_of_the_run_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MAX_EVENTS", 5)
    started, *_, finished = RUN
    text = t.TextMessageContent(message_id="m", delta="RUN_AWAY")
    log = read_log(ndjson(bare([started, *[text] * 20, finished])))
    assert log.events == [started, *[text] * 4, finished]
    assert [note.code for note in log.notes if note.serious] == ["events_cut"]
    assert not log.truncated


def test_as_many_events_as_are_read_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MAX_EVENTS", len(RUN))
    assert codes(read_log(ndjson(bare(RUN))).notes) == []
