"""A program that records runs of `exp-1` and says on its standard output which ones were acknowledged.

Arguments: the store, and the numbers of the first and the last case.
"""

from __future__ import annotations

import sys
from collections import deque

from seatrial.runs import Run, RunKey
from seatrial.store import Receipt, open_store
from strategies import records

WINDOW = 50


def expected(case: int, process: str) -> tuple[Run, list[bytes]]:
    """What is recorded for a case; long enough to be torn if it could be."""
    run = records.run(case, run_id=f"{process}-{case}", said=(f"Question {case}?", f"Answer {case}. " * 200))
    run.body = b'{"case": %d}' % case * 500
    return run, [b'{"event": %d}' % number for number in range(8)]


def main() -> None:
    where, process, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    waiting: deque[tuple[int, Receipt[bool]]] = deque()
    with open_store(where) as store:
        for case in range(first, last):
            run, events = expected(case, process)
            if case % 2:
                assert isinstance(run.key, RunKey)
                store.begin_run("exp-1", run.key, run.run_id)
                store.append_events(run.run_id, events[:3])
            first = 3 * (case % 2)
            waiting.append((case, store.record_run(run, events=events[first:], first=first)))
            if len(waiting) == WINDOW or case == last - 1:
                while waiting:
                    case, receipt = waiting.popleft()
                    print(case, "stored" if receipt.wait() else "there already", flush=True)


if __name__ == "__main__":
    main()
