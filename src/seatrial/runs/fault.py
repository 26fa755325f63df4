"""Why a run has no answer: the classes of fault, whose they are, and whether trying again may help.

One table for every kind of agent (verdicts.md 3). What the agent did makes the run `failed`. What nobody can blame on
the agent makes it `errored`: it is tried again where that may help, and counts in no rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Blame = Literal["agent", "infrastructure"]


class FaultClass(msgspec.Struct, frozen=True, kw_only=True):
    """What one class of fault means."""

    meaning: str
    blame: Blame
    """`agent`: the run failed. `infrastructure`: it errored, and is in no rate."""
    transient: bool
    """Whether the same request may succeed later."""
    movable: bool = True
    """Whether a suite's `faults` may move it to another class; not where the fault is Seatrial's own."""
    retired: bool = False
    """Whether only runs of older versions have it."""


def _agent(meaning: str, *, transient: bool) -> FaultClass:
    return FaultClass(meaning=meaning, blame="agent", transient=transient)


def _outside(meaning: str, *, transient: bool) -> FaultClass:
    return FaultClass(meaning=meaning, blame="infrastructure", transient=transient)


def _ours(meaning: str, *, transient: bool = False) -> FaultClass:
    return FaultClass(meaning=meaning, blame="infrastructure", transient=transient, movable=False)


def _retired(meaning: str) -> FaultClass:
    return FaultClass(meaning=meaning, blame="infrastructure", transient=True, movable=False, retired=True)


FAULT_CLASSES: dict[str, FaultClass] = {
    # The agent's doing
    "agent_exception": _agent("The agent function raised.", transient=True),
    "agent_exit": _agent(
        "The agent's program ended with a code other than 0, or its function ended the process of the worker that ran "
        "it.",
        transient=True,
    ),
    "agent_signal": _agent(
        "The agent's program died of a signal. SIGKILL by the system's out-of-memory killer looks like any other.",
        transient=True,
    ),
    "agent_5xx": _agent("The agent answered 500 to 599, but not 502, 503, 504 or 529.", transient=True),
    "agent_4xx": _agent("The agent answered 400 to 499, but not 401, 403, 408, 425 or 429.", transient=False),
    "agent_bad_response": _agent(
        "The agent sent something that cannot be read: not HTTP, not JSON, no usable final response, "
        "not a stream of events.",
        transient=True,
    ),
    "agent_output_missing": _agent(
        "The agent ended well, but left no answer: no output, no line of a batch, or neither visible text nor a call.",
        transient=True,
    ),
    "response_contract_violation": _agent(
        "The answer breaks the agent's response contract (`contract_error` elsewhere).", transient=False
    ),
    "response_too_large": _agent("The answer is larger than the limit.", transient=False),
    "answer_cut_off": _agent("The connection broke, or was closed, in the middle of the answer.", transient=True),
    "stream_truncated": _agent("The stream ended without a terminal event.", transient=True),
    "agent_reported_error": _agent(
        "The agent said that its run failed: its stream ended with RUN_ERROR or a failed outcome, its record has a "
        "`status` that says so, with an `error`, its A2A task failed, or there is something at the `error` path of its "
        "answer.",
        transient=True,
    ),
    "agent_timeout": _agent(
        "The agent did not answer, or sent nothing more, within its timeout (`timeout_s`, `timeouts.read_s`).",
        transient=True,
    ),
    "deadline_exceeded": _agent(
        "The agent had not answered when the deadline of the run passed (`run_timeout_s`, `timeouts.run_s`, the case's "
        "`timeout_s`).",
        transient=False,
    ),
    "push_timeout": _agent("An agent that pushes its events itself went silent.", transient=False),
    # Nobody's doing that could be judged
    "agent_unreachable": _outside(
        "There was no connection: DNS, a refused connection, a connect timeout, or TLS.", transient=True
    ),
    "connection_lost": _outside("The connection was reset or closed before an answer began.", transient=True),
    "auth_failed": _outside("The agent answered 401 or 403: it does not accept our credentials.", transient=False),
    "rate_limited": _outside("The agent answered 429.", transient=True),
    "agent_unavailable": _outside("The agent answered 408, 425, 502, 503, 504 or 529.", transient=True),
    "agent_redirected": _outside(
        "The agent answered 3xx: the suite names another address than the agent's, and redirects are not followed.",
        transient=False,
    ),
    "infrastructure_error": _outside(
        "The agent function raised `seatrial.InfrastructureError`, or an exception that its `infrastructure_errors` "
        "name.",
        transient=True,
    ),
    "agent_not_started": _outside(
        "The agent's program could not be started: it does not exist, or is not executable.", transient=False
    ),
    "deadline_in_retry": _outside(
        "The deadline of the run passed after its first attempt: faults that were not the agent's, and the waits after "
        "them, had used up a part of it.",
        transient=False,
    ),
    # Ours
    "endpoint_refused": _ours("The agent's address is one that its `endpoint_rule` forbids."),
    "record_missing": _ours("There is no record of the case to replay."),
    "record_unreadable": _ours(
        "There is a record to replay, but Seatrial cannot read it; or several files that may be a program's `record`."
    ),
    "format_failed": _ours("A format of an installed package failed on the answer, so that it could not be read."),
    "out_of_resources": _ours("This machine had no memory, disk, processes or open files left.", transient=True),
    "workspace_failed": _ours(
        "The workspace of the case could not be made: it could not be copied, or its `setup` failed."
    ),
    "handler_fault": _ours(
        "A tool of the world is broken: what answers it raised, took too long, or broke the schema of its answers or "
        "of the state."
    ),
    "proxy_misconfigured": _ours("The tool proxy's address is missing or malformed."),
    "recording_failed": _ours("The run could not be recorded (disk full, store gone)."),
    "record_damaged": _ours("The stored data of the run cannot be read; the rest of the store can."),
    "interrupted": _ours(
        "The process that ran it ended before the run did. Only earlier attempts have it, of runs that were run again.",
        transient=True,
    ),
    "server_restarted": _ours("The server that ran it is gone."),
    "server_stopped": _ours("The server was stopped before the run had ended."),
    "internal_error": _ours("A fault of Seatrial itself."),
    # Of stores that older versions wrote
    "agent_batch_died": _retired("The process of a batch ended with a code other than 0. Now `agent_exit`."),
    "transport_error": _retired(
        "The connection broke, or another transport fault. Now `connection_lost`, `answer_cut_off` or "
        "`agent_bad_response`."
    ),
}
"""Every error class a run can have."""

MOVABLE = tuple(name for name, kind in FAULT_CLASSES.items() if kind.movable)
"""The classes that a suite's `faults` may name."""

_BY_STATUS = {
    401: "auth_failed",
    403: "auth_failed",
    429: "rate_limited",
    **dict.fromkeys((408, 425, 502, 503, 504, 529), "agent_unavailable"),
}
NOT_HANDLED = frozenset({401, 403, 408, 425, 429, 503, 529})
"""Statuses by which a server says that it did not handle a request. Of 502 and 504 the agent may know nothing: they
are a gateway's, and the agent behind it may have been at work."""
_NOT_BEGUN = frozenset(
    {"agent_unreachable", "agent_not_started", "endpoint_refused", "proxy_misconfigured", "workspace_failed"}
)
"""Faults that come before the agent."""
_BY_HUNDRED = {3: "agent_redirected", 4: "agent_4xx", 5: "agent_5xx"}


def class_of_status(status: int) -> str | None:
    """The class of an answer with this HTTP status; None for 2xx."""
    if 200 <= status < 300:
        return None
    # A status that does not exist is as unreadable as anything else that is not HTTP.
    return _BY_STATUS.get(status) or _BY_HUNDRED.get(status // 100, "agent_bad_response")


class Fault(msgspec.Struct, omit_defaults=True):
    """One fault, as it happened."""

    error_class: str
    message: str
    detail: str | None = None
    """More of it: the first 500 characters of a body, the last lines of stderr, a traceback."""
    http_status: int | None = None
    retry_after_s: float | None = None
    """How long the agent asked us to wait."""
    moved_to: Blame | None = None
    """Whose fault the suite says it is, where it says so."""

    def __post_init__(self) -> None:
        if self.error_class not in FAULT_CLASSES:
            raise ValueError(f"undeclared error class {self.error_class!r}: add it to FAULT_CLASSES")

    @property
    def blame(self) -> Blame:
        """Whose fault it is."""
        return self.moved_to or FAULT_CLASSES[self.error_class].blame

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        return FAULT_CLASSES[self.error_class].transient

    @property
    def before_agent(self) -> bool:
        """Whether the agent had done nothing: no request reached it, or it says that it did not handle it."""
        if self.http_status is not None:
            return self.http_status in NOT_HANDLED
        return self.error_class in _NOT_BEGUN

    @property
    def retryable(self) -> bool:
        """Whether the run is tried again. Never after what the agent did: a second try would hide the first."""
        return self.blame == "infrastructure" and self.transient


class FaultRules(msgspec.Struct, frozen=True):
    """What a suite says of faults, beside the table."""

    moved: Mapping[str, Blame] = {}
    """Whose fault a class is, by the class."""

    def apply(self, fault: Fault | None) -> None:
        """Blame a fault on whom the suite says."""
        if fault is not None and (blame := self.moved.get(fault.error_class)) is not None:
            fault.moved_to = blame if blame != FAULT_CLASSES[fault.error_class].blame else None
