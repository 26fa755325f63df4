"""The tour of `make demo`: the real commands on the bundled samples, each shown before it runs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOUR: list[tuple[str, str, int]] = [
    ("An agent's answer, with what was wrong in it", "seatrial lint samples/agent-response-flawed.json", 0),
    (
        "The same answer, held to a promise that it breaks",
        "seatrial lint samples/agent-response-thin.json --response-mode rich --strictness strict",
        1,
    ),
    (
        "One record, another format; what did not fit is reported",
        "seatrial convert samples/openrouter-request.json --to anthropic",
        0,
    ),
    ("The tool trajectory of a recorded OpenAI stream", "seatrial steps samples/openai-stream.sse", 0),
    ("An event stream that is in order, folded", "seatrial events samples/agui-run.sse", 0),
    ("And one that is not", "seatrial events samples/events-violation.ndjson", 1),
    ("Trajectories against expectations", "seatrial match samples/match.jsonl --text", 1),
]


def main() -> int:
    """Run the tour; 0 when every command ended as it should."""
    surprises = 0
    for title, command, expected in TOUR:
        print(f"\n\x1b[1m{title}\x1b[0m" if sys.stdout.isatty() else f"\n## {title}")
        print(f"$ {command}", flush=True)
        program, *arguments = shlex.split(command)
        ended = subprocess.run([Path(sys.executable).with_name(program), *arguments], cwd=ROOT, check=False)  # noqa: S603
        print(f"(exit code {ended.returncode})", flush=True)
        if ended.returncode != expected:
            print(f"expected exit code {expected}", file=sys.stderr)
            surprises += 1
    print("\nNext: README.md, docs/, `seatrial --help`.")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
