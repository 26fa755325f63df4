"""What a chat completion says about its turn: the choice, why it finished, what it took."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.formats.parts import At, json_kind
from seatrial.formats.shape import Shape
from seatrial.formats.tally import NoteTally
from seatrial.formats.turn import TurnEnding, end_turn, is_count, other_counts, tell_run, token_count
from seatrial.transcript import AssistantMessage, StopReason, Transcript, Usage, note_code
from seatrial.transcript.salvage import VALUE_DROPPED

CHOICE_DROPPED = note_code(
    "choice_dropped", "The model gave several answers; all but the first were dropped.", "serious"
)

_FINISH_REASONS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_READ = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "cost"})
_READ_DETAILS = frozenset({"cached_tokens", "cache_write_tokens"})


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """One answer of a response, or a piece of it in a stream."""

    index: Any = None
    message: msgspec.Raw = msgspec.Raw()
    delta: msgspec.Raw = msgspec.Raw()
    finish_reason: Any = None
    native_finish_reason: Any = None
    """The same in the provider's own words."""
    logprobs: Any = None
    error: Any = None


CHOICE = Shape(Choice)


class CompletionUsage(msgspec.Struct):
    """What one model call took."""

    tokens: Usage
    cost_usd: float | None
    """OpenRouter's `cost`."""
    rest: dict[str, Any]
    """What has no field of its own."""


def read_usage(given: Any, tally: NoteTally, at: At) -> CompletionUsage | None:
    """The counts; None, with a note, when this is no object of them.

    `prompt_tokens` includes the tokens that were read from or written to a cache; in the transcript the three are
    apart, and their sum is `prompt_tokens`.
    """
    if type(given) is not dict:
        tally.add(VALUE_DROPPED, at, f"expected an object of token counts, got {json_kind(given)}")
        return None
    if not (is_count(given.get("prompt_tokens")) and is_count(given.get("completion_tokens"))):
        tally.add(VALUE_DROPPED, at, "expected both prompt_tokens and completion_tokens; half a count was dropped")
        return None
    details = given.get("prompt_tokens_details")
    if type(details) is not dict:
        details = {}
    within = (*at, "prompt_tokens_details")
    cached = token_count(details, "cached_tokens", tally, within)
    written = token_count(details, "cache_write_tokens", tally, within)
    fresh = token_count(given, "prompt_tokens", tally, at) - cached - written
    if fresh < 0:
        tally.add(VALUE_DROPPED, at, "more tokens were cached than the prompt has; the input tokens were read as 0")
    rest = other_counts(given, _READ)
    if more := other_counts(details, _READ_DETAILS):
        rest["prompt_tokens_details"] = more
    tokens = Usage(max(fresh, 0), token_count(given, "completion_tokens", tally, at), written, cached)
    return CompletionUsage(tokens, _cost(given.get("cost"), tally, at), rest)


def _cost(given: Any, tally: NoteTally, at: At) -> float | None:
    if type(given) is float or (type(given) is int and 0 <= given < 2**63):
        return float(given)
    if given is not None:
        tally.add(VALUE_DROPPED, (*at, "cost"), f"expected an amount, got {json_kind(given)}")
    return None


def end_completion(
    message: AssistantMessage, ending: TurnEnding, usage: Any, run: Transcript, tally: NoteTally, at: At
) -> None:
    """Tell the message how its turn ended and what it took; what belongs to no message goes to the run's metadata."""
    end_turn(message, ending, _FINISH_REASONS, run, tally, (*at, "finish_reason"))
    if usage is None or (taken := read_usage(usage, tally, ("usage",))) is None:
        return
    message.usage = taken.tokens
    if taken.cost_usd is not None:
        run.cost_usd = (run.cost_usd or 0.0) + taken.cost_usd
    if taken.rest:
        tell_run(run, "usage", taken.rest, tally, ())
