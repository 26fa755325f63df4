"""`{PROMPT}` and its like in the command of a CLI agent. A literal brace is written twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

PLACEHOLDERS: dict[str, str] = {
    "PROMPT": "the instruction of the case",
    "PROMPT_FILE": "a file with the instruction; in a batch, one JSON line for each case",
    "EVAL_ID": "the id of the case",
    "ATTEMPT": "which attempt this is, from 1",
    "FILES": "the files of the case, one in each line",
    "OUTPUT_FILE": "where the agent writes its answer, instead of standard output",
    "WORKDIR": "the workspace of the case, else an empty directory of this run's own",
    "SUITE_FILE": "the suite file",
    "SUITE_DIR": "the directory of the suite file",
}
"""Every placeholder and what stands there when the agent runs."""
ONE_CASE = frozenset({"PROMPT", "EVAL_ID", "FILES"})
"""Those that mean nothing to a process that takes all cases at once."""

_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_LITERAL = {"{{": "{", "}}": "}"}


def used(argument: str) -> Iterator[str | None]:
    """The names in braces, known or not; None for a brace that stands alone."""
    for match in _BRACES.finditer(argument):
        if match.group() not in _LITERAL:
            yield match.group(1)


def put_in(argument: str, values: Mapping[str, str]) -> str:
    """The argument with the values in place. It stays one argument, and braces in values mean nothing."""
    return _BRACES.sub(lambda match: _LITERAL.get(match.group()) or values.get(match[1] or "", match.group()), argument)
