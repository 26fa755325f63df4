"""What an agent changed in its workspace, in the words of reports."""

from __future__ import annotations

from seatrial._support.printable import one_line
from seatrial.reports.figures import plural
from seatrial.runs import ChangedFile, WorkspaceDiff

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
