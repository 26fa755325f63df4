"""The published schemas of an event and of its envelope: what we accept, which is at least what the seed's schema does.

Only `type` is required. The fields that the seed defines have the seed's types; those that only AG-UI has are named,
with the types of events that have them, and may be anything: what is not as AG-UI has it is repaired, with a note.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.events.codec import EVENT_TYPES
from seatrial.events.envelope import Cursor
from seatrial.events.event_reader import SeedEvent


def event_json_schema() -> dict[str, Any]:
    """The schema of an event."""
    _, components = msgspec.json.schema_components([SeedEvent])
    seed = components[SeedEvent.__name__]
    properties: dict[str, Any] = {}
    for name in sorted({field for kind in EVENT_TYPES.values() for field in kind.__struct_encode_fields__}):
        owners = [owner for owner, kind in EVENT_TYPES.items() if name in kind.__struct_encode_fields__]
        whose = "any event" if len(owners) == len(EVENT_TYPES) else ", ".join(owners)
        properties[name] = {"description": f"Of {whose}."}
    for name, field in seed["properties"].items():
        properties[name] = {**field, **properties.get(name, {})}
    return {"type": "object", "required": ["type"], "properties": properties, "additionalProperties": True}


def envelope_json_schema() -> dict[str, Any]:
    """The schema of an envelope."""
    _, components = msgspec.json.schema_components([Cursor])
    place = components[Cursor.__name__]["properties"]
    return {
        "type": "object",
        "required": ["runId", "threadId", "sequence", "event"],
        "properties": {
            **{name: place[name] for name in ("runId", "threadId", "sequence")},
            "event": event_json_schema(),
        },
        "additionalProperties": False,
    }
