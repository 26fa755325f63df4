"""What the records of coding agents share: lines of JSON, sub-agents, and how the run ended."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.chat.decoding import decoded
from seatrial.formats.chat.documents import FRAME_DROPPED, open_document
from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.chat.notes import RUN_FAILURE_REPORTED, At, NoteTally, json_kind
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import STREAM_TRUNCATED
from seatrial.transcript import AssistantMessage, CustomMessage, StopReason, ToolResultMessage, Transcript, note_code
from seatrial.transcript.salvage import MESSAGE_DROPPED

LINE_LEFT_OUT = note_code(
    "line_left_out",
    "A line of a session holds nothing of the conversation (settings, progress, titles); it was left out. Serious "
    "where something in it looks like a call.",
    "harmless",
)
PROBLEM_REPORTED = note_code("problem_reported", "The program reports a problem that did not end the run.", "look")
_LEVELS = 10


def read_lines(data: bytes, tally: NoteTally) -> list[tuple[At, dict[str, Any]]]:
    """The objects of the lines, or of an array, each with its place; what is not one is dropped with a serious note."""
    document = open_document(data, tally)
    if document is None:
        raise SeatrialError("invalid_document", "expected lines of JSON, and not server-sent events")
    entries = [msgspec.Raw(data)] if isinstance(document, dict) else document
    lines: list[tuple[At, dict[str, Any]]] = []
    for index, entry in enumerate(entries):
        at: At = () if isinstance(document, dict) else (index,)
        try:
            line = decoded(entry, tally, at, _LEVELS)
        except SeatrialError as error:
            tally.add(FRAME_DROPPED, at, error.message, each="")
            continue
        if type(line) is dict:
            lines.append((at, line))
        else:
            tally.add(FRAME_DROPPED, at, f"expected an object, got {json_kind(line)}", each="")
    return lines


def leave_out(line: dict[str, Any], kind: str, chat: Chat, at: At) -> None:
    """Note a line that is known to hold nothing of the conversation, unless it looks as if it did."""
    rest = {key: value for key, value in line.items() if key != "type"}
    suspect = may_hold_call("", rest)
    text = f"left out a line of the type {kind[:40]}"
    chat.tally.add(LINE_LEFT_OUT, at, text, each=f"{kind} {suspect}", weight="serious" if suspect else None)


def drop_unknown(kind: Any, chat: Chat, at: At) -> None:
    """Note a line or an item of a type that nobody knows: it may be a call."""
    shown = repr(kind[:40]) if type(kind) is str else json_kind(kind)
    chat.tally.add(MESSAGE_DROPPED, at, f"dropped a line of the unknown type {shown}", each=shown)


def report_failure(why: str, run: Transcript, chat: Chat, at: At) -> None:
    """The record says that the run failed."""
    chat.tally.add(RUN_FAILURE_REPORTED, at, f"the record says that the run failed: {why[:200]}", each="")
    last = next((said for said in reversed(run.messages) if type(said) is AssistantMessage), None)
    if last is not None:
        last.stop_reason, last.error_message = StopReason.ERROR, why


def note_open_end(run: Transcript, chat: Chat) -> None:
    """Note a record that ends in the middle: these programs write a result for every call, and then go on."""
    answered = {message.tool_call_id for message in run.messages if type(message) is ToolResultMessage}
    last = next((said for said in reversed(run.messages) if type(said) is AssistantMessage), None)
    ends = next((said for said in reversed(run.messages) if type(said) is not CustomMessage), None)
    calls = [] if last is None else last.tool_calls()
    lacking = next((call for call in calls if call.id not in answered and chat.facts_of(call) is None), None)
    if lacking is not None:
        why = f"with a call of {lacking.name[:40]!r} that has no result"
    elif last is None or not (calls or last.plain_text()):
        why = "before the agent says anything"
    elif type(ends) is ToolResultMessage:
        why = "with a result, and no turn of the agent follows"
    else:
        return
    chat.tally.add(STREAM_TRUNCATED, (), f"the record ends {why}")


def text_in(given: Any, *keys: str) -> str | None:
    """The first of these keys that has a text in it."""
    for key in keys if type(given) is dict else ():
        if type(found := given.get(key)) is str and found:
            return found
    return None


def number_in(given: dict[str, Any], key: str) -> float | None:
    """The number under a key, if it is not negative."""
    found = given.get(key)
    return float(found) if type(found) in (int, float) and found >= 0 else None  # type: ignore[operator, arg-type]


def object_in(given: Any, key: str) -> dict[str, Any]:
    """The object under a key; an empty one when there is none."""
    found = given.get(key) if type(given) is dict else None
    return found if type(found) is dict else {}


def set_actor(chat: Chat, before: int, actor: str | None, parent: str | None) -> None:
    """Say of the calls in the messages since `before` which agent made them, inside which call."""
    for message in chat.messages[before:]:
        for call in message.tool_calls() if type(message) is AssistantMessage else ():
            chat.set_facts(call, actor=actor, parent=parent)
