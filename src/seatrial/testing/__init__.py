"""For tests in plain Python: what the fixtures of the pytest plugin give, and what to compare its calls with.

`assert result.calls == in_order("find_order", {"tool": "refund", "args": {"order": "o-1"}})`
"""

from seatrial.testing.asked import SuiteCase, suite_cases
from seatrial.testing.expected import Expected, exact, in_order, subset, superset, unordered
from seatrial.testing.run_result import AgentFailedError, RunResult
from seatrial.testing.snapshot import Snapshot, snapshot
from seatrial.testing.trial_results import TrialResults
from seatrial.trajectory.calls import Calls, NoVerdictError

__all__ = [
    "AgentFailedError",
    "Calls",
    "Expected",
    "NoVerdictError",
    "RunResult",
    "Snapshot",
    "SuiteCase",
    "TrialResults",
    "exact",
    "in_order",
    "snapshot",
    "subset",
    "suite_cases",
    "superset",
    "unordered",
]
