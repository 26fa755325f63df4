"""What a response of the Anthropic API says about its turn, beside its blocks."""

from __future__ import annotations

from typing import Any

from seatrial.formats.chat import Chat
from seatrial.formats.dialects.anthropic import STOP_REASONS
from seatrial.formats.parts import At, json_kind
from seatrial.formats.turn import Ending, end_turn, other_counts, tell_run, token_count
from seatrial.transcript import Transcript, Usage
from seatrial.transcript.salvage import VALUE_DROPPED

_COUNTS = frozenset(Usage.__struct_fields__)
_NOT_METADATA = frozenset({"id", "type", "role", "content", "stop_reason", "usage", "error"})


def add_response(said: dict[str, Any], blocks: Any, ending: Ending, chat: Chat, run: Transcript, at: At) -> None:
    """Add the message of a response; `said` is what else the response says."""
    message = chat.add_assistant(chat.pieces(blocks, (*at, "content"), agent=True), (*at, "content"))
    ending.stop_reason = said.get("stop_reason")
    end_turn(message, ending, STOP_REASONS, run, chat.tally, (*at, "stop_reason"))
    for key, what in said.items():
        if key not in _NOT_METADATA and what is not None:
            tell_run(run, key, what, chat.tally, at)
    usage = said.get("usage")
    if usage is None:
        return
    if type(usage) is not dict:
        text = f"expected an object of token counts, got {json_kind(usage)}"
        chat.tally.add(VALUE_DROPPED, (*at, "usage"), text)
        return
    message.usage = Usage(*[token_count(usage, key, chat.tally, (*at, "usage")) for key in Usage.__struct_fields__])
    if rest := other_counts(usage, _COUNTS):
        tell_run(run, "usage", rest, chat.tally, at)
