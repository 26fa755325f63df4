"""What there is to measure, each in a process of its own."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from inspect import getdoc
from multiprocessing import get_context

from bench.figure import Figure, Level

SUBJECTS = (
    *("agent_responses", "trajectories", "trajectory_growth", "event_codec", "event_fold", "startup"),
    *(
        "trials",
        "python_api",
        "looking",
        "pages",
        "http_agents",
        "batch_cli",
        "many_runs",
        "append",
        "store_growth",
        "large_answers",
        "endless_agents",
    ),
    *("fan_out", "stream_latency", "resume_latency", "executors"),
)
"""Modules with a `measure()`, and a docstring that says what is compared with what."""


def measure(subject: str) -> tuple[str, list[Figure | Level]]:
    """The docstring and the figures of a subject; `ModuleNotFoundError` when a peer is not installed.

    A fresh process, because what one subject imports and leaves behind in memory would slow the next.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_measure, subject).result()


def _measure(subject: str) -> tuple[str, list[Figure | Level]]:
    module = import_module(f"bench.{subject}")
    return getdoc(module) or "", module.measure()
