"""Tool calls in the shapes that agents write them, what is known about them, and which result belongs to which.

| shape | from |
| --- | --- |
| `{id?, name, arguments?}` | the agent response, flat |
| `{id?, type?, function: {name, arguments?}}` | OpenAI chat completions |
| `{id?, tool, input?, output?}` | output_messages |
| `{type: "tool_use", id, name, input}` | Anthropic |
| `{id, function: "name", arguments}` | Inspect |
| `{id, name, args}` | LangChain |

The transcript readers and the step extraction share this module, so that both see the same calls.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from seatrial.formats.chat.notes import At
from seatrial.transcript import Note, ToolCall, ToolResultMessage, note_code, pointer
from seatrial.transcript.arguments import detect_unparsed, read_arguments
from seatrial.transcript.call_facts import CallFacts as CallFacts
from seatrial.transcript.call_facts import ExecutedBy as ExecutedBy
from seatrial.transcript.call_facts import PlacedFacts as PlacedFacts
from seatrial.transcript.failure import FAILURE_KEYS, find_failure, is_under_way, read_status
from seatrial.transcript.pairing import another_tool_note
from seatrial.transcript.salvage import GENERATED_ID_PREFIX as GENERATED_ID_PREFIX
from seatrial.transcript.salvage import TOOL_CALL_ID_GENERATED as TOOL_CALL_ID_GENERATED

TOOL_CALL_DROPPED_NO_NAME = note_code(
    "tool_call_dropped_no_name", "A tool call has no usable name; it was dropped, the rest stays.", "serious"
)
CALL_NAMED_TWICE = note_code(
    "call_named_twice", "A call has two names that differ; which tool was called is unknown.", "serious"
)

TOOL_RESULT_UNPAIRED = note_code(
    "tool_result_unpaired", "A tool result belongs to no call that came before it.", "serious"
)
TOOL_RESULT_PAIRED_BY_ORDER = note_code(
    "tool_result_paired_by_order",
    "A tool result names no call; it was given to the oldest call without a result.",
    "look",
)

_STARTED = ("started_at", "startedAt", "start_time", "startTime", "timestamp")
_ENDED = ("ended_at", "endedAt", "end_time", "endTime")
_DURATION = ("duration_ms", "durationMs")
FACT_KEYS = frozenset({*_STARTED, *_ENDED, *_DURATION, *FAILURE_KEYS})


class Call(msgspec.Struct, gc=False):
    """One tool call, whatever shape it came in."""

    name: str
    arguments: Any
    """The value as given, null too; `{}` when absent. JSON text is parsed, other text kept by `unparsed_arguments`."""
    id: str | None = None
    not_json: bool = False
    """Whether the arguments were text that is not JSON."""
    encoded_twice: bool = False
    """Whether the arguments were JSON inside a JSON text."""
    output: Any = msgspec.UNSET
    """The result, where the shape carries it inside the call."""


def read_call(value: Any) -> Call | None:
    """The call, or None when the value has no usable name."""
    if type(value) is not dict:
        return None
    get = value.get
    name = get("name")
    function = get("function")
    if type(function) is dict and (function.get("name") or not name):
        # A name beside the function is some label; the function is what was called.
        name = function.get("name")
        arguments = function["arguments"] if "arguments" in function else _first(value, ("arguments", "input", "args"))
    elif type(name) is str and name:
        arguments = _first(value, ("arguments", "input", "args"))
    elif type(function) is str and not function.lstrip().startswith("{"):  # Inspect
        name, arguments = function, get("arguments", msgspec.UNSET)
    else:
        name = get("tool")
        arguments = _first(value, ("input", "arguments", "args"))
    if type(name) is not str or not name:
        return None
    call_id = get("id") or get("call_id")
    call = Call(name, arguments, call_id if type(call_id) is str and call_id else None)
    set_arguments(call, arguments)
    if "output" in value:
        call.output = value["output"]
    return call


def set_arguments(call: Call, arguments: Any) -> None:
    """Give a call its arguments: JSON text is parsed, none at all is `{}`."""
    if type(arguments) is str:
        call.arguments, call.not_json, call.encoded_twice = read_arguments(arguments)
    else:
        call.arguments = {} if arguments is msgspec.UNSET else arguments


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if key in value:
            return value[key]
    return msgspec.UNSET


def generated_id(at: tuple[str | int, ...]) -> str:
    """The id of a call that has none: its position, which is the same on every reading, and no other call's."""
    return GENERATED_ID_PREFIX + "_".join([str(part) for part in at if type(part) is int])


def nameless_note(at: str) -> Note:
    """The note for a call that was dropped because nothing names its tool."""
    return Note(TOOL_CALL_DROPPED_NO_NAME, at, "dropped a tool call without a name")


def generated_id_note(at: str, name: str, call_id: str) -> Note:
    """The note for a call that got an id."""
    return Note(TOOL_CALL_ID_GENERATED, at, f"a call of {name[:40]!r} has no id; made up {call_id!r}")


def read_call_facts(value: dict[str, Any]) -> CallFacts | None:
    """The facts among the keys of a call, by the names that people give them; None when there are none."""
    if FACT_KEYS.isdisjoint(value):
        return None
    duration = _first_fact(value, _DURATION)
    failure = find_failure(value)
    if failure is not None and failure.status == "unknown" and is_under_way(value.get("status")):
        failure = None  # as it was when the call was made; its result says more
    facts = CallFacts(
        started_at=_first_fact(value, _STARTED, text=True),
        ended_at=_first_fact(value, _ENDED, text=True),
        duration_ms=duration if duration is None or duration >= 0 else None,
        status=read_status(value.get("status")) if failure is None else failure.status,
        error=None if failure is None else failure.error,
    )
    return None if facts == _NO_FACTS else facts


def _first_fact(value: dict[str, Any], names: tuple[str, ...], *, text: bool = False) -> Any:
    for name in names:
        found = value.get(name)
        if type(found) is int or (type(found) is float and found - found == 0) or (text and type(found) is str):
            return found
    return None


_NO_FACTS = CallFacts()


class ListedCalls:
    """Calls that a message has: many write the same call down in several places of it.

    Whether a call is one of them, or another one, is decided here for all dialects: an id alone does not tell.
    """

    def __init__(self, calls: Iterable[Call | ToolCall] = ()) -> None:
        self._by_id: dict[str, list[Call | ToolCall]] = {}
        self._calls = [*calls]
        for call in self._calls:
            if call.id is not None:
                self._by_id.setdefault(call.id, []).append(call)

    def repeats(self, call: Call, *, by_shape: bool = False) -> bool:
        """Whether a call is one of these: the same id, name and arguments. One that has none, or a part of them, has
        no others. `by_shape`: a call without an id is one of these if its name and arguments are.
        """
        return self.find(call, by_shape=by_shape) is not None

    def find(self, call: Call, *, by_shape: bool = False) -> Call | ToolCall | None:
        """The one of these that a call repeats."""
        among = self._by_id.get(call.id, []) if call.id is not None else self._calls if by_shape else []
        same = [known for known in among if known.name == call.name]
        if not same or (call.id is not None and _is_without_arguments(call)):
            return same[0] if same else None
        arguments = canonical(call.arguments)
        return next((known for known in same if arguments and canonical(known.arguments) == arguments), None)


def _is_without_arguments(call: Call) -> bool:
    return call.arguments in (None, "", {}) or detect_unparsed(call.arguments) is not None


def canonical(arguments: Any) -> bytes:
    """The same bytes for arguments that are equal, in whatever order their keys are; none for what is not JSON."""
    try:
        return _SORTED.encode(arguments)
    except (RecursionError, UnicodeEncodeError):
        return b""


_SORTED = msgspec.json.Encoder(order="sorted")


class Pairing:
    """The calls of a conversation so far."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        # Not a dict: taking the oldest entry out of one again and again is quadratic.
        self._unanswered: OrderedDict[str, str] = OrderedDict()
        """Names by id of the calls that have no result yet, oldest first."""
        self._of_name: dict[str, deque[str]] = {}
        """Ids of calls by name, oldest first; those that have a result are skipped when they are met."""
        self._again: dict[str, set[str]] = {}
        """The names of all calls of an id, for ids that were used again."""
        self.unnamed: list[ToolResultMessage] = []
        """Results that name no tool, and an id that several calls have: which it is shows when all is read."""

    def called(self, call_id: str, name: str, *, answered: bool = False) -> None:
        """A call was made; an id that is used again means the new call from now on."""
        if (known := self._names.get(call_id)) is not None:
            self._again.setdefault(call_id, {known}).add(name)
        self._names[call_id] = name
        self._unanswered.pop(call_id, None)
        if not answered:
            self._unanswered[call_id] = name
            self._of_name.setdefault(name, deque()).append(call_id)

    @property
    def names(self) -> Mapping[str, str]:
        """The names of all calls so far by id, the last of each."""
        return self._names

    @property
    def again(self) -> Mapping[str, set[str]]:
        """The names of all calls of an id, for ids that were used again."""
        return self._again

    def name_of(self, call_id: str) -> str | None:
        """The name of a call, None when there was none of that id."""
        return self._names.get(call_id)

    def answered(
        self, call_id: str | None, name: str | None, at: At, notes: list[Note], *, by_name: bool = False
    ) -> ToolResultMessage:
        """An empty result for the call with that id; without an id, for the oldest call that has none yet.

        `by_name`: the format pairs by name and order, so a result without an id goes to the oldest call of its name,
        and nothing was guessed.
        """
        if call_id:
            self._unanswered.pop(call_id, None)
            known = self._names.get(call_id)
            if known is None:
                notes.append(
                    Note(TOOL_RESULT_UNPAIRED, pointer(*at), f"no call with the id {call_id!r} came before this result")
                )
            elif name and name in self._again.get(call_id, ()):
                known = name
            elif name and name != known:
                notes.append(another_tool_note(pointer(*at), name, known))
            result = ToolResultMessage(call_id, known or name or "", [])
            if call_id in self._again and known != name:
                self.unnamed.append(result)
            return result
        if by_name and name is not None:
            return self._of_that_name(name, at, notes)
        if not self._unanswered:
            notes.append(
                Note(TOOL_RESULT_UNPAIRED, pointer(*at), "this result names no call, and no call is without a result")
            )
            return ToolResultMessage("", name or "", [])
        oldest, known = self._unanswered.popitem(last=False)
        notes.append(Note(TOOL_RESULT_PAIRED_BY_ORDER, pointer(*at), f"gave a result that names no call to {oldest!r}"))
        return ToolResultMessage(oldest, known, [])

    def _of_that_name(self, name: str, at: At, notes: list[Note]) -> ToolResultMessage:
        waiting = self._of_name.get(name, deque())
        while waiting:
            call_id = waiting.popleft()
            if self._unanswered.get(call_id) == name:
                del self._unanswered[call_id]
                return ToolResultMessage(call_id, name, [])
        notes.append(Note(TOOL_RESULT_UNPAIRED, pointer(*at), f"no call of {name[:40]!r} waits for this result"))
        return ToolResultMessage("", name, [])
