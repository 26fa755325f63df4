"""The Messages API of Anthropic."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, Completion
from seatrial.models.api import MAX_SHOWN, FaultError, WithoutKey, possible, price, total
from seatrial.models.config import AnthropicConfig

VERSION = "2023-06-01"
"""Every server of this API knows it, also those of others; its successor, 2026-10-21, has no `temperature` any more."""

_ENDED_WELL = frozenset({"", "end_turn", "stop_sequence"})
_CUT_OFF = {
    "max_tokens": "the model's answer was cut off at its length limit: raise `max_tokens`",
    "model_context_window_exceeded": "the model's answer was cut off: its context window is full",
}


class _Block(msgspec.Struct):
    type: str
    text: str | None = None


class _StopDetails(msgspec.Struct):
    explanation: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    """Without those of the cache."""
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Response(msgspec.Struct):
    content: list[_Block] = []
    model: str = ""
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: _Usage | None = None
    error: Any = None
    """What went wrong, where an endpoint says so with status 200."""


_DECODER = msgspec.json.Decoder(_Response)


class AnthropicMessages:
    """Asks by `/v1/messages`."""

    def __init__(self, config: AnthropicConfig) -> None:
        self._config = config

    def url(self) -> str:
        # Endpoints of other APIs are written with it.
        return f"{str(self._config.base_url).rstrip('/').removesuffix('/v1')}/v1/messages"

    def headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": VERSION} | ({} if key is None else {"x-api-key": key})

    def request(self, messages: list[ChatMessage], schema: dict[str, Any] | None) -> dict[str, Any]:
        config = self._config
        request: dict[str, Any] = {"model": str(config.model), "max_tokens": config.max_tokens}
        if system := [message["content"] for message in messages if message["role"] == "system"]:
            request["system"] = "\n\n".join(system)
        request["messages"] = [message for message in messages if message["role"] != "system"]
        if config.temperature is not None:
            request["temperature"] = config.temperature
        if schema is not None and config.structured_output == "json_schema":
            request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return request

    def completion(self, data: bytes, redacted: WithoutKey) -> Completion:
        try:
            response = wire.decode(data, _DECODER, [])
        except SeatrialError as error:
            raise FaultError(f"the endpoint's answer is no message: {error}", retryable=False) from None
        if response.error:
            shown = redacted(wire.encode(response.error).decode())[:MAX_SHOWN]
            raise FaultError(f"the endpoint says that the model failed: {shown}", retryable=True)
        reason = (response.stop_reason or "").casefold()
        if reason == "refusal":
            why = None if response.stop_details is None else response.stop_details.explanation
            shown = f": {redacted(why)[:MAX_SHOWN]}" if why else ""
            raise FaultError(f"the model gave no answer: it refused{shown}", retryable=False)
        if reason in _CUT_OFF:
            raise FaultError(_CUT_OFF[reason], retryable=False)
        if reason not in _ENDED_WELL:
            message = f"the model did not end its answer itself (stop_reason {reason[:40]!r})"
            raise FaultError(redacted(message), retryable=False)
        # What it thought before is not its answer.
        text = "".join([block.text or "" for block in response.content if block.type == "text"])
        if not text.strip():
            raise FaultError("the model gave no text", retryable=False)
        usage = response.usage or _Usage()
        read, written = possible(usage.cache_read_input_tokens or 0), possible(usage.cache_creation_input_tokens or 0)
        others, output = possible(usage.input_tokens), possible(usage.output_tokens)
        config = self._config
        return Completion(
            text=redacted(text),
            model=redacted(response.model or str(config.model)),
            input_tokens=total(others, read, written),
            output_tokens=output,
            cost_usd=total(
                price(config.input_usd_per_mtok, others),
                price(config.cache_read_usd_per_mtok, read),
                price(config.cache_write_usd_per_mtok, written),
                price(config.output_usd_per_mtok, output),
            ),
        )
