"""A small process that ends a command which has become deaf to Ctrl-C and SIGTERM, or in which nothing runs any more.

A call to C that keeps Python's interpreter lock (a regular expression that backtracks, in a function of the user's)
lets no other Python code of its process run, the thread that takes signals included. Only Python's handler in C still
works, which writes a byte into a socket. This process shares the other end, and sees that the byte is not taken. The
command also says from time to time that it is alive; one that does not for very long will never end by itself.

This file is started as a script, by a Python without the packages of any environment: it imports what is light. It
ends with its parent, however that ends, and kills nothing else.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys

DEAF_S = 5.0
"""How long a command may go without taking a signal, or be late with a step of its stop."""
TICK_S = 0.25
"""Time is counted in ticks: a machine that sleeps, or Ctrl-Z, which stops this process as well, is not lateness."""
STEP = struct.Struct("d")
"""What the command says when it takes a step of its stop: how many seconds that may take. Below 0, it only says that it
is alive, and how many seconds may pass until it says so again."""
_IDLE_S = 1.0
_BEAT_S = 5.0
_WRITABLE_S = 1.0
_CAUSE = (
    "something keeps Python's interpreter lock, such as a regular expression in a Python agent or grader. What was "
    "stored is kept"
)


def watch(wakeups: socket.socket, steps: socket.socket, pidfd: int, advice: str) -> None:
    """Wait until the command ends, or kill it. `pidfd` is the command's, -1 where the system has none."""
    parent = os.getppid()
    ends = [steps] if pidfd < 0 else [steps, pidfd]
    unread_s = 0.0
    left_s: float | None = None
    held_s: float | None = None
    while os.getppid() == parent:
        counting = left_s is not None or unread_s > 0
        tick_s = TICK_S if counting else _IDLE_S if pidfd < 0 else None if held_s is None else min(_BEAT_S, held_s)
        # While a byte waits, the socket would be ready at once each time.
        watched = ends if unread_s else [*ends, wakeups]
        ready = select.select(watched, [], [], tick_s)[0]
        if pidfd in ready:
            return
        if steps in ready:
            said = steps.recv(STEP.size * 64)
            if not said:
                return
            for (seconds,) in STEP.iter_unpack(said):
                if seconds < 0:
                    held_s = -seconds
                else:
                    left_s = seconds + DEAF_S
        if not ready and left_s is not None:
            left_s -= TICK_S
        if not ready and held_s is not None and tick_s is not None:
            held_s -= tick_s
        unread_s = unread_s + TICK_S if _is_unread(wakeups) else 0.0
        if unread_s > DEAF_S or (left_s is not None and left_s <= 0):
            _kill(parent, pidfd, f"it did not obey a signal to stop: {_CAUSE}", advice)
            return
        if held_s is not None and held_s <= 0:
            _kill(parent, pidfd, f"nothing in it has run for minutes: {_CAUSE}", advice)
            return


def _is_unread(wakeups: socket.socket) -> bool:
    try:
        return bool(wakeups.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


def _kill(parent: int, pidfd: int, why: str, advice: str) -> None:
    text = f"\nseatrial: killed, because {why}; {advice}\n"
    # A reader that has stopped must not block us: a pipe that is ready takes this much at once.
    if select.select([], [2], [], _WRITABLE_S)[1]:
        os.write(2, text.encode()[: select.PIPE_BUF])
    if pidfd >= 0:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    elif os.getppid() == parent:
        os.kill(parent, signal.SIGKILL)


if __name__ == "__main__":
    watch(socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]), sys.argv[4])
    os._exit(0)  # there is nothing to tidy up, and the command waits for it
