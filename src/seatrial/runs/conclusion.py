"""Concluding a run from its answer: what was given and what was done, the steps, and how complete they are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.printable import is_blank
from seatrial.events.verify import STREAM_TRUNCATED as EVENT_STREAM_TRUNCATED
from seatrial.formats.chat.calls import TOOL_RESULT_UNPAIRED, generated_id
from seatrial.formats.chat.parts import CONTENT_DROPPED
from seatrial.formats.chat.turn import STREAM_TRUNCATED
from seatrial.formats.reading import WAITS_FOR_INPUT, Reading
from seatrial.runs.case import Case
from seatrial.runs.run import Attempt, Run
from seatrial.trajectory.completeness import (
    CALL_WITHOUT_TOOLS,
    NO_ANSWER_TO_READ,
    Completeness,
    ToolAccess,
    assess,
    what_is_missing,
)
from seatrial.trajectory.extraction import OBSERVED_CALL_NOT_REPORTED, REPORTED_CALL_DIFFERS, find_steps
from seatrial.trajectory.observed import CALLS_IN_EARLIER_ATTEMPT, REPORTED_CALL_NOT_OBSERVED, ObservedCalls
from seatrial.trajectory.step import FAILED, Step
from seatrial.transcript import (
    AssistantMessage,
    Message,
    Note,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from seatrial.transcript.arguments import unparsed_arguments
from seatrial.transcript.call_facts import CallFacts, PlacedFacts, facts_of_done
from seatrial.transcript.given import mark_given, note_unsent
from seatrial.transcript.note import pointer
from seatrial.transcript.salvage import GENERATED_ID_PREFIX

_FOUND_HERE = frozenset(
    {CALL_WITHOUT_TOOLS, OBSERVED_CALL_NOT_REPORTED, REPORTED_CALL_DIFFERS, REPORTED_CALL_NOT_OBSERVED}
)

_CUT_OFF = frozenset({EVENT_STREAM_TRUNCATED, STREAM_TRUNCATED})

MAX_CALLED = 20
"""How many tools of an earlier attempt are named."""
UNKNOWN_CALL = "?"
"""In their place where something may have been called, and nobody knows what."""


def given_messages(case: Case) -> list[Message]:
    """What every run of a case starts from: its earlier conversation, then the instruction."""
    return [*case.conversation, UserMessage(case.instruction)] if case.instruction else list(case.conversation)


def says_nothing(run: Run) -> bool:
    """Whether an agent ended without an answer: with no text to be seen, no result, and no call."""
    if run.reading is None or run.steps:
        return False
    if any(note.serious or note.code == CONTENT_DROPPED for note in run.reading.notes):
        return False  # what was dropped may have been the answer, an image perhaps
    transcript = run.reading.transcript
    return is_blank(transcript.final_text() or "") and "result" not in transcript.metadata


def called_tools(
    reading: Reading,
    given: Sequence[Message] = (),
    *,
    trace_file: bytes | Note | None = None,
    tool_access: ToolAccess = "own",
) -> list[str]:
    """The tools that the agent called by a reading that is not concluded, the first of them.

    `UNKNOWN_CALL` is among them when nothing in it lists calls, or something may be a call and cannot be read as one.
    That a stream was cut off is no such thing: the attempt is known to have failed.
    """
    notes = list(reading.notes)
    if given:
        note_unsent(reading.transcript, given, notes)
    mark_given(reading.transcript, given, notes)
    notes = _without_results_of_given(reading.transcript, given, notes)
    found = find_steps(reading, trace_file=trace_file, tool_access=tool_access, given=given)
    names = dict.fromkeys([step.name for step in found.steps if step.executed_by != "user"])
    called = [*names][:MAX_CALLED]
    notes = [note for note in (*notes, *found.notes) if note.code not in _CUT_OFF]
    known = assess(reading, found, notes, tool_access)
    if known.level == "none" or any(note.serious for note in known.reasons):
        called.append(UNKNOWN_CALL)
    return called


def _what_it_called(attempt: Attempt) -> str:
    names = ", ".join([repr(name[:60]) for name in attempt.called if name != UNKNOWN_CALL])
    known = f"attempt {attempt.number} called {names} before it failed"
    if UNKNOWN_CALL not in attempt.called:
        return known
    if names:
        return f"{known}, and perhaps more: not all of what it did is known"
    return f"what attempt {attempt.number} called before it failed is unknown"


def _escaped_proxy(attempt: Attempt) -> bool:
    """Whether an attempt without observed calls may have made some, all of whose tools are behind the tool proxy.

    What the proxy of a process saw that is gone, nobody knows any more; and a call that was reported and not observed
    went to a tool that the suite does not know of.
    """
    was_interrupted = attempt.fault is not None and attempt.fault.error_class == "interrupted"
    return was_interrupted or any(name != UNKNOWN_CALL for name in attempt.called)


def conclude(
    run: Run,
    reading: Reading | None,
    given: Sequence[Message] = (),
    *,
    observed: ObservedCalls | None = None,
    trace_file: bytes | Note | None = None,
    tool_access: ToolAccess = "own",
    replayed: bool = False,
) -> None:
    """Give a run its reading, and what follows from that; and what our tool proxy observed, also without a reading.

    `given` is what the agent was sent; `replayed`: to a record of an earlier run, nothing was sent.
    """
    seen = observed or ObservedCalls()
    # A copy: an agent that was given up may still be calling.
    calls = None if seen.steps is None else list(seen.steps)
    unrecorded = [] if seen.note is None else [seen.note]
    if earlier := sum(attempt.observed_calls for attempt in run.earlier_attempts):
        text = f"{earlier:,} calls through the tool proxy were made in attempts before the last one"
        unrecorded.append(Note(CALLS_IN_EARLIER_ATTEMPT, "", text))
    else:
        guilty = [attempt for attempt in run.earlier_attempts if attempt.called]
        if tool_access == "world":
            guilty = [attempt for attempt in guilty if _escaped_proxy(attempt)]
        unrecorded += [Note(CALLS_IN_EARLIER_ATTEMPT, "", _what_it_called(attempt)) for attempt in guilty]
    if reading is None:
        _conclude_unanswered(run, calls, unrecorded, tool_access)
        return
    # A run that is concluded again, as a replay, has those of the first time.
    notes = [note for note in reading.notes if note.code not in _FOUND_HERE]
    if given and not replayed:
        note_unsent(reading.transcript, given, notes)
    mark_given(reading.transcript, given, notes)
    notes = _without_results_of_given(reading.transcript, given, notes)
    found = find_steps(reading, observed=calls, trace_file=trace_file, tool_access=tool_access, given=given)
    known_to_wait = any(note.code == WAITS_FOR_INPUT for note in notes)
    if not known_to_wait and (name := _open_call(reading, found.steps)) is not None:
        text = f"the record ends with a call of {name[:60]!r} that has no result: the agent waits for it"
        notes.append(Note(WAITS_FOR_INPUT, "", text))
    before = frozenset(notes)  # of a run that is concluded again
    notes += [note for note in found.notes if note not in before]
    notes += unrecorded
    if tool_access == "none" and found.steps:
        text = f"the suite says that the agent has no tools, but it called {found.steps[0].name[:60]!r}"
        notes.append(Note(CALL_WITHOUT_TOOLS, "/steps/0", text))
    reading.notes = notes
    if reading.trace is None:
        reading.trace = found.trace  # the file that has it may be gone when the run is read again
    run.reading = reading
    run.steps = found.steps
    run.reported = found.reported
    run.completeness = assess(reading, found, notes, tool_access)
    run.steps_source = found.source


def _open_call(reading: Reading, steps: Sequence[Step]) -> str | None:
    """The tool whose result an agent waits for: it was called last, and has none. Of one that the provider runs, only
    where nothing follows: many providers keep the results to themselves.

    Some agents never record results. Where no call has one, an agent that said something in its last turn has answered.
    """
    transcript = reading.transcript
    if transcript.answer or "result" in transcript.metadata:
        return None
    turn = next((message for message in reversed(transcript.done()) if isinstance(message, AssistantMessage)), None)
    if turn is None:
        return None
    calls = {call.id for call in turn.tool_calls()}
    end = turn.content[-1] if turn.content else None
    final = end.id if isinstance(end, ToolCall) else None
    # The steps of calls that got their ids here have none; those of the last turn are the last of them.
    made_up = [call.id for call in turn.tool_calls() if call.id.startswith(GENERATED_ID_PREFIX)]
    without_id = [step.index for step in steps if step.id is None]
    ids = dict(zip(reversed(without_id), reversed(made_up), strict=False))
    open_calls = [
        step
        for step in steps
        if _is_open(step)
        and (call_id := step.id or ids.get(step.index)) in calls
        and (step.executed_by == "agent" or call_id == final)
    ]
    if not open_calls or (all(map(_is_open, steps)) and _said_last(transcript)):
        return None
    return open_calls[0].name


def _is_open(step: Step) -> bool:
    return step.result is UNSET and step.status == "unknown"


def _said_last(transcript: Transcript) -> bool:
    """Whether the agent said something in its last turn."""
    for message in reversed(transcript.done()):
        if not isinstance(message, AssistantMessage):
            return False
        if not is_blank(message.plain_text()):
            return True
    return False


def _without_results_of_given(run: Transcript, given: Sequence[Message], notes: list[Note]) -> list[Note]:
    """The notes, less those on results without a call, when they are results of calls that were given.

    An agent that returns the end of a long conversation may cut between a call and its result; and it may bring the
    result of a given call that has none. A second result of a given call is one of a call that is not in the record,
    which has the same id; that gets a note where the reader took it for a result of the given call.
    """
    calls = {
        call.id: call.name
        for message in given
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls()
    }
    if not calls:
        return notes
    answered = {message.tool_call_id for message in given if isinstance(message, ToolResultMessage)}
    unpaired = any(note.code == TOOL_RESULT_UNPAIRED for note in notes)
    marked = frozenset(run.given)
    own: set[str] = set()
    for index, message in enumerate(run.messages):
        if isinstance(message, AssistantMessage) and index not in marked:
            own.update([call.id for call in message.tool_calls()])
        if not isinstance(message, ToolResultMessage) or message.tool_call_id in own:
            continue
        call_id, name = message.tool_call_id, message.tool_name
        if index in marked:
            known = call_id in calls
        else:
            known = call_id in calls and call_id not in answered and name in ("", calls[call_id])
            answered.add(call_id)
        if not known and (unpaired or call_id in calls):
            text = f"the call {call_id[:60]!r} that was given has its result; this is one of a call that is not here"
            stray = Note(TOOL_RESULT_UNPAIRED, pointer("messages", index), text)
            return notes if unpaired else [*notes, stray]
    return [note for note in notes if note.code != TOOL_RESULT_UNPAIRED]


def _conclude_unanswered(run: Run, calls: list[Step] | None, unrecorded: list[Note], tool_access: ToolAccess) -> None:
    """What is known of a run without an answer: the calls that were observed, if there was a proxy."""
    if calls is None or (not calls and tool_access != "world"):
        return
    run.steps = calls
    run.steps_source = "observed"
    missing = list(unrecorded)
    if tool_access != "world":
        missing.append(Note(NO_ANSWER_TO_READ, "", "the run has no answer, so only its observed calls are known"))
    run.completeness = Completeness("partial" if missing else "complete", "observed", ["observed"], missing)


class DoneRecord(msgspec.Struct):
    """What the agent did, to be unfolded into events that show the same calls as the steps."""

    transcript: Transcript
    facts: list[PlacedFacts]
    partial: str | None
    """Why not all calls are known."""


def done_record(run: Run, reading: Reading) -> DoneRecord:
    """What the agent did, without what was given: its events are made of this, where it sent none.

    Calls that only a trace has get messages of their own. Where the messages have calls, and other ones, they stay: the
    record contradicts itself, which the run says.
    """
    known = run.completeness
    partial = None if known is None or known.level == "complete" else what_is_missing(known)
    messages = reading.transcript.done()
    facts = facts_of_done(reading.facts, reading.transcript.given)
    reported = run.steps if run.reported is None else run.reported
    traced = [step for step in reported if step.source == "trace"]
    if traced and not any(isinstance(message, AssistantMessage) and message.tool_calls() for message in messages):
        said = [at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)]
        answer = said[-1] if said else len(messages)
        made, facts = _messages_of(traced, answer)
        messages = [*messages[:answer], *made, *messages[answer:]]
    return DoneRecord(msgspec.structs.replace(reading.transcript, messages=messages, given=[]), facts, partial)


def _messages_of(steps: Sequence[Step], start: int) -> tuple[list[Message], list[PlacedFacts]]:
    """The steps as messages, the first of which has the index `start`, and what is known of their calls besides."""
    messages: list[Message] = []
    facts: list[PlacedFacts] = []
    for step in steps:
        text = step.arguments_text
        arguments = step.arguments if text is None else unparsed_arguments("not JSON", text)
        call = ToolCall(step.id or generated_id((step.index,)), step.name, arguments)
        said = CallFacts(step.started_at, step.ended_at, step.duration_ms, step.status, step.error, step.executed_by)
        facts.append(PlacedFacts(start + len(messages), said))
        messages.append(AssistantMessage([call], StopReason.TOOL_USE))
        if step.result is not UNSET:
            content = step.result if type(step.result) is str else wire.encode(step.result).decode()
            failed = step.status in FAILED
            messages.append(ToolResultMessage(call.id, call.name, [TextBlock(content)], is_error=failed))
    return messages, facts
