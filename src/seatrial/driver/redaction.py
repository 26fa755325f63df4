"""Secrets of the suite, kept out of what is recorded, also when an agent sends them back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from seatrial import formats, wire
from seatrial.agents.agent import Reply
from seatrial.agents.excerpt import MAX_DETAIL
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading
from seatrial.runs import Fault, Grade, Run, Verdict
from seatrial.suites import Secrets
from seatrial.trajectory.observed import ObservedCalls
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, Note, note_code

SECRET_REMOVED = note_code(
    "secret_removed",
    "The agent sent back a secret of the suite; it was replaced by the name of the secret. Serious in a call.",
    "harmless",
)

T = TypeVar("T")

MIN_NUMBER_DIGITS = 6
"""A shorter secret of digits is a number like others when it stands there as one."""

_SCALAR = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|-?[0-9][0-9.eE+-]*')
"""A string, with what makes it a key, or a number."""
_TEXT = msgspec.json.Decoder(str)


class Redaction:
    """Puts `${NAME}` in the place of every secret value."""

    def __init__(self, secrets: Secrets | None) -> None:
        self._secrets = secrets or None

    def text(self, text: str) -> str:
        """Text without secrets."""
        return text if self._secrets is None else self._secrets.redact(text)

    @property
    def active(self) -> bool:
        """Whether there is anything to hide."""
        return self._secrets is not None

    def split(self, text: str) -> tuple[str, str]:
        """Text without secrets, and its end in so far as it may be the beginning of one."""
        if self._secrets is None:
            return text, ""
        text = self._secrets.redact(text)
        whole = len(text) - self._secrets.begun(text)
        return text[:whole], text[whole:]

    def raw(self, data: bytes) -> bytes:
        """Bytes of any kind without secrets; the very same ones when there are none in them."""
        if self._secrets is None:
            return data
        # Bytes that are no text come back as they were.
        text = data.decode("utf-8", "surrogateescape")
        redacted = self._secrets.redact(text)
        return data if redacted == text else redacted.encode("utf-8", "surrogateescape")

    def document(self, data: bytes) -> bytes:
        """A JSON document of our own writing without secrets.

        It stays a document of the same type: a secret such as `8080` is no reason to break a number, nor one such as
        `user` a reason to lose the role of a message. A number that is a whole secret is hidden where the type
        leaves open what there is.
        """
        secrets = self._secrets
        if secrets is None:
            return data
        text = data.decode()
        if secrets.redact(text) == text:
            return data
        key = ""

        def hidden(scalar: re.Match[str]) -> str:
            nonlocal key
            string, colon = scalar.groups()
            if string is not None:
                if colon is not None:
                    key = _TEXT.decode(string)
                return self._string(string) + (colon or "")
            number = scalar.group()
            name = secrets.name_of(number) if len(number) >= MIN_NUMBER_DIGITS and number.isdigit() else None
            return number if name is None or key in _number_keys() else f'"${{{name}}}"'

        return _SCALAR.sub(hidden, text).encode()

    def fault(self, fault: Fault) -> Fault:
        """A fault without secrets."""
        if self._secrets is None:
            return fault
        detail = None if fault.detail is None else self._perhaps_cut(fault.detail)
        return msgspec.structs.replace(fault, message=self._perhaps_cut(fault.message), detail=detail)

    def reply(self, reply: Reply) -> Reply:
        """A reply without secrets in anything that is recorded of it."""
        if self._secrets is None:
            return reply
        if reply.fault is not None:
            reply.fault = self.fault(reply.fault)
        body = reply.body
        if body is not None:
            reply.body = self.raw(body)
        if isinstance(reply.trace_file, bytes):
            reply.trace_file = self.raw(reply.trace_file)
        elif reply.trace_file is not None:
            note = reply.trace_file
            reply.trace_file = msgspec.structs.replace(note, message=self.text(note.message))
        if reply.reading is not None:
            reading = self._reading(reply.reading)
            if reading is not reply.reading and body is not None and (reply.body is body or self._in_pieces(reply)):
                # Where the body of a stream has it in pieces, it cannot be kept at all.
                reply.body = None
                reading.notes.append(Note(SECRET_REMOVED, "", "the body is not kept: a secret is spread over it"))
            reply.reading = reading
        return reply

    def steps(self, steps: list[Step]) -> list[Step]:
        """Steps without secrets: arguments that came in pieces are whole only here."""
        if self._secrets is None or not steps:
            return steps
        written = wire.encode(steps)
        redacted = self.document(written)
        clean: list[Step] = steps if redacted == written else wire.decode(redacted, _decoder(list[Step]))
        return clean

    def observed(self, calls: ObservedCalls | None) -> ObservedCalls | None:
        """Observed calls without secrets, before anything is said of them in a note."""
        if self._secrets is None or calls is None or not calls.steps:
            return calls
        clean = self.steps(calls.steps)
        hidden = sum(before != after for before, after in zip(calls.steps, clean, strict=True))
        return msgspec.structs.replace(calls, steps=clean, incomplete=calls.incomplete + hidden)

    def concluded(self, run: Run) -> None:
        """Take the secrets out of what the conclusion put together."""
        run.steps = self.steps(run.steps)
        if run.reported is not None:
            run.reported = self.steps(run.reported)

    def graded(self, verdicts: list[Verdict], grade: Grade) -> tuple[list[Verdict], Grade]:
        """Verdicts and their grade without secrets in what graders wrote; keys and names stay what they are."""
        if self._secrets is None:
            return verdicts, grade
        written = wire.encode([[[verdict.reasons, verdict.details] for verdict in verdicts], grade.reasons])
        redacted = self.document(written)
        if redacted == written:
            return verdicts, grade
        clean, reasons = wire.decode(redacted)
        redacted_verdicts = [
            msgspec.structs.replace(verdict, reasons=said, details=details)
            for verdict, (said, details) in zip(verdicts, clean, strict=True)
        ]
        return redacted_verdicts, msgspec.structs.replace(grade, reasons=reasons)

    def _perhaps_cut(self, text: str) -> str:
        """Text without secrets, nor parts of one that was cut, or with which it was cut."""
        if self._secrets is None:
            return text
        if len(text) >= MAX_DETAIL:
            text = self._secrets.redact_cut(text)
        # Messages quote the first characters of keys, names and types.
        return self._secrets.redact_beginnings(text)

    def _in_pieces(self, reply: Reply) -> bool:
        """Whether a body that has no secret whole any more may have one in pieces, which reading it puts together."""
        if reply.streamed:
            return True
        if reply.body is None or reply.reading is None:
            return False
        try:
            again = formats.read(reply.body, reply.reading.format)
        except SeatrialError:
            return False  # no stream: those are read whatever is in their lines
        return self._reading(again) is not again

    def _reading(self, reading: Reading) -> Reading:
        for index, note in enumerate(reading.notes):
            if (message := self._perhaps_cut(note.message)) != note.message:
                reading.notes[index] = msgspec.structs.replace(note, message=message)
        written = wire.encode(reading)
        redacted = self.document(written)
        if redacted == written:
            return reading
        clean: Reading = wire.decode(redacted, _decoder(Reading))
        note = Note(SECRET_REMOVED, "", "the agent sent back a secret of the suite")
        if _calls(clean) != _calls(reading):
            # The graders see what is stored: a check on a tool or an argument that is hidden can say nothing.
            note = msgspec.structs.replace(note, message="a call has a secret of the suite in it", weight="serious")
        clean.notes.append(note)
        return clean

    def _string(self, literal: str) -> str:
        # Unescaped first: `n1234` is not in "\n1234".
        value = _TEXT.decode(literal)
        redacted = self.text(value)
        if redacted == value or value in _vocabulary():
            return literal
        return wire.encode(redacted).decode()


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


def _calls(reading: Reading) -> list[object]:
    """What a reading says of calls."""
    calls: list[object] = [
        (call.name, call.arguments)
        for message in reading.transcript.messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls()
    ]
    return [*calls, reading.trace]


@cache
def _vocabulary() -> frozenset[str]:
    """Keys, tags and fixed values of what we write. A secret that is one of these words guards nothing."""
    words: set[str] = set()
    for schema in _schemas():
        words.update(schema.get("properties", ()))
        words.update(word for word in schema.get("enum", ()) if isinstance(word, str))
    return frozenset(words)


@cache
def _number_keys() -> frozenset[str]:
    """Keys under which what we write has numbers, and nothing else can stand."""
    return frozenset(
        key
        for schema in _schemas()
        for key, value in schema.get("properties", {}).items()
        if {option.get("type") for option in (value, *value.get("anyOf", ()))} & {"integer", "number"}
    )


def _schemas() -> Iterator[dict[str, Any]]:
    """The JSON Schemas of what we write, with all that is in them."""
    left: list[Any] = list(msgspec.json.schema_components([Reading, Step, MatchResult]))
    while left:
        schema = left.pop()
        if isinstance(schema, dict):
            yield schema
            left += schema.values()
        elif isinstance(schema, list | tuple):
            left += schema
