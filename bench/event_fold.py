"""**A run of 100,000 events**, decoded before: its chunks expanded, its order verified, and all folded to messages and
state, and then to a transcript. The floor is the typed msgspec decode of the same run from its log of JSON lines.
"""

from __future__ import annotations

import msgspec

from bench import corpus
from bench.clock import race
from bench.figure import Figure, cost
from seatrial.events.projection import to_transcript
from seatrial.events.replay import replay
from seatrial.events.types import Event, ToolCallResult
from seatrial.transcript import ToolResultMessage, Transcript

EVENTS = 100_000


def measure() -> list[Figure]:
    log = b"\n".join(msgspec.json.encode(event) for event in corpus.event_run(EVENTS))
    decoder = msgspec.json.Decoder(Event)
    events = decoder.decode_lines(log)
    results = [message for message in _folded(events).messages if isinstance(message, ToolResultMessage)]
    assert len(results) == sum(isinstance(event, ToolCallResult) for event in events)
    result = race({"seatrial": lambda: _folded(events), "typed decode": lambda: decoder.decode_lines(log)}, seconds=6)
    return [cost(result, f"verify, expand and fold {EVENTS:,} events", "typed decode", at_most=4)]


def _folded(events: list[Event]) -> Transcript:
    replayed = replay(events)
    assert replayed.violation is None
    return to_transcript(replayed.folded, replayed.notes)
