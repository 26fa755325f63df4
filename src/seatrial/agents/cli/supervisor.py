"""A small process that stands between us and a program under test, and outlives neither.

It starts the program in a session of its own and ends it with all that it started: also what has left the program's
process group, since the system makes orphans the children of a supervisor (Linux only). It does so when the program
ends, when it is told to, and when we are gone, however that came.

This file is started as a script, by a Python without the packages of any environment: it imports what is light.

Where a program only starts another elsewhere, as in a container, a further command ends that one: it is run last, also
when we are gone.

On the control socket it says `started`, or `error` and a number; and in the end `exit`, the code (negative: a signal),
how many processes outside of the group it had to end, and how many it could not. It takes single letters: `t` for
SIGTERM to the group, `k` to end everything.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

SWEEP_S = 5.0
"""How long what the program started is hunted: it may start things faster than they can be ended."""
AFTERWARDS_S = 30.0
"""How long the command that is run last may take."""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_PAUSE_S = 0.005
_NOT_FOR_US = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""A program may send these to its parent, or to all that it may reach. We end when it has ended."""


def supervise(control: int, locale: str, command: list[str], afterwards: list[str]) -> None:
    """Run a program to its end; `locale` is what its LC_CTYPE is to be, which starting Python may have changed."""
    os.environ.pop("LC_CTYPE", None)
    if locale:
        os.environ["LC_CTYPE"] = locale
    _ask_linux(_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    for number in _NOT_FOR_US:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    os.set_inheritable(control, False)
    program = _started(control, command)
    # The pipes are the program's: their end must mean that it has ended.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    code = _waited_for(program, control, woken)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program, signal.SIGKILL)
    code, ended, left = _swept(program, code)
    if afterwards and not _succeeds(afterwards):
        left += 1
    _tell(control, f"exit {code} {ended} {left}\n")


def _ask_linux(what: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _started(control: int, command: list[str]) -> int:
    """Start the program; ends this process when that cannot be done."""
    read, write = os.pipe()  # closed by the start of the program, else it has the number of the error
    program = os.fork()
    if program == 0:
        try:
            os.setsid()
            # Should something kill this process, the program at least does not outlive it.
            _ask_linux(_DEATH_SIGNAL, signal.SIGKILL)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *_NOT_FOR_US):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)  # noqa: S606 - running the suite's program is what this is for
        except OSError as error:
            os.write(write, b"%d" % (error.errno or 1))
        finally:
            os._exit(127)
    os.close(write)
    failure = os.read(read, 16)
    os.close(read)
    if failure:
        _tell(control, f"error {failure.decode()}\n")
        raise SystemExit(1)
    _tell(control, "started\n")
    return program


def _waited_for(program: int, control: int, woken: int) -> int | None:
    """The program's code when it has ended; None when it is to be ended."""
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if control in ready:
            told = _told(control)
            if b"t" in told and b"k" not in told:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(program, signal.SIGTERM)
            elif told is not _NOTHING:
                return None
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            if (code := _reaped().get(program)) is not None:
                return code


_NOTHING = b"-"


def _told(control: int) -> bytes:
    """What we were told; empty when there is nobody any more."""
    try:
        return os.read(control, 64)
    except BlockingIOError:
        return _NOTHING
    except OSError:
        return b""


def _reaped() -> dict[int, int]:
    """The codes of the children that have ended, by their numbers."""
    codes: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            codes[child] = os.waitstatus_to_exitcode(status)
    return codes


def _swept(program: int, code: int | None) -> tuple[int, int, int]:
    """End what is left, generation after generation: its code, how many others were ended, how many could not be."""
    ended: set[int] = set()
    deadline = time.monotonic() + SWEEP_S
    while True:
        codes = _reaped()
        code = codes.get(program, code)
        children = _children()
        others = [child for child in children if child != program and not _in_group(child, program)]
        if not children or time.monotonic() > deadline:
            return -signal.SIGKILL if code is None else code, len(ended - set(others)), len(others)
        for child in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
                if child in others:
                    ended.add(child)
        time.sleep(_PAUSE_S)


def _succeeds(command: list[str]) -> bool:
    """Whether a command ends with 0 in time."""
    child = os.fork()
    if child == 0:
        try:
            os.execv(command[0], command)  # noqa: S606 - it is ours
        finally:
            os._exit(127)
    deadline = time.monotonic() + AFTERWARDS_S
    while time.monotonic() < deadline:
        if (code := _reaped().get(child)) is not None:
            return code == 0
        time.sleep(_PAUSE_S)
    os.kill(child, signal.SIGKILL)
    return False


def _in_group(child: int, group: int) -> bool:
    try:
        return os.getpgid(child) == group
    except ProcessLookupError:
        return True


def _children() -> list[int]:
    """Our children, adopted ones included, where the system tells; those that wait to be reaped count too."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        pass
    found = []
    with suppress(OSError):
        for name in os.listdir("/proc"):
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{int(name)}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == own:
                    found.append(int(name))
    return found


def _tell(control: int, line: str) -> None:
    with suppress(OSError):
        os.write(control, line.encode())


if __name__ == "__main__":
    last = 4 + int(sys.argv[3])
    supervise(int(sys.argv[1]), sys.argv[2], sys.argv[last:], sys.argv[4:last])
