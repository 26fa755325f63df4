"""What a run started from, found again in what the agent returned.

Many agents return the whole conversation: the earlier messages, the instruction, then what they did. Only the last is
theirs. The given part is the longest common prefix by content, else it goes by the number of user messages, with a
note; in either case a message that makes a call which was not given is the agent's. Where the instruction repeats an
earlier request, the agent's own turn may look like the earlier one: the ids of the calls tell, else there is a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.transcript.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from seatrial.transcript.note import Note, Weight, note_code, pointer
from seatrial.transcript.salvage import GENERATED_ID_PREFIX
from seatrial.transcript.transcript import Transcript

GIVEN_BY_ORDER = note_code(
    "given_by_order",
    "The agent returned the messages that it was given in other words; they were told apart by their order.",
    "look",
)
GIVEN_OR_REPEATED = note_code(
    "given_or_repeated",
    "The instruction repeats an earlier request, or a trace an earlier call, and nothing tells the calls that were "
    "made then from the agent's own; they were counted as the earlier ones.",
    "serious",
)


GIVEN_NOT_SENT = note_code(
    "given_not_sent",
    "The agent says that it was given a call which is not in what was sent to it; it may be the agent's own.",
    "serious",
)


_WRAPPINGS = frozenset({"result", "output", "content", "response", "value", "text"})
"""Keys of the object that Gemini and others want the result of a tool in."""


def mark_given(transcript: Transcript, given: Sequence[Message], notes: list[Note]) -> None:
    """Mark the messages at the head of a transcript that the agent was given; those marked already stay so."""
    if transcript.given or not given:
        return
    prefix = _common_prefix(transcript.messages, given, notes)
    marked = max(prefix, _by_call_id(transcript.messages, given), key=len)
    if not any(type(transcript.messages[index]) is UserMessage for index in marked):
        marked = _by_order(transcript.messages, given)
        if marked:
            text = f"took the messages up to user message {_users(given)} for the given ones"
            calls = any(_calls(transcript.messages[index]) for index in marked)
            # Which call is which is a guess then, and a guess must not hide one.
            weight: Weight = "serious" if calls else "look"
            notes.append(Note(GIVEN_BY_ORDER, pointer("messages", marked[-1]), text, weight))
    transcript.given = marked


def note_unsent(transcript: Transcript, sent: Sequence[Message], notes: list[Note]) -> None:
    """Note a call that the agent itself says it was given, and that is neither in what was sent nor made in the run."""
    known = Counter([_calls_of(call) for message in sent for call in _made(message)])
    done = {_calls_of(call) for message in transcript.done() for call in _made(message)}
    for index in transcript.given:
        for call in _made(transcript.messages[index]):
            key = _calls_of(call)
            known[key] -= 1
            if known[key] < 0 and key not in done:
                text = f"a call of {call.name[:60]!r} is said to be given, but was not sent"
                notes.append(Note(GIVEN_NOT_SENT, pointer("messages", index), text))
                return


def _by_call_id(messages: Sequence[Message], given: Sequence[Message]) -> list[int]:
    """The messages up to the instruction, where they have calls with the ids of given ones, and no others.

    So a conversation of which the agent left out the beginning is known, too.
    """
    ids = {(call.id, *_calls_of(call)) for message in given for call in _made(message)}
    if not ids:
        return []
    named = {call.id for message in given for call in _made(message) if not _is_made_up(call)}
    confirmed = False
    end = -1
    # The instruction may repeat an earlier request, so the last one that fits counts.
    for index, message in enumerate(messages):
        calls = _made(message)
        if any((call.id, *_calls_of(call)) not in ids for call in calls):
            break
        answered = type(message) is ToolResultMessage and message.tool_call_id in named
        confirmed = confirmed or bool(calls) or answered
        if confirmed and _same(message, given[-1]):
            end = index
    return [index for index, message in enumerate(messages[: end + 1]) if type(message) is not SystemMessage]


def _made(message: Message) -> list[ToolCall]:
    return message.tool_calls() if type(message) is AssistantMessage else []


def _calls_of(call: ToolCall) -> tuple[bytes]:
    return (wire.encode([call.name, call.arguments]),)


def _common_prefix(messages: Sequence[Message], given: Sequence[Message], notes: list[Note]) -> list[int]:
    """Agents put a system prompt of their own in front, or leave ours out; neither ends the prefix."""
    marked: list[int] = []
    places: list[int] = []
    place = 0
    for index, message in enumerate(messages):
        while place < len(given) and type(given[place]) is SystemMessage and type(message) is not SystemMessage:
            place += 1
        if place < len(given) and _same(message, given[place]):
            marked.append(index)
            places.append(place)
            place += 1
        elif type(message) is not SystemMessage:
            break
    if place >= len(given):
        return marked
    # It ends before the instruction. Where that repeats an earlier request, what follows may be the agent's own turn.
    for count, index in enumerate(marked, start=1):
        if _same(messages[index], given[-1]):
            return marked[:count] + _given_again(messages, given, marked[count:], places[count:], notes)
    return marked


def _given_again(
    messages: Sequence[Message], given: Sequence[Message], marked: list[int], places: list[int], notes: list[Note]
) -> list[int]:
    """Those of the messages behind a repeated request that are the given ones: the ids of their calls tell."""
    confirmed = False
    guessed: list[int] = []
    for count, (index, place) in enumerate(zip(marked, places, strict=True)):
        pairs = [*zip(_made(messages[index]), _made(given[place]), strict=True)]
        named = [(call.id, known.id) for call, known in pairs if not (_is_made_up(call) or _is_made_up(known))]
        if any(call_id != known_id for call_id, known_id in named):
            marked = marked[:count] if confirmed else []
            break
        confirmed = confirmed or bool(named)
        if len(named) < len(pairs):
            guessed.append(index)
    if guessed and marked:
        text = "the instruction repeats an earlier request: the calls from here on may be the agent's own"
        notes.append(Note(GIVEN_OR_REPEATED, pointer("messages", guessed[0]), text))
        return marked
    if confirmed or (marked and any(_same(message, given[-1]) for message in messages[marked[-1] + 1 :])):
        return marked
    return []


def _is_made_up(call: ToolCall) -> bool:
    return call.id.startswith(GENERATED_ID_PREFIX)


def _by_order(messages: Sequence[Message], given: Sequence[Message]) -> list[int]:
    """The messages up to the user message that stands where the instruction would, but for calls that are new."""
    wanted = _users(given)
    users = [index for index, message in enumerate(messages) if type(message) is UserMessage]
    if not 0 < wanted <= len(users):
        return []
    if any(_same(messages[index], given[-1]) for index in users[: wanted - 1]):
        return []  # the instruction came earlier: what follows it is the agent's
    known = Counter(call for message in given for call in _calls(message))
    turns = [type(message) for message in given].count(AssistantMessage)
    marked: list[int] = []
    own_calls: set[str] = set()
    for index, message in enumerate(messages[: users[wanted - 1] + 1]):
        calls = Counter(_calls(message))
        if type(message) is AssistantMessage:
            # More turns than were given: this one is the agent's, whatever user message follows it.
            turns -= 1
            if turns < 0:
                own_calls.update([call.id for call in message.tool_calls()])
                continue
        if calls <= known and not (type(message) is ToolResultMessage and message.tool_call_id in own_calls):
            known -= calls
            marked.append(index)
        elif type(message) is AssistantMessage:
            own_calls.update([call.id for call in message.tool_calls()])
    return marked


def _users(messages: Sequence[Message]) -> int:
    return [type(message) for message in messages].count(UserMessage)


def _calls(message: Message) -> list[bytes]:
    if type(message) is not AssistantMessage:
        return []
    return [call for made in _made(message) for call in _calls_of(made)]


def _same(message: Message, given: Message) -> bool:
    """Whether both say the same; ids, times and hidden channels may differ."""
    if type(message) is not type(given) or isinstance(message, CustomMessage):
        return message == given
    if _calls(message) != _calls(given):
        return False
    if _text(message) == _text(given):
        return True
    return type(message) is ToolResultMessage and type(given) is ToolResultMessage and _results_agree(message, given)


def _results_agree(message: ToolResultMessage, given: ToolResultMessage) -> bool:
    """Whether both are the same result, of which one API wants it in an object and another as it is."""
    return not _bare_results(message).isdisjoint(_bare_results(given))


def _bare_results(message: ToolResultMessage) -> set[str]:
    """A result as text: as it is, and out of the object that it is wrapped in."""
    text = message.plain_text().strip()
    value = message.details
    if value is None and text.startswith("{"):
        with suppress(SeatrialError):
            value = wire.decode(text.encode("utf-8", "replace"))
    if type(value) is not dict or len(value) != 1:
        return {text}
    ((key, inside),) = value.items()
    if key not in _WRAPPINGS:
        return {text}
    bare = inside if type(inside) is str else wire.encode(inside).decode()
    return {text, bare.strip()}


def _text(message: Message) -> str | None:
    if isinstance(message, SystemMessage):
        return message.content.strip()
    return None if isinstance(message, CustomMessage) else message.plain_text().strip()
