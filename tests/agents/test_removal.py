"""What a program left is removed, whatever it left, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.agents.cli import removal

NOBODY = 65534


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_directory_is_removed_with_all_that_is_in_it(tmp_path: Path, parent: int) -> None:
    for path in ("tree/a/b/c", "tree/a/d", "tree/e"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "file").touch()
        os.mkfifo(tmp_path / path / "pipe")
    assert removal.remove(parent, "tree", limit_s=30) is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_or_nothing_at_all_is_no_trouble(tmp_path: Path, parent: int) -> None:
    (tmp_path / "file").touch()
    assert removal.remove(parent, "file", limit_s=30) is None
    assert removal.remove(parent, "never was", limit_s=30) is None
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path, parent: int) -> None:
    (tmp_path / "outside").mkdir(mode=0o755)
    (tmp_path / "outside" / "precious").touch()
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    for link in ("tree/link", "tree/deep/link", "linked"):
        (tmp_path / link).symlink_to(tmp_path / "outside")
    assert removal.remove(parent, "tree", limit_s=30) is None
    assert removal.remove(parent, "linked", limit_s=30) is None
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (tmp_path / "outside" / "precious").exists()
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o755


def test_a_chain_of_directories_longer_than_any_path_is_removed_with_few_descriptors(
    tmp_path: Path, parent: int
) -> None:
    script = (
        "import os\nos.mkdir('tree'); os.chdir('tree')\n"
        "for _ in range(2000):\n os.mkdir('d' * 20); os.chdir('d' * 20)\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", script], cwd=tmp_path, check=True)
    before = len(os.listdir("/dev/fd"))
    assert removal.remove(parent, "tree", limit_s=120) is None
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/dev/fd")) == before


def test_removal_ends_at_its_limit_and_can_be_taken_up_again(tmp_path: Path, parent: int) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(3000):
        (tmp_path / "tree" / str(number)).touch()
    left = removal.remove(parent, "tree", limit_s=0)
    assert left == "removing them took longer than 0 s"
    (kept,) = tmp_path.iterdir()
    assert removal.remove(parent, kept.name, limit_s=120) is None
    assert list(tmp_path.iterdir()) == []


# Root may remove everything, so somebody else does it, from a directory that is reached before.
AS_NOBODY = f"""
import os, sys
from seatrial.agents.cli import removal
os.chdir(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
parent = os.open(".", os.O_RDONLY)
"""
FORBIDDING = """
for path in ("tree/unreadable/deep", "tree/unwritable/deep", "tree/nothing/deep"):
    os.makedirs(path)
    open(path + "/file", "w").close()
os.chmod("tree/unreadable", 0o300)
os.chmod("tree/unwritable/deep", 0o500)
os.chmod("tree/unwritable", 0o500)
os.chmod("tree/nothing/deep", 0)
os.chmod("tree/nothing", 0)
os.chmod("tree", 0o500)
print(removal.remove(parent, "tree", limit_s=60), os.listdir("."))
"""


def test_directories_that_forbid_reading_and_writing_are_removed(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY + FORBIDDING, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "None []\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave what another user cannot remove")
def test_what_belongs_to_another_user_stays_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "tree" / "locked").mkdir(parents=True)
    (tmp_path / "tree" / "locked" / "file").touch()
    (tmp_path / "tree" / "mine").touch()
    for path in (tmp_path, tmp_path / "tree"):
        os.chown(path, NOBODY, NOBODY)
    script = AS_NOBODY + "print(removal.remove(parent, 'tree', limit_s=60))"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout == "'file': Permission denied\n", done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["file"]
