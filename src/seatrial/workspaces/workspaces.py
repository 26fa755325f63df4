"""The workspaces of an experiment: made when a run needs one, and gone with the experiment at the latest."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from seatrial.errors import SeatrialError
from seatrial.runs import Fault, WorkspaceSource

if TYPE_CHECKING:
    from seatrial.agents.cli.sandbox import Sandbox
    from seatrial.agents.cli.scratch import Scratch
    from seatrial.workspaces.live import LiveWorkspace


def workspace_problem(source: WorkspaceSource, directory: Path) -> SeatrialError | None:
    """Why no workspace can be made of this, as far as that is known without making one."""
    from seatrial.workspaces.source import check_source

    try:
        check_source(source, directory)
    except SeatrialError as error:
        return error
    return None


class Workspaces:
    """Makes the workspaces of the runs of an experiment, in one scratch directory."""

    def __init__(self, directory: Path) -> None:
        """`directory` is what the paths of sources are relative to."""
        self._directory = directory
        self._scratch: Scratch | None = None
        self._closing = ExitStack()
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.to_thread(self._closing.close)

    async def prepare(self, source: WorkspaceSource, sandbox: Sandbox | None = None) -> LiveWorkspace | Fault:
        """A workspace that is ready for an agent, or why there is none; commands of graders run in the sandbox."""
        # Here: most experiments have none.
        from seatrial.agents.cli.program import system_fault
        from seatrial.agents.cli.scratch import Scratch
        from seatrial.workspaces.live import LiveWorkspace

        stack = AsyncExitStack()
        try:
            async with self._opening:
                if self._scratch is None:
                    self._scratch = self._closing.enter_context(await asyncio.to_thread(Scratch))
            folder = await stack.enter_async_context(self._scratch.folder())
            live = LiveWorkspace(source, folder.path, stack, sandbox)
            await live.fill(self._directory)
        except SeatrialError as error:
            await stack.aclose()
            return Fault("workspace_failed", str(error))
        except OSError as error:
            await stack.aclose()
            return system_fault(error, "workspace_failed", f"the workspace cannot be made: {error.strerror or error}")
        except BaseException:
            await stack.aclose()
            raise
        return live
