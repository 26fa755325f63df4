"""The little that a judge needs of a chat model."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import msgspec

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
