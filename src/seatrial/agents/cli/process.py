"""A program under test and everything it starts, ended as one by its supervisor."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Self, cast

from seatrial.agents.cli import supervisor

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
DRAIN_S = 1.0
"""How long output is waited for when the program has ended, and something that could not be ended holds the pipe."""
LOOK_AGAIN_S = 0.1
"""Then, how often it is looked whether what the program wrote has been read."""
MAX_LOG_BYTES = 16 * 1024
MAX_LOG_LINES = 20
READ_BYTES = 256 * 1024

_TERMINATE, _KILL = b"t", b"k"


class Process:
    """A running program. Leaving the block ends it, and all that it started, at the latest."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: IO[bytes] | None = None,
        has_output: bool = True,
        afterwards: Sequence[str] = (),
    ) -> None:
        """With `has_output`, standard output is the program's answer; if not, it is a part of the log. `afterwards` is
        a command that ends what the program started elsewhere, as in a container: with 0 when nothing of it is left."""
        self._command = command
        self._afterwards = afterwards
        self._sweep_s = supervisor.SWEEP_S + (supervisor.AFTERWARDS_S if afterwards else 0)
        self._cwd = cwd
        self._env = env
        self._stdin = stdin
        self._has_output = has_output
        self._loop = asyncio.get_running_loop()
        self._output = _Output()
        self._log = _Log()
        self._transports: list[asyncio.ReadTransport] = []
        self._popen: subprocess.Popen[bytes] | None = None
        """Its supervisor."""
        self._control: socket.socket | None = None
        self._told = b""
        """What the supervisor said."""
        self._news = asyncio.Event()
        self._exit: asyncio.Future[int] = self._loop.create_future()
        self._hang_up: asyncio.TimerHandle | None = None
        self.ended_outside = 0
        """Processes that had left the program's group, and were ended with it. Known when the program has ended."""
        self.left_outside: int | None = 0
        """Those that could not be ended; None when that is not known, because the supervisor was killed."""

    async def __aenter__(self) -> Self:
        """Start it. Raises `OSError` or `ValueError` when that cannot be done."""
        self._control, theirs = socket.socketpair()
        try:
            arguments = [str(theirs.fileno()), self._env.get("LC_CTYPE", "")]
            arguments += [str(len(self._afterwards)), *self._afterwards, *self._command]
            self._popen = popen = subprocess.Popen(  # noqa: S603 - running the suite's program is what this is for
                [sys.executable, "-I", "-S", supervisor.__file__, *arguments],
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.DEVNULL if self._stdin is None else self._stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if self._has_output else subprocess.STDOUT,
                bufsize=0,
                pass_fds=(theirs.fileno(),),
                # Ctrl-C is for us, and not for what we have to end in an orderly way.
                start_new_session=True,
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._hear)
        try:
            if self._has_output:
                await self._connect(self._output, popen.stdout)
            await self._connect(self._log, popen.stderr if self._has_output else popen.stdout)
            while b"\n" not in self._told and not self._exit.done():
                self._news.clear()
                await self._news.wait()
            self._check_start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            await self.end()
        finally:
            try:
                if self._popen is not None and not self._exit.done():
                    # Cancelled again while it was ending. Everything is being killed, so that this does not take long.
                    await asyncio.wait({self._exit}, timeout=self._sweep_s if self._afterwards else GRACE_S)
            finally:
                self._kill_supervisor()
                self._close_pipes()
                if self._hang_up is not None:
                    self._hang_up.cancel()

    @property
    def ended(self) -> bool:
        """Whether the program itself has ended."""
        return self._exit.done()

    async def read(self) -> bytes:
        """The next bytes of its output, b"" at the end. A program whose output nobody reads has to wait."""
        return await self._output.read()

    async def wait(self) -> int:
        """Wait for the program itself to end: its exit code, negative for a signal."""
        code = await asyncio.shield(self._exit)
        await self._log.closed.wait()
        return code

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End all of it: politely, then not."""
        if not self._exit.done():
            try:
                self._order(_TERMINATE)
                await asyncio.wait({self._exit}, timeout=grace_s)
            finally:
                # Also when the wait is cancelled: nothing of a program outlives its run.
                self._order(_KILL)
            await asyncio.wait({self._exit}, timeout=grace_s + self._sweep_s)
            self._kill_supervisor()

    def log_lines(self) -> str:
        """The last lines it wrote to standard error, and to standard output where that is no answer."""
        return self._log.last_lines()

    async def _connect(self, protocol: asyncio.BaseProtocol, pipe: IO[bytes] | None) -> None:
        transport, _ = await self._loop.connect_read_pipe(lambda: protocol, pipe)
        self._transports.append(transport)

    def _close_pipes_when_read(self) -> None:
        # Whoever reads may take longer than the program did to write.
        if self._has_output and self._output.unread:
            self._hang_up = self._loop.call_later(LOOK_AGAIN_S, self._close_pipes_when_read)
        else:
            self._close_pipes()

    def _close_pipes(self) -> None:
        for transport in self._transports:
            transport.close()

    def _order(self, letter: bytes) -> None:
        if self._control is not None and not self._exit.done():
            self._wake_supervisor()
            with suppress(OSError):
                self._control.send(letter)

    def _wake_supervisor(self) -> None:
        """A program can stop its supervisor, and thereby the orders to end it."""
        if self._popen is not None:
            with suppress(OSError):
                self._popen.send_signal(signal.SIGCONT)

    def _kill_supervisor(self) -> None:
        """Kill one that did not do as it was told: the system then kills the program itself (Linux only)."""
        if self._popen is not None and not self._exit.done():
            self._popen.kill()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(GRACE_S)  # a killed process is gone in a moment
                self._hear()

    def _hear(self) -> None:
        """Take what the supervisor says; nothing more comes when it has ended."""
        if self._control is None or self._popen is None or self._exit.done():
            return
        try:
            while data := self._control.recv(4096):
                self._told += data
                self._news.set()
        except BlockingIOError:
            return
        except OSError:
            pass
        self._loop.remove_reader(self._control)
        self._control.close()
        code = self._popen.wait()
        last = self._told.splitlines()[-1].split() if self._told else []
        if last[:1] == [b"exit"]:
            code, self.ended_outside, self.left_outside = map(int, last[1:])
        elif last[:1] != [b"error"]:
            self.left_outside = None
        self._exit.set_result(code)
        self._news.set()
        # Something that could not be ended may hold the pipes.
        self._hang_up = self._loop.call_later(DRAIN_S, self._close_pipes_when_read)

    def _check_start(self) -> None:
        """Raise `OSError` when the supervisor could not start the program."""
        word, _, number = self._told.partition(b"\n")[0].partition(b" ")
        if word == b"error":
            raise OSError(int(number), os.strerror(int(number)))


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class _Output(asyncio.Protocol):
    """What a program writes, until it is read."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._paused = False
        self._closed = False
        self._news = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    @property
    def unread(self) -> bool:
        """Whether there is something that was not read, here or in the pipe."""
        if self._closed or self._transport is None:
            return bool(self._parts)
        return bool(self._parts) or _is_readable(self._transport.get_extra_info("pipe").fileno())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of uvloop is one in all but its class.
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._held += len(data)
        if self._held > READ_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._news.set()

    async def read(self) -> bytes:
        """What has come, as soon as something has; b"" at the end."""
        while not self._parts and not self._closed:
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        if self._paused and not self._closed and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data


class _Log(asyncio.Protocol):
    """The last of what a program wrote."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self._tail = bytearray()

    def data_received(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > MAX_LOG_BYTES:
            del self._tail[:-MAX_LOG_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def last_lines(self) -> str:
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-MAX_LOG_LINES:]).strip()
