"""The runs that did not pass, as HTML: why, expected against actual calls, and the transcript."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from seatrial.printable import one_line, printable
from seatrial.reports import figures
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import CallLine, RunDetail, RunRow, SpeechLine, VerdictLine

MAX_DETAILS = 3_500_000
"""Bytes of details; runs after them are one line each."""
MAX_LINES = 3_000_000
"""Bytes of such lines; runs after them are only counted."""
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


def _run(row: RunRow, detail: RunDetail, trials: int) -> str:
    facts = [f"run <code>{text(row.run_id)}</code>", f"{figures.plural(row.steps, 'step')}"]
    if row.duration_ms is not None:
        facts.append(figures.duration(row.duration_ms))
    if row.attempts > 1:
        facts.append(f"{row.attempts} attempts")
    if row.cost_usd is not None:
        facts.append(figures.money(row.cost_usd))
    parts = [
        f'<details class="run {_kind(row)}" id="{anchor(row.run_id)}"><summary>{_line(row, trials)}</summary>\n',
        f'<div class="body">\n<p class="faint">{" · ".join(facts)}</p>\n',
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
        parts += map(_verdict, detail.verdicts)
    if detail.speech:
        parts += _speech(detail)
    parts.append("</div></details>\n")
    return "".join(parts)


def _line(row: RunRow, trials: int) -> str:
    why = text(one_line(reason(row), MAX_REASON))
    return (
        f'<span class="badge {_kind(row)}">{row.outcome}</span> <span class="case">'
        f'{text(figures.run_name(row, trials))}</span> <span class="faint">{text(row.agent)}</span>'
        f'<span class="why">{why}</span>'
    )


def _verdict(verdict: VerdictLine) -> str:
    score = "" if verdict.score is None else f' <span class="faint">score {figures.decimal(verdict.score)}</span>'
    required = "" if verdict.required else ' <span class="faint">not required</span>'
    reasons = "".join(f'<p dir="auto">{text(told)}</p>' for told in verdict.reasons)
    return (
        f'<div class="verdict"><span class="badge {verdict.judgement}">{verdict.judgement}</span> '
        f"<strong>{text(verdict.grader)}</strong>{score}{required}\n{reasons}{_calls(verdict.calls)}</div>\n"
    )


def _calls(calls: list[CallLine]) -> str:
    if not calls:
        return ""
    rows = []
    for line in calls:
        told = "".join(f"<li>{text(difference)}</li>" for difference in line.differences)
        rows.append(
            f'<tr class="{line.state}"><th scope="row">{line.state}</th>'
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
    # Roles of custom messages are anybody's text; only those that the style sheet knows become classes.
    known = line.role if line.role in ("user", "assistant", "system") else "other"
    return (
        f'<li class="{known} {line.channel}"><span class="who">{text(who)}</span>'
        f'<pre dir="auto">{text(line.text)}</pre></li>\n'
    )


def _kind(row: RunRow) -> str:
    return row.outcome if row.outcome in ("failed", "errored") else "other"
