"""The JSON Schema of suite files, for editors, with what each key means taken from under its field."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any

import msgspec

from seatrial._support.target import TARGET
from seatrial.agents import AGENTS
from seatrial.agents.config import Retry
from seatrial.agents.http.config import ModelTool, ResponsePaths, SubAgent
from seatrial.agents.http.template import RequestTemplate
from seatrial.graders.registry import GRADERS, KIND
from seatrial.models.config import AnthropicConfig, ModelConfig
from seatrial.runs import Case, WorkspaceSource
from seatrial.suites.suite import Budget, CaseSource, SuiteFile, Timeouts
from seatrial.suites.world_seed import WorldSeed

STRUCTS: tuple[type[msgspec.Struct], ...] = (
    SuiteFile,
    RequestTemplate,
    ResponsePaths,
    ModelTool,
    SubAgent,
    Retry,
    Timeouts,
    Budget,
    ModelConfig,
    AnthropicConfig,
    CaseSource,
    Case,
    WorkspaceSource,
    WorldSeed,
)
"""Everything that a suite file is made of, but agents and graders."""


def suite_json_schema() -> dict[str, Any]:
    """The schema of a suite file, with the agents and graders of installed packages."""
    kinds, agents = dict(GRADERS.items()), dict(AGENTS.items())
    structs = [*STRUCTS, *agents.values(), *kinds.values()]
    refs, components = msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")
    ref_of = dict(zip(structs, refs, strict=True))
    definition = {struct: components[ref["$ref"].rpartition("/")[2]] for struct, ref in ref_of.items()}
    for struct in structs:
        _describe(definition[struct]["properties"], struct)
    for kind, struct in (*agents.items(), *kinds.items()):
        schema = definition[struct]
        schema["properties"] = {KIND: {"const": kind}, **schema["properties"]}
        schema["required"] = [KIND, *schema.get("required", [])]

    for model in (ModelConfig, AnthropicConfig):
        schema = definition[model]
        schema["properties"] = {KIND: {"const": model.kind}, **schema["properties"]}
    definition[AnthropicConfig]["required"].insert(0, KIND)

    suite, case = definition[SuiteFile], definition[Case]
    suite["properties"]["agents"]["additionalProperties"] = {
        "anyOf": [*(ref_of[struct] for struct in agents.values()), _CLASS]
    }
    suite["properties"]["judge"]["anyOf"] += [ref_of[AnthropicConfig], _CLASS]
    suite["properties"]["cases"]["items"] = {"anyOf": [ref_of[Case], ref_of[CaseSource]]}
    case["required"].remove("id")  # `<file>-<number>` when absent
    case["properties"]["world"] |= ref_of[WorldSeed]
    for owner in (suite, case):
        owner["properties"]["graders"]["items"] = {"anyOf": [*(ref_of[struct] for struct in kinds.values()), _CLASS]}
    return {**ref_of[SuiteFile], "$defs": components}


_CLASS = {
    "type": "object",
    "description": "A class of one's own, which knows its keys.",
    "properties": {KIND: {"type": "string", "pattern": TARGET, "description": "`package.module:Class`"}},
    "required": [KIND],
}


@cache
def field_docs(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What each field of a struct means, as written under it, there or in a struct it is made from."""
    docs: dict[str, str] = {}
    for parent in struct.__mro__[::-1]:
        if not issubclass(parent, msgspec.Struct) or parent is msgspec.Struct:
            continue
        try:
            source = inspect.getsource(parent)
        except OSError:
            continue  # a grader that was made in an interactive session, say
        body = ast.parse(dedent(source)).body[0]
        for field, after in pairwise(body.body if isinstance(body, ast.ClassDef) else []):
            match field, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[name] = " ".join(text.split())
    return docs


def _describe(properties: dict[str, Any], struct: type[msgspec.Struct]) -> None:
    docs = field_docs(struct)
    for field in msgspec.structs.fields(struct):
        if field.name in docs:
            properties[field.encode_name]["description"] = docs[field.name]
