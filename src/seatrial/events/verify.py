"""The order of events: which may come when, and who may continue what (events.md B5).

`Verifier` takes events one at a time, so that a recorder can refuse one before it is stored: an event that is
refused leaves no trace in it. `verify` is the same over a whole list. Chunks are expanded first (`expand`).

The rules that AG-UI has announced but does not enforce yet are notes, not violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial.events import types as t
from seatrial.events.codec import stands_in
from seatrial.events.violation import OrderFault, OrderViolation, Owner, agent, name_of, quoted
from seatrial.transcript import Note, Notes, note_code, pointer

RUN_IDS_DISAGREE = note_code(
    "run_ids_disagree", "RUN_FINISHED names another run or thread than the RUN_STARTED before it.", "look"
)
THREAD_CHANGED = note_code(
    "thread_changed", "A later run of the stream is on another thread than the first one.", "look"
)
INTERRUPT_ID_REPEATED = note_code("interrupt_id_repeated", "Two interrupts of one run have the same id.", "look")
INTERRUPT_WITHOUT_SNAPSHOTS = note_code(
    "interrupt_without_snapshots",
    "A run ends in an interrupt without a STATE_SNAPSHOT and a MESSAGES_SNAPSHOT before it.",
    "look",
)
STREAM_TRUNCATED = note_code(
    "event_stream_truncated",
    "The stream ends without RUN_FINISHED or RUN_ERROR: it must not be read as a success.",
    "serious",
)


_ROLES = frozenset({"developer", "system", "assistant", "user", "tool", "activity", "reasoning"})


class _Phase(Enum):
    NEW = "new"
    ACTIVE = "active"
    FINISHED = "finished"
    ERRORED = "errored"


def verify(events: Iterable[t.Event]) -> OrderViolation | None:
    """The first violation in a list of events without chunks, or None."""
    verifier = Verifier()
    for index, event in enumerate(events):
        violation = verifier.feed(event, index)
        if violation is not None:
            return violation
    return None


class Verifier:
    """What has been opened so far, and by whom."""

    def __init__(self) -> None:
        self.notes: list[Note] = Notes()
        """Breaches of rules that are announced but not in force."""
        self.checks: dict[type, Callable[[Any, int], OrderFault | None]] = {
            t.RunStarted: self._run_started,
            t.RunFinished: self._run_finished,
            t.RunError: self._run_error,
            t.StepStarted: self._step_started,
            t.StepFinished: self._step_finished,
            t.TextMessageStart: self._text_start,
            t.TextMessageContent: self._text_content,
            t.TextMessageEnd: self._text_end,
            t.TextMessageChunk: self._anything,
            t.ToolCallStart: self._tool_start,
            t.ToolCallArgs: self._tool_args,
            t.ToolCallEnd: self._tool_end,
            t.ToolCallChunk: self._anything,
            t.ToolCallResult: self._tool_result,
            t.StateSnapshot: self._state_snapshot,
            t.StateDelta: self._anything,
            t.MessagesSnapshot: self._messages_snapshot,
            t.ActivitySnapshot: self._activity_snapshot,
            t.ActivityDelta: self._activity_delta,
            t.ReasoningStart: self._span_start,
            t.ReasoningEnd: self._span_end,
            t.ReasoningMessageStart: self._reasoning_start,
            t.ReasoningMessageContent: self._reasoning_content,
            t.ReasoningMessageEnd: self._reasoning_end,
            t.ReasoningMessageChunk: self._anything,
            t.ReasoningEncryptedValue: self._encrypted_value,
            t.SubagentStarted: self._subagent_started,
            t.SubagentFinished: self._subagent_ended,
            t.SubagentError: self._subagent_ended,
            t.RawEvent: self._raw,
            t.CustomEvent: self._anything,
        }
        """By type: the fault of an event with this index, or None. `feed` is the safe way to it."""
        self.texts: set[str] = set()
        """Ids of the text messages that are open now; of calls and reasoning messages below."""
        self.calls: set[str] = set()
        self.reasonings: set[str] = set()
        self._fed = 0
        self._phase = _Phase.NEW
        self._active = False
        """Whether the phase is ACTIVE: every event asks."""
        self._run_ids: tuple[str, str] | None = None
        self._first_thread: str | None = None
        self._reset()

    def feed(self, event: t.Event, index: int | None = None) -> OrderViolation | None:
        """Why this event may not come now, or None. Without an index, events are counted."""
        if index is None:
            index = self._fed
        self._fed += 1
        fault = self.checks[type(event)](event, index)
        return None if fault is None else OrderViolation(index, *fault)

    def owner(self, event: t.AgentEvent | t.SubagentStarted) -> Owner:
        """The agent that owns what this event started, which the event itself need not name."""
        if isinstance(event, t.TextMessageStart):
            return self._message_owners.get(event.message_id, UNSET)
        if isinstance(event, t.ToolCallStart):
            return self._call_owners.get(event.tool_call_id, UNSET)
        if isinstance(event, t.ReasoningStart | t.ReasoningMessageStart):
            return self._reasoning_owners.get(event.message_id, UNSET)
        return event.subagent_run_id

    def close(self) -> list[Note]:
        """All notes, with one more when the stream ends inside a run or before any."""
        if self._phase in (_Phase.NEW, _Phase.ACTIVE):
            self.notes.append(Note(STREAM_TRUNCATED, "", "the stream ends without RUN_FINISHED or RUN_ERROR"))
        return self.notes

    @property
    def ended(self) -> bool:
        """Whether the last run that started has ended."""
        return self._phase in (_Phase.FINISHED, _Phase.ERRORED)

    def reopen(self, ended: t.TextMessageEnd | t.ToolCallEnd | t.ReasoningMessageEnd) -> None:
        """Take back an end that was the last thing to happen to its item."""
        if isinstance(ended, t.ToolCallEnd):
            self.calls.add(ended.tool_call_id)
        else:
            (self.texts if isinstance(ended, t.TextMessageEnd) else self.reasonings).add(ended.message_id)

    def ends(self) -> list[t.Event]:
        """What would have to come before RUN_FINISHED may, but for the subagents: the end of all that is open."""
        # Each is attributed as it is known to belong, so that none is refused.
        messages, calls, reasonings = self._message_owners, self._call_owners, self._reasoning_owners
        return [
            *[
                t.StepFinished(step_name=name, subagent_run_id=owner)
                for owner, names in self._steps.items()
                for name in reversed(names)
            ],
            *[t.ToolCallEnd(tool_call_id=item, subagent_run_id=calls[item]) for item in sorted(self.calls)],
            *[t.TextMessageEnd(message_id=item, subagent_run_id=messages[item]) for item in sorted(self.texts)],
            *[
                t.ReasoningMessageEnd(message_id=item, subagent_run_id=reasonings[item])
                for item in sorted(self.reasonings)
            ],
            *[t.ReasoningEnd(message_id=item, subagent_run_id=reasonings[item]) for item in sorted(self._spans)],
        ]

    @property
    def subagents(self) -> list[str]:
        """Those that are active, in the order in which they started."""
        return list(self._subagents)

    def _reset(self) -> None:
        self.texts.clear()
        self.calls.clear()
        self.reasonings.clear()
        self._spans: set[str] = set()
        self._steps: dict[Owner, dict[str, None]] = {}
        self._subagents: dict[str, None] = {}
        self._ended_subagents: set[str] = set()
        # Owners outlive what they own: an id may be opened again, but not by another agent.
        self._message_owners: dict[str, Owner] = {}
        self._call_owners: dict[str, Owner] = {}
        self._reasoning_owners: dict[str, Owner] = {}
        self._activity_owners: dict[str, Owner] = {}
        self._snapshots: set[type] = set()

    # The run

    def _outside(self, event: t.BaseEvent) -> OrderFault | None:
        """The fault of an event that comes while no run is active; None when one is."""
        phase = self._phase
        if phase is _Phase.ACTIVE:
            return None
        if phase is _Phase.NEW:
            return OrderFault(
                "run_not_started", f"the first event must be RUN_STARTED or RUN_ERROR, not {name_of(event)}"
            )
        if phase is _Phase.FINISHED:
            return OrderFault("run_already_finished", f"{name_of(event)} comes after the RUN_FINISHED of its run")
        return OrderFault("run_already_errored", f"{name_of(event)} comes after the RUN_ERROR of its run")

    def _anything(self, event: t.BaseEvent, index: int) -> OrderFault | None:
        return None if self._active else self._outside(event)

    def _raw(self, event: t.RawEvent, index: int) -> OrderFault | None:
        # Clients drop an event of an unknown type before they look at the order.
        return None if self._active or stands_in(event) else self._outside(event)

    def _run_started(self, event: t.RunStarted, index: int) -> OrderFault | None:
        if self._phase is _Phase.ACTIVE:
            return OrderFault("run_still_active", f"run {quoted(event.run_id)} starts while another run is active")
        messages = event.input.get("messages") if type(event.input) is dict else None
        fault = _null_attribution(messages)
        if fault is not None:
            return fault
        self._phase, self._active = _Phase.ACTIVE, True
        self._reset()
        self._seed_owners(messages, authoritative=False)
        self._run_ids = event.thread_id, event.run_id
        if self._first_thread is None:
            self._first_thread = event.thread_id
        elif self._first_thread != event.thread_id:
            self._note(
                THREAD_CHANGED,
                index,
                f"the stream began on thread {quoted(self._first_thread)}, not {quoted(event.thread_id)}",
            )
        return None

    def _run_finished(self, event: t.RunFinished, index: int) -> OrderFault | None:
        fault = self._outside(event) or self._left_open()
        if fault is not None:
            return fault
        self._phase, self._active = _Phase.FINISHED, False
        if self._run_ids not in (None, (event.thread_id, event.run_id)):
            self._note(
                RUN_IDS_DISAGREE, index, f"thread and run were {self._run_ids}, not {(event.thread_id, event.run_id)}"
            )
        if type(event.outcome) is t.InterruptOutcome:
            ids = [interrupt.id for interrupt in event.outcome.interrupts]
            if len(set(ids)) < len(ids):
                self._note(INTERRUPT_ID_REPEATED, index, "two interrupts have the same id")
            if len(self._snapshots) < 2:
                self._note(INTERRUPT_WITHOUT_SNAPSHOTS, index, "whoever resumes has no snapshot to start from")
        return None

    def _run_error(self, event: t.RunError, index: int) -> OrderFault | None:
        if self._phase is _Phase.ERRORED:
            return self._outside(event)
        self._phase, self._active = _Phase.ERRORED, False
        self._reset()
        return None

    def _left_open(self) -> OrderFault | None:
        open_steps = [
            name if owner is UNSET else f"{name} (subagent {quoted(owner)})"
            for owner, names in self._steps.items()
            for name in names
        ]
        for kind, names in (
            ("steps", open_steps),
            ("text messages", self.texts),
            ("reasoning messages", self.reasonings),
            ("reasoning spans", self._spans),
            ("tool calls", self.calls),
            ("subagents", self._subagents),
        ):
            if names:
                more = f" and {len(names) - 5} more" if len(names) > 5 else ""
                listed = ", ".join(sorted(names)[:5]) + more
                return OrderFault("left_open", f"RUN_FINISHED comes while {kind} are open: {listed}")
        return None

    # Steps

    def _step_started(self, event: t.StepStarted, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        names = self._steps.setdefault(event.subagent_run_id, {})
        if event.step_name in names:
            return OrderFault(
                "step_already_open", f"step {quoted(event.step_name)} of {agent(event.subagent_run_id)} is open already"
            )
        names[event.step_name] = None
        return None

    def _step_finished(self, event: t.StepFinished, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        name = event.step_name
        names = self._steps.get(event.subagent_run_id)
        if names is not None and name in names:
            del names[name]
            return None
        for owner, others in self._steps.items():
            if name in others:
                who = agent(event.subagent_run_id)
                return OrderFault(
                    "step_of_another", f"{who} finishes step {quoted(name)}, which {agent(owner)} has open"
                )
        return OrderFault("step_not_open", f"step {quoted(name)} is finished but was not started")

    # Text messages

    def _text_start(self, event: t.TextMessageStart, index: int) -> OrderFault | None:
        return self._open(event, event.message_id, self.texts, self._message_owners)

    def _text_content(self, event: t.TextMessageContent, index: int) -> OrderFault | None:
        message_id = event.message_id
        if message_id in self.texts:
            tag = event.subagent_run_id
            if tag is UNSET or tag == self._message_owners[message_id]:
                return None
        return self._continue(event, message_id, self.texts, self._message_owners)

    def _text_end(self, event: t.TextMessageEnd, index: int) -> OrderFault | None:
        return self._end(event, event.message_id, self.texts, self._message_owners)

    # Tool calls

    def _tool_start(self, event: t.ToolCallStart, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        call_id, parent, tag = event.tool_call_id, event.parent_message_id, event.subagent_run_id
        if call_id in self.calls:
            return _already_open(event, call_id)
        # A tool call has no attribution of its own: it belongs to the message that carries it.
        parent_owner = self._message_owners.get(parent) if parent is not UNSET else None
        if parent_owner is not None:
            if tag is UNSET:
                tag = parent_owner
            elif tag != parent_owner:
                return _attribution(event, f"its parent message {quoted(parent)}", parent_owner)
        owner = self._call_owners.get(call_id)
        if owner is None:
            self._call_owners[call_id] = tag
        elif tag != owner and (event.subagent_run_id is not UNSET or parent_owner is not None):
            return _attribution(event, f"{quoted(call_id)}", owner)
        self.calls.add(call_id)
        return None

    def _tool_args(self, event: t.ToolCallArgs, index: int) -> OrderFault | None:
        call_id = event.tool_call_id
        if call_id in self.calls:
            tag = event.subagent_run_id
            if tag is UNSET or tag == self._call_owners[call_id]:
                return None
        return self._continue(event, call_id, self.calls, self._call_owners)

    def _tool_end(self, event: t.ToolCallEnd, index: int) -> OrderFault | None:
        return self._end(event, event.tool_call_id, self.calls, self._call_owners)

    def _tool_result(self, event: t.ToolCallResult, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        # It makes a message; a tool may be run by another agent than the one that called it.
        self._message_owners[event.message_id] = event.subagent_run_id
        return None

    # Reasoning

    def _span_start(self, event: t.ReasoningStart, index: int) -> OrderFault | None:
        return self._open(event, event.message_id, self._spans, self._reasoning_owners)

    def _span_end(self, event: t.ReasoningEnd, index: int) -> OrderFault | None:
        return self._end(event, event.message_id, self._spans, self._reasoning_owners)

    def _reasoning_start(self, event: t.ReasoningMessageStart, index: int) -> OrderFault | None:
        return self._open(event, event.message_id, self.reasonings, self._reasoning_owners)

    def _reasoning_content(self, event: t.ReasoningMessageContent, index: int) -> OrderFault | None:
        message_id = event.message_id
        if message_id in self.reasonings:
            tag = event.subagent_run_id
            if tag is UNSET or tag == self._reasoning_owners[message_id]:
                return None
        return self._continue(event, message_id, self.reasonings, self._reasoning_owners)

    def _reasoning_end(self, event: t.ReasoningMessageEnd, index: int) -> OrderFault | None:
        return self._end(event, event.message_id, self.reasonings, self._reasoning_owners)

    def _encrypted_value(self, event: t.ReasoningEncryptedValue, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        entity = event.entity_id
        if event.subtype == "tool-call":
            owner = self._call_owners.get(entity)
        else:
            owner = self._message_owners.get(entity, self._reasoning_owners.get(entity))
        return self._disagreement(event, entity, owner)

    # Everything else

    def _state_snapshot(self, event: t.StateSnapshot, index: int) -> OrderFault | None:
        fault = self._outside(event)
        if fault is None:
            self._snapshots.add(t.StateSnapshot)
        return fault

    def _messages_snapshot(self, event: t.MessagesSnapshot, index: int) -> OrderFault | None:
        fault = self._outside(event) or _null_attribution(event.messages)
        if fault is None:
            self._snapshots.add(t.MessagesSnapshot)
            self._seed_owners(event.messages, authoritative=True)
        return fault

    def _activity_snapshot(self, event: t.ActivitySnapshot, index: int) -> OrderFault | None:
        fault = self._outside(event)
        if fault is None and (event.replace is not False or event.message_id not in self._activity_owners):
            self._activity_owners[event.message_id] = event.subagent_run_id
        return fault

    def _activity_delta(self, event: t.ActivityDelta, index: int) -> OrderFault | None:
        return self._outside(event) or self._disagreement(
            event, event.message_id, self._activity_owners.get(event.message_id)
        )

    def _subagent_started(self, event: t.SubagentStarted, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        subagent, parent = event.subagent_run_id, event.parent_subagent_run_id
        if subagent in self._subagents:
            return OrderFault("subagent_already_active", f"{agent(subagent)} is active already")
        if subagent in self._ended_subagents:
            return OrderFault("subagent_reused", f"{agent(subagent)} has ended in this run: an id names one invocation")
        if parent is not UNSET and parent not in self._subagents and parent not in self._ended_subagents:
            return OrderFault("subagent_parent_unknown", f"{agent(parent)}, the parent of another, was never started")
        self._subagents[subagent] = None
        return None

    def _subagent_ended(self, event: t.SubagentFinished | t.SubagentError, index: int) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        subagent = event.subagent_run_id
        if subagent not in self._subagents:
            return OrderFault("subagent_not_active", f"{name_of(event)} names {agent(subagent)}, which is not active")
        del self._subagents[subagent]
        self._ended_subagents.add(subagent)
        return None

    # What the kinds share

    def _open(
        self,
        event: t.TextMessageStart | t.ReasoningStart | t.ReasoningMessageStart,
        item: str,
        opened: set[str],
        owners: dict[str, Owner],
    ) -> OrderFault | None:
        if not self._active:
            return self._outside(event)
        if item in opened:
            return _already_open(event, item)
        tag = event.subagent_run_id
        owner = owners.setdefault(item, tag)
        if tag is not UNSET and tag != owner:
            return _attribution(event, quoted(item), owner)
        opened.add(item)
        return None

    def _end(
        self,
        event: t.TextMessageEnd | t.ToolCallEnd | t.ReasoningEnd | t.ReasoningMessageEnd,
        item: str,
        opened: set[str],
        owners: dict[str, Owner],
    ) -> OrderFault | None:
        if item in opened and event.subagent_run_id is UNSET:
            opened.discard(item)
            return None
        fault = self._continue(event, item, opened, owners)
        if fault is None:
            opened.discard(item)
        return fault

    def _continue(
        self, event: t.AgentEvent, item: str, opened: set[str], owners: dict[str, Owner]
    ) -> OrderFault | None:
        """The fault of an event that continues an item: outside a run, item not open, item of another agent."""
        if item in opened:  # which nothing is outside a run
            return self._disagreement(event, item, owners[item])
        return self._outside(event) or OrderFault(
            "not_open", f"{name_of(event)} names {quoted(item)}, which is not open"
        )

    def _disagreement(self, event: t.AgentEvent, item: str, owner: Owner | None) -> OrderFault | None:
        tag = event.subagent_run_id
        if tag is UNSET or owner is None or tag == owner:
            return None
        return _attribution(event, f"{quoted(item)}", owner)

    def _seed_owners(self, messages: Any, *, authoritative: bool) -> None:
        """Owners of messages that came whole. A snapshot overrules what is known, an input adds to it."""
        for message in messages if type(messages) is list else ():
            if type(message) is not dict or type(message.get("id")) is not str:
                continue
            role, owner, calls = message.get("role"), message.get("subagentRunId", UNSET), message.get("toolCalls")
            if type(role) is not str or role not in _ROLES:
                continue  # clients drop it
            if role == "reasoning":
                owned = [(self._reasoning_owners, message)]
            elif role == "activity":
                owned = [(self._activity_owners, message)]
            else:
                owned = [(self._message_owners, message)]
            if role == "assistant" and type(calls) is list:
                owned += [(self._call_owners, call) for call in calls if type(call) is dict]
            for owners, item in owned:
                item_id = item.get("id")
                if type(item_id) is str and (authoritative or item_id not in owners):
                    owners[item_id] = owner

    def _note(self, code: str, index: int, message: str) -> None:
        self.notes.append(Note(code, pointer(index), message))


def _already_open(event: msgspec.Struct, item: str) -> OrderFault:
    return OrderFault("already_open", f"{name_of(event)} names {quoted(item)}, which is open already")


def _attribution(event: t.AgentEvent, what: str, owner: Owner) -> OrderFault:
    tag = event.subagent_run_id
    return OrderFault(
        "attribution", f"{name_of(event)} is attributed to {agent(tag)}, but {what} belongs to {agent(owner)}"
    )


def _null_attribution(messages: Any) -> OrderFault | None:
    for message in messages if type(messages) is list else ():
        if type(message) is dict and message.get("subagentRunId", UNSET) is None:
            which = quoted(message.get("id"))
            return OrderFault("attribution_null", f"message {which} has `subagentRunId: null`; leave the key out")
    return None
