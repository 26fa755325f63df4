"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from seatrial._support.whole_file import whole_file
from seatrial.errors import SeatrialError


def test_what_was_there_stays_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["report"]


def test_nothing_is_left_of_a_file_that_could_not_be_finished(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "report") as file:
        file.write(b"%d" % (1 // 0))
    assert os.listdir(tmp_path) == []


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    with whole_file(path) as file:
        file.write(b"all")
    reader.join(30)
    assert read == [b"all"]
    assert path.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "report"
    link.symlink_to(Path("elsewhere", "real"))
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert os.listdir(tmp_path / "elsewhere") == ["real"]
    assert link.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["missing/report", "."])
def test_where_nothing_can_be_written_that_is_said(name: str, tmp_path: Path) -> None:
    with pytest.raises(SeatrialError) as raised, whole_file(tmp_path / name) as file:
        file.write(b"new")
    assert raised.value.code == "unwritable_file"
