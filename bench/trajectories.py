"""**Trajectory match** of two lists of OpenAI chat messages, given as Python objects, from the messages to the result
that tells which call matched which.

langchain's agentevals gets the same lists and says only whether they match. Both must find that they do. `strict` is
our `exact`; in the other modes the reference has its turns in another order, so that partners have to be looked for.
"Respelled" means that the arguments of the reference are the same JSON in other text, with spaces and sorted keys.
The messages have mostly one call each, at times two or three, with mostly flat arguments of one to three keys.

These inputs were settled on after others had been tried: nested arguments for every call, and evenly one to three
calls in a message. Flat arguments are cheaper for Seatrial and about the same for agentevals; fewer calls in a message
cost agentevals somewhat more a call.

Earlier bars (30 and 20 times) were those of a shortcut for messages of OpenAI's shape, which is gone: every message is
read by the one chat reader. docs/decisions/2026-11-18-what-reading-costs.md says why.
"""

from __future__ import annotations

from itertools import product

from agentevals.trajectory.match import create_trajectory_match_evaluator

from bench import corpus
from bench.clock import Work, race
from bench.figure import Figure, speed
from bench.trajectory_growth import MODES, matching

CALLS = (10, 100, 1000)


def measure() -> list[Figure]:
    figures = []
    for (name, mode), calls, respelled in product(MODES.items(), CALLS, (False, True)):
        # Each side has lists of its own: agentevals changes the messages that it is given.
        ours, theirs = (corpus.run_and_reference(name, calls, respelled=respelled) for _ in range(2))
        result = race({"seatrial": matching(mode, *ours), "agentevals": _evaluation(name, *theirs)}, seconds=1.5)
        work = f"trajectory match, {name}, {calls} calls{', respelled' if respelled else ''}"
        figures.append(speed(result, work, "agentevals", at_least=1))
    return figures


def _evaluation(mode: str, run: list[corpus.Json], reference: list[corpus.Json]) -> Work:
    evaluate = create_trajectory_match_evaluator(trajectory_match_mode=mode)
    assert evaluate(outputs=run, reference_outputs=reference)["score"] is True
    return lambda: evaluate(outputs=run, reference_outputs=reference)
