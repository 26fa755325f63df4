"""A function of the user's as a grader."""

from __future__ import annotations

import itertools
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from graders.subjects import grade, subject, verdict
from seatrial._support.excerpt import CUT_BEGINNING, MAX_DETAIL, MAX_TRACEBACK
from seatrial.runs import Verdict

_names = (f"user_checks_{number}" for number in itertools.count())


def judged(folder: Path, body: str, answer: str = "42", **keys: Any) -> Verdict:
    name = next(_names)  # a module of this process keeps its name
    (folder / f"{name}.py").write_text(body, encoding="utf-8")
    grader = {"kind": "python", "target": f"{name}:check", **keys}
    return verdict(subject(answer, expected="42"), grader, directory=folder)


def _module(name: str) -> object:
    return sys.modules.get(name)


@pytest.mark.parametrize(
    ("body", "outcome", "score"),
    [
        ("def check(subject): return subject.answer == subject.case.expected", "passed", 1.0),
        ("def check(subject): return False", "failed", 0.0),
        ("def check(subject): return 0.4", "failed", 0.4),
        ("async def check(subject): return {'passed': True, 'score': 0.9}", "passed", 0.9),
        ("import functools\nasync def real(subject): return True\ncheck = functools.partial(real)", "passed", 1.0),
        (
            "from seatrial.graders import Finding\ndef check(subject): return Finding(outcome='skipped')",
            "skipped",
            None,
        ),
    ],
)
def test_functions_may_say_it_in_many_ways(body: str, outcome: str, score: float | None, tmp_path: Path) -> None:
    found = judged(tmp_path, body)
    assert (found.outcome, found.score) == (outcome, score)


def test_arguments_reach_the_function(tmp_path: Path) -> None:
    body = "def check(subject, *, wanted): return subject.answer == wanted"
    assert judged(tmp_path, body, arguments={"wanted": "42"}).outcome == "passed"
    assert judged(tmp_path, body, arguments={"wanted": "43"}).outcome == "failed"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("def check(subject): return 1 / 0", "ZeroDivisionError"),
        ("async def check(subject): raise SystemExit(3)", "SystemExit"),
        ("def check(subject): raise SystemExit(3)", "SystemExit"),
        ("def check(subject): raise TimeoutError('mine')", "TimeoutError: mine"),
        ("def check(subject): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("async def check(subject): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def check(subject): raise GeneratorExit", "GeneratorExit"),
        ("async def check(subject): raise GeneratorExit", "GeneratorExit"),
        ("import asyncio\ndef check(subject): raise asyncio.CancelledError", "CancelledError"),
        ("import asyncio\nasync def check(subject): raise asyncio.CancelledError", "CancelledError"),
        (
            "import asyncio\nasync def part(): raise SystemExit(0)\n"
            "async def check(subject): await asyncio.create_task(part())",
            "SystemExit",
        ),
        ("def check(subject): return None", "gave no verdict"),
        ("def check(subject): return {'passd': True}", "passd"),
        ("def check(subject): return 7", "gave no verdict"),
        (
            "from seatrial.graders import Finding\ndef check(subject): return Finding(outcome='passed', score=2)",
            "from 0",
        ),
        (
            "from seatrial.graders import Finding\ndef check(subject): return Finding(outcome='fail')",
            "gave no verdict: at /outcome",
        ),
        (
            "from seatrial.graders import Finding\n"
            "def check(subject): return Finding(outcome='passed', score=float('nan'))",
            "from 0",
        ),
        ("def check(subject): return {'passed': True, 'score': 0.0}", "contradicts itself"),
        ("def check(subject): return {'passed': False, 'score': 1.0}", "contradicts itself"),
        ("def check(subject): return {'outcome': 'passed', 'score': 0}", "contradicts itself"),
        ("def check(subject): return {'passed': True, 'details': object()}", "a part that is not JSON"),
        ("check = 3", "is not a function"),
        ("def chekc(subject): return True", "did you mean `chekc`?"),
        ("raise ValueError('at import')", "at import"),
    ],
)
def test_whatever_goes_wrong_is_errored_and_says_why(body: str, told: str, tmp_path: Path) -> None:
    found = judged(tmp_path, body)
    assert found.outcome == "errored"
    assert told in found.reasons[0]


def test_a_traceback_is_kept(tmp_path: Path) -> None:
    found = judged(tmp_path, "def check(subject): return 1 / 0")
    assert "return 1 / 0" in found.details["traceback"]


@pytest.mark.parametrize("head", ["def", "async def"])
def test_what_an_exception_says_is_asked_for_once_and_cut_before_it_is_copied(tmp_path: Path, head: str) -> None:
    size = 20_000_000
    body = f"""
asked = []

class LongError(Exception):
    def __str__(self):
        asked.append(1)
        return "x" * {size}

{head} check(subject):
    raise LongError() from ValueError("y" * 100_000)
"""
    name = next(_names)
    (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
    grader = {"kind": "python", "target": f"{name}:check"}
    tracemalloc.start(1)
    try:
        found = verdict(subject(), grader, directory=tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2 * size
    finally:
        tracemalloc.stop()
    assert (found.outcome, len(sys.modules[name].asked)) == ("errored", 1)
    assert "LongError: xxx" in found.reasons[0]
    assert len(found.reasons[0]) <= len(f"`{name}:check` raised ") + MAX_DETAIL
    assert len(found.details["traceback"]) == len(CUT_BEGINNING) + MAX_TRACEBACK


def test_a_function_that_takes_too_long_is_errored(tmp_path: Path) -> None:
    body = "import asyncio\nasync def check(subject): await asyncio.sleep(60)"
    found = judged(tmp_path, body, timeout_s=0.05)
    assert found.outcome == "errored"
    assert "longer than 0.05 s" in found.reasons[0]


def test_a_function_that_never_returns_is_not_waited_for(tmp_path: Path) -> None:
    body = "import threading\nrelease = threading.Event()\nleft = []\n"
    (tmp_path / "endless_check.py").write_text(body + "def check(subject): left.append(release.wait(600))", "utf-8")
    grader = {"kind": "python", "target": "endless_check:check", "timeout_s": 0.05}
    found = verdict(subject(), grader, directory=tmp_path, begun=lambda: hasattr(_module("endless_check"), "check"))
    assert "longer than 0.05 s" in found.reasons[0]
    checks = sys.modules["endless_check"]
    assert checks.left == []  # it is still there, and nobody is
    checks.release.set()


@pytest.mark.parametrize(
    "body",
    [
        "def check(subject):\n    while True: pass",
        "async def check(subject):\n    while True: pass",
        "import time\nasync def check(subject): time.sleep(30)",
        "import threading\nthreading.Event().wait(30)\ndef check(subject): return True",
    ],
    ids=["a loop", "an async loop", "an async function that blocks", "an import"],
)
def test_whatever_keeps_a_function_from_ending_costs_its_own_verdict_alone(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.graders.user_code.RESPONSE_S", 0.3)
    found = judged(tmp_path, body, timeout_s=0.3)
    assert found.outcome == "errored"
    assert "longer than 0.3 s" in found.reasons[0]
    assert judged(tmp_path, "async def check(subject): return True").outcome == "passed"


def test_a_loop_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    body = "import threading\ndef check(subject):\n    global thread\n    thread = threading.current_thread()\n"
    (tmp_path / "spinning_check.py").write_text(body + "    while True: pass\n", "utf-8")
    grader = {"kind": "python", "target": "spinning_check:check", "timeout_s": 0.2}
    found = verdict(subject(), grader, directory=tmp_path, begun=lambda: hasattr(_module("spinning_check"), "thread"))
    assert found.outcome == "errored"
    thread = sys.modules["spinning_check"].thread
    thread.join(60)
    assert not thread.is_alive()


def test_an_async_function_that_keeps_its_loop_is_ended_and_others_in_it_go_on(tmp_path: Path) -> None:
    (tmp_path / "shared_loop_checks.py").write_text(
        "import asyncio\nfree = None\n"
        "async def waits(subject):\n    global free\n    free = asyncio.Event()\n"
        "    await free.wait()\n    return True\n"
        "async def blocks(subject):\n"
        "    while free is None: await asyncio.sleep(0.01)\n"
        "    asyncio.get_running_loop().call_later(0.01, free.set)\n"
        "    global spinning\n    spinning = True\n"
        "    while True: pass\n",
        "utf-8",
    )
    blocks = {"kind": "python", "target": "shared_loop_checks:blocks", "timeout_s": 0.3}
    waits = {"kind": "python", "target": "shared_loop_checks:waits", "timeout_s": 60}
    (blocked, waited), _ = grade(
        subject(), blocks, waits, directory=tmp_path, begun=lambda: hasattr(_module("shared_loop_checks"), "spinning")
    )
    assert (blocked.outcome, waited.outcome) == ("errored", "passed")


def test_async_functions_share_one_loop_so_that_their_clients_can_stay_connected(tmp_path: Path) -> None:
    body = (
        "import asyncio\nloops = set()\nasync def check(subject):\n    loops.add(asyncio.get_running_loop())\n"
        "    return len(loops) == 1"
    )
    (tmp_path / "one_loop_check.py").write_text(body, "utf-8")
    grader = {"kind": "python", "target": "one_loop_check:check"}
    for _ in range(2):
        assert verdict(subject(), grader, directory=tmp_path).outcome == "passed"
