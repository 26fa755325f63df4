"""Where steps come from: a trace, the messages of a transcript, the events of a stream."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.layout import CallRemainder, ToolRemainder, remainder
from seatrial.events.snapshots import is_one_of
from seatrial.formats.chat.calls import (
    GENERATED_ID_PREFIX,
    TOOL_CALL_DROPPED_NO_NAME,
    TOOL_RESULT_PAIRED_BY_ORDER,
    TOOL_RESULT_UNPAIRED,
    CallFacts,
    PlacedFacts,
    read_call_facts,
)
from seatrial.formats.reading import TraceEvent
from seatrial.trajectory.step import FAILED, Moment, Source, Step, elapsed
from seatrial.transcript import AssistantMessage, Message, Note, TextBlock, ToolCall, ToolResultMessage, Weight, pointer
from seatrial.transcript.arguments import (
    arguments_note,
    detect_unparsed,
    encoded_twice_note,
    read_arguments,
)
from seatrial.transcript.failure import says_failed
from seatrial.transcript.pairing import OpenCalls, another_tool_note


def steps_from_transcript(
    messages: Iterable[Message], facts: Iterable[PlacedFacts] = (), given: Iterable[int] = ()
) -> list[Step]:
    """Every tool call in order, with the result that belongs to it. Ids that a reader made up are left out again.

    `facts` go by the places of the messages, and so do the `given` ones, which are left out.
    """
    steps: list[Step] = []
    open_calls: OpenCalls[Step] = OpenCalls()
    in_doubt: list[Step] = []
    known = {(placed.message, placed.call): placed.facts for placed in facts}
    left_out = frozenset(given)
    for index, message in enumerate(messages):
        if type(message) is AssistantMessage:
            made = [block for block in message.content if type(block) is ToolCall]
            if not made or index in left_out:
                continue
            usage = message.usage
            tokens = None if usage is None else usage.input_tokens + usage.output_tokens
            turn: list[tuple[str, str, Step]] = []
            for number, call in enumerate(made):
                step = _called(len(steps), "messages", call.name, call.arguments, call.id)
                step.started_at = message.timestamp
                step.tokens, tokens = tokens, None
                if known and (said := known.get((index, number))) is not None:
                    _add_facts(step, said)
                    if said.status == "unknown":
                        in_doubt.append(step)
                turn.append((call.id, call.name, step))
                steps.append(step)
            open_calls.add(turn)
        elif type(message) is ToolResultMessage and index not in left_out:
            answered = open_calls.take(message.tool_call_id, message.tool_name)
            if answered is None:
                continue
            if known and (said := known.get((index, 0))) is not None:
                _add_failure(answered, said)
                if said.status == "unknown":
                    in_doubt.append(answered)
            _answer(answered, _result(message), message.is_error, message.timestamp)
    for step in in_doubt:
        # The record says how the call ended in a word that nobody knows.
        step.status = "unknown" if step.status == "ok" else step.status
    for step in steps:
        _add_duration(step)
    return steps


def steps_from_objects(messages: list[Any]) -> tuple[list[Step], list[Note]]:
    """The steps of decoded messages in every accepted shape, and what had to be dropped, guessed or repaired.

    The same as reading the messages and taking the steps from the transcript.
    """
    from seatrial.formats.chat.reader import messages_from_objects

    notes: list[Note] = []
    facts: list[PlacedFacts] = []
    read = messages_from_objects(messages, notes, facts=facts)
    return steps_from_transcript(read, facts), notes


def steps_from_trace(events: Iterable[TraceEvent]) -> tuple[list[Step], list[Note]]:
    """The tool calls of a trace with their results, and notes whose pointers are indices of events."""
    steps: list[Step] = []
    notes: list[Note] = []
    calls = _OpenCalls()
    for index, event in enumerate(events):
        if event.type == "tool_call":
            if not event.name:
                notes.append(Note(TOOL_CALL_DROPPED_NO_NAME, pointer(index), "dropped a tool call without a name"))
                continue
            arguments = {} if event.input is None else event.input
            if type(arguments) is str:
                arguments, _, encoded_twice = read_arguments(arguments)
                if encoded_twice:
                    notes.append(encoded_twice_note(pointer(index), event.name))
            step = _called(len(steps), "trace", event.name, arguments, event.id)
            if step.arguments_text is not None:
                notes.append(arguments_note(arguments, pointer(index), event.name))
            step.started_at = event.timestamp
            if event.metadata:
                _add_metadata(step, event.metadata)
            if event.output is not None:
                _answer(step, event.output, step.status in FAILED, None)
                if event.metadata:
                    _add_metadata(step, event.metadata)  # it may say that nobody knows how the call ended
            calls.add(step)
            steps.append(step)
        elif event.type == "tool_result" or (event.type == "error" and event.id):
            found = calls.of_result(event)
            if found is None:
                # An error may be one of the run, which has an id of its own.
                weight: Weight = "serious" if event.type == "tool_result" else "look"
                text = "there is no call that this is the result of"
                notes.append(Note(TOOL_RESULT_UNPAIRED, pointer(index), text, weight))
                continue
            if event.type == "tool_result" and event.name and event.name != found.name:
                notes.append(another_tool_note(pointer(index), event.name, found.name))
            if not event.id:
                text = f"gave a result that names no call to step {found.index}"
                notes.append(Note(TOOL_RESULT_PAIRED_BY_ORDER, pointer(index), text))
            failed = event.type == "error" or says_failed(event.metadata or {})
            _answer(found, event.text if event.output is None else event.output, failed, event.timestamp)
            if event.metadata:
                _add_metadata(found, event.metadata)
    for step in steps:
        _add_duration(step)
    return steps, notes


class _OpenCalls:
    """The calls of a trace so far, and which of them have no result."""

    def __init__(self) -> None:
        self._by_id: dict[str | tuple[str, str], deque[Step]] = {}
        """By id, and by id and name."""
        self._all: deque[Step] = deque()
        self._by_name: dict[str, deque[Step]] = {}

    def add(self, step: Step) -> None:
        if step.id is not None:
            self._by_id.setdefault(step.id, deque()).append(step)
            self._by_id.setdefault((step.id, step.name), deque()).append(step)
        self._all.append(step)
        self._by_name.setdefault(step.name, deque()).append(step)

    def of_result(self, event: TraceEvent) -> Step | None:
        """The call with the id of a result, of its name if there is one; without an id, the oldest that has none, of
        that name if there is one."""
        if event.id:
            calls = self._by_id.get((event.id, event.name)) if event.name else None
            calls = self._by_id.get(event.id) if calls is None else calls
            return None if calls is None else _next_of(calls)
        waiting = self._by_name.get(event.name, deque()) if event.name else self._all
        while waiting:
            step = waiting.popleft()
            if step.result is UNSET:
                return step
        return None


def _next_of(calls: deque[Step]) -> Step:
    """Of the calls that share an id, the oldest without a result; the last one when all have theirs."""
    while len(calls) > 1 and calls[0].result is not UNSET:
        calls.popleft()
    return calls[0]


def steps_from_events(events: Iterable[t.Event], given: Iterable[Message] = ()) -> list[Step]:
    """The tool calls of a stream, in the order in which they came, with the agent that made them.

    Calls and results count whether they were streamed or came with a MESSAGES_SNAPSHOT. What a run started from is not
    its doing: RUN_STARTED may say what that was, and `given` are messages that are known to be given besides.
    """
    calls = _StreamedCalls(given)
    for event in _without_chunks(events):
        if isinstance(event, t.ToolCallArgs):
            calls.add_arguments(event)
        elif isinstance(event, t.ToolCallStart):
            calls.start(event)
        elif isinstance(event, t.ToolCallResult):
            calls.answer(event)
        elif isinstance(event, t.MessagesSnapshot):
            if event.messages is not UNSET:
                calls.take_snapshot(event.messages)
        elif isinstance(event, t.RunStarted):
            if type(event.input) is dict and event.input.get("messages") is not None:
                calls.give(event.input["messages"])
        elif isinstance(event, t.SubagentStarted):
            calls.agents[event.subagent_run_id] = event
    return calls.steps()


class _StreamedResult(msgspec.Struct):
    content: Any
    failed: bool = False
    cancelled: bool = False
    moment: Moment | None = None


class _StreamedCalls:
    """The calls of a stream so far."""

    def __init__(self, given: Iterable[Message]) -> None:
        self.agents: dict[str, t.SubagentStarted] = {}
        self._steps: dict[str, Step] = {}
        self._texts: dict[str, list[str]] = {}
        """The arguments of each call, in pieces."""
        self._text_arguments: set[str] = set()
        """Calls whose arguments are a text, and not an object that was encoded twice."""
        # Calls are known by their ids, but for those that share one: see `take_snapshot`.
        self._results: dict[str, _StreamedResult] = {}
        self._failed: dict[str, str | None] = {}
        """Calls that were once said to have failed, with the text of the result that said so first."""
        self._in_doubt: set[str] = set()
        """Calls of which it is said in a word that nobody knows how they ended."""
        self._facts: dict[str, CallFacts] = {}
        self._facts_of_results: dict[str, list[CallFacts]] = {}
        """What is known of calls beside the events for them, said of the call and of its results."""
        self._given: dict[str, list[agui.ToolCall]] = {}
        """By id: the calls that the run started from."""
        self._given_messages: set[str] = set()
        self._given_in_snapshots = Counter(
            [call.id for message in given if type(message) is AssistantMessage for call in message.tool_calls()]
        )
        """Given calls that a snapshot may repeat, by id. One that is streamed was made, whatever its id."""
        self._last: dict[str, str] = {}
        """By id: the last of the calls that a snapshot has under it, which events mean from then on."""
        self._left_out: set[str] = set()
        """Calls that the last snapshot does not have: they were made, but nothing is added to them any more."""

    def give(self, messages: Any) -> None:
        """Take what a run starts from."""
        for message in agui.read_messages(messages, (), []):
            self._given_messages.add(message.id)
            for call in agui.tool_calls_of(message):
                if call.id not in self._steps:
                    self._given.setdefault(call.id, []).append(call)

    def start(self, event: t.ToolCallStart) -> None:
        key = self._key(event.tool_call_id)
        self._take_metadata(key, event.metadata)
        if (known := self._steps.get(key)) is not None:
            known.name = event.tool_call_name
            if key in self._left_out:
                self._left_out.discard(key)
                self._texts[key] = []
        elif event.tool_call_id not in self._given:
            step = self._add(event.tool_call_id, event.tool_call_name, event.subagent_run_id)
            step.started_at = _moment(event)

    def add_arguments(self, event: t.ToolCallArgs) -> None:
        key = self._key(event.tool_call_id)
        if key in self._texts and key not in self._left_out:
            self._texts[key].append(event.delta)

    def answer(self, event: t.ToolCallResult) -> None:
        marked = self._is_marked_failed(self._key(event.tool_call_id), event.metadata)
        result = _StreamedResult(_content(event.content), marked or event.status == "failed", moment=_moment(event))
        result.cancelled = event.status == "cancelled"
        if not (event.status is UNSET or event.status in t.TERMINAL_STATUSES):
            self._in_doubt.add(self._key(event.tool_call_id))
        self._take_result(self._key(event.tool_call_id), result)

    def take_snapshot(self, messages: list[dict[str, Any]]) -> None:
        """Take the calls and results that a snapshot has; of a call that is known, it has the last word."""
        seen: Counter[str] = Counter()
        keys: set[str] = set()
        open_calls: OpenCalls[str] = OpenCalls()
        """Keys; nothing for calls that were given."""
        read = agui.read_messages(messages, (), [])
        is_given = self._given_calls_of(read)
        for message in read:
            if isinstance(message, agui.ToolMessage):
                answered = open_calls.take(message.tool_call_id, agui.tool_of(message))
                if answered == "":
                    continue
                answered = self._key(message.tool_call_id) if answered is None else answered
                failed = self._is_marked_failed(answered, message.metadata) or bool(message.error)
                content = _content(message.content) or (message.error if message.error else message.content)
                self._take_result(answered, _StreamedResult(content, failed))
            elif isinstance(message, agui.AssistantMessage):
                turn: list[tuple[str, str, str]] = []
                for call in agui.tool_calls_of(message):
                    if is_given(message, call):
                        turn.append((call.id, call.function.name, ""))
                        continue
                    seen[call.id] += 1
                    # A second call under the same id is another call.
                    key = call.id if seen[call.id] == 1 else f"{call.id}\0{seen[call.id]}"
                    if key not in self._steps:
                        self._add(call.id, call.function.name, message.subagent_run_id, key)
                    self._steps[key].name = call.function.name
                    self._texts[key] = [call.function.arguments]
                    self._take_metadata(key, call.metadata)
                    self._last[call.id] = key
                    keys.add(key)
                    turn.append((call.id, call.function.name, key))
                open_calls.add(turn)
        self._left_out = self._steps.keys() - keys

    def _take_metadata(self, key: str, metadata: dict[str, Any] | UnsetType) -> None:
        """Take what is said of a call beside it."""
        if metadata is UNSET:  # as almost always
            return
        rest = remainder(metadata, CallRemainder, -1, [])
        if rest.text:
            self._text_arguments.add(key)
        if rest.facts is not None:
            self._facts[key] = rest.facts

    def _is_marked_failed(self, key: str, metadata: dict[str, Any] | UnsetType) -> bool:
        """Whether a result is said to be an error beside it; takes what else is said there."""
        if metadata is UNSET:
            return False
        if agui.is_marked_in_doubt(metadata):
            self._in_doubt.add(key)
        if (facts := remainder(metadata, ToolRemainder, -1, []).facts) is not None:
            self._facts_of_results.setdefault(key, []).append(facts)
        return agui.is_marked_failed(metadata)

    def _key(self, call_id: str) -> str:
        """The call that an event means."""
        return self._last.get(call_id, call_id)

    def _given_calls_of(self, snapshot: list[agui.Message]) -> Callable[[agui.Message, agui.ToolCall], bool]:
        """Whether a call of a snapshot was given. What a snapshot has beyond the given calls of an id was made."""
        left = Counter({call_id: len(calls) for call_id, calls in self._given.items()})
        repeated = Counter(
            [
                call.id
                for message in snapshot
                if message.id in self._given_messages
                for call in agui.tool_calls_of(message)
            ]
        )
        repeatable = self._given_in_snapshots - Counter(self._steps.keys() & self._given_in_snapshots.keys())

        def is_given(message: agui.Message, call: agui.ToolCall) -> bool:
            in_given = message.id in self._given_messages
            repeated[call.id] -= in_given
            if left[call.id] > (0 if in_given else repeated[call.id]) and is_one_of(call, self._given[call.id]):
                left[call.id] -= 1
                return True
            if repeatable[call.id] > 0 and call.id not in self._given:
                repeatable[call.id] -= 1
                return True
            return False

        return is_given

    def steps(self) -> list[Step]:
        for key, step in self._steps.items():
            text = "".join(self._texts[key])
            arguments, not_json, _ = read_arguments(text, as_text=key in self._text_arguments)
            _set_arguments(step, arguments, not_json)
            result = self._results.get(key)
            known = self._facts.get(key)
            if known is not None:
                _add_facts(step, known)
            if result is not None:
                for said in self._facts_of_results.get(key, ()):
                    _add_failure(step, said)
                error = step.error or self._failed.get(key)
                # What was once said to have failed has failed, whatever is said later.
                _answer(step, result.content, key in self._failed, result.moment)
                step.error = error
                if result.cancelled:
                    step.status = "cancelled"
                in_doubt = key in self._in_doubt or _is_doubtful([known, *self._facts_of_results.get(key, ())])
                if step.status == "ok" and in_doubt:
                    step.status = "unknown"
            _add_duration(step)
        return list(self._steps.values())

    def _add(self, call_id: str, name: str, subagent: str | UnsetType, key: str | None = None) -> Step:
        step = Step(len(self._steps), name, {}, call_id, "events", "unknown")
        if subagent is not UNSET:
            agent = self.agents.get(subagent)
            step.actor = subagent if agent is None else agent.name
            if agent is not None and agent.parent_tool_call_id is not UNSET:
                step.parent = agent.parent_tool_call_id
        key = call_id if key is None else key
        self._steps[key] = step
        self._texts[key] = []
        return step

    def _take_result(self, key: str, result: _StreamedResult) -> None:
        if result.failed:
            text = result.content if type(result.content) is str else None
            self._failed[key] = self._failed.get(key) or text or None
        if key not in self._steps:
            return  # of a call that is not known yet, it may be the result of another one
        known = self._results.get(key)
        if known is not None:
            result.cancelled = result.cancelled or known.cancelled
            result.moment = known.moment if result.moment is None else result.moment
        self._results[key] = result


def _is_doubtful(said: Iterable[CallFacts | None]) -> bool:
    """Whether the record says how a call ended in a word that nobody knows."""
    return any(facts is not None and facts.status == "unknown" for facts in said)


def _called(index: int, source: Source, name: str, arguments: Any, call_id: str | None) -> Step:
    step = Step(index, name, arguments, call_id, source, "unknown")
    if call_id is not None and call_id.startswith(GENERATED_ID_PREFIX):
        step.id = None
    if (unparsed := detect_unparsed(arguments)) is not None:
        step.arguments, step.arguments_text = None, unparsed[1]
    return step


def _set_arguments(step: Step, arguments: Any, not_json: bool) -> None:
    step.arguments = arguments
    if not_json and (unparsed := detect_unparsed(arguments)) is not None:
        step.arguments, step.arguments_text = None, unparsed[1]


def _answer(step: Step, result: Any, failed: bool, moment: Moment | None) -> None:
    had_result = step.result is not UNSET
    step.result = result
    if step.status == "unknown" or (failed and step.status == "ok" and had_result):
        step.status = "error" if failed else "ok"
    elif failed and step.status == "ok":
        step.status = "error"  # the result knows better than what was said of the call
    if failed and step.error is None and type(result) is str and result:
        step.error = result
    if moment is not None:
        step.ended_at = moment


def _add_facts(step: Step, facts: CallFacts) -> None:
    step.started_at = step.started_at if facts.started_at is None else facts.started_at
    step.ended_at = step.ended_at if facts.ended_at is None else facts.ended_at
    step.duration_ms = step.duration_ms if facts.duration_ms is None else facts.duration_ms
    step.status = step.status if facts.status is None else facts.status
    step.error = step.error if facts.error is None else facts.error
    step.executed_by = facts.executed_by
    step.actor = step.actor if facts.actor is None else facts.actor
    step.parent = step.parent if facts.parent is None else facts.parent


def _add_failure(step: Step, facts: CallFacts) -> None:
    """What a result says of its call; what was once said to have failed has failed."""
    if facts.status is not None and step.status not in FAILED:
        step.status = facts.status
    step.error = facts.error if step.error is None else step.error


def _add_metadata(step: Step, metadata: dict[str, Any]) -> None:
    facts = read_call_facts(metadata)
    if facts is not None:
        _add_facts(step, facts)
    for name in ("actor", "parent"):
        if type(value := metadata.get(name)) is str:
            setattr(step, name, value)


def _add_duration(step: Step) -> None:
    if step.duration_ms is None and step.ended_at is not None:
        step.duration_ms = elapsed(step.started_at, step.ended_at)


def _result(message: ToolResultMessage) -> Any:
    """The value that a tool gave: as such where the reader kept it, else its text, else its blocks."""
    if message.details is not None:
        return message.details
    content = message.content
    if not content:
        return None
    if len(content) == 1 and type(content[0]) is TextBlock:  # as almost always
        return content[0].text
    if all(type(block) is TextBlock for block in content):
        return message.plain_text()
    return msgspec.to_builtins(content)


def _content(content: str | list[dict[str, Any]]) -> Any:
    if type(content) is list and all(part.get("type") == "text" and type(part.get("text")) is str for part in content):
        return "".join([part["text"] for part in content])
    return content


def _moment(event: t.BaseEvent) -> Moment | None:
    if event.timestamp is not UNSET:
        return event.timestamp
    return None if event.created_at is UNSET else event.created_at


def _without_chunks(events: Iterable[t.Event]) -> Iterable[t.Event]:
    events = list(events)
    if not any(isinstance(event, t.ToolCallChunk) for event in events):
        return events
    from seatrial.events.expand import Expander

    expander = Expander()
    expanded: list[t.Event] = []
    for index, event in enumerate(events):
        result = expander.feed(event, index)
        if isinstance(result, list):  # a chunk that stands for nothing is for `verify` to report
            expanded += result
    return expanded
