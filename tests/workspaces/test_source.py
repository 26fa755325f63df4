from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from seatrial.errors import SeatrialError
from seatrial.runs import WorkspaceSource
from seatrial.workspaces.source import check_source, copy_source

WHO = {f"GIT_{role}_{key}": "somebody" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    made = tmp_path / "run" / "workspace"
    made.mkdir(parents=True)
    return made


def a_folder(path: Path) -> Path:
    (path / "src").mkdir(parents=True)
    (path / "src" / "main.py").write_text("print('hello')\n")
    (path / "run.sh").write_text("#!/bin/sh\n")
    (path / "run.sh").chmod(0o755)
    (path / "link").symlink_to("src/main.py")
    (path / ".git").mkdir()
    (path / ".git" / "config").write_text("[core]\n")
    return path


def refusal(source: WorkspaceSource, directory: Path, target: Path) -> str:
    with pytest.raises(SeatrialError) as refused:
        copy_source(source, directory, target)
    assert refused.value.code == "workspace_failed"
    return refused.value.message


def git(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, env={**os.environ, **WHO}, check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_a_folder_is_copied_with_its_links_and_without_its_repository(tmp_path: Path, target: Path) -> None:
    a_folder(tmp_path / "project")
    source = WorkspaceSource(source="project")
    check_source(source, tmp_path)
    copy_source(source, tmp_path, target)
    assert sorted(path.name for path in target.iterdir()) == ["link", "run.sh", "src"]
    assert (target / "link").is_symlink()
    assert (target / "link").read_text() == "print('hello')\n"
    assert os.access(target / "run.sh", os.X_OK)
    (target / "src" / "main.py").write_text("changed")
    assert (tmp_path / "project" / "src" / "main.py").read_text() == "print('hello')\n"


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"])
def test_a_tar_archive_is_unpacked(tmp_path: Path, target: Path, suffix: str) -> None:
    a_folder(tmp_path / "project")
    mode = {".tar": "w", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}.get(suffix, "w:gz")
    with tarfile.open(tmp_path / f"p{suffix}", mode) as tar:  # type: ignore[call-overload]
        tar.add(tmp_path / "project", arcname=".")
    source = WorkspaceSource(source=f"p{suffix}")
    check_source(source, tmp_path)
    copy_source(source, tmp_path, target)
    assert sorted(path.name for path in target.iterdir()) == ["link", "run.sh", "src"]
    assert (target / "link").is_symlink()
    assert os.access(target / "run.sh", os.X_OK)


def test_a_zip_archive_is_unpacked(tmp_path: Path, target: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("src/main.py", "print(1)")
        info = zipfile.ZipInfo("run.sh")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, "#!/bin/sh")
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "src/main.py")
    copy_source(WorkspaceSource(source="p.zip"), tmp_path, target)
    assert (target / "link").read_text() == "print(1)"
    assert os.access(target / "run.sh", os.X_OK)


def test_a_commit_of_a_repository_is_checked_out_whole_and_without_what_came_later(
    tmp_path: Path, target: Path
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git("init", "-q", "-b", "main", cwd=repository)
    (repository / "a.txt").write_text("one\n")
    (repository / "kept.txt").write_text("kept\n")
    # Left out of archives that git makes; it is there all the same.
    (repository / ".gitattributes").write_text("kept.txt export-ignore\n")
    git("add", "-A", cwd=repository)
    git("commit", "-qm", "first", cwd=repository)
    git("tag", "v1", cwd=repository)
    (repository / "a.txt").write_text("two\n")
    git("commit", "-qam", "second", cwd=repository)
    source = WorkspaceSource(source="repository", revision="v1")
    check_source(source, tmp_path)
    copy_source(source, tmp_path, target)
    assert sorted(path.name for path in target.iterdir()) == [".gitattributes", "a.txt", "kept.txt"]
    assert (target / "a.txt").read_text() == "one\n"
    assert git("status", "--porcelain", cwd=repository) == ""


def test_a_folder_of_a_repository_is_that_folder_alone(tmp_path: Path, target: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "inner").mkdir(parents=True)
    git("init", "-q", cwd=repository)
    (repository / "inner" / "a.txt").write_text("inner\n")
    (repository / "b.txt").write_text("outer\n")
    git("add", "-A", cwd=repository)
    git("commit", "-qm", "first", cwd=repository)
    copy_source(WorkspaceSource(source="repository/inner", revision="HEAD"), tmp_path, target)
    assert [path.name for path in target.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (WorkspaceSource(source="nowhere"), "no such file or folder"),
        (WorkspaceSource(source="nowhere", revision="main"), "no such folder"),
        (WorkspaceSource(source="file.txt"), "neither a folder nor an archive"),
        (WorkspaceSource(source="folder", revision="main"), "no revision 'main'"),
        (WorkspaceSource(source="broken.tar.gz"), "cannot be unpacked"),
        (WorkspaceSource(source="broken.zip"), "cannot be unpacked"),
        (WorkspaceSource(source="folder", max_files=1), "more than 1 files"),
        (WorkspaceSource(source="folder", max_bytes=1024), "more than 1,024 bytes"),
    ],
)
def test_what_cannot_be_copied_is_refused_before_and_when_it_is_copied(
    tmp_path: Path, target: Path, source: WorkspaceSource, told: str
) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    for name in ("a", "b"):
        (tmp_path / "folder" / name).write_bytes(b"x" * 600)
    for name in ("broken.tar.gz", "broken.zip"):
        (tmp_path / name).write_bytes(b"not an archive")
    assert told in refusal(source, tmp_path, target)
    with pytest.raises(SeatrialError, match=told):
        check_source(source, tmp_path)


def test_a_revision_that_is_an_option_of_git_is_a_revision(tmp_path: Path, target: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    told = refusal(WorkspaceSource(source=".", revision="--output=made"), tmp_path, target)
    assert "no revision" in told
    assert not (tmp_path / "made").exists()


def test_a_commit_with_too_much_in_it_is_refused(tmp_path: Path, target: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    (tmp_path / "a").write_bytes(b"x" * 2000)
    git("add", "a", cwd=tmp_path)
    git("commit", "-qm", "first", cwd=tmp_path)
    assert "1,024 bytes" in refusal(WorkspaceSource(source=".", revision="HEAD", max_bytes=1024), tmp_path, target)


@pytest.mark.parametrize("leads", ["/etc/hostname", "../../outside", "inner/../../outside", "."])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: Path, leads: str) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "link").symlink_to(leads)
    source = WorkspaceSource(source="folder")
    if leads == ".":
        copy_source(source, tmp_path, target)
    else:
        assert "leads out of the workspace" in refusal(source, tmp_path, target)


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(tmp_path: Path, target: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "pipe")
    assert "neither a file" in refusal(WorkspaceSource(source="folder"), tmp_path, target)


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_no_archive_writes_outside_of_the_workspace(tmp_path: Path, target: Path, name: str, kind: str) -> None:
    if kind == "tar":
        with tarfile.open(tmp_path / "p.tar", "w") as tar:
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    else:
        with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
            archive.writestr(name, "x")
    assert "leads out" in refusal(WorkspaceSource(source=f"p.{kind}"), tmp_path, target)
    assert not (tmp_path / "run" / "outside").exists()


def test_no_file_of_an_archive_is_written_through_a_link_of_it(tmp_path: Path, target: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with tarfile.open(tmp_path / "p.tar", "w") as tar:
        link = tarfile.TarInfo("d")
        link.type = tarfile.SYMTYPE
        link.linkname = str(outside)
        tar.addfile(link)
        member = tarfile.TarInfo("d/x")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises((SeatrialError, OSError)):
        copy_source(WorkspaceSource(source="p.tar"), tmp_path, target)
    assert list(outside.iterdir()) == []


def test_an_archive_that_grows_when_it_is_unpacked_stops_at_the_limit(tmp_path: Path, target: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(str(number), b"\0" * 10_000_000)
    told = refusal(WorkspaceSource(source="bomb.zip", max_bytes=1_000_000), tmp_path, target)
    assert "1,000,000 bytes" in told
    assert list(target.iterdir()) == []
