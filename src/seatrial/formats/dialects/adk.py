"""Events of Google's Agent Development Kit, in snake case (its Python package) or camel case (its API server).

| wire | transcript |
| --- | --- |
| `content` of the author `user` | user message; `functionResponse` parts are tool results |
| `content` of any other author | assistant message, whatever role it names; `functionResponse` parts are tool results |
| `output` without a `content` | assistant message: what a node of a workflow gave |
| `outputTranscription` | assistant message: what was spoken |
| `usageMetadata`, `finishReason` | usage and stop reason of the turn |
| `errorCode`, `errorMessage` | a turn that failed |
| `partial: true` | nothing: the event with the whole follows; it is missing, so the calls are partial, when none does |

A call in `longRunningToolIds` without a result means that the agent waits for input. What agents that are called as
tools did is not among the events: only the call of such a tool is, with `request` for its only argument, unless the
agent has an input schema of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from seatrial._support import wire
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import (
    ARGUMENTS_CUT,
    STREAM_TRUNCATED,
    SUBAGENT_MISSING,
    note_cut_arguments,
    note_discarded_call,
)
from seatrial.formats.dialects import gemini
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT
from seatrial.transcript import AssistantMessage, StopReason, TextBlock
from seatrial.transcript.salvage import MESSAGE_DROPPED, UNKNOWN_STOP_REASON

_CONTENT_KEYS: Final = frozenset({"role", "parts"})

PARTS: Final[dict[str, Any]] = {}


def fits(item: dict[str, Any]) -> int:
    """An object with an author and the invocation that it belongs to."""
    return 3 if "author" in item and ("invocation_id" in item or "invocationId" in item) else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add what one event says."""
    author = item["author"]
    by_user = author == "user"
    pieces_of = f"events of {author!r}"
    if item.get("partial") is True and not by_user:
        text = "the pieces of a turn are here, and the event with the whole turn is not"
        chat.tally.add_unless_settled(pieces_of, STREAM_TRUNCATED, at, text)
        return
    before = len(chat.messages)
    content = item.get("content")
    if type(content) is dict:
        _read_content(content, chat, (*at, "content"), by_user)
    elif content is not None:
        chat.tally.add(MESSAGE_DROPPED, (*at, "content"), "expected a content", each="content")
    if not by_user:
        chat.tally.settle(pieces_of)
        _add_text(item, chat, at)
        _end_turn(item, chat, at, before)
    for index in range(before, len(chat.messages)):
        chat.messages[index].timestamp = _milliseconds(item.get("timestamp"))
    _note_waiting(item, chat, at)
    chat.note_keys_of_message(item, _KEYS, at, agent=not by_user)
    actions = item.get("actions")
    if type(actions) is dict:
        chat.note_keys_of_message(actions, _ACTIONS, (*at, "actions"), agent=not by_user)
        chat.note_calls_in_known(actions, _ACTIONS - _ASKING, (*at, "actions"))
    chat.note_calls_in_known(item, _KEYS - _READ, at)


def _read_content(content: dict[str, Any], chat: Chat, at: At, by_user: bool) -> None:
    given = content.get("parts")
    if given is None:
        return
    parts = given if type(given) is list else [given]
    within = (*at, "parts")
    chat.note_keys_of_message(content, _CONTENT_KEYS, at, agent=not by_user)
    for part in parts:
        response = gemini.either(part, "functionResponse")
        if type(response) is dict:
            chat.tally.settle(response.get("id"))
        call = gemini.either(part, "functionCall")
        if not by_user and type(call) is dict and _is_of_agent(call.get("args")):
            name = str(call.get("name"))[:40]
            text = f"{name!r} takes a `request`, as an agent does that is called as a tool; its own calls are not here"
            chat.tally.add(SUBAGENT_MISSING, within, text, each=name)
    pieces = chat.pieces(parts, within, agent=not by_user)
    # The results of the agent's tools are its own events, in the role of the user.
    if by_user or (parts and all(gemini.either(part, "functionResponse") is not None for part in parts)):
        chat.add_user_pieces(pieces, within)
    else:
        chat.add_assistant(pieces, within)


def _is_of_agent(arguments: Any) -> bool:
    """Whether a call may be one of `AgentTool`."""
    return type(arguments) is dict and len(arguments) == 1 and type(arguments.get("request")) is str


def _add_text(item: dict[str, Any], chat: Chat, at: At) -> None:
    """What the agent said in another way than by a content."""
    spoken = _either(item, "output_transcription", "outputTranscription")
    if type(spoken) is dict and type(spoken.get("text")) is str and spoken["text"]:
        chat.add_assistant([TextBlock(spoken["text"])], at)
    output, content = item.get("output"), item.get("content")
    if output is None or (type(content) is dict and content.get("parts")):
        return
    text = output if type(output) is str else wire.encode(output).decode()
    last = chat.messages[-1] if chat.messages else None
    # A node gives what its agent said before.
    if text and not (type(last) is AssistantMessage and last.plain_text() == text):
        chat.add_assistant([TextBlock(text)], (*at, "output"))


def _end_turn(item: dict[str, Any], chat: Chat, at: At, before: int) -> None:
    usage = _either(item, "usage_metadata", "usageMetadata")
    reason = _either(item, "finish_reason", "finishReason")
    code, words = (_either(item, *names) for names in (("error_code", "errorCode"), ("error_message", "errorMessage")))
    turn = next((each for each in chat.messages[before:] if type(each) is AssistantMessage), None)
    if turn is None:
        if usage is None and not code and not words:
            return
        turn = chat.add_assistant([], at)
    gemini.add_usage(turn, usage, chat, (*at, "usage_metadata"))
    if type(reason) is str:
        note_discarded_call(reason, chat.tally, at)
        stop = gemini.STOP_REASONS.get(reason)
        if stop is None:
            text = f"the stop reason {reason[:100]!r} was read as 'other'"
            chat.tally.add(UNKNOWN_STOP_REASON, at, text, each=reason)
        if stop is not StopReason.END_TURN:
            turn.stop_reason = stop or StopReason.OTHER
        if stop is StopReason.MAX_TOKENS:
            note_cut_arguments(turn, chat.tally, at)
    if code or words:
        said = [each for each in (code, words) if type(each) is str and each]
        turn.stop_reason = StopReason.ERROR
        turn.error_message = ": ".join(said)[:2000] or "the event has an error"
        note_discarded_call(code, chat.tally, at)
    if item.get("interrupted") is True and turn.tool_calls():
        chat.tally.add(ARGUMENTS_CUT, at, "the turn with these calls was interrupted", each="interrupted")


def _note_waiting(item: dict[str, Any], chat: Chat, at: At) -> None:
    for call_id in _texts(_either(item, "long_running_tool_ids", "longRunningToolIds")):
        chat.tally.add_unless_settled(call_id, WAITS_FOR_INPUT, at, WAITS)


def _texts(value: Any) -> Iterator[str]:
    return (each for each in value if type(each) is str) if type(value) is list else iter(())


def _either(item: dict[str, Any], snake: str, camel: str) -> Any:
    found = item.get(snake)
    return item.get(camel) if found is None else found


def _milliseconds(seconds: Any) -> int | None:
    if type(seconds) is not float and type(seconds) is not int:
        return None
    return int(seconds * 1000) if 0 < seconds < 1e11 else None


def _both(*names: str) -> frozenset[str]:
    camel = [name.split("_")[0] + "".join([word.capitalize() for word in name.split("_")[1:]]) for name in names]
    return frozenset({*names, *camel})


_READ: Final = _both(
    "content", "output", "usage_metadata", "finish_reason", "error_code", "error_message", "output_transcription",
    "actions",
)  # fmt: skip
_KEYS: Final = _READ | _both(
    "author", "avg_logprobs", "branch", "cache_metadata", "citation_metadata", "custom_metadata", "environment_id",
    "go_away", "grounding_metadata", "id", "input_transcription", "interaction_id", "interaction_status",
    "interrupted", "invocation_id", "isolation_scope", "live_session_id", "live_session_resumption_update",
    "logprobs_result", "long_running_tool_ids", "model_version", "node_info", "partial", "timestamp", "turn_complete",
    "turn_complete_reason", "voice_activity",
)  # fmt: skip
_ASKING: Final = _both("requested_auth_configs", "requested_tool_confirmations")
"""What is asked of the user before a call that is listed already."""
_ACTIONS: Final = _ASKING | _both(
    "agent_state", "artifact_delta", "compaction", "end_of_agent", "escalate", "render_ui_widgets",
    "rewind_before_invocation_id", "route", "set_model_response", "skip_summarization", "state_delta",
    "transfer_reason", "transfer_to_agent",
)  # fmt: skip
