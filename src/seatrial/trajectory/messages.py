"""Messages against messages: a run's against those of a reference run."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.trajectory.assign import any_order_by_key, in_order_by_key
from seatrial.trajectory.expectation import Expectation, Mode, check_reference, expectation_from_steps
from seatrial.trajectory.item import Item
from seatrial.trajectory.keys import keys
from seatrial.trajectory.matching import match
from seatrial.trajectory.names import Names
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.sources import steps_from_objects
from seatrial.trajectory.step import Step
from seatrial.trajectory.verdict import blank_result, conclude, find_differences, tally_pairs
from seatrial.transcript.arguments import PARSE_ERROR_KEY


def match_messages(mode: Mode, expected: list[Any], actual: list[Any]) -> MatchResult:
    """Expect the calls of the reference messages, in every accepted shape, and match those of the others with them.

    The same as taking the steps of both and matching them. When all are messages of OpenAI's shape with nothing unusual
    about them, the calls are compared as they were sent, and steps are made only of those that differ.
    """
    return _usual(mode, expected, actual) or match(
        expectation_from_steps(mode, steps_from_objects(expected)[0]), steps_from_objects(actual)[0]
    )


def _usual(mode: Mode, expected: list[Any], actual: list[Any]) -> MatchResult | None:
    wanted, made = _calls(expected), _calls(actual)
    if wanted is None or made is None:
        return None
    (tools, wanted_texts), (called, made_texts) = wanted, made
    check_reference(mode, len(tools))
    same = wanted == made
    try:
        texts = made_texts if same else list({*wanted_texts, *made_texts})
        "".join(texts), "".join(tools), "".join(called)  # the quickest way to find out whether all are text
        values = list(map(_decode, texts))
    except (TypeError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not {*map(type, values)} <= {dict} or any([PARSE_ERROR_KEY in value for value in values]):  # noqa: C419
        return None
    kept = range(len(called))
    expectation = Expectation(mode, tools)
    result = blank_result(mode)
    if same:
        tally = tally_pairs(result, expectation, kept, list(kept), list(kept))
    else:
        spelled = keys(values)
        if len({*spelled}) < len(texts):  # some differ as text but not as JSON
            key_of = dict(zip(texts, spelled, strict=True)).__getitem__
            wanted_keys, made_keys = list(map(key_of, wanted_texts)), list(map(key_of, made_texts))
        else:
            wanted_keys, made_keys = wanted_texts, made_texts
        assign = in_order_by_key if mode in ("in_order", "exact") else any_order_by_key
        items, places = assign(list(zip(tools, wanted_keys)), list(zip(called, made_keys)))  # noqa: B905
        tally = tally_pairs(result, expectation, kept, items, places)
        if result.missing or result.extra:
            value_of = dict(zip(texts, values, strict=True))
            find_differences(
                result,
                called,
                kept,
                lambda item: Item(Names.literal(tools[item]), value_of[wanted_texts[item]]),
                lambda step: Step(step, called[step], value_of[made_texts[step]]),
            )
    conclude(result, expectation, called, kept, tally)
    return result


def _calls(messages: list[Any]) -> tuple[list[Any], list[Any]] | None:
    """The names and the arguments, as sent, of the calls in messages where nothing is unusual; else None."""
    names: list[Any] = []
    arguments: list[Any] = []
    try:
        for message in messages:
            calls = message.get("tool_calls")
            if calls:
                if message["role"] != "assistant" or type(message["content"]) is list:
                    return None
                for call in calls:
                    function = call["function"]
                    if "name" in call:
                        return None
                    names.append(function["name"])
                    arguments.append(function["arguments"])
            elif "toolCalls" in message or (message["role"] != "tool" and type(message["content"]) is list):
                return None
    except (KeyError, TypeError, AttributeError):
        return None
    return (names, arguments) if all(names) else None


_decode = msgspec.json.Decoder().decode
