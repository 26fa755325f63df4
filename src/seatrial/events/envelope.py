"""Around an event: the sequenced envelope, the keepalive, the terminal frame, and the cursor.

All four are closed objects: an unknown key is refused. An event is encoded once; `envelope_bytes` puts an
envelope around bytes that exist already, and `cursor_text` is the `id:` of an SSE frame.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events.types import Event, OpaqueId, RunStatus, Sequence


class SequencedOutputEnvelope(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """One event with its place in the run. Sequences start at 0 and have no gaps."""

    run_id: OpaqueId
    thread_id: OpaqueId
    sequence: Sequence
    event: Event


class Cursor(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The last event that was received. To resume is to ask for what has a higher sequence."""

    run_id: OpaqueId
    thread_id: OpaqueId | UnsetType = UNSET
    sequence: Sequence


class StreamKeepalive(msgspec.Struct, tag_field="type", tag="KEEPALIVE", forbid_unknown_fields=True):
    """Says that the stream is alive, and how far it has been sent."""

    cursor: Cursor


class RunStreamTerminal(
    msgspec.Struct, tag_field="type", tag="TERMINAL", rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Closes a stream, after every stored event. A frame, not an event: it is never stored."""

    run_id: OpaqueId
    status: RunStatus


def envelope_head(run_id: str, thread_id: str) -> bytes:
    """The part of an envelope that all events of a run share."""
    return b'{"runId":' + wire.encode(run_id) + b',"threadId":' + wire.encode(thread_id) + b',"sequence":'


def envelope_bytes(head: bytes, sequence: int, event: bytes) -> bytes:
    """The envelope of `envelope_head` around an event that is encoded already."""
    return b'%b%d,"event":%b}' % (head, sequence, event)


def cursor_text(run_id: str, sequence: int) -> str:
    """`<runId>:<sequence>`, in one line of printable ASCII.

    Anything else in the run id, and `%`, is percent-encoded: the text has to survive as an SSE field and as the
    header `Last-Event-ID`.
    """
    quoted = _UNPRINTABLE.sub(lambda match: b"%%%02X" % match[0][0], run_id.encode("utf-8", "replace"))
    return f"{quoted.decode('ascii')}:{sequence}"


def terminal_text(run_id: str) -> str:
    """`<runId>:end`: the `id:` of the TERMINAL frame. A client that has it has everything."""
    return f"{cursor_text(run_id, 0)[:-1]}end"


def parse_cursor(text: str) -> Cursor:
    """The cursor of `cursor_text`. A run id may contain colons: the last one counts."""
    match = _CURSOR.fullmatch(text)
    if match is not None:
        run_id = _QUOTED.sub(lambda quoted: bytes([int(quoted[1], 16)]), match[1].encode("utf-8", "replace"))
        try:
            return msgspec.convert({"runId": run_id.decode(), "sequence": int(match[2])}, Cursor)
        except (UnicodeDecodeError, msgspec.ValidationError):
            pass
    raise SeatrialError("invalid_cursor", f"expected `<runId>:<sequence>`, got {text[:80]!r}")


_UNPRINTABLE = re.compile(rb"[^!-$&-~]")
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")
_CURSOR = re.compile(r"(.+):(0|[1-9][0-9]{0,18})", re.DOTALL)
