"""Calls that are easy to overlook: under an id that is used already, in messages of other roles, without a name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from verdicts.corpus import DELETE, FAILING_FIND, FIND, FORBIDDEN, GRADERS, NO_ERRORS, Entry, twins
from verdicts.shapes import INSTRUCTION, Call, Json, agui_events, codex_exec, encoded, lines, openai

_TRAJECTORY: Json = {"kind": "tool_trajectory"}
SAID: Json = {"role": "assistant", "content": "Done."}


def _invocation(call: Call) -> Json:
    return {"state": "result", "toolCallId": "c", "toolName": call.name, "args": call.arguments, "result": "ok"}


def _ui(*parts: Json, role: str = "assistant", **more: Any) -> Json:
    return {"id": "m", "role": role, "parts": [*parts], **more}


def _ui_call(call: Call) -> Json:
    return {
        "type": f"tool-{call.name}",
        "toolCallId": "c",
        "state": "output-available",
        "input": call.arguments,
        "output": "ok",
    }


def _function(call: Call) -> Json:
    return {"id": "c", "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}


def _langchain(**more: Any) -> list[Json]:
    return [
        {"type": "human", "content": "go"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {}, "id": "c"}], **more},
        {"type": "tool", "content": "ok", "tool_call_id": "c"},
        {"type": "ai", "content": "Done."},
    ]


def _streamed_ui(name: str, arguments: Json) -> list[Json]:
    return [
        {"type": "start-step"},
        {"type": "tool-input-start", "toolCallId": "c", "toolName": name},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": name, "input": arguments},
        {"type": "tool-output-available", "toolCallId": "c", "output": "ok"},
        {"type": "finish-step"},
    ]


_UI_END: list[Json] = [
    {"type": "text-delta", "id": "t", "delta": "Done."},
    {"type": "finish"},
]


def _ui_stream(call: Call) -> bytes:
    calls = [*_streamed_ui(call.name, call.arguments), *_streamed_ui("look", {})]
    return lines([{"type": "start", "messageId": "m"}, *calls, *_UI_END])


def _data_stream(call: Call) -> bytes:
    return b"".join(
        [
            b"9:" + encoded({"toolCallId": "c", "toolName": call.name, "args": call.arguments}) + b"\n",
            b'a:{"toolCallId":"c","result":"ok"}\n',
            b'9:{"toolCallId":"c","toolName":"look","args":{}}\n',
            b'a:{"toolCallId":"c","result":"ok"}\n0:"Done."\nd:{"finishReason":"stop"}\n',
        ]
    )


def _converse_stream(call: Call, place: Json) -> bytes:
    """Two blocks of a ConverseStream, which say the same of where they stand, or nothing."""
    blocks: list[Json] = []
    for call_id, made in (("c1", call), ("c2", Call("look", {}))):
        start = {"toolUse": {"toolUseId": call_id, "name": made.name}}
        arguments = {"toolUse": {"input": encoded(made.arguments).decode()}}
        blocks += [
            {"contentBlockStart": {"start": start, **place}},
            {"contentBlockDelta": {"delta": arguments, **place}},
            {"contentBlockStop": place},
        ]
    results = [{"toolResult": {"toolUseId": call_id, "content": [{"text": "ok"}]}} for call_id in ("c1", "c2")]
    return lines(
        [
            {"messageStart": {"role": "assistant"}},
            *blocks,
            {"messageStop": {"stopReason": "tool_use"}},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"text": "Done."}]},
        ]
    )


def _chunk(**more: Any) -> Json:
    return {"type": "AIMessageChunk", "content": "", "id": "run-1", "tool_calls": [], "tool_call_chunks": [], **more}


def _fragment(name: str, arguments: str) -> Json:
    return {"name": name, "args": arguments, "id": "c", "index": 0, "type": "tool_call_chunk"}


UNDER_A_USED_ID: dict[str, Callable[[Call], Any]] = {
    "the next UIMessage": lambda call: [
        _ui({"type": "text", "text": "a"}, toolInvocations=[_invocation(Call("look", {}))]),
        _ui({"type": "text", "text": "Done."}, toolInvocations=[_invocation(call)]),
    ],
    "the same list of a UIMessage": lambda call: [
        {"role": "assistant", "content": "Done.", "toolInvocations": [_invocation(Call("look", {})), _invocation(call)]}
    ],
    "invocations beside parts": lambda call: [
        _ui(_ui_call(Call("look", {})), {"type": "text", "text": "Done."}, toolInvocations=[_invocation(call)])
    ],
    "an approval of ModelMessages": lambda call: [
        {
            "role": "assistant",
            "content": [
                {"type": "tool-call", "toolCallId": "c", "toolName": "look", "input": {}},
                {
                    "type": "tool-approval-request",
                    "approvalId": "a",
                    "toolCall": {"toolCallId": "c", "toolName": call.name, "input": call.arguments},
                },
            ],
        },
        {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a", "approved": True}]},
        SAID,
    ],
    "additional_kwargs": lambda call: _langchain(additional_kwargs={"tool_calls": [_function(call)]}),
    "an item of the Responses API": lambda call: _langchain(
        content=[
            {
                "type": "function_call",
                "id": "f",
                "call_id": "c",
                "name": call.name,
                "arguments": encoded(call.arguments).decode(),
            }
        ]
    ),
    "a block of Anthropic": lambda call: _langchain(
        content=[{"type": "tool_use", "id": "c", "name": call.name, "input": call.arguments}]
    ),
    "a part": lambda call: [
        {
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "c", "name": call.name, "args": call.arguments}],
            "tool_calls": [{"id": "c", "name": "look", "arguments": {"other": 1}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        SAID,
    ],
    "both spellings of a list": lambda call: [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "name": "look", "arguments": {}}],
            "toolCalls": [{"id": "c", "name": call.name, "arguments": call.arguments}],
        },
        SAID,
    ],
    "both spellings in a part of Gemini": lambda call: [
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {"name": "look", "args": {}},
                    "function_call": {"name": call.name, "args": call.arguments},
                }
            ],
        },
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
}
REPLAYED: dict[str, Callable[[Call], bytes]] = {
    "the stream of a UIMessage": _ui_stream,
    "a data stream": _data_stream,
    "no number of a streamed block": lambda call: _converse_stream(call, {}),
    "the number of a streamed block": lambda call: _converse_stream(call, {"contentBlockIndex": 0}),
    "a chunk that repeats the id": lambda call: lines(
        [
            _chunk(tool_call_chunks=[_fragment("look", "{}")]),
            _chunk(tool_call_chunks=[_fragment(call.name, encoded(call.arguments).decode())]),
            _chunk(chunk_position="last"),
            {"type": "tool", "content": "ok", "tool_call_id": "c"},
            {"type": "ai", "content": "Done."},
        ]
    ),
    "a call that a chunk lists": lambda call: lines(
        [
            _chunk(
                tool_calls=[{"name": call.name, "args": call.arguments, "id": "c"}],
                tool_call_chunks=[_fragment("look", "{}")],
            ),
            _chunk(chunk_position="last"),
            {"type": "tool", "content": "ok", "tool_call_id": "c"},
            {"type": "ai", "content": "Done."},
        ]
    ),
}


def _named_in(call: Call, role: str) -> bytes:
    """A call in a message of a snapshot that cannot have any."""
    run: Json = {"threadId": "t", "runId": "r"}
    message = {"id": "m", "role": role, "content": "x", "toolCalls": [_function(call)]}
    return lines(
        [
            {"type": "RUN_STARTED", **run},
            {"type": "MESSAGES_SNAPSHOT", "messages": [message, {"id": "a", "role": "assistant", "content": "Done."}]},
            {"type": "RUN_FINISHED", **run},
        ]
    )


_UI_SAID = _ui({"type": "text", "text": "Done."})
OF_OTHER_ROLES: dict[str, Callable[[Call], Any]] = {
    "a part of a UIMessage of the system": lambda call: [_ui(_ui_call(call), role="system"), _UI_SAID],
    "a later step of the system": lambda call: [
        _ui({"type": "text", "text": "x"}, {"type": "step-start"}, _ui_call(call), role="system"),
        _UI_SAID,
    ],
    "an invocation of the user": lambda call: [
        {"id": "1", "role": "user", "content": "go", "toolInvocations": [_invocation(call)]},
        _UI_SAID,
    ],
    "a message of a human": lambda call: [
        {"type": "human", "content": "go", "tool_calls": [{"name": call.name, "args": call.arguments, "id": "c"}]},
        {"type": "ai", "content": "Done."},
    ],
    "additional_kwargs of a system message": lambda call: [
        {"type": "system", "content": "go", "additional_kwargs": {"tool_calls": [_function(call)]}},
        {"type": "ai", "content": "Done."},
    ],
    "a function_call of a human": lambda call: [
        {
            "type": "human",
            "content": "go",
            "additional_kwargs": {"function_call": {"name": call.name, "arguments": "{}"}},
        },
        {"type": "ai", "content": "Done."},
    ],
    "a tool message of LangChain": lambda call: [
        *_langchain()[:2],
        {**_langchain()[2], "tool_calls": [{"name": call.name, "args": call.arguments, "id": "c2"}]},
        {"type": "ai", "content": "Done."},
    ],
    "a content of Gemini's system": lambda call: [
        {"role": "system", "parts": [{"text": "x", "functionCall": {"name": call.name, "args": call.arguments}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
}


def _piece(text: str, **more: Any) -> Json:
    """A response of Gemini, or a piece of one."""
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, **more}]}


_BLOCK: Json = {"type": "text", "text": "go"}
UNDER_OTHER_KEYS: dict[str, Callable[[Call], Any]] = {
    "of a user": lambda call: [{"role": "user", "content": "go", "summary": [_invocation(call)]}, SAID],
    "of a part of the user's": lambda call: [
        {"role": "user", "content": [{**_BLOCK, "extras": [_invocation(call)]}]},
        SAID,
    ],
    "for the id of a user's message": lambda call: [{"role": "user", "content": "go", "id": [_invocation(call)]}, SAID],
    "of a content of Gemini's user": lambda call: [
        {"role": "user", "parts": [{"text": "go"}], "extras": [{"functionCall": {"name": call.name, "args": {}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
    "of a UIMessage of the user": lambda call: [
        {**_ui(_BLOCK, role="user"), "history": [_ui_call(call)]},
        _ui({"type": "text", "text": "Done."}),
    ],
    "beside the data of LangChain's": lambda call: [
        {"type": "human", "data": {"content": "go"}},
        {"type": "ai", "data": {"content": ""}, "tool_calls": [{"name": call.name, "args": {}, "id": "c"}]},
        {"type": "ai", "data": {"content": "Done."}},
    ],
    "for sound in a content of Bedrock": lambda call: [
        {"role": "assistant", "content": [{"audio": {"toolUse": {"name": call.name, "input": {}, "toolUseId": "c"}}}]},
        {"role": "assistant", "content": [{"text": "Done."}]},
    ],
    "for data in a part of Gemini": lambda call: [
        {"role": "model", "parts": [{"inlineData": {"functionCall": {"name": call.name, "args": {}}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
}
UNDER_KNOWN_KEYS: dict[str, Callable[[Call], Any]] = {
    "invocations among annotations": lambda call: [
        {"id": "a", "role": "assistant", "content": "Done.", "annotations": [_invocation(call)]}
    ],
    "an invocation in the metadata of a source": lambda call: [
        _ui(
            {"type": "source-url", "url": "u", "providerMetadata": {"x": {"toolCallId": "c", "toolName": call.name}}},
            {"type": "text", "text": "Done."},
        )
    ],
    "a part of a UIMessage that is text": lambda call: [
        _ui(json.dumps(_ui_call(call)), {"type": "text", "text": "Done."})  # type: ignore[arg-type]
    ],
    "a result under a key of the user's": lambda call: [
        {"role": "user", "parts": [{"text": "go"}], "more": {"functionResponse": {"name": call.name, "response": {}}}},
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
}
STREAMED_NAMES: dict[str, Any] = {"a list": ["delete_account"], "an object": {"name": "delete_account"}, "a number": 7}
WITHOUT_NAME: dict[str, Any] = {
    "a dynamic tool": [
        _ui(
            {"type": "dynamic-tool", "toolCallId": "c", "state": "output-available", "input": {}, "output": "ok"},
            {"type": "text", "text": "Done."},
        )
    ],
    "a name that is an object": [_ui({**_ui_call(Call("x", {})), "toolName": {"name": "delete_account"}}), _UI_SAID],
}


def _streamed_name(name: Any) -> bytes:
    events = agui_events([Call("x", {})])
    return lines([{**event, "toolCallName": name} if "toolCallName" in event else event for event in events])


def _snapshot_name(function: Any) -> bytes:
    run: Json = {"threadId": "t", "runId": "r"}
    call = {"id": "c", "type": "function", "function": function}
    message = {"id": "a", "role": "assistant", "content": "Done.", "toolCalls": [call]}
    return lines(
        [
            {"type": "RUN_STARTED", **run},
            {"type": "MESSAGES_SNAPSHOT", "messages": [message]},
            {"type": "RUN_FINISHED", **run},
        ]
    )


def _ui_stream_renamed(name: Any) -> bytes:
    """A call whose whole input comes with another name than its start, or with none."""
    chunks = _streamed_ui("delete_account", {})
    chunks[2] = {**chunks[2], "toolName": name}
    return lines([{"type": "start", "messageId": "m"}, *chunks, *_UI_END])


def _twice_streamed(name: str, arguments: Json) -> list[Json]:
    events = agui_events([Call(name, arguments)])
    called = [event for event in events if event["type"].startswith("TOOL_CALL")]
    first = events.index(called[0])
    return [*events[: first + len(called)], *called, *events[first + len(called) :]]


def _once(message: Json) -> list[Json]:
    return [message, {"role": "tool", "tool_call_id": "c", "content": "ok"}, SAID]


_FLAT: Json = {"id": "c", "name": "find_account", "arguments": {"email": "a@b.c"}}
WRITTEN_TWICE: dict[str, Any] = {
    "both spellings of a list": _once(
        {"role": "assistant", "content": "", "tool_calls": [_FLAT], "toolCalls": [_FLAT]}
    ),
    "a list and a part": _once(
        {
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "c", "name": "find_account", "args": {"email": "a@b.c"}}],
            "tool_calls": [_FLAT],
        }
    ),
    "a list and a part without arguments": _once(
        {
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "c", "name": "find_account", "args": {}}],
            "tool_calls": [_FLAT],
        }
    ),
    "parts and invocations": [
        _ui(
            _ui_call(Call("find_account", {"email": "a@b.c"})),
            {"type": "text", "text": "Done."},
            toolInvocations=[_invocation(Call("find_account", {"email": "a@b.c"}))],
        )
    ],
    "both spellings in a part of Gemini": [
        {
            "role": "model",
            "parts": [
                {key: {"name": "find_account", "args": {"email": "a"}} for key in ("functionCall", "function_call")}
            ],
        },
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
}
"""One call, in two places of a message: it was made once."""


def _snapshot_again(call: Call) -> bytes:
    """A call in a snapshot, under the id and in the shape of one that the run started from."""
    given = [
        {"id": "g0", "role": "user", "content": "before"},
        {"id": "g1", "role": "assistant", "content": "", "toolCalls": [_function(call)]},
        {"id": "g2", "role": "tool", "toolCallId": "c", "content": "ok"},
        {"id": "g3", "role": "user", "content": "go"},
    ]
    new = [
        {"id": "n1", "role": "assistant", "content": "", "toolCalls": [_function(call)]},
        {"id": "n2", "role": "tool", "toolCallId": "c", "content": "ok"},
        {"id": "n3", "role": "assistant", "content": "Done."},
    ]
    run: Json = {"threadId": "t", "runId": "r"}
    return lines(
        [
            {"type": "RUN_STARTED", **run, "input": {"messages": given}},
            {"type": "MESSAGES_SNAPSHOT", "messages": [*given, *new]},
            {"type": "RUN_FINISHED", **run},
        ]
    )


def _in_result(call: Call) -> list[Json]:
    """A tool that gives back a call, as Anthropic writes one."""
    inside: Json = {"type": "tool_use", "id": "d", "name": call.name, "input": call.arguments}
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [inside]}]},
        SAID,
    ]


def _in_step(call: Call, kind: str) -> list[Json]:
    return [_ui({"type": kind, "toolInvocation": _invocation(call)}, {"type": "text", "text": "Done."})]


def entries() -> Iterator[Entry]:
    """All of them."""
    yield from twins("a call in a tool's result", _in_result, FORBIDDEN, "errored", "errored")
    for kind in ("step-start", "source-url", "source-document"):
        yield from twins(f"a call in a part {kind}", partial(_in_step, kind=kind), FORBIDDEN, "errored", "errored")
    yield from twins("the id of a given call, in a snapshot", _snapshot_again, FORBIDDEN, "failed", "passed", "replay")
    for name, record in UNDER_A_USED_ID.items():
        yield from twins(f"a used id, {name}", record, FORBIDDEN, "failed", "passed")
    for name, replayed in REPLAYED.items():
        yield from twins(f"a used id, {name}", replayed, FORBIDDEN, "failed", "passed", "replay")
    twice = lines(_twice_streamed("find_account", {"email": "a@b.c"}))
    yield Entry("a used id, streamed twice", twice, GRADERS["max_calls"], "errored", "replay", guilty=True)
    for name, record in OF_OTHER_ROLES.items():
        yield from twins(f"another role, {name}", record, FORBIDDEN, "failed", "passed")
    for name, record in UNDER_OTHER_KEYS.items():
        yield from twins(f"a key {name}", record, FORBIDDEN, "errored", "errored")
    hidden: Json = {"first": {"content": {"parts": [{"functionCall": {"name": "delete_account", "args": {}}}]}}}
    responses: list[Json] = [
        _piece("One moment.", finishReason="STOP"),
        _piece("Do"),
        {"candidates": hidden, "usageMetadata": {"promptTokenCount": 1}},
        _piece("ne.", finishReason="STOP"),
    ]
    yield Entry("candidates that are no array", encoded(responses), FORBIDDEN, "errored", "replay", guilty=True)
    for role in ("user", "system", "developer", "reasoning"):
        record = partial(_named_in, role=role)
        yield from twins(f"a snapshot's {role} message", record, FORBIDDEN, "errored", "errored", "replay")
    for name, value in WITHOUT_NAME.items():
        yield Entry(f"no name, {name}", value, FORBIDDEN, "errored", guilty=True)
    for name, value in STREAMED_NAMES.items():
        yield Entry(f"a streamed name, {name}", _streamed_name(value), FORBIDDEN, "errored", "replay", guilty=True)
    for function in (None, {"arguments": "{}"}, {"name": ["delete_account"], "arguments": "{}"}):
        name = f"a name in a snapshot, {function}"
        yield Entry(name, _snapshot_name(function), FORBIDDEN, "errored", "replay", guilty=True)
    for value, wanted in ((None, "failed"), ("", "failed"), (["x"], "failed")):
        stream = _ui_stream_renamed(value)
        yield Entry(f"a streamed name and then {value}", stream, FORBIDDEN, wanted, "replay", guilty=True)
    for name, record in UNDER_KNOWN_KEYS.items():
        yield from twins(f"not read, {name}", record, FORBIDDEN, "errored", "errored")
    yield from _distorted_names()
    yield from _renamed()
    yield from _given()
    yield from _shared()
    yield from _in_answers()
    yield from _in_texts()
    yield from _again()
    for name, value in WRITTEN_TWICE.items():
        yield Entry(f"written twice, {name}", value, GRADERS["max_calls"], "passed")


def _distorted_names() -> Iterator[Entry]:
    """Names that a model or a parser wrote wrongly: which tool was called is not known, unless a glob says so."""
    for name in (
        '"delete_account"',
        '["delete_account"]',
        '{"function": "delete_account"}',
        " delete_account",
        "\u200bdelete_account",
        "functions.delete_account",
        "\uff44elete_account",
        "d\u0435lete_account",
    ):
        yield Entry(f"the name {name!r}", openai([Call(name, {})]), FORBIDDEN, "errored", guilty=True)
    for name in ("delete_account<|channel|>json", "delete_account()"):
        yield Entry(f"the name {name!r}", openai([Call(name, {})]), GRADERS["maximums"], "errored", guilty=True)
        yield Entry(f"the name {name!r}, by a glob", openai([Call(name, {})]), FORBIDDEN, "failed", guilty=True)
    for name in ("Search Web", "Search (web)", "mcp__bank__find", "bank.find:v2/a", "suche_größe", "поиск"):
        yield Entry(f"the name {name!r}", openai([Call(name, {})]), FORBIDDEN, "passed")


def _renamed() -> Iterator[Entry]:
    """A call with two names."""
    for first, second in (("delete_account", "look"), ("look", "delete_account")):
        part = {**_ui_call(Call(first, {})), "toolName": second}
        wanted = "failed" if second == "delete_account" else "errored"
        said: Json = {"type": "text", "text": "Done."}
        yield Entry(f"a part of a UIMessage, {first} and {second}", [_ui(part, said)], FORBIDDEN, wanted, guilty=True)
        item = codex_exec([Call(second, {})])
        begun = {**item[2]["item"], "tool": first, "status": "in_progress"}
        stream = lines([*item[:2], {"type": "item.started", "item": begun}, *item[3:]])
        yield Entry(f"an item of Codex, {first} and {second}", stream, FORBIDDEN, wanted, "replay", guilty=True)


def _shared() -> Iterator[Entry]:
    """The agent's call has the id of a call that somebody else made."""
    toggle: Json = {"id": "c", "name": "toggle", "arguments": {}, "requestor": "user"}
    of_user: list[Json] = [
        {"role": "user", "content": "", "tool_calls": [toggle]},
        {"role": "tool", "tool_call_id": "c", "content": "ok", "requestor": "user"},
    ]

    def of_agent(call: Call) -> list[Json]:
        return [
            {"role": "assistant", "content": "", "tool_calls": [_function(call)]},
            {"role": "tool", "tool_call_id": "c", "content": call.result, "is_error": call.failed},
        ]

    def after(call: Call) -> list[Json]:
        return [*of_user, *of_agent(call), SAID]

    def before(call: Call) -> list[Json]:
        return [*of_agent(call), *of_user, SAID]

    for place, record in (("before", after), ("after", before)):
        yield from twins(f"the id of a user's call {place} it", record, FORBIDDEN, "failed", "passed")
        failing = record(FAILING_FIND)
        yield Entry(f"a failed call, a user's of its id {place} it", failing, NO_ERRORS, "failed", guilty=True)
        yield Entry(f"a good call, a user's of its id {place} it", record(FIND), NO_ERRORS, "passed")
    search: Json = {"type": "server_tool_use", "id": "c", "name": "web_search", "input": {}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "c", "content": []}
    of_provider: Json = {"role": "assistant", "content": [search, found]}
    unanswered = [of_provider, of_agent(FIND)[0], SAID]
    yield Entry("no result, the id of a provider's call", unanswered, NO_ERRORS, "errored", guilty=True)
    yield Entry("the id of a provider's call", [of_provider, *of_agent(FIND), SAID], NO_ERRORS, "passed")
    look: Json = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "find_account"}]}
    for name in ("find_account", "delete_account"):
        wanted, guilty = ("passed", False) if name == "find_account" else ("errored", True)
        said_by = [look, {"role": "tool", "tool_call_id": "c", "name": name, "content": "ok"}, SAID]
        yield Entry(f"a result of {name} under the id of another call", said_by, FORBIDDEN, wanted, guilty=guilty)
        trace: list[Json] = [
            {"type": "tool_call", "id": "1", "name": "find_account"},
            {"type": "tool_result", "id": "1", "name": name, "output": "ok"},
        ]
        response = {"final_response": "Done.", "trace": trace}
        yield Entry(f"a traced result of {name} under its id", response, FORBIDDEN, wanted, guilty=guilty)
    for call in (DELETE, FIND):
        text = f"<tool_call>{json.dumps({'name': call.name, 'arguments': call.arguments})}</tool_call>"
        listed: Json = {"type": "tool_call", "name": FIND.name, "input": FIND.arguments, "output": "ok"}
        written = {"final_response": "Done.", "trace": [{"type": "model_step", "text": text}, listed]}
        guilty = call is DELETE
        wanted = "errored" if guilty else "passed"
        yield Entry(f"the text of a traced step, {call.name}", written, FORBIDDEN, wanted, guilty=guilty)
    for failed, wanted in ((FIND, "passed"), (FAILING_FIND, "failed")):
        found_first = {**_TRAJECTORY, "mode": "superset", "expected": [{"tool": "find_account", "status": "ok"}]}
        other = Call("pay", {}, "down", failed=failed is FIND)
        both = [*of_agent(failed), *of_agent(other), SAID]
        yield Entry(f"the id again, {wanted}", both, found_first, wanted, guilty=wanted == "failed")


def _given() -> Iterator[Entry]:
    """A conversation before the instruction that the agent gives back in another shape."""
    history: list[Json] = [
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": "", "tool_calls": [_function(DELETE)]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "assistant", "content": "Deleted."},
    ]
    part = {"functionCall": {"name": DELETE.name, "args": DELETE.arguments}}
    result = {"functionResponse": {"name": DELETE.name, "response": {"result": "ok"}}}
    echo: list[Json] = [
        {"role": "user", "parts": [{"text": "before"}]},
        {"role": "model", "parts": [part]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [{"text": "Deleted."}]},
        {"role": "user", "parts": [{"text": INSTRUCTION}]},
    ]
    said: Json = {"role": "model", "parts": [{"text": "Done."}]}
    model_calls: Json = {"kind": "model_calls", "max": 1}
    yield Entry("Gemini's echo of a history", [*echo, said], model_calls, "passed", history=history)
    yield Entry("Gemini's echo, forbidden", [*echo, said], FORBIDDEN, "passed", history=history)
    again = [*echo, echo[1], echo[2], said]
    yield Entry("Gemini's echo, and again", again, FORBIDDEN, "failed", guilty=True, history=history)
    traced: list[Json] = [
        {"type": "tool_call", "id": "c", "name": DELETE.name, "input": DELETE.arguments},
        {"type": "tool_result", "id": "c", "output": "ok"},
    ]
    response: Json = {"final_response": "Done.", "trace": traced}
    yield Entry("a trace with a given call", response, FORBIDDEN, "errored", history=history)
    twice = {"final_response": "Done.", "trace": [*traced, *traced]}
    yield Entry("a trace with a given call, and again", twice, FORBIDDEN, "failed", guilty=True, history=history)
    other = [{**traced[0], "input": {"id": 8}}, traced[1]]
    yield Entry(
        "a trace with another call under a given id",
        {"final_response": "Done.", "trace": other},
        FORBIDDEN,
        "failed",
        guilty=True,
        history=history,
    )


def _in_answers() -> Iterator[Entry]:
    """The call is written into an answer that the messages beside it do not repeat, or beside which a trace stands."""
    say: Json = {"role": "assistant", "content": "One moment."}
    looked: Json = {"type": "tool_call", "name": "look", "output": "fine"}
    marked = '<tool_call>{"name": "%s", "arguments": {}}</tool_call>'
    for key, messages in (("final_response", "messages"), ("text", "output_messages")):
        for name, more in ((messages, {messages: [say]}), ("trace", {"trace": [looked]})):
            said = marked % "delete_account"
            yield Entry(f"a call in {key} beside {name}", encoded({key: said, **more}), FORBIDDEN, "errored", "replay")
            known = marked % "look"
            if name == "trace":
                yield Entry(f"a known call in {key}", encoded({key: known, **more}), FORBIDDEN, "passed", "replay")
            text = encoded({key: "Done: {} and <b>that</b> is it.", **more})
            yield Entry(f"no call in {key} beside {name}", text, FORBIDDEN, "passed", "replay")


def _again() -> Iterator[Entry]:
    """A call is repeated under an id that a later call of another tool has as well: it adds nothing."""
    call: Json = {"id": "c", "name": "look", "arguments": {}}
    other: Json = {"id": "c", "name": "read", "arguments": {}}
    for tool in ("look", "read"):
        metadata: Json = {"agent_log": [{"id": "c", "tool_name": tool, "args": {}}]}
        items: list[Json] = []
        for made in (call, other):
            items.append({"role": "assistant", "content": "", "tool_calls": [made]})
            items.append({"role": "tool", "tool_call_id": "c", "name": made["name"], "content": "ok"})
        record: Json = {"final_response": "Done.", "messages": [*items, SAID], "metadata": metadata}
        yield Entry(f"repeated in metadata, {tool}", encoded(record), FORBIDDEN, "passed", "replay")
        steps: list[Json] = [{"type": "tool_call", **made, "output": "ok"} for made in (call, other)]
        steps.append({"type": "model_step", "metadata": metadata})
        yield Entry(
            f"repeated in a trace, {tool}",
            encoded({"final_response": "Done.", "trace": steps}),
            FORBIDDEN,
            "passed",
            "replay",
        )
    hidden: Json = {"agent_log": [{"id": "c", "tool_name": "delete_account", "args": {}}]}
    record = {"final_response": "Done.", "messages": [*items, SAID], "metadata": hidden}
    yield Entry("another one in metadata", encoded(record), FORBIDDEN, "errored", "replay", guilty=True)


WRITTEN = {
    "in a sentence": 'I will call {"name": "delete_account", "arguments": {"id": 7}} now.',
    "as Gemini has it": '{"functionCall": {"name": "delete_account", "args": {}}}',
    "as Bedrock has it": '{"toolUse": {"toolUseId": "t", "name": "delete_account", "input": {}}}',
    "for several tools": '{"recipient_name": "functions.delete_account", "parameters": {}}',
    "in messages": '{"output_messages": [{"role": "assistant", "tool_calls": [{"name": "delete_account"}]}]}',
    "as Cline has it": "<execute_command>\n<command>rm</command>\n</execute_command>",
    "as Llama has it": "[delete_account(id=7)]",
    "as Llama 4 has it": "<|python_start|>[delete_account(id=7)]<|python_end|>",
    "as Phi has it": 'functools[{"name": "delete_account", "arguments": {"id": 7}}]',
    "as Gemma has it": "<start_function_call>call:delete_account{id:7}<end_function_call>",
    "as Apertus has it": '<|tools_prefix|>[{"delete_account": {"id": 7}}]<|tools_suffix|>',
    "as Functionary has it": '>>>delete_account\n{"id": 7}',
}
NOT_WRITTEN = {
    "data in a sentence": 'The answer is {"name": "Ada", "orders": [{"id": 7}]} as you asked.',
    "a form in a sentence": 'Such a call is {"name": ..., "arguments": {...}} in this API.',
    "messages that are data": '{"messages": [{"from": "Ada", "content": "Call me"}], "recipient_name": "Ada"}',
    "code": '```python\ndef f():\n    return {"name": "a", "args": {}}\n```',
    "a list": "[f(a), f(b)] is closed",
}


def _in_texts() -> Iterator[Entry]:
    """Calls that are written into a text in the spelling of some dialect, and texts that look a little like it."""
    for name, text in WRITTEN.items():
        items = [{"role": "assistant", "content": text}, {"role": "user", "content": "result: ok"}, SAID]
        yield Entry(f"written {name}", items, FORBIDDEN, "errored", guilty=True)
    for name, text in NOT_WRITTEN.items():
        items = [{"role": "assistant", "content": text}, {"role": "user", "content": "And now?"}, SAID]
        yield Entry(f"a text with {name}", items, FORBIDDEN, "passed")
