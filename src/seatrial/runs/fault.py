"""Why a run has no answer: the classes of fault, whose they are, and whether trying again may help."""

from __future__ import annotations

from typing import Literal

import msgspec

Blame = Literal["agent", "infrastructure"]


class FaultClass(msgspec.Struct, frozen=True):
    """What one class of fault means."""

    meaning: str
    blame: Blame
    """`agent`: the run failed, and that is a result. `infrastructure`: it errored, and says nothing of the agent."""
    retryable: bool
    """Whether the same request may be sent again by itself, whatever the status that came with it."""


FAULT_CLASSES: dict[str, FaultClass] = {
    "auth_failed": FaultClass("The agent answered 401 or 403.", "infrastructure", False),
    "agent_timeout": FaultClass("The agent answered 408 or 504, or nothing in time.", "infrastructure", True),
    "deadline_exceeded": FaultClass("The run used up its whole deadline.", "infrastructure", False),
    "agent_5xx": FaultClass(
        "The agent answered 500 to 599, but not 504; 502 and 503 are tried again.", "infrastructure", False
    ),
    "agent_4xx": FaultClass("The agent answered another 4xx; 429 is tried again.", "infrastructure", False),
    "agent_redirected": FaultClass("The agent answered 3xx; redirects are not followed.", "infrastructure", False),
    "agent_bad_response": FaultClass("The answer is not JSON, or has no usable final response.", "agent", False),
    "response_contract_violation": FaultClass(
        "The answer breaks the agent's response contract (`contract_error` elsewhere).", "agent", False
    ),
    "agent_exception": FaultClass("The agent function raised.", "agent", False),
    "agent_reported_error": FaultClass("The agent's own stream ended with RUN_ERROR.", "agent", False),
    "agent_exit": FaultClass("The agent's process ended with a code other than 0.", "infrastructure", False),
    "agent_batch_died": FaultClass(
        "The process of a batch ended with a code other than 0, and had not answered this case.", "infrastructure", True
    ),
    "agent_output_missing": FaultClass("The agent's process wrote no usable output.", "infrastructure", False),
    "agent_unreachable": FaultClass("DNS, connect error or connect timeout.", "infrastructure", True),
    "endpoint_refused": FaultClass(
        "The agent's address is one that its `endpoint_rule` forbids.", "infrastructure", False
    ),
    "stream_truncated": FaultClass("The stream ended without a terminal event.", "infrastructure", True),
    "transport_error": FaultClass("The connection broke, or another transport fault.", "infrastructure", True),
    "response_too_large": FaultClass("The answer is larger than the limit.", "agent", False),
    "proxy_misconfigured": FaultClass("The tool proxy's address is missing or malformed.", "infrastructure", False),
    "recording_failed": FaultClass("The run could not be recorded (disk full, store gone).", "infrastructure", False),
    "server_restarted": FaultClass("The server that carried out the run is gone.", "infrastructure", False),
    "server_stopped": FaultClass("The server was stopped before the run had ended.", "infrastructure", False),
    "push_timeout": FaultClass("An agent that pushes its events itself went silent.", "infrastructure", False),
    "internal_error": FaultClass("A fault of Seatrial itself.", "infrastructure", False),
}
"""Every error class a run can have."""

RETRYABLE_STATUSES = frozenset({408, 429, 502, 503, 504})
"""Statuses that may pass, also where others of their class do not."""


class Fault(msgspec.Struct, omit_defaults=True):
    """One fault, as it happened."""

    error_class: str
    message: str
    detail: str | None = None
    """More of it: the first 500 characters of a body, the last lines of stderr, a traceback."""
    http_status: int | None = None
    retry_after_s: float | None = None
    """How long the agent asked us to wait."""

    def __post_init__(self) -> None:
        if self.error_class not in FAULT_CLASSES:
            raise ValueError(f"undeclared error class {self.error_class!r}: add it to FAULT_CLASSES")

    @property
    def blame(self) -> Blame:
        """Whose fault it is."""
        return FAULT_CLASSES[self.error_class].blame

    @property
    def retryable(self) -> bool:
        """Whether trying again may help."""
        return FAULT_CLASSES[self.error_class].retryable or self.http_status in RETRYABLE_STATUSES
