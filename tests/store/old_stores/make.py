"""Makes a store as the Seatrial of a checkout writes it: `PYTHONPATH=CHECKOUT/src:CHECKOUT/tests python make.py FILE`.

The stores beside this file were made so, each by the last commit with that version of the schema. They are never made
again: they stand for the stores that people have.
"""

from __future__ import annotations

import sys
from pathlib import Path

from strategies import records

from seatrial.runs import Fault, Run, RunKey, Verdict
from seatrial.store import Admission, Ending, Store, open_store
from seatrial.trajectory.step import Step
from seatrial.transcript import Note, Usage

CASES = 6


def fill(store: Store) -> None:
    """One experiment with a run of every kind, another that is plain, and two runs of the run service."""
    store.create_experiment(records.experiment(), records.cases(CASES))
    fault = Fault("agent_timeout", "no answer in 30 s")
    for agent in ("crew", "other"):
        for case in range(CASES):
            for number in range(3):
                outcome = "failed" if (case + number) % 3 == 0 else "passed"
                store.record_run(
                    records.run(
                        case,
                        agent=agent,
                        trial=number + 1,
                        run_id=f"run-{agent}-case-{case}-{number}",
                        outcome=outcome,  # type: ignore[arg-type]
                        reading=records.reading(
                            f"Where is order {case}?",
                            f"Behind bollard b{case}x{number}.",
                            notes=[Note("bom_removed", "", "a mark")] if number == 1 else [],
                            usage=Usage(100 + case, 20 + number),
                            cost=0.001 * (case + 1),
                        ),
                        duration_ms=100.0 * (case + 1) + number,
                    ),
                    events=[b'{"type":"RUN_STARTED"}', b'{"type":"RUN_FINISHED"}'],
                )
    store.record_run(
        records.run(0, agent="late", status="failed", outcome=None, said=(), steps=[], attempts=[], fault=fault)
    )
    long = [f"word{index} " * 40 for index in range(250)]
    store.record_run(
        records.run(
            1,
            agent="late",
            run_id="run-late-case-1-0",
            said=[*long, "x" * 40_000],
            steps=[Step(index, "lookup_order", {"order": index}, f"c{index}", "messages", "ok") for index in range(9)],
        )
    )
    store.record_run(records.run(2, agent="late", outcome=None))
    store.record_verdicts("run-crew-case-1-0", [records.verdict("failed", key="again")], records.grade("failed"))
    inner = records.verdict("failed", grader="inner")
    composite = Verdict(
        grader="both", kind="composite", outcome="failed", score=0.0, details=[records.verdict("passed"), inner]
    )
    outer = Verdict(grader="all", kind="composite", outcome="failed", score=0.0, details=[composite])
    own = Verdict(grader="own", kind="python", outcome="errored", details={"outcome": "mine"})
    store.record_verdicts("run-late-case-1-0", [outer, own], records.grade("failed"))
    store.begin_run("exp-1", RunKey("late", "case-3", 1), "left-behind", started_at=5).wait()
    store.add_notes("exp-1", "crew", [Note("invalid_line", "/3", "a line that is no answer")]).wait()
    second = records.experiment("exp-2", name="second")
    second.suite["selected"] = {"crew": ["case-0"]}
    store.create_experiment(second, records.cases(2))
    store.record_run(records.run(0, run_id="second", experiment_id="exp-2")).wait()
    presence = store.begin_serving("server-1", 1)
    for run_id in ("served-1", "served-2"):
        store.admit_run(
            Admission(
                run_id=run_id,
                thread_id=run_id,
                agent="crew",
                server_id="server-1",
                created_at=1,
                input=b"{}",
                first_event=b'{"type":"RUN_STARTED"}',
                request=b"{}",
            )
        ).wait()
    ended: Run = records.run(0, run_id="served-1", experiment_id="server-1", outcome=None)
    store.end_run(
        Ending(run=ended, status="completed", events=[b'{"type":"RUN_FINISHED"}'], first=1, ended_at=2)
    ).wait()
    presence.close()
    store.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()


if __name__ == "__main__":
    with open_store(Path(sys.argv[1])) as made:
        fill(made)
