"""Async tests: each in a loop of its own, in which waits of milliseconds are safe: see `strategies.unhurried`."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from strategies.unhurried import run_unhurried


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    run_unhurried(asyncio.wait_for(pyfuncitem.obj(**arguments), 60))
    return True
