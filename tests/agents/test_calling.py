"""A function gets what its parameters are named after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.setting import a_case, a_request
from seatrial.agents.python.calling import PARAMETERS, Calling
from seatrial.errors import SeatrialError
from seatrial.events.run_input import ResumeEntry, RunAgentInput
from seatrial.world.grant import RunGrant

GRANT = RunGrant("run-1", "http://proxy", "token", "jti")


def called(function: Callable[..., Any]) -> Any:
    """What the function returns when it is called for a run."""
    request = a_request(
        a_case(input={"n": 1}, messages=[{"role": "user", "content": "hi"}], files=["a.txt", "/b"]), trial=2
    )
    positional, named = Calling(function, Path("/suite")).arguments(request, GRANT)
    return function(*positional, **named)


def test_every_parameter_has_its_value() -> None:
    def agent(
        instruction: Any,
        input: Any,
        messages: Any,
        case_id: Any,
        run_id: Any,
        trial: Any,
        attempt: Any,
        task_input: Any,
        thread_id: Any,
        resume: Any,
        run_input: Any,
        workspace: Any,
        files: Any,
        proxy_url: Any,
        run_token: Any,
        tools: Any,
    ) -> dict[str, Any]:
        return dict(locals())

    given = called(agent)
    assert list(given) == list(PARAMETERS)
    assert given == {
        "instruction": "Book a table for two.",
        "input": {"n": 1},
        "messages": [{"role": "user", "content": "hi"}],
        "case_id": "case-1",
        "run_id": "run-1",
        "trial": 2,
        "attempt": 1,
        "task_input": {
            "user_instruction": "Book a table for two.",
            "latest_user_prompt": "Book a table for two.",
            "input": {"n": 1},
            "messages": [{"role": "user", "content": "hi"}],
        },
        "thread_id": "run-1",
        "resume": None,
        "run_input": None,
        "workspace": None,
        "files": ["/suite/a.txt", "/b"],
        "proxy_url": "http://proxy",
        "run_token": "token",
        "tools": None,
    }


def test_a_function_that_is_served_gets_its_thread_and_the_answers_to_interrupts() -> None:
    request = a_request()
    request.run_input = RunAgentInput(
        thread_id="thread-7",
        run_id="run-1",
        messages=[{"id": "m", "role": "user", "content": "Book it."}],
        resume=[ResumeEntry("i-1", "resolved", {"approved": True})],
    )

    def agent(thread_id: Any, resume: Any, run_input: Any) -> dict[str, Any]:
        return dict(locals())

    positional, named = Calling(agent, Path("/suite")).arguments(request, None)
    resume = [{"interruptId": "i-1", "status": "resolved", "payload": {"approved": True}}]
    assert agent(*positional, **named) == {
        "thread_id": "thread-7",
        "resume": resume,
        "run_input": {
            "threadId": "thread-7",
            "runId": "run-1",
            "messages": [{"id": "m", "role": "user", "content": "Book it."}],
            "resume": resume,
        },
    }
    named["run_input"]["messages"].clear()
    assert request.run_input.messages, "the function has a copy"


@pytest.mark.parametrize(
    "function",
    [
        lambda prompt: prompt,
        lambda question, *rest, **others: question if not rest and not others else None,
        lambda question, /: question,
        lambda question, temperature=0.5: question,
        lambda input, instruction: instruction,
        lambda *, instruction: instruction,
        lambda self, instruction: self if self == instruction else None,
    ],
)
def test_the_prompt_comes_first_or_by_its_name(function: Callable[..., Any]) -> None:
    assert called(function) == "Book a table for two."


def test_parameters_with_defaults_that_are_unknown_keep_them() -> None:
    assert called(lambda prompt, temperature=0.5: temperature) == 0.5


def test_a_function_may_take_nothing() -> None:
    assert called(lambda: "x") == "x"


def test_a_bound_method_has_its_own_parameters_only() -> None:
    class Agent:
        def run(self, case_id: str) -> str:
            return case_id

    assert called(Agent().run) == "case-1"


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda prompt, mesages: None, "`messages`"),
        (lambda prompt, *, xyz: None, "one of `instruction`"),
        (lambda prompt, input, /: None, "`input`"),
    ],
)
def test_a_parameter_that_nothing_fits_is_an_error_that_names_the_nearest(
    function: Callable[..., Any], hint: str
) -> None:
    with pytest.raises(SeatrialError) as caught:
        Calling(function, Path())
    assert caught.value.code == "invalid_config"
    assert hint in str(caught.value.hint)


def test_only_functions_that_ask_for_the_proxy_need_it() -> None:
    assert Calling(lambda run_token: None, Path()).needs_grant
    assert not Calling(lambda prompt: None, Path()).needs_grant


def test_without_a_proxy_its_parameters_are_none() -> None:
    calling = Calling(lambda proxy_url: None, Path())
    assert calling.arguments(a_request(), None) == ((), {"proxy_url": None})
