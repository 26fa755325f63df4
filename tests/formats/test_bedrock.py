"""Bedrock Converse: requests, responses, and what their blocks come to."""

from __future__ import annotations

import json
from typing import Any

from seatrial import formats
from seatrial.formats import bedrock
from seatrial.formats.reading import Reading
from seatrial.transcript import (
    AssistantMessage,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    Usage,
)
from seatrial.transcript.reasoning import as_items


def read(value: Any) -> Reading:
    return bedrock.read(json.dumps(value).encode())


def answered(content: list[Any], **more: Any) -> Reading:
    return read({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn", **more})


def test_a_response_has_its_usage_and_its_stop_reason() -> None:
    usage = {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8, "cacheWriteInputTokens": 2}
    reading = answered([{"text": "Done."}], usage=usage, metrics={"latencyMs": 4})
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.usage == Usage(5, 3, 2, 0)
    assert reading.transcript.metadata == {"metrics": {"latencyMs": 4}}
    assert reading.notes == []


def test_a_request_has_its_prompt_in_front() -> None:
    reading = read({"system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}], "messages": []})
    assert reading.transcript.messages == [SystemMessage("Be brief.")]


def test_signed_and_redacted_reasoning_survive() -> None:
    reading = answered(
        [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
            {"reasoningContent": {"redactedContent": "ZGF0YQ=="}},
            {"citationsContent": {"content": [{"text": "Cited."}], "citations": [{"title": "x"}]}},
        ]
    )
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    reasoning, text = message.content
    assert isinstance(reasoning, ReasoningDetailsBlock)
    assert [type(item).__name__ for item in as_items(reasoning)] == ["ReasoningText", "ReasoningEncrypted"]
    assert text == TextBlock("Cited.")


def test_a_call_that_the_provider_threw_away_is_a_serious_note() -> None:
    reading = answered([{"text": "x"}], stopReason="malformed_tool_use")
    assert [(note.code, note.serious) for note in reading.notes] == [("call_discarded", True)]
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.stop_reason is StopReason.ERROR


def test_a_block_that_nobody_knows_is_a_serious_note() -> None:
    reading = answered([{"text": "x", "futureUse": {"name": "delete_account"}}, {"futureUse": {"name": "x"}}])
    assert [note.serious for note in reading.notes] == [True, True]


def _streamed(*deltas: dict[str, Any], stop: str | None = "end_turn") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    events += [{"contentBlockDelta": {"delta": delta, "contentBlockIndex": at}} for at, delta in enumerate(deltas)]
    return events if stop is None else [*events, {"messageStop": {"stopReason": stop}}]


def test_a_stream_of_converse_adds_up_to_its_message() -> None:
    start = {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c", "name": "find"}}, "contentBlockIndex": 3}}
    pieces = [
        {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}, "contentBlockIndex": 3}}
        for text in ('{"a', '": 1}')
    ]
    thoughts: list[dict[str, Any]] = [{"reasoningContent": {"text": "hm"}}, {"text": "Let me see."}]
    events = [*_streamed(*thoughts, stop=None), start, *pieces, {"messageStop": {"stopReason": "tool_use"}}]
    usage = {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4}, "metrics": {"latencyMs": 5}}}
    reading = formats.read(json.dumps([*events, usage]).encode())
    assert reading.format == "bedrock"
    assert [note for note in reading.notes if note.weight != "harmless"] == []
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.tool_calls() == [ToolCall("c", "find", {"a": 1})]
    assert message.plain_text() == "Let me see."
    assert message.stop_reason == StopReason.TOOL_USE
    assert message.usage is not None
    assert message.usage.output_tokens == 4


def test_a_stream_of_converse_without_its_end_is_cut_off() -> None:
    reading = formats.read(json.dumps(_streamed({"text": "Do"}, stop=None)).encode())
    assert [note.code for note in reading.notes if note.serious] == ["stream_truncated"]


def test_a_delta_of_a_stream_that_nobody_knows_is_a_serious_note() -> None:
    reading = formats.read(json.dumps(_streamed({"agentUse": {"name": "delete"}})).encode())
    assert "key_dropped" in [note.code for note in reading.notes if note.serious]


def test_a_stream_of_converse_that_ends_in_an_error_or_names_its_blocks_oddly_is_read_and_cut_off() -> None:
    odd = {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c", "name": "find"}}, "contentBlockIndex": [1]}}
    failed = {"modelStreamErrorException": {"message": "no"}}
    reading = formats.read(json.dumps([{"messageStart": {"role": "assistant"}}, odd, failed]).encode())
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert [call.name for call in message.tool_calls()] == ["find"]
    assert "stream_truncated" in [note.code for note in reading.notes if note.serious]
