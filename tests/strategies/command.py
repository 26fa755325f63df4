"""The `seatrial` command as a process of its own, for tests that are about what it does and not about how it starts.

Each process is forked from one that has imported what commands import, which is most of what a short command takes.
That process has run nothing else and has no threads: what a command does in it, and leaves behind, ends with it.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import IO, Any

_PROGRAM = Path(sys.executable).with_name("seatrial")
_HANGS_S = 600
_SUITE = {
    "agents": {"warm": {"kind": "python", "target": "warm:answer"}},
    "cases": [{"id": "one", "instruction": "x"}],
    "graders": [{"kind": "contains", "value": "x"}],
}


def seatrial(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, as `subprocess.run` does. `env` is all of its environment, ours unless given."""
    process = Started(*arguments, cwd=cwd, env=env)
    try:
        stdout, stderr = process.communicate(timeout=_HANGS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(["seatrial", *arguments], process.wait(), stdout, stderr)


class Started:
    """The command while it runs, as `subprocess.Popen` has it. What it writes is read here, unless a file is given."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
    ) -> None:
        self.returncode: int | None = None
        request = [str(cwd or Path.cwd()), dict(os.environ if env is None else env), list(arguments)]
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_server())
        with ExitStack() as ours:
            nothing = ours.enter_context(open(os.devnull))
            self.stdout, out = _pipe(ours, stdout)
            self.stderr, err = _pipe(ours, stderr)
            socket.send_fds(self._connection, [b"."], [nothing.fileno(), out, err])
        self._connection.sendall(json.dumps(request).encode())
        self._connection.shutdown(socket.SHUT_WR)
        self.pid = int(self._connection.recv(100))

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("seatrial", timeout or 0)
            with self._connection:
                self.returncode = int(self._connection.recv(100))
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it writes to pipes until they are closed; then it has ended."""
        end = None if timeout is None else time.monotonic() + timeout
        said = ["", ""]

        def read(number: int, pipe: IO[str]) -> None:
            with pipe:
                said[number] = pipe.read()

        pipes = [(number, pipe) for number, pipe in enumerate((self.stdout, self.stderr)) if pipe and not pipe.closed]
        threads = [threading.Thread(target=read, args=each, daemon=True) for each in pipes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if end is None else max(0, end - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired("seatrial", timeout or 0)
        self.wait(None if end is None else max(0, end - time.monotonic()))
        return said[0], said[1]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _pipe(ours: ExitStack, given: IO[Any] | None) -> tuple[IO[str] | None, int]:
    """What a pipe is read by, and its other end, which is open for as long as it takes to hand it over."""
    if given is not None:
        return None, given.fileno()
    reading, writing = os.pipe()
    ours.callback(os.close, writing)
    return open(reading, encoding="utf-8"), writing


@functools.cache
def _server() -> bytes:
    """Where the process listens that the others are forked from; it ends with this one."""
    address = f"\0seatrial-tests-{os.getpid()}-{os.urandom(8).hex()}".encode()  # has no file that could be left
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        [sys.executable, __file__, os.fsdecode(address[1:])],
        cwd="/",
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def end() -> None:
        process.kill()
        process.communicate()

    atexit.register(end)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return address


def _imported_by_commands() -> list[str]:
    """The modules that are there after a few commands, which are run in another process."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        from seatrial.cli import main

        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            Path("warm.py").write_text("def answer(instruction):\n    return instruction\n")
            Path("s.suite.yaml").write_text(json.dumps(_SUITE))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            sys.path.insert(0, folder)
            for arguments in (["run", "s.suite.yaml"], ["doctor", "s.suite.yaml"], ["grade", "latest"]):
                main(arguments)
        from seatrial import server

        for name in ("uvloop", *[each.name for each in iter_modules(server.__path__, "seatrial.server.")]):
            import_module(name)
        with open(writing, "w") as pipe:
            json.dump([name for name in sys.modules if name not in ("warm", "__main__")], pipe)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.wait()
    names: list[str] = json.loads(said)
    return names


def _serve(address: str) -> None:
    """Fork a process for each request. Returns in that process, which is then what `seatrial` is when it starts."""
    for name in _imported_by_commands():
        try:
            import_module(name)
        except ImportError:
            continue  # a name that a package made up for itself
    gc.freeze()  # a collection would copy every page that the processes share
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{address}")
    listener.listen(50)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    os.write(1, b"ready\n")
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            break
        connection.close()
    listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, *_ = socket.recv_fds(connection, 1, 3)
    cwd, environment, arguments = _request(connection)
    program = os.fork()
    if program:
        connection.sendall(str(program).encode())
        _, status = os.waitpid(program, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    path = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:1] = [str(_PROGRAM.parent), *path]
    sys.argv = [str(_PROGRAM), *arguments]


def _request(connection: socket.socket) -> Any:
    return json.loads(b"".join(iter(lambda: connection.recv(65536), b"")))


if __name__ == "__main__":
    _serve(sys.argv[1])
    from seatrial.cli import main

    raise SystemExit(main())
