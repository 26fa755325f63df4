"""What a response of the Anthropic API says about its turn, beside its blocks."""

from __future__ import annotations

from typing import Any

from seatrial.formats.chat import Chat
from seatrial.formats.dialects.anthropic import STOP_REASONS, note_missing_calls, read_usage
from seatrial.formats.parts import At
from seatrial.formats.turn import TurnEnding, end_turn, tell_run
from seatrial.transcript import Transcript

_NOT_METADATA = frozenset({"id", "type", "role", "content", "stop_reason", "usage", "error"})


def add_response(said: dict[str, Any], blocks: Any, ending: TurnEnding, chat: Chat, run: Transcript, at: At) -> None:
    """Add the message of a response; `said` is what else the response says."""
    message = chat.add_assistant(chat.pieces(blocks, (*at, "content"), agent=True), (*at, "content"))
    ending.stop_reason = said.get("stop_reason")
    end_turn(message, ending, STOP_REASONS, run, chat.tally, (*at, "stop_reason"))
    for key, what in said.items():
        if key not in _NOT_METADATA and what is not None:
            tell_run(run, key, what, chat.tally, at)
    if said.get("usage") is not None:
        message.usage, rest = read_usage(said["usage"], chat, (*at, "usage"))
        note_missing_calls(message, said["usage"], chat, (*at, "usage"))
        if rest:
            tell_run(run, "usage", rest, chat.tally, at)
