"""Agents as values: a model behind the API that most servers speak, and one for tests of suites and graders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from seatrial.agents.http.config import HttpConfig, ModelTool


def openai(
    model: str,
    *,
    base_url: str = "https://api.openai.com/v1",
    api_key: str | None = "${OPENAI_API_KEY}",
    tools: Iterable[ModelTool | Mapping[str, Any]] = (),
    **keys: Any,
) -> HttpConfig:
    """A model behind OpenAI's chat completions API, or a server that speaks it, as an agent.

    `api_key` names a variable; None for a server that asks for none. `tools` are what the model is offered, each with
    `name`, `description` and `parameters`. `keys` are further keys of an agent of kind `http`.
    """
    offered: Any = [*tools]
    protocol = keys.pop("protocol", "openai-chat")
    return HttpConfig(endpoint_url=base_url, protocol=protocol, model=model, api_key=api_key, tools=offered, **keys)


def scripted_agent(*answers: Any) -> Callable[[str], Any]:
    """An agent that gives these answers one after another, and raises when it is asked once more."""
    left = list(answers)

    def scripted(instruction: str) -> Any:
        if not left:
            raise LookupError(f"the script is at its end: there is no answer to {instruction!r}")
        return left.pop(0)

    return scripted
