"""Why a run did not pass: the run itself, cut down to what a report can show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.printable import one_line
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading
from seatrial.graders import Finding, Subject, Surroundings, build_graders
from seatrial.reports.figures import plural
from seatrial.reports.findings import expected_tools, findings_of, run_evidence
from seatrial.reports.rows import CallLine, ChangesLine, NoteLine, RunDetail, SpeechLine, VerdictLine, grader_name
from seatrial.reports.votes import judge_lines
from seatrial.runs import Case, ChangedFile, Run, Verdict, WorkspaceDiff
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import Step
from seatrial.trajectory.values import Difference
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    Note,
    ReasoningBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    pointer,
)

MAX_TEXT = 2000
"""Characters of any one text."""
MAX_PATCH = 20_000
"""Characters of a patch."""
MAX_VALUE = 300
"""Characters of the arguments of a call, or of a value in it."""
MAX_SPEECH = 60
"""Things said; the middle of a longer conversation is left out."""
MAX_CALLS = 100
MAX_REASONS = 20
MAX_SHARED_REASON = 350
"""Of one grader, where several have something to say."""
MAX_NOTE = 500
"""Characters of a note, and of its pointer."""
MAX_PLACED = 100
"""Notes that are shown in the transcript."""

_MESSAGE = re.compile(r"/messages/(\d{1,9})(?:/|$)")

_RESULT = msgspec.json.Decoder(MatchResult)
MAX_FILES = 100
"""Files that a report names."""
_MAX_PATH = 200


def summary_text(diff: WorkspaceDiff) -> str:
    """How much changed, and what of it is not known: `2 files, +10 −3`."""
    unknown = any(file.added is None for file in diff.files)
    at_least = "at least " if diff.unlisted or unknown else ""
    text = f"{at_least}{plural(len(diff.files), 'file')}, +{diff.added} −{diff.removed} lines"
    if diff.unlisted:
        text = f"{text}; not all changes are known: {one_line(diff.unlisted, 300)}"
    return text


def file_lines(diff: WorkspaceDiff) -> list[str]:
    """A line for each changed file, the first of them."""
    lines = [_file_line(file) for file in diff.files[:MAX_FILES]]
    more = len(diff.files) - MAX_FILES
    return [*lines, f"… and {more:,} more"] if more > 0 else lines


def _file_line(file: ChangedFile) -> str:
    facts = [] if file.added is None else [f"+{file.added} −{file.removed}"]
    if file.hidden is not None:
        facts.append(f"text not shown: {file.hidden}")
    beside = f"  {', '.join(facts)}" if facts else ""
    return f"{file.change:<8}  {one_line(file.path, _MAX_PATH)}{beside}"


def detail_of(run: Run, case: Case, suite: dict[str, Any], sent: int | None = None) -> RunDetail:
    """What a report tells of a run that did not pass; `suite` is the suite as the experiment has it.

    `sent` is how many `messages` the agent sent, where it sent such a list.
    """
    transcript = run.reading.transcript if run.reading is not None else None
    speech = list(_speech(run.reading, sent)) if run.reading is not None else []
    left_out = max(0, len(speech) - MAX_SPEECH)
    if left_out:
        speech[MAX_SPEECH // 2 : -MAX_SPEECH // 2] = []
    fault = run.fault
    answer = transcript.final_text() if transcript else None
    found = findings_of(run_evidence(run, expected_tools(_configs(case, suite))))
    return RunDetail(
        message=cut(_message(run)),
        sentence=found.sentence.text,
        findings=found.findings,
        code="" if run.grade is None else run.grade.code,
        instruction=cut(case.instruction),
        answer=cut(answer) if answer is not None else None,
        fault_detail=cut(fault.detail) if fault is not None and fault.detail else None,
        verdicts=_verdicts(run, case, suite),
        speech=speech,
        speech_left_out=left_out,
        changes=None if run.diff is None else _changes(run.diff),
    )


def _configs(case: Case, suite: dict[str, Any]) -> list[Any]:
    configured = suite.get("graders")
    return [*(configured if isinstance(configured, list) else ()), *case.graders]


def _changes(diff: WorkspaceDiff) -> ChangesLine:
    return ChangesLine(summary_text(diff), file_lines(diff), cut(diff.patch, MAX_PATCH))


def _speech(reading: Reading, sent: int | None) -> Iterator[SpeechLine]:
    transcript = reading.transcript
    given = set(transcript.given)
    notes = notes_by_message(reading.notes, sent, len(transcript.messages))
    for index, message in enumerate(transcript.messages):
        for line in _said(message):
            yield msgspec.structs.replace(
                line, message=index, given=index in given, notes=[note_line(note) for note in notes.pop(index, [])]
            )


def notes_by_message(notes: Sequence[Note], sent: int | None, messages: int) -> dict[int, list[Note]]:
    """Notes by the message of the transcript that they are about; one that was dropped is told of the one before it.

    Pointers lead into what the agent sent. Only when the transcript has a message for each of those, but the dropped,
    is it certain where that is.
    """
    placed = [(int(found[1]), note) for note in notes if (found := _MESSAGE.match(note.pointer))]
    dropped = {place for place, note in placed if note.serious and note.pointer == pointer("messages", place)}
    found_at: dict[int, list[Note]] = {}
    if sent != messages + len(dropped):
        return found_at
    for place, note in placed[:MAX_PLACED]:
        before = sum(other < place for other in dropped)
        found_at.setdefault(max(0, place - before - (place in dropped)), []).append(note)
    return found_at


def note_line(note: Note) -> NoteLine:
    """A note as a report shows it; a code that this version does not know may mean that something was dropped."""
    return NoteLine(note.code, note.weight or "serious", cut(note.pointer, MAX_NOTE), cut(note.message, MAX_NOTE))


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """The beginning of a text, and how much more there is."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def call_text(name: str, arguments: Any) -> str:
    """A call on one line: `refund {"order": "o-1"}`."""
    return cut(f"{name} {value_text(arguments)}" if arguments is not UNSET else name, MAX_VALUE)


def step_text(step: Step) -> str:
    """A step on one line; one that our tool proxy saw says so."""
    call = call_text(step.name, step.arguments if step.arguments_text is None else step.arguments_text)
    return f"{call} [observed]" if step.source == "observed" else call


def difference_text(difference: Difference) -> str:
    """One place where two calls differ: `/arguments/order: "o-1", not "o-2"`."""
    sides = [
        "nothing" if value is UNSET else cut(value_text(value), MAX_VALUE)
        for value in (difference.actual, difference.expected)
    ]
    return f"{difference.pointer}: {sides[0]}, not {sides[1]}"


def value_text(value: Any) -> str:
    """A JSON value as text, with spaces, so that it can be read and broken into lines."""
    try:
        return msgspec.json.format(wire.encode(value), indent=0).decode()
    except SeatrialError:
        return "(nested too deeply to be shown)"


def _message(run: Run) -> str:
    if run.fault is not None:
        return f"{run.fault.error_class}: {run.fault.message}"
    outcome = run.grade.outcome if run.grade is not None else None
    # Where nothing could be said, a grader that was skipped is as much the reason as one that errored.
    words = ("failed", "skipped") if outcome == "errored" else ("failed",)
    telling = [
        verdict
        for verdict in run.verdicts
        if verdict.reasons and (verdict.outcome == outcome or (verdict.required and verdict.outcome in words))
    ]
    # What failed comes first, also where a grader that is missing decided; and required graders before the others.
    telling.sort(key=lambda verdict: (verdict.outcome != "failed", not verdict.required))
    if telling and outcome in ("failed", "errored"):
        mixed = any(verdict.outcome != outcome for verdict in telling)
        told = [_told(verdict, mixed, alone=len(telling) == 1) for verdict in telling]
        if outcome == "errored" and telling[-1].outcome == "failed" and run.grade is not None:
            told += run.grade.reasons[1:]  # why it is not failed; the first reason names what failed
        return "; ".join(told)
    if run.grade is not None and run.grade.reasons:
        return run.grade.reasons[0]
    return f"the run is {run.status}" if run.status != "completed" else "the run was not graded"


def _told(verdict: Verdict, mixed: bool, *, alone: bool) -> str:
    # All reasons: that it was negated, what a score had to reach, or what a judge thought, comes last.
    reasons = "; ".join(verdict.reasons).replace(".; ", ". ")  # some are whole sentences
    basis = None if "(basis: " in reasons else verdict.basis
    word = f" {verdict.outcome}" if mixed else ""
    code = f"{verdict.code}: " if verdict.code else ""
    return f"{code}{grader_name(verdict.grader, basis)}{word}: {reasons if alone else cut(reasons, MAX_SHARED_REASON)}"


def _verdicts(run: Run, case: Case, suite: dict[str, Any]) -> list[VerdictLine]:
    expectations = [config for config in _configs(case, suite) if config.get("kind") == "tool_trajectory"]
    trajectories = [verdict for verdict in run.verdicts if verdict.kind == "tool_trajectory"]
    # Verdicts come in the order of the graders. After a grading with another suite they may be others.
    known = len(expectations) == len(trajectories)
    expected = dict(zip(map(id, trajectories), expectations, strict=True)) if known else {}
    return [
        VerdictLine(
            grader=verdict.grader,
            kind=verdict.kind,
            outcome=verdict.outcome,
            score=verdict.score,
            required=verdict.required,
            reasons=[cut(reason) for reason in verdict.reasons[:MAX_REASONS]],
            code=verdict.code,
            basis=verdict.basis,
            calls=_calls(verdict, expected[id(verdict)], Subject(run, case)) if id(verdict) in expected else [],
            judges=judge_lines(verdict),
        )
        for verdict in run.verdicts
    ]


def _calls(verdict: Verdict, config: dict[str, Any], subject: Subject) -> list[CallLine]:
    """Expected against actual, in the order of the actual calls, missing ones where they belong."""
    expected = config.get("expected")
    steps = subject.run.steps
    try:
        result = msgspec.convert(msgspec.to_builtins(verdict.details), MatchResult)
    except msgspec.ValidationError:
        return []
    if not isinstance(expected, list) or result.mode == "any_order" or result != _match(config, subject):
        return []
    wanted = [_item_text(item) for item in expected]
    matched = {pair.actual: pair.expected for pair in result.matched}
    near = {found.actual: found for found in result.mismatches}
    lines: list[tuple[int, CallLine]] = []
    behind = -1
    for index, step in enumerate(steps[:MAX_CALLS]):
        made = step_text(step)
        if index in matched:
            behind = matched[index]
            line = CallLine("matched", _at(wanted, behind), made)
        elif index in near:
            behind = near[index].expected
            told = [difference_text(difference) for difference in near[index].differences]
            line = CallLine("differs", _at(wanted, behind), made, told or ["in another place than expected"])
        else:
            line = CallLine("extra", None, made)
        lines.append((behind, line))
    shown = {found.expected for found in result.mismatches}
    missing = [item for item in result.missing if item not in shown]
    for item in missing[:MAX_CALLS]:
        place = next((at for at, (before, _) in enumerate(lines) if before > item), len(lines))
        lines.insert(place, (item, CallLine("missing", _at(wanted, item))))
    if more := len(steps) + len(missing) - len(lines):
        lines.append((behind, CallLine("extra", None, f"… and {more:,} more calls")))
    return [line for _, line in lines]


def _match(config: dict[str, Any], subject: Subject) -> MatchResult | None:
    """What this expectation finds in the run; something else than the verdict when that was found by another one."""
    try:
        (grader,) = build_graders([config])
        found = grader.prepare().find(subject, Surroundings())
    except SeatrialError:
        return None
    # As it comes out of a store.
    return wire.decode(wire.encode(found.details), _RESULT) if isinstance(found, Finding) else None


def _item_text(item: Any) -> str:
    if not isinstance(item, dict):
        return cut(value_text(item), MAX_VALUE)
    tool = item.get("tool")
    name = " | ".join(map(str, tool)) if isinstance(tool, list) else str(tool)
    return call_text(name, item.get("args", UNSET))


def _at(texts: Sequence[str], index: int) -> str | None:
    return texts[index] if 0 <= index < len(texts) else None


def _said(message: Message) -> Iterator[SpeechLine]:
    if isinstance(message, SystemMessage):
        yield SpeechLine("system", "text", cut(message.content))
    elif isinstance(message, UserMessage):
        yield SpeechLine("user", "text", cut(message.plain_text()))
    elif isinstance(message, ToolResultMessage):
        yield SpeechLine(
            cut(message.tool_name, 100), "error" if message.is_error else "result", cut(message.plain_text())
        )
    elif isinstance(message, CustomMessage):
        yield SpeechLine(cut(message.kind, 100), "text", cut(value_text(message.payload)))
    elif isinstance(message, AssistantMessage):
        for block in message.content:
            if isinstance(block, TextBlock):
                yield SpeechLine("assistant", "text", cut(block.text))
            elif isinstance(block, ThinkingBlock):
                yield SpeechLine("assistant", "thinking", cut(block.text))
            elif isinstance(block, ReasoningBlock):
                yield SpeechLine("assistant", "reasoning", cut(block.text))
            elif isinstance(block, ToolCall):
                yield SpeechLine("assistant", "call", call_text(block.name, block.arguments))
        if message.error_message is not None:
            yield SpeechLine("assistant", "error", cut(message.error_message))
