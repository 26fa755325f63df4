"""Suite files and their cases: read, checked as a whole before anything runs, and the same as typed objects."""

from seatrial._support.environment import resolve
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import AgentConfig, Retry
from seatrial.agents.http.config import HttpConfig, ModelTool, ResponsePaths, SubAgent
from seatrial.agents.http.template import RequestTemplate
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.replay.config import ReplayConfig
from seatrial.agents.stream.config import StreamConfig
from seatrial.graders.registry import GraderConfig, grader_config
from seatrial.models.config import AnthropicConfig, ModelConfig
from seatrial.problems import InvalidSuiteError, SuiteProblem
from seatrial.suites.cases import read_cases
from seatrial.suites.identity import case_hash, stored_form, stored_suite, suite_hash
from seatrial.suites.labels import HumanLabel, read_labels
from seatrial.suites.load import load_suite
from seatrial.suites.secrets import Secrets
from seatrial.suites.suite import Budget, CaseSource, Grading, Suite, Timeouts
from seatrial.suites.validate import validate_suite

__all__ = [
    "AgentConfig",
    "AnthropicConfig",
    "Budget",
    "CaseSource",
    "CliConfig",
    "GraderConfig",
    "Grading",
    "HttpConfig",
    "HumanLabel",
    "InvalidSuiteError",
    "ModelConfig",
    "ModelTool",
    "PythonConfig",
    "ReplayConfig",
    "RequestTemplate",
    "ResponsePaths",
    "Retry",
    "Secrets",
    "StreamConfig",
    "SubAgent",
    "Suite",
    "SuiteProblem",
    "Timeouts",
    "case_hash",
    "grader_config",
    "load_suite",
    "read_cases",
    "read_labels",
    "resolve",
    "stored_form",
    "stored_suite",
    "suite_hash",
    "validate_suite",
]
