"""What chat APIs have no place for: the losses that their writers share. Pointers go into the transcript."""

from __future__ import annotations

from seatrial.formats.loss import CHANGED, NOT_CARRIED
from seatrial.formats.parts import At
from seatrial.formats.tally import NoteTally
from seatrial.transcript import AssistantMessage, ImageBlock, Message, StopReason, ToolResultMessage, Transcript

_RUN_FIELDS = ("answer", "identity", "usage", "cost_usd", "duration_ms", "metadata")


def lose_field(tally: NoteTally, at: At, field: str) -> None:
    """Note that a field is not carried; every further one of that name is only counted."""
    tally.add(NOT_CARRIED, (*at, field), f"{field} is not carried", each=field)


def lose_block(tally: NoteTally, at: At, kind: str) -> None:
    """Note that a block, or a whole message, is not carried."""
    tally.add(NOT_CARRIED, at, f"{kind} is not carried")


def change(tally: NoteTally, at: At, how: str) -> None:
    """Note that something comes back in another form."""
    tally.add(CHANGED, at, how)


def lose_run_fields(transcript: Transcript, tally: NoteTally) -> None:
    """Note what the transcript says beside its messages."""
    for field in _RUN_FIELDS:
        if getattr(transcript, field) not in (None, {}):
            tally.add(NOT_CARRIED, (field,), f"the {field} of the run is not carried")


def lose_message_fields(message: Message, tally: NoteTally, at: At) -> None:
    """Note what a message says beside its content."""
    if message.timestamp is not None:
        lose_field(tally, at, "timestamp")
    if type(message) is AssistantMessage:
        if message.error_message is not None:
            lose_field(tally, at, "error_message")
        if message.usage is not None:
            lose_field(tally, at, "usage")
        if message.stop_reason is not (StopReason.TOOL_USE if message.tool_calls() else StopReason.END_TURN):
            lose_field(tally, at, "stop_reason")
    elif type(message) is ToolResultMessage:
        if message.narration is not None:
            lose_field(tally, at, "narration")
        if message.details is not None:
            lose_field(tally, at, "details")


def lose_image_fields(image: ImageBlock, tally: NoteTally, at: At) -> None:
    """Note what is said of an image beside its source. A data URL names its media type itself."""
    if image.media_type is not None and not image.source.startswith(f"data:{image.media_type};"):
        lose_field(tally, at, "media_type")
    if image.alt is not None:
        lose_field(tally, at, "alt")
