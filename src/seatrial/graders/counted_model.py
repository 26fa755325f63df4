"""A chat model that keeps count of what its answers cost, whoever asks it and however the asking ends."""

from __future__ import annotations

from copy import copy
from typing import Any

from seatrial.graders.chat_model import ChatMessage, ChatModel, Completion
from seatrial.runs import ModelCosts


class CountedModel:
    """Asks another model, and adds up what that costs."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._costs = ModelCosts()
        self._awaited = 0

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def costs(self) -> ModelCosts:
        """What it cost so far; an answer that is still awaited may cost anything."""
        costs = copy(self._costs)
        if self._awaited:
            costs.add(None, None)
        return costs

    async def complete(self, messages: list[ChatMessage], *, schema: dict[str, Any] | None = None) -> Completion:
        """One answer of the model."""
        self._awaited += 1
        try:
            answer = await self._model.complete(messages, schema=schema)
        except BaseException:
            self._costs.add(None, None)  # what it did until it failed, or was given up, nobody says
            raise
        finally:
            self._awaited -= 1
        read, written = answer.input_tokens, answer.output_tokens
        self._costs.add(answer.cost_usd, None if read is None or written is None else read + written)
        return answer
