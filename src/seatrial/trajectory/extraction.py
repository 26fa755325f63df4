"""The trajectory of a run: which of its sources counts, and where they contradict each other."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

import msgspec

from seatrial._support import wire
from seatrial._support.repeated_keys import TWICE, repeated_keys
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import canonical
from seatrial.formats.chat.hidden_calls import KEY_TWICE_IN_OBJECT, calls_in_arguments, calls_in_metadata
from seatrial.formats.chat.limits import excess
from seatrial.formats.chat.text_calls import unlisted_calls
from seatrial.formats.chat.turn import find_cut_turn
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.formats.trace import read_trace
from seatrial.trajectory.completeness import Completeness, ToolAccess, assess, lists_calls
from seatrial.trajectory.observed import REPORTED_CALL_NOT_OBSERVED, diff_report, interleaved, report_keys
from seatrial.trajectory.sources import steps_from_events, steps_from_trace, steps_from_transcript
from seatrial.trajectory.step import Source, Step, StepSummary, summarise
from seatrial.transcript import AssistantMessage, Message, Note, note_code, pointer
from seatrial.transcript.given import GIVEN_OR_REPEATED
from seatrial.transcript.note import Weight

TRACE_AND_MESSAGES_BOTH_GIVEN = note_code(
    "trace_and_messages_both_given", "A trace and messages with tool calls are both given; the trace counts.", "look"
)
TRACE_DISAGREES_WITH_MESSAGES = note_code(
    "trace_disagrees_with_messages", "The trace and the messages do not show the same tool calls.", "serious"
)
OBSERVED_CALL_NOT_REPORTED = note_code(
    "observed_call_not_reported", "A call went through the tool proxy that the agent does not report.", "look"
)
REPORTED_CALL_DIFFERS = note_code(
    "reported_call_differs", "A call went through the tool proxy with other arguments than the agent reports.", "look"
)
PREFERRED_SOURCE_ABSENT = note_code(
    "preferred_source_absent", "The source of steps that was asked for does not exist; another one counts.", "look"
)
TRACE_REF_NOT_READ = note_code(
    "trace_ref_not_read",
    "The file that trace_ref names was not read, or is not a trace; the next source is used.",
    "serious",
)
TRACE_DISAGREES_WITH_FILE = note_code(
    "trace_disagrees_with_file",
    "The trace in the record and the file that trace_ref names do not show the same tool calls; the record's counts.",
    "serious",
)
TOOL_NAME_DISTORTED = note_code(
    "tool_name_distorted",
    "The name of a called tool looks distorted (quotes, marks of a model, characters that are not shown or look like "
    "others, the prefix `functions.`): it may be another tool that was called.",
    "serious",
)

_PLAIN_NAME = re.compile(r"(?!functions\.)[A-Za-z0-9_](?:[\w .:/-]*[A-Za-z0-9_])?", re.ASCII)
"""As tools of nearly all agents are called."""
_DISTORTED_NAME = re.compile(r"\A(?:functions\.|[\s'\[])|[\"`{}<>]|(?:[\s']|\(\))\Z")
_LATIN = re.compile(r"[A-Za-z]")
_LOOKALIKES = re.compile(r"[\u0370-\u052f]")
"""Greek and Cyrillic letters."""
_LONGEST_NAME = 1_000

MAX_DIFFERENCES = 1000
"""Notes of one kind on calls that were only observed, or only reported."""


class Trajectory(msgspec.Struct, omit_defaults=True):
    """The steps of a run. Pointers of its notes start with `/steps` or `/others`, which are in this object, or with
    `/trace` or `/trace_ref`, which are in the record that it was taken from."""

    source: Source
    steps: list[Step]
    summary: StepSummary
    notes: list[Note]
    completeness: Completeness
    """How much is known of the calls."""
    others: dict[Source, list[Step]] = {}
    """The steps of the sources that exist beside the one that counts."""


class FoundSteps(msgspec.Struct, gc=False):
    """The steps of a run, not added up yet; the fields are those of `Trajectory`."""

    source: Source
    steps: list[Step]
    notes: list[Note]
    others: dict[Source, list[Step]]
    trace: list[TraceEvent] | None
    """The trace, in the record or in the file beside it."""
    sources: list[Source]
    """Every source that there was, also one that lists no call."""
    reported: list[Step] | None = None
    """What the agent itself reports, where calls of it were observed."""


def extract(
    reading: Reading,
    *,
    observed: list[Step] | None = None,
    prefer: Source | None = None,
    trace_file: bytes | Note | None = None,
    tool_access: ToolAccess = "own",
) -> Trajectory:
    """The trajectory of a run: its steps (see `find_steps`), how complete they are, and what they add up to."""
    found = find_steps(reading, observed=observed, prefer=prefer, trace_file=trace_file, tool_access=tool_access)
    known = assess(reading, found, [*reading.notes, *found.notes], tool_access)
    model_calls = [event.type for event in found.trace or ()].count("model_step")
    if not model_calls and not reading.answer_only:
        model_calls = [type(message) for message in reading.transcript.done()].count(AssistantMessage)
    # An answer without a single message says nothing of how it came about.
    summary = summarise(found.steps, model_calls or None, complete=known.level == "complete")
    return Trajectory(found.source, found.steps, summary, found.notes, known, found.others)


def find_steps(
    reading: Reading,
    *,
    observed: list[Step] | None = None,
    prefer: Source | None = None,
    trace_file: bytes | Note | None = None,
    tool_access: ToolAccess = "own",
    given: Iterable[Message] = (),
) -> FoundSteps:
    """The steps of a run.

    The agent's report is the first source that exists: trace, trace_ref, then events or messages. `observed` are the
    calls that went through our tool proxy; None when there was none. An agent that has only the tools of the world
    (`tool_access: world`) made these calls and no others. Any other made these, and those that it reports besides.

    `trace_file` is the content of the file that `trace_ref` names, or the note that says why it cannot be had (see
    `resolve_trace_ref`). Where there is a trace in the record itself, that counts, and the file is compared with it, if
    there is one. The notes are those of the extraction alone; what the reader had to say is in the reading.

    `given` is what the run started from: a call of that which a trace repeats by its id is not the run's.
    """
    found = _reported(reading, prefer, trace_file, given)
    if observed is not None and (observed or tool_access == "world"):
        _add_observed(found, observed, tool_access, reading)
    found.notes += _distorted_names(found.steps)
    found.notes += calls_in_arguments([(step.name, step.arguments) for step in found.steps], "steps")
    return found


def _add_observed(found: FoundSteps, observed: list[Step], tool_access: ToolAccess, reading: Reading) -> None:
    """Add what went through our tool proxy to what the agent reports, and say where they differ."""
    found.sources.insert(0, "observed")
    reported = found.reported = found.steps
    diff = diff_report(observed, reported)
    if tool_access == "world":
        places = [(True, index) for index in range(len(observed))]
    else:
        places = interleaved(observed, reported, diff)
    at = {place: f"/steps/{index}" for index, place in enumerate(places)}
    beside = pointer("others", found.source)
    # Observed calls of the same tools that are not reported are what these were in truth.
    surplus = Counter([reported[index].name for index in diff.unobserved])
    surplus.subtract([observed[index].name for index in diff.unreported])
    for index in sorted(diff.unobserved, key=lambda index: surplus[reported[index].name] <= 0)[:MAX_DIFFERENCES]:
        name = reported[index].name
        weight: Weight | None = "serious" if tool_access == "world" and surplus[name] > 0 else None
        text = _not_observed(name)
        place = at.get((False, index), f"{beside}/{index}")
        found.notes.append(Note(REPORTED_CALL_NOT_OBSERVED, place, text, weight))
    for index in diff.unreported[:MAX_DIFFERENCES]:
        text = f"{observed[index].name[:60]!r} was called, but the agent does not report it"
        found.notes.append(Note(OBSERVED_CALL_NOT_REPORTED, at[True, index], text))
    for index, _ in diff.differing[:MAX_DIFFERENCES]:
        text = f"{observed[index].name[:60]!r} was called with other arguments than the agent reports under the same id"
        found.notes.append(Note(REPORTED_CALL_DIFFERS, at[True, index], text))
    if tool_access == "world":
        found.notes += _unobserved_beside(observed, {note.message for note in found.notes}, found.others)
    if reported or lists_calls(reading, found):
        found.others = {found.source: reported, **found.others}
    if tool_access == "world" or not lists_calls(reading, found):
        found.source = "observed"
    found.steps = [
        msgspec.structs.replace((observed if seen else reported)[index], index=position)
        for position, (seen, index) in enumerate(places)
    ]


def _distorted_names(steps: list[Step]) -> list[Note]:
    """A note for the first name by which no check can know its tool. Models and parsers make such names: of JSON in
    place of a name, or of marks that were not taken off (`delete<|channel|>json`). What was observed was called so."""
    for step in steps:
        if not _PLAIN_NAME.fullmatch(step.name) and step.source != "observed" and _is_distorted(step.name):
            text = f"{step.name[:60]!r} may be another tool, whose name was not written as it is"
            return [Note(TOOL_NAME_DISTORTED, pointer("steps", step.index), text)]
    return []


def _is_distorted(name: str) -> bool:
    return (
        len(name) > _LONGEST_NAME
        or not name.isprintable()
        or _DISTORTED_NAME.search(name) is not None
        or (_LATIN.search(name) is not None and _LOOKALIKES.search(name) is not None)
        or unicodedata.normalize("NFKC", name) != unicodedata.normalize("NFC", name)
    )


def _not_observed(name: str) -> str:
    return f"{name[:60]!r} was reported, but no such call went through the proxy"


def _unobserved_beside(observed: list[Step], said: set[str], others: dict[Source, list[Step]]) -> list[Note]:
    """Notes on calls of which only a source knows that does not count, as messages beside a trace: one for a tool."""
    notes: list[Note] = []
    for source, steps in others.items():
        left = Counter([step.name for step in observed])
        left.subtract([step.name for step in steps if step.executed_by != "user"])
        for index, step in enumerate(steps):
            if left[step.name] < 0 and (text := _not_observed(step.name)) not in said and len(notes) < MAX_DIFFERENCES:
                said.add(text)
                notes.append(Note(REPORTED_CALL_NOT_OBSERVED, pointer("others", source, index), text, "serious"))
    return notes


def _reported(
    reading: Reading, prefer: Source | None, trace_file: bytes | Note | None, given: Iterable[Message]
) -> FoundSteps:
    """The steps by the agent's own report."""
    notes: list[Note] = []
    trace = reading.trace
    if reading.trace_ref is not None and (trace is None or trace_file is not None):
        in_file = _trace_from_file(trace_file, notes)
        if trace is None:
            trace = in_file
        elif in_file is not None and _report_of(in_file) != _report_of(trace):
            text = "the file does not show the same calls as the trace in the record"
            notes.append(Note(TRACE_DISAGREES_WITH_FILE, pointer("trace_ref"), text))
    found: dict[Source, list[Step]] = {}
    if trace is not None:
        found["trace"], trace_notes = steps_from_trace(trace)
        at = pointer("trace_ref" if reading.trace is None else "trace")
        notes += [msgspec.structs.replace(note, pointer=at + note.pointer) for note in trace_notes]
        found["trace"] = _without_given(found["trace"], given, at, notes)
    sources: list[Source] = [*found]
    if reading.events is not None:
        sources.append("events")
        echoed = [reading.transcript.messages[index] for index in reading.transcript.given]
        if streamed := steps_from_events(reading.events, echoed):
            found["events"] = streamed
    transcript = reading.transcript
    said = steps_from_transcript(transcript.messages, reading.facts, transcript.given)
    if not reading.answer_only:
        notes += find_cut_turn(reading.transcript)
    if not reading.answer_only or "trace" in found:
        notes += unlisted_calls(reading.transcript, frozenset([step.name for step in found.get("trace", ())]))
    if not found and prefer is None:
        counts: Source = "messages" if said or reading.events is None else "events"
        return FoundSteps(counts, said, notes, found, trace, sources)  # as almost always
    if said or "events" not in found:
        found["messages"] = said
    counts = next(iter(found))
    if prefer is not None:
        if prefer in found:
            counts = prefer
        else:
            notes.append(Note(PREFERRED_SOURCE_ABSENT, "", f"there are no {prefer} steps; the {counts} count"))
    notes += _contradictions(found, counts)
    return FoundSteps(counts, found.pop(counts), notes, found, trace, sources)


def _without_given(steps: list[Step], given: Iterable[Message], at: str, notes: list[Note]) -> list[Step]:
    """The steps of a trace, less the calls that the run started from, which are known by their ids.

    Some models count their calls anew in each turn, so that a call of the run may have the id of a given one, and
    nothing tells them apart.
    """
    made = [call for message in given if isinstance(message, AssistantMessage) for call in message.tool_calls()]
    left = Counter([(call.id, call.name, canonical(call.arguments)) for call in made])
    if not left:
        return steps
    kept: list[Step] = []
    for step in steps:
        key = (step.id or "", step.name, canonical(step.arguments))
        if left[key] > 0:
            left[key] -= 1
        else:
            kept.append(step)
    if len(kept) == len(steps):
        return steps
    text = "the trace has calls with the ids of given ones; they may be those, or the agent's own"
    notes.append(Note(GIVEN_OR_REPEATED, at, text))
    return [msgspec.structs.replace(step, index=index) for index, step in enumerate(kept)]


def resolve_trace_ref(ref: str, directory: str, roots: Iterable[str] = ()) -> str | Note:
    """The path that a `trace_ref` means, or a note when it must not be read.

    It is relative to `directory`, that of the file which names it, and must lie below that or below one of `roots`. All
    are absolute. Nothing is looked up, so whoever opens the path passes its real path here again, in case of links.
    """
    path = posixpath.normpath(posixpath.join(directory, ref))
    if "\0" in ref or not ref.strip():
        return Note(TRACE_REF_NOT_READ, pointer("trace_ref"), "trace_ref names no file")
    for root in (directory, *roots):
        if path.startswith(posixpath.join(posixpath.normpath(root), "")):
            return path
    return Note(
        TRACE_REF_NOT_READ, pointer("trace_ref"), "trace_ref leads out of the directories of the suite and the output"
    )


def _trace_from_file(file: bytes | Note | None, notes: list[Note]) -> list[TraceEvent] | None:
    if isinstance(file, Note):
        notes.append(file)
        return None
    if file is None:
        notes.append(Note(TRACE_REF_NOT_READ, pointer("trace_ref"), "the file was not read"))
        return None
    at = pointer("trace_ref")
    if (much := excess(file)) is not None:
        notes.append(Note(TRACE_REF_NOT_READ, at, f"the file has {much}"))
        return None
    try:
        value = wire.decode(file, repairs=[])
    except SeatrialError as error:
        notes.append(Note(TRACE_REF_NOT_READ, at, error.message))
        return None
    if repeated := repeated_keys(file):
        notes.append(Note(KEY_TWICE_IN_OBJECT, at, f"the key {repeated[0][:40]!r} {TWICE} of the file"))
    if type(value) is dict:
        beside = [calls_in_metadata(key, item, "trace_ref") for key, item in value.items() if key != "trace"]
        notes += [note for note in beside if note is not None]
        value = value.get("trace")
    return read_trace(value, notes, at=("trace_ref",))


def _report_of(trace: list[TraceEvent]) -> object:
    return report_keys(steps_from_trace(trace)[0], b"trace")


def _contradictions(found: dict[Source, list[Step]], counts: Source) -> list[Note]:
    trace, messages = found.get("trace"), found.get("messages")
    if trace is None or not messages:
        return []
    at = {source: pointer("steps") if source == counts else pointer("others", source) for source in found}
    text = f"{len(trace)} calls in one, {len(messages)} in the other"
    notes = [Note(TRACE_AND_MESSAGES_BOTH_GIVEN, at["trace"], text)]
    if report_keys(trace, b"trace") != report_keys(messages, b"messages"):
        notes.append(Note(TRACE_DISAGREES_WITH_MESSAGES, at["messages"], "they do not show the same calls"))
    return notes
