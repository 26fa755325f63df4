"""The folder that an agent works in: what a case says of it, and what the agent changed there."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Change = Literal["added", "modified", "deleted"]
Hidden = Literal["binary", "too large", "unreadable", "no file", "not compared", "cut", "secret"]
"""Why a changed file has no text in the patch. `no file`: a FIFO, a socket or a device; `cut`: the patch is full;
`secret`: a secret of several lines was in the patch, which is not stored."""


class WorkspaceSource(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename={"source": "from"}
):
    """What the workspace of a run is made of."""

    source: Annotated[str, Meta(min_length=1)]
    """A folder, an archive (`.tar`, `.tar.gz`, `.tgz`, `.tar.bz2`, `.tar.xz`, `.zip`), or with `revision` a git
    repository; relative to the suite file."""
    revision: Annotated[str, Meta(min_length=1)] | None = None
    """A commit, tag or branch of the git repository `from`."""
    setup: str | list[str] | None = None
    """A command that is run in the copy before the agent, as a list, or as text that is split as a shell would, but no
    shell runs. What it changes is not the agent's doing."""
    setup_timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """How long `setup` may take."""
    ignore: list[str] = []
    """Paths that are left out of the diff, as patterns: `**/__pycache__`."""
    max_files: Annotated[int, Meta(ge=1, le=1_000_000)] = 20_000
    """How many files it may have."""
    max_bytes: Annotated[int, Meta(ge=1024, le=2**36)] = 512 * 1024 * 1024
    """How large all files together may be."""


class ChangedFile(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A file, link or other entry that is not what it was."""

    path: str
    """From the workspace; bytes that are not UTF-8 as `\\xff`."""
    change: Change
    added: int | None = None
    """Lines; None when they are not known, like the next."""
    removed: int | None = None
    hidden: Hidden | None = None
    """Why its text is not in the patch; None when it is."""


class WorkspaceDiff(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What an agent changed in its workspace, against the baseline: what there was when it began."""

    files: list[ChangedFile] = []
    """What changed, by path."""
    patch: str = ""
    """The text of it, as `git diff` would print it."""
    unlisted: str = ""
    """Why there may be changes that are not in `files`; empty when all are."""

    @property
    def hidden(self) -> list[ChangedFile]:
        """The files whose changes are not in the patch."""
        return [file for file in self.files if file.hidden is not None]

    @property
    def added(self) -> int:
        """Lines that were added, as far as they are known."""
        return sum([file.added or 0 for file in self.files])

    @property
    def removed(self) -> int:
        """Lines that were removed, as far as they are known."""
        return sum([file.removed or 0 for file in self.files])


def workspace_of(value: str | WorkspaceSource) -> WorkspaceSource:
    """What a case says in short, in full."""
    return WorkspaceSource(source=value) if isinstance(value, str) else value
