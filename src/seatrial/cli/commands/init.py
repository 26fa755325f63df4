"""`seatrial init`: a suite that runs as it is, to be changed into one's own."""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib.resources import files
from pathlib import Path

from seatrial._support import wire
from seatrial.cli.exits import PASSED
from seatrial.errors import SeatrialError

SUITE = "first.suite.yaml"
AGENT = "first_agent.py"

STARTERS = {
    "python": "a Python function (the default)",
    "http": "an agent behind HTTP, with a small server to try it on",
    "cli": "a program that is started for each case",
    "pydantic-ai": "an agent of pydantic-ai, with a scripted model until you name one",
    "langgraph": "an agent of LangGraph, with a scripted model until you name one",
    "codex": "Codex, or any coding agent on the command line",
}
"""What a suite can start from: each is a directory of `starters/`, whose files are copied as they are."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        type=Path,
        help="the directory to write to (default: this one)",
    )
    choice = parser.add_mutually_exclusive_group()
    for name, meaning in STARTERS.items():
        choice.add_argument(f"--{name}", dest="starter", action="store_const", const=name, help=meaning)
    parser.set_defaults(starter="python")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--json", action="store_true", help="what was written, and what to do next, as JSON")
    parser.epilog = f"Writes {SUITE} and, unless the agent is a program of its own, {AGENT}."


def run(args: argparse.Namespace) -> int:
    directory: Path = args.directory
    texts = _texts(args.starter)
    present = [name for name in texts if (directory / name).exists()]
    if present and not args.force:
        raise SeatrialError(
            "unwritable_file",
            f"{directory / present[0]} is there already, so nothing was written",
            hint="--force replaces it",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SeatrialError("unwritable_file", f"{error.filename} cannot be written: {error.strerror}") from None
    written = [str(directory / name) for name in texts]
    command = ["seatrial", "run", str(directory / SUITE)]
    if args.json:
        sys.stdout.buffer.write(wire.encode({"written": written, "next": command}) + b"\n")
        return PASSED
    for path in written:
        print(f"wrote {path}")
    print("\nNext:")
    if args.starter == "http":
        print(f"  {shlex.join(['python', str(directory / AGENT)])}    # in another terminal: the agent")
    elif args.starter in ("codex", "pydantic-ai", "langgraph"):
        # Without `--deep`, no framework is imported.
        deep = ["--deep"] if args.starter != "codex" else []
        doctor = shlex.join(["seatrial", "doctor", *deep, str(directory / SUITE)])
        print(f"  {doctor}    # is everything there that it needs?")
    print(f"  {shlex.join(command)}")
    return PASSED


def _texts(starter: str) -> dict[str, str]:
    """The files of a starter by their names, the suite first."""
    folder = files("seatrial.cli") / "starters" / starter
    return {name: text.read_text("utf-8") for name in (SUITE, AGENT) if (text := folder / name).is_file()}
