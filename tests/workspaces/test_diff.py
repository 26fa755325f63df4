from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from seatrial.workspaces import diff as diffs
from seatrial.workspaces import tree
from seatrial.workspaces.tree import LookBounds
from workspaces.folders import EVERYTHING, diff_of, paths

SECRET = "outside of the workspace\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    (made / "src").mkdir(parents=True)
    (made / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (made / "b.txt").write_text("b\n")
    (made / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "outside").write_text(SECRET)
    return made


def test_nothing_changed_is_an_empty_diff_of_which_all_is_known(folder: Path) -> None:
    found = diff_of(folder, lambda: (folder / "b.txt").write_text("b\n"))
    assert (found.files, found.patch, found.unlisted) == ([], "", "")


def test_changed_added_and_deleted_files_are_listed_with_their_lines_and_text(folder: Path) -> None:
    def change() -> None:
        (folder / "src" / "a.py").write_text("one\n2\nthree\nfour\n")
        (folder / "b.txt").unlink()
        (folder / "new").mkdir()
        (folder / "new" / "c.txt").write_text("c")

    found = diff_of(folder, change)
    assert [(file.path, file.change, file.added, file.removed) for file in found.files] == [
        ("b.txt", "deleted", 0, 1),
        ("new/c.txt", "added", 1, 0),
        ("src/a.py", "modified", 2, 1),
    ]
    assert found.patch == (
        "diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"
        "diff --git a/new/c.txt b/new/c.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+c\n"
        "\\ No newline at end of file\n"
        "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n"
        "@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n"
    )
    assert (found.added, found.removed, found.hidden, found.unlisted) == (3, 2, [], "")


def test_git_can_apply_the_patch(folder: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    subprocess.run(["cp", "-r", folder, before], check=True)

    def change() -> None:
        (folder / "src" / "a.py").write_text("zero\none\ntwo\n")
        (folder / "b.txt").unlink()
        (folder / "with space é\n.txt").write_text("c")
        (folder / "run.sh").chmod(0o755)
        (folder / "link").symlink_to("b.txt")
        (folder / "empty").touch()

    patch = diff_of(folder, change).patch
    subprocess.run(["git", "apply", "-"], cwd=before, input=patch.encode(), check=True)
    subprocess.run(["diff", "-r", "--no-dereference", before, folder], check=True)
    assert os.access(before / "run.sh", os.X_OK)


def test_a_file_that_becomes_a_link_a_link_elsewhere_and_a_mode_are_changes(folder: Path) -> None:
    (folder / "link").symlink_to("b.txt")

    def change() -> None:
        (folder / "b.txt").unlink()
        (folder / "b.txt").symlink_to("src/a.py")
        (folder / "link").unlink()
        (folder / "link").symlink_to("../outside")
        (folder / "run.sh").chmod(0o755)

    found = diff_of(folder, change)
    assert paths(found) == {"b.txt": "modified", "link": "modified", "run.sh": "modified"}
    assert "+../outside" in found.patch
    assert "old mode 100644\nnew mode 100755\n" in found.patch


def test_links_that_lead_out_are_named_and_never_followed(folder: Path, tmp_path: Path) -> None:
    def change() -> None:
        (folder / "file").symlink_to(tmp_path / "outside")
        (folder / "up").symlink_to("..")
        (folder / "src" / "a.py").unlink()
        (folder / "src").rmdir()
        (folder / "src").symlink_to(tmp_path)

    found = diff_of(folder, change)
    assert paths(found) == {"file": "added", "up": "added", "src": "added", "src/a.py": "deleted"}
    assert SECRET.strip() not in found.patch


def test_pipes_and_sockets_are_named_and_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        os.mkfifo(folder / "pipe")
        (folder / "b.txt").unlink()
        os.mkfifo(folder / "b.txt")
        monkeypatch.chdir(folder)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")

    found = diff_of(folder, change)
    assert paths(found) == {"b.txt": "modified", "pipe": "added", "socket": "added"}
    assert {file.hidden for file in found.files} == {"no file"}
    assert [file.added for file in found.files] == [None, None, None]


def test_what_lies_in_the_repository_of_the_agent_decides_nothing(folder: Path) -> None:
    def change() -> None:
        (folder / ".git" / "hooks").mkdir(parents=True)
        (folder / ".git" / "config").write_text("[diff]\nexternal = false\n[core]\nfsmonitor = /bin/false\n")
        (folder / ".gitattributes").write_text("* -diff binary filter=x\n")
        (folder / ".gitignore").write_text("*\n")
        (folder / "src" / "a.py").write_text("changed\n")
        (folder / "sub" / ".git").mkdir(parents=True)
        (folder / "sub" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "sub" / "hidden.py").write_text("hidden\n")

    found = diff_of(folder, change)
    assert list(paths(found)) == [".gitattributes", ".gitignore", "src/a.py", "sub/.git/HEAD", "sub/hidden.py"]
    assert "+changed" in found.patch
    assert found.hidden == []


def test_a_file_of_the_same_size_and_time_is_a_change(folder: Path) -> None:
    before = (folder / "b.txt").stat()

    def change() -> None:
        (folder / "b.txt").write_text("c\n")
        os.utime(folder / "b.txt", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert paths(diff_of(folder, change)) == {"b.txt": "modified"}


def test_a_binary_file_and_a_long_one_are_named_without_text_and_their_lines_are_unknown(folder: Path) -> None:
    def change() -> None:
        (folder / "b.txt").write_bytes(b"\0\n")
        (folder / "latin.txt").write_bytes("é".encode("latin-1"))
        (folder / "long.txt").write_bytes(b"x\n" * tree.MAX_TEXT)

    found = diff_of(folder, change)
    assert {file.path: file.hidden for file in found.files} == {
        "b.txt": "binary",
        "latin.txt": "binary",
        "long.txt": "too large",
    }
    assert {file.added for file in found.files} == {None}
    assert found.patch == ""


def test_a_text_that_looks_like_a_patch_is_text(folder: Path) -> None:
    text = "diff --git a/b/0 b/b/1\n@@ -1 +1 @@\n+++ b/x\n--- a/x\n"
    found = diff_of(folder, lambda: (folder / "b.txt").write_text(text))
    assert [(file.path, file.added, file.removed) for file in found.files] == [("b.txt", 4, 1)]
    assert "+diff --git a/b/0 b/b/1\n" in found.patch


def test_names_that_are_no_text_are_shown_and_begin_no_line_of_the_patch(folder: Path) -> None:
    def change() -> None:
        (folder / os.fsdecode(b"\xff.txt")).write_text("x\n")
        (folder / "a\n+b").write_text("y\n")

    found = diff_of(folder, change)
    assert list(paths(found)) == ["a\n+b", "\\xff.txt"]
    assert '+++ "b/a\\n+b"' in found.patch
    assert found.patch.isprintable() is False  # line breaks
    found.patch.encode()


def test_ignored_paths_are_left_out(folder: Path) -> None:
    def change() -> None:
        (folder / "src" / "__pycache__").mkdir()
        (folder / "src" / "__pycache__" / "a.pyc").write_bytes(b"\0")
        (folder / "c.txt").write_text("c\n")

    assert paths(diff_of(folder, change, ignore=("**/__pycache__",))) == {"c.txt": "added"}


def test_a_patch_that_is_full_names_the_other_files_and_counts_their_lines(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffs, "MAX_PATCH", 200)

    def change() -> None:
        (folder / "b.txt").write_text("c\n")
        (folder / "src" / "a.py").write_text("x\n" * 500)

    found = diff_of(folder, change)
    assert [(file.path, file.added, file.hidden) for file in found.files] == [
        ("b.txt", 1, None),
        ("src/a.py", 500, "cut"),
    ]
    assert len(found.patch.encode()) <= 200


def test_texts_beyond_what_is_compared_are_said_not_to_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "MAX_COMPARED", 10)
    found = diff_of(folder, lambda: (folder / "b.txt").write_text("x" * 50))
    assert [(file.hidden, file.added) for file in found.files] == [("not compared", None)]


def test_files_beyond_those_that_are_listed_leave_the_list_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "MAX_LISTED", 2)

    def change() -> None:
        for number in range(3):
            (folder / f"new-{number}").touch()

    found = diff_of(folder, change)
    assert len(found.files) == 2
    assert found.unlisted == "2 of 3 changed files are listed"


def test_a_huge_tree_leaves_the_list_open_and_nothing_counts_as_deleted(folder: Path) -> None:
    def change() -> None:
        for number in range(50):
            (folder / f"new-{number}").touch()

    found = diff_of(folder, change, bounds=EVERYTHING._replace(files=20))
    assert "more than 20 files" in found.unlisted
    assert "deleted" not in paths(found).values()


def test_a_tree_that_is_too_deep_leaves_the_list_open(folder: Path) -> None:
    def change() -> None:
        deep = folder
        for _ in range(tree.MAX_DEPTH + 5):
            deep = deep / "d"
            deep.mkdir()
        (deep / "hidden").touch()

    assert "folders deep" in diff_of(folder, change).unlisted


def test_files_that_are_too_large_to_be_read_are_changed_where_their_size_says_so_and_else_unknown(
    folder: Path,
) -> None:
    with (folder / "large").open("wb") as large:
        large.truncate(3 * tree.MAX_TEXT)

    def change() -> None:
        with (folder / "sparse").open("wb") as sparse:
            sparse.truncate(1 << 40)

    found = diff_of(folder, change, bounds=EVERYTHING._replace(size=2 * tree.MAX_TEXT))
    assert [(file.path, file.change, file.hidden) for file in found.files] == [("sparse", "added", "too large")]
    assert "are larger than" in found.unlisted


def test_looking_ends_in_time_and_says_so(folder: Path) -> None:
    found = diff_of(folder, lambda: None, bounds=LookBounds(10_000, 1 << 30, time.monotonic() - 1))
    assert "too long" in found.unlisted
    assert found.files == []


def test_what_cannot_be_read_is_changed_or_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").mkdir()
    (folder / "locked" / "x").touch()
    opened = os.open

    def refusing(path: object, *arguments: object, **named: object) -> int:
        if path in ("locked", "b.txt"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **named)  # type: ignore[arg-type]

    found = diff_of(folder, lambda: monkeypatch.setattr(os, "open", refusing))
    assert [(file.path, file.change, file.hidden) for file in found.files] == [("b.txt", "modified", "unreadable")]
    assert found.unlisted == "the folder locked cannot be read: Permission denied"


def test_texts_that_git_cannot_compare_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        (folder / "b.txt").write_text("c\n")
        monkeypatch.setenv("PATH", "/nowhere")

    found = diff_of(folder, change)
    assert [(file.path, file.hidden) for file in found.files] == [("b.txt", "not compared")]


def test_the_environment_does_not_decide_what_git_does(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    external = tmp_path / "external"
    external.write_text(f"#!/bin/sh\ntouch {ran}\n")
    external.chmod(0o755)
    (tmp_path / "gitconfig").write_text(f"[diff]\nexternal = {external}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(external))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    found = diff_of(folder, lambda: (folder / "b.txt").write_text("c\n"))
    assert "+c" in found.patch
    assert not ran.exists()
