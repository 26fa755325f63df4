"""The little that a judge needs of a chat model, and a model that counts what its answers cost."""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol, TypeAlias

import msgspec

from seatrial.runs import ModelCosts

ChatMessage: TypeAlias = dict[str, str]
"""`role` and `content`."""


class Completion(msgspec.Struct, kw_only=True):
    """What a chat model answered, and what it cost."""

    text: str
    model: str
    """As the endpoint calls it."""
    input_tokens: int | None = None
    """None when the endpoint does not say."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    """None when the price, or how much is to be paid for, is not known."""


class ChatModel(Protocol):
    """A chat model that can be asked. `seatrial.models` has one behind HTTP and one that reads out a script."""

    @property
    def name(self) -> str:
        """Which model it is; verdicts of another one are not reused."""
        ...

    async def complete(self, messages: list[ChatMessage], *, schema: dict[str, Any] | None = None) -> Completion:
        """One answer, as JSON text when a schema is given; raises `SeatrialError("model_failed")` if there is none."""
        ...


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
