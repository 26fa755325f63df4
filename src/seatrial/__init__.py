"""Sea trials for AI agents.

    import seatrial as st

    suite = st.Suite(
        agents={"mine": answer},
        cases=[st.Case("where-is-it", "Where is order A-1009?", graders=[st.contains("on its way")])],
    )
    result = st.run(suite, trials=3)
    print(result)

The packages below are public too: `formats` reads what agents write, `events` checks and folds streams, `trajectory`
takes the tool calls out and matches them, `transcript` is the record itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach
from seatrial._version import __version__

if TYPE_CHECKING:
    from seatrial.agents.cli.config import CliConfig
    from seatrial.agents.http.config import HttpConfig
    from seatrial.agents.python.config import PythonConfig
    from seatrial.agents.stream.config import StreamConfig
    from seatrial.errors import InfrastructureError as InfrastructureError
    from seatrial.errors import SeatrialError as SeatrialError
    from seatrial.graders.grader import Grader as Grader
    from seatrial.graders.grader import Subject as Subject
    from seatrial.models.config import AnthropicConfig as AnthropicConfig
    from seatrial.models.config import ModelConfig as ModelConfig
    from seatrial.models.scripted import ScriptedModel as ScriptedModel
    from seatrial.python_api.agents import openai as openai
    from seatrial.python_api.agents import scripted_agent as scripted_agent
    from seatrial.python_api.graders import calls as calls
    from seatrial.python_api.graders import contains as contains
    from seatrial.python_api.graders import contains_all as contains_all
    from seatrial.python_api.graders import contains_any as contains_any
    from seatrial.python_api.graders import equals as equals
    from seatrial.python_api.graders import grader as grader
    from seatrial.python_api.graders import icontains as icontains
    from seatrial.python_api.graders import json_schema as json_schema
    from seatrial.python_api.graders import judge as judge
    from seatrial.python_api.graders import never_calls as never_calls
    from seatrial.python_api.graders import regex as regex
    from seatrial.python_api.graders import tool_trajectory as tool_trajectory
    from seatrial.python_api.result import Result as Result
    from seatrial.python_api.result import compare as compare
    from seatrial.python_api.running import run as run
    from seatrial.python_api.running import run_async as run_async
    from seatrial.runs import Case as Case
    from seatrial.runs import Run as Run
    from seatrial.runs import Verdict as Verdict
    from seatrial.suites.load import load_suite as load_suite
    from seatrial.suites.suite import Suite as Suite

    # By the names that suite files have for the kinds.
    cli = CliConfig
    http = HttpConfig
    python = PythonConfig
    stream = StreamConfig

__getattr__, __all__ = attach(
    __name__,
    {
        "agents.cli.config": "CliConfig=cli",
        "agents.http.config": "HttpConfig=http",
        "agents.python.config": "PythonConfig=python",
        "agents.stream.config": "StreamConfig=stream",
        "errors": "InfrastructureError SeatrialError",
        "graders.grader": "Grader Subject",
        "models.config": "AnthropicConfig ModelConfig",
        "models.scripted": "ScriptedModel",
        "python_api.agents": "openai scripted_agent",
        "python_api.graders": (
            "calls contains contains_all contains_any equals grader icontains json_schema judge never_calls regex "
            "tool_trajectory"
        ),
        "python_api.result": "Result compare",
        "python_api.running": "run run_async",
        "runs": "Case Run Verdict",
        "suites.load": "load_suite",
        "suites.suite": "Suite",
    },
)
__all__ += ["__version__"]
