"""A chat completion that arrives in chunks, and how its turn ends.

Deltas are gathered until the turn is over, then read like a message that came whole. Text, reasoning and arguments are
kept in fragments and joined once. Prompted thinking is taken out of `content` after the joining, so that no cut through
a tag matters; `reasoning` is never searched for tags. The entries of `reasoning_details` are appended as they were
sent, fragments too: a provider checks them byte for byte.

A stream that ends without a finish reason and without `[DONE]` was cut off: the turn ends in an error. After `[DONE]`
another response may follow.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.decoding import Shape, decoded_message, drop_key, items
from seatrial.formats.chat.documents import FRAME_DROPPED, StreamReader
from seatrial.formats.chat.hidden_calls import KEY_DROPPED, may_hold_call
from seatrial.formats.chat.notes import At, NoteTally, json_kind
from seatrial.formats.chat.parts import CONTENT_DROPPED
from seatrial.formats.chat.reader import TOOL_CALLS_INVALID, Chat
from seatrial.formats.chat.turn import (
    CHOICE_DROPPED,
    TurnEnding,
    end_turn,
    is_count,
    keep_in_metadata,
    other_counts,
    token_count,
)
from seatrial.transcript import AssistantMessage, StopReason, Transcript, Usage
from seatrial.transcript.salvage import VALUE_DROPPED

_DONE = b"[DONE]"
_METADATA = ("created", "model", "provider", "service_tier", "system_fingerprint")
_FINISH_REASONS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_USAGE_KEYS = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "cost"})
_USAGE_DETAILS = frozenset({"cached_tokens", "cache_write_tokens"})


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


def read_completion_usage(given: Any, tally: NoteTally, at: At) -> CompletionUsage | None:
    """The counts; None, with a note, when this is not an object of them.

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
    rest = other_counts(given, _USAGE_KEYS)
    if more := other_counts(details, _USAGE_DETAILS):
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
    """Set how the turn of a message ended and what it took; what belongs to no message goes to the run's metadata."""
    end_turn(message, ending, _FINISH_REASONS, run, tally, (*at, "finish_reason"))
    if usage is None or (taken := read_completion_usage(usage, tally, ("usage",))) is None:
        return
    message.usage = taken.tokens
    if taken.cost_usd is not None:
        run.cost_usd = (run.cost_usd or 0.0) + taken.cost_usd
    if taken.rest:
        keep_in_metadata(run, "usage", taken.rest, tally, ())


class CompletionChunk(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a `chat.completion.chunk`."""

    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    provider: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    choices: msgspec.Raw = msgspec.Raw()
    usage: Any = None
    error: Any = None
    obfuscation: Any = None


_CHUNK = Shape(CompletionChunk)


class CompletionStream(StreamReader):
    """Reads `chat.completion.chunk`s."""

    def __init__(self, tally: NoteTally | None = None) -> None:
        super().__init__(tally)
        self._turns: dict[int, _Turn] = {}
        """The answers under way, by their index."""
        self._error: Any = None
        self._usage: Any = None

    def _take(self, payload: bytes, at: At) -> None:
        if payload == _DONE:
            self._end_response(done=True)
            return
        chunk = _CHUNK.read(payload, self._tally, at)
        if chunk is None:
            raise SeatrialError("invalid_document", "expected an object")
        if self._id is None and type(chunk.id) is str and chunk.id:
            self._id = chunk.id
        for key in _METADATA:
            if (given := getattr(chunk, key)) is not None:
                self._run.metadata.setdefault(key, given)
        self._usage = chunk.usage or self._usage
        self._error = chunk.error or self._error
        choices = items(chunk.choices, self._tally, (*at, "choices")) if chunk.choices else []
        if choices is None:
            raise SeatrialError("invalid_document", "expected an array of choices")
        for position, data in enumerate(choices):
            here = (*at, "choices", position)
            choice = CHOICE.read(data, self._tally, here)
            if choice is None:
                raise SeatrialError("invalid_document", "expected a choice that is an object")
            self._take_choice(choice, here)

    def _take_choice(self, choice: Choice, at: At) -> None:
        index = choice.index if type(choice.index) is int else 0
        turn = self._turns.get(index)
        if turn is None:
            turn = self._turns[index] = _Turn(self._chat)
        turn.finish_reason = choice.finish_reason or turn.finish_reason
        turn.error = choice.error or turn.error
        if choice.logprobs:
            drop_key("logprobs", choice.logprobs, self._tally, at)
        if choice.message:
            turn.repeat(decoded_message(choice.message, self._tally, (*at, "message")))
        if choice.delta:
            delta = decoded_message(choice.delta, self._tally, (*at, "delta"))
            if type(delta) is dict:
                turn.gather(delta, (*at, "delta"))

    def _end(self) -> None:
        self._end_response(done=False)

    def _end_response(self, *, done: bool) -> None:
        turns, error, usage = self._turns, self._error, self._usage
        self._turns, self._error, self._usage = {}, None, None
        if not turns and error is None:
            return
        # A recording may hold several responses; each has its own place, so that made-up ids stay apart.
        at: At = (self._responses, "choices", 0) if self._responses else ("choices", 0)
        self._responses += 1
        turn = turns.pop(min(turns)) if turns else _Turn(self._chat)
        for index in turns:
            self._tally.add(CHOICE_DROPPED, (*at[:-1], index), "dropped another answer of the model", each="")
        message = self._chat.read_answer(turn.message(at), (*at, "message"))
        ending = TurnEnding(turn.finish_reason, turn.error or error, not done and turn.finish_reason is None)
        end_completion(message, ending, usage, self._run, self._tally, at)


class _Turn:
    """One answer under way, in fragments."""

    def __init__(self, chat: Chat) -> None:
        self.finish_reason: Any = None
        self.error: Any = None
        self._chat = chat
        self._tally = chat.tally
        self._texts: dict[str, list[str]] = {"content": [], "reasoning": [], "reasoning_content": [], "refusal": []}
        self._details: list[msgspec.Raw] = []
        self._audio: list[str] = []
        self._calls: list[_Call] = []
        self._open_calls: dict[int, _Call] = {}
        self._function_call: _Call | None = None
        self._repeated: dict[str, Any] | None = None
        """The message so far, which some providers send beside each delta."""

    def repeat(self, message: Any) -> None:
        if type(message) is dict and (
            self._repeated is None or may_hold_call("", message) or not may_hold_call("", self._repeated)
        ):
            self._repeated = message

    def gather(self, delta: dict[str, Any], at: At) -> None:
        for key, fragments in self._texts.items():
            given = delta.get(key)
            if type(given) is str:
                fragments.append(given)
            elif given is not None:
                self._tally.add(CONTENT_DROPPED, (*at, key), f"dropped a {key} that is no text", each=key)
        details, calls, function = delta.get("reasoning_details"), delta.get("tool_calls"), delta.get("function_call")
        if type(details) is list:
            self._details += details
        else:
            self._chat.drop_key("reasoning_details", details, at, agent=True)
        if type(calls) is list:
            for index, fragment in enumerate(calls):
                self._gather_call(fragment, (*at, "tool_calls", index))
        elif calls:
            self._tally.add(TOOL_CALLS_INVALID, (*at, "tool_calls"), "the tool calls are not an array", each="")
        if type(function) is dict:
            if self._function_call is None:
                self._function_call = _Call(0)
            self._function_call.gather({"function": function})
        if type(audio := delta.get("audio")) is dict and type(spoken := audio.get("transcript")) is str:
            self._audio.append(spoken)
        self._chat.note_keys(delta, _DELTA_KEYS, at, agent=True)

    def message(self, at: At) -> dict[str, Any]:
        """The fragments joined into a whole message; without any, the message beside them."""
        gathered, repeated = self._gathered(), self._repeated
        if repeated is None:
            return gathered
        if not any(gathered.values()):
            return repeated
        known = {call["id"]: call["function"].get("name", "") for call in gathered["tool_calls"]
                 if type(call.get("id")) is str and "function" in call}  # fmt: skip
        beside = {key: given for key, given in repeated.items() if key != "content"}
        if repeated.get("content") not in (None, "", gathered["content"]) or may_hold_call("", beside, known):
            text = "dropped a message that is not what its pieces say"
            self._tally.add(KEY_DROPPED, (*at, "message"), text, weight="serious")
        return gathered

    def _gathered(self) -> dict[str, Any]:
        message: dict[str, Any] = {key: "".join(fragments) for key, fragments in self._texts.items()}
        message["reasoning_details"] = self._details
        message["tool_calls"] = [call.whole() for call in sorted(self._calls, key=lambda call: call.index)]
        if self._audio:
            message["audio"] = {"transcript": "".join(self._audio)}
        if self._function_call is not None:
            message["function_call"] = self._function_call.whole()["function"]
        return message

    def _gather_call(self, fragment: Any, at: At) -> None:
        if type(fragment) is not dict:
            self._tally.add(FRAME_DROPPED, at, "expected an object", each="")
            return
        index = fragment.get("index")
        if type(index) is not int:
            # Left out by some: an id starts a call, a fragment without one continues the last.
            index = len(self._calls) if fragment.get("id") else max(len(self._calls) - 1, 0)
        call = self._open_calls.get(index)
        # A second id under one index is a second call: some providers number all of them 0.
        if call is None or not call.accepts(fragment.get("id")):
            call = self._open_calls[index] = _Call(index)
            self._calls.append(call)
        call.gather(fragment)


class _Call:
    """One tool call under way: whatever comes first counts, only the arguments grow."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._keys: dict[str, Any] = {}
        self._body: dict[str, Any] = {}
        self._body_key = "function"
        self._fragments: list[str] = []

    def accepts(self, call_id: Any) -> bool:
        """Whether a fragment with this id can belong to this call."""
        return not call_id or self._keys.get("id", call_id) == call_id

    def gather(self, fragment: dict[str, Any]) -> None:
        for key, given in fragment.items():
            if key in _BODIES and type(given) is dict:
                self._body_key = key
                self._gather_body(given, _BODIES[key])
            elif given:
                self._keys.setdefault(key, given)

    def _gather_body(self, body: dict[str, Any], growing: str) -> None:
        for key, given in body.items():
            if key != growing:
                if given:
                    self._body.setdefault(key, given)
            elif type(given) is str:
                self._fragments.append(given)
            elif given is not None:
                self._fragments.append(wire.encode(given).decode())

    def whole(self) -> dict[str, Any]:
        """The call as it stands in a whole message."""
        return {**self._keys, self._body_key: {**self._body, _BODIES[self._body_key]: "".join(self._fragments)}}


_DELTA_KEYS = frozenset(
    {"role", "content", "reasoning", "reasoning_content", "refusal", "reasoning_details", "tool_calls",
     "function_call", "audio", "id", "index", "name"}
)  # fmt: skip
_BODIES = {"function": "arguments", "custom": "input"}
"""Where a call's name stands, and which of the keys beside it comes in fragments."""
