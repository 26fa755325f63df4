"""Databases of a real PostgreSQL, and disks that are soon full."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

_names = itertools.count()


@contextmanager
def database(server: str) -> Iterator[str]:
    """URL of a new database."""
    name = f"database_{next(_names)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def mounted_disk(disk: Path, megabytes: int, *, owner: int = 0) -> Iterator[Path]:
    """A file system of so many megabytes, in memory."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,uid={owner}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


@contextmanager
def small_database(server: str, megabytes: int) -> Iterator[tuple[str, Path]]:
    """URL of a new database that may become so large, and the disk that it is on. Its log is elsewhere."""
    name = f"small_{next(_names)}"
    # The server may run as another user, who may not look into the directories of tests.
    folder = Path(tempfile.mkdtemp(prefix="seatrial-disk-"))
    folder.chmod(0o755)
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            data = connection.execute("SHOW data_directory").fetchone()
            assert data is not None
            with mounted_disk(folder / "disk", megabytes, owner=Path(data[0]).stat().st_uid) as disk:
                connection.execute(f"CREATE TABLESPACE {name} LOCATION '{disk}'")
                connection.execute(f"CREATE DATABASE {name} TABLESPACE {name}")
                try:
                    yield server.replace("/postgres?", f"/{name}?"), disk
                finally:
                    connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
                    connection.execute(f"DROP TABLESPACE {name}")
    finally:
        shutil.rmtree(folder)
