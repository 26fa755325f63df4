"""The scripted model."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.errors import SeatrialError
from seatrial.graders import ChatMessage, ChatModel, Completion
from seatrial.models import ScriptedModel


def ask(model: ChatModel, text: str = "?") -> Completion:
    return asyncio.run(model.complete([{"role": "user", "content": text}]))


def test_lines_are_said_one_after_another_and_questions_are_kept() -> None:
    model = ScriptedModel(["one", {"two": 2}, Completion(text="three", model="m", cost_usd=1)])
    assert [ask(model).text for _ in range(3)] == ["one", '{"two":2}', "three"]
    assert len(model.asked) == 3
    with pytest.raises(SeatrialError, match="at its end"):
        ask(model)


def test_a_line_may_be_an_error() -> None:
    with pytest.raises(SeatrialError, match="down"):
        ask(ScriptedModel([SeatrialError("model_failed", "down")]))


def test_a_function_may_answer() -> None:
    def echo(messages: list[ChatMessage]) -> str:
        return messages[-1]["content"].upper()

    assert ask(ScriptedModel(echo), "hello").text == "HELLO"
