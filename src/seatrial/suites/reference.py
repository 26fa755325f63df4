"""Every key of a suite file as Markdown, made from the types, so that the page cannot drift from the code."""

from __future__ import annotations

import re
from inspect import getdoc

import msgspec
from msgspec import inspect

from seatrial.agents.cli.placeholders import PLACEHOLDERS
from seatrial.agents.config import AgentConfig, Retry
from seatrial.agents.http.config import ModelTool, ResponsePaths, SubAgent
from seatrial.agents.http.template import PLACEHOLDERS as HTTP_PLACEHOLDERS
from seatrial.agents.http.template import RequestTemplate
from seatrial.agents.registry import AGENTS
from seatrial.graders import GRADERS, Grader
from seatrial.graders.json_answer import Field
from seatrial.graders.judge_prompt import Criterion
from seatrial.models.config import AnthropicConfig, ModelConfig
from seatrial.runs import Case, WorkspaceSource
from seatrial.suites.schema import field_docs
from seatrial.suites.seed_csv import COLUMNS, CellReading
from seatrial.suites.shape import expected, shape_of
from seatrial.suites.suite import Budget, CaseSource, SuiteFile, Timeouts
from seatrial.suites.world_seed import WorldSeed

_TITLES: dict[str, type[msgspec.Struct]] = {
    "the file": SuiteFile,
    "agents: every kind": AgentConfig,
    **{f"agents: {name}": kind for name, kind in AGENTS.built_in().items()},
    "agents: http, request": RequestTemplate,
    "agents: http, response": ResponsePaths,
    "agents: http, tools": ModelTool,
    "agents: http, sub_agents": SubAgent,
    "retry": Retry,
    "timeouts": Timeouts,
    "budget": Budget,
    "judge": ModelConfig,
    "judge: kind anthropic": AnthropicConfig,
    "cases: a case": Case,
    "cases: workspace": WorkspaceSource,
    "cases: from elsewhere": CaseSource,
    "cases: world": WorldSeed,
}
_GRADER_PARTS: dict[str, type[msgspec.Struct]] = {
    "field_accuracy: fields": Field,
    "judge: criteria": Criterion,
}
_READINGS: dict[CellReading, str] = {
    "text": "text",
    "word": "text",
    "json": "JSON",
    "json_or_text": "JSON or text",
    "words": "words separated by commas",
}
_GENERATED = re.compile(r"(<!-- (keys|graders): generated[^>]*-->\n).*(<!-- end of \2 -->)", re.DOTALL)


def with_reference(page: str) -> str:
    """A page with the tables of keys, or of graders, put between its two marks."""
    tables = {"keys": suite_reference, "graders": grader_reference}
    return _GENERATED.sub(lambda match: f"{match[1]}\n{tables[match[2]]()}\n{match[3]}", page)


def grader_reference() -> str:
    """The tables of every kind of grader."""
    parts = [f"### every kind\n\n{_table(Grader)}"]
    for name, kind in GRADERS.built_in().items():
        about = " ".join((getdoc(kind) or "").split())
        parts.append(f"### {name}\n\n{about}\n\n{_table(kind)}")
    parts += [f"### {title}\n\n{_table(struct)}" for title, struct in _GRADER_PARTS.items()]
    return "\n".join(parts)


def suite_reference() -> str:
    """The tables of keys, placeholders and CSV columns."""
    tables = [f"### {title}\n\n{_table(struct)}" for title, struct in _TITLES.items()]
    placeholders = "".join(f"| `{{{name}}}` | {meaning} |\n" for name, meaning in PLACEHOLDERS.items())
    tables.append(f"### Placeholders of a CLI agent\n\n| placeholder | stands for |\n| --- | --- |\n{placeholders}")
    placeholders = "".join(f"| `{{{{{name}}}}}` | {meaning} |\n" for name, meaning in HTTP_PLACEHOLDERS.items())
    tables.append(f"### Placeholders of an HTTP agent\n\n| placeholder | stands for |\n| --- | --- |\n{placeholders}")
    columns = "".join(
        f"| `{name}` | `{'.'.join(column.target)}` | {_READINGS[column.reading]} |\n"
        for name, column in COLUMNS.items()
    )
    tables.append(f"### Columns of a CSV file\n\n| column | fills | as |\n| --- | --- | --- |\n{columns}")
    return "\n".join(tables)


def _table(struct: type[msgspec.Struct]) -> str:
    shape = shape_of(struct)
    docs = field_docs(struct)
    families = [parent for parent in (AgentConfig, Grader) if issubclass(struct, parent) and struct is not parent]
    shared = {name for parent in families for name in parent.__struct_fields__}
    rows = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for field in shape.fields if isinstance(shape, inspect.StructType) else ():
        if field.name not in shared:
            value = expected(field.type).replace("|", "\\|")
            # A case may come without an id, and a suite's case never is.
            default = "`<file>-<number>`" if (struct, field.name) == (Case, "id") else _default(field)
            rows.append(f"| `{field.encode_name}` | {value} | {default} | {docs.get(field.name, '')} |")
    return "\n".join(rows) + "\n"


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    if field.default in (None, "", msgspec.NODEFAULT) or isinstance(field.default, msgspec.Struct):
        return ""
    return f"`{str(field.default).lower()}`" if isinstance(field.default, bool) else f"`{field.default}`"
