"""What changed between two snapshots of a folder: which files, and the text of it.

Which files changed is found here. git only compares texts, in a folder of ours where they have numbers for names: what
an agent writes into `.git` or `.gitattributes` decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.errors import SeatrialError
from seatrial.runs.workspace import Change, ChangedFile, Hidden, WorkspaceDiff
from seatrial.workspaces.git import git
from seatrial.workspaces.tree import MAX_TEXT, Entry, FolderSnapshot, shown

MAX_LISTED = 1000
"""Changed files that are named."""
MAX_PATCH = 512 * 1024
"""Bytes of a patch: files that do not fit any more are named without their text."""
MAX_COMPARED = 32 * 1024 * 1024
"""Bytes of all texts that are compared."""

_SECTION = re.compile(rb"^diff --git .*/([0-9]+)$", re.MULTILINE)
_HUNK = re.compile(rb"^@@ ", re.MULTILINE)
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\"\\]+")


class _Changed(NamedTuple):
    """A path, and what was and is there."""

    path: str
    change: Change
    was: Entry | None
    now: Entry | None

    @property
    def only_mode(self) -> bool:
        """Whether the content is the same."""
        was, now = self.was, self.now
        return was is not None and now is not None and was.kind == now.kind and was.digest == now.digest is not None


def difference(before: FolderSnapshot, after: FolderSnapshot, scratch: Path) -> WorkspaceDiff:
    """What changed. `scratch` is an empty folder to work in. Blocks; raises `OSError` when there is no room."""
    changed = sorted(_changed(before, after), key=lambda one: one.path)
    unlisted = after.problem
    if len(changed) > MAX_LISTED:
        unlisted = unlisted or f"{MAX_LISTED:,} of {len(changed):,} changed files are listed"
        del changed[MAX_LISTED:]
    hidden, differing = _stage(changed, before, after, scratch)
    hunks = _compared(scratch) if differing else {}
    # What git says nothing of was not compared, whatever the reason.
    hidden |= dict.fromkeys(differing - hunks.keys(), "not compared")
    diff = WorkspaceDiff(unlisted=unlisted)
    sections: list[str] = []
    left = MAX_PATCH
    for number, one in enumerate(changed):
        file = ChangedFile(path=shown(one.path), change=one.change, hidden=hidden.get(number))
        if file.hidden is None:
            hunk = hunks.get(number, b"")
            file.added, file.removed = _count(hunk, b"+"), _count(hunk, b"-")
            section = _head(one, bool(hunk)) + hunk.decode()
            left -= len(section.encode())
            if left < 0:
                file.hidden = "cut"
            else:
                sections.append(section)
        diff.files.append(file)
    diff.patch = "".join(sections)
    return diff


def _changed(before: FolderSnapshot, after: FolderSnapshot) -> Iterator[_Changed]:
    for path, now in after.entries.items():
        was = before.entries.get(path)
        if was is None:
            yield _Changed(path, "added", None, now)
        elif _differs(was, now):
            yield _Changed(path, "modified", was, now)
    if after.problem:
        return  # what was not met may be there all the same
    for path, was in before.entries.items():
        if path not in after.entries:
            yield _Changed(path, "deleted", was, None)


def _differs(was: Entry, now: Entry) -> bool:
    if (was.kind, was.executable, was.size) != (now.kind, now.executable, now.size) or now.unreadable:
        return True
    # Where it was not read, the snapshot says that it may have changed.
    return now.digest is not None and was.digest != now.digest


def _stage(
    changed: list[_Changed], before: FolderSnapshot, after: FolderSnapshot, scratch: Path
) -> tuple[dict[int, Hidden], set[int]]:
    """Write the texts to be compared to the folders `a` and `b`; gives why others are not, and which of them differ."""
    hidden: dict[int, Hidden] = {}
    differing: set[int] = set()
    left = MAX_COMPARED
    for side in ("a", "b"):
        (scratch / side).mkdir()
    for number, one in enumerate(changed):
        if one.only_mode:
            continue
        texts: dict[str, bytes] = {}
        for side, snapshot, entry in (("a", before, one.was), ("b", after, one.now)):
            if entry is not None:
                text = snapshot.text(one.path)
                if text is None:
                    hidden[number] = _why_hidden(entry)
                    break
                texts[side] = text
        else:
            left -= sum([len(text) for text in texts.values()])
            if left < 0:
                hidden[number] = "not compared"
                continue
            if texts.get("a", b"") != texts.get("b", b""):
                differing.add(number)
            for side, text in texts.items():
                (scratch / side / str(number)).write_bytes(text)
    return hidden, differing


def _why_hidden(entry: Entry) -> Hidden:
    if entry.kind == "other":
        return "no file"
    if entry.unreadable:
        return "unreadable"
    if entry.size > MAX_TEXT:
        return "too large"
    return "not compared" if entry.digest is None or entry.place is not None else "binary"


def _compared(scratch: Path) -> dict[int, bytes]:
    """The hunks by the number of the file; none when the texts could not be compared."""
    options = ("--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--text", "--unified=3")
    try:
        # The folders around it may belong to a repository.
        variables = {"GIT_CEILING_DIRECTORIES": str(scratch.parent)}
        printed = git("diff", *options, "a", "b", cwd=scratch, variables=variables, codes=(0, 1))
    except SeatrialError:
        return {}
    found: dict[int, bytes] = {}
    heads = list(_SECTION.finditer(printed))
    ends = [*[head.start() for head in heads[1:]], len(printed)]
    for head, end in zip(heads, ends, strict=False):
        section = printed[head.end() : end]
        begin = _HUNK.search(section)
        if begin is not None:
            found[int(head[1])] = section[begin.start() :]
    return found


def _count(hunk: bytes, sign: bytes) -> int:
    return sum([line.startswith(sign) for line in hunk.split(b"\n")])


def _head(one: _Changed, has_text: bool) -> str:
    """What stands above the hunks of a file in a patch."""
    path = shown(one.path)
    old, new = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    lines = [f"diff --git {old} {new}"]
    if one.was is None and one.now is not None:
        lines.append(f"new file mode {_mode(one.now)}")
    elif one.now is None and one.was is not None:
        lines.append(f"deleted file mode {_mode(one.was)}")
    elif one.was is not None and one.now is not None and _mode(one.was) != _mode(one.now):
        lines += [f"old mode {_mode(one.was)}", f"new mode {_mode(one.now)}"]
    if has_text:
        lines += [f"--- {'/dev/null' if one.was is None else old}", f"+++ {'/dev/null' if one.now is None else new}"]
    return "".join([f"{line}\n" for line in lines])


def _mode(entry: Entry) -> str:
    if entry.kind == "link":
        return "120000"
    return "100755" if entry.executable else "100644"


def _quoted(path: str) -> str:
    # As git does, so that a line break in a name begins no line of the patch.
    return path if _PLAIN.fullmatch(path) else msgspec.json.encode(path).decode()
