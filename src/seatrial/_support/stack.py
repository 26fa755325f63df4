"""The stack of the main thread, where memory is limited.

Linux enlarges it while the program runs. Once `ulimit -v` is used up it cannot be enlarged any more, and the program
dies with SIGSEGV in whatever call comes next, before anybody can say that there is no memory left.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

STACK_BYTES: Final = 2 << 20
"""How much is taken at the start. A run takes a tenth of it."""


def reserve_stack() -> None:
    """Take what the main thread will need of its stack, if there is a limit on memory: it is never given back.

    Raises `MemoryError` when not even that is left.
    """
    if sys.platform != "linux":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    with suppress(OSError), open("/proc/self/statm") as sizes:
        if int(sizes.read().split()[0]) * resource.getpagesize() + 2 * STACK_BYTES > limit:
            raise MemoryError
    import ctypes

    # What is passed by value is copied onto the stack.
    block = type("Block", (ctypes.Structure,), {"_fields_": [("content", ctypes.c_char * STACK_BYTES)]})
    ctypes.CDLL(None).getpid(block())
