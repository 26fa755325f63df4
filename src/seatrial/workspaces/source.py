"""What workspaces are copied from: a folder, an archive, or a commit of a git repository."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from lzma import LZMAError
from pathlib import Path
from typing import IO, NamedTuple

from seatrial.errors import SeatrialError
from seatrial.runs.workspace import WorkspaceSource
from seatrial.workspaces.git import check_git, git
from seatrial.workspaces.tree import REPOSITORY, shown

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_ARCHIVES = (*_TAR, ".zip")
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, NotImplementedError, RuntimeError)
"""What the readers of archives raise. Of an encrypted one, it is the last."""


class _Member(NamedTuple):
    """A file or a link of a source."""

    path: str
    size: int
    executable: bool
    open: Callable[[], IO[bytes]]
    link: str | None = None
    """The target, where it is a link."""


def check_source(source: WorkspaceSource, directory: Path) -> None:
    """Raise `SeatrialError` when no workspace can be made of this, as far as that is known without making one."""
    check_git()
    try:
        if source.revision is not None:
            _check_tree(source, *_tree(source, directory))
        else:
            for _ in _bounded(source, directory / source.source):
                pass
    except OSError as error:
        raise _failed(source, error.strerror or str(error)) from None


def copy_source(source: WorkspaceSource, directory: Path, target: Path) -> None:
    """Fill an empty folder. Raises `SeatrialError` with what is wrong with the source, or `OSError`. Blocks."""
    if source.revision is not None:
        _check_out(source, directory, target)
    else:
        links = [member for member in _bounded(source, directory / source.source) if _written(member, target)]
        # Last, so that no file of an archive is written through one.
        for link in links:
            (target / link.path).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(link.link or "", target / link.path)
    _check_links(source, target)


def _bounded(source: WorkspaceSource, path: Path) -> Iterator[_Member]:
    """The members of a folder or an archive, up to as many as a workspace may have."""
    size = 0
    try:
        for number, member in enumerate(_members(source, path), 1):
            size += member.size
            if number > source.max_files:
                told = f"it has more than {source.max_files:,} files"
                raise _failed(source, told, "copy less, or raise `max_files`")
            if size > source.max_bytes:
                told = f"its files up to {shown(member.path)} have more than {source.max_bytes:,} bytes"
                raise _failed(source, told, "copy less, or raise `max_bytes`")
            yield member
    except _BROKEN as error:
        raise _failed(source, f"it cannot be unpacked: {error}") from None


def _members(source: WorkspaceSource, path: Path) -> Iterator[_Member]:
    if path.is_dir():
        yield from _of_folder(source, path, "")
    elif not path.exists():
        raise _failed(source, "there is no such file or folder")
    elif path.name.endswith(_TAR):
        with tarfile.open(path) as tar:
            yield from _of_tar(source, tar)
    elif path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            yield from _of_zip(source, archive)
    else:
        raise _failed(source, f"it is neither a folder nor an archive ({', '.join(_ARCHIVES)})")


def _of_folder(source: WorkspaceSource, folder: Path, prefix: str) -> Iterator[_Member]:
    for name in sorted(os.listdir(folder)):
        path, full = prefix + name, folder / name
        if path == REPOSITORY:
            continue
        status = full.lstat()
        executable = bool(status.st_mode & 0o111)
        if stat.S_ISDIR(status.st_mode):
            yield from _of_folder(source, full, f"{path}/")
        elif stat.S_ISLNK(status.st_mode):
            yield _Member(path, 0, executable, _nothing, os.readlink(full))
        elif stat.S_ISREG(status.st_mode):
            yield _Member(path, status.st_size, executable, partial(_file, full))
        else:
            raise _failed(source, f"{shown(path)} is neither a file nor a folder nor a link")


def _of_tar(source: WorkspaceSource, tar: tarfile.TarFile) -> Iterator[_Member]:
    for member in tar:
        path = _inside(source, member.name)
        if path is None or member.isdir():
            continue
        executable = bool(member.mode & 0o111)
        if member.issym():
            yield _Member(path, 0, executable, _nothing, member.linkname)
        elif member.isreg() or member.islnk():
            # A hard link is another name of a file that came before.
            size = member.size if member.isreg() else tar.getmember(member.linkname).size
            yield _Member(path, size, executable, partial(_opened, tar, member))
        else:
            raise _failed(source, f"{shown(path)} is neither a file nor a folder nor a link")


def _of_zip(source: WorkspaceSource, archive: zipfile.ZipFile) -> Iterator[_Member]:
    for member in archive.infolist():
        path = _inside(source, member.filename)
        if path is None or member.is_dir():
            continue
        mode = member.external_attr >> 16
        if stat.S_ISLNK(mode):
            target = archive.read(member).decode("utf-8", "surrogateescape") if member.file_size < 4096 else ""
            yield _Member(path, 0, False, _nothing, target)
        else:
            yield _Member(path, member.file_size, bool(mode & 0o111), partial(archive.open, member))


def _inside(source: WorkspaceSource, name: str) -> str | None:
    """The path of a member, None for one of the repository at the top; raises `SeatrialError` for one outside."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise _failed(source, f"{shown(name)} leads out of the workspace")
    return "/".join(parts) if parts and parts[0] != REPOSITORY else None


def _file(path: Path) -> IO[bytes]:
    return path.open("rb")


def _opened(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = tar.extractfile(member)
    if found is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    return found


def _nothing() -> IO[bytes]:
    raise RuntimeError("a link has no content")


def _written(member: _Member, target: Path) -> bool:
    """Write a file; gives whether the member is a link, which is not written yet."""
    if member.link is not None:
        return True
    path = target / member.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with member.open() as content, path.open("wb") as file:
        shutil.copyfileobj(content, file)
    path.chmod(0o755 if member.executable else 0o644)
    return False


def _check_links(source: WorkspaceSource, target: Path) -> None:
    """Raise `SeatrialError` when a link leads out of a workspace: through it, an agent would change what it is a copy
    of."""
    top = os.path.realpath(target)
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if os.path.islink(path) and not f"{os.path.realpath(path)}/".startswith(f"{top}/"):
                told = f"the link {shown(os.path.relpath(path, target))} leads out of the workspace"
                raise _failed(source, told)


def _tree(source: WorkspaceSource, directory: Path) -> tuple[str, str]:
    """The git directory of a source with a revision, and the tree of the commit: that of the folder that it names."""
    path = directory / source.source
    if not path.is_dir():
        raise _failed(source, "there is no such folder")
    try:
        git_dir = git("rev-parse", "--absolute-git-dir", cwd=path).decode().strip()
        prefix = git("rev-parse", "--show-prefix", cwd=path).decode().strip() if not _is_bare(path) else ""
        commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{source.revision}^{{commit}}", cwd=path)
        tree = git("rev-parse", "--verify", f"{commit.decode().strip()}:{prefix}", cwd=path).decode().strip()
    except SeatrialError as error:
        raise _failed(
            source, f"there is no revision {source.revision!r} in a git repository: {error.message}"
        ) from None
    return git_dir, tree


def _is_bare(path: Path) -> bool:
    return git("rev-parse", "--is-inside-work-tree", cwd=path).strip() != b"true"


def _check_tree(source: WorkspaceSource, git_dir: str, tree: str) -> None:
    listed = git("--git-dir", git_dir, "ls-tree", "-r", "-l", "-z", "--full-tree", tree, cwd=Path(git_dir))
    lines = [line.split(b"\t")[0].split() for line in listed.split(b"\0") if line]
    if len(lines) > source.max_files:
        raise _failed(source, f"it has more than {source.max_files:,} files", "raise `max_files`")
    if sum([int(fields[3]) for fields in lines if fields[3].isdigit()]) > source.max_bytes:
        raise _failed(source, f"its files have more than {source.max_bytes:,} bytes", "raise `max_bytes`")


def _check_out(source: WorkspaceSource, directory: Path, target: Path) -> None:
    git_dir, tree = _tree(source, directory)
    _check_tree(source, git_dir, tree)
    index = target.parent / "index"
    variables = {"GIT_INDEX_FILE": str(index)}
    git("--git-dir", git_dir, "read-tree", tree, cwd=target, variables=variables)
    whole = ("--git-dir", git_dir, "--work-tree", str(target))
    git("-c", "core.autocrlf=false", *whole, "checkout-index", "--all", cwd=target, variables=variables)
    index.unlink()


def _failed(source: WorkspaceSource, why: str, hint: str | None = None) -> SeatrialError:
    return SeatrialError("workspace_failed", f"the workspace `{source.source}` cannot be copied: {why}", hint=hint)
