"""Runs as HTML: why they did not pass, expected against actual calls, the transcript, and what was noted on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from seatrial.printable import one_line, printable
from seatrial.reports import figures
from seatrial.reports.notes import calls_text, notes_text, shown_notes
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import CallLine, NoteLine, RunDetail, RunRow, SpeechLine, VerdictLine
from seatrial.transcript import Note

MAX_DETAILS = 3_500_000
"""Bytes of details; runs after them are one line each."""
MAX_LINES = 3_000_000
"""Bytes of such lines; runs after them are only counted."""
MAX_NOTED = 500_000
"""Bytes of runs that passed with notes; those after them are only counted."""
MAX_REASON = 240


def text(value: str) -> str:
    """Text of anybody as HTML: escaped, and nothing in it is hidden or reorders what stands beside it."""
    return escape(printable(value))


def anchor(run_id: str) -> str:
    """What links to a run lead to."""
    return "run-" + "".join(character if character.isalnum() and character.isascii() else "-" for character in run_id)


def unpassed_runs(report: Report) -> Iterator[str]:
    """The section about them."""
    summary = report.summary
    total = summary.failed + summary.errored + summary.other
    yield '<section aria-labelledby="runs">\n<h2 id="runs">Runs that did not pass</h2>\n'
    if not total:
        yield "<p>All passed.</p>\n</section>\n"
        return
    if summary.failed and summary.errored:
        yield '<fieldset class="filter"><legend>Show</legend>\n'
        for key, label, number in (
            ("all", "all", total),
            ("failed", "failed", summary.failed),
            ("errored", "errored", summary.errored),
        ):
            checked = " checked" if key == "all" else ""
            yield (
                f'<label><input type="radio" name="only" id="only-{key}"{checked}> '
                f'{label} <span class="faint">{number:,}</span></label>\n'
            )
        yield "</fieldset>\n"
    details = lines = shown = 0
    for row in report.rows(detailed=True):
        if row.outcome == "passed":
            continue
        if details < MAX_DETAILS and row.detail is not None:
            piece = _run(row, row.detail, summary.trials)
            details += len(piece.encode())
        elif lines < MAX_LINES:
            line = f'<div class="line">{_line(row, summary.trials)}</div>'
            piece = f'<div class="run {_kind(row)}" id="{anchor(row.run_id)}">{line}</div>\n'
            lines += len(piece.encode())
        else:
            yield f"<p>… and {total - shown:,} more: the JSON report and the store have them all.</p>\n"
            break
        shown += 1
        yield piece
    yield "</section>\n"


def noted_runs(report: Report) -> Iterator[str]:
    """The section about runs that passed, but whose record needs a look; nothing when there is none."""
    size = shown = omitted = 0
    for row in report.rows(detailed=True):
        if row.outcome != "passed" or not row.needs_look:
            continue
        if not shown:
            yield '<section aria-labelledby="noted">\n<h2 id="noted">Passed, but the record needs a look</h2>\n'
        if size > MAX_NOTED:
            omitted += 1
            continue
        line = _line(row, report.summary.trials)
        piece = (
            f'<details class="run noted" id="{anchor(row.run_id)}"><summary>{line}</summary>'
            f'\n<div class="body">\n{_facts(row)}{_notes(row)}</div></details>\n'
        )
        size += len(piece.encode())
        shown += 1
        yield piece
    if omitted:
        yield f"<p>… and {omitted:,} more: the JSON and CSV reports have them all.</p>\n"
    if shown:
        yield "</section>\n"


def note_list(notes: Sequence[NoteLine | Note], more: int) -> str:
    """Notes with their weight, code and place."""
    items = "".join(f"<li>{_note(note)}</li>\n" for note in notes)
    rest = f'<li class="faint">… and {more:,} more</li>\n' if more else ""
    return f'<ul class="notes">\n{items}{rest}</ul>\n' if items or rest else ""


def _note(note: NoteLine | Note) -> str:
    weight = note.weight or "serious"
    place = f" at <code>{text(note.pointer)}</code>" if note.pointer else ""
    return (
        f'<span class="badge {weight}">{weight}</span> <code>{text(note.code)}</code>{place}: '
        f'<span dir="auto">{text(note.message)}</span>'
    )


def _facts(row: RunRow) -> str:
    tokens = row.input_tokens, row.output_tokens
    known = [
        f"run <code>{text(row.run_id)}</code>",
        figures.steps(row),
        figures.duration(row.duration_ms) if row.duration_ms is not None else "",
        f"{row.attempts} attempts" if row.attempts > 1 else "",
        f"{tokens[0]:,} tokens in, {tokens[1]:,} out" if tokens[0] is not None and tokens[1] is not None else "",
        figures.money(row.cost_usd) if row.cost_usd is not None else "",
    ]
    unknown = [
        name
        for name, value in (("duration", row.duration_ms), ("tokens", tokens[0]), ("cost", row.cost_usd))
        if value is None
    ]
    if unknown:
        known.append(f"{' and '.join(unknown)} unknown")
    kind = "warning" if row.calls_incomplete else "faint"
    return (
        f'<p class="faint">{" · ".join(filter(None, known))}</p>\n<p class="{kind}">{_sentence(calls_text(row))}</p>\n'
    )


def _sentence(words: str) -> str:
    return text(words[:1].upper() + words[1:])


def _notes(row: RunRow) -> str:
    listed = note_list(*shown_notes(row))
    return f"<h3>Notes</h3>\n{listed}" if listed else ""


def _run(row: RunRow, detail: RunDetail, trials: int) -> str:
    parts = [
        f'<details class="run {_kind(row)}" id="{anchor(row.run_id)}"><summary>{_line(row, trials)}</summary>\n',
        f'<div class="body">\n{_facts(row)}',
    ]
    if row.error_class is not None or not detail.verdicts:
        # Otherwise the verdicts say it.
        parts.append(f"<p>{text(detail.message)}</p>\n")
    if detail.fault_detail:
        parts.append(f'<pre class="quote" dir="auto">{text(detail.fault_detail)}</pre>\n')
    if detail.instruction:
        parts.append(f'<h3>Instruction</h3>\n<pre class="quote" dir="auto">{text(detail.instruction)}</pre>\n')
    if detail.answer is not None:
        parts.append(f'<h3>Answer</h3>\n<pre class="quote" dir="auto">{text(detail.answer) or "(empty)"}</pre>\n')
    if detail.verdicts:
        parts.append("<h3>Verdicts</h3>\n")
        parts += [_verdict(verdict, row) for verdict in detail.verdicts]
    parts.append(_notes(row))
    if detail.speech:
        parts += _speech(detail)
    parts.append("</div></details>\n")
    return "".join(parts)


def _line(row: RunRow, trials: int) -> str:
    why = text(one_line(reason(row), MAX_REASON)) if row.outcome != "passed" else ""
    marks = ["calls not all known" if row.calls == "partial" else "calls unknown"] if row.calls_incomplete else []
    marks += [notes] if (notes := notes_text(row)) else []
    return (
        f'<span class="badge {_kind(row)}">{row.outcome}</span> <span class="case">'
        f'{text(figures.run_name(row, trials))}</span> <span class="faint">{text(row.agent)}</span>'
        + "".join(f' <span class="mark">{mark}</span>' for mark in marks)
        + f'<span class="why">{why}</span>'
    )


def _verdict(verdict: VerdictLine, row: RunRow) -> str:
    score = "" if verdict.score is None else f' <span class="faint">score {figures.decimal(verdict.score)}</span>'
    required = "" if verdict.required else ' <span class="faint">not required</span>'
    reasons = "".join(f'<p dir="auto">{text(told)}</p>' for told in verdict.reasons)
    basis = "" if verdict.basis is None else f' <span class="faint">on {verdict.basis} calls</span>'
    calls = _calls(verdict.calls, row.calls == "complete")
    return (
        f'<div class="verdict"><span class="badge {verdict.judgement}">{verdict.judgement}</span> '
        f"<strong>{text(verdict.grader)}</strong>{basis}{score}{required}\n{reasons}{calls}</div>\n"
    )


def _calls(calls: list[CallLine], complete: bool) -> str:
    if not calls:
        return ""
    rows = []
    # A call that nobody saw may have been made, where not all of them are known.
    missing = "missing" if complete else "not seen"
    for line in calls:
        told = "".join(f"<li>{text(difference)}</li>" for difference in line.differences)
        state = missing if line.state == "missing" else line.state
        rows.append(
            f'<tr class="{line.state}"><th scope="row">{state}</th>'
            f'<td class="mono">{text(line.expected or "")}</td>'
            f'<td class="mono">{text(line.actual or "")}{f"<ul>{told}</ul>" if told else ""}</td></tr>\n'
        )
    head = '<thead><tr><th scope="col">call</th><th scope="col">expected</th><th scope="col">actual</th></tr></thead>'
    return f'<table class="calls">{head}<tbody>\n{"".join(rows)}</tbody></table>\n'


def _speech(detail: RunDetail) -> Iterator[str]:
    yield '<details><summary>Transcript</summary>\n<ol class="speech">\n'
    middle = len(detail.speech) // 2
    for index, line in enumerate(detail.speech):
        if detail.speech_left_out and index == middle:
            yield f'<li class="faint">… {detail.speech_left_out:,} more …</li>\n'
        yield _said(line)
    yield "</ol></details>\n"


def _said(line: SpeechLine) -> str:
    who = line.role if line.channel == "text" else f"{line.role} · {line.channel}"
    who += " · given" if line.given else ""
    # Roles of custom messages are anybody's text; only those that the style sheet knows become classes.
    known = line.role if line.role in ("user", "assistant", "system") else "other"
    return (
        f'<li class="{known} {line.channel}"><span class="who">{text(who)}</span>'
        f'<pre dir="auto">{text(line.text)}</pre>{note_list(line.notes, 0)}</li>\n'
    )


def _kind(row: RunRow) -> str:
    return row.outcome if row.outcome in ("passed", "failed", "errored") else "other"
