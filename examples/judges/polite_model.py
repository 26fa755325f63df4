"""A stand-in for a chat model, so that the example runs without a key: it takes thanks and apologies for politeness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from seatrial.models import ModelKind, ScriptedModel


class PoliteModel(ModelKind):
    """`judge: {kind: "judges.polite_model:PoliteModel"}`."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ScriptedModel]:
        yield ScriptedModel(_ballot, name="polite-model")


def _ballot(messages: list[dict[str, str]]) -> dict[str, Any]:
    polite = any(word in messages[1]["content"].lower() for word in ("thank", "sorry", "glad"))
    said = "It thanks or apologises." if polite else "It neither thanks nor apologises."
    return {
        "reasoning": said,
        "outcome_met": True,
        "criteria": {"c1": {"score": 1.0 if polite else 0.0, "reason": said}},
        "failure_mode": None if polite else "rude",
        "evidence": ["/answer"],
    }
