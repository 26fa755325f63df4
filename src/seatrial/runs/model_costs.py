"""What graders used up by asking models, as far as that is known: what is not known is not nothing."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

import msgspec

from seatrial.runs.verdict import Verdict


class ModelCosts(msgspec.Struct):
    """Money and tokens, added up from answers or from verdicts."""

    asked: bool = False
    """Whether a model was asked; where none was, nothing is unknown."""
    known_usd: float = 0.0
    known_tokens: int = 0
    usd_is_all: bool = True
    """Whether `known_usd` is all of it; otherwise it is a lower bound."""
    tokens_are_all: bool = True

    def add(self, usd: float | None, tokens: int | None) -> None:
        """Count an answer, or several; None is unknown, and so is a number that cannot be."""
        self.asked = True
        if usd is not None and isfinite(usd) and usd >= 0:
            self.known_usd += usd
        else:
            self.usd_is_all = False
        if tokens is not None and tokens >= 0:
            self.known_tokens += tokens
        else:
            self.tokens_are_all = False

    def add_all(self, other: ModelCosts) -> None:
        """Count what was added up elsewhere."""
        self.asked = self.asked or other.asked
        self.known_usd += other.known_usd
        self.known_tokens += other.known_tokens
        self.usd_is_all = self.usd_is_all and other.usd_is_all
        self.tokens_are_all = self.tokens_are_all and other.tokens_are_all

    @property
    def cost_usd(self) -> float | None:
        """The whole sum; None when no model was asked, or a part of it is unknown."""
        return self.known_usd if self.asked and self.usd_is_all else None

    @property
    def least_cost_usd(self) -> float | None:
        """What is known of a sum that is not known as a whole."""
        return self.known_usd if self.asked and not self.usd_is_all else None

    @property
    def tokens(self) -> int | None:
        """The same of tokens, like the next."""
        return self.known_tokens if self.asked and self.tokens_are_all else None

    @property
    def least_tokens(self) -> int | None:
        return self.known_tokens if self.asked and not self.tokens_are_all else None


def model_costs(verdicts: Iterable[Verdict]) -> ModelCosts:
    """What verdicts cost together. One that was known already cost nothing again."""
    costs = ModelCosts()
    for verdict in verdicts:
        figures = (verdict.cost_usd, verdict.least_cost_usd, verdict.tokens, verdict.least_tokens)
        if any(figure is not None for figure in figures):
            costs.add_all(_of(verdict))
    return costs


def _of(verdict: Verdict) -> ModelCosts:
    usd, least_usd, tokens, least_tokens = (
        verdict.cost_usd,
        verdict.least_cost_usd,
        verdict.tokens,
        verdict.least_tokens,
    )
    return ModelCosts(
        asked=True,
        known_usd=(least_usd or 0.0) if usd is None else usd,
        known_tokens=(least_tokens or 0) if tokens is None else tokens,
        usd_is_all=usd is not None,
        tokens_are_all=tokens is not None,
    )
