"""What an HTTP status or a failed exchange means for a run."""

from __future__ import annotations

from seatrial.agents.excerpt import MAX_DETAIL, excerpt
from seatrial.http_client import FailureKind, TransportError
from seatrial.retry_after import retry_after_s
from seatrial.runs import Fault, class_of_status
from seatrial.world.grant import RunGrant

_ERROR_CLASSES: dict[FailureKind, str] = {
    "forbidden": "endpoint_refused",
    "unreachable": "agent_unreachable",
    "lost": "connection_lost",
    "cut_off": "answer_cut_off",
    "silent": "agent_timeout",
    "malformed": "agent_bad_response",
}


def status_fault(status: int, retry_after: str | None, body: bytes) -> Fault | None:
    """The fault that an answer of this status, with this `Retry-After`, is; None for 2xx."""
    error_class = class_of_status(status)
    if error_class is None:
        return None
    message = f"the agent answered {status}"
    if error_class == "agent_redirected":
        message += ", and redirects are not followed: name the final address"
    return Fault(
        error_class,
        message,
        detail=excerpt(body),
        http_status=status,
        retry_after_s=retry_after_s(retry_after),
    )


def transport_fault(error: TransportError, grant: RunGrant | None = None) -> Fault:
    """The fault of a failed exchange as it may be shown: without the token of a grant, and not too long."""
    detail = error.detail
    if detail is not None:
        # Before it is cut: a part of a token must not stay either.
        detail = (detail if grant is None else grant.redact_text(detail))[:MAX_DETAIL]
    message = error.message
    if error.kind == "forbidden":
        message += ", as `endpoint_rule: public` asks"
    return Fault(_ERROR_CLASSES[error.kind], message, detail=detail)
