"""One small client for chat models behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from math import inf
from typing import Any, Self, TypeVar

import msgspec
import yarl

from seatrial._support import wire
from seatrial._support.retry_after import retry_after_s
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, Completion
from seatrial.http_client import HttpRequest, HttpTransport, TransportError
from seatrial.http_client.decompression import ENCODINGS
from seatrial.models.config import ModelConfig

N = TypeVar("N", int, float)

MAX_RESPONSE = 8 * 1024 * 1024
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})
_MAX_SHOWN = 300


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    error: Any = None
    """What went wrong, although the endpoint answers with 200."""


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    """US dollars, where the endpoint says so itself."""


class _Response(msgspec.Struct):
    choices: list[_Choice]
    model: str = ""
    usage: _Usage | None = None
    error: Any = None


class _FaultError(Exception):
    """One try that brought no answer."""

    def __init__(self, message: str, *, retryable: bool, wait_s: float | None = None, free: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.wait_s = wait_s
        self.free = free
        """Whether it cost nothing: no model was at work."""


_ENDED_WELL = frozenset({"", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"})
"""By what an endpoint says that a model was done with its answer, or says nothing."""
_DECODER = msgspec.json.Decoder(_Response)


class ModelClient:
    """A chat model behind HTTP: one pool of connections, entered once, asked many times, concurrently."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        first_wait_s: float = 0.5,
        longest_wait_s: float = 30.0,
        transport: HttpTransport | None = None,
    ) -> None:
        """Over aiohttp, unless another transport is given."""
        self._config = config
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._transport = transport
        self._headers: dict[str, str] | None = None
        """None while the client is not open."""
        self._chance = random.Random()  # noqa: S311 (jitter of waits, not a secret)

    def __repr__(self) -> str:
        return f"ModelClient({self.name!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return str(self._config.model)

    async def __aenter__(self) -> Self:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": ENCODINGS}
        if self._config.api_key:
            key = self._config.api_key.strip()
            if not (key.isascii() and key.isprintable()):
                raise SeatrialError("invalid_config", "the key of the model cannot stand in a header")
            headers["Authorization"] = f"Bearer {key}"
        if self._transport is None:
            from seatrial.http_client.aiohttp_transport import AiohttpTransport

            self._transport = AiohttpTransport(connect_s=self._config.timeout_s, read_s=None, server="the model")
        await self._transport.__aenter__()
        self._headers = headers
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._headers = None
        if self._transport is not None:
            await self._transport.__aexit__(*exc_info)

    async def complete(self, messages: list[ChatMessage], *, schema: dict[str, Any] | None = None) -> Completion:
        """One answer, as JSON text when a schema is given; raises `SeatrialError("model_failed")` if there is none."""
        body = wire.encode(self._request(messages, schema))
        number = 0
        free = True
        while True:
            number += 1
            try:
                answer = await self._ask(body)
                # What a model did before it failed is paid for, too, and nobody says how much it was.
                return answer if free else Completion(text=answer.text, model=answer.model)
            except _FaultError as fault:
                free = free and fault.free
                if not fault.retryable or number >= self._config.attempts:
                    tries = f" (after {number} tries)" if number > 1 else ""
                    raise SeatrialError("model_failed", f"{self._redacted(str(fault))}{tries}") from None
                await asyncio.sleep(self._wait_s(number, fault.wait_s))

    def _request(self, messages: list[ChatMessage], schema: dict[str, Any] | None) -> dict[str, Any]:
        config = self._config
        request: dict[str, Any] = {"model": self.name, "messages": messages}
        if config.temperature is not None:
            request["temperature"] = config.temperature
        if schema is not None and config.structured_output == "json_schema":
            named = {"name": "answer", "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif schema is not None and config.structured_output == "json_object":
            request["response_format"] = {"type": "json_object"}
        return request

    async def _ask(self, body: bytes) -> Completion:
        if self._transport is None or self._headers is None:
            raise SeatrialError("model_failed", "the client is not open", hint="use it in `async with`")
        request = HttpRequest("POST", self._url(), self._headers, body)
        try:
            async with asyncio.timeout(self._config.timeout_s):
                with closing(await self._transport.send(request)) as response:
                    data = await response.read_all(MAX_RESPONSE)
        except TimeoutError:
            raise _FaultError(f"the model did not answer within {self._config.timeout_s:g} s", retryable=True) from None
        except TransportError as error:
            detail = f": {error.detail}" if error.detail else ""
            free = error.kind in ("forbidden", "unreachable")
            raise _FaultError(f"{error.message}{detail}", retryable=True, free=free) from None
        if data is None:
            raise _FaultError(f"the answer is larger than {MAX_RESPONSE // 2**20} MiB", retryable=False)
        if response.status != 200:
            # Before it is cut: a part of the key must not stay either.
            shown = self._redacted(data.decode("utf-8", "replace")).strip()[:_MAX_SHOWN]
            raise _FaultError(
                f"the model's endpoint answered {response.status}: {shown}",
                retryable=response.status in _RETRYABLE,
                wait_s=retry_after_s(response.retry_after),
                free=True,
            )
        return self._completion(data)

    def _url(self) -> yarl.URL:
        try:
            url = yarl.URL(f"{str(self._config.base_url).rstrip('/')}/chat/completions")
        except ValueError:
            url = yarl.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise _FaultError("the model's `base_url` is not a URL", retryable=False)
        return url

    def _completion(self, data: bytes) -> Completion:
        try:
            response = wire.decode(data, _DECODER, [])
        except SeatrialError as error:
            raise _FaultError(f"the endpoint's answer is no chat completion: {error}", retryable=False) from None
        choice = response.choices[0] if response.choices else None
        failure = response.error or next((each.error for each in response.choices if each.error), None)
        if failure:
            shown = self._redacted(wire.encode(failure).decode())[:_MAX_SHOWN]
            raise _FaultError(f"the endpoint says that the model failed: {shown}", retryable=True)
        if choice is not None and choice.message.refusal:
            refusal = self._redacted(choice.message.refusal)[:_MAX_SHOWN]
            raise _FaultError(f"the model gave no answer: it refused: {refusal}", retryable=False)
        if choice is None or not choice.message.content:
            raise _FaultError("the model gave no text", retryable=False)
        reason = (choice.finish_reason or "").casefold()
        if reason in ("length", "max_tokens"):
            raise _FaultError("the model's answer was cut off at its length limit", retryable=False)
        if reason not in _ENDED_WELL:
            message = f"the model did not end its answer itself (finish_reason {reason[:40]!r})"
            raise _FaultError(self._redacted(message), retryable=reason == "error")
        if any(each.message.content != choice.message.content for each in response.choices):
            raise _FaultError("the model gave several answers that are not the same", retryable=False)
        usage = response.usage or _Usage()
        return Completion(
            text=self._redacted(choice.message.content),
            model=self._redacted(response.model or self.name),
            input_tokens=_possible(usage.prompt_tokens),
            output_tokens=_possible(usage.completion_tokens),
            cost_usd=self._cost(usage),
        )

    def _cost(self, usage: _Usage) -> float | None:
        """By the prices of the configuration; where these do not say, by the endpoint's own word."""
        read = _price(self._config.input_usd_per_mtok, _possible(usage.prompt_tokens))
        written = _price(self._config.output_usd_per_mtok, _possible(usage.completion_tokens))
        return _possible(usage.cost) if read is None or written is None else read + written

    def _wait_s(self, number: int, asked_s: float | None) -> float:
        wait_s = self._first_wait_s * 2.0 ** (number - 1) * self._chance.uniform(0.75, 1.25)
        return min(max(wait_s, asked_s or 0.0), self._longest_wait_s)

    def _redacted(self, text: str) -> str:
        # An endpoint may send the key back: in what it complains of, or in an answer, which is stored.
        key = (self._config.api_key or "").strip()
        if len(key) >= 4:
            in_json = wire.encode(str(key)).decode()[1:-1]
            text = text.replace(key, "***").replace(in_json, "***")
        return text


def _possible(figure: N | None) -> N | None:
    """A figure of an endpoint, unless it cannot be one."""
    return figure if figure is not None and 0 <= figure < inf else None


def _price(usd_per_mtok: float | None, tokens: int | None) -> float | None:
    """What so many tokens cost; None when it is not known, which it is of no tokens, and of those that are free."""
    if tokens == 0 or usd_per_mtok == 0:
        return 0.0
    return None if tokens is None or usd_per_mtok is None else usd_per_mtok * tokens / 1_000_000
