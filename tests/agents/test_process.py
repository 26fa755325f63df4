"""A program and all that it starts end together, whatever it does about it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from strategies.unhurried import run_unhurried

from seatrial.agents.cli import process as process_module
from seatrial.agents.cli import supervisor
from seatrial.agents.cli.process import GRACE_S, MAX_LOG_BYTES, Process
from seatrial.agents.cli.program import RunFiles

PYTHON = [sys.executable, "-I", "-S", "-c"]


def running(script: str, scenario: Callable[[Process], Awaitable[Any]], **options: Any) -> Any:
    """Play a scenario with a Python program."""

    async def play() -> Any:
        async with Process([*PYTHON, script], cwd="/", env=dict(os.environ), **options) as process:
            return await scenario(process)

    return run_unhurried(play())


async def output_of(process: Process) -> tuple[bytes, int]:
    parts = []
    while part := await process.read():
        parts.append(part)
    return b"".join(parts), await process.wait()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        # A child of a killed parent may wait for the init process to reap it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # which it has just done
        return False


def wait_until_dead(pid: int) -> None:
    end = time.monotonic() + 120  # none of them would end by itself before
    while alive(pid):
        assert time.monotonic() < end, f"process {pid} is still there"
        time.sleep(0.01)


def test_output_log_and_exit_code_come_apart() -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    async def scenario(process: Process) -> Any:
        return await output_of(process), process.log_lines()

    assert running(script, scenario) == ((b"out\n", 3), "err")


def test_without_output_both_go_to_the_log() -> None:
    script = "import sys; print('out', flush=True); print('err', file=sys.stderr)"

    async def scenario(process: Process) -> Any:
        return await process.wait(), process.log_lines()

    assert running(script, scenario, has_output=False) == (0, "out\nerr")


def test_a_program_without_input_finds_its_input_empty() -> None:
    assert running("import sys; print(repr(sys.stdin.read()))", output_of) == (b"''\n", 0)


def test_a_signal_is_a_negative_code() -> None:
    assert running("import os; os.kill(os.getpid(), 9)", output_of) == (b"", -9)


def test_the_log_keeps_its_last_lines_only() -> None:
    script = "import sys\nfor n in range(20000): print('line', n, file=sys.stderr)"

    async def scenario(process: Process) -> str:
        await process.wait()
        return process.log_lines()

    lines = running(script, scenario).splitlines()
    assert len(lines) == 20
    assert lines[-1] == "line 19999"


def test_one_endless_line_of_log_is_bounded() -> None:
    async def scenario(process: Process) -> str:
        await process.wait()
        return process.log_lines()

    log = running("import sys; sys.stderr.write('x' * 1000000)", scenario)
    assert len(log) <= MAX_LOG_BYTES


def test_a_program_whose_output_nobody_reads_has_to_wait() -> None:
    async def scenario(process: Process) -> bool:
        await process.read()
        await asyncio.sleep(0.2)
        return process.ended

    assert not running("import os\nwhile True: os.write(1, b'x' * 65536)", scenario)


@pytest.mark.parametrize("size", [10, 350_000, 610_000])
def test_nothing_is_lost_when_it_is_read_long_after_the_program_has_ended(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(process_module, "DRAIN_S", 0.05)
    monkeypatch.setattr(process_module, "LOOK_AGAIN_S", 0.01)

    async def scenario(process: Process) -> int:
        count = 0
        while True:
            await asyncio.sleep(0.3)
            part = await process.read()
            if not part:
                assert await process.wait() == 0
                return count
            count += len(part)

    assert running(f"import sys; sys.stdout.write('x' * {size})", scenario) == size


def test_leaving_the_block_ends_the_program() -> None:
    async def scenario(process: Process) -> int:
        return int(await process.read())

    pid = running("import os, time; print(os.getpid(), flush=True); time.sleep(600)", scenario)
    wait_until_dead(pid)


def test_a_program_that_ignores_sigterm_is_killed() -> None:
    script = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""

    async def scenario(process: Process) -> int:
        pid = int(await process.read())
        begun = asyncio.get_running_loop().time()
        await process.end(0.1)
        assert process.ended
        assert asyncio.get_running_loop().time() - begun < GRACE_S
        return pid

    wait_until_dead(running(script, scenario))


def test_a_program_that_takes_its_leave_on_sigterm_is_given_time() -> None:
    script = """
import os, signal, time
def leave(number, frame):
    os.write(1, b'bye\\n')
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
print('ready', flush=True)
time.sleep(600)
"""

    async def scenario(process: Process) -> Any:
        await process.read()
        await process.end(60)
        return await output_of(process)

    assert running(script, scenario) == (b"bye\n", 0)


# The parent goes on when the child has said its number.
FORKING = """
import os, time
said, say = os.pipe()
if os.fork() == 0:
    {child}
    print(os.getpid(), flush=True)
    os.write(say, b"!")
    time.sleep(600)
    os._exit(0)
os.read(said, 1)
time.sleep({parent})
"""


def test_a_program_that_forks_and_ends_leaves_nothing_behind() -> None:
    async def scenario(process: Process) -> int:
        output, code = await output_of(process)
        assert code == 0
        return int(output)

    begun = time.monotonic()
    wait_until_dead(running(FORKING.format(child="pass", parent=0), scenario))
    assert time.monotonic() - begun < 120


def test_a_program_that_forks_is_ended_with_its_children() -> None:
    async def scenario(process: Process) -> int:
        return int(await process.read())

    wait_until_dead(running(FORKING.format(child="pass", parent=600), scenario))


def test_a_child_that_leaves_the_group_is_ended_and_counted() -> None:
    async def scenario(process: Process) -> tuple[int, int, int | None]:
        output, code = await output_of(process)
        assert code == 0
        return int(output), process.ended_outside, process.left_outside

    pid, ended, left = running(FORKING.format(child="os.setsid()", parent=0), scenario)
    wait_until_dead(pid)
    assert (ended, left) == (1, 0)


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        with open(sys.argv[1], "w") as file:
            file.write(f"{{os.getpid()}}.")
        {then}
    os._exit(0)
os.wait()
while not (os.path.exists(sys.argv[1]) and open(sys.argv[1]).read().endswith(".")):
    time.sleep(0.01)
print("done")
"""
CLEAN = "os.execve('/bin/sleep', ['sleep', '600'], {})"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no way to find them")
@pytest.mark.parametrize("then", ["time.sleep(600)", CLEAN], ids=["a copy", "another program without variables"])
def test_a_daemon_does_not_outlive_the_program_that_made_it(tmp_path: Path, then: str) -> None:
    async def play() -> tuple[bytes, int, int]:
        command = [*PYTHON, DAEMON.format(then=then), str(tmp_path / "pid")]
        async with Process(command, cwd="/", env=dict(os.environ)) as process:
            output, code = await output_of(process)
            return output, code, process.ended_outside

    assert run_unhurried(play()) == (b"done\n", 0, 1)
    wait_until_dead(int((tmp_path / "pid").read_text().rstrip(".")))


def test_a_program_that_starts_daemon_after_daemon_is_ended_with_all_of_them(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "for number in range(20):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        open(f'{sys.argv[1]}/{os.getpid()}', 'w').close()\n"
        "        time.sleep(600)\n"
        "while len(os.listdir(sys.argv[1])) < 20: time.sleep(0.01)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )

    async def play() -> None:
        command = [*PYTHON, script, str(tmp_path)]
        async with Process(command, cwd="/", env=dict(os.environ)) as process:
            assert await process.read() == b"ready\n"
            await process.end()
            assert process.ended_outside == 20

    run_unhurried(play())
    for path in tmp_path.iterdir():
        wait_until_dead(int(path.name))


def test_a_program_has_the_environment_that_it_was_given_and_no_more() -> None:
    async def play() -> bytes:
        env = {"A": "1", "LANG": "C"}
        async with Process(["/usr/bin/env"], cwd="/", env=env) as process:
            return (await output_of(process))[0]

    assert sorted(run_unhurried(play()).split()) == [b"A=1", b"LANG=C"]


def test_a_cancelled_block_ends_the_program() -> None:
    pids = []

    async def play() -> None:
        async def work() -> None:
            script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
            async with Process([*PYTHON, script], cwd="/", env={}) as process:
                pids.append(int(await process.read()))
                await process.wait()

        task = asyncio.create_task(work())
        while not pids:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    wait_until_dead(pids[0])


def test_a_block_that_is_cancelled_twice_kills_at_once() -> None:
    pids = []

    async def play() -> None:
        async def work() -> None:
            script = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""
            async with Process([*PYTHON, script], cwd="/", env={}) as process:
                pids.append(int(await process.read()))
                await process.wait()

        task = asyncio.create_task(work())
        while not pids:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.05)
        begun = asyncio.get_running_loop().time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() - begun < GRACE_S / 2

    run_unhurried(play())
    wait_until_dead(pids[0])


@pytest.mark.parametrize(
    ("command", "cwd"), [(["/no/such/program"], "/"), ([sys.executable], "/no/such/directory"), (["/"], "/")]
)
def test_a_program_that_cannot_be_started_is_an_error_of_the_system(command: list[str], cwd: str) -> None:
    async def play() -> None:
        async with Process(command, cwd=cwd, env={}):
            raise AssertionError("it was started")

    with pytest.raises(OSError, match=r".+"):
        asyncio.run(play())


def test_many_programs_leave_no_descriptors_behind() -> None:
    async def play() -> int:
        async def one() -> None:
            async with Process(["/bin/true"], cwd="/", env={}) as process:
                await output_of(process)

        await asyncio.gather(*[one() for _ in range(10)])
        before = len(os.listdir("/proc/self/fd"))
        await asyncio.gather(*[one() for _ in range(40)])
        return len(os.listdir("/proc/self/fd")) - before

    assert asyncio.run(play()) <= 0


def test_signals_to_the_supervisor_end_neither_it_nor_the_program() -> None:
    script = (
        "import os, signal\n"
        "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):\n"
        "    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler), number\n"
        "    os.kill(os.getppid(), number)\n"
        "print('done')\n"
    )

    async def scenario(process: Process) -> tuple[tuple[bytes, int], int | None]:
        return await output_of(process), process.left_outside

    assert running(script, scenario) == ((b"done\n", 0), 0)


async def stopped(process: Process) -> int:
    """Do what a program can: stop its supervisor. The number of the program."""
    pid = int(await process.read())
    assert process._popen is not None
    os.kill(process._popen.pid, signal.SIGSTOP)
    return pid


WAITING = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"


def test_a_program_whose_supervisor_is_stopped_is_ended_with_its_run() -> None:
    async def scenario(process: Process) -> tuple[int, Process]:
        return await stopped(process), process

    pid, process = running(WAITING, scenario)
    wait_until_dead(pid)
    assert process.ended
    assert process.left_outside == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no signal for that")
def test_a_program_that_stops_its_supervisor_again_and_again_is_killed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # A supervisor that nothing wakes is one that is stopped again before it can do anything.
    monkeypatch.setattr(Process, "_wake_supervisor", lambda self: None)
    monkeypatch.setattr(supervisor, "SWEEP_S", 0.1)
    turns = 0

    async def play() -> tuple[int, Process]:
        nonlocal turns
        async with Process([*PYTHON, WAITING], cwd="/", env={}) as process:
            pid = await stopped(process)
            ending = asyncio.create_task(process.end(0.1))
            while not ending.done():
                turns += 1
                await asyncio.sleep(0.01)
            await ending
        return pid, process

    pid, process = run_unhurried(play())
    wait_until_dead(pid)
    assert process.ended
    assert process.left_outside is None
    assert turns > 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no signal for that")
def test_what_a_program_left_is_not_known_when_it_killed_its_supervisor(tmp_path: Path) -> None:
    async def scenario(process: Process) -> Process:
        await output_of(process)
        return process

    script = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)"
    process = running(script, scenario)
    (note,) = RunFiles(tmp_path, process=process).notes
    assert note.code == "processes_left"
    assert "not known" in note.message
