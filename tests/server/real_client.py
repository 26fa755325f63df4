"""The real AG-UI client: installed from npm into .cache/ when first needed, and driven through `driver.mjs`."""

from __future__ import annotations

import fcntl
import filecmp
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

SOURCE = Path(__file__).parent / "agui_client"
HOME = Path(__file__).parents[2] / ".cache" / "agui-client"


class Held(msgspec.Struct, rename="camel"):
    """What a client holds after its steps."""

    messages: list[dict[str, Any]]
    state: Any
    errors: list[str]
    """Why a step was given up by the client."""
    finished: list[dict[str, Any]]
    """Outcome and pending tool calls of every RUN_FINISHED."""
    run_errors: list[str | None]
    """The code of every RUN_ERROR."""
    pending_interrupts: list[dict[str, Any]]
    warnings: list[str]
    last_event_id: str | None = None


def installed() -> Path:
    """The directory that has the client; the test fails when it cannot be had."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.fail("these tests need node and npm: `apt-get install nodejs npm`")
    HOME.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    ready = HOME / "ready"
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that run side by side install it once
        for name in ("package.json", "package-lock.json", "driver.mjs"):
            # Not again: a client that another test process has just started may be reading it.
            if not (HOME / name).exists() or not filecmp.cmp(SOURCE / name, HOME / name, shallow=False):
                shutil.copyfile(SOURCE / name, HOME / name)
        if not ready.exists() or ready.read_text() != wanted:
            done = subprocess.run(
                ["npm", "ci", "--no-audit", "--no-fund"], cwd=HOME, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                pytest.fail(f"npm could not install @ag-ui/client:\n{done.stderr[-2000:]}")
            ready.write_text(wanted)
    return HOME


def follow(clients: list[dict[str, Any]], timeout_s: float = 900.0) -> list[Held]:
    """What each client holds after its steps; all in one process of Node."""
    done = subprocess.run(
        ["node", "driver.mjs"],
        cwd=installed(),
        input=b"".join([msgspec.json.encode(client) + b"\n" for client in clients]),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [msgspec.json.decode(line, type=Held) for line in done.stdout.splitlines()]
