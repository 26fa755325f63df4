"""Folders before and after an agent, and what is said of the difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from seatrial._support.path_pattern import PathPatterns
from seatrial.runs import WorkspaceDiff
from seatrial.workspaces.diff import difference
from seatrial.workspaces.tree import LookBounds, snapshot

EVERYTHING = LookBounds(10_000, 1 << 30, math.inf)


def diff_of(
    folder: Path,
    change: Callable[[], object],
    *,
    ignore: tuple[str, ...] = (),
    bounds: LookBounds = EVERYTHING,
) -> WorkspaceDiff:
    """What is said of a change to a folder; only the second look has these bounds."""
    scratch = folder.parent / "scratch"
    scratch.mkdir()
    ignored = PathPatterns(ignore)
    with snapshot(folder, ignored, EVERYTHING) as before:
        change()
        with snapshot(folder, ignored, bounds, before) as after:
            return difference(before, after, scratch)


def paths(diff: WorkspaceDiff) -> dict[str, str]:
    return {file.path: file.change for file in diff.files}
