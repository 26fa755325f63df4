"""**Events**, one by one, of a run of 2000 like the long one below: to JSON, to the SSE frames that the ag-ui-protocol
package's `EventEncoder` makes, and from JSON with every field checked, which that package leaves to pydantic's
validator of its `Event` union.
"""

from __future__ import annotations

import msgspec
from ag_ui.core import Event
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from bench import corpus
from bench.clock import race
from bench.figure import Figure, speed
from seatrial.events.codec import encode_event
from seatrial.events.event_reader import decode_event
from seatrial.events.framing import encode_sse

EVENTS = 2000


def measure() -> list[Figure]:
    bodies = [msgspec.json.encode(event) for event in corpus.event_run(EVENTS)]
    ours = [decode_event(body) for body in bodies]
    adapter = TypeAdapter(Event)
    theirs = [adapter.validate_json(body) for body in bodies]
    encoder = EventEncoder()
    for body, our, their in zip(bodies, ours, theirs, strict=True):
        frame, their_frame = encode_sse(encode_event(our)), encoder.encode(their).encode()
        for data in (frame.removeprefix(b"data: "), their_frame.removeprefix(b"data: ")):
            assert msgspec.json.decode(data) == msgspec.json.decode(body)
    encoding = race(
        {
            "seatrial": lambda: [encode_event(event) for event in ours],
            "ag-ui-protocol": lambda: [event.model_dump_json(by_alias=True) for event in theirs],
        }
    )
    framing = race(
        {
            "seatrial": lambda: [encode_sse(encode_event(event)) for event in ours],
            "ag-ui-protocol": lambda: [encoder.encode(event) for event in theirs],
        }
    )
    decoding = race(
        {
            "seatrial": lambda: [decode_event(body) for body in bodies],
            "ag-ui-protocol": lambda: [adapter.validate_json(body) for body in bodies],
        }
    )
    return [
        speed(encoding, "event encode", "ag-ui-protocol", at_least=15, pieces=EVENTS),
        speed(framing, "event encode, as an SSE frame", "ag-ui-protocol", at_least=15, pieces=EVENTS),
        speed(decoding, "event decode with validation", "ag-ui-protocol", at_least=5, pieces=EVENTS),
    ]
