"""What an HTTP status or a broken connection means for a run."""

from __future__ import annotations

from seatrial.agents.excerpt import excerpt
from seatrial.retry_after import retry_after_s
from seatrial.runs import Fault, class_of_status


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


class ExchangeError(Exception):
    """An exchange failed; the fault says how. Its detail may have anything in it that the agent sent."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def reason(error: BaseException | None) -> str | None:
    """An error as the detail of a fault."""
    return None if error is None else f"{type(error).__name__}: {error}"
