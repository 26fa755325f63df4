"""JSON Schemas of our types, generated from the types themselves.

`make schemas` writes them to `schemas/`; a test fails when the files and the types drift apart.
"""

from __future__ import annotations

import importlib
import inspect
import json
from typing import Any

import msgspec

ID_PREFIX = "https://seatrial.dev/schemas"


class PublishedSchema(msgspec.Struct, frozen=True):
    """One published schema."""

    summary: str
    module: str
    type_name: str
    """Name in that module of the type, or of a function that returns the schema itself."""


SCHEMAS: dict[str, PublishedSchema] = {
    "message": PublishedSchema("one message of the canonical transcript", "seatrial.transcript", "Message"),
    "transcript": PublishedSchema(
        "the canonical transcript: an array of messages", "seatrial.transcript.messages", "Messages"
    ),
    "record": PublishedSchema(
        "a transcript with what its source said about the run", "seatrial.transcript", "Transcript"
    ),
    "note": PublishedSchema("something that had to be dropped, guessed or repaired", "seatrial.transcript", "Note"),
    "run-identity": PublishedSchema("who a run is", "seatrial.transcript", "RunIdentity"),
    "event": PublishedSchema(
        "one event of a run's output (AG-UI's 31 types)", "seatrial.events.schema", "event_json_schema"
    ),
    "envelope": PublishedSchema(
        "a sequenced event of the native log", "seatrial.events.schema", "envelope_json_schema"
    ),
    "keepalive": PublishedSchema("the native stream's keepalive frame", "seatrial.events", "StreamKeepalive"),
    "terminal": PublishedSchema("the native stream's last frame", "seatrial.events", "RunStreamTerminal"),
    "cursor": PublishedSchema("a position in a run's event log", "seatrial.events", "Cursor"),
    "step": PublishedSchema("one tool call of a run with its result", "seatrial.trajectory", "Step"),
    "trajectory": PublishedSchema("the steps of a run and where they came from", "seatrial.trajectory", "Trajectory"),
    "match-result": PublishedSchema("what matching a trajectory gives", "seatrial.trajectory", "MatchResult"),
    "suite": PublishedSchema("a suite file", "seatrial.suites.schema", "suite_json_schema"),
}
"""Every published schema by name."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one of our types."""
    entry = SCHEMAS[name]
    subject = getattr(importlib.import_module(entry.module), entry.type_name)
    body = subject() if inspect.isfunction(subject) else msgspec.json.schema(subject)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{ID_PREFIX}/{name}.schema.json",
        "title": f"Seatrial {name}",
        **_without_indents(body),
    }


def _without_indents(part: Any) -> Any:
    """The same, with descriptions as Python 3.13 has docstrings: earlier ones keep the indentation of the source."""
    if isinstance(part, list):
        return [_without_indents(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: inspect.cleandoc(item) if key == "description" and isinstance(item, str) else _without_indents(item)
        for key, item in part.items()
    }


def schema_text(name: str) -> str:
    """The schema as it is published: indented, ending in a newline."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"
