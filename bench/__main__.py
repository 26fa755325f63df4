"""`python -m bench [SUBJECT ...]`: measures, prints the table; without a subject also writes RESULTS.md."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bench.figure import Figure, Level, markdown
from bench.subjects import SUBJECTS, measure

PEERS = ("msgspec", "inspect-ai", "agentevals", "ag-ui-protocol", "pydantic-evals", "aiohttp")
RESULTS = Path(__file__).with_name("RESULTS.md")


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in SUBJECTS]:
        print(f"no subject {unknown[0]!r}; there are: {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    os.environ["LANGSMITH_TRACING"] = "false"  # or agentevals may report each verdict to a service
    figures: list[Figure | Level] = []
    details: list[str] = []
    for name in names or SUBJECTS:
        print(f"measuring {name} ...", file=sys.stderr)
        try:
            detail, measured = measure(name)
        except ModuleNotFoundError as error:
            print(f'{error.name} is not installed: `pip install -e ".[bench]"`', file=sys.stderr)
            return 3
        details.append(detail)
        figures += measured
    print(markdown(figures))
    if not names:
        RESULTS.write_text(report(figures, details))
    return 0 if all(figure.reached for figure in figures) else 1


def report(figures: Sequence[Figure | Level], details: Sequence[str]) -> str:
    bars = [figure for figure in figures if isinstance(figure, Level) or figure.bar is not None]
    missed = sum(not figure.reached for figure in bars)
    counts = f"{len(bars)} bars, {missed or 'none'} missed; {len(figures) - len(bars)} figures without a bar are shown"
    paragraphs = "\n\n".join(details)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    peers = ", ".join(f"{peer} {version(peer)}" for peer in PEERS)
    return f"""# Speed, measured

Written by `make bench`, which installs the peers and runs `python -m bench`. With names, as in
`python -m bench startup`, it measures only those subjects and leaves this file alone.

{counts}. Measured on {machine}; {python}; {peers}.

{markdown(figures)}

Times are the best CPU time for one piece of work (one response, one match, one event, one run, one process), or the
best by the clock where a paragraph below says so. A time that stands alone is the median of its rounds, and so may be
longer than the best one beside a peer. The contenders take turns in one process, a fresh one for each subject. The
ratio is the median over the rounds, with the range that holds the middle eight tenths of them: under "at least" how
many times faster Seatrial is, under "at most" how many times the other's time it takes.

## What is compared with what

{paragraphs}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
