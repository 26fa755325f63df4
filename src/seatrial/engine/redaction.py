"""Secrets of the suite, kept out of what is recorded, also when an agent sends them back."""

from __future__ import annotations

import msgspec

from seatrial import wire
from seatrial.agents.agent import Reply
from seatrial.formats.reading import Reading
from seatrial.suites import Secrets
from seatrial.transcript import Note, note_code

SECRET_REMOVED = note_code(
    "secret_removed", "The agent sent back a secret of the suite; the name of the secret stands in its place."
)


class Redaction:
    """Puts `${NAME}` in the place of every secret value."""

    def __init__(self, secrets: Secrets | None) -> None:
        self._secrets = secrets or None

    def data(self, data: bytes) -> bytes:
        """Bytes without secrets; the very same ones when there are none in them."""
        if self._secrets is None:
            return data
        # Bytes that are no text come back as they were.
        text = data.decode("utf-8", "surrogateescape")
        redacted = self._secrets.redact(text)
        return data if redacted == text else redacted.encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        """Text without secrets."""
        return text if self._secrets is None else self._secrets.redact(text)

    def reply(self, reply: Reply) -> Reply:
        """A reply without secrets in its body, its reading and its fault."""
        if self._secrets is None:
            return reply
        if reply.fault is not None:
            fault = reply.fault
            detail = None if fault.detail is None else self.text(fault.detail)
            reply.fault = msgspec.structs.replace(fault, message=self.text(fault.message), detail=detail)
        if reply.body is not None:
            reply.body = self.data(reply.body)
        if reply.reading is not None:
            reply.reading = self._reading(reply.reading)
        return reply

    def _reading(self, reading: Reading) -> Reading:
        kept = msgspec.structs.replace(reading, events=None, calls={})
        written = wire.encode(kept)
        redacted = self.data(written)
        if redacted == written:
            return reading
        clean = wire.decode(redacted, _READING)
        clean.notes.append(Note(SECRET_REMOVED, "", "the agent sent back a secret of the suite"))
        return clean


_READING = msgspec.json.Decoder(Reading)
