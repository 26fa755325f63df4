"""Kinds of agents that are not Seatrial's: configuration, check, probe and agent in one place, and nothing of ours
changed."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any, ClassVar

import pytest
from strategies import command
from strategies.plugin import install

from seatrial.agents import AGENTS, AgentConfig, AgentStart, build_agent
from seatrial.agents.registry import NamedAgent, agent_plain, stored_agent
from seatrial.errors import SeatrialError
from seatrial.runs import Case
from seatrial.suites import Suite, stored_form, stored_suite, validate_suite

MODULE = textwrap.dedent(
    '''
    from seatrial.agents import AgentConfig, Probe, Reply
    from seatrial.formats import read

    class Echo(AgentConfig):
        """Says what it is told."""

        prefix: str
        token: str = ""

        def check(self, check):
            if not self.prefix:
                check.problems.add(("prefix",), "`prefix` must say something")

        def build(self, start):
            if self.prefix == "broken":
                raise ZeroDivisionError("made badly")
            return EchoAgent(self)

        async def probe(self, agent, proxy_url):
            return Probe(self.prefix != "absent", f"echo with {self.prefix} and {self.token}")

    class EchoAgent:
        uses_world = False

        def __init__(self, config):
            self.config = config

        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc_info):
            pass

        async def run(self, request, emit):
            text = f"{self.config.prefix} {request.case.instruction}"
            body = ('{"final_response": "' + text + '"}').encode()
            return Reply(body=body, reading=read(body, "agent-response"))
    '''
)
OFFER = {"seatrial.agents": {"echo": "echo_kind:Echo"}}


def seatrial(folder: Path, *args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "" if path is None else str(path), "SECRET": "s3cret-value"}
    return command.seatrial(*args, cwd=folder, env=environment)


def write_suite(folder: Path, agent: dict[str, Any], said: str = "hello all") -> None:
    suite = {
        "agents": {"mine": agent},
        "cases": [{"id": "one", "instruction": "all"}],
        "graders": [{"kind": "equals", "value": said}],
    }
    (folder / "s.suite.yaml").write_text(json.dumps(suite))


@pytest.mark.parametrize("kind", ["echo", "echo_kind:Echo"])
def test_a_kind_of_ones_own_runs_is_examined_and_graded_again(kind: str, tmp_path: Path) -> None:
    site = install(tmp_path / "site", "echo_kind", {"echo_kind": MODULE}, OFFER)
    write_suite(tmp_path, {"kind": kind, "prefix": "hello", "token": "${SECRET}"})
    ran = seatrial(tmp_path, "run", "s.suite.yaml", "--quiet", path=site)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    doctor = seatrial(tmp_path, "doctor", "s.suite.yaml", "--deep", path=site)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "mine: ok, echo with hello and ${SECRET}" in doctor.stdout  # its value is not shown
    # What is stored is readable without the package; a new run is not possible.
    assert seatrial(tmp_path, "grade", "latest").returncode == 0
    assert seatrial(tmp_path, "report", "latest").returncode == 0
    without = seatrial(tmp_path, "run", "s.suite.yaml")
    assert without.returncode == 2
    assert "echo" in without.stderr


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"kind": "ecko", "prefix": "x"}, "unknown kind `ecko` (did you mean `echo`?)"),
        ({"kind": "echo"}, "the key `prefix` is missing"),
        ({"kind": "echo", "prefix": "x", "prefx": 1}, "unknown key `prefx`"),
        ({"kind": "echo", "prefix": ""}, "`prefix` must say something"),
        ({"kind": "echo_kind:Echo", "prefix": 3}, "`prefix` must be text"),
        ({"kind": "echo_kind:Echo", "prefix": "x", "concurrency": "many"}, "`concurrency` must be a whole number"),
        ({"kind": "echo_kind:EchoAgent", "prefix": "x"}, "is not a subclass of `seatrial.agents.AgentConfig`"),
        ({"kind": "nowhere_at_all:Echo", "prefix": "x"}, "`nowhere_at_all` cannot be imported"),
        ({"kind": "echo", "prefix": "broken"}, "cannot be made: ZeroDivisionError: made badly"),
    ],
)
def test_what_is_wrong_with_an_agent_is_told_before_anything_runs(
    agent: dict[str, Any], said: str, tmp_path: Path
) -> None:
    site = install(tmp_path / "site", "echo_kind", {"echo_kind": MODULE}, OFFER)
    write_suite(tmp_path, agent)
    ran = seatrial(tmp_path, "run", "s.suite.yaml", path=site)
    assert (ran.returncode, said in ran.stderr) == (2, True), ran.stderr


def test_a_probe_that_finds_nobody_makes_doctor_say_so(tmp_path: Path) -> None:
    site = install(tmp_path / "site", "echo_kind", {"echo_kind": MODULE}, OFFER)
    write_suite(tmp_path, {"kind": "echo", "prefix": "absent"})
    doctor = seatrial(tmp_path, "doctor", "s.suite.yaml", path=site)
    assert (doctor.returncode, "mine: not ready, echo with absent" in doctor.stdout) == (3, True)


class Echo(AgentConfig):
    prefix: str = "hello"

    def build(self, start: AgentStart) -> Any:
        return self.prefix


def test_a_suite_made_in_python_takes_a_configuration_of_ones_own() -> None:
    suite = Suite(
        agents={"mine": Echo(prefix="x", concurrency=3)},
        cases=[Case(id="one", instruction="x")],
        graders=[{"kind": "is_json"}],
    )
    assert validate_suite(suite, variables={}, grading="all") == []
    stored = stored_form(suite)
    assert stored["agents"] == {"mine": {"kind": f"{__name__}:Echo", "prefix": "x", "concurrency": 3}}
    again = stored_suite(stored).agents["mine"]
    assert isinstance(again, NamedAgent)
    assert again.concurrency == 3
    assert stored_form(stored_suite(stored))["agents"] == stored["agents"]


def test_a_class_that_calls_itself_by_the_name_of_another_kind_is_refused() -> None:
    class Http(Echo):
        kind: ClassVar[str] = "http"

    with pytest.raises(SeatrialError, match="under which it is not registered"):
        agent_plain(Http())
    (problem,) = validate_suite(Suite(agents={"a": Http()}, cases=[Case(id="one", instruction="x")]), variables={})
    assert "under which it is not registered" in problem.message


def test_a_stored_agent_whose_kind_is_gone_keeps_what_all_agents_have() -> None:
    gone = stored_agent({"kind": "uninstalled", "tool_access": "none", "faults": {"agent_timeout": "infrastructure"}})
    assert (gone.tool_access, gone.faults) == ("none", {"agent_timeout": "infrastructure"})
    with pytest.raises(SeatrialError, match="unknown kind of agent 'uninstalled'"):
        build_agent(gone, AgentStart(name="a", directory=Path()))


def test_every_kind_of_seatrial_is_called_as_it_is_registered() -> None:
    assert {name: kind.kind for name, kind in AGENTS.built_in().items()} == {name: name for name in AGENTS.built_in()}
