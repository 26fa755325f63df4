"""What a run starts from: AG-UI's RunAgentInput, its version, and the answers to open interrupts."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.events import agui_messages as agui
from seatrial.events.types import Interrupt
from seatrial.events.violation import quoted
from seatrial.transcript import Note, note_code

PROTOCOL_VERSION = "1.0"

PROTOCOL_VERSION_UNKNOWN = note_code(
    "protocol_version_unknown",
    "The declared AG-UI version is newer than 1.0 or no version; it was read as 1.0.",
    "look",
)

_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class Tool(msgspec.Struct, omit_defaults=True):
    """A tool that the agent may call."""

    name: str
    description: str
    parameters: Any = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class Context(msgspec.Struct):
    """A piece of information beside the conversation."""

    description: str
    value: str


class ResumeEntry(msgspec.Struct, rename="camel", omit_defaults=True):
    """The answer to one interrupt."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class RunAgentInput(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A request to run an agent."""

    thread_id: str
    run_id: str
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    state: Any = UNSET
    messages: list[dict[str, Any]]
    """AG-UI messages, read by `start_messages`."""
    tools: list[Tool] = []
    context: list[Context] = []
    forwarded_props: Any = UNSET
    resume: list[ResumeEntry] | UnsetType = UNSET


def read_run_input(data: bytes) -> RunAgentInput:
    """Decode a RunAgentInput."""
    return wire.decode_input(data, _DECODER)


def start_messages(run_input: RunAgentInput, notes: list[Note]) -> list[agui.Message]:
    """The messages that a run starts from; what cannot be read is noted."""
    return agui.read_messages(run_input.messages, ("messages",), notes)


def version_note(version: str, at: str) -> list[Note]:
    """A note when a declared version is newer than ours or cannot be understood; the stream is read nevertheless."""
    match = _VERSION.fullmatch(version)
    if match is not None and (int(match[1]), int(match[2])) <= (1, 0):
        return []
    return [Note(PROTOCOL_VERSION_UNKNOWN, at, f"version {quoted(version)} was read as {PROTOCOL_VERSION}")]


def resume_problem(
    interrupts: list[Interrupt], resume: list[ResumeEntry], *, expired: frozenset[str] = frozenset()
) -> str | None:
    """Why the thread cannot continue with these answers, or None.

    Every open interrupt needs an answer, and no other may be answered. Interrupts whose ids are in `expired`
    (the caller has the clock) can only be cancelled.
    """
    answers = {entry.interrupt_id: entry for entry in resume}
    open_ids = {interrupt.id for interrupt in interrupts}
    unanswered = [interrupt.id for interrupt in interrupts if interrupt.id not in answers]
    if unanswered:
        return f"no answer to {', '.join(map(quoted, unanswered))}: a resume must answer every open interrupt"
    unknown = [entry.interrupt_id for entry in resume if entry.interrupt_id not in open_ids]
    if unknown:
        return f"{', '.join(map(quoted, unknown))} is not open"
    late = [entry.interrupt_id for entry in resume if entry.interrupt_id in expired and entry.status != "cancelled"]
    if late:
        return f"{', '.join(map(quoted, late))} has expired and can only be cancelled"
    return None


_DECODER = msgspec.json.Decoder(RunAgentInput)
