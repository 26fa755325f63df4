"""Agents that speak A2A 0.3.0 over JSON-RPC: one `message/send`, answered with a message or with a task.

The protocol has no list of calls, so an answer leaves the agent's calls unknown. Tasks are not polled: the agent is
asked to answer when it is done (`blocking`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatrial.agents.http.response import decoded, error_text
from seatrial.errors import SeatrialError
from seatrial.formats.chat.hidden_calls import CALLS_IN_METADATA, may_hold_call, note_repeated_keys
from seatrial.formats.chat.notes import json_kind
from seatrial.formats.chat.parts import CONTENT_DROPPED, has_visible_text, read_text, visible
from seatrial.formats.reading import WAITS_FOR_INPUT, Reading
from seatrial.runs import Fault
from seatrial.transcript import AssistantMessage, Note, StopReason, TextBlock, Transcript, pointer

FORMAT = "a2a"
_FAILED = ("failed", "rejected", "canceled")
_WAITING = ("input-required", "auth-required")


def a2a_body(instruction: str, message_id: str) -> dict[str, Any]:
    """The request: one message of the user, outside of any context."""
    message = {
        "kind": "message",
        "messageId": message_id,
        "role": "user",
        "parts": [{"kind": "text", "text": instruction}],
    }
    configuration = {"acceptedOutputModes": ["text/plain", "application/json"], "blocking": True}
    params = {"message": message, "configuration": configuration}
    return {"jsonrpc": "2.0", "id": message_id, "method": "message/send", "params": params}


def read_a2a(data: bytes) -> tuple[Reading, Fault | None]:
    """The message, or the task, with its fault. Raises `SeatrialError` when it is not a response of JSON-RPC."""
    body, notes = decoded(data)
    if type(body) is not dict or ("result" not in body and "error" not in body):
        raise SeatrialError("invalid_document", "a response of JSON-RPC has a `result` or an `error`")
    result = body.get("result")
    fault = Fault("agent_reported_error", error_text(body["error"])) if body.get("error") else None
    answer = ""
    if type(result) is dict:
        answer, ended = _read_result(result, notes)
        fault = fault or ended
    elif fault is None:
        raise SeatrialError("invalid_document", f"expected a message or a task, got {json_kind(result)}")
    if may_hold_call("", body):
        notes.append(Note(CALLS_IN_METADATA, "/result", "this looks like tool calls, which A2A has no place for"))
    said = [AssistantMessage([TextBlock(answer)], StopReason.END_TURN)] if answer else []
    reading = Reading(FORMAT, Transcript([*said], answer or None), notes, answer_only=True)
    return note_repeated_keys(data, reading), fault


def _read_result(result: dict[str, Any], notes: list[Note]) -> tuple[str, Fault | None]:
    status = result.get("status")
    if type(status) is not dict:
        if "parts" not in result:
            return "", Fault("agent_bad_response", "the result is neither a message (`parts`) nor a task (`status`)")
        return _visible(_texts(result.get("parts"), ("result", "parts"), notes)), None
    state = status.get("state")
    message = status.get("message")
    told = _visible(_texts(message.get("parts"), ("result", "status"), notes)) if type(message) is dict else ""
    if state in _FAILED:
        return told, Fault("agent_reported_error", told or f"the agent's task ended as {state!r}")
    if state in _WAITING:
        text = f"the agent's task is {state!r}: it waits, and what it would do next is unknown"
        notes.append(Note(WAITS_FOR_INPUT, "/result/status/state", text))
    elif state != "completed":
        shown = repr(state[:40]) if type(state) is str else json_kind(state)
        return told, Fault(
            "agent_bad_response", f"the agent's task is {shown}, not ended: Seatrial does not poll tasks"
        )
    artifacts = result.get("artifacts")
    found: list[str] = []
    for index, artifact in enumerate(artifacts if type(artifacts) is list else ()):
        if type(artifact) is dict:
            found += _texts(artifact.get("parts"), ("result", "artifacts", index, "parts"), notes)
    return (_visible(found) or told) if state == "completed" else (told or _visible(found)), None


def _texts(parts: Any, at: tuple[str | int, ...], notes: list[Note]) -> list[str]:
    found = []
    for index, part in enumerate(parts if type(parts) is list else ()):
        kind = part.get("kind") if type(part) is dict else json_kind(part)
        if type(part) is dict and type(part.get("text")) is str:
            found.append(part["text"])
        elif kind == "data" and "data" in part:
            found.append(read_text(part["data"], (*at, index), notes))
        else:
            text = f"dropped a part of the kind {str(kind)[:40]!r}"
            notes.append(Note(CONTENT_DROPPED, pointer(*at, index), text, "look" if kind == "file" else None))
    return found


def _visible(texts: Iterable[str]) -> str:
    text = "\n".join(texts)
    return visible(text) if has_visible_text(text) else ""
