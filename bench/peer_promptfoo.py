"""promptfoo as a program: installed from npm into .cache/, and run with its echo provider and nothing to call home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.trial_suites import prompt

VERSION = "0.117.11"
HOME = Path(__file__).parent.parent / ".cache" / "promptfoo"
OFFLINE = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_SELF_HOSTED": "1",
}


class Promptfoo(msgspec.Struct, frozen=True):
    """An installed promptfoo."""

    program: str

    def command(self, folder: Path, cases: int) -> tuple[str, ...]:
        """The evaluation of so many cases; it stores them in a SQLite file of its own in this folder."""
        config = folder / f"promptfoo-{cases}.json"
        tests = [
            {"vars": {"question": prompt(number)}, "assert": [{"type": "contains", "value": "order"}]}
            for number in range(cases)
        ]
        document = {"providers": ["echo"], "prompts": ["{{question}}"], "tests": tests}
        config.write_bytes(msgspec.json.encode(document))
        shutil.rmtree(folder / "promptfoo", ignore_errors=True)
        settings = {**OFFLINE, "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo")}
        options = ("--no-progress-bar", "--no-table", "--no-cache", "--max-concurrency", "16")
        return (
            *("env", *(f"{name}={value}" for name, value in settings.items())),
            *("node", self.program, "eval", "-c", str(config), *options),
        )


def install() -> Promptfoo | None:
    """promptfoo, installed if need be; None, and a line on why, when it cannot be had."""
    program = HOME / "node_modules" / "promptfoo" / "dist" / "src" / "main.js"
    database = HOME / "node_modules" / "better-sqlite3" / "build" / "Release" / "better_sqlite3.node"
    if shutil.which("npm") is None or shutil.which("node") is None:
        print("promptfoo is left out: there is no npm here", file=sys.stderr)
        return None
    # Of all packages only the database driver has something to build; no other gets to run a script.
    steps = (
        (program, ["install", "--ignore-scripts", "--no-audit", "--no-fund", f"promptfoo@{VERSION}"]),
        (database, ["rebuild", "better-sqlite3"]),
    )
    HOME.mkdir(parents=True, exist_ok=True)
    for made, arguments in steps:
        if not made.exists():
            environment = {**os.environ, "npm_config_build_from_source": "true"}
            done = subprocess.run(
                ["npm", "--prefix", str(HOME), *arguments], env=environment, capture_output=True, text=True
            )
            if done.returncode != 0 or not made.exists():
                print(f"promptfoo is left out: npm says {done.stderr[-300:].strip()}", file=sys.stderr)
                return None
    return Promptfoo(str(program))
