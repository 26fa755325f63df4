"""Events in a row, as the native view has them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events as any_events

from seatrial.events import (
    Event,
    NdjsonParser,
    SseParser,
    cursor_text,
    decode_event,
    encode_event,
    from_native,
    parse_cursor,
)
from seatrial.events.codec import CARRIED_TYPES
from seatrial.events.types import CustomEvent
from seatrial.server.run_feed import Block, EventFraming, native_event

FRAMING = EventFraming("run:é 1", "thread-1")


@given(st.lists(any_events(), max_size=8), st.integers(0, 2**40))
def test_both_forms_have_every_event_in_its_envelope(events: list[Event], first: int) -> None:
    block = Block(FRAMING, first, [encode_event(event) for event in events])
    frames = SseParser().feed(block.framed("sse"))
    lines = NdjsonParser().feed(block.framed("ndjson"))
    assert [frame.data for frame in frames] == lines
    for sequence, (frame, event) in enumerate(zip(frames, events, strict=True), first):
        envelope = json.loads(frame.data)
        assert frame.id == cursor_text("run:é 1", sequence)
        assert parse_cursor(frame.id).sequence == sequence
        assert {key: envelope[key] for key in ("runId", "threadId", "sequence")} == {
            "runId": "run:é 1",
            "threadId": "thread-1",
            "sequence": sequence,
        }
        assert _same(decode_event(json.dumps(envelope["event"]).encode()), event)


def _same(shown: Event, event: Event) -> bool:
    carried = from_native(shown) if isinstance(shown, CustomEvent) else None
    return event in (shown, carried)


@given(any_events())
def test_types_that_the_native_view_lacks_are_carried_by_custom(event: Event) -> None:
    shown = json.loads(native_event(encode_event(event)))
    name = str(event.__struct_config__.tag)
    if name in CARRIED_TYPES:
        assert (shown["type"], shown["name"]) == ("CUSTOM", name)
    else:
        assert shown["type"] == name


def test_an_event_of_several_lines_stays_one_frame() -> None:
    block = Block(FRAMING, 0, [b'{\r\n"type": "RAW",\r"event": 1\n}'])
    (frame,) = SseParser().feed(block.framed("sse"))
    assert json.loads(frame.data)["event"] == {"type": "RAW", "event": 1}
    assert len(NdjsonParser().feed(block.framed("ndjson"))) == 1


def test_a_carried_type_that_lacks_something_is_carried_with_what_it_has() -> None:
    shown = json.loads(native_event(b'{"type":"SUBAGENT_STARTED","name":5,"colour":"blue"}'))
    assert shown == {"type": "CUSTOM", "name": "SUBAGENT_STARTED", "value": {"name": 5, "colour": "blue"}}


def test_what_is_not_json_is_left_alone() -> None:
    broken = b'{"type":"SUBAGENT_STARTED","name":'
    assert native_event(broken) == broken


def shown(block: Block, *types: str) -> list[Any]:
    return [json.loads(line)["sequence"] for line in NdjsonParser().feed(block.framed("ndjson", frozenset(types)))]


def test_only_events_of_the_types_that_are_wanted_are_there() -> None:
    block = Block(
        FRAMING,
        7,
        [
            b'{"type":"STEP_STARTED","stepName":"a"}',
            b'{"name":"x","type":"CUSTOM","value":1}',
            b'{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}',
            b'{"type":"STEP_STARTED_TOO"}',
            b"[]",
            b"nonsense",
        ],
    )
    assert shown(block, "STEP_STARTED") == [7]
    assert shown(block, "CUSTOM") == [8, 9]
    assert shown(block, "SUBAGENT_STARTED") == [9]
    assert shown(block, "SUBAGENT_STARTED", "STEP_STARTED") == [7, 9]
    assert shown(block, "RUN_ERROR") == []
    assert shown(block) == []


def test_a_form_is_made_once() -> None:
    block = Block(FRAMING, 0, [b'{"type":"RAW","event":1}'] * 3)
    assert block.framed("sse") is block.framed("sse")
    types = frozenset({"RAW"})
    assert block.framed("sse", types) is block.framed("sse", frozenset({"RAW"}))
    assert block.framed("sse", types) == block.framed("sse")
    assert block.framed("ndjson", types) == block.framed("ndjson")


def test_the_rest_of_a_block_is_a_block() -> None:
    block = Block(FRAMING, 5, [b"5", b"6", b"7"])
    assert block.behind(4) is block
    rest = block.behind(5)
    assert (rest.first, rest.events, rest.following) == (6, [b"6", b"7"], 8)
