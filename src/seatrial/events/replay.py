"""A stream from end to end: expand, verify and fold in one pass, as a client does it.

A client stops at the first violation. A replay reports it and goes on folding, so that what the rest of a
broken stream says is not lost; a chunk that cannot be expanded is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.expand import CHUNKS, Expander
from seatrial.events.fold import Folded, Folding
from seatrial.events.verify import Verifier
from seatrial.events.violation import Violation
from seatrial.transcript import Note


class Replay(msgspec.Struct):
    """What came of a stream."""

    folded: Folded
    violation: Violation | None
    """The first event that may not stand where it stands."""
    notes: list[Note]
    """Breaches of rules to come, then what changed nothing in the fold; pointers are indices of events."""


def replay(events: Iterable[t.Event], *, messages: Iterable[agui.Message] = (), state: Any = UNSET) -> Replay:
    """Expand, verify and fold. The run starts from these messages, which are taken over, and this state."""
    expander, verifier, folding = Expander(), Verifier(), Folding(messages=messages, state=state)
    lanes, checks, applies = expander.lanes, verifier.checks, folding.applies
    growing = _growing(expander, verifier, folding)
    violation: Violation | None = None
    for index, event in enumerate(events):
        kind = type(event)
        # Most events of a stream append to something that is open, and do nothing else. What the three stages make
        # of such a one comes to this.
        target = growing.get(kind)
        if target is not None:
            item_of, opened, writers = target
            item = item_of(event)
            if item in opened:
                write = writers.get(item)
                if write is not None:
                    write(event.delta)  # type: ignore[union-attr, arg-type]  # the six types in `growing` have one
                    continue
        if lanes or kind in CHUNKS:
            expanded = expander.feed(event, index)
            if isinstance(expanded, Violation):
                violation = violation or expanded
                continue
        else:
            expanded = [event]
        for part in expanded:
            if violation is None:
                fault = checks[type(part)](part, index)
                if fault is not None:
                    violation = Violation(index, *fault)
            applies[type(part)](part, index)
    folded = folding.result()
    return Replay(folded, violation, [*verifier.notes, *folded.notes])


Growing: TypeAlias = tuple[Callable[[Any], str | None], set[str], dict[str, Callable[[str], None]]]
"""The item that an event of a type appends to, if it does nothing else; which items are open; what takes a delta."""


def _growing(expander: Expander, verifier: Verifier, folding: Folding) -> dict[type, Growing]:
    lanes, drafts = expander.lanes, folding.drafts

    def message_of(event: t.TextMessageContent | t.ReasoningMessageContent) -> str | None:
        plain = not lanes and event.subagent_run_id is UNSET and event.metadata is UNSET
        return event.message_id if plain else None

    def call_of(event: t.ToolCallArgs) -> str | None:
        plain = not lanes and event.subagent_run_id is UNSET and event.metadata is UNSET
        return event.tool_call_id if plain else None

    return {
        t.TextMessageContent: (message_of, verifier.texts, drafts.writers),
        t.ReasoningMessageContent: (message_of, verifier.reasonings, drafts.writers),
        t.ToolCallArgs: (call_of, verifier.calls, drafts.argument_writers),
        t.TextMessageChunk: (expander.growing_text, verifier.texts, drafts.writers),
        t.ReasoningMessageChunk: (expander.growing_reasoning, verifier.reasonings, drafts.writers),
        t.ToolCallChunk: (expander.growing_call, verifier.calls, drafts.argument_writers),
    }
