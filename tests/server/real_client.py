"""The real AG-UI client: installed from npm into .cache/ when first needed, and driven through `driver.mjs`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
from strategies.npm import installed

SOURCE = Path(__file__).parent / "agui_client"


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


def follow(clients: list[dict[str, Any]], timeout_s: float = 900.0) -> list[Held]:
    """What each client holds after its steps; all in one process of Node."""
    done = subprocess.run(
        ["node", "driver.mjs"],
        cwd=installed(SOURCE, "agui-client"),
        input=b"".join([msgspec.json.encode(client) + b"\n" for client in clients]),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [msgspec.json.decode(line, type=Held) for line in done.stdout.splitlines()]
