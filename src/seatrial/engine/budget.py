"""What an experiment may use up: money, tokens, time. Past it nothing new starts, and what runs is finished."""

from __future__ import annotations

from collections import Counter

import msgspec

from seatrial.runs import Run, model_costs
from seatrial.suites import Budget
from seatrial.transcript import Note, note_code

COST_UNKNOWN = note_code(
    "budget_cost_unknown",
    "A budget limits the cost, and runs did not say what they cost: it cannot count them.",
    "look",
)
TOKENS_UNKNOWN = note_code(
    "budget_tokens_unknown",
    "A budget limits tokens, and runs did not say how many they used: it cannot count them.",
    "look",
)


class Spent(msgspec.Struct, array_like=True):
    """What one run used up, as far as it says so; with its judges."""

    cost_usd: float
    tokens: int
    cost_known: bool
    """Whether that is all of it."""
    tokens_known: bool


def spent_by(run: Run, budget: Budget) -> Spent:
    """What a run used up of a budget; what that does not limit is not counted."""
    cost = None if run.reading is None else run.reading.transcript.cost_usd
    used = None if run.reading is None or budget.tokens is None else run.reading.transcript.tokens()
    tokens = None if used is None else used.input + used.output
    judges = model_costs(run.verdicts)
    return Spent(
        cost_usd=(cost or 0.0) + judges.known_usd,
        tokens=(tokens or 0) + judges.known_tokens,
        cost_known=cost is not None and judges.usd_is_all and not run.has_uncounted_attempts,
        tokens_known=used is not None and used.exact and judges.tokens_are_all and not run.has_uncounted_attempts,
    )


class Spending:
    """What one execution of an experiment has used up so far. A resumed one has the whole budget again."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.cost_usd = 0.0
        self.tokens = 0
        self.limited = budget != Budget()
        """Whether there is anything that can be used up."""
        self._runs: Counter[str] = Counter()
        self._unknown: dict[str, Counter[str]] = {COST_UNKNOWN: Counter(), TOKENS_UNKNOWN: Counter()}

    def add(self, agent: str, spent: Spent) -> list[Note]:
        """Count a finished run; what there is to say the first time that one of its agent cannot be counted."""
        if not self.limited:
            return []
        self._runs[agent] += 1
        self.cost_usd += spent.cost_usd
        self.tokens += spent.tokens
        news = []
        if self.budget.cost_usd is not None and not spent.cost_known:
            news += self._missed(COST_UNKNOWN, agent)
        if self.budget.tokens is not None and not spent.tokens_known:
            news += self._missed(TOKENS_UNKNOWN, agent)
        return news

    def _missed(self, code: str, agent: str) -> list[Note]:
        counted = self._unknown[code]
        counted[agent] += 1
        if counted[agent] > 1:
            return []
        return [
            Note(
                code, "", f"a run did not say {self._what(code, 'it')}: the budget cannot count it, nor others like it"
            )
        ]

    def _what(self, code: str, who: str) -> str:
        if code == COST_UNKNOWN:
            return f"what {who} cost, with the judges, and `budget.cost_usd` is {self.budget.cost_usd:g}"
        return f"how many tokens {who} used, and `budget.tokens` is {self.budget.tokens}"

    def notes(self) -> dict[str, list[Note]]:
        """By agent, how many of its runs could not be counted."""
        found: dict[str, list[Note]] = {}
        for code, counted in self._unknown.items():
            for agent, count in counted.items():
                runs = f"{count:,} of {self._runs[agent]:,} runs"
                message = f"{runs} did not say {self._what(code, 'they')}: more may have been used up than was counted"
                found.setdefault(agent, []).append(Note(code, "", message))
        return found

    def exceeded(self, elapsed_s: float) -> str | None:
        """Which limit has been reached, in words."""
        budget = self.budget
        if budget.cost_usd is not None and self.cost_usd >= budget.cost_usd:
            least = "at least " if self._unknown[COST_UNKNOWN] else ""
            return f"cost budget reached: {least}{self.cost_usd:.4f} of {budget.cost_usd:.4f} USD"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            least = "at least " if self._unknown[TOKENS_UNKNOWN] else ""
            return f"token budget reached: {least}{self.tokens} of {budget.tokens}"
        if budget.wall_time_s is not None and elapsed_s >= budget.wall_time_s:
            return f"time budget reached: {elapsed_s:.3g} of {budget.wall_time_s:.3g} s"
        return None
