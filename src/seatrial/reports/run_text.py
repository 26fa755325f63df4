"""One run for a terminal: its transcript, a page at a time, and what was made of it.

Nothing here needs the whole run: a page of messages and the record of the run are enough, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from seatrial._support.printable import coloured, one_line
from seatrial.reports import figures
from seatrial.reports.detail import call_text, cut, file_lines, notes_by_message, summary_text, value_text
from seatrial.reports.findings import RunFindings, finding_text, findings_letters
from seatrial.reports.layout import NO_TERMINAL, folded, prose
from seatrial.reports.notes import note_text
from seatrial.reports.votes import judge_lines, vote_text
from seatrial.runs import Case, Experiment, RunKey, Verdict, WorkspaceDiff, model_costs
from seatrial.store import RunNotes, RunRecord, TranscriptItem
from seatrial.trajectory.completeness import Completeness, known_calls, what_is_missing, what_to_do
from seatrial.trajectory.step import FAILED, Step
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

MAX_SAID = 4000
"""Characters of one text in a transcript."""
MAX_RESULT = 1500
MAX_REASON = 2000
MAX_NOTES = 20
MAX_LISTED_STEPS = 200
MAX_PATCH_LINES = 400

TONES = {"passed": "green", "failed": "red", "errored": "yellow"}


class TranscriptPage(msgspec.Struct, kw_only=True):
    """What is shown of a run."""

    run_id: str
    record: RunRecord
    items: list[TranscriptItem]
    notes: RunNotes
    first: int = 0
    experiment: Experiment | None = None
    """None for a run of the run service."""
    case: Case | None = None
    """Where its instruction is in none of the messages."""
    sent: int | None = None
    """How many messages the agent sent, where that is known."""
    steps: list[Step] = []
    """The calls, where the messages do not have them."""
    findings: RunFindings | None = None
    """What is to be said of it first."""


class _Writer(msgspec.Struct):
    """How wide lines are, and whether they are in colour."""

    colour: bool
    width: int

    def paint(self, text: str, tone: str) -> str:
        return coloured(text, tone) if self.colour and text else text

    def prose(self, text: str, indent: str = "", first: str | None = None, tone: str | None = None) -> Iterator[str]:
        for line in prose(text, self.width, indent, first):
            yield self.paint(line, tone) if tone is not None else line

    def said(self, text: str, indent: str, tone: str | None = None) -> Iterator[str]:
        for line in folded(text.strip("\n"), self.width, indent):
            yield self.paint(line, tone) if tone is not None else line


def run_text(page: TranscriptPage, *, colour: bool = False, width: int = NO_TERMINAL) -> str:
    """The run for a terminal; ends with a newline."""
    return "".join(f"{line}\n" for line in _lines(page, _Writer(colour, width)))


def first_reason(record: RunRecord) -> str:
    """Why a run did not pass, in a sentence; "" when it passed, or nobody says."""
    if record.fault is not None:
        return f"{record.fault.error_class}: {record.fault.message}"
    outcome = record.summary.outcome
    if outcome == "passed":
        return ""
    deciding = [verdict for verdict in record.verdicts if verdict.outcome == outcome and verdict.reasons]
    deciding.sort(key=lambda verdict: not verdict.required)
    if deciding:
        code = f"{deciding[0].code}: " if deciding[0].code else ""
        return f"{code}{deciding[0].grader}: {deciding[0].reasons[0]}"
    return record.grade.reasons[0] if record.grade is not None and record.grade.reasons else ""


def _lines(page: TranscriptPage, write: _Writer) -> Iterator[str]:
    record = page.record
    yield from _head(page, write)
    yield ""
    if page.findings is not None and page.findings.findings:
        yield from _where(page.findings, write)
        yield ""
    yield from _transcript(page, write)
    if page.steps:
        yield ""
        yield from _calls(page.steps, write)
    if record.diff is not None:
        yield ""
        yield from _changes(record.diff, write)
    yield ""
    yield write.paint("verdicts", "bold")
    # What failed first; a required grader before the others.
    order = {"failed": 0, "errored": 1, "skipped": 2, "passed": 3}
    for verdict in sorted(record.verdicts, key=lambda verdict: (order[verdict.outcome], not verdict.required)):
        yield from _verdict(verdict, write)
    if not record.verdicts:
        yield "  none"
    if record.grade is not None and record.grade.reasons and record.summary.outcome != "passed":
        yield from write.prose("; ".join(record.grade.reasons), "  ")
    yield ""
    yield from _completeness(record, write)
    yield from _notes(page, write)
    yield from _attempts(record, write)


def _head(page: TranscriptPage, write: _Writer) -> Iterator[str]:
    record = page.record
    summary = record.summary
    outcome = write.paint(summary.outcome, TONES.get(summary.outcome, "dim"))
    key = record.key
    if isinstance(key, RunKey):
        trial = f"  trial {key.trial}" if key.trial > 1 else ""
        named = f"{one_line(key.case_id, 60)}  {one_line(key.agent, 40)}{trial}"
    else:
        named = f"{one_line(key.agent, 40)}  thread {one_line(key.thread_id, 60)}"
    yield f"{outcome}  {write.paint(named, 'bold')}"
    why = page.findings.sentence.text if page.findings is not None else first_reason(record)
    if why:
        yield from write.prose(one_line(why, MAX_REASON), "  ", tone=TONES.get(summary.outcome))
    tokens = summary.input_tokens, summary.output_tokens
    facts = [
        f"run {page.run_id}",
        f"experiment {page.experiment.name} ({page.experiment.experiment_id})" if page.experiment is not None else "",
        summary.status if summary.status != "completed" else "",
        figures.duration(summary.duration_ms) if summary.duration_ms is not None else "",
        f"score {figures.decimal(summary.score)}" if summary.score is not None else "",
        f"{summary.attempts} attempts" if summary.attempts > 1 else "",
        f"{tokens[0]:,} tokens in, {tokens[1]:,} out" if tokens[0] is not None and tokens[1] is not None else "",
        figures.money(summary.cost_usd) if summary.cost_usd is not None else "",
    ]
    yield from write.prose(" · ".join(fact for fact in facts if fact), tone="dim")


def _where(found: RunFindings, write: _Writer) -> Iterator[str]:
    yield write.paint("where it went wrong" if any(each.wrong for each in found.findings) else "to look at", "bold")
    for letter, finding in findings_letters(found):
        tone = "red" if finding.wrong else "yellow"
        yield from write.prose(one_line(finding_text(finding), MAX_REASON), "     ", f"  {letter}  ", tone)
    if found.left_out:
        yield f"  … and {found.left_out:,} more"


def _transcript(page: TranscriptPage, write: _Writer) -> Iterator[str]:
    record, items = page.record, page.items
    if not record.messages:
        yield write.paint("transcript", "bold")
        yield from _instruction(page, write)
        yield "  There are no messages: there was no answer to read." if record.format is None else "  no messages"
        if record.answer is not None:
            yield "  answer"
            yield from write.said(cut(record.answer, MAX_SAID), "    ")
        return
    last = items[-1].index if items else page.first
    part = len(items) < record.messages
    shown = f": messages {page.first:,} to {last:,} of {record.messages:,}" if part and items else ""
    yield write.paint(f"transcript{shown}", "bold")
    yield from _instruction(page, write)
    given = set(record.given)
    placed = notes_by_message(page.notes.notes, page.sent, record.messages)
    for item in items:
        yield from _message(item, item.index in given, write)
        for note in placed.get(item.index, []):
            yield from write.prose(f"note: {note_text(note)}", "      ", "    ", tone="yellow")
    if not items:
        yield f"  there is no message {page.first:,}: the last one is {record.messages - 1:,}"
    elif last + 1 < record.messages:
        yield write.paint(f"  … {record.messages - last - 1:,} more: --from {last + 1}", "dim")
    elif record.answer is not None and not _says(items, record.answer):
        yield "  answer, named outside the messages"
        yield from write.said(cut(record.answer, MAX_SAID), "    ")


def _instruction(page: TranscriptPage, write: _Writer) -> Iterator[str]:
    if page.case is not None:
        yield f"    {write.paint('instruction', 'bold')} {write.paint('(of the case; not in the messages)', 'dim')}"
        yield from write.said(cut(page.case.instruction, MAX_SAID), "    ")


def _says(items: Sequence[TranscriptItem], answer: str) -> bool:
    last = items[-1].message
    return isinstance(last, AssistantMessage) and last.plain_text().strip() == answer.strip()


def _message(item: TranscriptItem, given: bool, write: _Writer) -> Iterator[str]:
    message = item.message
    if not isinstance(message, ToolResultMessage):
        mark = write.paint(" (given)", "dim") if given else ""
        yield f"{item.index:>3} {write.paint(_role(message), 'bold')}{mark}"
    if isinstance(message, SystemMessage):
        yield from write.said(cut(message.content, MAX_SAID), "    ")
    elif isinstance(message, UserMessage):
        yield from write.said(cut(message.plain_text(), MAX_SAID), "    ")
    elif isinstance(message, CustomMessage):
        yield from write.said(cut(value_text(message.payload), MAX_RESULT), "    ")
    elif isinstance(message, ToolResultMessage):
        yield from _result(item, message, given, write)
    else:
        yield from _assistant(message, write)
    for long in item.long_texts:
        yield write.paint(f"    … cut: {long.size:,} bytes in all, at {one_line(long.pointer, 60)}", "dim")


def _role(message: Message) -> str:
    if isinstance(message, CustomMessage):
        return one_line(message.kind, 60)
    return {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant"}.get(type(message), "tool")


def _assistant(message: AssistantMessage, write: _Writer) -> Iterator[str]:
    for block in message.content:
        if isinstance(block, TextBlock):
            yield from write.said(cut(block.text, MAX_SAID), "    ")
        elif isinstance(block, ThinkingBlock | ReasoningBlock):
            kind = "thinking" if isinstance(block, ThinkingBlock) else "reasoning"
            yield from write.said(cut(f"({kind}) {block.text}", MAX_SAID), "    ", "dim")
        elif isinstance(block, ReasoningDetailsBlock):
            yield write.paint(f"    (reasoning details: {len(block.details):,})", "dim")
        elif isinstance(block, ToolCall):
            yield from write.prose(call_text(block.name, block.arguments), "        ", "    → ")
    if message.error_message is not None:
        yield from write.prose(cut(message.error_message, MAX_RESULT), "      ", "    ✗ error: ", tone="red")


def _result(item: TranscriptItem, message: ToolResultMessage, given: bool, write: _Writer) -> Iterator[str]:
    mark = " (given)" if given else ""
    name = one_line(message.tool_name, 60)
    text = cut(message.plain_text(), MAX_RESULT)
    sign = f"{item.index:>3}   {'✗ failed' if message.is_error else '←'} {name}{mark}"
    tone = "red" if message.is_error else None
    if "\n" in text.strip():
        yield write.paint(sign, tone) if tone else sign
        yield from write.said(text, "        ", tone)
    else:
        yield from write.prose(text or "(empty)", "        ", f"{sign}: ", tone)


def _calls(steps: Sequence[Step], write: _Writer) -> Iterator[str]:
    yield write.paint(f"calls, as {_SOURCES.get(steps[0].source, 'recorded')}", "bold")
    for step in steps[:MAX_LISTED_STEPS]:
        arguments = step.arguments if step.arguments_text is None else step.arguments_text
        observed = " [observed]" if step.source == "observed" else ""
        yield from write.prose(f"{call_text(step.name, arguments)}{observed}", "        ", f"{step.index:>3} → ")
        if step.status in FAILED:
            why = step.error or (value_text(step.result) if step.result is not msgspec.UNSET else "")
            text = f"{step.status}: {why}" if why else step.status
            yield from write.prose(cut(text, MAX_RESULT), "        ", "      ✗ failed ", "red")
        elif step.result is not msgspec.UNSET:
            result = step.result if isinstance(step.result, str) else value_text(step.result)
            yield from write.prose(cut(result, MAX_RESULT), "        ", "      ← ")
    if more := len(steps) - MAX_LISTED_STEPS:
        yield f"  … and {more:,} more" if more > 0 else ""


def _changes(diff: WorkspaceDiff, write: _Writer) -> Iterator[str]:
    yield from write.prose(f"changes in the workspace: {summary_text(diff)}", "  ", "", "bold")
    for line in file_lines(diff):
        yield f"  {line}"
    lines = diff.patch.splitlines()
    for text in lines[:MAX_PATCH_LINES]:
        tone = _PATCH_TONES.get(text[:1])
        for line in folded(cut(text, MAX_RESULT), write.width, "    "):
            yield write.paint(line, tone) if tone is not None else line
    if (more := len(lines) - MAX_PATCH_LINES) > 0:
        yield write.paint(f"    … {more:,} more lines: --json has them", "dim")


_PATCH_TONES = {"+": "green", "-": "red", "@": "dim"}
_SOURCES = {"observed": "observed by Seatrial", "trace": "the trace of the agent has them"}


def _verdict(verdict: Verdict, write: _Writer) -> Iterator[str]:
    word = write.paint(verdict.outcome, TONES.get(verdict.outcome, "dim"))
    facts = [
        verdict.code,
        f"score {figures.decimal(verdict.score)}" if verdict.score is not None else "",
        f"on {verdict.basis} calls" if verdict.basis is not None else "",
        "" if verdict.required else "not required",
        f"cost {figures.judges(costs)}" if (costs := model_costs([verdict])).asked else "",
    ]
    beside = ", ".join(fact for fact in facts if fact)
    kind = "" if verdict.kind == verdict.grader else f" ({one_line(verdict.kind, 40)})"
    yield f"  {word}  {one_line(verdict.grader, 60)}{kind}{f'  {beside}' if beside else ''}"
    for reason in verdict.reasons:
        yield from write.prose(cut(reason, MAX_REASON), " " * 10)
    told = "\n".join(verdict.reasons)
    judges = judge_lines(verdict)
    for judge in judges:
        named = f"{one_line(judge.grader, 80)}: " if judge.grader != verdict.grader else ""
        for depth, line in vote_text(judge, besides=told):
            text = cut(line if depth else f"{named}{line}", MAX_REASON)
            yield from write.prose(text, " " * (12 + 2 * depth), " " * (10 + 2 * depth), tone="dim")


def _completeness(record: RunRecord, write: _Writer) -> Iterator[str]:
    if record.format is None and record.completeness is None:
        yield "calls: unknown, there was no answer to read"
        return
    known: Completeness = known_calls(record.completeness)
    count = "" if record.summary.steps is None else f", {figures.plural(record.summary.steps, 'call')}"
    if known.level == "complete":
        yield f"calls: complete{count}, {known.basis}"
        return
    at_least = count.replace(", ", ", at least ") if record.summary.steps else ""
    yield from write.prose(f"calls: {known.level}{at_least}. {what_is_missing(known)}", "  ", "", "yellow")
    yield from write.prose(f"to do: {what_to_do(known)}", "  ")


def _notes(page: TranscriptPage, write: _Writer) -> Iterator[str]:
    total = sum(page.notes.counts.values())
    if not total:
        return
    yield write.paint(f"notes ({total:,}): what was dropped, guessed or repaired", "bold")
    for note in page.notes.notes[:MAX_NOTES]:
        yield from write.prose(note_text(note), "    ", "  ", tone=None if note.weight == "harmless" else "yellow")
    if (more := total - min(len(page.notes.notes), MAX_NOTES)) > 0:
        yield f"  … and {more:,} more"


def _attempts(record: RunRecord, write: _Writer) -> Iterator[str]:
    attempts = [attempt for exchange in record.exchanges for attempt in exchange.attempts]
    if len(attempts) > 1:
        yield write.paint(f"attempts ({len(attempts)})", "bold")
        for attempt in attempts:
            what = "answered" if attempt.fault is None else f"{attempt.fault.error_class}: {attempt.fault.message}"
            called = f"; it had called {', '.join(attempt.called)}" if attempt.called else ""
            yield from write.prose(
                f"{figures.duration(attempt.duration_ms)}, {what}{called}", "     ", f"  {attempt.number}  "
            )
    fault = record.fault
    if fault is not None and fault.detail:
        yield write.paint(f"fault: {fault.error_class}, the fault of {_blamed(record)}", "bold")
        yield from write.said(cut(fault.detail, MAX_SAID), "  ")


def _blamed(record: RunRecord) -> str:
    return "the agent" if record.fault is not None and record.fault.blame == "agent" else "the infrastructure"
