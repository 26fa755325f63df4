"""`python -m bench [SUBJECT ...]`: measures, prints the figures of each subject, and writes RESULTS.md.

The figures of a subject are saved when it has been measured. RESULTS.md is made of the newest ones of all subjects, and
says on which commit each was measured, so that one that failed or has changed can be measured again alone.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.figure import Figure, Level, markdown
from bench.subjects import SUBJECTS, measure

PEERS = ("msgspec", "inspect-ai", "agentevals", "ag-ui-protocol", "pydantic-evals", "aiohttp", "ray")
ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_name("RESULTS.md")
SAVED = ROOT / ".cache" / "figures"


class Measured(msgspec.Struct, frozen=True):
    """What a subject came to."""

    commit: str
    detail: str
    """What is compared with what."""
    figures: list[Figure | Level]


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in SUBJECTS]:
        print(f"no subject {unknown[0]!r}; there are: {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    os.environ["LANGSMITH_TRACING"] = "false"  # or agentevals may report each verdict to a service
    failed = []
    for name in names or SUBJECTS:
        print(f"measuring {name} ...", file=sys.stderr)
        try:
            detail, figures = measure(name)
        except ModuleNotFoundError as error:
            print(f'{error.name} is not installed: `pip install -e ".[bench]"`', file=sys.stderr)
            return 3
        except Exception as error:
            # The figures of the other subjects are still wanted: measuring them all takes half an hour.
            print(f"{name} could not be measured: {error!r}", file=sys.stderr)
            failed.append(name)
            continue
        print(markdown(figures), flush=True)
        _save(name, Measured(_commit(), detail, figures))
    saved = _saved()
    if missing := [name for name in SUBJECTS if name not in saved]:
        print(f"{RESULTS.name} is not written, because these were never measured: {', '.join(missing)}")
    else:
        RESULTS.write_text(report(saved))
    if failed:
        print(f"could not be measured: {', '.join(failed)}", file=sys.stderr)
        return 3
    return 0 if all(figure.reached for measured in saved.values() for figure in measured.figures) else 1


def report(subjects: Mapping[str, Measured]) -> str:
    figures = [figure for measured in subjects.values() for figure in measured.figures]
    bars = [figure for figure in figures if isinstance(figure, Level) or figure.bar is not None]
    missed = sum(not figure.reached for figure in bars)
    counts = f"{len(bars)} bars, {missed or 'none'} missed; {len(figures) - len(bars)} figures without a bar are shown"
    paragraphs = "\n\n".join(measured.detail for measured in subjects.values())
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    peers = ", ".join(f"{peer} {version(peer)}" for peer in PEERS)
    commits: dict[str, list[str]] = {}
    for name, measured in subjects.items():
        commits.setdefault(measured.commit, []).append(f"`{name}`")
    measured_on = "; ".join(f"{', '.join(names)} on {commit}" for commit, names in commits.items())
    return f"""# Speed, measured

Written by `make bench`, which installs the peers and runs `python -m bench`. With names, as in `python -m bench
startup`, it measures only those subjects again, and keeps the figures of the others.

{counts}. Measured on {machine}; {python}; {peers}.

Commits: {measured_on}.

{markdown(figures)}

Times are the best CPU time for one piece of work (one response, one match, one event, one run, one process), or the
best by the clock where a paragraph below says so. A time that stands alone is the median of its rounds, and so may be
longer than the best one beside a peer. The contenders take turns in one process, a fresh one for each subject. The
ratio is the median over the rounds, with the range that holds the middle eight tenths of them: under "at least" how
many times faster Seatrial is, under "at most" how many times the other's time it takes.

## What is compared with what

{paragraphs}
"""


def _save(name: str, measured: Measured) -> None:
    SAVED.mkdir(parents=True, exist_ok=True)
    (SAVED / f"{name}.json").write_bytes(msgspec.json.encode(measured))


def _saved() -> dict[str, Measured]:
    paths = {name: SAVED / f"{name}.json" for name in SUBJECTS}
    return {
        name: msgspec.json.decode(path.read_bytes(), type=Measured) for name, path in paths.items() if path.exists()
    }


def _commit() -> str:
    """The commit that is measured; with a `+` when files have been changed since."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    described = subprocess.run(git, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "an unknown commit"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
