"""A suite in a folder, the command that runs it, and what it left behind: for tests with a real Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatrial.runs import RunKey
from seatrial.store import Store
from strategies.ray_cluster import AUTHENTICATION, RayCluster

CREW = """
import os, re, subprocess, sys, time
from pathlib import Path

def answer(instruction: str, case_id: str, trial: int) -> str:
    begun = Path(os.environ["BEGUN"])
    (begun / f"{case_id}-{trial}-{time.monotonic_ns()}").write_text(str(os.getpid()))
    if case_id.startswith("exits"):
        os._exit(7)
    if case_id.startswith("keeps"):
        re.match("(a+)+$", "a" * 200 + "!")  # keeps the interpreter lock for years
    if case_id.startswith("slow"):
        while not (begun / "go").exists():
            time.sleep(0.02)
    time.sleep(float(os.environ["PAUSE_S"]))
    print("here is", os.environ["CREW_KEY"])
    os.write(2, os.environ["CREW_KEY"].encode())
    print(os.environ["CREW_KEY"], file=sys.__stdout__, flush=True)
    subprocess.run(["sh", "-c", "echo $CREW_KEY; echo $CREW_KEY >&2"])
    return ("no " if case_id.startswith("wrong") else "ok ") + os.environ["CREW_KEY"]

def batch() -> None:
    import json
    for line in sys.stdin:
        print(json.dumps({"id": json.loads(line)["id"], "text": "ok"}), flush=True)

if __name__ == "__main__":
    batch()
"""
KEY = "hunter2-hunter2"
MATE = {"kind": "python", "target": "crew:answer"}
GONE = {
    "kind": "http",
    "endpoint_url": "http://127.0.0.1:9/",
    "auth_credential_value": "Bearer ${CREW_KEY}",
}
MAIN = "import sys; from seatrial.cli import main; sys.exit(main())"
IMPATIENT_MAIN = f"from seatrial.engine import remote; remote.PING_S, remote.SILENT_S = 0.5, 4.0; {MAIN}"
"""The command, which waits less long for a worker that does not respond."""


class Harbour:
    """A folder with a suite, and the command that runs it into a store in PostgreSQL."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.begun = folder / "begun"
        self.begun.mkdir()
        (folder / "crew.py").write_text(CREW)
        self.environment = {
            **os.environ,
            **AUTHENTICATION,
            "BEGUN": str(self.begun),
            "CREW_KEY": KEY,
            "PAUSE_S": "0",
            "HOME": str(folder),
            "TMPDIR": tempfile.mkdtemp(prefix="ray-"),  # the names of Ray's sockets must be short
            "SEATRIAL_STORE": url,
        }

    def suite(self, *ids: str, **fields: Any) -> Path:
        file = self.folder / "harbour.suite.yaml"
        keys = {
            "agents": {"mate": MATE},
            "cases": [{"id": each, "instruction": "Sail."} for each in ids],
            "graders": [{"kind": "contains", "value": "ok"}],
            **fields,
        }
        file.write_text(json.dumps(keys))
        return file

    def start(self, *options: str, main: str = MAIN) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", main, "run", "harbour.suite.yaml", *options],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str, main: str = MAIN) -> tuple[int, str, str]:
        """The exit code, and what was printed."""
        process = self.start(*options, main=main)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def asked(self) -> Counter[str]:
        """How often each run was begun, by case and trial."""
        return Counter(path.name.rpartition("-")[0] for path in self.begun.iterdir() if "-" in path.name)

    def wait_begun(self, count: int, process: subprocess.Popen[str]) -> None:
        while sum(self.asked().values()) < count:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)

    def wait_dead(self) -> None:
        """Wait for the end of every worker that began a run: one may outlive its node, and end a run that waits."""
        workers = {int(path.read_text()) for path in self.begun.iterdir() if path.stat().st_size}
        deadline = time.monotonic() + 120
        while any(map(_is_alive, workers)):
            assert time.monotonic() < deadline, "a worker outlives its node"
            time.sleep(0.05)

    def go(self) -> None:
        """Let slow cases end."""
        (self.begun / "go").touch()


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def rows_of(store: Store, ref: str = "latest") -> list[tuple[str, str, int, str, str | None]]:
    experiment = store.resolve_experiment(ref)
    rows: list[tuple[str, str, int, str, str | None]] = []
    after: RunKey | None = None
    while page := store.runs(experiment.experiment_id, after=after):
        rows += [(row.agent, row.case_id, row.trial, row.outcome, row.error_class) for row in page]
        after = page[-1].key
    return rows


@contextmanager
def a_cluster(harbour: Harbour) -> Iterator[RayCluster]:
    with RayCluster(
        2, {name: harbour.environment[name] for name in ("BEGUN", "CREW_KEY", "PAUSE_S", "SEATRIAL_STORE")}
    ) as cluster:
        yield cluster
