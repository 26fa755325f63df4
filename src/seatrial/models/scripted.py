"""A chat model that reads out a script, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatMessage, Completion

Line: TypeAlias = str | dict[str, Any] | Completion | SeatrialError
"""What the model says next: text, an object as JSON, a whole completion, or the error that asking it raises."""


class ScriptedModel:
    """Says its lines one after another, or what a function makes of the messages. `asked` keeps what it was asked. It
    costs nothing, but for lines that are whole completions and say otherwise."""

    def __init__(self, lines: Iterable[Line] | Callable[[list[ChatMessage]], Line], *, name: str = "scripted") -> None:
        self.asked: list[list[ChatMessage]] = []
        self._name = name
        self._function = lines if callable(lines) else None
        self._lines = iter(()) if callable(lines) else iter(lines)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    async def complete(self, messages: list[ChatMessage], *, schema: dict[str, Any] | None = None) -> Completion:
        """The next line."""
        self.asked.append(list(messages))
        line = self._function(messages) if self._function is not None else next(self._lines, None)
        if line is None:
            raise SeatrialError("model_failed", "the script of the model is at its end")
        if isinstance(line, SeatrialError):
            raise line
        if isinstance(line, Completion):
            return line
        text = line if isinstance(line, str) else wire.encode(line).decode()
        return Completion(text=text, model=self._name, input_tokens=0, output_tokens=0, cost_usd=0.0)
