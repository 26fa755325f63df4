"""Messages while they grow: in order, by id, and by the tool calls that they hold.

Deltas are collected and joined at the end, so that a message which grows by many of them costs linear time.
A tool result hangs on the message that it stands behind, be there other results between them or not. So one that
comes late finds its place beside its call at once, however long the conversation is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from seatrial.events import agui_messages as agui


class Origin(msgspec.Struct, gc=False):
    """Where a message came from, and how it ended: what AG-UI's messages have no field for."""

    index: int
    """Index of the event that made it; -1 for a message that was there before."""
    timestamp: int | None = None
    """Milliseconds since the epoch, where that event said so."""
    open: bool = False
    """Whether its END has not come."""
    aborted: bool = False
    """Whether its run was cancelled while it was the last message."""
    error: str | None = None
    """Message of the RUN_ERROR that ended its run while it was the last message."""
    error_after: str | None = None
    """The same, when the message is not one that the run could have failed in."""
    given: bool = False
    """Whether the run started from it: it is not the agent's doing."""
    continued: int | None = None
    """How much of the text of a given message was given, where the run continued it."""


# Drafts refer to no one that refers back to them, so the garbage collector need not look at them.


class CallDraft(msgspec.Struct, eq=False, gc=False):
    """A tool call while its arguments grow."""

    call: agui.ToolCall
    parts: list[str]

    def finish(self) -> None:
        """Give the call the arguments as they are now."""
        self.call.function.arguments = "".join(self.parts)


class Draft(msgspec.Struct, eq=False, gc=False):
    """A message while it grows."""

    message: agui.Message
    origin: Origin
    parts: list[str] | None = None
    """The content, once a delta has come for it."""
    calls: list[CallDraft] | None = None
    owns_content: bool = False
    """Whether patches may change the content of an activity in place."""
    position: int = 0
    """Among the messages that are no tool results; a result has that of the message it stands behind."""
    results: list[Draft] | None = None
    """The tool results that stand behind it."""

    def writer(self) -> Callable[[str], None]:
        """Takes the next delta of the content."""
        if self.parts is None:
            content = self.message.content
            self.parts = [content] if type(content) is str and content else []
        return self.parts.append

    def add_call(self, call: agui.ToolCall) -> CallDraft:
        """Let the call, which the message has, grow."""
        arguments = call.function.arguments
        draft = CallDraft(call, [arguments] if arguments else [])
        if self.calls is None:
            self.calls = [draft]
        else:
            self.calls.append(draft)
        return draft

    def finish(self) -> agui.Message:
        """The message as it is now."""
        if self.parts is not None:
            self.message.content = "".join(self.parts)
        if self.calls is not None:
            for call in self.calls:
                call.finish()
        return self.message


def drafted(message: agui.Message, origin: Origin) -> Draft:
    """A message that came whole, with all its calls."""
    draft = Draft(message, origin)
    for call in agui.tool_calls_of(message):
        draft.add_call(call)
    return draft


class Drafts:
    """All messages of a conversation."""

    def __init__(self, drafts: Iterable[Draft]) -> None:
        self.by_id: dict[str, Draft] = {}
        """The first in order, where several have the same id."""
        self.calls: dict[str, CallDraft] = {}
        self.callers: dict[str, Draft] = {}
        """By tool call id: the message that made the call."""
        self.writers: dict[str, Callable[[str], None]] = {}
        """By message id: takes the next delta. Filled as deltas come."""
        self.argument_writers: dict[str, Callable[[str], None]] = {}
        """By tool call id: takes the next piece of arguments. Filled as pieces come."""
        self.size = 0
        """How many messages there are."""
        self.arrange(drafts)

    def arrange(self, drafts: Iterable[Draft]) -> None:
        """Take these as the messages, in this order."""
        # The first is no message: results hang on it that stand before any other message.
        self._heads = [Draft(agui.ReasoningMessage(id="", content=""), Origin(-1))]
        for index in (self.by_id, self.calls, self.callers, self.writers, self.argument_writers):
            index.clear()
        self.size = 0
        for draft in drafts:
            draft.results = None
            self.append(draft)

    def append(self, draft: Draft) -> None:
        """Put a message at the end."""
        if isinstance(draft.message, agui.ToolMessage):
            self._hang(draft, self._heads[-1])
            return
        self.size += 1
        draft.position = len(self._heads)
        self._heads.append(draft)
        self.by_id.setdefault(draft.message.id, draft)
        if draft.calls is not None:
            for call in draft.calls:
                # The same call may stand in a second place; another one under its id is what events mean from now on.
                if self.calls.get(call.call.id) is not call:
                    self.calls[call.call.id] = call
                    self.callers[call.call.id] = draft

    def add_call(self, draft: Draft, call: agui.ToolCall) -> CallDraft:
        """Let a call grow that is new, and that the message of the draft has."""
        self.callers[call.id] = draft
        grown = self.calls[call.id] = draft.add_call(call)
        return grown

    def append_result(self, draft: Draft, call_id: str) -> None:
        """Put a tool result behind the message that made the call and the results that are there; else at the end."""
        self._hang(draft, self.callers.get(call_id) or self._heads[-1])

    def in_order(self) -> list[Draft]:
        """All messages."""
        drafts: list[Draft] = []
        for head in self._heads:
            drafts.append(head)
            if head.results is not None:
                drafts += head.results
        return drafts[1:]

    def last(self) -> Draft | None:
        """The last message."""
        head = self._heads[-1]
        if head.results is not None:
            return head.results[-1]
        return head if len(self._heads) > 1 else None

    def _hang(self, draft: Draft, head: Draft) -> None:
        self.size += 1
        message_id = draft.message.id
        draft.position = head.position
        if head.results is None:
            head.results = [draft]
        else:
            head.results.append(draft)
        known = self.by_id.setdefault(message_id, draft)
        if known.position > draft.position:
            self.by_id[message_id] = draft
            self.writers.pop(message_id, None)
