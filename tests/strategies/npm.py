"""Packages from npm for tests: installed into `.cache/` when first needed, with the versions of their lock file."""

from __future__ import annotations

import fcntl
import filecmp
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache"


def installed(source: Path, name: str) -> Path:
    """The directory that has the packages and the files of a folder; the test fails when they cannot be had."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.fail("these tests need node and npm: `apt-get install nodejs npm`")
    home = CACHE / name
    home.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    ready = home / "ready"
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that run side by side install it once
        for file in source.iterdir():
            # Not again: a program that another test process has just started may be reading it.
            if not (home / file.name).exists() or not filecmp.cmp(file, home / file.name, shallow=False):
                shutil.copyfile(file, home / file.name)
        if not ready.exists() or ready.read_text() != wanted:
            command = ["npm", "ci", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.fail(f"npm could not install {name}:\n{done.stderr[-2000:]}")
            ready.write_text(wanted)
    return home
