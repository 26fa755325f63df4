"""Chat completions: the API of OpenAI, which most servers speak."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, Completion
from seatrial.models.api import MAX_SHOWN, FaultError, WithoutKey, possible, price, total
from seatrial.models.config import ModelConfig

_ENDED_WELL = frozenset({"", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"})
"""By what an endpoint says that a model was done with its answer, or says nothing."""


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    error: Any = None
    """What went wrong, although the endpoint answers with 200."""


class _PromptTokens(msgspec.Struct):
    cached_tokens: int | None = None
    """Of the prompt's tokens, those that the endpoint had already."""


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptTokens | None = None
    cost: float | None = None
    """US dollars, where the endpoint says so itself."""


class _Response(msgspec.Struct):
    choices: list[_Choice]
    model: str = ""
    usage: _Usage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Response)


class ChatCompletions:
    """Asks by `/chat/completions`."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config

    def url(self) -> str:
        return f"{str(self._config.base_url).rstrip('/')}/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def request(self, messages: list[ChatMessage], schema: dict[str, Any] | None) -> dict[str, Any]:
        config = self._config
        request: dict[str, Any] = {"model": str(config.model), "messages": messages}
        if config.temperature is not None:
            request["temperature"] = config.temperature
        if schema is not None and config.structured_output == "json_schema":
            named = {"name": "answer", "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif schema is not None and config.structured_output == "json_object":
            request["response_format"] = {"type": "json_object"}
        return request

    def completion(self, data: bytes, redacted: WithoutKey) -> Completion:
        try:
            response = wire.decode(data, _DECODER, [])
        except SeatrialError as error:
            raise FaultError(f"the endpoint's answer is no chat completion: {error}", retryable=False) from None
        choice = response.choices[0] if response.choices else None
        failure = response.error or next((each.error for each in response.choices if each.error), None)
        if failure:
            shown = redacted(wire.encode(failure).decode())[:MAX_SHOWN]
            raise FaultError(f"the endpoint says that the model failed: {shown}", retryable=True)
        if choice is not None and choice.message.refusal:
            refusal = redacted(choice.message.refusal)[:MAX_SHOWN]
            raise FaultError(f"the model gave no answer: it refused: {refusal}", retryable=False)
        if choice is None or not choice.message.content:
            raise FaultError("the model gave no text", retryable=False)
        reason = (choice.finish_reason or "").casefold()
        if reason in ("length", "max_tokens"):
            raise FaultError("the model's answer was cut off at its length limit", retryable=False)
        if reason not in _ENDED_WELL:
            message = f"the model did not end its answer itself (finish_reason {reason[:40]!r})"
            raise FaultError(redacted(message), retryable=reason == "error")
        if any(each.message.content != choice.message.content for each in response.choices):
            raise FaultError("the model gave several answers that are not the same", retryable=False)
        usage = response.usage or _Usage()
        return Completion(
            text=redacted(choice.message.content),
            model=redacted(response.model or str(self._config.model)),
            input_tokens=possible(usage.prompt_tokens),
            output_tokens=possible(usage.completion_tokens),
            cost_usd=self._cost(usage),
        )

    def _cost(self, usage: _Usage) -> float | None:
        """By the prices of the configuration; where these do not say, by the endpoint's own word."""
        config = self._config
        tokens = possible(usage.prompt_tokens)
        read = price(config.input_usd_per_mtok, tokens)
        details = usage.prompt_tokens_details
        if config.cache_read_usd_per_mtok is not None and tokens is not None and details is not None:
            cached = possible(details.cached_tokens or 0)
            others = None if cached is None else possible(tokens - cached)
            read = total(price(config.input_usd_per_mtok, others), price(config.cache_read_usd_per_mtok, cached))
        known = total(read, price(config.output_usd_per_mtok, possible(usage.completion_tokens)))
        return possible(usage.cost) if known is None else known
