"""A turn of the model beside its words: the calls it makes, how it ended, how many tokens it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.formats.chat.decoding import drop_key
from seatrial.formats.chat.notes import At, NoteTally, json_kind
from seatrial.transcript import AssistantMessage, Note, StopReason, Transcript, Usage, note_code, pointer
from seatrial.transcript.arguments import detect_unparsed
from seatrial.transcript.salvage import STOP_REASON_GUESSED, UNKNOWN_STOP_REASON, VALUE_DROPPED

STREAM_TRUNCATED = note_code(
    "stream_truncated",
    "A stream, or a response, ended before the turn did; what had arrived is kept. Where nothing says how the turn "
    "ended, it ends in an error.",
    "serious",
)
ARGUMENTS_CUT = note_code(
    "arguments_cut", "The turn ended inside the arguments of a tool call; the text that had come is kept.", "serious"
)
CALL_MISSING = note_code(
    "call_missing", "The record says that the model called a tool, and there is no such call in it.", "serious"
)
SUBAGENT_MISSING = note_code(
    "subagent_missing",
    "A sub-agent was started, or called as a tool, whose own record is not in this one; what it called is unknown.",
    "serious",
)
CALL_DISCARDED = note_code(
    "call_discarded",
    "The provider says that the model tried to call a tool, and discarded the call; which one is unknown.",
    "serious",
)
CHOICE_DROPPED = note_code(
    "choice_dropped", "The model gave several answers; all but the first were dropped.", "serious"
)
TURN_CUT = note_code(
    "turn_cut", "The last turn of the agent was cut off by a limit; a call may be missing at its end.", "serious"
)

_DISCARDED = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE",
     "MALFORMED_TOOL_USE", "MALFORMED_MODEL_OUTPUT"}
)  # fmt: skip
"""Stop reasons of Gemini and of Bedrock that mean a lost call."""
_MAX_COUNT = 2**63 - 1

_COUNT_NAMES = {
    "input_tokens": ("input_tokens", "inputTokens", "prompt_tokens", "promptTokens", "input"),
    "output_tokens": ("output_tokens", "outputTokens", "completion_tokens", "completionTokens", "output"),
    "cache_creation_input_tokens": (
        "cache_creation_input_tokens",
        "cacheCreationInputTokens",
        "cacheWriteInputTokens",
        "cache_write_tokens",
    ),
    "cache_read_input_tokens": (
        "cache_read_input_tokens",
        "cacheReadInputTokens",
        "cachedInputTokens",
        "cache_read_tokens",
        "cached_tokens",
        "cached",
    ),
}
_WITHIN_INPUT = (
    ("prompt_tokens_details", "cached_tokens", "cache_read_input_tokens"),
    ("input_tokens_details", "cached_tokens", "cache_read_input_tokens"),
    ("input_token_details", "cache_read", "cache_read_input_tokens"),
    ("input_token_details", "cache_creation", "cache_creation_input_tokens"),
)
"""Counts that the input tokens include; in the transcript they stand apart, and add up to the same."""


class TurnEnding(msgspec.Struct):
    """How a turn ended, in the provider's words."""

    stop_reason: Any = None
    error: Any = None
    cut_off: bool = False
    """Whether a stream ended before the turn did."""


def end_turn(
    message: AssistantMessage,
    ending: TurnEnding,
    reasons: Mapping[str, StopReason],
    run: Transcript,
    tally: NoteTally,
    at: At,
) -> None:
    """Set how the turn of a message ended; until now only its tool calls, or their absence, said so."""
    if ending.error is not None:
        message.stop_reason = StopReason.ERROR
        message.error_message = _error_message(ending.error)
        keep_in_metadata(run, "error", ending.error, tally, at)
    elif ending.cut_off and ending.stop_reason is None:
        # Nobody knows why the stream broke off, so the turn did not end well.
        message.stop_reason = StopReason.ERROR
        message.error_message = "the stream ended before the turn did"
        tally.add(STREAM_TRUNCATED, at, message.error_message)
    elif ending.stop_reason is None:
        tally.add(STOP_REASON_GUESSED, at, f"no stop reason was given; read as {str(message.stop_reason)!r}")
    else:
        if ending.cut_off:
            tally.add(STREAM_TRUNCATED, at, "the stream ended without its last event")
        given = ending.stop_reason
        note_discarded_call(given, tally, at)
        reason = reasons.get(given) if type(given) is str else None
        if reason is None:
            reason = StopReason.OTHER
            shown = repr(given[:100]) if type(given) is str else json_kind(given)
            tally.add(UNKNOWN_STOP_REASON, at, f"the stop reason {shown} was read as 'other'")
        # Some providers name a natural end also when they stop for a tool; the calls know better.
        if reason is not StopReason.END_TURN:
            message.stop_reason = reason
        if reason is StopReason.MAX_TOKENS:
            note_cut_arguments(message, tally, at)
        if reason is StopReason.TOOL_USE and not message.tool_calls():
            tally.add(CALL_MISSING, at, f"the turn ended with {given!r}, and no call is here")


def _error_message(error: Any) -> str:
    text = error.get("message") if type(error) is dict else error
    return text if type(text) is str else wire.encode(error).decode()


def note_discarded_call(stop_reason: Any, tally: NoteTally, at: At) -> None:
    """Note that a turn ended because the provider could not make sense of a call that the model wrote."""
    if type(stop_reason) is str and stop_reason.upper() in _DISCARDED:
        tally.add(CALL_DISCARDED, at, f"the turn ended with {stop_reason!r}: a call of the model's is not here")


def find_cut_turn(run: Transcript) -> list[Note]:
    """A note when the last turn of the agent was cut off; one that was continued in another turn was not."""
    done = run.done()
    last = next((message for message in reversed(done) if type(message) is AssistantMessage), None)
    if last is None or last.stop_reason is not StopReason.MAX_TOKENS:
        return []
    index = next(index for index, message in enumerate(run.messages) if message is last)
    return [Note(TURN_CUT, pointer("messages", index), "the last turn ended at a limit")]


def note_cut_arguments(message: AssistantMessage, tally: NoteTally, at: At) -> None:
    """Note that a turn which ended too early has a call whose arguments are not whole."""
    for call in message.tool_calls():
        if detect_unparsed(call.arguments) is not None:
            tally.add(ARGUMENTS_CUT, at, f"the arguments for {call.name[:40]!r} were cut off")


def keep_in_metadata(run: Transcript, key: str, what: Any, tally: NoteTally, at: At) -> None:
    """Keep in the run's metadata what belongs to no message."""
    # A recording may hold several responses, the metadata only one of each.
    if run.metadata.setdefault(key, what) != what:
        drop_key(key, what, tally, at)


def is_count(value: Any) -> bool:
    """Whether a value is a number of tokens."""
    return type(value) is int and 0 <= value <= _MAX_COUNT


def token_count(counts: Mapping[str, Any], key: str, tally: NoteTally, at: At) -> int:
    """The count under a key, 0 when there is none."""
    count = counts.get(key)
    if count is None:
        return 0
    if is_count(count):
        return int(count)
    tally.add(VALUE_DROPPED, (*at, key), f"expected a number of tokens, got {json_kind(count)}; read as 0")
    return 0


def other_counts(counts: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    """The counts that have no field of their own; what is zero everywhere says nothing."""
    return {
        key: count
        for key, count in counts.items()
        if key not in read and (any(count.values()) if type(count) is dict else count)
    }


def read_usage(value: Any) -> Usage | None:
    """The counts that have a known name and fit into 64 bits.

    None when what was read or what was written is not known: half a count would be shown, and judged, as a whole one.
    """
    if type(value) is not dict:
        return None
    counts: dict[str, int] = {}
    for field, names in _COUNT_NAMES.items():
        for name in names:
            count = value.get(name)
            if is_count(count):
                counts[field] = value[name]
                break
    if "input_tokens" not in counts or "output_tokens" not in counts:
        return None
    for details, name, field in _WITHIN_INPUT:
        within = value.get(details)
        count = within.get(name) if type(within) is dict else None
        if type(count) is int and 0 < count <= counts.get("input_tokens", 0) and field not in counts:
            counts[field] = count
            counts["input_tokens"] -= count
    return Usage(**counts)


def split_cached(total: Any, output: Any, *, read: Any = None, written: Any = None) -> dict[str, int] | None:
    """Counts for `read_usage`, out of an input count that includes what was read from or written to a cache.

    None when what was read or what was written is not known, or when all counts are 0: some libraries write that for
    counts that they do not have.
    """
    if not (is_count(total) and is_count(output)):
        return None
    cached, stored = _count_or_zero(read), _count_or_zero(written)
    counts = {
        "input_tokens": max(_count_or_zero(total) - cached - stored, 0),
        "output_tokens": _count_or_zero(output),
        "cache_creation_input_tokens": stored,
        "cache_read_input_tokens": cached,
    }
    return counts if any(counts.values()) else None


def _count_or_zero(value: Any) -> int:
    return value if is_count(value) else 0
