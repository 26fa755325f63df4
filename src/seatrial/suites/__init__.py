"""Suite files and their cases: read, checked as a whole before anything runs, and the same as typed objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial._support.environment import resolve as resolve
    from seatrial.agents.cli.config import CliConfig as CliConfig
    from seatrial.agents.config import AgentConfig as AgentConfig
    from seatrial.agents.config import Retry as Retry
    from seatrial.agents.http.config import HttpConfig as HttpConfig
    from seatrial.agents.http.config import ModelTool as ModelTool
    from seatrial.agents.http.config import ResponsePaths as ResponsePaths
    from seatrial.agents.http.config import SubAgent as SubAgent
    from seatrial.agents.http.template import RequestTemplate as RequestTemplate
    from seatrial.agents.python.config import PythonConfig as PythonConfig
    from seatrial.agents.replay.config import ReplayConfig as ReplayConfig
    from seatrial.agents.stream.config import StreamConfig as StreamConfig
    from seatrial.graders.registry import GraderConfig as GraderConfig
    from seatrial.graders.registry import grader_config as grader_config
    from seatrial.models.config import AnthropicConfig as AnthropicConfig
    from seatrial.models.config import ModelConfig as ModelConfig
    from seatrial.problems import InvalidSuiteError as InvalidSuiteError
    from seatrial.problems import SuiteProblem as SuiteProblem
    from seatrial.suites.cases import read_cases as read_cases
    from seatrial.suites.choosing import chosen_cases as chosen_cases
    from seatrial.suites.identity import case_hash as case_hash
    from seatrial.suites.identity import stored_form as stored_form
    from seatrial.suites.identity import stored_suite as stored_suite
    from seatrial.suites.identity import suite_hash as suite_hash
    from seatrial.suites.labels import HumanLabel as HumanLabel
    from seatrial.suites.labels import read_labels as read_labels
    from seatrial.suites.load import load_suite as load_suite
    from seatrial.suites.secrets import Secrets as Secrets
    from seatrial.suites.suite import Budget as Budget
    from seatrial.suites.suite import CaseSource as CaseSource
    from seatrial.suites.suite import Grading as Grading
    from seatrial.suites.suite import Suite as Suite
    from seatrial.suites.suite import Timeouts as Timeouts
    from seatrial.suites.validate import validate_suite as validate_suite

__getattr__, __all__ = attach(
    __name__,
    {
        "seatrial._support.environment": "resolve",
        "seatrial.agents.cli.config": "CliConfig",
        "seatrial.agents.config": "AgentConfig Retry",
        "seatrial.agents.http.config": "HttpConfig ModelTool ResponsePaths SubAgent",
        "seatrial.agents.http.template": "RequestTemplate",
        "seatrial.agents.python.config": "PythonConfig",
        "seatrial.agents.replay.config": "ReplayConfig",
        "seatrial.agents.stream.config": "StreamConfig",
        "seatrial.graders.registry": "GraderConfig grader_config",
        "seatrial.models.config": "AnthropicConfig ModelConfig",
        "seatrial.problems": "InvalidSuiteError SuiteProblem",
        "cases": "read_cases",
        "choosing": "chosen_cases",
        "identity": "case_hash stored_form stored_suite suite_hash",
        "labels": "HumanLabel read_labels",
        "load": "load_suite",
        "secrets": "Secrets",
        "suite": "Budget CaseSource Grading Suite Timeouts",
        "validate": "validate_suite",
    },
)
