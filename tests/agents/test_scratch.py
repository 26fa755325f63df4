"""Temporary directories go with their owner, also when the owner is killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from seatrial.agents.cli.scratch import PREFIX, Scratch, remove_leftovers
from seatrial.errors import SeatrialError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_scratch_directory_is_removed_with_all_that_is_in_it(root: Path) -> None:
    async def play() -> None:
        with Scratch() as scratch:
            async with scratch.folder() as folder:
                (folder.path / "deep" / "er").mkdir(parents=True)
                (folder.path / "deep" / "er" / "file").write_text("x")
                assert folder.path.parent == scratch.path
                assert folder.path.stat().st_mode & 0o077 == 0
            assert folder.left is None

    asyncio.run(play())
    assert list(root.iterdir()) == []


def test_each_run_has_an_empty_folder_that_is_gone_afterwards(root: Path) -> None:
    async def play() -> None:
        with Scratch() as scratch:
            async with scratch.folder() as first, scratch.folder() as second:
                assert first.path != second.path
                assert list(first.path.iterdir()) == []
            assert not first.path.exists()

    asyncio.run(play())


def test_a_killed_owner_is_cleaned_up_after_by_the_next(root: Path) -> None:
    script = f"""
import os, sys, tempfile
tempfile.tempdir = {str(root)!r}
from seatrial.errors import SeatrialError
from seatrial.agents.cli.scratch import Scratch
scratch = Scratch()
(scratch.path / "left").write_text("behind")
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
    with Scratch():
        assert not left.exists()


def test_what_is_not_ours_is_left_alone(root: Path) -> None:
    unmarked = root / f"{PREFIX}made-this-moment"
    unmarked.mkdir()
    plain = root / f"{PREFIX}file"
    plain.write_text("x")
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (root / f"{PREFIX}link").symlink_to(elsewhere)
    with Scratch() as scratch:
        shutil.copytree(scratch.path, root / f"{PREFIX}copy")
    with Scratch():
        pass
    assert unmarked.exists()
    assert plain.exists()
    assert (elsewhere / "file").exists()
    assert (root / f"{PREFIX}copy").exists(), "a copy of a scratch directory is not one that we made"


@pytest.mark.parametrize("what", ["folder", "scratch"])
@pytest.mark.parametrize("how", ["removed", "replaced by a link", "replaced by a file", "moved away"])
def test_a_program_that_does_away_with_its_own_directory_leads_us_to_no_other(root: Path, what: str, how: str) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "1").mkdir()
    (elsewhere / "1" / "precious").touch()
    os.chmod(root, 0o1777)
    os.chmod(elsewhere, 0o755)

    async def play() -> None:
        with Scratch() as scratch:
            async with scratch.folder() as folder:
                path = folder.path if what == "folder" else scratch.path
                if how == "moved away":
                    path.rename(root / "taken")
                else:
                    shutil.rmtree(path)
                if how == "replaced by a link":
                    path.symlink_to(elsewhere)
                elif how == "replaced by a file":
                    path.touch()
            async with scratch.folder() as folder:
                (folder.path / "still works").touch()

    asyncio.run(play())
    assert (elsewhere / "1" / "precious").exists()
    assert elsewhere.stat().st_mode & 0o7777 == 0o755
    assert root.stat().st_mode & 0o7777 == 0o1777, "that took a database down once"


def test_what_a_run_left_and_could_not_be_removed_in_time_is_removed_at_the_next_start(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("seatrial.agents.cli.scratch.RUN_LIMIT_S", -1.0)
    monkeypatch.setattr("seatrial.agents.cli.scratch.CLOSE_LIMIT_S", -1.0)

    async def play() -> str | None:
        with Scratch() as scratch:
            async with scratch.folder() as folder:
                (folder.path / "file").touch()
        return folder.left

    left = asyncio.run(play())
    assert left is not None
    assert "took longer" in left
    assert "are left in" in caplog.text
    (kept,) = root.iterdir()
    remove_leftovers(root)
    assert not kept.exists()


def test_no_room_for_scratch_files_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(SeatrialError) as caught:
        Scratch()
    assert caught.value.code == "unwritable_file"
