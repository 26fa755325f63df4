"""What was removed from a run before it was stored, so that a verdict which depends on it cannot be found again."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.runs.run import Run
from seatrial.transcript import Note, note_code

SECRET_REMOVED = note_code(
    "secret_removed",
    "The agent sent back a secret of the suite. The run was graded with it, and is stored with the name of the secret "
    "in its place: what depends on it cannot be graded again. Serious in a call.",
    "harmless",
)
RUN_TOKEN_REMOVED = note_code(
    "run_token_removed", "The agent sent its run token back; it was taken out of the record.", "harmless"
)
ANSWER = "/answer"
"""Where the note points when the answer had a secret in it."""
WORLD = "/world"
"""Where it points when what was done in the world had one."""
DIFF = "/diff"
"""Where it points when the diff of the workspace had one."""
RUN_AGAIN = "run it again: what is stored is not all that the agent said"


def is_redacted(run: Run) -> bool:
    """Whether a secret was removed from a run that is graded again, or replayed."""
    return next(_removals(run), None) is not None


def is_answer_redacted(run: Run) -> bool:
    """Whether its answer had a secret in it. Earlier versions did not say where one had been."""
    return any(note.pointer in ("", ANSWER) for note in _removals(run))


def are_calls_redacted(run: Run) -> bool:
    """Whether a call had a secret in it: what is stored of it is not what the agent sent."""
    return any(note.serious or not note.pointer for note in _removals(run))


def is_diff_redacted(run: Run) -> bool:
    """Whether what changed in its workspace had a secret in it."""
    return any(note.pointer in ("", DIFF) for note in _removals(run))


def is_world_redacted(run: Run) -> bool:
    """Whether what its calls did to the world had a secret in it."""
    notes = run.notes
    return any(note.pointer in ("", WORLD) for note in _removals(run)) or any(
        note.code == RUN_TOKEN_REMOVED for note in notes
    )


def _removals(run: Run) -> Iterator[Note]:
    notes = [] if run.reading is None else run.reading.notes
    return (note for note in notes if note.code == SECRET_REMOVED)
