"""A command as a grader, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agents.test_process import wait_until_dead

from graders.subjects import calls, grade, subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import GradingPlan, code


def program(folder: Path, text: str) -> dict[str, Any]:
    (folder / "check.py").write_text(text, encoding="utf-8")
    return {"kind": "code", "command": [sys.executable, "check.py"]}


def test_a_command_reads_the_run_and_prints_a_verdict(tmp_path: Path) -> None:
    text = (
        "import json, sys\n"
        "given = json.load(sys.stdin)\n"
        "names = [step['name'] for step in given['steps']]\n"
        "print(json.dumps({'passed': given['answer'] == given['case']['expected'], 'score': 0.5,\n"
        "    'reason': ' '.join(names), 'evidence': ['/answer'], 'details': sorted(given)}))\n"
    )
    run = subject("42", steps=calls("find", "look"), expected="42")
    found = verdict(run, program(tmp_path, text), directory=tmp_path)
    assert (found.outcome, found.score, found.reasons) == ("passed", 0.5, ["find look"])
    assert found.evidence == ["/answer"]
    assert found.details == ["answer", "case", "messages", "notes", "run", "steps"]
    assert found.duration_ms is not None
    assert found.duration_ms > 0


@pytest.mark.parametrize(
    ("printed", "outcome", "score"),
    [
        ("true", "passed", 1.0),
        ("false", "failed", 0.0),
        ("0.25", "failed", 0.25),
        ("1", "passed", 1.0),
        ('{"outcome": "skipped", "reason": "not for this case"}', "skipped", None),
    ],
)
def test_short_verdicts_are_taken_too(printed: str, outcome: str, score: float | None, tmp_path: Path) -> None:
    found = verdict(subject(), program(tmp_path, f"print({printed!r})"), directory=tmp_path)
    assert (found.outcome, found.score) == (outcome, score)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("print('passed')", "printed no verdict"),
        ("pass", "printed no verdict"),
        ("print('{}')", "needs `passed`"),
        ('print(\'{"passed": true, "scoer": 1}\')', "scoer"),
        ("print('{\"score\": 1.5}')", "printed no verdict"),
        ("print('2')", "printed no verdict"),
        ("print('true'); raise SystemExit(3)", "ended with 3"),
        ("import sys; print('boom', file=sys.stderr); raise SystemExit(1)", "stderr ends: boom"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "signal 15"),
        ('print(\'{"passed": true, "outcome": "passed"}\')', "not both"),
        ('print(\'{"passed": false, "passed": true}\')', "the key 'passed' occurs twice"),
        ('print(\'{"judgement": "passed"}\')', "its key is `outcome`"),
    ],
)
def test_bad_output_is_errored_and_the_case_with_it(text: str, told: str, tmp_path: Path) -> None:
    (found,), grade_ = grade(subject(), program(tmp_path, text), directory=tmp_path)
    assert (found.outcome, grade_.outcome) == ("errored", "errored")
    assert told in found.reasons[0]


def test_a_command_that_does_not_exist_is_errored(tmp_path: Path) -> None:
    found = verdict(subject(), {"kind": "code", "command": "./no-such-program"}, directory=tmp_path)
    assert found.outcome == "errored"
    assert "cannot be run" in found.reasons[0]


def test_a_hanging_command_is_ended_with_what_it_started(tmp_path: Path) -> None:
    text = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child:\n"
        "    print(os.getpid(), child, file=open('pids', 'w'), flush=True)\n"
        "time.sleep(600)\n"
    )
    written = tmp_path / "pids"
    begun = time.monotonic()
    found = verdict(
        subject(), {**program(tmp_path, text), "timeout_s": 0.2}, directory=tmp_path, begun=lambda: _has_line(written)
    )
    assert time.monotonic() - begun < 120
    assert found.outcome == "errored"
    assert "took longer than 0.2 s" in found.reasons[0]
    pids = written.read_text().split()
    assert len(pids) == 2
    for pid in pids:
        wait_until_dead(int(pid))


def _has_line(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def test_a_command_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_OUTPUT", 2**20)
    found = verdict(subject(), program(tmp_path, "while True: print('x' * 10000)"), directory=tmp_path)
    assert found.outcome == "errored"
    assert "printed more than 1 MiB" in found.reasons[0]


def test_pipes_are_let_go_of_whoever_still_holds_them(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print(child.pid, file=open('pids', 'a'), flush=True)\n"
        "print('true', flush=True)\n"
    )
    command = program(tmp_path, text)["command"]
    written = tmp_path / "pids"

    async def open_files() -> list[int]:
        counts = []
        for _ in range(2):
            async with asyncio.timeout(120):  # it does not wait for the end of whoever holds them
                ended = await code._run(command, b"{}", tmp_path, 5)
            assert ended.problem == "took longer than 5 s"
            await asyncio.sleep(0.05)
            counts.append(len(os.listdir("/proc/self/fd")))
        return counts

    try:
        before, after = asyncio.run(open_files())
        assert after == before
    finally:
        for pid in written.read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_a_command_need_not_read_its_input(tmp_path: Path) -> None:
    huge = subject("x" * 3_000_000)
    assert verdict(huge, program(tmp_path, "print('true')"), directory=tmp_path).outcome == "passed"


@pytest.mark.parametrize("command", ["", [], "unclosed 'quote", ["a\0b"]])
def test_a_command_that_names_no_program_is_refused(command: Any) -> None:
    with pytest.raises(SeatrialError) as caught:
        GradingPlan([{"kind": "code", "command": command}])
    assert caught.value.pointer == "/0/command"


def test_no_verdict_of_a_command_is_reused(tmp_path: Path) -> None:
    grader = program(tmp_path, "print('true')")
    first = verdict(subject(), grader, directory=tmp_path)
    assert first.key == ""
