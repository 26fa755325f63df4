"""How long one attempt may take, and what it is called when it took longer."""

from __future__ import annotations

from typing import NamedTuple

from seatrial.agents.agent import RunRequest
from seatrial.runs import Fault


class RunTimeLimit(NamedTuple):
    """The nearer of the agent's own timeout and the run's deadline."""

    seconds: float | None
    is_deadline: bool

    def fault(self, *, connected: bool = True) -> Fault:
        """What the attempt ends with when the time is over; an agent that was never reached cannot be late."""
        if not connected:
            return Fault("agent_unreachable", f"there was no connection to the agent within {self.seconds:g} s")
        if self.is_deadline:
            return Fault("deadline_exceeded", f"the run's deadline came {self.seconds:g} s after the attempt began")
        return Fault("agent_timeout", f"the agent was not done after {self.seconds:g} s")


def time_limit(request: RunRequest, timeout_s: float | None = None) -> RunTimeLimit:
    """The limit of an attempt whose agent has this timeout of its own."""
    left_s = request.timeout_s
    if timeout_s is None or (left_s is not None and left_s <= timeout_s):
        return RunTimeLimit(left_s, True)
    return RunTimeLimit(timeout_s, False)
