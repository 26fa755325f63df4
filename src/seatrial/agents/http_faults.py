"""What an HTTP status or a broken connection means for a run (dispatch.md 14)."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from seatrial.agents.excerpt import MAX_DETAIL, excerpt
from seatrial.retry_after import retry_after_s
from seatrial.runs import Fault
from seatrial.world.grant import RunGrant

_BY_STATUS = {
    401: "auth_failed",
    403: "auth_failed",
    408: "agent_timeout",
    504: "agent_timeout",
}
_BY_HUNDRED = {3: "agent_redirected", 4: "agent_4xx", 5: "agent_5xx"}


def status_fault(status: int, headers: Mapping[str, str], body: bytes) -> Fault | None:
    """The fault that an answer of this status is; None for 2xx."""
    if 200 <= status < 300:
        return None
    error_class = _BY_STATUS.get(status) or _BY_HUNDRED.get(status // 100, "transport_error")
    message = f"the agent answered {status}"
    if error_class == "agent_redirected":
        message += ", and redirects are not followed: name the final address"
    return Fault(
        error_class,
        message,
        detail=excerpt(body),
        http_status=status,
        retry_after_s=retry_after_s(headers.get("Retry-After")),
    )


def transport_fault(
    error: aiohttp.ClientError | OSError, connect_s: float, read_s: float | None, grant: RunGrant | None = None
) -> Fault:
    """The fault that a failed exchange is. Its text has neither the address nor headers in it: they may be secret."""

    def told(text: str) -> str:
        # Before it is cut: a part of a token must not stay either.
        return (text if grant is None else grant.redact_text(text))[:MAX_DETAIL]

    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Fault("agent_unreachable", f"there was no connection to the agent within {connect_s:g} s")
    if isinstance(error, aiohttp.ServerTimeoutError):
        return Fault(
            "agent_timeout", "the agent sent nothing" if read_s is None else f"the agent sent nothing for {read_s:g} s"
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Fault(
            "agent_unreachable", "the agent's host name cannot be resolved", detail=told(_reason(error.os_error))
        )
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ServerFingerprintMismatch):
        return Fault("agent_unreachable", "TLS with the agent failed", detail=told(_reason(error)))
    if isinstance(error, aiohttp.ClientConnectorError):
        return Fault("agent_unreachable", "no connection to the agent", detail=told(_reason(error.os_error)))
    if isinstance(error, aiohttp.InvalidURL):
        return Fault("agent_unreachable", "the agent's address is not one that can be reached")
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return Fault("transport_error", "the agent closed the connection before it answered")
    if isinstance(error, aiohttp.ClientPayloadError):
        return Fault("transport_error", "the agent's answer broke off", detail=told(_reason(error)))
    if isinstance(error, aiohttp.ClientResponseError):
        return Fault("transport_error", "the agent's answer is not HTTP", detail=told(error.message))
    return Fault("transport_error", "the connection to the agent failed", detail=told(_reason(error)))


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
