"""The strict reader, the lenient reader, the reader of lines, and the writers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from strategies.messages import message_lists, messages

from seatrial.errors import SeatrialError
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    ReasoningDetailsBlock,
    StopReason,
    TextBlock,
    ToolCall,
    UserMessage,
    decode_messages,
    encode_lines,
    encode_messages,
    iter_messages,
    read_messages,
)

U64_MAX = 2**64 - 1
HELLO = b'{"role":"user","content":"hello"}'


def refused(data: bytes) -> SeatrialError:
    with pytest.raises(SeatrialError) as caught:
        decode_messages(data)
    return caught.value


# Both ways


@given(message_lists())
def test_what_is_written_is_read_back_the_same(written: list[Message]) -> None:
    data = encode_messages(written)
    assert decode_messages(data) == written
    assert read_messages(data) == (written, [])
    assert encode_messages(decode_messages(data)) == data


@given(message_lists().filter(bool))
def test_lines_are_read_back_the_same(written: list[Message]) -> None:
    data = encode_lines(written)
    assert data.count(b"\n") == len(written)
    assert read_messages(data) == (written, [])
    lines = list(iter_messages(data.splitlines(keepends=True)))
    assert [line.message for line in lines] == written
    assert [line.line for line in lines] == list(range(1, len(written) + 1))


@given(messages())
def test_a_single_message_and_an_object_that_holds_them_are_read(message: Message) -> None:
    array = encode_messages([message])
    assert read_messages(array[1:-1]) == ([message], [])
    assert read_messages(b'{"id":"r1","messages":' + array + b"}") == ([message], [])


def test_reasoning_details_keep_their_bytes_through_every_reader() -> None:
    entry = b'{ "b" : 1.50, "a" : 1e999, "n" : 12345678901234567890123, "s" : "\\u0041" }'
    message = b'{"role":"assistant","content":[{"type":"reasoning_details","details":[' + entry + b"]}]%b}"
    sound = message % b',"stop_reason":"end_turn"'
    for read in ([decode_messages(b"[" + sound + b"]")], [read_messages(sound)[0]], [read_messages(message % b"")[0]]):
        (found,) = read
        assert isinstance(found[0], AssistantMessage)
        assert found[0].reasoning_details_values() == [msgspec.Raw(entry)]
    assert entry in encode_messages(decode_messages(b"[" + sound + b"]"))


def test_a_line_break_inside_raw_details_does_not_break_the_line() -> None:
    details = ReasoningDetailsBlock([msgspec.Raw(b'{\n "a": 1\n}')])
    data = encode_lines([AssistantMessage([details], StopReason.END_TURN)])
    assert data.count(b"\n") == 1
    assert b'{  "a": 1 }' in data


def test_lone_surrogates_are_written_as_replacement_characters_beside_raw_details() -> None:
    details = ReasoningDetailsBlock([msgspec.Raw(b"1.50")])
    data = encode_messages([AssistantMessage([TextBlock("a\ud800b"), details], StopReason.END_TURN)])
    assert "a\ufffdb" in data.decode()
    assert b"1.50" in data


def test_empty_documents() -> None:
    assert encode_messages([]) == b"[]"
    assert encode_lines([]) == b""
    assert decode_messages(b" [ ] ") == []
    assert read_messages(b"[]") == ([], [])
    assert list(iter_messages([b"", b"\n", b" \r\n"])) == []


# Strict


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (b'[{"role":"developer","content":"x"}]', "/0/role"),
        (b'[{"content":"x"}]', "/0"),
        (b"[" + HELLO + b',{"role":"user"}]', "/1"),
        (b'[{"role":"user","content":5}]', "/0/content"),
        (b'[{"role":"user","content":{"type":"text","text":"x"}}]', "/0/content"),
        (b'[{"role":"user","content":[{"type":"video"}]}]', "/0/content/0/type"),
        (b'[{"role":"user","content":[{"type":"text"}]}]', "/0/content/0"),
        (b'[{"role":"system","content":["x"]}]', "/0/content"),
        (b'[{"role":"assistant","content":[]}]', "/0"),
        (b'[{"role":"assistant","content":"x","stop_reason":"end_turn"}]', "/0/content"),
        (b'[{"role":"assistant","content":[],"stop_reason":"stop"}]', "/0/stop_reason"),
        (b'[{"role":"assistant","content":[{"type":"tool_call","id":"1","name":"f"}],"stop_reason":"other"}]', None),
        (b'[{"role":"assistant","content":[],"stop_reason":"other","usage":{"input_tokens":1.5}}]', None),
        (
            b'[{"role":"assistant","content":[],"stop_reason":"other","usage":{"input_tokens":9223372036854775808}}]',
            "/0/usage/input_tokens",
        ),
        (b'[{"role":"tool_result","tool_name":"t","content":[]}]', "/0"),
        (b'[{"role":"tool_result","tool_call_id":"1","tool_name":"t","content":[],"is_error":null}]', "/0/is_error"),
        (b'[{"role":"custom"}]', "/0"),
        (b'[{"role":"user","content":"x","timestamp":-1}]', "/0/timestamp"),
        (b'[{"role":"user","content":"x","timestamp":1.0}]', "/0/timestamp"),
        (b'[{"role":"user","content":"x","timestamp":"5"}]', "/0/timestamp"),
        (b'[{"role":"user","content":"x","timestamp":18446744073709551616}]', "/0/timestamp"),
        (HELLO, None),
        (b"5", None),
    ],
)
def test_the_strict_reader_refuses_what_the_seed_refuses(data: bytes, pointer: str | None) -> None:
    error = refused(data)
    assert error.code == "invalid_document"
    if pointer is not None:
        assert error.pointer == pointer


def test_the_strict_reader_takes_the_largest_numbers() -> None:
    (message,) = decode_messages(b'[{"role":"user","content":"x","timestamp":%d}]' % U64_MAX)
    assert message.timestamp == U64_MAX


@pytest.mark.parametrize(
    "data", [b"", b"[", b"[{]", b"\xef\xbb\xbf[]", b'[{"role":"user","content":"\xff"}]', b'["\\ud800"]', b"NaN"]
)
def test_the_strict_reader_refuses_what_is_not_json(data: bytes) -> None:
    assert refused(data).code == "not_json"


def test_the_strict_reader_refuses_details_that_are_not_utf8() -> None:
    error = refused(
        b'[{"role":"assistant","stop_reason":"other","content":[{"type":"reasoning_details","details":["\xff"]}]}]'
    )
    assert (error.code, error.pointer) == ("invalid_document", "/0/content/0/details")


def test_depth_beyond_what_a_reader_follows_is_one_clear_error() -> None:
    deep = b'[{"role":"custom","kind":"k","payload":' + b"[" * 5000 + b"]" * 5000 + b"}]"
    assert refused(deep).code == "too_deep"
    with pytest.raises(SeatrialError) as caught:
        read_messages(deep)
    assert caught.value.code == "too_deep"


# Lenient: whole documents (single values are in test_salvage)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_input"),
        (b" \n", "empty_input"),
        (b"not json", "not_json"),
        (b"[" + HELLO + b",", "not_json"),
        (b"[\n" + HELLO + b",\n" + HELLO + b"\n", "not_json"),
        (b"5", "invalid_document"),
        (b"{}", "invalid_document"),
        (b'{"messages":"none"}', "invalid_document"),
    ],
)
def test_the_lenient_reader_refuses_only_what_holds_no_messages(data: bytes, code: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        read_messages(data)
    assert caught.value.code == code


def test_pretty_printed_documents_are_read_whatever_their_shape() -> None:
    message = {"role": "user", "content": "hello"}
    shapes: list[Any] = [[message], {"messages": [message]}, message]
    for shape in shapes:
        assert read_messages(b"\n " + json.dumps(shape, indent=2).encode()) == ([UserMessage("hello")], [])


def test_a_bad_line_is_noted_and_the_others_stay() -> None:
    found, notes = read_messages(HELLO + b"\n\n{oops\r\n" + HELLO + b"\n5\n")
    assert found == [UserMessage("hello")] * 2
    assert [(note.code, note.pointer) for note in notes] == [("invalid_line", "/2"), ("message_dropped", "/4")]
    assert notes[0].message.startswith("line 3:")


def test_a_line_cut_off_at_the_end_loses_only_itself() -> None:
    found, notes = read_messages(HELLO + b"\n" + HELLO[:-5])
    assert found == [UserMessage("hello")]
    assert [note.code for note in notes] == ["invalid_line"]


def test_a_line_too_deep_loses_only_itself() -> None:
    found, notes = read_messages(b'{"role":"custom","kind":"k","payload":' + b"[" * 5000 + b"\n" + HELLO)
    assert found == [UserMessage("hello")]
    assert [note.code for note in notes] == ["invalid_line"]


def test_a_byte_order_mark_and_broken_text_are_repaired_with_notes() -> None:
    found, notes = read_messages(b'\xef\xbb\xbf[{"role":"user","content":"\xff \\ud800"}]')
    assert found == [UserMessage("\ufffd \ufffd")]
    assert {note.code for note in notes} == {"bom_removed", "invalid_utf8_replaced", "lone_surrogate_replaced"}


def test_a_document_with_one_bad_message_keeps_the_others_as_they_are() -> None:
    sound = AssistantMessage([TextBlock("x"), ToolCall("1", "f", {"a": 1.5})], StopReason.TOOL_USE, timestamp=U64_MAX)
    data = encode_messages([sound, sound])[:-1] + b',{"role":"developer","content":"y"}]'
    found, notes = read_messages(data)
    assert found == [sound, sound, CustomMessage("developer", {"role": "developer", "content": "y"})]
    assert [(note.code, note.pointer) for note in notes] == [("role_unknown", "/2")]


def test_an_object_with_a_role_is_a_message_whatever_else_it_holds() -> None:
    found, _ = read_messages(b'{"role":"user","content":"x","messages":[]}')
    assert found == [UserMessage("x")]


def test_lines_are_read_one_at_a_time() -> None:
    taken = 0

    def lines() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield HELLO + b"\n"

    reading = iter_messages(lines())
    for _ in range(3):
        assert next(reading).message == UserMessage("hello")
    assert taken == 3


# Hostile input


def swapped(value: Any, rng: random.Random) -> Any:
    """The value with one of its parts replaced by something else."""
    strange: list[Any] = [
        None,
        True,
        -1,
        1.5,
        1e308,
        2**70,
        "",
        "tool_call",
        [],
        {},
        [[]],
        {"type": "text"},
        {"role": "user"},
    ]
    if rng.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return rng.choice(strange)
    if isinstance(value, list):
        index = rng.randrange(len(value))
        return [*value[:index], swapped(value[index], rng), *value[index + 1 :]]
    key = rng.choice(list(value))
    if rng.random() < 0.3:
        return {other: item for other, item in value.items() if other != key}
    return {**value, key: swapped(value[key], rng)}


def as_document(value: Any, shape: str) -> bytes:
    if shape == "lines" and isinstance(value, list):
        return b"\n".join([json.dumps(message).encode() for message in value])
    return json.dumps({"messages": value} if shape == "holder" else value, ensure_ascii=False).encode()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The bytes cut off, or with a few of them changed or taken out."""
    if rng.random() < 0.3:
        return data[: rng.randint(0, len(data))]
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        place = rng.randint(0, len(changed))
        changed[place : place + rng.randint(1, 4)] = rng.randbytes(rng.randint(0, 1))
    return bytes(changed)


def test_ten_thousand_mutated_samples_raise_nothing_but_our_error() -> None:
    rng = random.Random(20240229)
    details = [{"type": "reasoning.text", "text": "é", "signature": "s", "index": 0, "format": "xai-responses-v1"}]
    sample = [
        {"role": "system", "content": "be brief", "timestamp": 1},
        {"role": "user", "content": [{"type": "text", "text": "hi ✓"}, {"type": "image", "source": "u", "alt": "a"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "text": "hm"},
                {"type": "reasoning", "text": "so"},
                {"type": "reasoning_details", "details": details},
                {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": ["x", 1.5, None]}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
        {"role": "tool_result", "tool_call_id": "c1", "tool_name": "search", "content": [], "details": {"n": 1}},
        {"role": "custom", "kind": "marker", "payload": [1]},
    ]
    readable = 0
    for count in range(10_000):
        shape = ("array", "holder", "lines")[count % 3]
        value = swapped(sample, rng)
        data = as_document(value, shape)
        if count % 2:
            data = damaged(data, rng)
        try:
            found, notes = read_messages(data)
        except SeatrialError:
            continue
        readable += 1
        # Nothing is lost in silence, and what was read is sound: the strict reader takes it.
        assert found or notes or b"{" not in data or value == []
        assert decode_messages(encode_messages(found)) == found
    assert readable > 5_000
