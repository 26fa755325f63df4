"""Functions as agents: sync, async, streaming; and what they raise is a finding about them."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from strategies.unhurried import run_unhurried

from agents.setting import a_case, a_request, ask, ask_and_keep, ask_with_events, collecting, error_class
from seatrial._support.excerpt import CUT_BEGINNING, MAX_DETAIL, MAX_TRACEBACK
from seatrial.agents import streamed
from seatrial.agents.agent import Reply, RunRequest
from seatrial.agents.python import agent as python
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.config import PythonConfig
from seatrial.errors import SeatrialError
from seatrial.events.types import CustomEvent, Event, RunFinished, RunStarted, TextMessageChunk
from seatrial.runs import Run
from seatrial.trajectory import extract
from seatrial.world.proxy import ToolProxy

_numbers = itertools.count()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A suite's directory, whose modules are forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def an_agent(folder: Path, source: str, *, timeout_s: float | None = None, **fields: Any) -> PythonAgent:
    """The agent of the function `agent` in a module of its own."""
    name = f"agent_under_test_{next(_numbers)}"
    (folder / f"{name}.py").write_text(source)
    config = PythonConfig(target=f"{name}:agent", **fields)
    return PythonAgent(config, directory=folder, timeout_s=timeout_s)


def run(
    folder: Path, source: str, request: RunRequest | None = None, *, timeout_s: float | None = None
) -> tuple[Reply, list[Event]]:
    """What the agent brings, and its events. What a generator is allowed counts from the first thing that it yields."""
    events: list[Event] = []

    async def play() -> Reply:
        async with an_agent(folder, source, timeout_s=timeout_s) as agent:
            return await agent.run(a_request() if request is None else request, collecting(events))

    return run_unhurried(play(), begun=(lambda: bool(events)) if "yield" in source else None), events


def answer_of(reply: Reply) -> str | None:
    assert reply.fault is None, reply.fault
    assert reply.reading is not None
    return reply.reading.transcript.final_text()


# What it returns


@pytest.mark.parametrize("head", ["def", "async def"])
def test_plain_text_is_the_answer(folder: Path, head: str) -> None:
    reply, events = run(folder, f"{head} agent(instruction): return instruction.upper()")
    assert answer_of(reply) == "BOOK A TABLE FOR TWO."
    assert reply.body == b"BOOK A TABLE FOR TWO."
    assert not reply.streamed
    assert events == []


@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_response_object_is_read(folder: Path, head: str) -> None:
    source = f"""
{head} agent(instruction):
    return {{"final_response": "Done.", "messages": [
        {{"role": "assistant", "content": "", "tool_calls": [{{"id": "1", "name": "book", "arguments": {{"n": 2}}}}]}},
        {{"role": "tool", "tool_call_id": "1", "content": "ok"}},
        {{"role": "assistant", "content": "Done."}},
    ]}}
"""
    reply, _ = run(folder, source)
    assert answer_of(reply) == "Done."
    assert reply.reading is not None
    assert reply.reading.format == "agent-response"
    assert [(step.name, step.arguments) for step in extract(reply.reading).steps] == [("book", {"n": 2})]


def test_a_callable_object_and_a_method_are_functions_too(folder: Path) -> None:
    source = """
class Agent:
    async def __call__(self, instruction): return "called"
agent = Agent()
"""
    assert answer_of(run(folder, source)[0]) == "called"


def test_a_function_that_returns_a_coroutine_is_waited_for(folder: Path) -> None:
    source = """
async def work(): return "done"
def agent(instruction): return work()
"""
    assert answer_of(run(folder, source)[0]) == "done"


def test_the_suites_directory_is_importable(folder: Path) -> None:
    (folder / "a_module_beside").write_text("")
    (folder / "beside_it.py").write_text("ANSWER = 'from beside'")
    assert answer_of(run(folder, "import beside_it\ndef agent(p): return beside_it.ANSWER")[0]) == "from beside"


# How it is called


def test_a_sync_function_does_not_hold_up_others(folder: Path) -> None:
    source = """
import threading
everybody = threading.Barrier(30)
def agent(instruction):
    everybody.wait(60)
    return "all here"
"""

    async def play() -> list[Reply]:
        async with an_agent(folder, source) as agent:
            return await asyncio.gather(*[ask(agent, a_request(run_id=str(n), timeout_s=90.0)) for n in range(30)])

    assert [answer_of(reply) for reply in asyncio.run(play())] == ["all here"] * 30


def test_an_agent_may_change_what_it_is_given(folder: Path) -> None:
    source = """
def agent(instruction, input, messages):
    input["items"].append("mine"); messages.clear(); input["new"] = 1
    return "x"
"""
    case = a_case(input={"items": []}, messages=[{"role": "user", "content": "hi"}])
    run(folder, source, a_request(case))
    assert case == a_case(input={"items": []}, messages=[{"role": "user", "content": "hi"}])


def test_context_variables_reach_a_thread(folder: Path) -> None:
    source = """
import contextvars
place = contextvars.ContextVar("place", default="nowhere")
def agent(instruction): return place.get()
"""

    async def play() -> str | None:
        agent = an_agent(folder, source)
        module = sys.modules[agent._function.__module__]
        async with agent:
            module.place.set("here")
            return answer_of(await ask(agent))

    assert asyncio.run(play()) == "here"


def test_a_ported_entrypoint_reaches_the_proxy(folder: Path) -> None:
    source = """
import json, urllib.request
def agent(task_input, *, proxy_url, run_token):
    request = urllib.request.Request(
        proxy_url + "/traces/thinking", json.dumps({"text": task_input["user_instruction"]}).encode(),
        {"Authorization": "Bearer " + run_token, "Content-Type": "application/json"},
    )
    return json.load(urllib.request.urlopen(request)).__repr__()
"""

    async def play() -> None:
        async with ToolProxy() as proxy, an_agent(folder, source) as agent:
            reply, events = await ask_with_events(agent, proxy=proxy)
            assert answer_of(reply) == "{'accepted': True, 'sequence': 0}"
            assert events == [CustomEvent(name="trace.thinking", value={"text": "Book a table for two."})]

    asyncio.run(play())


def test_a_token_is_dead_when_the_function_has_returned(folder: Path) -> None:
    async def play() -> int:
        source = "async def agent(proxy_url, run_token): agent.told = proxy_url, run_token; return 'ok'"
        async with ToolProxy() as proxy, an_agent(folder, source) as agent:
            assert answer_of(await ask(agent, proxy=proxy)) == "ok"
            url, token = agent._function.told  # type: ignore[attr-defined]  # the function under test sets it
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{url}/traces/thinking", json={}, headers=headers) as response,
            ):
                return response.status

    assert asyncio.run(play()) == 401


@pytest.mark.parametrize(
    "body",
    [
        "return run_token",
        "return run_token.encode()",
        "return {'final_response': 'x' * 440 + run_token}",
        "return {'final_response': 'ok', 'metadata': {run_token: run_token}}",
        "return [{'role': 'assistant', 'content': run_token}]",
        "return {'txet': 'x' * 440 + run_token}",
        "return {'final_response': type(run_token, (), {})()}",
        "raise ValueError(run_token)",
        "raise ValueError('x' * 480 + run_token)",
        "raise ValueError(run_token + 'x' * 15_950)",
        "yield run_token",
        "yield {'type': 'CUSTOM', 'name': 'seen', 'value': {'token': run_token}}",
        "yield {'type': 'RUN_ERROR', 'message': 'x' * 480 + run_token}",
        'yield b\'data: {"type": "CUSTOM", "name": "\' + run_token[:9].encode()\n'
        '    yield run_token[9:].encode() + b\'", "value": 1}\\n\\n\'',
        "yield 'ok'\n    raise ValueError(run_token)",
        "yield {'type': 'CUSTOM', 'name': 'x', 'value': type(run_token, (), {})()}",
    ],
)
@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_run_token_is_nowhere_in_what_is_kept(folder: Path, head: str, body: str) -> None:
    source = f"{head} agent(run_token):\n    known.append(run_token)\n    {body}\nknown = []"

    async def play() -> None:
        async with ToolProxy() as proxy, an_agent(folder, source) as agent:
            run, events = await ask_and_keep(agent, proxy)
            (token,) = sys.modules[agent._function.__module__].known
            kept = repr((run, events))
            assert token[:10] not in kept
            assert token[-10:] not in kept
            if run.fault is None:
                assert "[run token]" in kept
                assert run.reading is not None
                assert "run_token_removed" in [note.code for note in run.reading.notes]

    asyncio.run(play())


PIECES = [
    "for letter in 'it is ' + run_token + ', isnt it':\n        yield letter",
    "yield 'it is ' + run_token[:9]\n    yield run_token[9:] + ', isnt it'",
    "yield 'it is ' + run_token + ' '\n    yield run_token[:9]\n    yield run_token[9:]",
    "yield {'type': 'TOOL_CALL_START', 'toolCallId': 'c', 'toolCallName': 'dig'}\n"
    "    yield {'type': 'TOOL_CALL_ARGS', 'toolCallId': 'c', 'delta': '{\"where\": \"' + run_token[:20]}\n"
    "    yield {'type': 'TOOL_CALL_ARGS', 'toolCallId': 'c', 'delta': run_token[20:] + '\"}'}\n"
    "    yield {'type': 'TOOL_CALL_END', 'toolCallId': 'c'}",
]


@pytest.mark.parametrize("body", PIECES)
@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_run_token_that_is_streamed_piece_by_piece_is_nowhere_in_what_is_kept(
    folder: Path, head: str, body: str
) -> None:
    source = f"{head} agent(run_token):\n    known.append(run_token)\n    {body}\nknown = []"

    async def play() -> None:
        async with ToolProxy() as proxy, an_agent(folder, source) as agent:
            run, events = await ask_and_keep(agent, proxy)
            (token,) = sys.modules[agent._function.__module__].known
            streamed = "".join([str(getattr(event, "delta", "")) for event in events])
            assert "[run token]" in streamed
            for kept in (streamed, repr((run, events))):
                assert token[:10] not in kept
                assert token[-10:] not in kept
            assert (run.fault, run.body) == (None, None)
            assert run.reading is not None
            assert "run_token_removed" in [note.code for note in run.reading.notes]
            kept_events = run.reading.events or []
            assert "".join([str(getattr(event, "delta", "")) for event in kept_events]) == streamed

    asyncio.run(play())


def test_text_that_only_begins_like_a_run_token_is_all_there(folder: Path) -> None:
    source = "async def agent(run_token):\n    yield 'about ' + run_token[:1]\n    yield '! and ' + run_token[:6]"

    async def play() -> tuple[Run, list[Event]]:
        async with ToolProxy() as proxy, an_agent(folder, source) as agent:
            return await ask_and_keep(agent, proxy)

    run, events = asyncio.run(play())
    assert run.reading is not None
    streamed = "".join([str(getattr(event, "delta", "")) for event in events])
    for text in (run.reading.transcript.final_text() or "", streamed):
        assert re.fullmatch("about [0-9a-f]! and [0-9a-f]{6}", text)
    assert run.body is not None


# What it raises


@pytest.mark.parametrize("kind", ["RuntimeError", "ValueError", "Exception"])
def test_what_an_exception_says_is_asked_for_once_and_cut_before_it_is_copied(folder: Path, kind: str) -> None:
    size = 20_000_000
    source = f"""
class Long({kind}):
    asked = 0
    def __str__(self):
        Long.asked += 1
        return 'x' * {size}

def agent(prompt):
    raise Long() from ValueError('y' * 100_000)
"""

    async def play() -> tuple[Reply, int]:
        async with an_agent(folder, source) as agent:
            tracemalloc.start()
            try:
                reply = await ask(agent)
                return reply, sys.modules[agent._function.__module__].Long.asked
            finally:
                assert tracemalloc.get_traced_memory()[1] < 2 * size
                tracemalloc.stop()

    reply, asked = asyncio.run(play())
    assert asked == 1
    assert reply.fault is not None
    assert len(reply.fault.message) == MAX_DETAIL
    assert len(reply.fault.detail or "") == len(CUT_BEGINNING) + MAX_TRACEBACK


@pytest.mark.parametrize(
    "error",
    [
        "ExceptionGroup('g', [error, error])",
        "ExceptionGroup('g', [error] * 1000)",
        "RuntimeError('g', setattr(error, '__cause__', ExceptionGroup('c', [error, error])))",
    ],
)
def test_groups_that_share_what_they_hold_are_described_in_bounds(folder: Path, error: str) -> None:
    source = (
        "def agent(instruction):\n    error = first = ValueError('the first')\n"
        f"    for _ in range(30): error = {error}\n    raise error from ExceptionGroup('g', [first])"
    )
    reply, _ = run(folder, source)
    assert error_class(reply) == "agent_exception"
    assert reply.fault is not None
    assert reply.fault.message.startswith(("ExceptionGroup: g", "RuntimeError: "))
    detail = reply.fault.detail or ""
    assert "raise error from" in detail
    assert len(detail) <= len(CUT_BEGINNING) + MAX_TRACEBACK


@pytest.mark.parametrize("head", ["def agent(instruction):\n    ", "async def agent(instruction):\n    "])
@pytest.mark.parametrize("before", ["", "yield 'The '\n    "])
@pytest.mark.parametrize(
    ("named", "expected"), [((), "agent_exception"), (("seatrial.SeatrialError",), "infrastructure_error")]
)
def test_an_error_of_seatrial_that_a_function_raises_is_its_own_also_while_it_yields(
    folder: Path, head: str, before: str, named: tuple[str, ...], expected: str
) -> None:
    source = f"import seatrial\n{head}{before}raise seatrial.SeatrialError('too_large', 'of a client')"
    agent = an_agent(folder, source, infrastructure_errors=list(named))

    async def play() -> Reply:
        async with agent:
            return await agent.run(a_request(), collecting([]))

    assert error_class(asyncio.run(play())) == expected


def test_a_group_of_named_errors_that_it_shares_is_infrastructure(folder: Path) -> None:
    source = (
        "def agent(instruction):\n    error = OSError('gone')\n"
        "    for _ in range(6): error = ExceptionGroup('g', [error] * 1000)\n    raise error"
    )
    agent = an_agent(folder, source, infrastructure_errors=["builtins.OSError"])

    async def play() -> Reply:
        async with agent:
            return await agent.run(a_request(), collecting([]))

    assert error_class(asyncio.run(play())) == "infrastructure_error"


@pytest.mark.parametrize("head", ["def", "async def"])
def test_an_exception_is_a_finding_with_the_agents_traceback(folder: Path, head: str) -> None:
    source = f"""
def deeper():
    raise ValueError("no table")
{head} agent(instruction):
    deeper()
"""
    reply, _ = run(folder, source)
    assert reply.fault is not None
    assert reply.fault.error_class == "agent_exception"
    assert reply.fault.blame == "agent"
    assert reply.fault.message == "ValueError: no table"
    assert reply.fault.detail is not None
    assert "in deeper" in reply.fault.detail
    assert reply.fault.detail.count("  File ") == 2
    assert "seatrial/agents" not in reply.fault.detail


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise TimeoutError('of my own')", "TimeoutError: of my own"),
        ("raise StopIteration(1)", "RuntimeError"),
        ("import asyncio; raise asyncio.CancelledError('mine')", "CancelledError: mine"),
        ("return 1 / 0", "ZeroDivisionError"),
        ("return agent(instruction)", "RecursionError"),
        ("raise type('Panic', (BaseException,), {})('in Rust')", "Panic: in Rust"),
        ("raise ExceptionGroup('many', [ValueError(1)])", "ExceptionGroup: many"),
        ("raise GeneratorExit('mine')", "GeneratorExit: mine"),
    ],
)
@pytest.mark.parametrize("head", ["def", "async def"])
def test_whatever_an_agent_raises_is_a_finding(folder: Path, head: str, statement: str, name: str) -> None:
    if head == "async def":
        statement = statement.replace("return agent(", "return await agent(")
    reply, _ = run(folder, f"{head} agent(instruction):\n    {statement}")
    assert reply.fault is not None
    assert reply.fault.error_class == "agent_exception"
    assert name in reply.fault.message
    assert reply.fault.detail is not None
    assert len(reply.fault.detail) < 17_000


@pytest.mark.parametrize("body", ["raise KeyboardInterrupt", "yield 'a'\n    raise KeyboardInterrupt"])
def test_ctrl_c_does_not_come_from_an_agent_in_its_thread(folder: Path, body: str) -> None:
    assert error_class(run(folder, f"def agent(instruction):\n    {body}")[0]) == "agent_exception"


def test_a_run_whose_coroutine_is_closed_ends_without_a_finding(folder: Path) -> None:
    async def play() -> None:
        async with an_agent(folder, "import asyncio\nasync def agent(p): await asyncio.sleep(600)") as agent:
            running = agent.run(a_request(), collecting([]))
            running.send(None)
            running.close()  # raises RuntimeError for a coroutine that goes on

    asyncio.run(play())


def test_what_is_returned_may_raise_when_it_is_written(folder: Path) -> None:
    source = """
class Model:
    def model_dump_json(self): raise SystemExit(0)
def agent(instruction): return Model()
"""
    assert error_class(run(folder, source)[0]) == "agent_exception"


def test_an_exception_that_cannot_be_shown_is_a_finding_too(folder: Path) -> None:
    source = """
class Shy(Exception):
    def __str__(self): raise RuntimeError("not telling")
def agent(instruction): raise Shy
"""
    assert error_class(run(folder, source)[0]) == "agent_exception"


# Whose doing it is


@pytest.mark.parametrize(
    ("source", "names", "expected"),
    [
        ("raise seatrial.InfrastructureError('no disk')", [], "infrastructure_error"),
        ("raise type('Ours', (seatrial.InfrastructureError,), {})('no disk')", [], "infrastructure_error"),
        ("raise ConnectionError", [], "agent_exception"),
        ("raise ConnectionError", ["builtins.ConnectionError"], "infrastructure_error"),
        ("raise ConnectionResetError", ["builtins.ConnectionError"], "infrastructure_error"),
        ("raise OSError", ["builtins.ConnectionError"], "agent_exception"),
        ("raise Wrapped from ConnectionError()", ["builtins.ConnectionError"], "infrastructure_error"),
        ("try: raise ConnectionError\n except ConnectionError: raise Wrapped", ["builtins.OSError"], "agent_exception"),
        ("raise ExceptionGroup('', [OSError(), TimeoutError()])", ["builtins.OSError"], "infrastructure_error"),
        ("raise ExceptionGroup('', [OSError(), KeyError()])", ["builtins.OSError"], "agent_exception"),
        ("raise json.JSONDecodeError('no', '', 0)", ["json.JSONDecodeError"], "infrastructure_error"),
        ("raise json.JSONDecodeError('no', '', 0)", ["json.decoder.JSONDecodeError"], "infrastructure_error"),
        ("circle = Wrapped(); circle.__cause__ = circle; raise circle", ["builtins.OSError"], "agent_exception"),
    ],
)
def test_an_exception_is_the_agents_doing_unless_it_or_the_suite_says_otherwise(
    folder: Path, source: str, names: list[str], expected: str
) -> None:
    module = f"import json, seatrial\nclass Wrapped(Exception): pass\ndef agent(instruction):\n {source}\n"

    async def play() -> Reply:
        agent = an_agent(folder, module, infrastructure_errors=names)
        async with agent:
            return await agent.run(a_request(), collecting([]))

    assert error_class(asyncio.run(play())) == expected


@pytest.mark.parametrize("name", ["not_installed.Error", "json.dumps", "builtins.NoSuchError"])
def test_an_agent_whose_infrastructure_errors_do_not_exist_cannot_be_used(folder: Path, name: str) -> None:
    with pytest.raises(SeatrialError, match=name) as caught:
        an_agent(folder, "def agent(p): return 'x'", infrastructure_errors=[name])
    assert caught.value.code == "invalid_config"


def test_groups_that_hold_each_other_deeply_are_the_agents_doing(folder: Path) -> None:
    source = """
def agent(instruction):
    error = OSError()
    for _ in range(200): error = ExceptionGroup("", [error])
    raise error
"""

    async def play() -> Reply:
        async with an_agent(folder, source, infrastructure_errors=["builtins.OSError"]) as agent:
            return await agent.run(a_request(), collecting([]))

    assert error_class(asyncio.run(play())) == "agent_exception"


def test_a_function_that_hangs_after_the_end_of_its_run_is_not_late(folder: Path) -> None:
    source = """
import asyncio
async def agent(instruction):
    yield {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    yield {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    await asyncio.sleep(60)
"""
    reply, _ = run(folder, source, timeout_s=0.2)
    assert reply.fault is None


# How long it takes


@pytest.mark.parametrize(
    ("own_s", "left_s", "expected"), [(0.2, 20.0, "agent_timeout"), (20.0, 0.2, "deadline_exceeded")]
)
@pytest.mark.parametrize(
    "source",
    [
        "import time\ndef agent(p): time.sleep(60)",
        "import asyncio\nasync def agent(p): await asyncio.sleep(60)",
        "import time\ndef agent(p):\n    yield 'a'\n    time.sleep(60)",
        "import asyncio\nasync def agent(p):\n    yield 'a'\n    await asyncio.sleep(60)",
    ],
)
def test_a_function_that_takes_too_long_is_left_behind(
    folder: Path, source: str, own_s: float, left_s: float, expected: str
) -> None:
    begun = time.monotonic()
    reply, events = run(folder, source, a_request(timeout_s=left_s), timeout_s=own_s)
    assert error_class(reply) == expected
    assert time.monotonic() - begun < 55
    if "yield" in source:
        assert TextMessageChunk(message_id="run-1-answer", delta="a") in events
        assert reply.reading is not None
        assert reply.reading.transcript.final_text() == "a"


def test_a_function_that_never_returns_does_not_keep_the_process(folder: Path) -> None:
    script = f"""
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from agents.setting import a_request, ask
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.agent import PythonAgent
async def play():
    config = PythonConfig(target="hanging:agent")
    async with PythonAgent(config, directory=Path({str(folder)!r}), timeout_s=0.1) as agent:
        print((await ask(agent)).fault.error_class)
asyncio.run(play())
"""
    (folder / "hanging.py").write_text("import time\ndef agent(p):\n    while True: time.sleep(1)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"agent_timeout\n"


def test_a_cancelled_run_is_cancelled(folder: Path) -> None:
    async def play() -> None:
        async with an_agent(folder, "import asyncio\nasync def agent(p): await asyncio.sleep(30)") as agent:
            task = asyncio.create_task(ask(agent))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(play())


def test_threads_end_with_the_agent(folder: Path) -> None:
    async def play() -> None:
        async with an_agent(folder, "def agent(p): return 'x'") as agent:
            await asyncio.gather(*[ask(agent, a_request(run_id=str(n))) for n in range(20)])

    before = set(threading.enumerate())
    asyncio.run(play())
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


# What it yields


EVENTS = """
from seatrial.events.types import *
items = [
    RunStarted(thread_id="t", run_id="r"),
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "search"},
    b'data: {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}\\n\\nda',
    b'ta: {"type": "TOOL_CALL_END", "toolCallId": "c"}\\n\\n',
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Done."},
    RunFinished(thread_id="t", run_id="r"),
]
"""


@pytest.mark.parametrize("head", ["def", "async def"])
def test_events_in_any_form_are_handed_on_as_they_come(folder: Path, head: str) -> None:
    reply, events = run(folder, f"{EVENTS}\n{head} agent(p):\n    for item in items: yield item")
    assert answer_of(reply) == "Done."
    assert reply.streamed
    assert [type(event).__name__ for event in events] == [
        "RunStarted",
        "ToolCallStart",
        "ToolCallArgs",
        "ToolCallEnd",
        "TextMessageChunk",
        "RunFinished",
    ]
    assert reply.reading is not None
    assert reply.reading.notes == []
    assert [step.name for step in extract(reply.reading).steps] == ["search"]


def test_events_arrive_while_the_function_runs(folder: Path) -> None:
    source = """
import threading
seen = threading.Event()
def agent(instruction):
    yield "first"
    assert seen.wait(15)
    yield "second"
"""

    async def play() -> None:
        agent = an_agent(folder, source)
        module = sys.modules[agent._function.__module__]
        async with agent:

            async def emit(event: Event) -> None:
                module.seen.set()

            reply = await agent.run(a_request(), emit)
            assert answer_of(reply) == "firstsecond"

    asyncio.run(play())


@pytest.mark.parametrize("head", ["def", "async def"])
def test_pieces_of_text_are_the_answer_and_make_a_whole_run(folder: Path, head: str) -> None:
    reply, events = run(folder, f"{head} agent(p):\n    yield 'Do'\n    yield 'ne.'")
    assert answer_of(reply) == "Done."
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert reply.reading is not None
    assert reply.reading.notes == []


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("[]", "agent_bad_response"),
        ("[7]", "agent_bad_response"),
        ("['a', object()]", "agent_bad_response"),
        ("[{'x': {1, 2}, 'type': object()}]", "agent_bad_response"),
        ("items[:-1]", "stream_truncated"),
        ("[items[0], {'type': 'RUN_ERROR', 'message': 'no'}]", "agent_reported_error"),
        ("[{'type': 'RUN_ERROR', 'message': 'no'}]", "agent_reported_error"),
    ],
)
@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_stream_that_is_none_or_has_no_good_end_is_told(folder: Path, head: str, items: str, expected: str) -> None:
    reply, _ = run(folder, f"{EVENTS}\n{head} agent(p):\n    for item in {items}: yield item")
    assert error_class(reply) == expected


@pytest.mark.parametrize("head", ["def", "async def"])
def test_an_exception_amid_a_stream_keeps_what_came(folder: Path, head: str) -> None:
    reply, _ = run(folder, f"{head} agent(p):\n    yield 'Half'\n    raise ValueError('no')")
    assert error_class(reply) == "agent_exception"
    assert reply.reading is not None
    assert reply.reading.transcript.final_text() == "Half"
    assert reply.body is not None


def test_an_async_generator_is_closed_when_time_is_over(folder: Path) -> None:
    source = f"""
import asyncio, pathlib
async def agent(p):
    try:
        yield "a"
        await asyncio.sleep(30)
    finally:
        pathlib.Path({str(folder / "closed")!r}).touch()
"""
    run(folder, source, timeout_s=0.1)
    assert (folder / "closed").exists()


def test_an_iterator_of_ones_own_making_is_read(folder: Path) -> None:
    source = """
class Stream:
    def __init__(self): self.left = ["a", "b"]
    def __aiter__(self): return self
    async def __anext__(self):
        if not self.left: raise StopAsyncIteration
        return self.left.pop(0)
def agent(instruction): return Stream()
"""
    assert answer_of(run(folder, source)[0]) == "ab"


# What cannot be an agent


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("agent = 7", "int"),
        ("def agnet(p): pass", "agnet"),
        ("def agent(p, colour): pass", "colour"),
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("raise SystemExit(1)", "SystemExit"),
        ("def agent(p:", "SyntaxError"),
    ],
)
def test_what_cannot_be_called_is_an_error_before_anything_runs(folder: Path, source: str, words: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        an_agent(folder, source)
    assert caught.value.code == "invalid_config"
    assert words in str(caught.value)


def test_any_iterator_is_a_stream(folder: Path) -> None:
    reply, _ = run(folder, "def agent(p): return iter(['a', 'b'])")
    assert answer_of(reply) == "ab"


# --- how much a generator may yield


@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_generator_that_yields_more_than_is_kept_of_an_answer_is_stopped(
    folder: Path, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python, "MAX_RESPONSE_BYTES", 1_000_000)
    reply, events = run(folder, f"{head} agent(p):\n    while True: yield 'a' * 100_000", a_request(timeout_s=None))
    assert error_class(reply) == "response_too_large"
    assert len(events) == 10  # the start of the run, and nine pieces of a little more than 100,000 bytes
    assert reply.body is not None
    assert len(reply.body) < 1_000_000


@pytest.mark.parametrize("head", ["def", "async def"])
def test_the_body_of_a_generator_of_text_is_its_text_and_not_a_frame_for_each_piece(folder: Path, head: str) -> None:
    reply, events = run(folder, f"{head} agent(p):\n    for word in ('one ', 'two ', 'three'): yield word")
    assert reply.body == b'{"type":"TEXT_MESSAGE_CHUNK","messageId":"run-1-answer","delta":"one two three"}\n'
    said = [event.delta for event in events if isinstance(event, TextMessageChunk)]
    assert said == ["one ", "two ", "three"]


@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_generator_that_yields_more_events_than_are_read_is_stopped(
    folder: Path, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "MAX_EVENTS", 1_000)
    reply, events = run(folder, f"{head} agent(p):\n    while True: yield 'a'", a_request(timeout_s=None))
    assert error_class(reply) == "response_too_large"
    assert "1,000 events" in str(reply.fault)
    assert len(events) == 1_000


@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_generator_that_yields_without_end_ends_with_its_time_and_holds_up_nobody(folder: Path, head: str) -> None:
    turns = 0

    async def look_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def play() -> Reply:
        onlooker = asyncio.create_task(look_on())
        async with an_agent(folder, f"{head} agent(p):\n    while True: yield b''", timeout_s=0.3) as agent:
            reply = await ask(agent)
        onlooker.cancel()
        return reply

    assert error_class(asyncio.run(play())) == "agent_timeout"
    assert turns > 3


def test_a_generator_in_a_thread_waits_when_it_is_far_ahead(folder: Path) -> None:
    yielded: list[str] = []
    ahead: list[int] = []

    def agent(p: str) -> Iterator[str]:
        for _ in range(2_000):
            yielded.append("a")
            yield "a"

    async def emit(event: Event) -> None:
        ahead.append(len(yielded) - len(ahead))

    async def play() -> None:
        config = PythonConfig(target="at:hand")
        async with PythonAgent(config, directory=folder, timeout_s=None, function=agent) as crew:
            await crew.run(a_request(), emit)

    asyncio.run(play())
    assert len(ahead) == 2_002
    assert max(ahead) <= python.PIECES_AHEAD + 2


@pytest.mark.parametrize(
    "statement",
    [
        "import sys; sys.exit(3)",
        "raise ValueError('mine')",
        "raise GeneratorExit",
        "import asyncio; raise asyncio.CancelledError",
    ],
)
@pytest.mark.parametrize("head", ["def", "async def"])
def test_a_generator_that_raises_is_a_finding(folder: Path, head: str, statement: str) -> None:
    reply, events = run(folder, f"{head} agent(p):\n    yield 'a'\n    {statement}")
    assert error_class(reply) == "agent_exception"
    assert TextMessageChunk(message_id="run-1-answer", delta="a") in events


@pytest.mark.parametrize("head", ["def", "async def"])
def test_the_messages_that_a_generator_yielded_before_it_failed_are_kept(folder: Path, head: str) -> None:
    source = f"{head} agent(p):\n    yield {{'role': 'assistant', 'content': 'a'}}\n    raise ValueError"
    reply, _ = run(folder, source)
    assert error_class(reply) == "agent_exception"
    assert reply.body == b'{"output_messages":[{"role":"assistant","content":"a"}]}'


def test_an_object_that_is_changed_after_it_was_yielded_counts_as_it_was(folder: Path) -> None:
    source = """
def agent(p):
    event = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m"}
    for word in ("one ", "two ", "three"):
        event["delta"] = word
        yield event
"""
    assert answer_of(run(folder, source)[0]) == "one two three"


@pytest.mark.parametrize("last", ["return 'never'", "yield 'never'"])
def test_a_function_that_cancels_its_own_task_has_failed(folder: Path, last: str) -> None:
    source = f"""
import asyncio
async def agent(instruction):
    asyncio.current_task().cancel()
    await asyncio.sleep(1)
    {last}
"""
    reply, _ = run(folder, source)
    assert error_class(reply) == "agent_exception"


ODD = """
def lie(*args, **named):
    raise SystemError("code of the agent ran")

class Text(str):
    __str__ = __len__ = __iter__ = __eq__ = __getitem__ = __format__ = encode = isascii = isupper = lie
    __hash__ = str.__hash__
    def __getattr__(self, name): lie()

class Bytes(bytes):
    __len__ = __iter__ = __eq__ = __getitem__ = __bytes__ = lie
    __hash__ = bytes.__hash__

class Object(dict):
    __len__ = __iter__ = __eq__ = __getitem__ = __contains__ = items = keys = values = get = lie
    __hash__ = None

class Array(list):
    __len__ = __iter__ = __eq__ = __getitem__ = lie
    __hash__ = None
"""
ODD_VALUES = [
    "Text('Done.')",
    "Bytes(b'Done.')",
    "Object(final_response=Text('Done.'))",
    "{'final_response': Text('Done.')}",
    "{Text('final_response'): 'Done.'}",
    "Array([Object(role=Text('assistant'), content=Text('Done.'))])",
    "[{'role': 'assistant', 'content': Array([{'type': 'text', 'text': Text('Done.')}])}]",
]


@pytest.mark.parametrize("head", ["def", "async def"])
@pytest.mark.parametrize("value", ODD_VALUES)
def test_an_odd_subclass_that_is_returned_is_what_it_holds(folder: Path, head: str, value: str) -> None:
    reply, _ = run(folder, f"{ODD}\n{head} agent(p): return {value}")
    assert answer_of(reply) == "Done."


@pytest.mark.parametrize("head", ["def", "async def"])
@pytest.mark.parametrize(
    "items",
    [
        ["Text('Do')", "Text('ne.')"],
        ["Object(type='TEXT_MESSAGE_CHUNK', messageId='m', role='assistant', delta='Done.')"],
        ["Object(role=Text('assistant'), content=Text('Done.'))"],
    ],
)
def test_an_odd_subclass_that_is_yielded_is_what_it_holds(folder: Path, head: str, items: list[str]) -> None:
    reply, _ = run(folder, "\n    ".join([f"{ODD}\n{head} agent(p):", *[f"yield {item}" for item in items]]))
    assert answer_of(reply) == "Done."


@pytest.mark.parametrize(
    "value", ["Large('ok')", "{'final_response': Large('ok')}", "{'final_response': 'ok', 'metadata': {Large('k'): 1}}"]
)
def test_text_whose_method_says_more_than_it_holds_is_as_long_as_it_is(folder: Path, value: str) -> None:
    large = "class Large(str):\n    def __str__(self): return 'x' * 300_000_000"
    tracemalloc.start()
    try:
        reply, _ = run(folder, f"{large}\nasync def agent(p): return {value}")
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert answer_of(reply) == "ok"


NUMBERS = """
import decimal, enum
class Count(int):
    __int__ = __index__ = __str__ = __repr__ = __eq__ = lie
    __hash__ = int.__hash__
class Share(float):
    __float__ = __str__ = __repr__ = __eq__ = lie
    __hash__ = float.__hash__
class Kind(str, enum.Enum):
    GOOD = "good"
"""


def test_numbers_keys_and_values_of_enumerations_are_what_they_hold(folder: Path) -> None:
    value = "{'final_response': 'ok', 'metadata': {Kind.GOOD: [Count(1), Share(0.5), Kind.GOOD], Count(7): (1, {2})}}"
    reply, _ = run(folder, f"{ODD}{NUMBERS}\ndef agent(p): return {value}")
    assert answer_of(reply) == "ok"
    assert reply.body is not None
    assert msgspec.json.decode(reply.body)["metadata"] == {"good": [1, 0.5, "good"], "7": [1, [2]]}


@pytest.mark.parametrize(
    "item",
    [
        "{'type': 'TEXT_MESSAGE_CHUNK', 'messageId': 'm', 'role': 'assistant', 'delta': Text('Done.')}",
        "{'type': 'TEXT_MESSAGE_CHUNK', 'messageId': 'm', 'role': 'assistant', 'delta': 'Done.', 'x': (Count(1),)}",
        "TextMessageChunk(message_id='m', delta=Text('Done.'))",
    ],
)
def test_odd_subclasses_in_an_event_are_what_they_hold(folder: Path, item: str) -> None:
    imports = "from seatrial.events.types import TextMessageChunk"
    reply, _ = run(folder, f"{imports}\n{ODD}{NUMBERS}\ndef agent(p):\n    yield {item}")
    assert answer_of(reply) == "Done."


SMALL_BUT_LARGE = {
    "tuples": "t = ('x',) * 2\n    for _ in range(40): t = (t, t)",
    "sets": "t = frozenset({'x'})\n    for n in range(40): t = frozenset({(n, t), (-n, t)})",
    "keys": "t = [{'k' * 1_000_000: 1}] * 100",
    "bytes": "t = [b'x' * 1_000_000] * 100",
    "Decimals": "import decimal\n    t = [decimal.Decimal('1' * 100_000)] * 1_000",
    "numbers": "t = [10 ** 4_000] * 15_000",
    "plain values": "t = ([1] * 10_000,) * 100",
    "data classes": "import dataclasses\n    t = dataclasses.make_dataclass('D', ['a'])(['x' * 1_000_000] * 100)",
    "structs": "import msgspec\n    t = msgspec.defstruct('S', ['a'])((('x' * 1_000_000,) * 10,) * 10)",
}


@pytest.mark.parametrize("what", SMALL_BUT_LARGE)
@pytest.mark.parametrize(
    "end",
    [
        "return {'final_response': 'ok', 'metadata': {'a': t}}",
        "yield {'type': 'CUSTOM', 'name': 'a', 'value': t}",
        "yield {'role': 'assistant', 'content': 'ok', 'a': t}",
    ],
    ids=["returned", "in an event", "in a record"],
)
def test_what_is_small_in_memory_and_large_when_written_is_refused_unwritten(
    folder: Path, what: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.agents.python.objects.MAX_RESPONSE_BYTES", 10_000_000)
    monkeypatch.setattr("seatrial.agents.python.objects.MAX_VALUES", 20_000)
    source = f"def agent(p):\n    {SMALL_BUT_LARGE[what]}\n    {end}"
    tracemalloc.start()
    try:
        reply, _ = run(folder, source)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert error_class(reply) == "response_too_large"


@pytest.mark.parametrize("value", ["Text('x' * 70_000_000)", "{'a': {'b': {'c': Text('x' * 70_000_000)}}}"])
def test_a_subclass_that_holds_too_much_is_refused(folder: Path, value: str) -> None:
    reply, _ = run(folder, f"{ODD}\ndef agent(p): return {value}")
    assert error_class(reply) == "response_too_large"


def test_a_generator_that_is_given_up_is_closed_in_its_own_thread(folder: Path) -> None:
    source = """
import pathlib, threading, time
def agent(p):
    try:
        while True:
            yield "x"
            time.sleep(0.01)
    finally:
        pathlib.Path(__file__).with_name("closed").write_text(threading.current_thread().name)
        time.sleep(5)
"""
    begun = time.monotonic()
    reply, _ = run(folder, source, timeout_s=0.2)
    assert error_class(reply) == "agent_timeout"
    assert time.monotonic() - begun < 4
    closed = folder / "closed"
    while not (closed.exists() and closed.read_text()) and time.monotonic() - begun < 30:
        time.sleep(0.01)
    assert closed.read_text().startswith("call-of-")


@pytest.mark.parametrize("leaf", ["ValueError('v')", "seatrial.InfrastructureError('v')"])
@pytest.mark.parametrize(
    "nest", ["g = ExceptionGroup('g', [g, g])", "g = ExceptionGroup('g', [ExceptionGroup('h', [g] * 100)] * 100)"]
)
def test_a_group_of_groups_of_the_same_exceptions_is_shown_without_them(folder: Path, leaf: str, nest: str) -> None:
    source = f"import seatrial\ndef agent(p):\n    g = {leaf}\n    for _ in range(15): {nest}\n    raise g"
    begun = time.monotonic()
    reply, _ = run(folder, source)
    assert time.monotonic() - begun < 5
    assert reply.fault is not None
    assert "not shown" in reply.fault.message
    assert "raise g" in str(reply.fault.detail)


def test_a_long_chain_of_causes_is_shown_whole(folder: Path) -> None:
    source = """
def agent(p, depth=30):
    try:
        if depth:
            agent(p, depth - 1)
        raise ValueError("the first")
    except ValueError as error:
        raise ValueError("a later one") from error
"""
    reply, _ = run(folder, source)
    assert reply.fault is not None
    assert "not shown" not in reply.fault.message
    assert "a later one" in reply.fault.message
