"""A browser's EventSource, as the WHATWG has it: it comes back after every end, and stops only at 204 or an error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from seatrial.events import SseParser

MOST_CONNECTIONS = 20
"""A browser has no such limit; a test has to end."""


class EventSource:
    """What a browser keeps between connections, and what it was given."""

    def __init__(self, client: aiohttp.ClientSession, url: str, *, cut_first_after: int | None = None) -> None:
        """With `cut_first_after`, the first connection breaks after so many bytes."""
        self.messages: list[Any] = []
        self.statuses: list[int] = []
        """Of every answer."""
        self._client = client
        self._url = url
        self._cut = cut_first_after
        self._last_event_id = ""
        self._retry_ms = 10

    async def follow(self) -> None:
        """Until the server says that there is nothing more."""
        for _ in range(MOST_CONNECTIONS):
            if not await self._connect():
                return
            await asyncio.sleep(min(self._retry_ms, 50) / 1000)  # a browser waits for as long as it was asked to

    async def _connect(self) -> bool:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._last_event_id:
            headers["Last-Event-ID"] = self._last_event_id
        async with self._client.get(self._url, headers=headers) as response:
            self.statuses.append(response.status)
            if response.status != 200 or response.content_type != "text/event-stream":
                return False
            parser, received = SseParser(), 0
            async for chunk in response.content.iter_any():
                cut, self._cut = self._cut, None
                for frame in parser.feed(chunk if cut is None else chunk[:cut]):
                    if frame.id is not None:
                        self._last_event_id = frame.id
                    self.messages.append(json.loads(frame.data))
                received += len(chunk)
                if cut is not None:
                    break
            self._retry_ms = parser.retry or self._retry_ms
        return True
