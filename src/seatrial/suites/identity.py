"""What a suite and a case are called by their content, whatever the order of keys or the file they are in."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_WRITTEN_DEPTH, is_too_deep
from seatrial.agents.registry import agent_plain, stored_agent
from seatrial.graders.grader import Grader
from seatrial.graders.registry import grader_config
from seatrial.models.registry import KIND, model_config
from seatrial.runs import Case
from seatrial.suites.cases import case_format, read_cases
from seatrial.suites.suite import CaseSource, Suite, SuiteKeys

_ENCODER = msgspec.json.Encoder(order="sorted")


def stored_form(suite: Suite) -> dict[str, Any]:
    """A suite as it is stored and shown. Variables are in it as `${NAME}`, as they are in the suite itself."""
    graders = [grader_config(each) if isinstance(each, Grader) else each for each in suite.graders]
    judge = None if suite.judge is None else model_config(suite.judge)
    stored = msgspec.structs.replace(
        suite, file=None, grading="all", graders=graders, judge=judge, agents={}, functions=[]
    )
    plain: dict[str, Any] = msgspec.to_builtins(stored)
    if suite.agents:
        plain["agents"] = {name: agent_plain(config) for name, config in suite.agents.items()}
    return plain


def stored_suite(plain: Mapping[str, Any]) -> Suite:
    """The suite of a stored form, without its cases, which are stored by themselves."""
    keys = {key: value for key, value in plain.items() if key in SuiteKeys.__struct_fields__}
    judge = keys.get("judge")
    if isinstance(judge, dict) and KIND in judge:
        del keys["judge"]
    shared = msgspec.structs.asdict(msgspec.convert(keys, SuiteKeys))
    shared["agents"] = {name: stored_agent(agent) for name, agent in shared["agents"].items()}
    suite = Suite(**shared)
    # Of another kind than ours: its class is imported when it is asked.
    return suite if "judge" in keys else msgspec.structs.replace(suite, judge=judge)


def case_hash(case: Case) -> str:
    """The content of a case, as 32 hexadecimal digits."""
    return _digest(case).hex()


def suite_hash(suite: Suite, *, variables: Mapping[str, str] | None = None) -> str:
    """The content of a suite with all its cases, as 32 hexadecimal digits; what it is called is not a part of it.

    Cases count by what they say, not by whether they are inline or in a file. Those of a function are not made for
    this; its name and arguments stand for them.
    """
    rest = msgspec.structs.replace(suite, cases=[], name="", description="")
    total = blake2b(_digest(stored_form(rest)), digest_size=16)
    for entry in suite.cases:
        if isinstance(entry, CaseSource) and case_format(entry) == "python":
            total.update(_digest(entry))
            continue
        alone = msgspec.structs.replace(suite, cases=[entry])
        for case in read_cases(alone, variables=variables, checked=False):
            total.update(_digest(case))
    return total.hexdigest()


def _digest(value: object) -> bytes:
    try:
        data = _ENCODER.encode(value)
    except UnicodeEncodeError:
        data = _ENCODER.encode(wire.without_surrogates(value))
    except RecursionError:
        raise wire.too_deep(MAX_WRITTEN_DEPTH) from None
    if is_too_deep(data, MAX_WRITTEN_DEPTH):
        raise wire.too_deep(MAX_WRITTEN_DEPTH)
    return blake2b(data, digest_size=16).digest()
