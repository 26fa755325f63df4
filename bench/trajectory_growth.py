"""**Growth of a trajectory match**: the same work as above with 1000 calls and with 100, in a process of its own.
In proportion it would cost ten times as much.

The process has no peers loaded. Earlier, interleaved with the peers' own work and on a busy machine, the same ratio
read 11.9 (strict), 13.6 (unordered), 18.5 (subset) and 16.3 (superset), three of four over the bar; why was not found
out. With the peers loaded but idle, on a quiet machine, two runs read 10.1 to 11.4.
"""

from __future__ import annotations

from bench import corpus
from bench.clock import Work, race
from bench.figure import Figure, cost
from seatrial.trajectory import MatchResult, Mode, match_messages

MODES: dict[str, Mode] = {"strict": "exact", "unordered": "unordered", "subset": "subset", "superset": "superset"}
"""The name that agentevals has for a mode, and ours."""


def measure() -> list[Figure]:
    figures = []
    for name, mode in MODES.items():
        thousand, hundred = (matching(mode, *corpus.run_and_reference(name, calls)) for calls in (1000, 100))
        result = race({"seatrial": thousand, "100 calls": hundred}, seconds=3)
        figures.append(cost(result, f"trajectory match, {name}, 1000 calls", "100 calls", at_most=12))
    return figures


def matching(mode: Mode, run: list[corpus.Json], reference: list[corpus.Json]) -> Work:
    """The match of two lists of messages that have the same calls."""

    def work() -> MatchResult:
        return match_messages(mode, reference, run)

    result = work()
    assert result.passed
    assert len(result.matched) == sum(len(message.get("tool_calls", ())) for message in run)
    return work
