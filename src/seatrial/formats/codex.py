"""Rollouts of Codex, as it writes them below `~/.codex/sessions`: lines of JSON. Read, not written.

The same is there twice, as items of the Responses API (`response_item`) and as events for a user interface
(`event_msg`). The items are the record. The events say how a command ended (its exit code), how the turn ended, and how
many tokens there were, which are cumulative: the last count is the one of the run.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import CALL_MISSING, STREAM_TRUNCATED, SUBAGENT_MISSING
from seatrial.formats.codex_exec import usage_of
from seatrial.formats.dialects import responses
from seatrial.formats.dialects.responses import ITEM_TYPES
from seatrial.formats.reading import EARLIER_TURNS_MISSING, Reading
from seatrial.formats.session_lines import (
    PROBLEM_REPORTED,
    drop_unknown,
    leave_out,
    note_open_end,
    object_in,
    read_lines,
    report_failure,
    text_in,
)
from seatrial.formats.sniffing import CERTAIN, Members, Sample, Sniff, text_of
from seatrial.transcript import AssistantMessage, ToolResultMessage, Transcript

FORMAT: Final = "codex"
_LINES: Final = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "token_usage_record"}
)
_BESIDE: Final = frozenset({"internal_chat_message_metadata_passthrough", "metadata"})
"""What Codex adds to items; no call is in it."""
_STAND_FOR_HERE: Final = frozenset({"compaction", "compaction_summary", "context_compaction", "ghost_snapshot"})
"""Items that stand for others, all of which are in the lines before."""
_INJECTED: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>",
                    "<skill>", "<turn_aborted>")  # fmt: skip
_CALL_ITEMS: Final = frozenset({"CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall"})
_OTHER_ITEMS: Final = frozenset(
    {"UserMessage", "AgentMessage", "Reasoning", "Plan", "HookPrompt", "ContextCompaction", "EnteredReviewMode",
     "ExitedReviewMode", "ImageView", "WebSearch", "ImageGeneration"}
)  # fmt: skip
_CALL_EVENTS: Final = frozenset(
    {"exec_command_begin", "exec_command_end", "patch_apply_begin", "patch_apply_end", "mcp_tool_call_begin",
     "mcp_tool_call_end", "dynamic_tool_call_request", "dynamic_tool_call_response", "view_image_tool_call"}
)  # fmt: skip
_OTHER_EVENTS: Final = frozenset(
    {"token_count", "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "item_started",
     "thread_settings_applied", "thread_name_updated", "context_compacted", "background_event", "plan_update",
     "turn_diff", "web_search_begin", "web_search_end", "exec_command_output_delta", "session_configured",
     "thread_rolled_back", "exec_approval_request", "apply_patch_approval_request", "undo_completed"}
)  # fmt: skip
_STARTS_AGENT: Final = "spawn_agent"


def sniff(sample: Sample) -> Sniff | None:
    """Lines with a type of Codex and a payload."""
    return sample.surest(_sniff_line)


def _sniff_line(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    return Sniff(CERTAIN, f"a line of the type {kind}") if kind in _LINES and "payload" in entry else None


def read(data: bytes) -> Reading:
    """Read the lines of one rollout."""
    tally = NoteTally(len(data))
    lines = read_lines(data, tally)
    reader = _RolloutReader(tally)
    for at, line in lines:
        reader.take_event(line, at)
    for at, line in lines:
        if not reader.chat.takes_piece(at):
            break
        reader.take_item(line, at)
    return reader.finish()


class _RolloutReader:
    def __init__(self, tally: NoteTally) -> None:
        self.run = Transcript(messages=[], metadata={})
        self.chat = Chat(tally, self.run.messages)
        self._id: str | None = None
        self._ends: dict[str, dict[str, Any]] = {}
        """How calls ended, by their ids."""
        self._reported: dict[str, At] = {}
        """Calls that events report, by their ids."""
        self._failure: tuple[str, At] | None = None
        self._open_turns = 0

    # Events: how calls and turns ended

    def take_event(self, line: dict[str, Any], at: At) -> None:
        payload, kind = object_in(line, "payload"), text_in(line, "type")
        if kind == "token_usage_record":
            self._count(payload.get("thread_token_usage"))
        if kind != "event_msg":
            return
        event = text_in(payload, "type")
        at = (*at, "payload")
        if event == "item_completed":
            self._take_completed(object_in(payload, "item"), (*at, "item"))
        elif event in _CALL_EVENTS:
            self._take_end(payload, at)
        elif event in ("task_started", "turn_started"):
            self._failure, self._open_turns = None, 1
        elif event in ("task_complete", "turn_complete"):
            self._open_turns = 0
        elif event in ("turn_aborted", "error"):
            why = text_in(payload, "message", "reason") or "it does not say why"
            self._failure = f"the turn was aborted: {why}" if event == "turn_aborted" else why, at
        elif event in ("warning", "stream_error"):
            text = text_in(payload, "message") or "it does not say what"
            self.chat.tally.add(PROBLEM_REPORTED, at, f"the program reported: {text[:200]}", each=text[:200])
        elif event == "token_count":
            self._count(object_in(payload, "info").get("total_token_usage"))
        elif event not in _OTHER_EVENTS:
            leave_out(payload, str(event), self.chat, at)

    def _count(self, counts: Any) -> None:
        self.run.usage = usage_of(counts) or self.run.usage

    def _take_completed(self, item: dict[str, Any], at: At) -> None:
        kind, call_id = text_in(item, "type"), text_in(item, "id")
        if kind in _CALL_ITEMS:
            if item.get("source") != "user_shell":
                self._take_end({**item, "call_id": call_id}, at)
        elif kind not in _OTHER_ITEMS and call_id is not None:
            self._reported[call_id] = at  # whatever it is, its item has to be there

    def _take_end(self, said: dict[str, Any], at: At) -> None:
        call_id = text_in(said, "call_id")
        if call_id is None:
            drop_unknown(said.get("type"), self.chat, at)
            return
        if said.get("source") != "user_shell":
            self._reported[call_id] = at
        end = {key: said[key] for key in ("exit_code", "success", "error") if said.get(key) is not None}
        if said.get("status") in ("failed", "declined"):
            end["status"] = "failed" if said["status"] == "failed" else "denied"
        result = said.get("result")
        if type(result) is dict and ("Err" in result or object_in(result, "Ok").get("is_error") is True):
            end["error"] = result.get("Err") or True
        if end:
            self._ends.setdefault(call_id, {}).update(end)

    # Items: what was said and done

    def take_item(self, line: dict[str, Any], at: At) -> None:
        payload, kind, chat = object_in(line, "payload"), text_in(line, "type"), self.chat
        at = (*at, "payload")
        if kind == "response_item":
            self._read_item({key: value for key, value in payload.items() if key not in _BESIDE}, payload, at)
        elif kind == "session_meta":
            if self._id is None:
                self._id = text_in(payload, "id", "session_id")
                self.run.metadata.update({key: payload[key] for key in ("cli_version", "cwd") if key in payload})
                prompt = text_in(object_in(payload, "base_instructions"), "text") or text_in(payload, "instructions")
                if prompt is not None:
                    chat.add_system(prompt)
        elif kind == "turn_context":
            if model := text_in(payload, "model"):
                self.run.metadata.setdefault("model", model)
        elif kind == "compacted":
            if not any(type(message) is AssistantMessage for message in chat.messages):
                text = "the rollout begins with what is left of an earlier conversation"
                chat.tally.add(EARLIER_TURNS_MISSING, at, text, each="")
            chat.add_custom("compaction", payload.get("message"))
        elif kind == "world_state":
            leave_out({"type": kind, **payload}, kind, chat, at)
        elif kind not in ("event_msg", "token_usage_record"):
            drop_unknown(kind, chat, at)

    def _read_item(self, item: dict[str, Any], payload: dict[str, Any], at: At) -> None:
        chat, kind = self.chat, text_in(item, "type")
        if kind == "message" and item.get("role") == "user" and _is_injected(payload):
            chat.add_system(_text(payload))
        elif kind in _STAND_FOR_HERE:
            leave_out({"type": kind}, str(kind), chat, at)
        elif kind in ITEM_TYPES and responses.fits(item):
            before = len(chat.messages)
            responses.read(item, chat, at)
            for message in chat.messages[before:]:
                if type(message) is ToolResultMessage and (end := self._ends.get(message.tool_call_id)):
                    chat.mark_failure(message, end)
            if item.get("name") == _STARTS_AGENT:
                chat.tally.add(SUBAGENT_MISSING, at, "the calls of the agent that it starts are not here", each="")
        else:
            drop_unknown(kind, chat, at)

    def finish(self) -> Reading:
        chat = self.chat
        chat.close_turn()
        for call_id, at in self._reported.items():
            if not chat.has_call(call_id):
                chat.tally.add(CALL_MISSING, at, "an event reports a call that is in no item", each="")
        if self._failure is not None:
            report_failure(self._failure[0], self.run, chat, self._failure[1])
        elif self._open_turns:
            chat.tally.add(STREAM_TRUNCATED, (), "the record ends before the turn does")
        else:
            note_open_end(self.run, chat)
        return Reading(FORMAT, self.run, chat.tally.total(), id=self._id, facts=chat.finish())


def _is_injected(payload: dict[str, Any]) -> bool:
    """Whether Codex wrote a message of the user itself: the environment, the project's instructions."""
    kinds = object_in(payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    if type(kinds) is list and kinds:
        return not any(type(kind) is str and kind.startswith(("user", "unknown")) for kind in kinds)
    return _text(payload).lstrip().startswith(_INJECTED)


def _text(payload: dict[str, Any]) -> str:
    content = payload.get("content")
    if type(content) is not list:
        return content if type(content) is str else ""
    return "\n\n".join([text for part in content if (text := text_in(part, "text")) is not None])
