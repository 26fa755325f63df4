"""Conversations as chat APIs carry them, and the pieces in which they stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import msgspec
from hypothesis import strategies as st

from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, Written
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, ReasoningText, from_items
from strategies.messages import json_objects, json_values, names, raw_json, texts
from strategies.mutations import mutations

CLAUDE = ReasoningFormat.ANTHROPIC_CLAUDE_V1


def talk(*, min_size: int = 0) -> st.SearchStrategy[str]:
    """Text that no one can take for a tag."""
    return texts(min_size=min_size).map(lambda text: text.replace("<", "("))


def tricky_talk() -> st.SearchStrategy[str]:
    """Text with tags and halves of tags in it."""
    pieces = ["<thought>", "</thought>", "<think>", "</think>", "<", "<tho", "a", " ", "\n", "```"]
    return st.lists(st.sampled_from(pieces), max_size=6).map("".join)


def images() -> st.SearchStrategy[ImageBlock]:
    """Images of which nothing but the source is known."""
    sources = ["data:image/png;base64,iVBORw0=", "https://example.com/cat.png", "data:,a", "data:a;b;base64,x", ""]
    return st.builds(ImageBlock, st.sampled_from(sources))


def user_messages() -> st.SearchStrategy[UserMessage]:
    """What users say: a string, or text and images."""
    return st.builds(UserMessage, texts() | st.lists(st.builds(TextBlock, texts()) | images(), max_size=3))


def spoken(text: st.SearchStrategy[str]) -> st.SearchStrategy[AssistantBlock]:
    """Visible text and prompted thinking."""
    return st.builds(TextBlock, text) | st.builds(ThinkingBlock, text)


def signed_details() -> st.SearchStrategy[ReasoningDetailsBlock]:
    """Native thinking that Anthropic's API signed or encrypted."""
    text = st.builds(ReasoningText, format=st.just(CLAUDE), text=texts(), signature=texts())
    encrypted = st.builds(ReasoningEncrypted, format=st.just(CLAUDE), data=texts())
    return st.lists(text | encrypted, min_size=1, max_size=3).map(from_items)


def native_reasoning() -> st.SearchStrategy[list[AssistantBlock]]:
    """What the fields `reasoning` and `reasoning_details` of one message hold."""
    reasoning = st.builds(ReasoningBlock, texts(min_size=1))
    details = st.builds(ReasoningDetailsBlock, st.lists(raw_json(), min_size=1, max_size=3))
    return st.tuples(st.none() | reasoning, st.none() | details).map(
        lambda blocks: [block for block in blocks if block is not None]
    )


def calls() -> st.SearchStrategy[ToolCall]:
    """Tool calls; their ids are given by `conversations`."""
    return st.builds(ToolCall, st.just(""), names(), json_objects() | json_values())


def chat_turns(*, native: bool) -> st.SearchStrategy[list[AssistantBlock]]:
    """The blocks of a message of the chat completions API, in its order."""
    reasoning = native_reasoning() if native else st.just([])
    return st.tuples(reasoning, st.lists(spoken(talk()), max_size=3), st.lists(calls(), max_size=2)).map(
        lambda groups: [block for group in groups for block in group]
    )


def block_turns() -> st.SearchStrategy[list[AssistantBlock]]:
    """Blocks in any order, as Anthropic's messages hold them.

    Details that follow each other are one block, and nothing that is signed is said without a signature, too.
    """

    def holds(blocks: list[AssistantBlock]) -> bool:
        if any({type(one), type(two)} == {ReasoningDetailsBlock} for one, two in pairwise(blocks)):
            return False
        details = [detail for block in blocks if isinstance(block, ReasoningDetailsBlock) for detail in block.details]
        signed = {json.loads(bytes(detail)).get("text") for detail in details}
        return not any(isinstance(block, ReasoningBlock) and block.text in signed for block in blocks)

    block = st.one_of(spoken(talk()), st.builds(ReasoningBlock, texts()), signed_details(), calls())
    return st.lists(block, max_size=5).filter(holds)


def any_turns() -> st.SearchStrategy[list[AssistantBlock]]:
    """Any blocks in any order, texts with tags in them, details of any provider."""
    details = st.builds(ReasoningDetailsBlock, st.lists(raw_json(), max_size=2))
    block = st.one_of(
        spoken(talk() | tricky_talk()),
        st.builds(ReasoningBlock, tricky_talk()),
        details,
        signed_details(),
        calls(),
    )
    return st.lists(block, max_size=5)


def single_turns(turns: st.SearchStrategy[list[AssistantBlock]]) -> st.SearchStrategy[AssistantMessage]:
    """One assistant message whose calls have ids."""

    def identified(blocks: list[AssistantBlock]) -> AssistantMessage:
        turn = AssistantMessage(blocks, StopReason.END_TURN)
        for index, call in enumerate(turn.tool_calls()):
            turn.stop_reason = StopReason.TOOL_USE
            call.id = f"call_{index}"
        return turn

    return turns.map(identified)


@st.composite
def conversations(
    draw: st.DrawFn,
    turns: st.SearchStrategy[list[AssistantBlock]],
    *,
    result_images: bool = True,
    result_errors: bool = False,
) -> Transcript:
    """A prompt, and turns whose calls have their results right after them; nothing but what was said and done."""
    messages: list[Message] = [SystemMessage(text) for text in draw(st.lists(texts(), max_size=2))]
    made = 0
    for _ in range(draw(st.integers(0, 3))):
        messages.append(draw(user_messages()))
        blocks = draw(turns)
        turn = AssistantMessage(blocks, StopReason.END_TURN)
        messages.append(turn)
        for call in turn.tool_calls():
            turn.stop_reason = StopReason.TOOL_USE
            made += 1
            call.id = f"call_{made}"
            block = st.builds(TextBlock, texts()) | images() if result_images else st.builds(TextBlock, texts())
            content = draw(st.lists(block, max_size=2))
            failed = result_errors and draw(st.booleans())
            messages.append(ToolResultMessage(call.id, call.name, content, failed))
    return Transcript(messages)


def without_redundant_media_types(transcript: Transcript) -> Transcript:
    """The same, where a media type that a data URL names anyway is left out."""
    for message in transcript.messages:
        if isinstance(message, UserMessage | ToolResultMessage) and not isinstance(message.content, str):
            for block in message.content:
                if isinstance(block, ImageBlock) and block.source.startswith(f"data:{block.media_type};"):
                    block.media_type = None
    return transcript


# Streams


@st.composite
def pieces(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The bytes, cut anywhere."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@st.composite
def fragments(draw: st.DrawFn, text: str) -> list[str]:
    """The text, cut anywhere."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def interleaved(draw: st.DrawFn, rows: Sequence[Sequence[Any]]) -> list[Any]:
    """All items of the rows in one row; those of one row keep their order."""
    turns = draw(st.permutations([index for index, row in enumerate(rows) for _ in row]))
    iterators = [iter(row) for row in rows]
    return [next(iterators[index]) for index in turns]


def sse(payloads: Sequence[bytes], *, line_end: bytes = b"\n") -> bytes:
    """Frames of server-sent events."""
    return b"".join([b"data: " + payload + line_end + line_end for payload in payloads])


@st.composite
def completion_chunks(draw: st.DrawFn, response: dict[str, Any]) -> list[bytes]:
    """The chunks in which this response of the chat completions API might have streamed."""
    message = dict(response["choices"][0]["message"])
    details = message.pop("reasoning_details", [])
    rows: list[list[dict[str, Any]]] = []
    texts = [(key, message[key]) for key in ("content", "reasoning", "refusal") if message.get(key)]
    rows += [[{key: fragment} for fragment in draw(fragments(text))] for key, text in texts]
    if details:
        rows.append([{"reasoning_details": [entry]} for entry in details])
    for index, call in enumerate(message.get("tool_calls") or []):
        first, *rest = draw(fragments(call["function"]["arguments"]))
        head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": first}}
        tail = [{"index": index, "function": {"arguments": fragment}} for fragment in rest]
        rows.append([{"tool_calls": [fragment]} for fragment in [head, *tail]])
    deltas = [{"role": "assistant", "content": ""}, *draw(interleaved(rows)), {}]
    common = {key: response[key] for key in response if key not in ("choices", "usage", "object")}
    common["object"] = "chat.completion.chunk"
    chunks = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks[-1]["choices"][0]["finish_reason"] = response["choices"][0]["finish_reason"]
    if "usage" in response:
        chunks.append({**common, "choices": [], "usage": response["usage"]})
    return [msgspec.json.encode(chunk) for chunk in chunks]


@st.composite
def anthropic_events(draw: st.DrawFn, response: dict[str, Any]) -> list[bytes]:
    """The events in which this response of the Anthropic API might have streamed."""
    usage = response["usage"]
    start = {**response, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(response["content"]):
        empty = dict(block)
        rows: list[tuple[str, str, str]] = []
        if block["type"] == "text":
            empty["text"] = ""
            rows = [("text_delta", "text", piece) for piece in draw(fragments(block["text"]))]
        elif block["type"] == "thinking":
            empty["thinking"] = ""
            rows = [("thinking_delta", "thinking", piece) for piece in draw(fragments(block["thinking"]))]
            if "signature" in block:
                empty["signature"] = ""
                rows.append(("signature_delta", "signature", block["signature"]))
        elif block["type"] == "tool_use":
            empty["input"] = {}
            text = json.dumps(block["input"])
            rows = [("input_json_delta", "partial_json", piece) for piece in draw(fragments(text))]
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        for kind, key, piece in rows:
            events.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": response["stop_reason"], "stop_sequence": response["stop_sequence"]}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
    return [msgspec.json.encode(event) for event in [*events, {"type": "message_stop"}]]


# What holds for every format


class Codec(Protocol):
    """A module of a format that is read and written."""

    def read(self, data: bytes) -> Reading: ...
    def write(self, transcript: Transcript) -> Written: ...


def assert_carried(codec: Codec, transcript: Transcript) -> None:
    """The transcript comes back the same, with nothing lost and nothing to note."""
    written = codec.write(transcript)
    assert written.losses == []
    reading = codec.read(written.data)
    assert without_redundant_media_types(reading.transcript) == transcript
    assert reading.notes == []


def assert_losses_are_told(codec: Codec, transcript: Transcript) -> None:
    """The transcript comes back the same, or there are losses that point at something in it."""
    written = codec.write(transcript)
    read_back = codec.read(written.data).transcript
    assert written.losses or without_redundant_media_types(read_back) == without_redundant_media_types(transcript)
    document = json.loads(msgspec.json.encode(transcript))
    for loss in written.losses:
        value = document
        for part in loss.pointer.split("/")[1:]:
            value = value[int(part) if isinstance(value, list) else part]


def readable_mutations(codec: Codec, samples: Sequence[bytes]) -> int:
    """How many of 10,000 mutated samples can be read; raises what is neither read nor refused with our error."""
    readable = 0
    for sample in mutations(samples, 10_000):
        try:
            reading = codec.read(sample)
        except SeatrialError:
            continue
        codec.write(reading.transcript)
        readable += 1
    return readable
