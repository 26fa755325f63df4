"""A call that stands where nobody reads calls: the record is read with a serious note, so that nothing passes on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial import formats
from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import AssistantMessage, ReasoningBlock, ReasoningDetailsBlock, TextBlock

ANSWER = {"role": "assistant", "content": "Done."}
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "delete_account", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
AI = {"type": "ai", "content": "Done.", "id": "m1"}
RESPONSE = {
    "id": "r", "object": "response", "status": "completed",
    "output": [{"type": "message", "role": "assistant", "status": "completed", "id": "m",
                "content": [{"type": "output_text", "text": "Done."}]}],
}  # fmt: skip
CHOICE = {"index": 0, "message": ANSWER, "finish_reason": "stop"}
COMPLETION = {"id": "x", "object": "chat.completion", "choices": [CHOICE]}
TEXT = {"type": "text", "text": "Done."}
ANTHROPIC = {"id": "m", "type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [TEXT]}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP"}]}


def _read(document: Any, format: str | None = None) -> Reading:
    return formats.read(json.dumps(document).encode(), format)


def _level(document: Any, format: str | None = None) -> str:
    return extract(_read(document, format)).completeness.level


HIDDEN: dict[str, Any] = {
    "provider response, tool_calls": {"text": "Done.", "output_messages": [ANSWER], "tool_calls": [OPENAI_CALL]},
    "provider response, steps": {"text": "Done.", "output_messages": [ANSWER], "steps": [{"name": "d", "args": {}}]},
    "provider response, raw": {
        "text": "Done.",
        "output_messages": [ANSWER],
        "raw": {"choices": [{"message": CALLING}]},
    },
    "provider response, metadata": {
        "text": "Done.",
        "output_messages": [ANSWER],
        "metadata": {"tool_calls": [OPENAI_CALL]},
    },
    "LangChain state, intermediate_steps": {
        "messages": [AI],
        "intermediate_steps": [[{"tool": "d", "tool_input": {}}, "ok"]],
    },
    "LangChain state, scratchpad": {
        "messages": [AI],
        "scratchpad": [{"type": "ai", "content": "", "tool_calls": [{"name": "d", "args": {}, "id": "1"}]}],
    },
    "LangChain values": {"values": {"messages": [AI], "intermediate_steps": [[{"tool": "d", "tool_input": {}}, "ok"]]}},
    "completion, tool_calls": {**COMPLETION, "tool_calls": [OPENAI_CALL]},
    "completion, choice": {**COMPLETION, "choices": [{**CHOICE, "tool_calls": [OPENAI_CALL]}]},
    "Responses, tool_calls": {**RESPONSE, "tool_calls": [OPENAI_CALL]},
    "Anthropic, tool_calls": {**ANTHROPIC, "tool_calls": [OPENAI_CALL]},
    "Gemini, functionCalls": {**GEMINI, "functionCalls": [{"name": "delete_account", "args": {}}]},
    "messages, steps": {"messages": [ANSWER], "steps": [{"name": "delete_account", "args": {"id": 7}}]},
    "messages, events": {
        "messages": [ANSWER],
        "events": [{"type": "TOOL_CALL_START", "toolCallId": "1", "toolCallName": "d"}],
    },
}


@pytest.mark.parametrize("name", HIDDEN)
def test_calls_beside_the_messages_make_the_record_partial(name: str) -> None:
    assert _level(HIDDEN[name]) == "partial"


@pytest.mark.parametrize(
    "more",
    [
        {"trace": [{"what": "ever"}]},
        {"trace": {"events": [{"type": "tool_call", "name": "delete_account"}]}},
        {"trace": "called delete_account"},
        {"trace_ref": "t.json"},
        {"traceRef": "t.json"},
        {"trace_ref": ""},
        {"trace_ref": ["t.json"]},
        {"trace_ref": "t.json", "traceRef": "u.json"},
        {"steps": [{"name": "delete_account", "args": {}}]},
        {"events": [{"type": "TOOL_CALL_START", "toolCallName": "delete_account"}]},
        {"history": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "d", "input": {}}]}]},
        {"output": [{"type": "mcp_call", "id": "1"}]},
        {"metadata": {"trace": [{"type": "tool_call", "name": "delete_account"}]}},
        {"metadata": {"log": [{"tool": "delete_account"}]}},
        {"metadata": {"steps": [{"function": "delete_account", "parameters": {"id": 7}}]}},
    ],
    ids=str,
)
def test_calls_beside_the_messages_of_an_agent_response_make_it_partial(more: dict[str, Any]) -> None:
    assert _level({"final_response": "Done.", "messages": [ANSWER], **more}) == "partial"


@pytest.mark.parametrize(
    ("more", "level"),
    [
        ({"tool_calls": json.dumps([OPENAI_CALL])}, "partial"),
        ({"tool_calls": "delete_account(u1)"}, "partial"),
        ({"actions": json.dumps([{"tool": "delete_account", "args": {}}])}, "partial"),
        ({"log": json.dumps({"messages": [CALLING]})}, "partial"),
        ({"tool_calls": "[]"}, "complete"),
        ({"tool_calls": " "}, "complete"),
        ({"log": "called nothing"}, "complete"),
        ({"output": json.dumps({"action": "approve", "input": "A-1"})}, "complete"),
    ],
)
def test_calls_in_json_text_beside_the_messages_make_the_record_partial(more: dict[str, Any], level: str) -> None:
    assert _level({"final_response": "Done.", "messages": [ANSWER], **more}, "agent-response") == level
    metadata = {"final_response": "Done.", "messages": [ANSWER], "metadata": more}
    assert _level(metadata, "agent-response") == level


@pytest.mark.parametrize("beside", [{"text": "Done.", "output_messages": [ANSWER]}, {"text": "Done."}])
def test_a_trace_ref_that_names_no_file_makes_a_provider_response_partial(beside: dict[str, Any]) -> None:
    assert _level({**beside, "trace_ref": ["t.json"]}) != "complete"


@pytest.mark.parametrize("metadata", [{"steps": [{"name": "delete_account", "args": {}}]}, {"raw": {"type": "tool-d"}}])
def test_calls_in_the_metadata_of_a_message_make_the_record_partial(metadata: dict[str, Any]) -> None:
    assert _level([{**ANSWER, "metadata": metadata}]) == "partial"


@pytest.mark.parametrize(
    "document",
    [
        {
            "final_response": "Done.",
            "messages": [ANSWER],
            "metadata": {"model": {"name": "m", "parameters": {"top_p": 1}}},
        },
        {
            "final_response": "Done.",
            "messages": [ANSWER],
            "metadata": {"customer": {"name": "Ann", "type": "phone_call"}},
        },
        {
            "final_response": "Done.",
            "messages": [ANSWER],
            "metadata": {"usage": {"server_tool_use": {"web_search": 0}}},
        },
        {"final_response": "Done.", "messages": [{**ANSWER, "metadata": {"node": {"name": "agent"}}}]},
        {
            "messages": [ANSWER],
            "model": "m",
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "click",
                        "description": "",
                        "parameters": {"type": "object", "properties": {"action": {"type": "string"}}},
                    },
                }
            ],
            "tool_choice": {"type": "function", "function": {"name": "click"}},
        },
        {
            "messages": [ANSWER],
            "system": "Be kind.",
            "tools": [
                {"name": "click", "input_schema": {"type": "object", "properties": {"tool": {"type": "object"}}}}
            ],
        },
        {
            **RESPONSE,
            "input": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "name": "d", "parameters": {"type": "object", "properties": {}}}],
        },
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Done."}]}],
            "tools": [{"functionDeclarations": [{"name": "d", "description": "", "parameters": {"type": "OBJECT"}}]}],
        },
    ],
    ids=str,
)
def test_settings_definitions_of_tools_and_plain_metadata_hold_no_call(document: Any) -> None:
    assert _level(document) == "complete"


def test_what_repeats_calls_that_were_read_adds_nothing() -> None:
    raw = {"choices": [{"message": CALLING}]}
    assert _level({"text": "Done.", "output_messages": [CALLING, RESULT, ANSWER], "raw": raw}) == "complete"
    calls = [{"toolCallId": "c1", "toolName": "delete_account", "input": {}}]
    assert (
        _level({"messages": [CALLING, RESULT, ANSWER], "toolCalls": calls, "steps": [{"toolCalls": calls}]})
        == "complete"
    )


def test_a_call_under_a_known_id_with_another_name_is_another_call() -> None:
    other = {"toolCallId": "c1", "toolName": "drop_database", "input": {}}
    assert _level({"messages": [CALLING, RESULT, ANSWER], "steps": [{"toolCalls": [other]}]}) == "partial"


def test_more_than_can_be_looked_at_may_hold_a_call() -> None:
    assert may_hold_call("documents", [{}] * 100_000)
    assert not may_hold_call("documents", [{"text": "a"}] * 1_000)


TOOL_USE = {"type": "tool_use", "id": "t1", "name": "delete_account", "input": {}}


@pytest.mark.parametrize(
    "message",
    [
        {"content": [TEXT], "tool_calls": [OPENAI_CALL]},
        {"content": [TEXT], "function_call": '{"name": "delete_account"}'},
        {"content": [{**TEXT, "tool_calls": [OPENAI_CALL]}]},
        {"content": [TEXT], "extra": {"anything": 1}},
    ],
    ids=str,
)
def test_a_transcript_whose_messages_have_other_keys_is_partial(message: dict[str, Any]) -> None:
    said = {"role": "assistant", "stop_reason": "end_turn", **message}
    assert _level([said], "transcript") == "partial"
    assert _level({"messages": [said]}, "transcript") == "partial"
    assert extract(formats.read(json.dumps(said).encode() + b"\n", "transcript")).completeness.level == "partial"


def test_a_transcript_with_a_plain_key_that_is_not_its_own_is_complete_and_says_so() -> None:
    reading = _read([{"role": "assistant", "stop_reason": "end_turn", "content": [TEXT], "model": "m"}], "transcript")
    assert [(note.code, note.pointer, note.weight) for note in reading.notes] == [
        ("key_dropped", "/0/model", "harmless")
    ]


def test_messages_with_a_stop_reason_and_tool_calls_are_read_with_their_calls() -> None:
    document = [{"role": "assistant", "stop_reason": "end_turn", "content": [TEXT], "tool_calls": [OPENAI_CALL]}]
    assert [step.name for step in extract(_read(document)).steps] == ["delete_account"]


@pytest.mark.parametrize(
    "document",
    [
        [{"role": "assistant", "content": TOOL_USE}],
        [{"role": "assistant", "content": {"toolUse": {"toolUseId": "t1", "name": "delete_account", "input": {}}}}],
        [{"type": "ai", "content": TOOL_USE, "id": "m"}],
        {**ANTHROPIC, "content": TOOL_USE},
    ],
    ids=str,
)
def test_a_content_that_is_one_call_is_that_call(document: Any) -> None:
    assert [step.name for step in extract(_read(document)).steps] == ["delete_account"]


def test_a_content_object_that_is_no_part_but_holds_a_call_makes_the_record_partial() -> None:
    content = {"parts": [{"functionCall": {"name": "delete_account", "args": {}}}]}
    assert _level([{"role": "assistant", "content": content}], "openai") == "partial"


def test_a_tool_use_block_in_a_message_of_the_user_counts_as_the_agents() -> None:
    trajectory = extract(_read([{"role": "user", "content": [TOOL_USE]}, ANSWER], "anthropic"))
    assert [(step.name, step.executed_by) for step in trajectory.steps] == [("delete_account", "agent")]


def test_a_langchain_block_with_the_id_of_another_call_is_a_call_of_its_own() -> None:
    listed = {"name": "search", "args": {}, "id": "t1", "type": "tool_call"}
    names = [step.name for step in extract(_read([{**AI, "content": [TOOL_USE], "tool_calls": [listed]}])).steps]
    assert sorted(names) == ["delete_account", "search"]
    same = {**listed, "name": "delete_account"}
    assert [step.name for step in extract(_read([{**AI, "content": [TOOL_USE], "tool_calls": [same]}])).steps] == [
        "delete_account"
    ]


def _steps(message: dict[str, Any]) -> list[tuple[str, Any]]:
    found = [
        [(step.name, step.arguments) for step in extract(_read(document)).steps]
        for document in ([{**ANSWER, **message}], {"final_response": "Done.", "messages": [{**ANSWER, **message}]})
    ]
    assert found[0] == found[1]
    return found[0]


def test_a_function_call_in_json_text_is_a_call_of_that_function() -> None:
    assert _steps({"function_call": '{"name": "delete_account", "arguments": {"id": 7}}'}) == [
        ("delete_account", {"id": 7})
    ]
    assert _level([{**ANSWER, "function_call": '{"name": "delete_acc'}]) == "partial"


def test_the_function_names_a_call_and_not_a_label_beside_it() -> None:
    call = {"id": "1", "name": "tool", "function": {"name": "delete_account", "arguments": {"id": 7}}}
    assert _steps({"tool_calls": [call]}) == [("delete_account", {"id": 7})]


def test_arguments_that_were_encoded_twice_are_decoded() -> None:
    twice = json.dumps(json.dumps({"id": 7}))
    message = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "d", "arguments": twice}}]}
    assert _steps(message) == [("d", {"id": 7})]
    assert [(note.code, note.weight) for note in _read([{**ANSWER, **message}]).notes] == [
        ("arguments_encoded_twice", "look")
    ]
    plain = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "d", "arguments": '"a text"'}}]}
    assert _steps(plain) == [("d", "a text")]


@pytest.mark.parametrize(
    "more",
    [
        {"thinking": [TOOL_USE]},
        {"reasoning_details": [TOOL_USE]},
        {"reasoning": TOOL_USE},
        {"refusal": TOOL_USE},
        {"source": {"tool_calls": [OPENAI_CALL]}},
        {"model": [TOOL_USE]},
        {"cost": {"steps": [{"name": "delete_account", "args": {}}]}},
        {"audio": {"tool_calls": [OPENAI_CALL]}},
        {"tool_calls": [{"id": "1", "name": "search", "internal": {"calls": [TOOL_USE]}}]},
    ],
    ids=str,
)
def test_a_call_under_a_key_for_something_else_makes_the_record_partial(more: dict[str, Any]) -> None:
    assert _level([{**ANSWER, **more}], "openai") == "partial"
    assert _level({"final_response": "Done.", "messages": [{**ANSWER, **more}]}) == "partial"


@pytest.mark.parametrize(
    "more",
    [
        {"thinking": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "x", "index": 0}]},
        {"model": "m", "cost": 0.1, "source": "llm", "id": "m1"},
        {"audio": {"id": "a", "data": "", "transcript": "Done.", "expires_at": 1}},
    ],
    ids=str,
)
def test_what_belongs_under_a_key_leaves_the_record_complete(more: dict[str, Any]) -> None:
    assert _level([{**ANSWER, **more}], "openai") == "complete"


def test_a_call_in_the_message_that_starts_an_anthropic_stream_makes_it_partial() -> None:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [TOOL_USE], "usage": {}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Done."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]
    assert _level(events, "anthropic") == "partial"


def _ui(**more: Any) -> list[Any]:
    return [{"id": "1", "role": "assistant", "parts": [TEXT], **more}]


def _pai(**more: Any) -> list[Any]:
    return [{"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}], **more}]


CALLED = {"type": "tool_use", "id": "t", "name": "delete_account", "input": {}}
IN_KNOWN_KEYS: dict[str, Any] = {
    **{
        f"Anthropic text, {key}": {**ANTHROPIC, "content": [{**TEXT, key: [CALLED]}]}
        for key in ("data", "state", "reasoning", "thinking", "source", "id")
    },
    "chat text, state": [{"role": "assistant", "content": [{**TEXT, "state": {"tool_calls": [OPENAI_CALL]}}]}],
    "Gemini text, partMetadata": [
        {"role": "model", "parts": [{"thought": True, "text": "x", "partMetadata": CALLED}, {"text": "Done."}]}
    ],
    "LangChain, additional_kwargs that are a list": [{**AI, "additional_kwargs": [CALLED]}],
    "LangChain, reasoning": [{**AI, "additional_kwargs": {"reasoning": [CALLED]}}],
    "UIMessage, content beside its parts": _ui(content={"tool_calls": [OPENAI_CALL]}),
    "Bedrock text, state": [
        {"role": "user", "content": [{"text": "q"}]},
        {"role": "assistant", "content": [{"text": "x", "state": {"toolUse": {"toolUseId": "1", "name": "d"}}}]},
    ],
    "UIMessage, messages of its metadata": _ui(metadata={"messages": [CALLING]}),
    "UIMessage, new_messages of its metadata": _ui(metadata={"new_messages": [CALLING]}),
    "UIMessage, reasoning": _ui(reasoning=[CALLED]),
    "UIMessage, text part, state": [{"id": "1", "role": "assistant", "parts": [{**TEXT, "state": [CALLED]}]}],
    "LangChain, artifact": [{**AI, "artifact": [CALLED]}],
    "Pydantic AI, metadata": _pai(metadata={"did": [CALLED]}),
    "Pydantic AI, state": _pai(state={"tool_calls": [OPENAI_CALL]}),
    "trace event, metadata that is a list": {
        "text": "Done.",
        "trace": [{"type": "model_step", "metadata": [{"name": "delete_account", "args": {}}]}],
    },
    "thinking in parts": [{"role": "assistant", "content": [{"type": "thinking", "thinking": [CALLED]}, TEXT]}],
    "thinking_blocks": [{"role": "assistant", "content": "Done.", "thinking_blocks": [CALLED]}],
    "context": [{"role": "assistant", "content": "Done.", "context": {"citations": [CALLED], "intent": [CALLED]}}],
    "context of another kind": [{"role": "assistant", "content": "Done.", "context": {"done": ["delete_account"]}}],
    "a file": [{"role": "assistant", "content": [TEXT, {"type": "file", "file": {"tool_calls": [OPENAI_CALL]}}]}],
}


@pytest.mark.parametrize("document", IN_KNOWN_KEYS.values(), ids=IN_KNOWN_KEYS)
def test_a_call_under_a_key_that_is_known_for_something_else_leaves_the_calls_in_doubt(document: Any) -> None:
    assert _level(document) == "partial"


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
USUAL: dict[str, Any] = {
    "LiteLLM's thinking_blocks": [
        {"role": "assistant", "content": "Done.", "reasoning_content": "Hm.", "thinking_blocks": [THOUGHT]}
    ],
    "Mistral's thinking": [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, TEXT]}
    ],
    "Azure's context": [
        {"role": "assistant", "content": "Done.", "context": {"citations": [{"title": "x"}], "intent": '["q"]'}}
    ],
    "an image of a UIMessage": [
        {"id": "1", "role": "assistant", "parts": [{"type": "file", "mediaType": "image/png", "url": "u"}, TEXT]}
    ],
    "an image of Gemini": [
        {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}, {"text": "Done."}]}
    ],
    "a document of the user": [
        {"role": "user", "content": [TEXT, {"type": "file", "file": {"file_id": "f", "filename": "a.pdf"}}]},
        ANSWER,
    ],
}


@pytest.mark.parametrize("document", USUAL.values(), ids=USUAL)
def test_what_providers_usually_say_beside_an_answer_leaves_nothing_in_doubt(document: Any) -> None:
    assert _level(document) == "complete"


def test_an_image_that_the_agent_made_is_noted_where_it_stands() -> None:
    (note,) = [note for note in _read(USUAL["an image of a UIMessage"]).notes if note.weight != "harmless"]
    assert (note.code, note.pointer, note.weight) == ("content_dropped", "/0/parts/0", "look")


def test_thoughts_are_read_once_where_they_are_given_twice() -> None:
    for name, kind in (("LiteLLM's thinking_blocks", ReasoningDetailsBlock), ("Mistral's thinking", ReasoningBlock)):
        (message,) = _read(USUAL[name]).transcript.messages
        assert isinstance(message, AssistantMessage)
        assert [type(block) for block in message.content] == [kind, TextBlock]


def _results(call: Any, plain: Any) -> dict[str, tuple[Any, Any]]:
    """A record in each dialect, whose one tool gave back a call, and the same with something that is none."""
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]}
    ai = {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {}, "id": "t"}]}
    looks = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    item = {"type": "function_call", "call_id": "t", "name": "look", "arguments": "{}"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    openai = {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "name": "look", "arguments": {}}]}
    converse = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]}
    pydantic = {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "look", "tool_call_id": "t"}]}

    def records(inside: Any) -> dict[str, Any]:
        returned = {"part_kind": "tool-return", "tool_name": "look", "tool_call_id": "t", "content": inside}
        response = {"functionResponse": {"name": "look", "response": {"result": "ok"}, "parts": [inside]}}
        given = {"functionResponse": {"name": "look", "response": {"result": inside}}}
        gemini_end = {"role": "model", "parts": [{"text": "Done."}]}
        return {
            "OpenAI": [openai, {"role": "tool", "tool_call_id": "t", "content": [inside]}, ANSWER],
            "Anthropic": [
                use,
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [inside]}]},
                ANSWER,
            ],
            "LangChain content": [ai, {"type": "tool", "content": [inside], "tool_call_id": "t"}, AI],
            "LangChain artifact": [ai, {"type": "tool", "content": "ok", "artifact": inside, "tool_call_id": "t"}, AI],
            "Gemini parts": [looks, {"role": "user", "parts": [response]}, gemini_end],
            "Gemini response": [looks, {"role": "user", "parts": [given]}, gemini_end],
            "Responses": [item, {"type": "function_call_output", "call_id": "t", "output": [inside]}, said],
            "Bedrock": [
                converse,
                {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"json": inside}]}}]},
                {"role": "assistant", "content": [{"text": "Done."}]},
            ],
            "Vercel": [
                {
                    "role": "assistant",
                    "parts": [
                        {
                            "type": "tool-look",
                            "toolCallId": "t",
                            "state": "output-available",
                            "input": {},
                            "output": {"found": inside},
                        },
                        TEXT,
                    ],
                }
            ],
            "Pydantic AI": [
                pydantic,
                {"kind": "request", "parts": [returned]},
                {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
            ],
        }

    return {name: (record, records(plain)[name]) for name, record in records(call).items()}


WRITTEN_CALLS: list[Any] = [
    TOOL_USE,
    OPENAI_CALL,
    {"type": "function_call", "call_id": "x", "name": "delete_account", "arguments": "{}"},
    {"type": "tool-call", "toolCallId": "x", "toolName": "delete_account", "input": {}},
    {"type": "tool-delete_account", "toolCallId": "x", "state": "output-available"},
    {"type": "web_search_call", "id": "x"},
    {"functionCall": {"name": "delete_account", "args": {}}},
    {"toolUse": {"toolUseId": "x", "name": "delete_account", "input": {}}},
    {"messages": [{"role": "assistant", "tool_calls": [OPENAI_CALL]}]},
]
PLAIN_RESULTS: list[Any] = [
    {"type": "text", "text": "ok"},
    {"type": "phone_call", "name": "Ann", "id": "7"},
    {"type": "tool_reference", "tool_name": "delete_account"},
    {"type": "json", "action": {"kind": "refund"}, "name": "Ann", "input": {"a": 1}},
    {"type": "function", "function": {"name": "d", "parameters": {"type": "object", "properties": {}}}},
    {"type": "tool_use", "id": "t", "name": "look", "input": {}},
]


@pytest.mark.parametrize("name", _results(None, None))
@pytest.mark.parametrize("call", WRITTEN_CALLS, ids=str)
def test_a_call_inside_a_tools_result_makes_the_record_partial_in_every_dialect(name: str, call: Any) -> None:
    found = extract(_read(_results(call, None)[name][0]))
    read = "delete_account" in [step.name for step in found.steps]  # Vercel's own messages of tools may have calls
    assert read or found.completeness.level == "partial"
    assert not read or (name, call.get("type")) == ("OpenAI", "tool-call")


@pytest.mark.parametrize("name", _results(None, None))
@pytest.mark.parametrize("plain", PLAIN_RESULTS, ids=str)
def test_data_a_definition_or_the_call_itself_inside_a_tools_result_hides_nothing(name: str, plain: Any) -> None:
    if plain["type"] == "tool_use" and name.startswith("Gemini"):
        pytest.skip("its calls have no ids")
    assert _level(_results(None, plain)[name][1]) == "complete"


SOURCE = {"type": "source-url", "sourceId": "s", "url": "https://a.example", "title": "A"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "step-start", "toolInvocation": {"toolCallId": "x", "toolName": "delete_account", "args": {}}},
        {"type": "step-start", "parts": [{"type": "tool-delete_account", "toolCallId": "x"}]},
        {**SOURCE, "toolCalls": [{"toolCallId": "x", "toolName": "delete_account", "input": {}}]},
        {**SOURCE, "type": "source-document", "inner": {"type": "tool-call", "toolName": "d", "input": {}}},
        {"type": "data-status", "data": {}, "calls": [{"toolName": "delete_account"}]},
    ],
    ids=str,
)
def test_calls_in_parts_that_are_passed_over_make_the_record_partial(part: dict[str, Any]) -> None:
    assert _level([{"role": "assistant", "parts": [part, TEXT]}]) == "partial"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "step-start"},
        SOURCE,
        {**SOURCE, "providerMetadata": {"p": {"name": "x", "args": {}}}},
        {"type": "data-status", "id": "1", "data": {"state": "loading"}},
    ],
    ids=str,
)
def test_parts_that_are_passed_over_hide_nothing_by_themselves(part: dict[str, Any]) -> None:
    assert _level([{"role": "assistant", "parts": [part, TEXT]}]) == "complete"


@pytest.mark.parametrize(
    "result",
    [
        {"type": "tool", "content": "ok", "tool_call_id": "t", "steps": [{"tool": "delete_account"}]},
        {"type": "tool", "content": "ok", "tool_call_id": "t", "response_metadata": {"calls": [{"name": "d"}]}},
        {"role": "tool", "content": "ok", "tool_call_id": "t", "trajectory": [{"tool": "delete_account"}]},
    ],
    ids=str,
)
def test_calls_beside_a_tools_result_make_the_record_partial(result: dict[str, Any]) -> None:
    ai = {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {}, "id": "t"}]}
    assert _level([ai, result, AI]) == "partial"
