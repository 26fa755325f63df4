"""One door for every kind of agent, and each kind is loaded when it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.agents import AgentStart, build_agent
from seatrial.agents.agent import BatchAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import AgentConfig
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.replay.config import ReplayConfig
from seatrial.agents.stream.config import StreamConfig


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (HttpConfig(endpoint_url="http://localhost/"), "HttpAgent"),
        (StreamConfig(url="http://localhost/"), "StreamAgent"),
        (CliConfig(command=["agent"]), "CliAgent"),
        (CliConfig(command=["agent"], batch=True), "CliBatchAgent"),
        (ReplayConfig(path="x"), "ReplayAgent"),
    ],
)
def test_a_configuration_makes_an_agent_of_its_kind(config: AgentConfig, kind: str, tmp_path: Path) -> None:
    agent = build_agent(config, AgentStart(name="shop", directory=tmp_path))
    assert type(agent).__name__ == kind
    assert isinstance(agent, BatchAgent) == (kind == "CliBatchAgent")


def test_a_function_needs_no_http(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def agent(p): return p")
    script = f"""
import sys
from pathlib import Path
from seatrial.agents import AgentStart, build_agent
from seatrial.agents.python.config import PythonConfig
assert "asyncio" not in sys.modules
build_agent(PythonConfig(target="mine:agent"), AgentStart(name="a", directory=Path({str(tmp_path)!r})))
assert "aiohttp" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


FUNCTIONS = """
def plain(instruction): ...
async def calls_tools(instruction, *, proxy_url, run_token): ...
"""


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        (HttpConfig(endpoint_url="http://127.0.0.1:1/"), True),
        (PythonConfig(target="crew_for_proxy:plain"), False),
        (PythonConfig(target="crew_for_proxy:calls_tools"), True),
        (StreamConfig(url="http://127.0.0.1:1/"), False),
        (CliConfig(command=["true"]), True),
        (CliConfig(command=["true"], batch=True), False),
    ],
)
def test_the_proxy_is_there_for_those_who_are_told_of_it(config: AgentConfig, needed: bool, tmp_path: Path) -> None:
    Path(tmp_path, "crew_for_proxy.py").write_text(FUNCTIONS)
    try:
        agent = build_agent(config, AgentStart(name="crew", directory=tmp_path))
        assert getattr(agent, "uses_world", False) is needed
    finally:
        sys.modules.pop("crew_for_proxy", None)
        sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]
