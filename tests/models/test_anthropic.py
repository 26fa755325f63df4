"""The client for Anthropic's Messages API, against a scripted server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from strategies import command
from strategies.messages_api import MessagesApi, message, refused
from strategies.unhurried import run_unhurried

from seatrial.errors import SeatrialError
from seatrial.graders import Completion
from seatrial.models import AnthropicConfig, ModelClient, ModelConfig, open_model
from seatrial.runs import Case
from seatrial.suites import PythonConfig, Suite, validate_suite

KEY = "sk-ant-very-secret-key"
ASKED = [{"role": "system", "content": "You are a judge."}, {"role": "user", "content": "Was it right?"}]
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def ask(api: MessagesApi, messages: Any = ASKED, schema: dict[str, Any] | None = None, **keys: Any) -> Completion:
    async def asked() -> Completion:
        async with api.opened() as url:
            config = AnthropicConfig(**{"model": "claude-judge", "base_url": url, "api_key": KEY, **keys})
            async with ModelClient(config, first_wait_s=0.01, longest_wait_s=0.05) as model:
                return await model.complete(messages, schema=schema)

    return run_unhurried(asked())


def refusal(api: MessagesApi, **keys: Any) -> str:
    with pytest.raises(SeatrialError) as caught:
        ask(api, **keys)
    assert caught.value.code == "model_failed"
    return str(caught.value)


def test_an_answer_comes_with_its_tokens_and_its_cost() -> None:
    api = MessagesApi(message("ye", "s"))
    found = ask(api, input_usd_per_mtok=2.0, output_usd_per_mtok=10.0)
    assert found == Completion(
        text="yes", model="claude-judge-20260101", input_tokens=1000, output_tokens=100, cost_usd=0.003
    )
    assert api.requests == [
        {"model": "claude-judge", "max_tokens": 8192, "system": "You are a judge.", "messages": ASKED[1:]}
    ]
    assert api.headers[0]["x-api-key"] == KEY
    assert "Authorization" not in api.headers[0]


def test_the_version_may_stand_at_the_end_of_the_address() -> None:
    async def asked() -> str:
        api = MessagesApi(message("yes"))
        async with (
            api.opened() as url,
            open_model(AnthropicConfig(model="m", base_url=f"{url}/v1/", api_key=KEY)) as model,
        ):
            return (await model.complete(ASKED)).text

    assert asyncio.run(asked()) == "yes"


def test_a_schema_is_sent_as_an_output_format_unless_the_model_does_not_know_it() -> None:
    api = MessagesApi(message("{}"), message("{}"))
    ask(api, schema=SCHEMA, temperature=0, max_tokens=100)
    ask(api, schema=SCHEMA, structured_output="none")
    assert api.requests[0]["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert (api.requests[0]["temperature"], api.requests[0]["max_tokens"]) == (0, 100)
    assert "output_config" not in api.requests[1]


@pytest.mark.parametrize(
    ("usage", "cache_prices", "cost", "tokens"),
    [
        ({"input_tokens": 1000, "output_tokens": 10}, {}, 0.0021, (1000, 10)),
        ({"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": None}, {}, 0.0021, (1000, 10)),
        ({"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": 5000}, {}, None, (6000, 10)),
        ({"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": 5000}, (0.2, None), 0.0031, (6000, 10)),
        ({"input_tokens": 1000, "output_tokens": 10, "cache_creation_input_tokens": 5}, (0.2, None), None, (1005, 10)),
        (
            {
                "input_tokens": 1000,
                "output_tokens": 10,
                "cache_creation_input_tokens": 1000,
                "cache_read_input_tokens": 5000,
            },
            (0.2, 2.5),
            0.0056,
            (7000, 10),
        ),
        ({"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": -1}, (0.2, None), None, (None, 10)),
        ({"output_tokens": 10}, {}, None, (None, 10)),
        (None, {}, None, (None, None)),
    ],
)
def test_tokens_of_the_cache_count_and_cost_what_they_cost(
    usage: dict[str, Any] | None, cache_prices: Any, cost: float | None, tokens: tuple[int | None, int | None]
) -> None:
    read, written = cache_prices or (None, None)
    found = ask(
        MessagesApi(message("yes", usage=usage)),
        input_usd_per_mtok=2.0,
        output_usd_per_mtok=10.0,
        cache_read_usd_per_mtok=read,
        cache_write_usd_per_mtok=written,
    )
    assert (found.input_tokens, found.output_tokens) == tokens
    assert found.cost_usd == (cost if cost is None else pytest.approx(cost))


def test_without_prices_the_cost_is_unknown_and_not_zero() -> None:
    assert ask(MessagesApi(message("yes"))).cost_usd is None
    assert ask(MessagesApi(message("yes")), input_usd_per_mtok=0, output_usd_per_mtok=0).cost_usd == 0


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (message("y", stop_reason="max_tokens"), "cut off at its length limit: raise `max_tokens`"),
        (message("y", stop_reason="model_context_window_exceeded"), "its context window is full"),
        (message("y", stop_reason="refusal"), "the model gave no answer: it refused"),
        (
            message(stop_reason="refusal", stop_details={"type": "refusal", "explanation": f"not that, {KEY}"}),
            "it refused: not that, ***",
        ),
        (message("y", stop_reason="pause_turn"), "did not end its answer itself (stop_reason 'pause_turn')"),
        (message("y", stop_reason="tool_use"), "stop_reason 'tool_use'"),
        (message(" \n"), "gave no text"),
        (message(content=[]), "gave no text"),
        (message(content=[{"type": "thinking", "thinking": "yes", "signature": "x"}]), "gave no text"),
        (message(content="yes"), "the endpoint's answer is no message"),
        (web.Response(text="<html>"), "the endpoint's answer is no message"),
        (refused(400, "invalid_request_error", "max_tokens: too large"), "answered 400: "),
        (refused(401, "authentication_error", f"invalid x-api-key {KEY}"), "invalid x-api-key ***"),
        (refused(413, "request_too_large", "Request exceeds the maximum size"), "answered 413: "),
    ],
)
def test_an_answer_that_is_none_is_told_and_not_asked_for_again(answer: Any, told: str) -> None:
    api = MessagesApi(answer, message("yes"))
    found = refusal(api)
    assert told in found
    assert KEY not in found
    assert len(api.requests) == 1


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")])
def test_a_busy_or_failing_endpoint_is_asked_again(status: int, kind: str) -> None:
    api = MessagesApi(refused(status, kind, "later", **{"retry-after": "0"}), message("yes"))
    assert ask(api).text == "yes"
    assert len(api.requests) == 2


def test_what_the_model_thinks_before_is_not_its_answer() -> None:
    thought = {"type": "thinking", "thinking": "no, wait", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    found = ask(MessagesApi(message(content=[thought, hidden, {"type": "text", "text": "yes"}])))
    assert found.text == "yes"


def test_a_key_is_shown_by_nothing() -> None:
    config = AnthropicConfig(model="m", api_key=KEY)
    assert KEY not in repr(config) + repr(ModelClient(config))
    assert ask(MessagesApi(message(f"your key is {KEY}"))).text == "your key is ***"


def suite(judge: Any) -> Suite:
    return Suite(
        agents={"mine": PythonConfig(target="a:b")},
        cases=[Case(id="one", instruction="x")],
        graders=[{"kind": "judge"}],
        judge=judge,
    )


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"api_key": "sk-ant-written-out"}, "`api_key` holds a secret"),
        ({"base_url": "nowhere"}, "`base_url` must be an http or https URL"),
        ({"input_usd_per_mtok": 1}, "a price needs both"),
        ({"cache_read_usd_per_mtok": 1}, "`cache_read_usd_per_mtok` does nothing without `input_usd_per_mtok`"),
    ],
)
def test_what_is_wrong_with_it_is_reported_before_anything_runs(keys: dict[str, Any], told: str) -> None:
    as_mapping, as_object = (
        [problem.message for problem in validate_suite(suite(judge), variables={}, grading="all")]
        for judge in ({"kind": "anthropic", "model": "m", **keys}, AnthropicConfig(model="m", **keys))
    )
    assert as_mapping == as_object
    (only,) = as_mapping
    assert told in only


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    (problem,) = validate_suite(suite({"kind": "anthropic", "model": "m", "max_token": 5}), variables={})
    assert "max_token" in problem.message
    assert "max_tokens" in (problem.hint or "")


def test_a_configuration_is_opened_by_its_kind() -> None:
    assert isinstance(open_model({"kind": "anthropic", "model": "m"}), ModelClient)
    assert isinstance(open_model(ModelConfig(model="m", base_url="http://x")), ModelClient)


def test_a_suite_file_names_it_and_takes_its_key_from_the_environment(tmp_path: Path) -> None:
    ballot = {"reasoning": "it did", "outcome_met": True, "failure_mode": None, "evidence": ["/answer"]}
    api = MessagesApi(by=lambda body: message(json.dumps(ballot)))
    (tmp_path / "my_agent.py").write_text("def answer(instruction):\n    return 'done'\n")

    async def ran() -> tuple[int, str]:
        async with api.opened() as url:
            written = {
                "agents": {"mine": {"kind": "python", "target": "my_agent:answer"}},
                "judge": {"kind": "anthropic", "model": "m", "base_url": url, "api_key": "${JUDGE_KEY}"},
                "graders": [{"kind": "judge", "votes": 3}],
                "cases": [{"id": "one", "instruction": "do it"}],
            }
            (tmp_path / "s.suite.yaml").write_text(json.dumps(written))
            variables = {**os.environ, "JUDGE_KEY": KEY}
            done = await asyncio.to_thread(command.seatrial, "run", "s.suite.yaml", cwd=tmp_path, env=variables)
            return done.returncode, done.stdout + done.stderr

    code, said = asyncio.run(ran())
    assert code == 0, said
    assert len(api.requests) == 3
    assert api.headers[0]["x-api-key"] == KEY
    assert "system" in api.requests[0]
    assert b"very-secret" not in (tmp_path / "seatrial.db").read_bytes()
