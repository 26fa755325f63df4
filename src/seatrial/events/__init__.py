"""A run's output as a stream of events: AG-UI's 31 types, in sequenced envelopes or bare.

- `types`: the events; `envelope`: what goes around them; `codec`, `event_reader`: bytes and back, strict and lenient
- `framing`: SSE and NDJSON frames out of chunks of any size; `log`: a whole recorded stream
- `expand`, `verify`, `fold`: chunks to whole events, the rules of order, and what the events add up to; `replay` does
  all three in one pass
- `projection`, `unfold`: to the transcript and back; `layout`: what of a transcript AG-UI has no field for
- `run_input`, `agui_messages`, `patch`: what a run starts from, AG-UI's messages, JSON Patch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.events.codec import encode_event as encode_event
    from seatrial.events.codec import encode_events as encode_events
    from seatrial.events.codec import from_native as from_native
    from seatrial.events.codec import to_native as to_native
    from seatrial.events.envelope import Cursor as Cursor
    from seatrial.events.envelope import RunStreamTerminal as RunStreamTerminal
    from seatrial.events.envelope import SequencedOutputEnvelope as SequencedOutputEnvelope
    from seatrial.events.envelope import StreamKeepalive as StreamKeepalive
    from seatrial.events.envelope import cursor_text as cursor_text
    from seatrial.events.envelope import envelope_bytes as envelope_bytes
    from seatrial.events.envelope import envelope_head as envelope_head
    from seatrial.events.envelope import parse_cursor as parse_cursor
    from seatrial.events.envelope import terminal_text as terminal_text
    from seatrial.events.event_reader import EventReader as EventReader
    from seatrial.events.event_reader import decode_event as decode_event
    from seatrial.events.event_reader import read_event as read_event
    from seatrial.events.expand import Expander as Expander
    from seatrial.events.expand import expand as expand
    from seatrial.events.fold import Folded as Folded
    from seatrial.events.fold import Folding as Folding
    from seatrial.events.fold import fold as fold
    from seatrial.events.framing import MAX_FRAME_BYTES as MAX_FRAME_BYTES
    from seatrial.events.framing import NdjsonParser as NdjsonParser
    from seatrial.events.framing import SseFrame as SseFrame
    from seatrial.events.framing import SseParser as SseParser
    from seatrial.events.framing import encode_ndjson as encode_ndjson
    from seatrial.events.framing import encode_sse as encode_sse
    from seatrial.events.framing import encode_sse_comment as encode_sse_comment
    from seatrial.events.log import EventLog as EventLog
    from seatrial.events.log import LogReader as LogReader
    from seatrial.events.log import read_log as read_log
    from seatrial.events.patch import Patcher as Patcher
    from seatrial.events.projection import to_transcript as to_transcript
    from seatrial.events.replay import Replay as Replay
    from seatrial.events.replay import replay as replay
    from seatrial.events.run_input import RunAgentInput as RunAgentInput
    from seatrial.events.run_input import read_run_input as read_run_input
    from seatrial.events.run_input import resume_problem as resume_problem
    from seatrial.events.run_input import start_messages as start_messages
    from seatrial.events.types import TERMINAL_STATUSES as TERMINAL_STATUSES
    from seatrial.events.types import Event as Event
    from seatrial.events.types import RunStatus as RunStatus
    from seatrial.events.unfold import unfold as unfold
    from seatrial.events.verify import Verifier as Verifier
    from seatrial.events.verify import verify as verify
    from seatrial.events.violation import VIOLATION_CODES as VIOLATION_CODES
    from seatrial.events.violation import OrderViolation as OrderViolation

__getattr__, __all__ = attach(
    __name__,
    {
        "codec": "encode_event encode_events from_native to_native",
        "envelope": (
            "Cursor RunStreamTerminal SequencedOutputEnvelope StreamKeepalive cursor_text envelope_bytes "
            "envelope_head parse_cursor terminal_text"
        ),
        "event_reader": "EventReader decode_event read_event",
        "expand": "Expander expand",
        "fold": "Folded Folding fold",
        "framing": "MAX_FRAME_BYTES NdjsonParser SseFrame SseParser encode_ndjson encode_sse encode_sse_comment",
        "log": "EventLog LogReader read_log",
        "patch": "Patcher",
        "projection": "to_transcript",
        "replay": "Replay replay",
        "run_input": "RunAgentInput read_run_input resume_problem start_messages",
        "types": "TERMINAL_STATUSES Event RunStatus",
        "unfold": "unfold",
        "verify": "Verifier verify",
        "violation": "VIOLATION_CODES OrderViolation",
    },
)
