"""The output of `codex exec --json`: events of a thread, its turns and their items. Read, not written.

| item | transcript |
| --- | --- |
| `agent_message`, `reasoning` | what the agent says and thinks |
| `command_execution` | a call of `shell`, with its output; an exit code other than 0 is a failed result |
| `file_change` | a call of `apply_patch` |
| `mcp_tool_call` | a call of the tool, by its own name |
| `web_search` | a call of `web_search` that the provider ran |
| `todo_list` | a call of `update_plan`, each time that it changes |
| `collab_tool_call` | a call of its tool; what the other agent calls is not in the record |
| `error` | a note: the run went on |

An item is known when it is done; one that began and never ended is a call without a result.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.calls import CALL_NAMED_TWICE, Call, nameless_note, set_arguments
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import STREAM_TRUNCATED, SUBAGENT_MISSING, read_usage, split_cached
from seatrial.formats.reading import Reading
from seatrial.formats.session_lines import (
    PROBLEM_REPORTED,
    drop_unknown,
    object_in,
    read_lines,
    report_failure,
    text_in,
)
from seatrial.formats.sniffing import CERTAIN, SURE, Members, Sample, Sniff, text_of
from seatrial.transcript import ReasoningBlock, Transcript, Usage, pointer
from seatrial.transcript.failure import read_status

FORMAT: Final = "codex-exec"
EVENTS: Final = frozenset(
    {"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated",
     "item.completed"}
)  # fmt: skip
_CALLS: Final = frozenset(
    {"command_execution", "file_change", "mcp_tool_call", "web_search", "todo_list", "collab_tool_call"}
)
_KEYS: Final = frozenset(
    {"id", "type", "status", "text", "command", "aggregated_output", "exit_code", "changes", "tool",
     "arguments", "result", "error", "query", "action", "items", "prompt", "sender_thread_id", "receiver_thread_ids",
     "agents_states"}
)  # fmt: skip


def sniff(sample: Sample) -> Sniff | None:
    """Events of threads, turns and items."""
    return sample.surest(_sniff_line)


def _sniff_line(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    if kind not in EVENTS:
        return None
    known = "thread_id" in entry or "item" in entry or "usage" in entry or "error" in entry
    return Sniff(CERTAIN if known else SURE, f"an event of the type {kind}")


def read(data: bytes) -> Reading:
    """Read the lines that `codex exec --json` prints."""
    tally = NoteTally(len(data))
    lines = read_lines(data, tally)
    reader = _ExecReader(tally)
    for at, line in lines:
        if not reader.chat.takes_piece(at):
            break
        reader.take(line, at)
    return reader.finish()


def usage_of(given: Any) -> Usage | None:
    """Counts of Codex, of which the input includes what was read from a cache."""
    if type(given) is not dict:
        return None
    read, written = given.get("cached_input_tokens"), given.get("cache_write_input_tokens")
    counts = split_cached(given.get("input_tokens"), given.get("output_tokens"), read=read, written=written)
    return None if counts is None else read_usage(counts)


class _ExecReader:
    def __init__(self, tally: NoteTally) -> None:
        self.run = Transcript(messages=[], metadata={})
        self.chat = Chat(tally, self.run.messages)
        self._id: str | None = None
        self._open: dict[str, tuple[dict[str, Any], At]] = {}
        """Calls that began and are not done."""
        self._plans: set[str] = set()
        self._failure: tuple[str, At] | None = None
        self._ended = False

    def take(self, line: dict[str, Any], at: At) -> None:
        kind = text_in(line, "type")
        if kind in ("item.started", "item.updated", "item.completed"):
            self._take_item(kind, object_in(line, "item"), (*at, "item"))
        elif kind == "thread.started":
            self._id = text_in(line, "thread_id") or self._id
        elif kind == "turn.started":
            self._ended = False
        elif kind == "turn.completed":
            # The counts are those of the whole thread so far.
            self.run.usage = usage_of(line.get("usage")) or self.run.usage
            self._ended, failure = True, self._failure
            if failure is not None:
                self.chat.tally.add(PROBLEM_REPORTED, failure[1], f"the program reported: {failure[0][:200]}")
            self._failure = None
        elif kind in ("turn.failed", "error"):
            why = text_in(object_in(line, "error"), "message") or text_in(line, "message", "error")
            self._failure = why or "it does not say why", at
            self._ended = self._ended or kind == "turn.failed"
        else:
            drop_unknown(kind, self.chat, at)

    def _take_item(self, event: str, item: dict[str, Any], at: At) -> None:
        kind, item_id = text_in(item, "type"), text_in(item, "id") or ""
        if kind == "todo_list":
            if event != "item.completed" or item_id not in self._plans:
                self._plans.add(item_id)
                self._add_call(item, at, done=True)
        elif event != "item.completed":
            if kind in _CALLS:
                self._open[item_id] = item, at
            elif kind not in ("agent_message", "reasoning", "error"):
                drop_unknown(kind, self.chat, at)
        elif kind in _CALLS:
            begun, _ = self._open.pop(item_id, (item, at))
            if (begun["type"], begun.get("tool")) != (kind, item.get("tool")):
                text = f"it began as another call than the one that ended under the id {item_id[:40]!r}"
                self.chat.tally.add(CALL_NAMED_TWICE, at, text)
            self._add_call(item, at, done=True)
        elif kind == "agent_message":
            text = text_in(item, "text") or ""
            self.chat.extend_turn(self.chat.spoken(text, (*at, "text")), at)
            self.chat.close_turn()
            self.run.answer = text or self.run.answer
            self.chat.note_keys(item, _KEYS, at, agent=True)
        elif kind == "reasoning":
            self.chat.extend_turn([ReasoningBlock(text_in(item, "text") or "")], at)
            self.chat.note_keys(item, _KEYS, at, agent=True)
        elif kind == "error":
            text = text_in(item, "message") or "it does not say what"
            self.chat.tally.add(PROBLEM_REPORTED, at, f"the program reported: {text[:200]}", each=text[:200])
        else:
            drop_unknown(kind, self.chat, at)

    def _add_call(self, item: dict[str, Any], at: At, *, done: bool) -> None:
        chat, kind = self.chat, item["type"]
        name, keys = _SHAPES[kind]
        name = name or text_in(item, "tool")
        if name is None:
            chat.tally.notes.append(nameless_note(pointer(*at)))
            name = kind
        # Not by the item's id: a plan is one item, and each change of it a call.
        call = Call(name, {key: item[key] for key in keys if item.get(key) is not None})
        if kind == "mcp_tool_call":
            set_arguments(call, item.get("arguments") if item.get("arguments") is not None else {})
        if kind != "todo_list":
            call.id = text_in(item, "id")
            if chat.has_call(call.id):
                call.id = None
        block = chat.call(call, at, answered=done, executed_by="provider" if kind == "web_search" else "agent")
        chat.note_keys(item, _KEYS, at, agent=True)
        if kind == "collab_tool_call":
            chat.tally.add(SUBAGENT_MISSING, at, f"{name[:40]!r} hands work to another agent", each="")
        if not done:
            chat.extend_turn([block], at)
        elif kind in ("web_search", "todo_list"):
            chat.set_facts(block, status=read_status(item.get("status")) or "ok")
            chat.extend_turn([block], at)
        else:
            given = item.get("result")
            output = given.get("content", given) if type(given) is dict else item.get("aggregated_output", given)
            result = chat.inside_result(block, output if output is not None else "", at)
            # The status of a call that was refused is `declined`.
            declined = {"status": "denied"} if item.get("status") == "declined" else {}
            chat.mark_failure(result, {**item, **declined})
            chat.extend_turn([block, result], at)
        chat.close_turn()

    def finish(self) -> Reading:
        tally = self.chat.tally
        for item, at in self._open.values():
            self._add_call(item, at, done=False)
        if self._failure is not None:
            report_failure(self._failure[0], self.run, self.chat, self._failure[1])
        elif not self._ended:
            tally.add(STREAM_TRUNCATED, (), "the record ends before the turn does")
        self.chat.close_turn()
        return Reading(FORMAT, self.run, tally.total(), id=self._id, facts=self.chat.finish())


_SHAPES: Final[dict[str, tuple[str | None, tuple[str, ...]]]] = {
    "command_execution": ("shell", ("command",)),
    "file_change": ("apply_patch", ("changes",)),
    "mcp_tool_call": (None, ()),
    "web_search": ("web_search", ("query", "action")),
    "todo_list": ("update_plan", ("items",)),
    "collab_tool_call": (None, ("prompt", "receiver_thread_ids")),
}
"""The name of the tool, where the item does not say it, and the keys that are its arguments."""
