"""Agents that speak JSON of their own, the API of a model, or A2A: over real sockets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from aiohttp import web
from strategies.unhurried import run_unhurried

from agents.setting import Handler, a_case, a_request, ask, error_class, serving
from seatrial.agents.agent import Reply, RunRequest
from seatrial.agents.config import Probe
from seatrial.agents.http.agent import HttpAgent
from seatrial.agents.http.config import HttpConfig, ModelTool, ResponsePaths
from seatrial.agents.http.template import RequestTemplate
from seatrial.agents.trace_context import trace_id
from seatrial.runs import Run, RunKey
from seatrial.runs.conclusion import conclude, given_messages
from seatrial.suites.secrets import secrets_of

CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"id": "o-1"}'}}
PATHS = ResponsePaths(answer="/data/reply", messages="/data/log", usage="/usage", error="/error")


class Server:
    """Keeps what it was sent."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        self.answer = answer
        self.status = status
        self.method = self.path = self.query = ""
        self.body: Any = None
        self.headers: dict[str, str] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.method, self.path, self.query = request.method, request.path, request.raw_path.partition("?")[2]
        raw = await request.read()
        self.body = json.loads(raw) if raw else None
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        data = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return web.Response(status=self.status, body=data, content_type="application/json")


def replied(handler: Handler, run: RunRequest | None = None, under: str = "", **config: Any) -> Reply:
    async def play() -> Reply:
        async with serving(handler) as url:
            written = HttpConfig(endpoint_url=url.removesuffix("/dispatch") + under, **config)
            async with HttpAgent(
                "shop", written.resolved({"KEY": "s3cret key/+"}), connect_s=5.0, read_s=None
            ) as agent:
                assert not agent.uses_world
                return await ask(agent, run)

    return run_unhurried(play())


def concluded(reply: Reply, request: RunRequest | None = None, tool_access: Any = "own") -> Run:
    case = (request or a_request()).case
    run = Run(run_id="run-1", key=RunKey("shop", case.id, 1), status="completed", fault=reply.fault)
    conclude(run, reply.reading, given_messages(case), tool_access=tool_access)
    return run


def level(reply: Reply, tool_access: Any = "own") -> str:
    run = concluded(reply, tool_access=tool_access)
    assert run.completeness is not None
    return run.completeness.level


def answer_of(reply: Reply) -> str | None:
    assert reply.reading is not None
    return reply.reading.transcript.final_text()


# JSON of its own


def asked(answer: Any, **paths: Any) -> Reply:
    request = RequestTemplate(body={"q": "{{instruction}}"})
    return replied(Server(answer).handle, request=request, response=ResponsePaths(**paths) if paths else PATHS)


def test_a_request_is_sent_as_its_template_says() -> None:
    server = Server({"reply": "Done."})
    case = a_case(instruction='Say "hi" & bye\n', input={"user": "ü 1", "n": 2})
    reply = replied(
        server.handle,
        a_request(case),
        "/v2/ask?v=1",
        request=RequestTemplate(
            method="PUT",
            body={"q": "{{instruction}}", "n": "{{input.n}}", "token": "${KEY}"},
            query={"user": "{{input.user}}", "key": "${KEY}"},
            headers={"X-User": "{{input.user}}", "X-Run": "{{run_id}}/{{case_id}}"},
        ),
        response=ResponsePaths(answer="/reply"),
        headers={"X-Tenant": "blue"},
    )
    assert error_class(reply) is None
    assert answer_of(reply) == "Done."
    assert (server.method, server.path) == ("PUT", "/v2/ask")
    assert server.body == {"q": 'Say "hi" & bye\n', "n": 2, "token": "s3cret key/+"}
    assert server.query == "v=1&user=%C3%BC%201&key=s3cret%20key%2F%2B"
    assert server.headers["x-user"] == "%C3%BC%201"
    assert server.headers["x-run"] == "run-1/case-1"
    assert server.headers["x-tenant"] == "blue"
    assert not [name for name in server.headers if name.startswith("x-pipelines")]


def test_a_get_has_no_body() -> None:
    server = Server({"reply": "Done."})
    request = RequestTemplate(method="GET", query={"q": "{{instruction}}"})
    assert answer_of(replied(server.handle, request=request, response=ResponsePaths(answer="/reply"))) == "Done."
    assert (server.method, server.body, server.query) == ("GET", None, "q=Book%20a%20table%20for%20two.")


def test_secrets_of_a_template_are_known_in_the_forms_in_which_they_are_sent() -> None:
    template = RequestTemplate(body={"token": "${KEY}"}, query={"key": "${KEY}"})
    secrets = secrets_of(HttpConfig(endpoint_url="http://x/", request=template), {"KEY": "s3cret key/+"})
    for sent in ("s3cret%20key%2F%2B", "s3cret key/+"):
        assert secrets.redact(f"got {sent}!") == "got ${KEY}!"


def test_what_the_paths_lead_to_is_read() -> None:
    log = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "Refunded."},
    ]
    reply = asked({"data": {"reply": "Refunded.", "log": log}, "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    assert error_class(reply) is None
    run = concluded(reply)
    assert [(step.name, step.arguments, step.result) for step in run.steps] == [("refund", {"id": "o-1"}, "ok")]
    assert level(reply) == "complete"
    assert reply.reading is not None
    assert reply.reading.transcript.tokens() == (3, 2, True)
    assert reply.reading.notes == []


def test_messages_are_read_in_any_dialect() -> None:
    log = [
        {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "mail", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "sent"}]},
        {"role": "assistant", "content": "Done."},
    ]
    reply = asked(log, messages="")
    assert answer_of(reply) == "Done."
    assert [step.name for step in concluded(reply).steps] == ["refund", "mail"]
    assert level(reply) == "complete"


@pytest.mark.parametrize("log", [None, [], "nothing", "absent"])
def test_without_messages_the_calls_are_unknown(log: Any) -> None:
    reply = asked({"data": {"reply": "Done."} if log == "absent" else {"reply": "Done.", "log": log}})
    assert error_class(reply) is None
    assert level(reply) in ("none", "partial")
    if log in (None, [], "absent"):
        assert level(reply) == "none"
        assert level(reply, tool_access="none") == "complete"
    assert reply.reading is not None
    assert reply.reading.transcript.tokens() is None


@pytest.mark.parametrize(
    "more",
    [
        {"tool_calls": [CALL]},
        {"steps": [{"tool": "refund", "args": {}}]},
        {"data": {"reply": "Done.", "log": [{"role": "assistant", "content": "Done."}], "tools_used": ["refund"]}},
        {"debug": {"deep": [{"type": "tool_use", "name": "refund", "input": {}}]}},
    ],
)
def test_a_call_that_no_path_leads_to_makes_the_calls_partial(more: dict[str, Any]) -> None:
    body = {"data": {"reply": "Done.", "log": [{"role": "assistant", "content": "Done."}]}}
    assert level(asked(body)) == "complete"
    reply = asked({**body, **more})
    assert level(reply) == "partial"
    assert level(reply, tool_access="none") == "partial"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"data": {"text": "x", "id": 1}},
            "no answer at `/data/reply`: at `/data` there is an object with `text`, `id`",
        ),
        ({"reply": "x"}, "no answer at `/data/reply`: the body is an object with `reply`"),
        ({"data": []}, "no answer at `/data/reply`: at `/data` there is an array"),
        ({"data": {"reply": {"a": 1}}}, "the answer at `/data/reply` must be text, and is an object"),
        ({"data": {"reply": None}}, "the answer at `/data/reply` must be text, and is null"),
        ({"data": {"reply": " \n"}}, "the answer at `/data/reply` has no visible text"),
        (b"<html>", "the answer is not JSON"),
        (b"", "the answer is empty"),
    ],
)
def test_a_missing_answer_is_a_bad_response_that_names_the_path(body: Any, message: str) -> None:
    reply = asked(body)
    assert error_class(reply) == "agent_bad_response"
    assert reply.fault is not None
    assert message in reply.fault.message
    assert reply.fault.http_status == 200


@pytest.mark.parametrize(
    ("error", "message"),
    [("no stock", "no stock"), ({"message": "no stock", "code": 7}, "no stock"), (True, "no reason"), ([1], "[1]")],
)
def test_an_error_at_its_path_is_reported_by_the_agent(error: Any, message: str) -> None:
    reply = asked({"data": {"reply": "Done."}, "error": error})
    assert error_class(reply) == "agent_reported_error"
    assert message in str(reply.fault)
    assert answer_of(reply) == "Done."


@pytest.mark.parametrize("error", [None, "", {}, [], False, 0])
def test_an_error_that_says_nothing_is_none(error: Any) -> None:
    assert error_class(asked({"data": {"reply": "Done."}, "error": error})) is None


@pytest.mark.parametrize(
    ("status", "expected"), [(500, "agent_5xx"), (404, "agent_4xx"), (429, "rate_limited"), (401, "auth_failed")]
)
@pytest.mark.parametrize("protocol", ["dispatch", "openai-chat", "a2a"])
def test_statuses_mean_the_same_in_every_protocol(protocol: str, status: int, expected: str) -> None:
    model = "m" if protocol == "openai-chat" else None
    request = RequestTemplate(body={"q": "{{instruction}}"}) if protocol == "dispatch" else None
    reply = replied(Server({"error": "x"}, status).handle, protocol=protocol, model=model, request=request)
    assert error_class(reply) == expected


def test_a_case_that_cannot_be_sent_is_not_the_agents_fault() -> None:
    reply = replied(Server({}).handle, request=RequestTemplate(body="{{input.x}}"))
    assert error_class(reply) == "internal_error"
    assert "has no `input.x`" in str(reply.fault)


def test_without_paths_the_answer_is_read_as_that_of_any_agent() -> None:
    reply = replied(Server({"final_response": "Done."}).handle, request=RequestTemplate(body={"q": "{{instruction}}"}))
    assert answer_of(reply) == "Done."


# APIs of models

TOOL = ModelTool(name="refund", description="Refund an order.", parameters={"type": "object", "properties": {"id": {}}})
HISTORY = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Find o-1."}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
]


def completion(content: str | None, **message: Any) -> dict[str, Any]:
    finish = "tool_calls" if message else "stop"
    said = {"role": "assistant", "content": content, "refusal": None, **message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": finish}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }


def test_a_chat_model_is_sent_the_conversation_its_tools_and_the_key() -> None:
    server = Server(completion("Done."))
    request = a_request(a_case(instruction="Refund it.", messages=HISTORY))
    reply = replied(
        server.handle,
        request,
        "/v1",
        protocol="openai-chat",
        model="m",
        api_key="${KEY}",
        tools=[TOOL],
        request=RequestTemplate(body={"temperature": 0, "user": "{{case_id}}"}),
    )
    assert error_class(reply) is None
    assert answer_of(reply) == "Done."
    assert server.path == "/v1/chat/completions"
    assert server.headers["authorization"] == "Bearer s3cret key/+"
    assert server.body == {
        "model": "m",
        "messages": [*HISTORY, {"role": "user", "content": "Refund it."}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "refund", "description": "Refund an order.", "parameters": TOOL.parameters},
            }
        ],
        "temperature": 0,
        "user": "case-1",
    }
    assert reply.reading is not None
    assert reply.reading.transcript.tokens() == (9, 2, True)


def test_a_model_that_was_offered_tools_and_calls_none_has_called_none() -> None:
    handler = Server(completion("Done.")).handle
    assert level(replied(handler, protocol="openai-chat", model="m", tools=[TOOL])) == "complete"
    bare = replied(handler, protocol="openai-chat", model="m")
    assert level(bare) == "none"
    assert level(bare, tool_access="none") == "complete"


@pytest.mark.parametrize("text", [None, "One moment."])
def test_a_model_that_calls_a_tool_waits_for_it(text: str | None) -> None:
    reply = replied(Server(completion(text, tool_calls=[CALL])).handle, protocol="openai-chat", model="m", tools=[TOOL])
    assert error_class(reply) is None
    run = concluded(reply)
    assert [step.name for step in run.steps] == ["refund"]
    assert level(reply) == "partial"
    assert "waits_for_input" in [note.code for note in run.notes]


def test_an_error_of_a_model_is_reported_by_the_agent() -> None:
    reply = replied(Server({"error": {"message": "overloaded"}}).handle, protocol="openai-chat", model="m")
    assert error_class(reply) == "agent_reported_error"
    assert "overloaded" in str(reply.fault)


@pytest.mark.parametrize("body", [{"reply": "x"}, {"choices": []}, [], b"<html>"])
@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic", "a2a"])
def test_another_shape_is_a_bad_response(protocol: str, body: Any) -> None:
    reply = replied(Server(body).handle, protocol=protocol, model=None if protocol == "a2a" else "m")
    assert error_class(reply) == "agent_bad_response"


def test_the_responses_api_is_sent_items() -> None:
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    text = {"type": "output_text", "text": "Done.", "annotations": []}
    usage = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    response = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [{**item, "content": [text]}],
        "usage": usage,
    }
    server = Server(response)
    request = a_request(a_case(instruction="Refund it.", messages=HISTORY))
    reply = replied(server.handle, request, "/v1/", protocol="openai-responses", model="m", tools=[TOOL])
    assert answer_of(reply) == "Done."
    assert level(reply) == "complete"
    assert server.path == "/v1/responses"
    assert server.body["input"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "Find o-1."}]},
        {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"id": "o-1"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
        {"role": "user", "content": "Refund it."},
    ]
    assert server.body["tools"] == [
        {
            "type": "function",
            "name": "refund",
            "description": "Refund an order.",
            "parameters": TOOL.parameters,
            "strict": False,
        }
    ]


def test_anthropics_api_is_sent_blocks_its_key_and_its_version() -> None:
    use = {"type": "tool_use", "id": "c9", "name": "refund", "input": {"id": "o-1"}}
    response = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "I refund it."}, use],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    server = Server(response)
    request = a_request(a_case(instruction="Refund it.", messages=HISTORY))
    more = RequestTemplate(body={"max_tokens": 99})
    reply = replied(
        server.handle, request, "", protocol="anthropic", model="m", tools=[TOOL], api_key="${KEY}", request=more
    )
    assert error_class(reply) is None
    run = concluded(reply, request)
    assert [(step.name, step.arguments) for step in run.steps] == [("refund", {"id": "o-1"})]
    assert run.completeness is not None
    assert run.completeness.level == "partial"
    assert server.path == "/v1/messages"
    assert (server.headers["x-api-key"], server.headers["anthropic-version"]) == ("s3cret key/+", "2023-06-01")
    assert server.body["system"] == "Be kind."
    assert server.body["max_tokens"] == 99
    assert [message["role"] for message in server.body["messages"]] == ["user", "assistant", "user", "user"]
    assert server.body["tools"] == [
        {"name": "refund", "description": "Refund an order.", "input_schema": TOOL.parameters}
    ]


@pytest.mark.parametrize(
    ("protocol", "given", "sent"),
    [
        ("openai-chat", "http://x/v1", "http://x/v1/chat/completions"),
        ("openai-chat", "http://x/v1/chat/completions", "http://x/v1/chat/completions"),
        (
            "openai-chat",
            "http://x/deployments/d?api-version=1",
            "http://x/deployments/d/chat/completions?api-version=1",
        ),
        ("openai-responses", "http://x/v1/", "http://x/v1/responses"),
        ("anthropic", "http://x", "http://x/v1/messages"),
        ("anthropic", "http://x/v1", "http://x/v1/messages"),
        ("a2a", "http://x/agent", "http://x/agent"),
        ("dispatch", "http://x/v1", "http://x/v1"),
    ],
)
def test_a_base_url_is_enough(protocol: Any, given: str, sent: str) -> None:
    assert HttpConfig(endpoint_url=given, protocol=protocol).address == sent


def test_doctor_connects_to_an_agent_and_asks_it_nothing() -> None:
    async def play() -> tuple[Probe, Probe, int]:
        asked = Server({})
        async with serving(asked.handle) as url:
            config = HttpConfig(endpoint_url=url, protocol="a2a")
            async with HttpAgent("shop", config, connect_s=5.0, read_s=None) as agent:
                there = await config.probe(agent, "http://proxy")
        async with HttpAgent("shop", config, connect_s=5.0, read_s=None) as agent:
            return there, await config.probe(agent, "http://proxy"), len(asked.method)

    there, gone, requests = run_unhurried(play())
    assert (there.ok, gone.ok, requests) == (True, False, 0)
    assert "somebody listens at 127.0.0.1:" in there.message


# A2A


def task(state: str, **more: Any) -> dict[str, Any]:
    status = {"state": state, "timestamp": "2026-01-01T00:00:00Z", **more.pop("status", {})}
    result = {"kind": "task", "id": "t", "contextId": "c", "status": status, **more}
    return {"jsonrpc": "2.0", "id": "1", "result": result}


def said(text: str) -> dict[str, Any]:
    return {
        "message": {"kind": "message", "role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": text}]}
    }


def artifact(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"artifactId": "a", "parts": list(parts)}


def sent_a2a(answer: Any) -> Reply:
    return replied(Server(answer).handle, protocol="a2a")


def test_an_a2a_agent_is_sent_one_message() -> None:
    server = Server(
        {
            "jsonrpc": "2.0",
            "id": "1",
            "result": {
                "kind": "message",
                "role": "agent",
                "messageId": "m",
                "parts": [{"kind": "text", "text": "Done."}],
            },
        }
    )
    reply = replied(server.handle, protocol="a2a", api_key="${KEY}")
    assert answer_of(reply) == "Done."
    assert level(reply) == "none"
    assert level(reply, tool_access="none") == "complete"
    assert server.body["method"] == "message/send"
    assert server.body["params"]["message"]["parts"] == [{"kind": "text", "text": "Book a table for two."}]
    assert server.headers["authorization"] == "Bearer s3cret key/+"


def test_the_answer_of_a_task_is_in_its_artifacts_or_its_status() -> None:
    text = {"kind": "text", "text": "Booked."}
    assert answer_of(sent_a2a(task("completed", artifacts=[artifact(text), artifact(text)]))) == "Booked.\nBooked."
    assert answer_of(sent_a2a(task("completed", status=said("Done.")))) == "Done."
    data = artifact({"kind": "data", "data": {"table": 4}})
    assert answer_of(sent_a2a(task("completed", artifacts=[data]))) == '{"table":4}'


@pytest.mark.parametrize("state", ["failed", "rejected", "canceled"])
def test_a_task_that_failed_is_an_error_that_the_agent_reports(state: str) -> None:
    assert "no table" in str(sent_a2a(task(state, status=said("no table"))).fault)
    reply = sent_a2a(task(state))
    assert error_class(reply) == "agent_reported_error"
    assert state in str(reply.fault)


@pytest.mark.parametrize("state", ["input-required", "auth-required"])
def test_a_task_that_asks_waits_for_input(state: str) -> None:
    reply = sent_a2a(task(state, status=said("Which day?")))
    assert error_class(reply) is None
    assert answer_of(reply) == "Which day?"
    assert "waits_for_input" in [note.code for note in concluded(reply).notes]
    assert level(reply, tool_access="none") == "partial"


@pytest.mark.parametrize("state", ["submitted", "working", "unknown"])
def test_a_task_that_has_not_ended_is_no_answer(state: str) -> None:
    assert error_class(sent_a2a(task(state))) == "agent_bad_response"


def test_an_error_of_json_rpc_is_reported_by_the_agent() -> None:
    reply = sent_a2a({"jsonrpc": "2.0", "id": "1", "error": {"code": -32601, "message": "Method not found"}})
    assert error_class(reply) == "agent_reported_error"
    assert "Method not found" in str(reply.fault)


def test_a_call_in_a_task_is_not_hidden_by_the_protocol() -> None:
    data = {"kind": "data", "data": {"name": "refund", "args": {}}, "metadata": {"adk_type": "function_call"}}
    history = [{"kind": "message", "role": "agent", "messageId": "m", "parts": [data]}]
    reply = sent_a2a(task("completed", status=said("Done."), history=history))
    assert level(reply) == "partial"
    assert level(reply, tool_access="none") == "partial"


# Traces


def test_every_request_belongs_to_the_trace_of_its_run() -> None:
    server = Server({"reply": "Done."})
    options: dict[str, Any] = {"request": RequestTemplate(body={}), "response": ResponsePaths(answer="/reply")}
    first = replied(server.handle, **options)
    sent = server.headers["traceparent"]
    assert re.fullmatch(rf"00-{trace_id('run-1')}-[0-9a-f]{{16}}-01", sent)
    assert first.metadata == {"traceparent": sent}
    second = replied(server.handle, a_request(attempt=2), **options)
    assert second.metadata["traceparent"][:36] == sent[:36]
    assert second.metadata != first.metadata
    own = replied(server.handle, headers={"Traceparent": "00-mine"}, **options)
    assert (server.headers["traceparent"], own.metadata) == ("00-mine", {})
