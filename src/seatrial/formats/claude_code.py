"""Sessions of Claude Code, as it writes them below `~/.claude/projects`: lines of JSON. Read, not written.

Lines form a tree by `parentUuid`: an edited prompt or a retry begins a branch. What was called in a branch that was
left was called all the same, so all of them are read, in the order of the file.

A turn of the model stands in several lines with one `message.id`, each with a part of its content and the same counts:
they are one message, and the last counts are its own. Lines with `isSidechain`, and the progress of an agent, are those
of a sub-agent: its calls have it as `actor`. A sub-agent that was started and has no lines here is noted, since its
calls are in a file of their own.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import SUBAGENT_MISSING
from seatrial.formats.dialects import anthropic
from seatrial.formats.reading import EARLIER_TURNS_MISSING, Reading
from seatrial.formats.session_lines import (
    drop_unknown,
    leave_out,
    note_open_end,
    object_in,
    read_lines,
    set_actor,
    text_in,
)
from seatrial.formats.sniffing import CERTAIN, Members, Sample, Sniff, text_of
from seatrial.transcript import AssistantMessage, StopReason, ToolResultMessage, Transcript, note_code
from seatrial.transcript.salvage import MESSAGE_DROPPED

SESSION_BRANCHES = note_code(
    "session_branches",
    "A session has branches (an edited prompt, a retry); all of them were read, in the order of the file.",
    "look",
)

FORMAT: Final = "claude-code"
_LEFT_OUT: Final = frozenset(
    {"system", "summary", "progress", "file-history-snapshot", "queue-operation", "attachment", "custom-title",
     "ai-title", "agent-name", "last-prompt", "tag", "pr-link", "mode", "permission-mode"}
)  # fmt: skip
_MESSAGE_KEYS: Final = frozenset({"role", "content", "stop_reason", "stop_sequence", "usage", "id", "type"})
_WITHOUT_CALLS: Final = frozenset({"model", "container", "stop_details", "diagnostics", "context_management"})
_COUNTS: Final = frozenset(
    {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "server_tool_use"}
)
_LINE_KEYS: Final = frozenset({"message", "toolUseResult", "tool_use_result", "thinkingMetadata", "todos", "mcpMeta"})
"""Keys of lines with objects in them that are read, or are known to hold no call."""
_ENDS: Final = ("is_error", "isError", "exit_code", "exitCode", "returncode")
AGENT_TOOLS: Final = frozenset({"Task", "Agent"})
"""The tools that start a sub-agent, by their names so far."""


def sniff(sample: Sample) -> Sniff | None:
    """Lines of a session name it, and each other."""
    return sample.surest(_sniff_line)


def _sniff_line(entry: Members) -> Sniff | None:
    if "sessionId" in entry and ("parentUuid" in entry or "leafUuid" in entry or "uuid" in entry):
        return Sniff(CERTAIN, "a line with sessionId and uuid")
    if text_of(entry, "type") == "summary" and "leafUuid" in entry:
        return Sniff(CERTAIN, "a summary with leafUuid")
    return None


def read(data: bytes) -> Reading:
    """Read the lines of one session, with those of its sub-agents where they are among them."""
    tally = NoteTally(len(data))
    run = Transcript(messages=[], metadata={})
    conversation = ClaudeConversation(Chat(tally, run.messages), run)
    lines = read_lines(data, tally)
    _note_tree(lines, tally)
    session: str | None = None
    talked = False
    for at, line in lines:
        session = session or text_in(line, "sessionId")
        for key in ("version", "cwd"):
            if text := text_in(line, key):
                run.metadata.setdefault(key, text)
        kind = text_in(line, "type")
        if kind in ("user", "assistant"):
            if line.get("isCompactSummary") is True and not talked:
                text = "the session begins with the summary of an earlier one"
                tally.add(EARLIER_TURNS_MISSING, at, text, each="")
            talked = True
            agent = text_in(line, "agentId")
            conversation.add(line, at, agent or ("subagent" if line.get("isSidechain") is True else None))
        elif kind == "progress" and object_in(line, "data").get("type") == "agent_progress":
            progress = object_in(line, "data")
            said = progress.get("message")
            if type(said) is dict and said.get("type") in ("user", "assistant"):
                agent = text_in(progress, "agentId") or "subagent"
                conversation.started(agent, text_in(line, "parentToolUseID"))
                conversation.add(said, (*at, "data", "message"), agent)
            else:
                leave_out(line, "progress", conversation.chat, at)
        elif kind in _LEFT_OUT:
            leave_out(line, kind, conversation.chat, at)
        else:
            drop_unknown(kind, conversation.chat, at)
    conversation.read()
    note_open_end(run, conversation.chat)
    return Reading(FORMAT, run, tally.total(), id=session, facts=conversation.chat.finish())


def _note_tree(lines: list[tuple[At, dict[str, Any]]], tally: NoteTally) -> None:
    """Note parents that are not in the file, and branches: two prompts, or two turns, after one line."""
    known = {text_in(line, "uuid") for _, line in lines}
    after: dict[str, str] = {}
    for at, line in lines:
        parent, kind = text_in(line, "parentUuid"), line.get("type")
        if parent is None or kind not in ("user", "assistant"):
            continue
        if parent not in known:
            tally.add(EARLIER_TURNS_MISSING, (*at, "parentUuid"), "this continues a line that is not here", each="")
        message = object_in(line, "message")
        if kind == "user" and (line.get("isMeta") is True or _holds_result(message)):
            continue
        mine = f"turn {text_in(message, 'id')}" if kind == "assistant" else f"prompt {text_in(line, 'uuid')}"
        if after.setdefault(parent, mine) != mine:
            tally.add(SESSION_BRANCHES, at, "another branch of the session begins here", each="")


def _holds_result(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return type(content) is list and any(type(part) is dict and part.get("type") == "tool_result" for part in content)


class ClaudeConversation:
    """Messages of Claude Code, gathered from lines and read when all of them are there."""

    def __init__(self, chat: Chat, run: Transcript) -> None:
        self.chat = chat
        self._run = run
        self._items: list[tuple[dict[str, Any], dict[str, Any], At, str | None]] = []
        """Each message with the line that it began in, its place, and the sub-agent that it is of."""
        self._by_id: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._uuids: dict[str, dict[str, Any]] = {}
        self._made: dict[int, list[Any]] = {}
        """The calls of messages that stand in several lines, by the identity of the message."""
        self._types: dict[str, str] = {}
        """What the sub-agent is that a call starts, by the id of the call."""
        self._parents: dict[str, str] = {}
        """The call that started a sub-agent, by the id of the sub-agent."""

    def started(self, agent: str, call_id: str | None) -> None:
        """A sub-agent was started by that call."""
        if call_id is not None:
            self._parents.setdefault(agent, call_id)

    def add(self, line: dict[str, Any], at: At, agent: str | None) -> None:
        """Take one line of a user or of the assistant."""
        for key, value in line.items():
            if key not in _LINE_KEYS and (type(value) is dict or type(value) is list):
                self.chat.drop_key(key, value, at, agent=line["type"] == "assistant")
        message = line.get("message")
        if type(message) is not dict:
            self.chat.tally.add(MESSAGE_DROPPED, at, "a line has no message")
            return
        uuid = text_in(line, "uuid")
        if uuid is not None and self._uuids.setdefault(uuid, line) == line and self._uuids[uuid] is not line:
            return  # a session that was resumed repeats its lines
        found = object_in(line, "toolUseResult") or object_in(line, "tool_use_result")
        for part in message["content"] if _holds_result(message) and found else ():
            if (called := text_in(part, "tool_use_id")) and (started := text_in(found, "agentId")):
                self.started(started, called)
        item = {key: value for key, value in message.items() if key not in _WITHOUT_CALLS and value is not None}
        if type(usage := item.get("usage")) is dict:
            item["usage"] = {key: count for key, count in usage.items() if key in _COUNTS}
        item["role"] = line["type"]
        message_id = text_in(message, "id")
        known = self._by_id.get((message_id, agent)) if message_id and line["type"] == "assistant" else None
        if known is not None:
            self._merge(known, item)
            return
        if message_id is not None:
            self._by_id[message_id, agent] = item
        self._items.append((item, line, at, agent))

    def _merge(self, known: dict[str, Any], item: dict[str, Any]) -> None:
        parts = known["content"] = _parts(known.get("content"))
        made = self._made.setdefault(id(known), [part for part in parts if _is_call(part)])
        for part in _parts(item.get("content")):
            if _is_call(part):
                if part in made:
                    continue  # a turn that is written again as a whole repeats its calls
                made.append(part)
            parts.append(part)
        known.update({key: item[key] for key in item if key != "content"})

    def read(self) -> None:
        """Add all messages to the transcript."""
        answer: AssistantMessage | None = None
        results: set[tuple[str, str]] = set()
        for item, *_ in self._items:
            for part in _parts(item.get("content")):
                kind = text_in(object_in(part, "input"), "subagent_type") if _is_call(part) else None
                if kind is not None and (call_id := text_in(part, "id")) is not None:
                    self._types[call_id] = kind
        for item, line, at, agent in self._items:
            if not self.chat.takes_piece(at):
                break
            before = len(self.chat.messages)
            at = (*at, "message")
            if item["role"] == "assistant":
                anthropic.read(item, self.chat, at)
                message = next(m for m in reversed(self.chat.messages) if type(m) is AssistantMessage)
                if line.get("isApiErrorMessage") is True:
                    message.stop_reason = StopReason.ERROR
                    message.error_message = message.plain_text() or "the provider answered with an error"
                answer = message if agent is None and message.plain_text() else answer
            elif line.get("isMeta") is True or line.get("isCompactSummary") is True or line.get("isSynthetic") is True:
                kind = "compaction" if line.get("isCompactSummary") is True else "meta"
                if _holds_result(item):
                    anthropic.read(item, self.chat, at)
                else:
                    self.chat.add_custom(kind, item.get("content"))
            else:
                repeated = _results(item) <= results if _holds_result(item) else False
                if repeated:
                    continue  # of a sub-agent, in its progress and again in its own lines
                results |= _results(item)
                anthropic.read(item, self.chat, at)
                self._mark_ends(line, before)
            if agent is not None:
                set_actor(self.chat, before, *self._named(agent))
        self._note_missing()
        last = next((m for m in reversed(self.chat.messages) if type(m) is AssistantMessage), None)
        if answer is not None and last is not answer and self._run.answer is None:
            self._run.answer = answer.plain_text()

    def _mark_ends(self, line: dict[str, Any], before: int) -> None:
        found = object_in(line, "toolUseResult") or object_in(line, "tool_use_result")
        added = [message for message in self.chat.messages[before:] if type(message) is ToolResultMessage]
        if len(added) != 1 or not found:
            return
        said: dict[str, Any] = {key: found[key] for key in _ENDS if key in found}
        if found.get("interrupted") is True:
            said["status"] = "interrupted"
        self.chat.mark_failure(added[0], said)

    def _named(self, agent: str) -> tuple[str, str | None]:
        """What a sub-agent is called, and the call that started it."""
        parent = self._parents.get(agent)
        return self._types.get(parent or "", agent), parent

    def _note_missing(self) -> None:
        """Note sub-agents of which no line is here, unless the record says that they called nothing."""
        here = {self._parents.get(agent) for *_, agent in self._items if agent is not None}
        # In older sessions the lines of a sub-agent do not say which call started it.
        unknown = [
            line
            for _, line, _, agent in self._items
            if agent is not None and agent not in self._parents and line.get("isSidechain") is True
        ]
        beginnings = [text_in(line, "parentUuid") for line in unknown].count(None)
        idle = {
            text_in(part, "tool_use_id")
            for item, line, *_ in self._items
            for part in _parts(item.get("content"))
            if (object_in(line, "toolUseResult") or object_in(line, "tool_use_result")).get("totalToolUseCount") == 0
        }
        started = [
            (call_id, at)
            for item, _, at, _ in self._items
            for part in _parts(item.get("content"))
            if _is_call(part) and text_in(part, "name") in AGENT_TOOLS and (call_id := text_in(part, "id")) not in idle
        ]
        for _, at in [found for found in started if found[0] not in here][beginnings:]:
            self.chat.tally.add(SUBAGENT_MISSING, at, "the lines of a sub-agent are not in the record", each="")


def _parts(content: Any) -> list[Any]:
    if type(content) is list:
        return content
    return [{"type": "text", "text": content}] if type(content) is str else []


def _is_call(part: Any) -> bool:
    return type(part) is dict and part.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use")


def _results(item: dict[str, Any]) -> set[tuple[str, str]]:
    """The results in a message: the ids of their calls, and what they say."""
    return {(str(part.get("tool_use_id")), repr(part)) for part in _parts(item.get("content")) if type(part) is dict}
