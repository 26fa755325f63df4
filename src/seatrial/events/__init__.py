"""A run's output as a stream of events: AG-UI's 31 types, in sequenced envelopes or bare.

- `types`: the events; `envelope`: what goes around them; `codec`, `event_reader`: bytes and back, strict and lenient
- `sse`, `ndjson`: frames out of chunks of any size; `log`: a whole recorded stream
- `expand`, `verify`, `fold`: chunks to whole events, the rules of order, and what the events add up to; `replay` does
  all three in one pass
- `projection`, `unfold`: to the transcript and back
- `run_input`, `agui_messages`, `patch`: what a run starts from, AG-UI's messages, JSON Patch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.events.codec import encode_event, encode_events, from_native, to_native
    from seatrial.events.envelope import (
        Cursor,
        RunStreamTerminal,
        SequencedOutputEnvelope,
        StreamKeepalive,
        cursor_text,
        envelope_bytes,
        envelope_head,
        parse_cursor,
        terminal_text,
    )
    from seatrial.events.event_reader import EventReader, decode_event, read_event
    from seatrial.events.expand import Expander, expand
    from seatrial.events.fold import Folded, Folding, fold
    from seatrial.events.framing import (
        MAX_FRAME_BYTES,
        NdjsonParser,
        SseFrame,
        SseParser,
        encode_ndjson,
        encode_sse,
        encode_sse_comment,
    )
    from seatrial.events.log import EventLog, LogReader, read_log
    from seatrial.events.patch import Patcher
    from seatrial.events.projection import to_transcript
    from seatrial.events.replay import Replay, replay
    from seatrial.events.run_input import RunAgentInput, read_run_input, resume_problem, start_messages
    from seatrial.events.types import TERMINAL_STATUSES, Event, TaskStatus
    from seatrial.events.unfold import unfold
    from seatrial.events.verify import Verifier, verify
    from seatrial.events.violation import VIOLATION_CODES, OrderViolation

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
    "OrderViolation",
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
    "cursor_text",
    "decode_event",
    "encode_event",
    "encode_events",
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
    "terminal_text",
    "to_native",
    "to_transcript",
    "unfold",
    "verify",
]

__getattr__ = attach(
    __name__,
    {
        "codec": (
            "encode_event",
            "encode_events",
            "from_native",
            "to_native",
        ),
        "envelope": (
            "Cursor",
            "RunStreamTerminal",
            "SequencedOutputEnvelope",
            "StreamKeepalive",
            "cursor_text",
            "envelope_bytes",
            "envelope_head",
            "parse_cursor",
            "terminal_text",
        ),
        "event_reader": (
            "EventReader",
            "decode_event",
            "read_event",
        ),
        "expand": (
            "Expander",
            "expand",
        ),
        "fold": (
            "Folded",
            "Folding",
            "fold",
        ),
        "framing": (
            "MAX_FRAME_BYTES",
            "NdjsonParser",
            "SseFrame",
            "SseParser",
            "encode_ndjson",
            "encode_sse",
            "encode_sse_comment",
        ),
        "log": (
            "EventLog",
            "LogReader",
            "read_log",
        ),
        "patch": ("Patcher",),
        "projection": ("to_transcript",),
        "replay": (
            "Replay",
            "replay",
        ),
        "run_input": (
            "RunAgentInput",
            "read_run_input",
            "resume_problem",
            "start_messages",
        ),
        "types": (
            "TERMINAL_STATUSES",
            "Event",
            "TaskStatus",
        ),
        "unfold": ("unfold",),
        "verify": (
            "Verifier",
            "verify",
        ),
        "violation": (
            "VIOLATION_CODES",
            "OrderViolation",
        ),
    },
)
