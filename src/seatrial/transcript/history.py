"""Tool-call ids that are unique across a history, as some providers demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from seatrial.transcript.messages import AssistantMessage, Message, ToolCall, ToolResultMessage

RENAMED_ID_PREFIX = "clark_agent_call_"


class NormalizedIds(msgspec.Struct):
    """A history in which no two tool calls share an id."""

    messages: list[Message]
    renamed_count: int
    """How many calls got a new id."""


def normalize_tool_call_ids(messages: Sequence[Message]) -> NormalizedIds:
    """Give every repeated tool-call id a new one, and the results right after that turn with it.

    The first use of an id keeps it. Results belong to calls by id and, where one turn repeats an id, by position;
    a result too many keeps its id. The messages given are not changed: those that differ are copies.
    """
    ids = _Ids(messages)
    # The ids that the calls of the latest turn have now, in order, by the id they had.
    turn: dict[str, deque[str]] = {}
    normalized: list[Message] = []
    for message in messages:
        if type(message) is ToolResultMessage:
            waiting = turn.get(message.tool_call_id)
            now = waiting.popleft() if waiting else message.tool_call_id
            if now != message.tool_call_id:
                message = msgspec.structs.replace(message, tool_call_id=now)
        else:
            turn = {}
            if type(message) is AssistantMessage:
                message = _with_unique_ids(message, ids, turn)
        normalized.append(message)
    return NormalizedIds(normalized, ids.renamed_count)


class UniqueToolCallIds:
    """The same as a transform of what a provider is sent; the stored history stays as it is."""

    name = "unique_tool_call_ids"

    def __call__(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with unique tool-call ids."""
        return normalize_tool_call_ids(messages).messages


class _Ids:
    """The ids in use, and the next one to give out."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.renamed_count = 0
        self._suffix = 0
        self._used: set[str] = set()
        self._taken: set[str] = set()
        for message in messages:
            if type(message) is ToolResultMessage:
                self._taken.add(message.tool_call_id)
            elif type(message) is AssistantMessage:
                self._taken.update([call.id for call in message.tool_calls()])

    def claim(self, call_id: str) -> str:
        """This id if no call has it yet, else a new one."""
        if call_id not in self._used:
            self._used.add(call_id)
            return call_id
        self.renamed_count += 1
        while True:
            self._suffix += 1
            new_id = f"{RENAMED_ID_PREFIX}{self._suffix}"
            if new_id not in self._taken:
                return new_id


def _with_unique_ids(message: AssistantMessage, ids: _Ids, turn: dict[str, deque[str]]) -> AssistantMessage:
    content = list(message.content)
    changed = False
    for index, block in enumerate(content):
        if type(block) is not ToolCall:
            continue
        now = ids.claim(block.id)
        turn.setdefault(block.id, deque()).append(now)
        if now != block.id:
            content[index] = msgspec.structs.replace(block, id=now)
            changed = True
    return msgspec.structs.replace(message, content=content) if changed else message
