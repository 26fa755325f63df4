"""Which runs people should look at: where their word tells most, and a random sample.

The sample is drawn by a seed that the experiment and the grader make, so it is the same whoever asks, and as large as
people get to. Every run that the grader judged is as likely as any other; a draw that meets none of these is passed
over.
"""

from __future__ import annotations

import random

from seatrial.runs import RunKey
from seatrial.store import Chosen, ReviewCandidate, Store

DRAWS = 400
"""Draws of a sample; those that were looked at before are not drawn anew."""
DOUBTFUL = 50
"""Runs of which votes are split, and as many of which graders contradict each other."""


def random_sample(store: Store, experiment_id: str, grader: str | None) -> list[ReviewCandidate]:
    """The runs that are drawn, in the order of the draws."""
    totals = store.totals(experiment_id, flaky=0)
    agents, trials = sorted(found.agent for found in totals.agents), totals.most_trials
    cases = store.case_count(experiment_id)
    if not agents or not trials or not cases:
        return []
    dice = random.Random(f"{experiment_id}|{grader or ''}")  # noqa: S311 (no secret)
    drawn = [(dice.randrange(cases), dice.choice(agents), dice.randrange(trials) + 1) for _ in range(DRAWS)]
    names = store.case_ids(experiment_id, sorted({position for position, _, _ in drawn}))
    keys = {
        RunKey(agent, names[position], trial): draw
        for draw, (position, agent, trial) in reversed([*enumerate(drawn)])
        if position in names
    }
    judged = store.judged_runs(experiment_id, grader, list(keys))
    found = [ReviewCandidate(run_id, key, "random", keys[key]) for key, run_id in judged.items()]
    return sorted(found, key=lambda candidate: candidate.draw or 0)


def review_queue(store: Store, experiment_id: str, grader: str | None) -> list[ReviewCandidate]:
    """Runs to look at, each once: split votes, graders that contradict each other, then the random sample."""
    doubtful = [] if grader is None else store.doubtful_runs(experiment_id, grader, limit=DOUBTFUL)
    found: dict[str, ReviewCandidate] = {}
    for candidate in [*doubtful, *random_sample(store, experiment_id, grader)]:
        found.setdefault(candidate.run_id, candidate)
    return list(found.values())


def how_chosen(store: Store, experiment_id: str, grader: str | None, run_id: str) -> tuple[Chosen, int | None]:
    """How a run came to be reviewed: by its draw, else by doubts about it, else by the person."""
    for candidate in random_sample(store, experiment_id, grader):
        if candidate.run_id == run_id:
            return "random", candidate.draw
    doubtful = [] if grader is None else store.doubtful_runs(experiment_id, grader, limit=DOUBTFUL)
    return next((each.chosen for each in doubtful if each.run_id == run_id), "own"), None
