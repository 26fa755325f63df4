"""Temporary directories go with their owner, also when the owner is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from seatrial.agents.workspace import PREFIX, Workspace, remove, remove_leftovers
from seatrial.errors import SeatrialError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_workspace_is_removed_with_all_that_is_in_it(root: Path) -> None:
    async def play() -> None:
        with Workspace() as workspace:
            async with workspace.folder() as folder:
                (folder / "deep" / "er").mkdir(parents=True)
                (folder / "deep" / "er" / "file").write_text("x")
                assert folder.parent == workspace.path
                assert folder.stat().st_mode & 0o077 == 0

    asyncio.run(play())
    assert list(root.iterdir()) == []


def test_each_run_has_an_empty_folder_that_is_gone_afterwards(root: Path) -> None:
    async def play() -> None:
        with Workspace() as workspace:
            async with workspace.folder() as first, workspace.folder() as second:
                assert first != second
                assert list(first.iterdir()) == []
            assert not first.exists()

    asyncio.run(play())


def test_a_killed_owner_is_cleaned_up_after_by_the_next(root: Path) -> None:
    script = f"""
import os, sys, tempfile
tempfile.tempdir = {str(root)!r}
from seatrial.errors import SeatrialError
from seatrial.agents.workspace import Workspace
workspace = Workspace()
(workspace.path / "left").write_text("behind")
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        (left,) = root.glob(f"{PREFIX}*")
        remove_leftovers(root)
        assert left.exists(), "its owner lives"
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    assert left.exists()
    with Workspace():
        assert not left.exists()


def test_what_is_not_ours_is_left_alone(root: Path) -> None:
    unlocked = root / f"{PREFIX}made-this-moment"
    unlocked.mkdir()
    plain = root / f"{PREFIX}file"
    plain.write_text("x")
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (root / f"{PREFIX}link").symlink_to(elsewhere)
    with Workspace():
        pass
    assert unlocked.exists()
    assert plain.exists()
    assert (elsewhere / "lock").exists()


def test_a_directory_that_forbids_removal_is_removed(tmp_path: Path) -> None:
    stubborn = tmp_path / "stubborn"
    (stubborn / "inner").mkdir(parents=True)
    (stubborn / "inner" / "file").touch()
    os.chmod(stubborn / "inner", 0o500)
    remove(stubborn)
    assert not stubborn.exists()


def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path / "never was")


def test_no_room_for_a_workspace_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(SeatrialError) as caught:
        Workspace()
    assert caught.value.code == "unwritable_file"
