"""One small client for chat models behind HTTP: it keeps the time, tries again, and shows no key."""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from typing import Any, Self

import yarl

from seatrial._support import wire
from seatrial._support.retry_after import retry_after_s
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, Completion
from seatrial.http_client import HttpRequest, HttpTransport, TransportError
from seatrial.http_client.decompression import ENCODINGS
from seatrial.models.api import MAX_SHOWN, FaultError
from seatrial.models.config import HttpModelConfig

MAX_RESPONSE = 8 * 1024 * 1024
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})


class ModelClient:
    """A chat model behind HTTP: one pool of connections, entered once, asked many times, concurrently."""

    def __init__(
        self,
        config: HttpModelConfig,
        *,
        first_wait_s: float = 0.5,
        longest_wait_s: float = 30.0,
        transport: HttpTransport | None = None,
    ) -> None:
        """Over aiohttp, unless another transport is given."""
        self._config = config
        self._api = config.api()
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
        key = (self._config.api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise SeatrialError("invalid_config", "the key of the model cannot stand in a header")
        headers |= self._api.headers(key or None)
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
        body = wire.encode(self._api.request(messages, schema))
        number = 0
        free = True
        while True:
            number += 1
            try:
                answer = await self._ask(body)
                # What a model did before it failed is paid for, too, and nobody says how much it was.
                return answer if free else Completion(text=answer.text, model=answer.model)
            except FaultError as fault:
                free = free and fault.free
                if not fault.retryable or number >= self._config.attempts:
                    tries = f" (after {number} tries)" if number > 1 else ""
                    raise SeatrialError("model_failed", f"{self._redacted(str(fault))}{tries}") from None
                await asyncio.sleep(self._wait_s(number, fault.wait_s))

    async def _ask(self, body: bytes) -> Completion:
        if self._transport is None or self._headers is None:
            raise SeatrialError("model_failed", "the client is not open", hint="use it in `async with`")
        request = HttpRequest("POST", self._url(), self._headers, body)
        try:
            async with asyncio.timeout(self._config.timeout_s):
                with closing(await self._transport.send(request)) as response:
                    data = await response.read_all(MAX_RESPONSE)
        except TimeoutError:
            raise FaultError(f"the model did not answer within {self._config.timeout_s:g} s", retryable=True) from None
        except TransportError as error:
            detail = f": {error.detail}" if error.detail else ""
            free = error.kind in ("forbidden", "unreachable")
            raise FaultError(f"{error.message}{detail}", retryable=True, free=free) from None
        if data is None:
            raise FaultError(f"the answer is larger than {MAX_RESPONSE // 2**20} MiB", retryable=False)
        if response.status != 200:
            # Before it is cut: a part of the key must not stay either.
            shown = self._redacted(data.decode("utf-8", "replace")).strip()[:MAX_SHOWN]
            raise FaultError(
                f"the model's endpoint answered {response.status}: {shown}",
                retryable=response.status in _RETRYABLE,
                wait_s=retry_after_s(response.retry_after),
                free=True,
            )
        return self._api.completion(data, self._redacted)

    def _url(self) -> yarl.URL:
        try:
            url = yarl.URL(self._api.url())
        except ValueError:
            url = yarl.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise FaultError("the model's `base_url` is not a URL", retryable=False)
        return url

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
