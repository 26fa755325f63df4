"""The native event log: one sequenced envelope per line.

Read in every framing that `agui` reads, with KEEPALIVE and TERMINAL frames; written without them, because a log holds
events and nothing else.
"""

from __future__ import annotations

from seatrial.events import encode_event, encode_ndjson, envelope_bytes, envelope_head, to_native
from seatrial.formats.agui import read_events, unfolded
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import LIKELY, SURE, Members, Sample, Sniff, text_of
from seatrial.transcript import Transcript

FORMAT = "events"


def sniff(sample: Sample) -> Sniff | None:
    """Envelopes with a sequence, or the frames of a stream of them."""
    return sample.surest(_sniff_envelope)


def _sniff_envelope(entry: Members) -> Sniff | None:
    if "sequence" in entry and "runId" in entry and "event" in entry:
        return Sniff(SURE + 5, "envelopes with runId and sequence")
    kind = text_of(entry, "type")
    return Sniff(LIKELY, f"a stream frame of the type {kind}") if kind in ("KEEPALIVE", "TERMINAL") else None


def read(data: bytes) -> Reading:
    """The transcript that the events add up to."""
    return read_events(data, FORMAT)


def write(transcript: Transcript) -> Written:
    """A log of a run that has the transcript as its result. It loses nothing."""
    return write_reading(Reading(FORMAT, transcript, []))


def write_reading(reading: Reading) -> Written:
    """The same, with what is known of the calls."""
    run_id, thread_id, events = unfolded(reading)
    head = envelope_head(run_id, thread_id)
    lines = [
        encode_ndjson(envelope_bytes(head, sequence, encode_event(to_native(event))))
        for sequence, event in enumerate(events)
    ]
    return Written(b"".join(lines), [])
