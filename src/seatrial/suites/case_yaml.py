"""A case made of a recorded run, as YAML, and put into a suite file without touching the rest of it.

Everything that an agent sent is written as a JSON string, which YAML reads as itself: nothing in it can be a key, an
alias, a comment or another type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

import msgspec
import yaml

from seatrial._support.printable import printable
from seatrial.errors import SeatrialError
from seatrial.problems import Problems
from seatrial.runs import Case, Run
from seatrial.runs.removed import are_calls_redacted
from seatrial.suites.yaml_source import LOADER, parse_yaml
from seatrial.trajectory.completeness import known_calls, what_is_missing, what_to_do
from seatrial.trajectory.expectation import expected_as_made
from seatrial.transcript import Transcript, UserMessage

_KEPT = (
    "input",
    "messages",
    "files",
    "expected",
    "expected_outcome",
    "expected_outcome_detail",
    "tags",
    "timeout_s",
    "workspace",
)
"""What a new case has of the case that was run."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_NOT_YAML = re.compile("[\ufffe\uffff]")


class RecordedCase(msgspec.Struct, kw_only=True):
    """A case made of a run."""

    id: str
    instruction: str
    fields: dict[str, Any]
    """Other keys of the case."""
    grader: dict[str, Any] | None
    """The expectation; None when not all calls are known."""
    remarks: list[str]
    """What somebody who edits it should know."""
    unknown: str = ""
    """Why there is no expectation."""

    def data(self) -> dict[str, Any]:
        """The case as a suite has it."""
        graders = [] if self.grader is None else [self.grader]
        return {"id": self.id, "instruction": self.instruction, **self.fields, "graders": graders}


def recorded_case(run: Run, case: Case | None, case_id: str | None = None) -> RecordedCase:
    """The case of a run: what it was asked, and what it called. `case` is None for a run of the run service."""
    if case is not None:
        instruction = case.instruction
        plain = msgspec.to_builtins(case)
        fields = {name: plain[name] for name in _KEPT if plain.get(name)}
    else:
        instruction, fields = _asked(run)
    remarks = [f"From run {run.run_id}, which {_ended(run)}."]
    known = known_calls(run.completeness)
    unknown = ""
    grader = None
    if run.reading is None:
        unknown = "the run has no answer to read, so nothing is known of its calls"
    elif known.level != "complete":
        unknown = f"{what_is_missing(known)}. To do: {what_to_do(known)}"
    elif are_calls_redacted(run):
        unknown = "a secret was removed from a call: what is stored is not what the agent sent"
    else:
        grader = {"kind": "tool_trajectory", **expected_as_made(run.steps)}
        remarks += _on_calls(run)
    return RecordedCase(
        id=case_id or f"{run.case_id or run.run_id}-regression",
        instruction=instruction,
        fields=fields,
        grader=grader,
        remarks=remarks,
        unknown=unknown,
    )


def _ended(run: Run) -> str:
    return run.outcome if run.outcome in ("passed", "failed", "errored") else f"was not graded ({run.status})"


def _on_calls(run: Run) -> Iterator[str]:
    if run.outcome != "passed":
        yield "These are the calls that it made, not those that it should have made: correct them."
    if not run.steps:
        yield "It made no calls: none is allowed."
        return
    yield "exact: these calls in this order, and no others. in_order allows others between them."
    if any(step.arguments_text is not None for step in run.steps):
        yield "A call without args had arguments that are not JSON: any arguments fit it."


def _asked(run: Run) -> tuple[str, dict[str, Any]]:
    """What a run of the run service was asked: its last user message, and those before it."""
    from seatrial import formats

    transcript = run.transcript
    given = [] if transcript is None else [transcript.messages[index] for index in transcript.given]
    last = next((at for at in reversed(range(len(given))) if isinstance(given[at], UserMessage)), None)
    asked = given[last] if last is not None else None
    if last is None or not isinstance(asked, UserMessage):
        raise SeatrialError("empty_input", f"the run {run.run_id} was not given a message of a user to make a case of")
    before = msgspec.json.decode(formats.write(Transcript(given[:last]), "openai").data) if last else []
    return asked.plain_text(), {"messages": before} if before else {}


def case_yaml(case: RecordedCase, indent: int = 0) -> str:
    """The case as an item of `cases`, at this indentation; ends with a newline."""
    return "".join(f"{' ' * indent}{line}".rstrip() + "\n" for line in _lines(case))


def _lines(case: RecordedCase) -> Iterator[str]:
    for number, (key, value) in enumerate(case.data().items()):
        start = "  " if number else "- "
        if key == "graders":
            for remark in case.remarks:
                yield from _comment(remark)
            if case.unknown:
                yield from _comment(f"No check on its calls: {case.unknown}.")
                yield from _comment("Add a grader: a case that nothing judges is refused.")
            yield from _graders(case)
        elif isinstance(value, str):
            yield from _text(f"{start}{key}:", value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{start}{key}:"
            yield from (f"    - {_flow(item)}" for item in value)
        else:
            yield f"{start}{key}: {_flow(value)}"


def _comment(text: str) -> list[str]:
    return [f"  # {line}" for line in wrap(printable(" ".join(text.split())), 100)]


def _graders(case: RecordedCase) -> Iterator[str]:
    if case.grader is None:
        yield "  graders: []"
        return
    yield "  graders:"
    yield from (f"    {line}" for line in grader_lines(case.grader))


def grader_lines(grader: Mapping[str, Any]) -> Iterator[str]:
    """A grader as an item of `graders`, line by line: each expected call has one of its own."""
    for number, (key, value) in enumerate(grader.items()):
        start = "  " if number else "- "
        if key in ("expected", "forbidden") and isinstance(value, list) and value:
            yield f"{start}{key}:"
            yield from (f"    - {_flow(item)}" for item in value)
        else:
            yield f"{start}{key}: {_flow(value)}"


def _text(head: str, text: str) -> Iterator[str]:
    """A text: as it is where that is safe, in lines where it has several, else quoted."""
    lines = text.split("\n")
    whole = len(lines) > 1 and printable(text) == text and "\t" not in text and not _NOT_YAML.search(text)
    if whole and all(line == line.rstrip() for line in lines) and lines[-1] and lines[0] and lines[0][0] != " ":
        yield f"{head} |-"
        yield from (f"    {line}" for line in lines)
    else:
        yield f"{head} {_flow(text)}"


def _flow(value: Any) -> str:
    """A value on one line: names as they are, every other text in quotes."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        quoted = json.dumps(value.encode("utf-8", "replace").decode(), ensure_ascii=False)
        # How `printable` writes a character is how YAML does.
        return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", printable(quoted))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(str(key))}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value)


def with_case(text: str, name: str, case: RecordedCase) -> str:
    """The text of a suite file with one more case at the end of its `cases`; everything else is as it was."""
    if "\r\n" in text:
        return with_case(text.replace("\r\n", "\n"), name, case).replace("\n", "\r\n")
    text = text if text.endswith("\n") else f"{text}\n"
    before = _value(text, name)
    cases = before.get("cases") if isinstance(before, dict) else None
    if not isinstance(cases, list):
        raise _not_there(name, "it has no list `cases`")
    if any(isinstance(found, dict) and found.get("id") == case.id for found in cases):
        raise SeatrialError("usage", f"{name} has a case {case.id!r} already", hint="name the new one with --id")
    sequence = _sequence(text)
    if sequence is None or sequence.flow_style or not sequence.value:
        raise _not_there(name, "its `cases` are not written as a list of lines that begin with `-`")
    lines = text.split("\n")
    end = sequence.end_mark.line
    while end > 0 and (end >= len(lines) or not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    added = case_yaml(case, sequence.start_mark.column).rstrip("\n").split("\n")
    space = [""] if end > 0 and "" in [line.strip() for line in lines[sequence.start_mark.line : end]] else []
    changed = "\n".join([*lines[:end], *space, *added, *lines[end:]])
    if _value(changed, name) != {**before, "cases": [*cases, case.data()]}:
        raise _not_there(name, "it cannot be added without changing something else")
    return changed


def _sequence(text: str) -> yaml.SequenceNode | None:
    root = yaml.compose(text, Loader=LOADER)
    if not isinstance(root, yaml.MappingNode):
        return None
    for key, value in root.value:
        if isinstance(key, yaml.ScalarNode) and key.value == "cases":
            return value if isinstance(value, yaml.SequenceNode) else None
    return None


def _value(text: str, name: str) -> Any:
    problems = Problems()
    found = parse_yaml(text.encode(), name, problems)
    if found is None or problems.count:
        raise problems.error()
    return found[0]


def _not_there(name: str, why: str) -> SeatrialError:
    return SeatrialError(
        "usage", f"the case cannot be added to {name}: {why}", hint="print it without --into, and paste it yourself"
    )
