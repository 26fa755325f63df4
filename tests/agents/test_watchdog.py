"""What a program under test does when Seatrial is killed: it ends, and all that it started in its group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agents.test_process import alive, wait_until_dead
from seatrial.agents.watchdog import Watchdog

HOLDS_ON = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
)

# Runs a program that forks, and tells the numbers of all that is to end.
KEEPER = """
import asyncio, os, sys
from pathlib import Path
from seatrial.agents.process import Process
from seatrial.agents.watchdog import Watchdog

SCRIPT = '''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print(os.getpid(), child, flush=True)
time.sleep(60)
'''

async def main():
    with Watchdog() as watchdog:
        program = [sys.executable, "-I", "-S", "-c", SCRIPT]
        async with Process(program, cwd="/", env={}, watchdog=watchdog) as process:
            print((await process.read()).decode().strip(), watchdog._process.pid, flush=True)
            await process.wait()

asyncio.run(main())
"""


@pytest.fixture
def group() -> Iterator[int]:
    """A program in a group of its own that holds on to life."""
    command = [sys.executable, "-I", "-S", "-c", HOLDS_ON]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        yield program.pid
        with suppress(ProcessLookupError):
            program.kill()


def test_a_program_and_what_it_started_end_when_we_are_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", KEEPER], stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        numbers = [int(number) for number in keeper.stdout.readline().split()]
        assert len(numbers) == 3
        assert all(alive(number) for number in numbers)
        keeper.kill()
    for number in numbers:
        wait_until_dead(number)


def test_a_group_that_is_guarded_ends_with_its_watchdog(group: int) -> None:
    with Watchdog() as watchdog:
        watchdog.guard(group)
        time.sleep(0.1)
        assert alive(group)
    wait_until_dead(group)


def test_a_group_that_was_released_is_left_alone(group: int) -> None:
    with Watchdog() as watchdog:
        watchdog.guard(group)
        watchdog.release(group)
    assert alive(group)


def test_a_group_that_is_gone_is_no_trouble_and_the_others_end(group: int) -> None:
    with subprocess.Popen(["/bin/true"], start_new_session=True) as gone:
        pass
    with Watchdog() as watchdog:
        watchdog.guard(gone.pid)
        watchdog.guard(group)
    wait_until_dead(group)


def test_a_watchdog_that_was_killed_or_cannot_be_started_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch, group: int
) -> None:
    with Watchdog() as watchdog:
        assert watchdog._process is not None
        os.kill(watchdog._process.pid, signal.SIGKILL)
        wait_until_dead(watchdog._process.pid)
        watchdog.guard(group)
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    with Watchdog() as watchdog:
        watchdog.guard(group)
    assert alive(group)


@pytest.mark.parametrize("batch", [False, True])
def test_the_program_of_an_experiment_ends_when_the_experiment_is_killed(tmp_path: Path, batch: bool) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, time\nopen('started', 'a').write(f'{os.getpid()}\\n')\ntime.sleep(60)\n"
    )
    (tmp_path / "s.suite.yaml").write_text(
        f"agents: {{crew: {{kind: cli, command: [{sys.executable}, -I, -S, agent.py], batch: {str(batch).lower()}}}}}\n"
        "cases: [{id: a, instruction: Go.}]\ngraders: [{kind: contains, value: ok}]\n"
    )
    run = [sys.executable, "-c", "from seatrial.cli import main; raise SystemExit(main())", "run", "s.suite.yaml"]
    with subprocess.Popen([*run, "--quiet", "--store", "runs.db"], cwd=tmp_path) as seatrial:
        started = tmp_path / "started"
        end = time.monotonic() + 120
        while not (started.exists() and started.read_text().endswith("\n")):
            assert time.monotonic() < end
            time.sleep(0.01)
        seatrial.kill()
    wait_until_dead(int(started.read_text()))
