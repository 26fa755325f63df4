"""A model behind OpenAI's API as an agent, in Python."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import seatrial
from seatrial.suites import HttpConfig, ModelTool, RequestTemplate, ResponsePaths


def test_a_model_is_a_value_in_python() -> None:
    tool = {"name": "refund", "parameters": {"type": "object"}}
    agent = seatrial.openai("m", base_url="http://x/v1", tools=[tool], tool_access="none", timeout_s=5)
    assert agent == HttpConfig(
        endpoint_url="http://x/v1",
        protocol="openai-chat",
        model="m",
        api_key="${OPENAI_API_KEY}",
        tools=[ModelTool(name="refund", parameters={"type": "object"})],
        tool_access="none",
        timeout_s=5,
    )
    assert seatrial.openai("m", api_key=None).address == "https://api.openai.com/v1/chat/completions"


def test_what_a_suite_file_has_as_mappings_can_be_mappings() -> None:
    keys: dict[str, Any] = {
        "request": {"body": {"q": "{{instruction}}"}},
        "response": {"answer": "/reply"},
        "tools": [{"name": "refund"}],
    }
    agent = HttpConfig(endpoint_url="http://x/", **keys)
    assert agent.request == RequestTemplate(body={"q": "{{instruction}}"})
    assert agent.response == ResponsePaths(answer="/reply")
    assert agent.tools == [ModelTool(name="refund")]
    with pytest.raises(msgspec.ValidationError, match="unknown field `anwser`"):
        HttpConfig(endpoint_url="http://x/", **{**keys, "response": {"anwser": "/reply"}})
