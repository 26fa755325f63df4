"""The stack of the main thread is there before memory is used up."""

from __future__ import annotations

import resource
import subprocess
import sys

from seatrial._support.stack import STACK_BYTES

PROGRAM = """
from seatrial._support.stack import reserve_stack
try:
    reserve_stack()
except MemoryError:
    print("none left")
else:
    (line,) = [line for line in open("/proc/self/maps") if "[stack]" in line]
    first, last = line.split()[0].split("-")
    print(int(last, 16) - int(first, 16))
"""


def said_under(limit: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_where_memory_is_limited_the_stack_is_taken_before_others_use_it_up() -> None:
    assert int(said_under(1 << 30)) >= STACK_BYTES


def test_where_there_is_no_limit_nothing_is_taken() -> None:
    assert int(said_under(resource.RLIM_INFINITY)) < STACK_BYTES
