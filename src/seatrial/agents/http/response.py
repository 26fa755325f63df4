"""What an agent answered in a shape of its own: the suite says by JSON pointers where in the body everything is.

What no pointer leads to is not read. If something there looks like a call, the calls of the run are partial.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.excerpt import MAX_DETAIL
from seatrial.agents.http.config import ResponsePaths
from seatrial.agents.streamed import reported_failure
from seatrial.errors import SeatrialError
from seatrial.formats.chat.hidden_calls import CALLS_IN_METADATA, calls_in_metadata, may_hold_call, note_repeated_keys
from seatrial.formats.chat.limits import excess
from seatrial.formats.chat.notes import NoteTally, json_kind, note_failure
from seatrial.formats.chat.parts import has_visible_text, note_unclosed, read_prompt, visible
from seatrial.formats.chat.reader import MESSAGES_INVALID, MESSAGES_MISSING, messages_from_objects
from seatrial.formats.chat.turn import read_usage
from seatrial.formats.reading import Reading
from seatrial.problems import listed, path_of
from seatrial.runs import Fault
from seatrial.transcript import AssistantMessage, Message, Note, StopReason, TextBlock, Transcript, Usage
from seatrial.transcript.call_facts import PlacedFacts
from seatrial.transcript.note import repair_notes
from seatrial.transcript.salvage import VALUE_DROPPED

FORMAT = "http-response"
_SAYS_NOTHING: tuple[Any, ...] = (None, UNSET, "", [], {}, False, 0)
_SHOWN_KEYS = 8


def decoded(data: bytes) -> tuple[Any, list[Note]]:
    """A body with what had to be repaired in it. Raises `SeatrialError` when it is not JSON, or too much of it."""
    if (much := excess(data)) is not None:
        raise SeatrialError("too_large", f"the body has {much}")
    repairs: list[wire.Repair] = []
    return wire.decode(data, repairs=repairs), repair_notes(repairs)


def read_response(data: bytes, paths: ResponsePaths) -> tuple[Reading, Fault | None]:
    """What is at the ends of the paths. Raises `SeatrialError` when the body is not JSON."""
    body, notes = decoded(data)
    answer, missing = _answer(body, paths.answer, notes)
    facts: list[PlacedFacts] = []
    entries = find(body, paths.messages)
    if type(entries) is list:
        at = path_of(paths.messages)
        messages = messages_from_objects(entries, notes, at=at, facts=facts, size=len(data))
    else:
        messages = [AssistantMessage([TextBlock(answer)], StopReason.END_TURN)] if answer else []
        if paths.messages is not None:
            notes.append(_no_messages(entries, paths.messages))
    transcript = Transcript(messages, answer, usage=_usage(body, paths.usage, notes))
    error = find(body, paths.error)
    notes += _unread(body, paths, messages)
    reading = Reading(FORMAT, transcript, notes, facts=facts, answer_only=type(entries) is not list)
    note_repeated_keys(data, reading)
    if error not in _SAYS_NOTHING:
        return reading, Fault("agent_reported_error", error_text(error))
    if missing is None and not transcript.final_text() and not any(_calls(message) for message in messages):
        missing = f"no message of the assistant at `{paths.messages}` has text: {_what_is_there(body, paths.messages)}"
    if (failure := reported_failure(reading)) is not None:
        return reading, failure
    return reading, None if missing is None else Fault("agent_bad_response", missing)


def find(body: Any, path: str | None) -> Any:
    """What a JSON pointer leads to; UNSET when there is none, or it leads nowhere."""
    found = UNSET if path is None else body
    for key in _steps(path or ""):
        if type(found) is dict:
            found = found.get(key, UNSET)
        elif type(found) is list and key.isascii() and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return UNSET
    return found


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def error_text(error: Any) -> str:
    """What an error says, whatever its shape."""
    told = error
    if type(error) is dict:
        told = next((error[key] for key in ("message", "detail", "error", "code") if error.get(key)), error)
    if told is True:
        return "the agent gave no reason"
    return (told if type(told) is str else wire.encode(told).decode())[:MAX_DETAIL]


def _answer(body: Any, path: str | None, notes: list[Note]) -> tuple[str | None, str | None]:
    """The answer, or why there is none; neither when it is in the messages."""
    if path is None:
        return None, None
    found = find(body, path)
    at = path_of(path)
    text = read_prompt(found, at, notes) if type(found) is list else found
    if type(text) is not str:
        if found is UNSET:
            return None, f"there is no answer at `{path}`: {_what_is_there(body, path)}"
        return None, f"the answer at `{path}` must be text, and is {json_kind(found)}"
    if not has_visible_text(text):
        return None, f"the answer at `{path}` has no visible text"
    notes += note_unclosed(text, at)
    return visible(text), None


def _what_is_there(body: Any, path: str | None) -> str:
    """How far a path leads, and what there is instead."""
    reached = path or ""
    while reached and find(body, reached) is UNSET:
        reached = reached.rpartition("/")[0]
    found = find(body, reached)
    place = f"at `{reached}` there" if reached else "the body"
    if type(found) is dict and found:
        keys = listed([key[:40] for key in [*found][:_SHOWN_KEYS]])
        return f"{place} is an object with {keys}"
    return f"{place} is {'an empty object' if found == {} else json_kind(found)}"


def _no_messages(entries: Any, path: str) -> Note:
    if entries is UNSET or entries is None:
        return Note(MESSAGES_MISSING, path, f"there are no messages at `{path}`; the answer is used instead")
    return Note(MESSAGES_INVALID, path, f"expected an array, got {json_kind(entries)}")


def _usage(body: Any, path: str | None, notes: list[Note]) -> Usage | None:
    found = find(body, path)
    if path is None or found is UNSET or found is None:
        return None
    usage = read_usage(found)
    if usage is None:
        notes.append(Note(VALUE_DROPPED, path, f"expected token counts, got {json_kind(found)}"))
    return usage


def _unread(body: Any, paths: ResponsePaths, messages: list[Message]) -> list[Note]:
    """Notes on what no path leads to. Takes out of the body what was read whole."""
    for path in (paths.answer, paths.messages):
        whole = type(find(body, path)) is str or (path == paths.messages and type(find(body, path)) is list)
        if path and whole:
            parent, key = find(body, path.rpartition("/")[0]), _steps(path)[-1]
            parent[key if type(parent) is dict else int(key)] = None
    if paths.messages == "" and type(body) is list:
        return []
    if type(body) is not dict:
        if not may_hold_call("", body):
            return []
        return [Note(CALLS_IN_METADATA, "", "this looks like tool calls, but no path of `response` leads there")]
    tally = NoteTally()
    note_failure(body, tally, of_run=True)
    found = [calls_in_metadata(key, value, messages=messages) for key, value in body.items()]
    return [*tally.total(), *[note for note in found if note is not None]]


def _calls(message: Message) -> bool:
    return type(message) is AssistantMessage and bool(message.tool_calls())
