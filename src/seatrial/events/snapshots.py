"""MESSAGES_SNAPSHOT (events.md B7): how the messages so far and those of a snapshot become one list.

A snapshot replaces what a client holds. What was done stays done: calls that a snapshot leaves out are kept aside, and
a call that it changes is noted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable

from msgspec import UNSET, UnsetType

from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.drafts import Draft, Drafts, Origin, drafted
from seatrial.events.violation import quoted
from seatrial.transcript import Note, Notes, note_code, pointer
from seatrial.transcript.arguments import read_arguments
from seatrial.transcript.pairing import OpenCalls

REARRANGED_TOO_OFTEN = note_code(
    "rearranged_too_often",
    "Events have put all messages in another order so often that this one changes nothing.",
    "serious",
)
CALL_REWRITTEN = note_code(
    "call_rewritten",
    "A MESSAGES_SNAPSHOT has another name or other arguments for a tool call than came before.",
    "serious",
)
CALL_LEFT_OUT = note_code(
    "call_left_out", "A MESSAGES_SNAPSHOT leaves out a tool call that was made; the transcript keeps it.", "look"
)

_AUTHORITY = "@ag-ui/client"
MAX_REARRANGED = 5_000_000
"""How many messages may be arranged anew by events that do not bring them: each such event costs what all do."""


class SnapshotMerger:
    """The messages so far, into which snapshots are merged."""

    def __init__(self, messages: Iterable[agui.Message], rearrange_limit: int) -> None:
        self.notes: list[Note] = Notes()
        self._left_to_rearrange = rearrange_limit
        self._given: dict[str, Origin] = {}
        """By id: the messages that the run started from."""
        self._given_calls: dict[str, list[agui.ToolCall]] = {}
        """By id: the calls that the run started from."""
        self._given_results: set[str] = set()
        """Calls whose results were given."""
        self._failed: set[tuple[str, int]] = set()
        self._sharing: Counter[str] = Counter()
        """How many calls of each id the last snapshot has; events mean the last of them."""
        self._left_out: list[tuple[agui.Message, Origin]] = []
        self._calls_left_out: dict[str, agui.ToolCall] = {}
        self._ranks: dict[str, int] = {}
        self.drafts = Drafts([self._give(message) for message in messages])

    def _messages_snapshot(self, event: t.MessagesSnapshot, index: int) -> None:
        if event.messages is UNSET:
            return
        read = agui.read_messages(event.messages, (index, "messages"), self.notes)
        if not self._may_rearrange(self.drafts.size - len(read), index):
            return
        # The last one counts where an id stands twice, and stands in for every local message with that id.
        snapshot = {message.id: message for message in read}
        self._ranks = {message_id: rank for rank, message_id in enumerate(snapshot)}
        calls = self._compared_calls(read, index)
        answered = {message.tool_call_id for message in read if isinstance(message, agui.ToolMessage)}
        repeated = _Repeated([message for message in read if message.id in self._given])
        survives = _survival(read, event)
        merged: list[Draft] = []
        known: dict[str, Draft] = {}
        for local in self.drafts.in_order():
            message_id = local.message.id
            message = snapshot.get(message_id)
            if message is None:
                if survives(local.message):
                    merged.append(local)
                else:
                    self._keep_done(local, calls, answered, index)
                continue
            if isinstance(local.message, agui.AssistantMessage):
                self._keep_done(local, calls, answered, index)
            if message_id in known:
                # The same message in a second place: what grows is the first one.
                first = known[message_id]
                if first.calls is None:
                    first.calls = []
                merged.append(Draft(message, local.origin, calls=first.calls))
            else:
                known[message_id] = drafted(message, local.origin)
                merged.append(known[message_id])
        new = [message for message in read if message.id not in known]
        merged += [drafted(message, self._origin(message, repeated, index)) for message in new]
        self.drafts.arrange(merged)

    def _compared_calls(self, snapshot: list[agui.Message], index: int) -> Container[str]:
        """The ids of the calls in a snapshot; what it says of them must be what was said before."""
        calls = self._sharing = Counter[str]()
        open_calls: OpenCalls[int] = OpenCalls()
        for message in snapshot:
            if isinstance(message, agui.ToolMessage):
                self._note_failure(message, open_calls.take(message.tool_call_id, agui.tool_of(message)))
            turn: list[tuple[str, str, int]] = []
            for call in agui.tool_calls_of(message):
                calls[call.id] += 1
                turn.append((call.id, call.function.name, calls[call.id]))
                known = self.drafts.calls.get(call.id)
                before = (known.call.function.name, "".join(known.parts)) if known is not None else None
                if (left_out := self._calls_left_out.get(call.id)) is not None:
                    before = (left_out.function.name, left_out.function.arguments)
                given = self._given_calls.get(call.id)
                if (before is not None and not _same_call(*before, call)) or (given and not is_one_of(call, given)):
                    self._note(CALL_REWRITTEN, index, f"tool call {quoted(call.id)} is another one in the snapshot")
            open_calls.add(turn)
        return calls

    def _keep_done(self, local: Draft, calls: Container[str], answered: set[str], index: int) -> None:
        """Keep what a snapshot leaves out of a message, if it was done: calls, and the results of such calls."""
        message = local.message
        if isinstance(message, agui.ToolMessage):
            known = message.tool_call_id in self.drafts.calls or message.tool_call_id in self._calls_left_out
            if known and not local.origin.given and message.tool_call_id not in answered:
                self._left_out.append((message, local.origin))
            return
        done = [
            call for call in local.calls or () if call.call.id not in calls and call.call.id not in self._given_calls
        ]
        if done:
            for call in done:
                call.finish()
            self._note(CALL_LEFT_OUT, index, f"{len(done)} call(s) of message {quoted(message.id)}")
            self._calls_left_out.update({call.call.id: call.call for call in done})
            made = agui.AssistantMessage(id=message.id, tool_calls=[call.call for call in done])
            made.subagent_run_id = message.subagent_run_id
            self._left_out.append((made, Origin(max(local.origin.index, 0), local.origin.timestamp)))

    def _origin(self, message: agui.Message, repeated: _Repeated, index: int) -> Origin:
        """Where a message of a snapshot comes from that is not among those at hand."""
        if message.id in self._given:
            return self._given[message.id]
        if calls := agui.tool_calls_of(message):
            # Some agents give the messages new ids; the calls keep theirs.
            if all(self._is_given(call, repeated) for call in calls):
                repeated.calls.update([call.id for call in calls])
                return Origin(index, given=True)
        elif isinstance(message, agui.ToolMessage) and message.tool_call_id in self._given_results - repeated.results:
            repeated.results.add(message.tool_call_id)
            return Origin(index, given=True)
        return Origin(index)

    def _is_given(self, call: agui.ToolCall, repeated: _Repeated) -> bool:
        """Whether a call of a message that is not given by its id is one that the run started from. Where the snapshot
        has that one besides, it is another one under the same id."""
        return call.id not in repeated.calls and is_one_of(call, self._given_calls.get(call.id, []))

    def _give(self, message: agui.Message) -> Draft:
        """A message that the run starts from."""
        origin = self._given[message.id] = Origin(-1, given=True)
        for call in agui.tool_calls_of(message):
            self._given_calls.setdefault(call.id, []).append(call)
        if isinstance(message, agui.ToolMessage):
            self._given_results.add(message.tool_call_id)
            self._note_failure(message, len(self._given_calls.get(message.tool_call_id, ())))
        return drafted(message, origin)

    def _note_failure(self, message: agui.ToolMessage, which: int | None) -> None:
        """Remember a failure, of this one among the calls that share its id."""
        if message.error or (message.metadata is not UNSET and agui.is_marked_failed(message.metadata)):
            self._failed.add((message.tool_call_id, which or 1))

    def _may_rearrange(self, count: int, index: int) -> bool:
        """Whether so many messages may be arranged anew that the event with this index does not bring."""
        self._left_to_rearrange -= max(count, 0)
        if self._left_to_rearrange < 0:
            self._note(REARRANGED_TOO_OFTEN, index, f"there are {self.drafts.size} messages")
        return self._left_to_rearrange >= 0

    def _note(self, code: str, index: int, message: str) -> None:
        self.notes.append(Note(code, pointer(index), message))


class _Repeated:
    """What a snapshot has of the messages that a run started from: ids of calls, and of calls with a result."""

    def __init__(self, messages: Iterable[agui.Message]) -> None:
        self.calls: set[str] = set()
        self.results: set[str] = set()
        for message in messages:
            if isinstance(message, agui.ToolMessage):
                self.results.add(message.tool_call_id)
            self.calls.update([call.id for call in agui.tool_calls_of(message)])


def is_one_of(call: agui.ToolCall, calls: Iterable[agui.ToolCall]) -> bool:
    """Whether a call has the name and the arguments of one of these."""
    return any(_same_call(known.function.name, known.function.arguments, call) for known in calls)


def _same_call(name: str, before: str, call: agui.ToolCall) -> bool:
    if name != call.function.name:
        return False
    return before == call.function.arguments or read_arguments(before) == read_arguments(call.function.arguments)


def _survival(snapshot: list[agui.Message], event: t.MessagesSnapshot) -> Callable[[agui.Message], bool]:
    """Whether a local message stays that a snapshot leaves out: some kinds exist only on the client's side."""
    has_reasoning = any(isinstance(message, agui.ReasoningMessage) for message in snapshot)
    has_activity = any(isinstance(message, agui.ActivityMessage) for message in snapshot)
    owned = _owned_activity_types(event)

    def survives(message: agui.Message) -> bool:
        if isinstance(message, agui.ReasoningMessage):
            return not has_reasoning
        if not isinstance(message, agui.ActivityMessage):
            return False
        if owned is UNSET:
            return not has_activity
        return owned is not None and message.activity_type not in owned

    return survives


def _owned_activity_types(event: t.MessagesSnapshot) -> frozenset[str] | UnsetType | None:
    """The activity types that a snapshot speaks for: None is all, UNSET is unknown."""
    if event.metadata is UNSET or _AUTHORITY not in event.metadata:
        return UNSET
    declared = event.metadata[_AUTHORITY]
    if type(declared) is not dict:
        return frozenset()
    if "authoritativeActivityTypes" not in declared:
        return UNSET
    types = declared["authoritativeActivityTypes"]
    if types is None:
        return None
    return frozenset(types if type(types) is list and all(type(name) is str for name in types) else [])
