"""The transcript's own JSON: an array of messages, or one message in each line.

An object that holds messages and what else is known of the run (`Transcript` as JSON) is read as well.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from seatrial import wire
from seatrial.formats.chat_sniffing import sniff_chat
from seatrial.formats.keys import calls_in_metadata
from seatrial.formats.loss import losses
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import Sample, Sniff
from seatrial.transcript import AssistantMessage, Note, RunIdentity, Transcript, Usage
from seatrial.transcript.document import encode_lines, encode_messages, read_messages
from seatrial.transcript.salvage import VALUE_DROPPED

FORMAT: Final = "transcript"


class _Run(msgspec.Struct):
    """What stands beside the messages."""

    answer: str | None = None
    identity: RunIdentity | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    metadata: dict[str, Any] = {}


def sniff(sample: Sample) -> Sniff | None:
    """Messages with roles and blocks that only the transcript has."""
    return sniff_chat(sample, FORMAT)


def read(data: bytes) -> Reading:
    """Read messages from an array, an object that holds one, a single message, or lines."""
    messages, notes = read_messages(data)
    run = _read_run(data, notes)
    notes += filter(
        None, [calls_in_metadata(key, value, "metadata", messages=messages) for key, value in run.metadata.items()]
    )
    transcript = Transcript(messages, run.answer, run.identity, run.usage, run.cost_usd, run.duration_ms, run.metadata)
    return Reading(FORMAT, transcript, notes)


def write(transcript: Transcript) -> Written:
    """Write the messages as an array."""
    return Written(encode_messages(transcript.messages) + b"\n", _losses(transcript))


def write_lines(transcript: Transcript) -> Written:
    """Write the messages as lines, for files that grow."""
    return Written(encode_lines(transcript.messages), _losses(transcript))


def _read_run(data: bytes, notes: list[Note]) -> _Run:
    try:
        given = _MEMBERS.decode(data)
        if "messages" in given:
            unread = {key: wire.decode(bytes(given[key]), repairs=[]) for key in given.keys() - _READ}
            notes += filter(None, [calls_in_metadata(key, value) for key, value in unread.items()])
            return _RUN.decode(data)
    except msgspec.ValidationError as error:
        if data.lstrip()[:1] == b"{":
            problem = wire.invalid_document(error)
            notes.append(Note(VALUE_DROPPED, problem.pointer or "", f"nothing beside the messages: {problem.message}"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return _Run()


def _losses(transcript: Transcript) -> list[Note]:
    """What the run knows and its messages do not say."""
    said = Transcript(transcript.messages)
    if transcript.answer == said.final_text():
        said.answer = transcript.answer
    if transcript.usage == _usage_of_messages(transcript):
        said.usage = transcript.usage
    return losses(transcript, said)


def _usage_of_messages(transcript: Transcript) -> Usage | None:
    given = [message.usage for message in transcript.messages if type(message) is AssistantMessage and message.usage]
    if not given:
        return None
    return Usage(*[sum([getattr(usage, field) for usage in given]) for field in Usage.__struct_fields__])


_READ = frozenset({"messages", *_Run.__struct_encode_fields__})
_RUN = msgspec.json.Decoder(_Run)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
