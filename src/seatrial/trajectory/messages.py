"""Messages against messages: a run's against those of a reference run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from seatrial._support.nesting import MAX_DEPTH, is_too_deep
from seatrial.errors import SeatrialError
from seatrial.trajectory.assign import any_order_by_key, in_order_by_key
from seatrial.trajectory.completeness import COMPLETE, MAX_REASONS, Completeness
from seatrial.trajectory.expectation import Expectation, Mode, check_reference, expectation_from_steps
from seatrial.trajectory.item import ExpectedCall
from seatrial.trajectory.matchers import Names
from seatrial.trajectory.matching import match
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.sources import steps_from_objects
from seatrial.trajectory.step import Step
from seatrial.trajectory.values import decode_normal, keys_of_normal
from seatrial.trajectory.verdict import blank_result, conclude, find_differences, tally_pairs
from seatrial.transcript.arguments import ARGUMENTS_NOT_JSON, PARSE_ERROR_KEY


def match_messages(mode: Mode, expected: list[Any], actual: list[Any]) -> MatchResult:
    """Expect the calls of the reference messages, in every accepted shape, and match those of the others with them.

    The same as taking the steps of both and matching them. When all are messages of OpenAI's shape with nothing unusual
    about them, the calls are compared as they were sent, and steps are made only of those that differ. Messages of
    which something was dropped are known in part; a reference that was not read whole is refused.
    """
    found = _usual(mode, expected, actual)
    if found is not None:
        return found
    reference, lost = steps_from_objects(expected)
    for note in lost:
        # A call with such arguments is there, and equal to none.
        if note.serious and note.code != ARGUMENTS_NOT_JSON:
            raise SeatrialError(
                "invalid_document", f"the reference was not read whole: {note.message}", pointer=note.pointer
            )
    steps, notes = steps_from_objects(actual)
    dropped = [note for note in notes if note.serious]
    known = Completeness("partial", "messages", ["messages"], dropped[:MAX_REASONS]) if dropped else COMPLETE
    return match(expectation_from_steps(mode, reference), steps, known)


def _usual(mode: Mode, expected: list[Any], actual: list[Any]) -> MatchResult | None:
    wanted, made = _calls(expected), _calls(actual)
    if wanted is None or made is None:
        return None
    (tools, wanted_texts), (called, made_texts) = wanted, made
    check_reference(mode, len(tools))
    try:
        if wanted == made:
            _decoded(made_texts)
            items = places = list(range(len(called)))
        else:
            wanted_keys, made_keys = _keys(tools, wanted_texts, called, made_texts)
            assign = in_order_by_key if mode in ("in_order", "exact") else any_order_by_key
            items, places = assign(wanted_keys, made_keys)
    except (TypeError, msgspec.DecodeError, UnicodeError):
        return None
    kept = range(len(called))
    expectation = Expectation(mode, tools)
    result = blank_result(mode)
    tally = tally_pairs(result, expectation, kept, items, places)
    if result.missing or result.extra:
        find_differences(
            result,
            called,
            kept,
            lambda item: ExpectedCall(Names.literal(tools[item]), _decode(wanted_texts[item])),
            lambda step: Step(step, called[step], _decode(made_texts[step])),
        )
    conclude(result, expectation, called, kept, tally)
    return result


def _keys(
    tools: list[str], wanted: list[str], called: list[str], made: list[str]
) -> tuple[list[Hashable], list[Hashable]]:
    """Keys of the calls on both sides. If the same texts were sent, and no two mean the same, they can be the keys."""
    texts = {*wanted, *made}
    if 2 * len(texts) <= len(wanted) + len(made) and len({*keys_of_normal(_decoded(texts))}) == len(texts):
        return list(zip(tools, wanted, strict=True)), list(zip(called, made, strict=True))
    return (
        [*keys_of_normal(zip(tools, _decoded(wanted), strict=True))],
        [*keys_of_normal(zip(called, _decoded(made), strict=True))],
    )


def _decoded(texts: Iterable[str]) -> list[Any]:
    """The arguments in these texts; raises when one cannot be taken for what it is."""
    texts = list(texts)
    if max(map(len, texts), default=0) > MAX_DEPTH and any(map(is_too_deep, texts)):
        raise TypeError("arguments that are nested too deeply")
    values = list(map(decode_normal, texts))
    if any([PARSE_ERROR_KEY in value for value in values]):  # noqa: C419 (a list is quicker)
        raise TypeError("arguments that a reader could not parse")
    return values


def _calls(messages: list[Any]) -> tuple[list[str], list[str]] | None:
    """The names and the arguments, as sent, of the calls in messages where nothing is unusual; else None."""
    names: list[str] = []
    arguments: list[str] = []
    ids = set()
    try:
        for message in messages:
            role, content = message["role"], message["content"]
            read = 2
            if role == "tool":
                # The result of a call that is nowhere is not usual: the call is missing.
                if message["tool_call_id"] not in ids:
                    return None
                read = 3
            elif type(content) is not str and content is not None:
                return None
            elif "tool_calls" in message:
                read = 3
                if role != "assistant":
                    return None
                for call in message["tool_calls"] or ():
                    function = call["function"]
                    if len(call) != (2 + ("type" in call)) or len(function) != 2:
                        return None
                    ids.add(call["id"])
                    names.append(function["name"])
                    arguments.append(function["arguments"])
            # What has other keys than these may hold a call that only a reader finds.
            if role not in _USUAL_ROLES or (len(message) != read and not message.keys() <= _USUAL_KEYS):
                return None
        # These raise if one is not text, and no other check is as quick.
        "".join(names), "".join(arguments)
    except (KeyError, TypeError, AttributeError):
        return None
    return (names, arguments) if all(names) else None


_decode = msgspec.json.Decoder().decode
_USUAL_ROLES = frozenset({"system", "user", "assistant", "tool"})
_USUAL_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "id", "name"})
