"""Ctrl-C and SIGTERM, obeyed whatever an agent or a grader is doing at that moment.

A thread of its own takes the signals. The event loop cannot be relied on: an async function that blocks keeps it,
and with it every handler that is registered there. A stop has three steps, each of which follows the one before when
its time is up, or when another signal comes: ask the command to finish what is running, cancel it, end the process.
Where a call to C keeps Python's interpreter lock, no thread runs, and a watchdog process kills the command.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from seatrial._support.threads import CALL, taken_elsewhere
from seatrial.cli import watchdog
from seatrial.cli.exits import REASONS, StoppedBySignal
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError, lacking

T = TypeVar("T")

GRACE_S = {signal.SIGINT: 30.0, signal.SIGTERM: 5.0}
"""How long what is running may take to finish: somebody who pressed Ctrl-C can press it again, and what sends SIGTERM
sends SIGKILL soon after."""
ENDING_S = 4.0
"""How long what was cancelled may take to end."""
HELD_S = 900.0
"""How long no Python code may run in the command: longer than any agent or grader may take by default. Nothing would
ever end a command in which a call to C keeps the interpreter lock, no time limit and no deadline."""
PATIENCE_S = 1.0
"""How long threads of agents and graders are waited for when the process ends."""


class StopSignals:
    """Takes Ctrl-C and SIGTERM inside its `with` block, in the main thread of a program; elsewhere it does nothing."""

    def __init__(
        self,
        *,
        grace_s: Mapping[signal.Signals, float] = GRACE_S,
        last_words: Callable[[signal.Signals], None] | None = None,
        advice: str = "",
    ) -> None:
        """`last_words` are called in another thread before the process is ended, and have `ENDING_S` as well. `advice`
        is what the watchdog says of how to continue."""
        self.received: signal.Signals | None = None
        """The last signal that came."""
        self._grace_s = grace_s
        self._last_words = last_words
        self._advice = advice
        self._watchdog: _Watchdog | None = None
        self._lock = threading.Lock()
        self._step = 0
        self._ask: Callable[[signal.Signals], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._reads, self._writes = socket.socketpair()
            self._writes.setblocking(False)
            self._before = {number: signal.getsignal(number) for number in REASONS}
            self._wakeup_before = self._install()
            if os.name == "posix":
                with suppress(OSError):  # no room for one more process: signals are obeyed, but not in a call to C
                    self._watchdog = _Watchdog(self._reads, self._advice)
            self._thread = threading.Thread(target=self._watch, name="seatrial-signals", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before:
            signal.set_wakeup_fd(self._wakeup_before)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._reads.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            if self._watchdog is not None:
                self._watchdog.close()
            self._reads.close()
            self._writes.close()

    def attach(self, ask: Callable[[signal.Signals], None]) -> None:
        """From here on, stopping means to call `ask` in this event loop, and then to cancel the current task."""
        if not self._before:
            return
        self._install()  # a loop may have taken the signals when it was started
        with self._lock:
            self._loop, self._task, self._ask = asyncio.get_running_loop(), asyncio.current_task(), ask
            if self._step == 1 and self.received is not None:
                ask(self.received)
            elif self._step > 1:
                self._cancel()

    def run(
        self, work: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    ) -> T:
        """Run a coroutine in a new event loop. Raises `StoppedBySignal` when a signal cancelled it, and `SeatrialError`
        when something else did."""
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            loop = runner.get_loop()
            loop.set_default_executor(_UnwaitedExecutor())
            shortages = _Shortages()
            loop.set_exception_handler(shortages)
            task = loop.create_task(work)
            while True:
                try:
                    return loop.run_until_complete(task)
                except asyncio.CancelledError:
                    if self._step > 1 and self.received is not None:
                        raise StoppedBySignal(self.received) from None
                    raise SeatrialError(
                        "internal_error",
                        "all that was running was cancelled, and not by Seatrial: a Python agent or grader can do that",
                        hint="it must cancel its own tasks only",
                    ) from None
                except RuntimeError as error:
                    if task.done():
                        if "memory" in shortages.reported:  # what else goes wrong then is because of it
                            raise MemoryError from error
                        raise
                    # An agent has stopped the loop, which is not its own: run it again.
                except (SystemExit, KeyboardInterrupt):
                    # Signals raise nothing here: a task that an agent started did, which asyncio lets end the loop.
                    if task.done() or not self._before:
                        raise
                    loop.call_soon(self._install)  # a loop may take the signals again when it is started again

    def _install(self) -> int:
        for number in REASONS:
            # The handler does nothing: what counts is the byte that Python writes for the thread below.
            signal.signal(number, taken_elsewhere)
        return signal.set_wakeup_fd(self._writes.fileno(), warn_on_full_buffer=False)

    def _watch(self) -> None:
        deadline: float | None = None
        while True:
            left_s = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if self._watchdog is not None:
                self._watchdog.beat(HELD_S)
                left_s = HELD_S / 10 if left_s is None else min(left_s, HELD_S / 10)
            numbers: list[signal.Signals] = []
            if select.select([self._reads], [], [], left_s)[0]:
                data = self._reads.recv(64)
                if not data:
                    return
                numbers = [number for number in REASONS if number in data]
            elif self.received is not None and deadline is not None and time.monotonic() >= deadline:
                numbers = [self.received]
            for number in numbers:
                seconds = self._grace_s[number] if self._step == 0 else ENDING_S
                deadline = time.monotonic() + seconds
                if self._watchdog is not None:
                    self._watchdog.expect(seconds)
                self._go_on(number)

    def _go_on(self, number: signal.Signals) -> None:
        """Take the next step."""
        with self._lock:
            self.received = number
            self._step += 1
            if self._step == 1:
                if self._loop is not None and self._ask is not None:
                    self._in_loop(self._ask, number)
                return
            if self._step == 2:
                self._cancel()
                return
        self._end(number)

    def _cancel(self) -> None:
        if self._task is not None:
            self._in_loop(self._task.cancel)

    def _in_loop(self, callback: Callable[..., Any], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: it has ended by itself
            if self._loop is not None:
                self._loop.call_soon_threadsafe(callback, *arguments)

    def _end(self, number: signal.Signals) -> None:
        if self._last_words is not None:
            words = threading.Thread(target=self._last_words, args=(number,), daemon=True)
            words.start()
            words.join(ENDING_S)
        leave(128 + number)


class _Watchdog:
    """The process that kills this one when it no longer runs any Python code."""

    def __init__(self, wakeups: socket.socket, advice: str) -> None:
        """`wakeups` is where signals are received. Raises `OSError` when there cannot be another process."""
        self._steps, theirs = socket.socketpair()
        self._steps.setblocking(False)
        # A number can become that of another process; a descriptor cannot.
        pidfd = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else -1
        descriptors = [wakeups.fileno(), theirs.fileno(), *([pidfd] if pidfd >= 0 else [])]
        # It inherits what is blocked, so that Ctrl-C in a terminal never ends it, not even while it starts.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {*REASONS, signal.SIGHUP})
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own file
                [
                    *(sys.executable, "-I", "-S", watchdog.__file__),
                    *(str(wakeups.fileno()), str(theirs.fileno()), str(pidfd), advice),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
        except BaseException:
            self._steps.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()
            if pidfd >= 0:
                os.close(pidfd)

    def beat(self, seconds: float) -> None:
        """Tell the watchdog that Python code runs here, and will tell it again within this many seconds."""
        self.expect(-seconds)

    def expect(self, seconds: float) -> None:
        """Tell the watchdog that the next step of the stop is due within this many seconds."""
        with suppress(OSError):
            self._steps.send(watchdog.STEP.pack(seconds))

    def close(self) -> None:
        self._steps.close()
        self._process.kill()  # it would end by itself, but may only just be starting
        self._process.wait()


class _Shortages:
    """What becomes of an exception in a callback of asyncio's own: that the machine has no more of something is one
    sentence, once, and no traceback. The callback is called again, and may succeed then."""

    def __init__(self) -> None:
        self.reported: set[str] = set()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        what = None if error is None else lacking(error)
        if what is None:
            loop.default_exception_handler(context)
        elif what not in self.reported:
            self.reported.add(what)
            print(f"seatrial: warning: there is not enough {what}", file=sys.stderr)


class _UnwaitedExecutor(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`. A loop waits for them when it is closed, and agents use them, too."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def add_grace_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--grace-s`."""
    usual = f"{GRACE_S[signal.SIGINT]:g} after Ctrl-C, {GRACE_S[signal.SIGTERM]:g} after SIGTERM"
    parser.add_argument(
        "--grace-s",
        type=float,
        metavar="S",
        help=f"how long running cases may continue after a stop (default: {usual})",
    )


def grace_of(args: argparse.Namespace) -> Mapping[signal.Signals, float]:
    """The grace that was asked for, by signal."""
    if args.grace_s is None:
        return GRACE_S
    if not 0 <= args.grace_s <= 86_400:
        raise SeatrialError("usage", f"--grace-s is a number of seconds from 0 to 86,400, got {args.grace_s:g}")
    return dict.fromkeys(REASONS, args.grace_s)


def leave(code: int) -> None:
    """End the process at once, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def leave_in_time(code: int) -> None:
    """End the process, and wait for code of agents and graders only briefly: for their threads, and for what they left
    to be done at the end. What Python would clean up then (`__del__`, the `finally` of a generator) is not run."""
    deadline = time.monotonic() + PATIENCE_S
    ours: list[str] = []
    others = 0
    for thread in threading.enumerate():
        calls = thread.name.startswith(CALL)
        if thread is threading.current_thread() or (thread.daemon and not calls):
            continue
        thread.join(max(deadline - time.monotonic(), 0.0))
        if thread.is_alive() and calls:
            ours.append(thread.name.removeprefix(CALL).rpartition("-")[0])
        elif thread.is_alive():
            others += 1  # its name may be anything
    left = [f"{count} of {printable(name)}" for name, count in Counter(ours).items()]
    left += [f"{others} that they started"] if others else []
    if left:
        with suppress(OSError, ValueError):
            print(
                f"seatrial: threads of agents or graders did not end, and are left: {', '.join(left)}", file=sys.stderr
            )
    late = threading.Timer(ENDING_S, leave, (code,))
    late.daemon = True
    late.start()
    atexit._run_exitfuncs()
    leave(code)
