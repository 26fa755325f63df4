"""Calls that stand in a text as JSON, or as what Python writes of a dict: alone, in a fence, or among sentences."""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from seatrial.transcript.arguments import key_twice, parse_arguments

LONGEST: Final = 100_000
"""How much of a text is looked at as JSON."""
_LONGEST_LITERAL: Final = 10_000
_MOST_UNOPENED: Final = 1_000
"""How often a text may go on as something else than the JSON that it began as."""
_BRACKET: Final = re.compile(r"(?<![\w\"'=(,\[{])[\[{](?=\s{0,99}[\"'\[{])")
_BEFORE: Final = 200
_BULLET: Final = re.compile(r"[^\w\"'=(),\[\]{}]*(?:\d{1,3}\))?")
_LEADS: Final = re.compile(r"(?:[.!?>]|[^\"']:[*_]{0,3}|`{3,}\w{0,20})\Z")
_LONGEST_LEAD: Final = 24
"""What may stand on the line before JSON that is no part of code: nothing, a bullet, a fence, a tag, or a sentence."""
_WRITTEN: Final = (
    ("name", ("arguments", "parameters", "args")),
    ("function", ("arguments", "parameters", "args")),
    ("tool", ("tool_input", "arguments", "parameters", "args", "input")),
    ("tool_name", ("tool_input", "arguments", "parameters", "args", "input")),
    ("action", ("action_input",)),
)
_LISTS: Final = ("tool_calls", "toolCalls", "tool_uses")
_INSIDE: Final = (*_LISTS, "function", "function_call", "tool_call", "tool", "action", "command")
_TYPES: Final = frozenset({"tool_use", "tool_call", "tool-call", "toolCall", "function_call", "mcp_tool_use"})
_KEYS_OF_CALLS: Final = re.compile(
    rf"[\"'](?:(?:arguments|parameters|args|tool_input|action_input|{'|'.join(_LISTS)})[\"']\s*:"
    rf"|(?:{'|'.join(sorted(_TYPES))})[\"'])"
)
"""In what cannot be opened, any of these leaves a doubt; and so do both of the following."""
_TOOL_KEY: Final = re.compile(r"[\"']tool(?:_name)?[\"']\s*:")
_INPUT_KEY: Final = re.compile(r"[\"']input[\"']\s*:")
_JSON: Final = json.JSONDecoder(strict=False)

WrittenCall = tuple[str, dict[str, Any]]
"""The name and the arguments of a call."""


def json_calls(text: str) -> list[WrittenCall] | None:
    """The calls that stand in a text; None when there may be some in what cannot be opened.

    Takes time in proportion to the text: each part of it is opened once.
    """
    if len(text) > LONGEST:
        return None if _has_keys_of_calls(text) else []
    calls: list[WrittenCall] = []
    for written in _parts(text):
        value = _open(written)
        if value is None:
            if _has_keys_of_calls(written):
                return None
        else:
            calls += _calls(value)
    return calls


def _parts(text: str) -> Iterator[str]:
    """The parts of a text that are JSON; and those that begin like it, up to where the next one begins."""
    begins = [found.start() for found in _BRACKET.finditer(text) if _is_led_to(text, found.start())]
    index = unopened = 0
    while index < len(begins):
        begin = begins[index]
        try:
            end = _JSON.raw_decode(text, begin)[1]
            index = bisect_left(begins, end)
        except json.JSONDecodeError as error:
            unopened += 1
            index = bisect_left(begins, max(error.pos, begin + 1))
            if unopened > _MOST_UNOPENED:
                index = len(begins)
            end = begins[index] if index < len(begins) else len(text)
        except (RecursionError, ValueError):  # nested without end, or a number of thousands of digits
            index, end = len(begins), len(text)
        yield text[begin:end]


def _is_led_to(text: str, begin: int) -> bool:
    before = text[max(begin - _BEFORE, 0) : begin]
    line = before[before.rfind("\n") + 1 :].rstrip()
    return _BULLET.fullmatch(line) is not None or _LEADS.search(line[-_LONGEST_LEAD:]) is not None


def _open(written: str) -> Any:
    """The value of a part of a text; None when that is not known."""
    value, not_json = parse_arguments(written)
    if not_json:
        return _literal(written.rstrip("`\n\t "))
    if type(value) is list and key_twice(written) is not None:
        return None
    return value


def _literal(text: str) -> Any:
    """The value of a dict or a list that Python wrote as text; None for anything else."""
    if len(text) > _LONGEST_LITERAL or not text.startswith(("{'", "[{'")):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _has_keys_of_calls(text: str) -> bool:
    return _KEYS_OF_CALLS.search(text) is not None or (
        _TOOL_KEY.search(text) is not None and _INPUT_KEY.search(text) is not None
    )


def _calls(value: Any) -> Iterator[WrittenCall]:
    """The calls that a value is, lists, or names under a key for calls."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if type(found) is list:
            waiting += found
        elif type(found) is dict:
            if (call := _as_call(found)) is not None:
                yield call
            waiting += [found[key] for key in _INSIDE if key in found]


def _as_call(value: dict[str, Any]) -> WrittenCall | None:
    if (
        type(kind := value.get("type")) is str
        and kind in _TYPES
        and type(name := value.get("name", value.get("toolName"))) is str
    ):
        return name, value
    for key, keys in _WRITTEN:
        found = next((name for name in keys if name in value), None)
        # A number is none: models have parameters, too.
        if found is not None and type(value.get(key)) is str and type(value[found]) in (dict, str, list, type(None)):
            return value[key], {"arguments": {} if value[found] is None else value[found]}
    return None
