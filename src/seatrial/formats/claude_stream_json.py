"""The output of `claude -p --output-format stream-json`, and of `--output-format json`. Read, not written.

The lines are messages as in a session, each with the call inside which a sub-agent wrote it, and a `result` at the end:
the answer, whether the run failed, its cost and its counts. With `--output-format json` there is nothing but the result
(with `--verbose`, an array of all lines): an answer, and no list of calls.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import CALL_MISSING, STREAM_TRUNCATED
from seatrial.formats.claude_code import ClaudeConversation
from seatrial.formats.dialects.anthropic import read_usage
from seatrial.formats.reading import Reading
from seatrial.formats.session_lines import (
    drop_unknown,
    leave_out,
    number_in,
    object_in,
    read_lines,
    report_failure,
    text_in,
)
from seatrial.formats.sniffing import CERTAIN, Members, Sample, Sniff, text_of
from seatrial.transcript import Transcript

FORMAT: Final = "claude-stream-json"
_TYPES: Final = frozenset({"system", "assistant", "user", "result", "stream_event", "control_request"})
_LEFT_OUT: Final = frozenset(
    {"system", "control_request", "control_response", "control_cancel_request", "keep_alive", "tool_progress",
     "auth_status", "rate_limit_event", "prompt_suggestion", "tool_use_summary"}
)  # fmt: skip
_METADATA: Final = ("num_turns", "duration_api_ms", "modelUsage", "structured_output", "stop_reason")


def sniff(sample: Sample) -> Sniff | None:
    """Lines of a session that is named in snake case; or its result, with what it cost."""
    return sample.surest(_sniff_line)


def _sniff_line(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    if kind == "result" and ("total_cost_usd" in entry or ("is_error" in entry and "session_id" in entry)):
        return Sniff(CERTAIN, "a result with its session or its cost")
    if kind in _TYPES and "session_id" in entry:
        return Sniff(CERTAIN, f"a line of the type {kind} with a session_id")
    return None


def read(data: bytes) -> Reading:
    """Read the lines of a run, an array of them, or its result alone."""
    tally = NoteTally(len(data))
    run = Transcript(messages=[], metadata={})
    conversation = ClaudeConversation(Chat(tally, run.messages), run)
    chat = conversation.chat
    session: str | None = None
    result: tuple[dict[str, Any], At] | None = None
    streamed: dict[str, At] = {}
    lines = read_lines(data, tally)
    for at, line in lines:
        session = session or text_in(line, "session_id")
        kind = text_in(line, "type")
        if kind in ("user", "assistant"):
            # What a sub-agent says has the id of the call that started it.
            parent = text_in(line, "parent_tool_use_id")
            if parent is not None:
                conversation.started(parent, parent)
            conversation.add(line, at, parent)
            result = None
        elif kind == "result":
            result = line, at
        elif kind == "stream_event":
            block = object_in(object_in(line, "event"), "content_block")
            if text_in(block, "type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                streamed[text_in(block, "id") or ""] = at
        elif kind in _LEFT_OUT:
            begins = kind == "system" and line.get("subtype") == "init"
            if begins:
                run.metadata.update({key: line[key] for key in ("model", "cwd") if text_in(line, key)})
            if not begins or may_hold_call("", line):
                leave_out(line, kind, chat, at)
        else:
            drop_unknown(kind, chat, at)
    conversation.read()
    for call_id, at in streamed.items():
        if not chat.has_call(call_id):
            tally.add(CALL_MISSING, at, "a call was streamed, and is in no message", each="streamed")
    if result is None:
        tally.add(STREAM_TRUNCATED, (), "the record ends without a result")
    else:
        _end(*result, run, chat)
    alone = len(lines) == 1 and result is not None
    return Reading(FORMAT, run, tally.total(), id=session, facts=chat.finish(), answer_only=alone)


def _end(result: dict[str, Any], at: At, run: Transcript, chat: Chat) -> None:
    answer = text_in(result, "result")
    if answer is not None:
        run.answer = answer
        if not run.messages:
            chat.add_assistant(chat.spoken(answer, (*at, "result")), at)
    if type(result.get("usage")) is dict:
        run.usage, _ = read_usage(result["usage"], chat, (*at, "usage"))
    run.cost_usd, run.duration_ms = number_in(result, "total_cost_usd"), number_in(result, "duration_ms")
    run.metadata.update({key: result[key] for key in _METADATA if result.get(key) not in (None, {}, [])})
    denied = result.get("permission_denials")
    for index, denial in enumerate(denied if type(denied) is list else ()):
        if not chat.has_call(text_in(denial, "tool_use_id")):
            text = f"a call of {text_in(denial, 'tool_name') or 'a tool'!r} was denied, and is in no message"
            chat.tally.add(CALL_MISSING, (*at, "permission_denials", index), text, each="denied")
    subtype = text_in(result, "subtype") or ""
    if result.get("is_error") is True or subtype.startswith("error"):
        errors = result.get("errors")
        first = errors[0] if type(errors) is list and errors and type(errors[0]) is str else None
        report_failure(first or answer or subtype or "it does not say why", run, chat, at)
