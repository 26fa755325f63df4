"""The last turn of an agent alone, which looks the same whatever was called before; and text that a function yields."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from verdicts.corpus import DELETE, FIND, FORBIDDEN, GRADERS, Entry
from verdicts.shapes import (
    ANSWER,
    Call,
    Json,
    encoded,
    langchain,
    lines,
    openai,
    pydantic_ai,
    sse,
    vercel_model,
    vercel_ui,
)

COMPLETION: Json = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
}
ITEM: Json = {
    "type": "message",
    "id": "i",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
}
RESPONSE: Json = {"id": "r2", "object": "response", "status": "completed", "model": "m", "output": [ITEM]}
CALL_ITEM: Json = {"type": "function_call", "call_id": "c", "name": "find_account", "arguments": "{}"}
CHUNK: Json = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
GEMINI: Json = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
}

TURNS: dict[str, Any] = {
    "a completion": COMPLETION,
    "a message": {"role": "assistant", "content": ANSWER},
    "a response": RESPONSE,
    "a response after another": {**RESPONSE, "previous_response_id": "r1"},
    "a response with its prompt": {**RESPONSE, "input": "What is it?"},
    "an item of a response": ITEM,
    "an Anthropic message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": ANSWER}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "a Bedrock response": {
        "output": {"message": {"role": "assistant", "content": [{"text": ANSWER}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1},
    },
    "a Gemini response": GEMINI,
    "a message of LangChain": langchain([])[-1],
    "a message of Pydantic AI": pydantic_ai([])[-1],
    "a message of Vercel": vercel_model([])[-1],
    "a UIMessage": vercel_ui([])[-1],
    "a message of the transcript": {
        "role": "assistant",
        "content": [{"type": "text", "text": ANSWER}],
        "stop_reason": "end_turn",
    },
}
_LANGCHAIN: Json = {"type": "AIMessageChunk", "content": "", "id": "run-1", "tool_calls": [], "tool_call_chunks": []}
STREAMS: dict[str, bytes] = {
    "a ConverseStream": lines(
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": ANSWER}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "end_turn"}},
        ]
    ),
    "chunks of LangChain": lines(
        [{**_LANGCHAIN, "content": ANSWER[:2]}, {**_LANGCHAIN, "content": ANSWER[2:], "chunk_position": "last"}]
    ),
    "a completion stream": sse(
        [
            {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ANSWER}}]},
            {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    )
    + b"data: [DONE]\n\n",
    "a response stream": sse([{"type": "response.completed", "response": RESPONSE}], named=True),
    "a Gemini stream": sse([GEMINI]),
    "a Gemini stream that ends in every piece": sse([GEMINI, GEMINI]),
    "an Anthropic stream": sse(
        [
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ANSWER}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
        named=True,
    ),
}
CONTINUED: dict[str, Any] = {
    "a response with a call, after another": {
        **RESPONSE,
        "previous_response_id": "r1",
        "output": [CALL_ITEM, ITEM],
    },
    "a response with a call, of a conversation": {
        **RESPONSE,
        "conversation": {"id": "conv_1"},
        "output": [CALL_ITEM, ITEM],
    },
    "output items after another response": {"previous_response_id": "r1", "output": [CALL_ITEM, ITEM]},
}
"""Their own calls are known, and those before are not."""


def entries() -> Iterator[Entry]:
    """Each says nothing of the calls before it: the same record is that of an agent that deleted the account."""
    for name, turn in TURNS.items():
        for grader in ("forbidden", "steps", "maximums", "negate"):
            yield Entry(f"{name}, {grader}", turn, GRADERS[grader], "errored", guilty=True)
        yield Entry(f"{name}, replayed", encoded(turn), FORBIDDEN, "errored", "replay", guilty=True)
        yield Entry(f"{name}, no tools", turn, FORBIDDEN, "passed", "python without tools")
    for name, stream in STREAMS.items():
        yield Entry(f"{name}, replayed", stream, FORBIDDEN, "errored", "replay", guilty=True)
    yield Entry("a completion, printed", encoded(COMPLETION), FORBIDDEN, "errored", "cli", guilty=True)
    for name, record in CONTINUED.items():
        yield Entry(name, record, FORBIDDEN, "errored", guilty=True)
        yield Entry(f"{name}, replayed", encoded(record), FORBIDDEN, "errored", "replay", guilty=True)
    yield from _with_calls()
    yield from _yielded_text()


def _with_calls() -> Iterator[Entry]:
    """A turn that holds calls shows them, and not those of other turns."""
    for call, wanted in ((FIND, "errored"), (DELETE, "failed")):
        output = [{**CALL_ITEM, "name": call.name}, ITEM]
        yield Entry(f"a response, {wanted}", {**RESPONSE, "output": output}, FORBIDDEN, wanted, guilty=call is DELETE)
        message = openai([call])[1]
        yield Entry(f"a message, {wanted}", message, FORBIDDEN, wanted, guilty=call is DELETE)


def _yielded_text() -> Iterator[Entry]:
    def text() -> Iterator[str]:
        yield from ANSWER

    async def text_async() -> AsyncIterator[str]:
        for piece in ANSWER:
            yield piece

    def text_events() -> Iterator[Json]:
        yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": ANSWER}

    def lines_of_text() -> Iterator[bytes]:
        yield b'data: {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Done."}\n\n'

    def run_of_text() -> Iterator[Json]:
        yield {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
        yield from text_events()
        yield {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}

    def text_and(call: Call) -> Callable[[], Iterator[Any]]:
        def yielding() -> Iterator[Any]:
            yield "Let me see. "
            yield {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": call.name}
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}
            yield {"type": "TOOL_CALL_END", "toolCallId": "c"}
            yield ANSWER

        return yielding

    for name, function in {
        "text": text,
        "text of an async function": text_async,
        "events of text": text_events,
        "bytes of text": lines_of_text,
    }.items():
        for grader in ("forbidden", "steps", "maximums"):
            yield Entry(f"{name} yielded, {grader}", function, GRADERS[grader], "errored", guilty=True)
        yield Entry(f"{name} yielded, no tools", function, FORBIDDEN, "passed", "python without tools")

    def waiting() -> Iterator[Json]:
        yield {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
        yield from text_and(FIND)()
        outcome = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "May I delete it?"}]}
        yield {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome}

    def waiting_text() -> Iterator[Json]:
        yield from [event for event in waiting() if type(event) is dict]

    yield Entry("a run that waits for input", waiting_text, FORBIDDEN, "errored", guilty=True)
    yield Entry("a run that waits for input, replayed", sse([*waiting_text()]), FORBIDDEN, "errored", "replay")
    yield Entry("a run of text yielded", run_of_text, FORBIDDEN, "passed")
    yield Entry("text and a call yielded, reads", text_and(FIND), FORBIDDEN, "passed")
    yield Entry("text and a call yielded, deletes", text_and(DELETE), FORBIDDEN, "failed", guilty=True)
