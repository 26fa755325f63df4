from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from strategies.unhurried import run_unhurried

from seatrial.errors import SeatrialError
from seatrial.runs import Fault, WorkspaceSource
from seatrial.workspaces import Workspaces
from seatrial.workspaces.live import MAX_OUTPUT, LiveWorkspace

T = TypeVar("T")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    return made


def in_workspace(
    directory: Path, use: Callable[[LiveWorkspace], Awaitable[T]], source: WorkspaceSource | None = None
) -> T:
    async def play() -> T:
        async with Workspaces(directory) as workspaces:
            made = await workspaces.prepare(source or WorkspaceSource(source="project"))
            assert isinstance(made, LiveWorkspace), made
            try:
                return await use(made)
            finally:
                await made.close()

    return run_unhurried(play())


def fault(directory: Path, source: WorkspaceSource) -> Fault:
    async def play() -> Fault:
        async with Workspaces(directory) as workspaces:
            made = await workspaces.prepare(source)
            assert isinstance(made, Fault)
            return made

    return run_unhurried(play())


def test_a_workspace_is_a_copy_with_one_commit_and_is_removed_afterwards(tmp_path: Path, root: Path) -> None:
    async def use(live: LiveWorkspace) -> tuple[str, str]:
        folder = live.place.folder
        log = subprocess.run(["git", "log", "--format=%H %s"], cwd=folder, capture_output=True, text=True, check=True)
        status = subprocess.run(["git", "status", "--short"], cwd=folder, capture_output=True, text=True, check=True)
        return log.stdout, status.stdout

    log, status = in_workspace(tmp_path, use)
    assert log.count("\n") == 1
    assert log.endswith(" baseline\n")
    assert status == ""
    assert in_workspace(tmp_path, use)[0] == log
    assert list(root.iterdir()) == []


def test_what_setup_makes_is_part_of_the_baseline(tmp_path: Path) -> None:
    async def use(live: LiveWorkspace) -> list[str]:
        assert (live.place.folder / "made").exists()
        (live.place.folder / "mine").touch()
        return [file.path for file in (await live.diff()).files]

    source = WorkspaceSource(source="project", setup=[sys.executable, "-c", "open('made', 'w').write('x')"])
    assert in_workspace(tmp_path, use, source) == ["mine"]


def test_a_baseline_that_the_agent_commits_to_rewrites_or_removes_stays_what_it_was(tmp_path: Path) -> None:
    async def use(live: LiveWorkspace) -> list[str]:
        folder = live.place.folder
        (folder / "a.txt").write_text("b\n")
        who = ["-c", "user.name=a", "-c", "user.email=a"]
        subprocess.run(["git", *who, "commit", "-qam", "baseline", "--amend"], cwd=folder, check=True)
        subprocess.run(["rm", "-rf", ".git"], cwd=folder, check=True)
        found = await live.diff()
        assert "-a\n+b\n" in found.patch
        assert found.unlisted == ""
        return [file.path for file in found.files]

    assert in_workspace(tmp_path, use) == ["a.txt"]


def test_hooks_that_lie_in_the_source_do_not_run(tmp_path: Path) -> None:
    hooks = tmp_path / "project" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (hooks / "pre-commit").chmod(0o755)

    async def use(live: LiveWorkspace) -> None:
        assert (await live.diff()).files == []

    in_workspace(tmp_path, use)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (WorkspaceSource(source="nowhere"), "no such file or folder"),
        (WorkspaceSource(source="project", setup="no-such-program"), "`setup` of the workspace cannot be started"),
        (WorkspaceSource(source="project", setup=[sys.executable, "-c", "exit('broken: no npm')"]), "broken: no npm"),
        (
            WorkspaceSource(
                source="project", setup=[sys.executable, "-c", "import time; time.sleep(600)"], setup_timeout_s=0.2
            ),
            "took longer than 0.2 s",
        ),
        (
            WorkspaceSource(
                source="project", max_files=2, setup=[sys.executable, "-c", "[open(x, 'w') for x in 'xyz']"]
            ),
            "more than 2 files",
        ),
    ],
)
def test_a_workspace_that_cannot_be_made_is_no_fault_of_the_agents(
    tmp_path: Path, root: Path, source: WorkspaceSource, told: str
) -> None:
    found = fault(tmp_path, source)
    assert found.error_class == "workspace_failed"
    assert found.blame == "infrastructure"
    assert found.before_agent
    assert told in found.message
    assert list(root.iterdir()) == []


def test_a_file_of_the_baseline_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refusing(path: object, *arguments: object, **named: object) -> int:
        if path == "a.txt" and "dir_fd" in named:
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)
    assert "a.txt in the workspace cannot be read" in fault(tmp_path, WorkspaceSource(source="project")).message


def test_without_git_there_is_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "needs `git`" in fault(tmp_path, WorkspaceSource(source="project")).message


def test_a_workspace_that_the_agent_removed_has_lost_all_files(tmp_path: Path) -> None:
    async def use(live: LiveWorkspace) -> list[tuple[str, str]]:
        subprocess.run(["rm", "-rf", live.place.folder], check=True)
        found = await live.diff()
        assert found.unlisted == ""
        with pytest.raises(OSError, match="No such file"):
            await live.run(["true"], 60)
        return [(file.path, file.change) for file in found.files]

    assert in_workspace(tmp_path, use) == [("a.txt", "deleted")]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_workspace_that_is_something_else_now_is_not_entered(tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")

    async def use(live: LiveWorkspace) -> str:
        live.place.folder.rename(live.place.folder.parent / "away")
        if kind == "link":
            live.place.folder.symlink_to(outside)
        else:
            live.place.folder.touch()
        with pytest.raises((SeatrialError, OSError)):
            await live.run([sys.executable, "-c", "open('written', 'w')"], 60)
        return (await live.diff()).unlisted

    assert "cannot be read" in in_workspace(tmp_path, use)
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


def test_a_workspace_in_which_somebody_is_still_at_work_is_unknown(tmp_path: Path) -> None:
    async def use(live: LiveWorkspace) -> str:
        live.abandoned = "the agent is still running"
        with pytest.raises(SeatrialError, match="still running"):
            await live.run(["true"], 60)
        return (await live.diff()).unlisted

    assert in_workspace(tmp_path, use) == "the agent is still running"


def test_commands_run_in_the_workspace_with_a_clean_environment_and_a_home_without_traces_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_API_KEY", "sk-1234567890")
    program = "import os; print(sorted(os.environ), os.getcwd(), os.listdir(os.environ['HOME']))"

    async def use(live: LiveWorkspace) -> None:
        (live.place.home / ".bashrc").write_text("exit 0")
        ended = await live.run([sys.executable, "-c", program], 60)
        assert ended.code == 0
        assert "OUR_API_KEY" not in ended.output
        assert str(live.place.folder) in ended.output
        assert ended.output.endswith("['tmp']\n")
        assert "HOME" in ended.output
        assert "PATH" in ended.output

    in_workspace(tmp_path, use)


def test_a_home_that_the_agent_made_for_a_command_is_not_used(tmp_path: Path) -> None:
    async def use(live: LiveWorkspace) -> None:
        (live.place.folder.parent / "home-1").mkdir()
        with pytest.raises(FileExistsError):
            await live.run(["true"], 60)

    in_workspace(tmp_path, use)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )

    async def use(live: LiveWorkspace) -> int:
        running = asyncio.create_task(live.run([sys.executable, "-c", program], 5))
        ended = await running
        assert ended.code is None
        return int((live.place.folder / "pid").read_text())

    pid = in_workspace(tmp_path, use)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    async def use(live: LiveWorkspace) -> None:
        ended = await live.run([sys.executable, "-c", f"print('x' * {MAX_OUTPUT}); print('end')"], 60)
        assert ended.cut
        assert len(ended.output) <= MAX_OUTPUT
        assert ended.output.endswith("end\n")

    in_workspace(tmp_path, use)


def test_commands_come_one_after_the_other(tmp_path: Path) -> None:
    program = "import os, time; os.mkdir('turn'); time.sleep(0.1); os.rmdir('turn')"

    async def use(live: LiveWorkspace) -> list[int | None]:
        ended = await asyncio.gather(*[live.run([sys.executable, "-c", program], 60) for _ in range(3)])
        return [each.code for each in ended]

    assert in_workspace(tmp_path, use) == [0, 0, 0]
