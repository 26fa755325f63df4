"""Errors as responses: `application/problem+json` (RFC 9457), with our code in it."""

from __future__ import annotations

import http
import math
import traceback
from collections.abc import Mapping

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException
from litestar.response.base import ASGIResponse
from litestar.types import HTTPScope

from seatrial._support import wire
from seatrial.api import Problem
from seatrial.errors import SeatrialError
from seatrial.explorer.page import HEADERS as PAGE_HEADERS
from seatrial.explorer.page import HTML, error_page
from seatrial.server.logs import log_fault

MEDIA_TYPE = "application/problem+json"
API = "/v1/"
"""What is under it is for programs, whatever they accept."""

STATUSES: dict[str, int] = {
    "ambiguous": 400,
    "invalid_request": 400,
    "invalid_filter": 400,
    "invalid_cursor": 400,
    "invalid_document": 400,
    "empty_input": 400,
    "not_json": 400,
    "not_utf8": 400,
    "too_deep": 400,
    "unstorable": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "cursor_ahead": 409,
    "idempotency_conflict": 409,
    "resume_refused": 409,
    "run_ended": 409,
    "sequence_conflict": 409,
    "thread_busy": 409,
    "cursor_expired": 410,
    "too_large": 413,
    "event_refused": 422,
    "rate_limited": 429,
    "internal_error": 500,
    "agent_busy": 503,
    "shutting_down": 503,
    "store_full": 503,
    "store_unavailable": 503,
}
"""The status of a response by the code of its error. Any other code is a fault of the server."""

CODE = "seatrial_code"
"""Key of the scope's state: the code of the error that the request was answered with."""

_RETRY_S = 2
"""When to try again after a 503."""


class RefusedError(SeatrialError):
    """An error whose status says more than its code does, or that needs a header of its own."""

    def __init__(
        self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.status = status
        self.headers = {} if headers is None else dict(headers)


def problem_response(error: SeatrialError, scope: HTTPScope) -> ASGIResponse:
    """An error as a response, for what is not an operation."""
    status, headers = _start(error)
    if wants_page(scope):
        page = error_page(error, status).encode()
        return ASGIResponse(body=page, status_code=status, media_type=HTML, headers={**PAGE_HEADERS, **headers})
    return ASGIResponse(body=problem_body(error, status), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def wants_page(scope: HTTPScope) -> bool:
    """Whether a browser asked for a page, and is to be answered with one."""
    if scope["path"].startswith(API):
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def problem_body(error: SeatrialError, status: int) -> bytes:
    """The document of an error."""
    problem = Problem(
        title=http.HTTPStatus(status).phrase,
        status=status,
        code=error.code,
        detail=error.message,
        hint=error.hint,
        pointer=error.pointer,
    )
    members = msgspec.to_builtins(problem)
    # What a program needs stands beside the members of the standard, and never replaces one.
    return wire.encode({**error.details, **members})


def on_error(request: Request[object, object, State], raised: Exception) -> Response[bytes]:
    """What Litestar answers with when a handler, or Litestar itself, raises."""
    error = _error_of(raised)
    status, headers = _start(error)
    request.scope["state"][CODE] = error.code
    if status >= 500 and error is not raised:
        frames = traceback.extract_tb(raised.__traceback__)
        log_fault(str(request.scope.get("path_template", "")), type(raised).__name__, frames)
    if wants_page(request.scope):
        page = error_page(error, status).encode()
        return Response(page, status_code=status, media_type=HTML, headers={**PAGE_HEADERS, **headers})
    return Response(problem_body(error, status), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def _start(error: SeatrialError) -> tuple[int, dict[str, str]]:
    status = error.status if isinstance(error, RefusedError) else STATUSES.get(error.code, 500)
    headers = dict(error.headers) if isinstance(error, RefusedError) else {}
    if status == 401:
        headers.setdefault("www-authenticate", 'Bearer realm="seatrial"')
    if status == 503:
        headers.setdefault("retry-after", str(_RETRY_S))
    return status, headers


def rate_limited(wait_s: float) -> RefusedError:
    """The error for too many requests, and when the next one may come."""
    return RefusedError(
        429,
        "rate_limited",
        "too many requests",
        headers={"retry-after": str(max(math.ceil(wait_s), 1))},
        hint="wait as long as Retry-After says",
    )


def _error_of(raised: Exception) -> SeatrialError:
    if isinstance(raised, SeatrialError):
        return raised
    if isinstance(raised, ValidationException):
        return SeatrialError("invalid_request", _findings(raised) or raised.detail)
    if isinstance(raised, HTTPException):
        return _of_litestar(raised)
    return SeatrialError("internal_error", "the server failed; its log has more")


def _of_litestar(raised: HTTPException) -> SeatrialError:
    match raised.status_code:
        case 404:
            hint = "GET /schema/openapi.json lists what there is"
            return RefusedError(404, "not_found", "there is nothing at that address", hint=hint)
        case 405:
            allowed = (raised.headers or {}).get("allow", "")
            headers = {"allow": allowed}
            return RefusedError(405, "invalid_request", f"that address takes {allowed} only", headers=headers)
        case status if status < 500:
            return RefusedError(status, "invalid_request", raised.detail)
    return SeatrialError("internal_error", "the server failed; its log has more")


def _findings(raised: ValidationException) -> str:
    found = raised.extra if isinstance(raised.extra, list) else []
    return "; ".join(
        f"{item.get('key', 'the request')}: {item.get('message', '')}" for item in found if isinstance(item, dict)
    )
