"""Which format is it, and why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from strategies.messages import transcripts
from strategies.mutations import mutations

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.formats import Detection, detect
from seatrial.formats.completions import openrouter
from seatrial.formats.sniffing import Sniff
from seatrial.transcript import Transcript

SAMPLES = Path(__file__).parent.parent.parent / "samples"


@pytest.mark.parametrize(
    ("data", "format", "reason"),
    [
        ('{"final_response": "a"}', "agent-response", "a top-level key final_response"),
        ('{"message": "a", "session_done": true}', "agent-response", "the keys message and session_done of a turn"),
        ('{"final_response": "a"}\n{"final_response": "b"}', "agent-response", "lines: a top-level key final_response"),
        ('{"output_messages": []}', "output-messages", "a top-level key output_messages"),
        ('{"text": "a", "traceRef": "t.json"}', "output-messages", "a top-level key traceRef"),
        ('{"output": [{"role": "assistant"}]}', "output-messages", "a top-level array output"),
        ('{"id": "a", "text": "b"}\n{"id": "b", "text": "c"}', "output-messages", "lines: a top-level key text"),
        ('[{"role": "tool", "content": "a"}]', "openai", "an array: a message of the role tool"),
        ('[{"role": "assistant", "tool_calls": [{}]}]', "openai", "an array: a message with tool_calls"),
        (
            '[{"role": "user", "content": "a"}]',
            "openai",
            "an array: messages with role and content, as all chat APIs have them",
        ),
        ('{"model": "m", "messages": []}', "openai", "a key messages"),
        ('{"object": "response", "output": []}', "responses", "an object of the kind response"),
        ('[{"type": "function_call"}]', "responses", "an array: an item of the type function_call"),
        (
            'data: {"type": "response.created", "response": {}}\n\n',
            "responses",
            "server-sent events: a stream event of the type response.created",
        ),
        (
            '{"object": "chat.completion", "choices": [{"message": {"reasoning": null}}]}',
            "openai",
            "chat.completion without reasoning",
        ),
        (
            'data: {"object": "chat.completion.chunk", "choices": []}\n\n',
            "openai",
            "server-sent events: chat.completion.chunk without reasoning",
        ),
        ('[{"role": "assistant", "reasoning": "why"}]', "openrouter", "an array: a message with reasoning"),
        (
            '{"messages": [{"role": "assistant", "reasoning_details": [{}]}]}',
            "openrouter",
            "a request: a message with reasoning_details",
        ),
        ('{"messages": [], "model": "maker/m"}', "openrouter", "messages for a model with its maker's name"),
        ('{"messages": [], "provider": {}}', "openrouter", "messages beside a key provider"),
        (
            ': PROCESSING\n\ndata: {"choices": [{"delta": {"content": "a"}}]}\n\n'
            'data: {"choices": [{"delta": {"reasoning": "b"}}]}\n\n',
            "openrouter",
            "server-sent events: choices with reasoning",
        ),
        ('{"messages": [], "system": "a"}', "anthropic", "messages beside a key system"),
        ('{"type": "message", "role": "assistant", "content": []}', "anthropic", "a response of the type message"),
        (
            '[{"role": "user", "content": [{"type": "tool_result"}]}]',
            "anthropic",
            "an array: a content part of the type tool_result",
        ),
        (
            '[{"role": "assistant", "content": [{"type": "thinking", "thinking": "a"}]}]',
            "anthropic",
            "an array: a content part of the type thinking",
        ),
        (
            'event: message_start\ndata: {"type": "message_start"}\n\n',
            "anthropic",
            "server-sent events: a stream event of the type message_start",
        ),
        ('[{"role": "tool_result"}]', "transcript", "an array: a message of the role tool_result"),
        (
            '{"role": "assistant", "content": [], "stop_reason": "end_turn"}',
            "transcript",
            "a message with a stop_reason",
        ),
        (
            '{"role": "user", "content": "a"}\n{"role": "custom", "kind": "k"}',
            "transcript",
            "lines: a message of the role custom",
        ),
        (
            '[{"role": "assistant", "content": [{"type": "thinking", "text": "a"}]}]',
            "transcript",
            "an array: a content part of the type thinking",
        ),
        ('[{"role": "user", "content": "a", "timestamp": 5}]', "transcript", "an array: a message with a timestamp"),
        (
            '[{"role": "user", "content": "a", "timestamp": 5}, {"role": "assistant", "tool_calls": [{}]}]',
            "openai",
            "an array: a message with tool_calls",
        ),
        (
            '{"type": "user", "uuid": "u", "parentUuid": null, "sessionId": "s"}',
            "claude-code",
            "a line with sessionId and uuid",
        ),
        (
            '{"type": "result", "total_cost_usd": 0.1, "result": "a"}',
            "claude-stream-json",
            "a result with its session or its cost",
        ),
        (
            '[{"type": "system", "subtype": "init", "session_id": "s"}]',
            "claude-stream-json",
            "an array: a line of the type system with a session_id",
        ),
        ('{"type": "event_msg", "payload": {}}', "codex", "a line of the type event_msg"),
        (
            '{"type": "turn.started"}\n{"type": "item.completed", "item": {}}',
            "codex-exec",
            "lines: an event of the type turn.started",
        ),
        ('{"type": "RUN_STARTED"}', "agui", "an event of the AG-UI type RUN_STARTED"),
        ('[{"type": "RUN_STARTED"}]', "agui", "an array: an event of the AG-UI type RUN_STARTED"),
        (
            'id: 1\ndata: {"type": "RUN_STARTED"}\n\n',
            "agui",
            "server-sent events: an event of the AG-UI type RUN_STARTED",
        ),
        (
            '{"type": "KEEPALIVE"}\n{"runId": "r", "threadId": "t", "sequence": 1, "event": {}}',
            "events",
            "lines: envelopes with runId and sequence",
        ),
        ('\ufeff  {"final_response": "a"}', "agent-response", "a top-level key final_response"),
        ('{"final_response": "\\ud800"}', "agent-response", "a top-level key final_response"),
    ],
)
def test_content_tells_the_format_and_why(data: str, format: str, reason: str) -> None:
    assert detect(data.encode()) == Detection(format, reason)


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"[]",
        b"{}",
        b"5",
        b'"text"',
        b"data",
        b"<html>",
        b":",
    ],
)
def test_what_looks_like_nothing_is_an_error_that_says_what_to_do(data: bytes) -> None:
    with pytest.raises(SeatrialError, match="--from") as caught:
        detect(data)
    assert caught.value.code == "undetected_format"


def test_two_formats_that_are_equally_sure_are_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openrouter, "sniff", lambda _: Sniff(60, "a guess"))
    with pytest.raises(SeatrialError, match=r"openai .* and openrouter .*--from") as caught:
        detect(b'[{"role": "tool", "content": "a"}]')
    assert caught.value.code == "ambiguous_format"


@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf"])
def test_nothing_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        detect(data)
    assert caught.value.code == "empty_input"


SAMPLE_FORMATS = {
    "agent-response.json": "agent-response",
    "agent-response-flawed.json": "agent-response",
    "agent-response-thin.json": "agent-response",
    "agui-run.sse": "agui",
    "anthropic-messages.json": "anthropic",
    "anthropic-stream.sse": "anthropic",
    "bedrock-messages.json": "bedrock",
    "gemini-contents.json": "gemini",
    "adk-events.json": "adk",
    "smolagents-result.json": "smolagents",
    "crewai-output.json": "crewai",
    "langchain-messages.json": "langchain",
    "pydantic-ai-messages.json": "pydantic-ai",
    "vercel-messages.json": "vercel",
    "vercel-stream.sse": "vercel",
    "events-run.ndjson": "events",
    "events-violation.ndjson": "agui",
    "openai-chat.json": "openai",
    "openai-stream.sse": "openai",
    "openrouter-request.json": "openrouter",
    "output-messages.json": "output-messages",
    "output-messages-batch.jsonl": "output-messages",
    "responses.json": "responses",
    "responses-stream.sse": "responses",
    "claude-code-session.jsonl": "claude-code",
    "claude-stream-json.jsonl": "claude-stream-json",
    "codex-exec.jsonl": "codex-exec",
    "codex-rollout.jsonl": "codex",
    "transcript.json": "transcript",
    "transcript.jsonl": "transcript",
}


@pytest.mark.parametrize(("name", "format"), SAMPLE_FORMATS.items())
def test_every_sample_is_detected_and_read(name: str, format: str) -> None:
    data = (SAMPLES / name).read_bytes()
    assert detect(data).format == format
    records = list(formats.read_many(data))
    assert records[0].reading is not None
    assert records[0].reading.transcript.messages
    assert (records[0].reading.notes != []) == any(word in name for word in ("flawed", "thin", "violation"))


def test_every_sample_is_listed_here() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == {*SAMPLE_FORMATS, "match.jsonl"}


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLE_FORMATS.values()) == set(formats.FORMATS)


@settings(max_examples=50)
@given(transcripts())
def test_what_a_writer_writes_is_detected_or_is_common_ground(transcript: Transcript) -> None:
    for name in formats.writable():
        data = formats.write(transcript, name).data
        detected = detect(data).format
        if detected != name:
            # Messages without anything of their format's own: every reader of chat messages reads them alike.
            assert (detected, name) in {("openai", other) for other in ("openrouter", "anthropic", "transcript")}
            assert formats.read(data).transcript == formats.read(data, name).transcript


@pytest.mark.parametrize("data", [b"{", b"[[[", b'{"messages": [', b'{"a": "\xc3', b'{"a": 1.', b'\xef\xbb\xbf{"a'])
def test_a_document_that_ends_too_early_is_said_to_be_cut_off(data: bytes) -> None:
    with pytest.raises(SeatrialError, match=f"the JSON is cut off at byte {len(data)}: ") as caught:
        detect(data)
    assert caught.value.code == "not_json"


def test_only_the_beginning_of_a_stream_is_looked_at() -> None:
    frame = b'data: {"type": "RUN_STARTED"}\n\n'
    assert detect(frame + b"\xff" * 10_000_000).format == "agui"
    line = b'{"type": "RUN_STARTED"}\n'
    assert detect(line + b"\xff" * 10_000_000).format == "agui"


def test_ten_thousand_mutated_samples_are_detected_or_refused() -> None:
    samples = [path.read_bytes() for path in sorted(SAMPLES.iterdir())]
    outcomes = set()
    for mutation in mutations(samples, 10_000):
        try:
            outcomes.add(detect(mutation).format)
        except SeatrialError as error:
            outcomes.add(error.code)
    assert outcomes >= {*formats.FORMATS, "undetected_format"}
    assert outcomes <= {
        *formats.FORMATS,
        "undetected_format",
        "empty_input",
        "ambiguous_format",
        "unread_format",
        "not_json",
    }


def test_a_reason_quotes_no_more_than_a_little() -> None:
    assert len(detect(msgspec.json.encode({"type": "X" * 100_000})).reason) < 100
