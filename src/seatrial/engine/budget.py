"""What an experiment may use up: money, tokens, time. Past it nothing new starts, and what runs is finished."""

from __future__ import annotations

from seatrial.runs import Run
from seatrial.suites import Budget


class Spending:
    """What one execution of an experiment has used up so far. A resumed one has the whole budget again."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.cost_usd = 0.0
        self.tokens = 0
        self.limited = budget != Budget()
        """Whether there is anything that can be used up."""
        self._counts_tokens = budget.tokens is not None

    def add(self, run: Run) -> None:
        """Count a finished run."""
        if not self.limited:
            return
        if run.reading is not None:
            self.cost_usd += run.reading.transcript.cost_usd or 0.0
            if self._counts_tokens and (used := run.reading.transcript.tokens()) is not None:
                self.tokens += used.input + used.output
        for verdict in run.verdicts:
            self.cost_usd += verdict.cost_usd or 0.0
            self.tokens += verdict.tokens or 0

    def exceeded(self, elapsed_s: float) -> str | None:
        """Which limit has been reached, in words."""
        budget = self.budget
        if budget.cost_usd is not None and self.cost_usd >= budget.cost_usd:
            return f"cost budget reached: {self.cost_usd:.4f} of {budget.cost_usd:.4f} USD"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"token budget reached: {self.tokens} of {budget.tokens}"
        if budget.wall_time_s is not None and elapsed_s >= budget.wall_time_s:
            return f"time budget reached: {elapsed_s:.3g} of {budget.wall_time_s:.3g} s"
        return None
