"""A run's output as a stream of events: AG-UI's 31 types, in sequenced envelopes or bare.

- `types`: the events; `envelope`: what goes around them; `codec`, `event_reader`: bytes and back, strict and lenient
- `sse`, `ndjson`: frames out of chunks of any size; `log`: a whole recorded stream
- `expand`, `verify`, `fold`: chunks to whole events, the rules of order, and what the events add up to; `replay` does
  all three in one pass
- `projection`, `unfold`: to the transcript and back
- `run_input`, `agui_messages`, `patch`: what a run starts from, AG-UI's messages, JSON Patch
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.events.codec import decode_event, encode_event, from_native, to_native
    from seatrial.events.envelope import (
        Cursor,
        RunStreamTerminal,
        SequencedOutputEnvelope,
        StreamKeepalive,
        cursor_text,
        envelope_bytes,
        envelope_head,
        parse_cursor,
    )
    from seatrial.events.event_reader import EventReader, read_event
    from seatrial.events.expand import Expander, expand
    from seatrial.events.fold import Folded, Folding, fold
    from seatrial.events.log import EventLog, LogReader, read_log
    from seatrial.events.ndjson import NdjsonParser, encode_ndjson
    from seatrial.events.patch import Patcher
    from seatrial.events.projection import to_transcript
    from seatrial.events.replay import Replay, replay
    from seatrial.events.run_input import RunAgentInput, read_run_input, resume_problem, start_messages
    from seatrial.events.sse import MAX_FRAME_BYTES, SseFrame, SseParser, encode_sse, encode_sse_comment
    from seatrial.events.types import TERMINAL_STATUSES, Event, TaskStatus
    from seatrial.events.unfold import unfold
    from seatrial.events.verify import Verifier, verify
    from seatrial.events.violation import VIOLATION_CODES, Violation

__all__ = [
    "MAX_FRAME_BYTES",
    "TERMINAL_STATUSES",
    "VIOLATION_CODES",
    "Cursor",
    "Event",
    "EventLog",
    "EventReader",
    "Expander",
    "Folded",
    "Folding",
    "LogReader",
    "NdjsonParser",
    "Patcher",
    "Replay",
    "RunAgentInput",
    "RunStreamTerminal",
    "SequencedOutputEnvelope",
    "SseFrame",
    "SseParser",
    "StreamKeepalive",
    "TaskStatus",
    "Verifier",
    "Violation",
    "cursor_text",
    "decode_event",
    "encode_event",
    "encode_ndjson",
    "encode_sse",
    "encode_sse_comment",
    "envelope_bytes",
    "envelope_head",
    "expand",
    "fold",
    "from_native",
    "parse_cursor",
    "read_event",
    "read_log",
    "read_run_input",
    "replay",
    "resume_problem",
    "start_messages",
    "to_native",
    "to_transcript",
    "unfold",
    "verify",
]

# Loaded when first asked for: most commands need the types and no more.
_HOMES = {
    "Cursor": "envelope",
    "Event": "types",
    "EventLog": "log",
    "EventReader": "event_reader",
    "Expander": "expand",
    "Folded": "fold",
    "Folding": "fold",
    "LogReader": "log",
    "MAX_FRAME_BYTES": "sse",
    "NdjsonParser": "ndjson",
    "Patcher": "patch",
    "Replay": "replay",
    "RunAgentInput": "run_input",
    "RunStreamTerminal": "envelope",
    "SequencedOutputEnvelope": "envelope",
    "SseFrame": "sse",
    "SseParser": "sse",
    "StreamKeepalive": "envelope",
    "TERMINAL_STATUSES": "types",
    "TaskStatus": "types",
    "VIOLATION_CODES": "violation",
    "Verifier": "verify",
    "Violation": "violation",
    "cursor_text": "envelope",
    "decode_event": "codec",
    "encode_event": "codec",
    "encode_ndjson": "ndjson",
    "encode_sse": "sse",
    "encode_sse_comment": "sse",
    "envelope_bytes": "envelope",
    "envelope_head": "envelope",
    "expand": "expand",
    "fold": "fold",
    "from_native": "codec",
    "parse_cursor": "envelope",
    "read_event": "event_reader",
    "read_log": "log",
    "read_run_input": "run_input",
    "replay": "replay",
    "resume_problem": "run_input",
    "start_messages": "run_input",
    "to_native": "codec",
    "to_transcript": "projection",
    "unfold": "unfold",
    "verify": "verify",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Importing a module puts it into its package under its name; where a function has that name, the function wins."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
