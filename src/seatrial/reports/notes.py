"""Notes on runs, and how much is known of their calls, in the words that every report uses."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.reports import figures
from seatrial.reports.report import Report
from seatrial.reports.rows import NoteLine, RunRow
from seatrial.reports.summary import AgentSummary
from seatrial.store import CallsKnown
from seatrial.transcript import Note

MAX_SHOWN = 10
"""Notes of a run that a page shows; the JSON report has more of them, and the store has them all."""
MAX_REASONS = 3

_SOURCES = {
    "observed": "calls that went through Seatrial",
    "trace": "its trace",
    "messages": "its messages",
    "events": "its events",
}
_NOT_KNOWN: dict[CallsKnown, str] = {
    "partial": "not all known",
    "none": "unknown",
    "not recorded": "unknown",
    "no answer": "unknown",
}
_UNKNOWN_CALLS: dict[CallsKnown, str] = {
    "partial": "not all known",
    "none": "unknown: the agent did not return them (if it has no tools, set `tool_access: none`)",
    "not recorded": "unknown: the version of Seatrial that recorded them did not check",
}


def note_text(note: NoteLine | Note) -> str:
    """A note on one line: its weight, its code, its place, its sentence."""
    place = f" at {note.pointer}" if note.pointer else ""
    return f"{note.weight or 'serious'}: {note.code}{place}: {note.message}"


def shown_notes(row: RunRow, limit: int = MAX_SHOWN) -> tuple[list[NoteLine], int]:
    """The notes of a run to be shown, the most serious first, and how many more there are."""
    shown = row.notes[:limit]
    return shown, sum(counted.count for counted in row.note_counts) - len(shown)


def notes_text(row: RunRow) -> str:
    """How many notes a run has that are not harmless: `2 serious notes, 1 note to look at`; "" for none."""
    serious, look = row.noted("serious"), row.noted("look")
    parts = [
        figures.plural(serious, "serious note") if serious else "",
        f"{figures.plural(look, 'note')} to look at" if look else "",
    ]
    return ", ".join(filter(None, parts))


def calls_text(row: RunRow) -> str:
    """What is known of the calls of a run: `calls not all known: a message was dropped`."""
    known = row.calls_known
    if known != "complete":
        return f"calls {_NOT_KNOWN[known]}: {calls_reason(row)}"
    return f"calls complete, {calls_basis(row)}"


def calls_reason(row: RunRow) -> str:
    """Why not all calls of a run are known; "" when they are."""
    known = row.calls_known
    if known == "complete":
        return ""
    if known == "no answer":
        return "there was no answer to read"
    if known == "not recorded":
        return "the version of Seatrial that recorded the run did not check"
    found = row.completeness
    if found is None or not found.reasons:
        return (
            "the agent did not return them" if known == "none" else "something that may hold a call could not be read"
        )
    first = [
        f"{reason.message} ({reason.code}{f' at {reason.pointer}' if reason.pointer else ''})"
        for reason in found.reasons[:MAX_REASONS]
    ]
    more = len(found.reasons) - len(first) + found.omitted
    return "; ".join(first) + (f"; and {figures.plural(more, 'more reason')}" if more else "")


def calls_basis(row: RunRow) -> str:
    """Who says so: `reported by the agent in its messages`."""
    found = row.completeness
    if found is None or found.basis is None:
        return "on an unknown basis"
    if found.basis == "observed":
        return "observed by Seatrial"
    if found.source is None:
        return "since the suite says that the agent has no tools"
    reported = f"reported by the agent in {_SOURCES[found.source]}"
    return f"{reported}, some of them observed by Seatrial" if "observed" in found.sources else reported


def notes_table(report: Report, *, harmless: bool = False) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the notes by agent and code; the harmless ones only when asked for."""
    head = ["agent", "weight", "note", "notes", "runs"]
    rows = [
        [counted.agent, counted.weight, counted.code, f"{counted.notes:,}", f"{counted.runs:,}"]
        for counted in report.notes.counts
        if harmless or counted.weight != "harmless"
    ]
    return head, rows


def without_run(report: Report) -> Iterator[tuple[str, list[Note], int]]:
    """What agents sent that belongs to no run: the agent, the first notes, and how many more there are."""
    for agent, notes in report.experiment.notes.items():
        yield agent, notes[:MAX_SHOWN], max(0, len(notes) - MAX_SHOWN)


def remarks(agent: AgentSummary) -> str:
    """What the figures of an agent leave out, in a sentence; "" when that is nothing."""
    runs = figures.plural(agent.runs, "run")
    told = [
        f"the calls of {count:,} of {runs} are {what}"
        for known, what in _UNKNOWN_CALLS.items()
        if (count := agent.calls.get(known, 0))
    ]
    if agent.scored < agent.graded and agent.score is not None:
        told.append(f"the score is the mean of {agent.scored:,} of {agent.graded:,} graded runs: the others have none")
    if agent.timed < agent.graded:
        known = f"median and p95 are of {agent.timed:,} of {agent.graded:,} graded runs: " if agent.timed else ""
        told.append(f"{known or 'no timings: '}{'the others' if known else 'the runs'} gave no answer or no duration")
    if agent.cost_usd is not None and (unknown := agent.unknown.get("cost_usd")):
        told.append(f"the cost of {unknown:,} of {runs} is unknown")
    if agent.judges is not None and not agent.judges.usd_is_all:
        told.append("not all that the judges cost is known")
    return f"{'; '.join(told)}." if told else ""


def closing_line(report: Report) -> str | None:
    """How many notes need a look; None when none does."""
    counts = [counted for counted in report.notes.counts if counted.weight != "harmless"]
    apart = [note for notes in report.experiment.notes.values() for note in notes if note.weight != "harmless"]
    on_runs = sum(counted.notes for counted in counts)
    total = on_runs + len(apart)
    if not total:
        return None
    parts = [f"{figures.plural(on_runs, 'note')} on {figures.plural(report.notes.runs, 'run')}"] if on_runs else []
    if apart:
        number = f"{len(apart):,}" if on_runs else figures.plural(len(apart), "note")
        parts.append(f"{number} that {'belongs' if len(apart) == 1 else 'belong'} to no run")
    text = f"{' and '.join(parts)} {'needs' if total == 1 else 'need'} a look"
    serious = sum(counted.notes for counted in counts if counted.weight == "serious")
    serious += sum(note.serious for note in apart)
    if not serious:
        return text
    partial = sum(agent.calls.get("partial", 0) for agent in report.summary.agents)
    calls = f": the calls of {figures.plural(partial, 'run')} are not all known" if partial else ""
    return f"{text} ({serious:,} serious{calls})"
