"""A server on loopback that speaks Anthropic's Messages API, and refuses what that would refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

KEYS = {"model", "max_tokens", "messages", "system", "temperature", "output_config"}


def message(*text: str, **more: Any) -> dict[str, Any]:
    """An answer, with a block for each text."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-judge-20260101",
        "content": [{"type": "text", "text": each} for each in text],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 100},
        **more,
    }


def refused(status: int, kind: str, told: str, **headers: str) -> web.Response:
    """An error as the API sends it."""
    error = {"type": "error", "error": {"type": kind, "message": told}, "request_id": "req_01"}
    return web.json_response(error, status=status, headers=headers)


class MessagesApi:
    """Answers each request that is right with the next of its answers, or with what a function makes of it."""

    def __init__(
        self, *answers: web.Response | dict[str, Any] | Handler, by: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self.answers = list(answers)
        self.by = by
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if (wrong := _wrong(request, body)) is not None:
            return wrong
        answer = self.answers.pop(0) if self.by is None else self.by(body)
        if isinstance(answer, dict):
            return web.json_response(answer)
        return answer if isinstance(answer, web.Response) else await answer(request)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        """Its base URL, for as long as it listens."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/messages", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def _wrong(request: web.Request, body: dict[str, Any]) -> web.Response | None:
    def invalid(told: str) -> web.Response:
        return refused(400, "invalid_request_error", told)

    if "x-api-key" not in request.headers:
        return refused(401, "authentication_error", "x-api-key header is required")
    if request.headers.get("anthropic-version") != "2023-06-01":
        return invalid("anthropic-version: header is required")
    if unknown := set(body) - KEYS:
        return invalid(f"{min(unknown)}: Extra inputs are not permitted")
    if missing := {"model", "max_tokens", "messages"} - set(body):
        return invalid(f"{min(missing)}: Field required")
    for each in body["messages"]:
        if each["role"] not in ("user", "assistant"):
            return invalid(f"messages: Unexpected role {each['role']!r}")
        if not each["content"].strip():
            return invalid("messages: text content blocks must contain non-whitespace text")
    if body["messages"][-1]["role"] != "user":
        return invalid("This model does not support assistant message prefill.")
    asked = body.get("output_config", {}).get("format")
    if asked is not None and (
        asked["type"] != "json_schema" or asked["schema"].get("additionalProperties") is not False
    ):
        return invalid("output_config.format.schema: 'additionalProperties' must be explicitly set to false")
    return None
