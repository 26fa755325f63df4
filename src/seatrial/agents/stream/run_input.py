"""A case as the input of an AG-UI agent: its messages in AG-UI's shape, and a thread of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.agents.agent import RunRequest
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events.run_input import PROTOCOL_VERSION, RunAgentInput
from seatrial.transcript import Note

_RENAMED = {"tool_calls": "toolCalls", "tool_call_id": "toolCallId"}


def run_input(request: RunRequest) -> RunAgentInput:
    """What is posted. Raises `SeatrialError` when a message of the case cannot be said in AG-UI.

    Every attempt has a thread of its own: an agent must not remember the one that failed. A run of the run service
    is one attempt, and belongs to the thread that it was asked for in.
    """
    if request.run_input is not None:
        return request.run_input
    case = request.case
    thread_id = request.run_id if request.attempt == 1 else f"{request.run_id}.{request.attempt}"
    notes: list[Note] = []
    given = [_agui_message(message, index) for index, message in enumerate(case.messages)]
    messages = agui.read_messages(given, ("messages",), notes)
    for note in notes:
        if note.code == agui.AGUI_MESSAGE_DROPPED:
            raise SeatrialError("invalid_document", f"AG-UI has no such message: {note.message}", pointer=note.pointer)
    messages.append(agui.UserMessage(id=f"{thread_id}-instruction", content=case.instruction))
    return RunAgentInput(
        thread_id=thread_id,
        run_id=thread_id,
        protocol_version=PROTOCOL_VERSION,
        state=case.input,
        messages=[msgspec.to_builtins(message) for message in messages],
        forwarded_props={},
    )


def encode_input(given: RunAgentInput) -> bytes:
    """The body of the request, with the empty lists that agents expect to be there."""
    fields: dict[str, Any] = msgspec.to_builtins(given)
    return wire.encode({"tools": [], "context": [], **fields})


def _agui_message(message: dict[str, Any], index: int) -> dict[str, Any]:
    """A message of OpenAI's shape, with AG-UI's names. The reader of AG-UI's messages mends the rest."""
    told = {_RENAMED.get(key, key): value for key, value in message.items() if value is not None}
    content = told.get("content")
    if type(content) is list:
        told["content"] = [_agui_part(part) for part in content]
    return {"id": f"message-{index + 1}", **told}


def _agui_part(part: Any) -> Any:
    image = part.get("image_url") if type(part) is dict else None
    url = image.get("url") if type(image) is dict else image
    return {"type": "image", "source": {"type": "url", "value": url}} if type(url) is str else part
