"""Whether the answer of a run is all that the agent answered: what was dropped of it, or cut off, may say anything."""

from __future__ import annotations

from seatrial.graders.grader import Subject
from seatrial.transcript import AssistantMessage, Note, SystemMessage, ToolResultMessage, Transcript, UserMessage
from seatrial.transcript.messages import StopReason

ANSWER_INCOMPLETE = "answer_incomplete"
"""The code of a verdict that is `errored` because a part of the answer is missing."""
TO_DO = (
    "return the whole answer, once, in a format that Seatrial reads (or as `final_response`), and leave the model "
    "enough tokens for it"
)

_DOUBLED = "key_twice_in_object"
_LOSE_TEXT = frozenset(
    {"agui_message_dropped", "block_dropped", "choice_dropped", "chunk_not_expanded", "content_dropped",
     "event_stream_truncated", "event_unreadable", "events_cut", "frame_dropped", "frame_truncated", "invalid_line",
     "key_repeated", "media_part_dropped", "message_dropped", "message_dropped_no_role", "message_of_another_format",
     "notes_omitted", "record_cut", "role_unknown", "sequence_gap", "stream_truncated", "text_into_activity",
     "unknown_message", _DOUBLED}
)  # fmt: skip
"""Notes, where they are serious, on something that may have been text of a message."""
_MESSAGES = frozenset({"messages", "output_messages", "outputMessages", "contents", "input"})
"""Keys with a list of messages. A list of which each element is a message may also be the whole record."""
_BROKEN_OFF = {
    StopReason.MAX_TOKENS: "it was cut off by a limit",
    StopReason.ERROR: "its turn ended in an error",
    StopReason.ABORTED: "its turn was aborted",
}
_NAMED = ("final_response", "text", "message", "answer")
"""Keys under which a record names its answer."""


def answer_gap(subject: Subject) -> str | None:
    """What is missing of the answer, in words; None when nothing is known to be."""
    reading = subject.run.reading
    if reading is None:
        return None
    serious = [note for note in reading.notes if note.serious and note.code in _LOSE_TEXT]
    if reading.transcript.answer:
        # Named beside the messages: whatever is missing in those, this is what the agent answered.
        doubled = [
            note for note in serious if note.code == _DOUBLED and any(repr(name) in note.message for name in _NAMED)
        ]
        return _said(doubled[0]) if doubled else None
    messages = reading.transcript.messages
    index = _answering(reading.transcript)
    if index is None:
        return None
    answer = messages[index]
    if type(answer) is AssistantMessage:
        if (how := _BROKEN_OFF.get(answer.stop_reason)) is not None:
            return how
        if answer.stop_reason is StopReason.OTHER and reading.events is None and reading.format != "vercel":
            unknown = [note.message for note in reading.notes if note.code == "unknown_stop_reason"]
            if not unknown or "filter" in unknown[-1].lower():
                return "it was cut off by a filter"
    located = reading.events is None and len(subject.run.exchanges) < 2
    # A record can have several results in one message, and the system prompt outside the messages.
    before = sum(
        [
            type(message) is not SystemMessage
            and not (type(message) is ToolResultMessage and type(messages[place - 1]) is ToolResultMessage)
            for place, message in enumerate(messages[:index])
        ]
    )
    users = sum([type(message) is UserMessage for message in messages[:index]])
    for note in serious:
        place = _message_of(note) if located else None
        # Where messages consist of parts, all steps of a turn can be one message.
        if place is None or place >= (users if "/parts/" in note.pointer else before):
            return _said(note)
    return None


def _answering(transcript: Transcript) -> int | None:
    """The index of the message that is the answer."""
    given = set(transcript.given)
    for index in range(len(transcript.messages) - 1, -1, -1):
        message = transcript.messages[index]
        if index not in given and type(message) is AssistantMessage and message.plain_text():
            return index
    return None


def _message_of(note: Note) -> int | None:
    """The index, in the record, of the message that a note points into; None when that is not known."""
    parts = note.pointer.split("/")[1:]
    if parts and parts[0] in _MESSAGES:
        parts = parts[1:]
    return int(parts[0]) if parts and parts[0].isdecimal() else None


def _said(note: Note) -> str:
    return f"{note.message} ({note.code}{f' at {note.pointer}' if note.pointer else ''})"
