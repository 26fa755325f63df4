"""Graders as values, by the names that they have in suite files. The others are classes in `seatrial.graders`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack, overload

from seatrial.errors import SeatrialError
from seatrial.graders.answer import Contains, ContainsAll, ContainsAny, Equals, IContains, Regex
from seatrial.graders.json_answer import JsonSchema
from seatrial.graders.judge import Judge
from seatrial.graders.judge_prompt import Criterion
from seatrial.graders.python import GraderFunction
from seatrial.graders.tool_trajectory import CallsMade, NeverCalls, ToolTrajectory
from seatrial.trajectory.expectation import Mode


class GraderOptions(TypedDict, total=False):
    """What every grader takes."""

    name: str
    """How reports call it."""
    weight: float
    """Its share in the weighted score of a case."""
    required: bool
    """Whether the case fails when this grader does."""
    min_score: float
    """Pass from this score on."""
    negate: bool
    """Pass when the grader fails, and the other way round."""
    timeout_s: float
    """How long it may take for one run."""


def contains(text: str | None = None, **options: Unpack[GraderOptions]) -> Contains:
    """Whether the answer has this text in it; the case's `expected` when absent."""
    return Contains(value=text, **options)


def icontains(text: str | None = None, **options: Unpack[GraderOptions]) -> IContains:
    """The same, ignoring case."""
    return IContains(value=text, **options)


def contains_all(*texts: str, ignore_case: bool = False, **options: Unpack[GraderOptions]) -> ContainsAll:
    """Whether the answer has all of these texts in it."""
    return ContainsAll(values=list(texts), ignore_case=ignore_case, **options)


def contains_any(*texts: str, ignore_case: bool = False, **options: Unpack[GraderOptions]) -> ContainsAny:
    """Whether the answer has one of these texts in it."""
    return ContainsAny(values=list(texts), ignore_case=ignore_case, **options)


def equals(value: Any = None, *, ignore_case: bool = False, **options: Unpack[GraderOptions]) -> Equals:
    """Whether the answer is exactly this; the case's `expected` when absent. What is not text is compared as JSON."""
    return Equals(value=value, ignore_case=ignore_case, **options)


def regex(pattern: str, *, whole: bool = False, **options: Unpack[GraderOptions]) -> Regex:
    """Whether the pattern is found in the answer, or matches the whole of it."""
    return Regex(pattern=pattern, whole=whole, **options)


def json_schema(schema: Any, *, fenced: bool = False, **options: Unpack[GraderOptions]) -> JsonSchema:
    """Whether the answer is JSON that fits a JSON Schema."""
    return JsonSchema(schema=schema, fenced=fenced, **options)


def calls(tool: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> CallsMade:
    """Whether the agent called this tool with at least these arguments: `calls("find_order", order="A-1009")`.

    Arguments whose names are not keywords of Python go into the mapping.
    """
    given: Any = arguments
    if given is not None and not isinstance(given, Mapping):
        told = f"the arguments of the call of `{tool}` are a {type(given).__name__}, and not a mapping"
        raise SeatrialError("invalid_config", told, hint='`calls("find_order", order="A-1009")`')
    return CallsMade(tool=tool, args={**(arguments or {}), **more})


def never_calls(*tools: str, **options: Unpack[GraderOptions]) -> NeverCalls:
    """Whether the agent called none of these tools. Errored where not all of its calls are known."""
    return NeverCalls(tools=list(tools), **options)


def tool_trajectory(
    mode: Mode, expected: Sequence[str | Mapping[str, Any]] = (), *, options: Mapping[str, Any] | None = None
) -> ToolTrajectory:
    """Whether the agent called the right tools in the right order: `tool_trajectory("exact", ["look", "refund"])`.

    An expected call is the name of a tool or a mapping; `options` are further keys of the grader.
    """
    items: list[str | dict[str, Any]] = [item if isinstance(item, str) else dict(item) for item in expected]
    return ToolTrajectory(mode=mode, expected=items, **(options or {}))


def judge(*criteria: str, instructions: str = "", votes: int = 1, **options: Unpack[GraderOptions]) -> Judge:
    """What a chat model says of the run (`Suite(judge=...)` names it): whether it met these criteria."""
    rubric = [Criterion(name=f"criterion {index}", description=text) for index, text in enumerate(criteria, start=1)]
    return Judge(criteria=rubric, instructions=instructions, votes=votes, **options)


@overload
def grader(function: Callable[..., Any], /) -> GraderFunction: ...
@overload
def grader(**options: Unpack[GraderOptions]) -> Callable[[Callable[..., Any]], GraderFunction]: ...
def grader(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> GraderFunction | Callable[[Callable[..., Any]], GraderFunction]:
    """Make a grader of a function: `@grader`, or `@grader(name="polite", weight=2)`.

    The function is called with the subject (`answer`, `run`, `case`), and returns a bool, a score from 0 to 1, a score
    with a reason, a mapping of a verdict's keys, or a `Verdict`. It may be async.
    """
    if unknown := [option for option in options if option not in GraderOptions.__optional_keys__]:
        hint = f"one of {', '.join(sorted(GraderOptions.__optional_keys__))}"
        raise SeatrialError("invalid_config", f"`grader()` has no argument `{unknown[0]}`", hint=hint)
    if function is not None:
        return GraderFunction(function, options)
    return partial(GraderFunction, options=options)
