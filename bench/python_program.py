"""The program of the benchmark of the Python API: `python -m bench.python_program CASES|one STORE`."""

from __future__ import annotations

import sys
from pathlib import Path

import seatrial as st


def main(cases: str, store: Path) -> None:
    if cases == "one":
        suite = st.Suite(
            agents={"mine": lambda instruction: "Your order is on its way."},
            cases=[st.Case("where-is-it", "Where is order A-1009?", graders=[st.contains("on its way")])],
        )
        store.unlink(missing_ok=True)
        result = st.run(suite, store=store, progress=False)
    else:
        # Only here, so that the single case does not pay for it.
        from bench.trial_agents import answer
        from bench.trial_suites import prompt

        suite = st.Suite(
            agents={"agent": answer},
            cases=[st.Case(f"case-{number}", prompt(number)) for number in range(int(cases))],
            graders=[st.tool_trajectory("in_order", ["search"])],
        )
        result = st.run(suite, concurrency=16, store=store, progress=False)
    print(result)
    if not result.ok:
        raise SystemExit(f"not all passed: {result!r}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
