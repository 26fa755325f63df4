"""The client for chat models, against a scripted OpenAI-compatible server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from strategies.unhurried import run_unhurried

from seatrial.errors import SeatrialError
from seatrial.graders import Completion
from seatrial.http_client import ScriptedResponse, ScriptedTransport
from seatrial.models import ModelClient, ModelConfig, client

KEY = "sk-very-secret-key"
MESSAGES = [{"role": "user", "content": "Are you there?"}]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def completion(text: str | None = "yes", **more: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "model": "small-2025",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
        **more,
    }


class Endpoint:
    """Answers each request with the next of its answers; keeps what it was sent."""

    def __init__(self, *answers: web.Response | dict[str, Any] | Handler) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        answer = self.answers.pop(0)
        if isinstance(answer, dict):
            return web.json_response(answer)
        return answer if isinstance(answer, web.Response) else await answer(request)

    @asynccontextmanager
    async def client(self, **config: Any) -> AsyncIterator[ModelClient]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/"
        keys = {"model": "small", "base_url": url, "api_key": KEY, **config}
        try:
            async with ModelClient(ModelConfig(**keys), first_wait_s=0.01, longest_wait_s=0.05) as model:
                yield model
        finally:
            await runner.cleanup()

    def ask(self, schema: dict[str, Any] | None = None, **config: Any) -> Completion:
        async def asked() -> Completion:
            async with self.client(**config) as model:
                return await model.complete(MESSAGES, schema=schema)

        return run_unhurried(asked())

    def refusal(self, **config: Any) -> SeatrialError:
        with pytest.raises(SeatrialError) as caught:
            self.ask(**config)
        assert caught.value.code == "model_failed"
        return caught.value


def test_an_answer_comes_with_its_tokens_and_its_cost() -> None:
    endpoint = Endpoint(completion())
    found = endpoint.ask(input_usd_per_mtok=2.0, output_usd_per_mtok=10.0)
    assert found == Completion(text="yes", model="small-2025", input_tokens=1000, output_tokens=100, cost_usd=0.003)
    assert endpoint.requests == [{"model": "small", "messages": MESSAGES}]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_the_endpoints_own_cost_counts_where_no_price_is_given() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5}
    assert Endpoint(completion(usage=usage)).ask().cost_usd == 0.5
    assert Endpoint(completion()).ask().cost_usd is None
    assert Endpoint(completion(usage=None)).ask(input_usd_per_mtok=1).cost_usd is None


@pytest.mark.parametrize(
    ("usage", "prices", "cost", "tokens"),
    [
        ({"prompt_tokens": 1000, "completion_tokens": 10}, (2.0, None), None, (1000, 10)),
        ({"prompt_tokens": 1000, "completion_tokens": 10}, (None, 2.0), None, (1000, 10)),
        ({"prompt_tokens": 1000}, (2.0, 2.0), None, (1000, None)),
        ({"prompt_tokens": 1000}, (2.0, 0.0), 0.002, (1000, None)),
        ({"prompt_tokens": 1000, "completion_tokens": 0}, (2.0, None), 0.002, (1000, 0)),
        ({"prompt_tokens": 1000, "completion_tokens": 10, "cost": 0.5}, (2.0, None), 0.5, (1000, 10)),
        ({"prompt_tokens": -1, "completion_tokens": 10, "cost": -1}, (2.0, 2.0), None, (None, 10)),
        ({}, (None, None), None, (None, None)),
        (None, (2.0, 2.0), None, (None, None)),
    ],
)
def test_a_cost_is_unknown_when_a_price_or_a_number_of_tokens_is_missing(
    usage: dict[str, Any] | None,
    prices: tuple[float | None, float | None],
    cost: float | None,
    tokens: tuple[int | None, int | None],
) -> None:
    read, written = prices
    found = Endpoint(completion(usage=usage)).ask(input_usd_per_mtok=read, output_usd_per_mtok=written)
    assert (found.cost_usd, (found.input_tokens, found.output_tokens)) == (cost, tokens)


@pytest.mark.parametrize(
    ("cached", "price", "cost"),
    [(600, None, 0.003), (600, 0.5, 0.0021), (0, 0.5, 0.003), (None, 0.5, 0.003), (1001, 0.5, None), (-1, 0.5, None)],
)
def test_tokens_of_the_cache_cost_what_all_tokens_do_unless_they_have_a_price(
    cached: int | None, price: float | None, cost: float | None
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": cached}}
    found = Endpoint(completion(usage=usage)).ask(
        input_usd_per_mtok=2.0, output_usd_per_mtok=10.0, cache_read_usd_per_mtok=price
    )
    assert found.input_tokens == 1000
    assert found.cost_usd == (cost if cost is None else pytest.approx(cost))


def test_what_a_try_cost_before_it_failed_is_unknown_unless_no_model_was_at_work() -> None:
    failed = {"error": {"message": "the model failed"}, "choices": []}
    found = Endpoint(failed, completion()).ask(input_usd_per_mtok=2.0, output_usd_per_mtok=10.0)
    assert (found.text, found.cost_usd, found.input_tokens, found.output_tokens) == ("yes", None, None, None)
    busy = web.Response(status=429)
    found = Endpoint(busy, completion()).ask(input_usd_per_mtok=2.0, output_usd_per_mtok=10.0)
    assert (found.cost_usd, found.input_tokens) == (0.003, 1000)


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        ("json_schema", {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": {"a": 1}}}),
        ("json_object", {"type": "json_object"}),
        ("none", None),
    ],
)
def test_a_schema_is_sent_as_the_endpoint_understands_it(how: str, sent: dict[str, Any] | None) -> None:
    endpoint = Endpoint(completion())
    endpoint.ask(schema={"a": 1}, structured_output=how, temperature=0)
    assert endpoint.requests[0].get("response_format") == sent
    assert endpoint.requests[0]["temperature"] == 0


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_or_failing_endpoint_is_asked_again(status: int) -> None:
    endpoint = Endpoint(web.Response(status=status), web.Response(status=status), completion())
    assert endpoint.ask().text == "yes"
    assert len(endpoint.requests) == 3


def test_an_endpoint_that_stays_down_is_given_up() -> None:
    endpoint = Endpoint(*[web.Response(status=503, text="overloaded") for _ in range(9)])
    error = endpoint.refusal(attempts=3)
    assert str(error) == "the model's endpoint answered 503: overloaded (after 3 tries)"
    assert len(endpoint.requests) == 3


def test_retry_after_is_honoured_up_to_the_longest_wait() -> None:
    endpoint = Endpoint(web.Response(status=429, headers={"Retry-After": "3600"}), completion())
    assert endpoint.ask().text == "yes"


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_a_refusal_is_not_asked_again_and_the_key_is_not_repeated(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint = Endpoint(web.Response(status=status, text=f"bad key {KEY}", headers={"Location": "/elsewhere"}))
    error = endpoint.refusal()
    assert str(error) == f"the model's endpoint answered {status}: bad key ***"
    assert len(endpoint.requests) == 1
    assert KEY not in caplog.text


def test_a_key_that_comes_back_is_in_no_answer_however_it_is_written() -> None:
    key = 'sk-very"secret'
    endpoint = Endpoint(completion(f"your key is {key}"), web.json_response({"error": f"bad key {key}"}, status=401))

    async def both() -> tuple[str, str]:
        async with endpoint.client(api_key=key) as model:
            answer = await model.complete(MESSAGES)
            with pytest.raises(SeatrialError) as caught:
                await model.complete(MESSAGES)
            return answer.text, str(caught.value)

    answer, error = asyncio.run(both())
    assert answer == "your key is ***"
    assert error == """the model's endpoint answered 401: {"error": "bad key ***"}"""


def test_no_part_of_a_key_stays_where_a_complaint_is_cut() -> None:
    complaint = f"{'x' * 290} {KEY}"
    assert KEY[:3] not in str(Endpoint(web.Response(status=401, text=complaint)).refusal())
    refused = {"choices": [{"message": {"refusal": complaint}}]}
    assert KEY[:3] not in str(Endpoint(web.json_response(refused)).refusal())


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def test_a_hanging_endpoint_is_asked_again_after_the_timeout() -> None:
    assert Endpoint(hang, completion()).ask(timeout_s=0.2).text == "yes"
    assert "did not answer within 0.1 s (after 2 tries)" in str(Endpoint(hang, hang).refusal(timeout_s=0.1, attempts=2))


def test_a_broken_connection_is_tried_again() -> None:
    assert Endpoint(drop, completion()).ask().text == "yes"


def test_nobody_listening_is_told() -> None:
    error = Endpoint().refusal(base_url="http://127.0.0.1:1/v1", attempts=2)
    assert str(error).startswith("no connection to the model: ConnectionRefusedError")


@pytest.mark.parametrize("url", ["not a url", "http://", ""])
def test_an_address_that_is_none_is_told(url: str) -> None:
    Endpoint().refusal(base_url=url, attempts=1)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (web.Response(text="<html>"), "no chat completion"),
        (web.Response(body=b"\xff\xfe"), "no chat completion"),
        (web.Response(text="[" * 100_000), "no chat completion"),
        ({"choices": []}, "gave no text"),
        ({"choices": [{"message": {"content": 7}}]}, "no chat completion"),
        (completion(None), "gave no text"),
        ({"choices": [{"message": {"content": None, "refusal": "I will not"}}]}, "refused: I will not"),
        (completion(choices=[{"message": {"content": "ye"}, "finish_reason": "length"}]), "cut off"),
        (completion(choices=[{"message": {"content": "y"}, "finish_reason": "content_filter"}]), "content_filter"),
        (completion(choices=[{"message": {"content": "y", "refusal": "I cannot"}}]), "refused: I cannot"),
        (completion(choices=[{"message": {"content": "y"}}, {"message": {"content": "n"}}]), "several answers"),
    ],
)
def test_an_answer_that_is_none_is_told(answer: Any, told: str) -> None:
    endpoint = Endpoint(answer)
    assert told in str(endpoint.refusal())
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "failed",
    [
        completion(error={"message": "overloaded"}),
        completion(choices=[{"message": {"content": "yes"}, "error": {"code": 502}}]),
        completion(choices=[{"message": {"content": "yes"}, "finish_reason": "error"}]),
    ],
)
def test_an_answer_that_is_marked_as_failed_is_asked_for_again_and_never_used(failed: Any) -> None:
    endpoint = Endpoint(failed, completion("no"))
    assert endpoint.ask().text == "no"
    assert len(endpoint.requests) == 2
    assert "failed" in str(Endpoint(*[failed] * 5).refusal()) or "did not end" in str(Endpoint(*[failed] * 5).refusal())


@pytest.mark.parametrize("reason", [None, "stop", "STOP", "end_turn", "eos"])
def test_an_answer_that_the_model_ended_itself_counts(reason: str | None) -> None:
    answer = completion(choices=[{"message": {"content": "yes"}, "finish_reason": reason}])
    assert Endpoint(answer).ask().text == "yes"


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_RESPONSE", 2**20)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(64):
            await response.write(b" " * 65_536)
        return response

    assert "larger than 1 MiB" in str(Endpoint(endless).refusal())


def test_a_model_may_answer_from_a_script() -> None:
    answer = ScriptedResponse(body=json.dumps(completion("from memory")).encode())

    async def asked() -> Completion:
        config = ModelConfig(model="m", base_url="http://model.test")
        async with ModelClient(config, transport=ScriptedTransport(answer)) as model:
            return await model.complete(MESSAGES)

    assert asyncio.run(asked()).text == "from memory"


def test_many_questions_share_one_session() -> None:
    endpoint = Endpoint(*[completion(json.dumps(number)) for number in range(40)])

    async def asked() -> list[Completion]:
        async with endpoint.client() as model:
            return await asyncio.gather(*[model.complete(MESSAGES) for _ in range(40)])

    assert sorted(int(found.text) for found in asyncio.run(asked())) == list(range(40))


def test_a_closed_client_says_so() -> None:
    model = ModelClient(ModelConfig(model="m", base_url="http://127.0.0.1:1"))
    with pytest.raises(SeatrialError, match="not open"):
        asyncio.run(model.complete(MESSAGES))


def test_neither_the_client_nor_its_configuration_shows_the_key() -> None:
    config = ModelConfig(model="m", base_url="http://x", api_key=KEY)
    assert KEY not in repr(config)
    assert KEY not in repr(ModelClient(config))


def test_a_key_that_no_header_can_carry_is_told_without_it() -> None:
    with pytest.raises(SeatrialError) as caught:
        Endpoint().ask(api_key="two\nlines of a key")
    assert caught.value.code == "invalid_config"
    assert "lines of a key" not in str(caught.value)
