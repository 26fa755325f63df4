"""What the events of a run are made of, where its agent sent none: its messages, and what is known of their calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial.formats.chat.calls import generated_id
from seatrial.formats.reading import Reading
from seatrial.runs.run import Run
from seatrial.trajectory import Step
from seatrial.trajectory.completeness import what_is_missing
from seatrial.trajectory.step import FAILED
from seatrial.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
)
from seatrial.transcript.arguments import unparsed_arguments
from seatrial.transcript.call_facts import CallFacts, PlacedFacts, facts_of_done


class Recorded(msgspec.Struct):
    """What is unfolded to events, so that they show the same calls as the steps."""

    transcript: Transcript
    facts: list[PlacedFacts]
    partial: str | None
    """Why not all calls are known."""


def recorded(run: Run, reading: Reading) -> Recorded:
    """What is recorded of a run: what was done, and not what was given.

    Calls that only a trace has get messages of their own. Where the messages have calls, and other ones, they stay: the
    record contradicts itself, which the run says.
    """
    known = run.completeness
    partial = None if known is None or known.level == "complete" else what_is_missing(known)
    messages = reading.transcript.done()
    facts = facts_of_done(reading.facts, reading.transcript.given)
    reported = run.steps if run.reported is None else run.reported
    traced = [step for step in reported if step.source == "trace"]
    if traced and not any(isinstance(message, AssistantMessage) and message.tool_calls() for message in messages):
        said = [at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)]
        answer = said[-1] if said else len(messages)
        made, facts = _messages_of(traced, answer)
        messages = [*messages[:answer], *made, *messages[answer:]]
    return Recorded(msgspec.structs.replace(reading.transcript, messages=messages, given=[]), facts, partial)


def _messages_of(steps: Sequence[Step], start: int) -> tuple[list[Message], list[PlacedFacts]]:
    """The steps as messages that stand behind so many others, and what is known of them besides."""
    messages: list[Message] = []
    facts: list[PlacedFacts] = []
    for step in steps:
        text = step.arguments_text
        arguments = step.arguments if text is None else unparsed_arguments("not JSON", text)
        call = ToolCall(step.id or generated_id((step.index,)), step.name, arguments)
        said = CallFacts(step.started_at, step.ended_at, step.duration_ms, step.status, step.error, step.executed_by)
        facts.append(PlacedFacts(start + len(messages), said))
        messages.append(AssistantMessage([call], StopReason.TOOL_USE))
        if step.result is not UNSET:
            content = step.result if type(step.result) is str else wire.encode(step.result).decode()
            failed = step.status in FAILED
            messages.append(ToolResultMessage(call.id, call.name, [TextBlock(content)], is_error=failed))
    return messages, facts
