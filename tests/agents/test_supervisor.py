"""What a program under test does when Seatrial is killed: it ends, and all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.test_process import alive, wait_until_dead

# Runs a program that forks, once within its group and once out of it, and says the numbers of all that is to end.
KEEPER = """
import asyncio, os, sys
from seatrial.agents.cli.process import Process

SCRIPT = '''
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    outside = os.fork()
    if outside:
        print(os.getpid(), child, outside, flush=True)
    else:
        os.setsid()
time.sleep(60)
'''

async def main():
    program = [sys.executable, "-I", "-S", "-c", SCRIPT]
    async with Process(program, cwd="/", env={}) as process:
        print((await process.read()).decode().strip(), process._popen.pid, flush=True)
        await process.wait()

asyncio.run(main())
"""


def test_a_program_and_what_it_started_end_when_we_are_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", KEEPER], stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        numbers = [int(number) for number in keeper.stdout.readline().split()]
        assert len(numbers) == 4
        assert all(alive(number) for number in numbers)
        keeper.kill()
    for number in numbers:
        wait_until_dead(number)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no signal for that")
def test_a_program_does_not_outlive_its_supervisor() -> None:
    with subprocess.Popen([sys.executable, "-c", KEEPER], stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        program, *others, supervisor = [int(number) for number in keeper.stdout.readline().split()]
        os.kill(supervisor, signal.SIGKILL)
        wait_until_dead(program)
        assert keeper.wait(60) == 0, "its end is noticed"
        for number in others:
            os.kill(number, signal.SIGKILL)


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
