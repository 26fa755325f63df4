"""Ctrl-C and SIGTERM on real commands, while something hangs that cannot be made to end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from strategies.command import Started

from seatrial.store import open_store

CREW = '''
import asyncio, atexit, concurrent.futures, os, re, sys, threading, time
from pathlib import Path

def hangs():
    """Say that it is going to hang; once the test takes the file away that asks for it, nothing does."""
    if os.path.exists("hang"):
        Path("hanging").touch()
        return True
    return False

def plain(case_id):
    return "ok"

def in_thread(case_id):
    if case_id == "hangs" and hangs():
        time.sleep(3600)
    return "ok"

async def blocks_the_loop(case_id):
    if case_id == "hangs" and hangs():
        time.sleep(3600)
    return "ok"

async def blocks_the_server(instruction):
    if hangs():
        time.sleep(3600)
    return "ok"

async def spins_in_the_loop(case_id):
    while case_id == "hangs" and hangs():
        pass
    return "ok"

async def swallows_cancellation(case_id):
    while case_id == "hangs" and hangs():
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
    return "ok"

async def in_the_loops_executor(case_id):
    if case_id == "hangs" and hangs():
        await asyncio.to_thread(time.sleep, 3600)
    return "ok"

pool = concurrent.futures.ThreadPoolExecutor()

async def in_an_executor_of_its_own(case_id):
    if case_id == "hangs" and hangs():
        await asyncio.wrap_future(pool.submit(time.sleep, 3600))
    return "ok"

def never_cleaned_up(case_id):
    try:
        yield "ok"
        while case_id == "hangs" and hangs():
            yield "x"
            time.sleep(0.01)
    finally:
        while case_id == "hangs":
            time.sleep(1)

def never_cleaned_up_in_a_server(instruction):
    yield from never_cleaned_up("hangs")

kept = []

def left_to_python(case_id):
    kept.append(never_cleaned_up("hangs"))
    return next(kept[-1])

def registered(case_id):
    atexit.register(time.sleep, 3600)
    return "ok"

def backtracks():
    """A call to C that keeps the interpreter lock for years."""
    return re.match("(a+)+$", "a" * 200 + "!")

def keeps_the_lock(case_id):
    if case_id == "hangs" and hangs():
        while not os.path.exists("seize"):
            time.sleep(0.01)
        Path("seized").touch()
        backtracks()
    return "ok"

async def keeps_the_lock_in_the_loop(case_id):
    while case_id == "hangs" and hangs() and not os.path.exists("seize"):
        await asyncio.sleep(0.01)
    return keeps_the_lock(case_id)

async def keeps_the_lock_of_the_server(instruction):
    return keeps_the_lock("hangs")

def check_that_keeps_the_lock(subject):
    keeps_the_lock(subject.case.id)
    return True

ERRORS = {
    kind.__name__: kind for kind in (GeneratorExit, KeyboardInterrupt, SystemExit, asyncio.CancelledError)
}

def raises(case_id):
    raise ERRORS[case_id]

async def raises_async(case_id):
    raise ERRORS[case_id]

def raises_in_a_generator(case_id):
    yield "a"
    raise ERRORS[case_id]

async def raises_in_an_async_generator(case_id):
    yield "a"
    raise ERRORS[case_id]

async def raises_in_a_task(case_id):
    # asyncio closes whoever waits for a task that raised GeneratorExit: nothing can be made of that.
    await (raises_async(case_id) if case_id == "GeneratorExit" else asyncio.create_task(raises_async(case_id)))

async def raises_in_the_server(instruction):
    await raises_in_a_task(instruction)

def check_that_raises(subject):
    raise ERRORS[subject.case.id]

async def async_check_that_raises(subject):
    await raises_in_a_task(subject.case.id)

async def stops_the_loop(case_id):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "ok"

def lowers_the_recursion_limit(case_id):
    sys.setrecursionlimit(60)
    return "ok"

async def lowers_the_recursion_limit_in_the_loop(case_id):
    sys.setrecursionlimit(100)
    return "ok"

async def cancels_all_tasks(case_id):
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    return "ok"

def endless_text(case_id):
    return "a" * 99_000 + "!" if case_id == "hangs" and hangs() else "ok"

def check(subject):
    if subject.case.id == "hangs" and hangs():
        time.sleep(3600)
    return True

async def async_check(subject):
    return check(subject)

def spinning_check(subject):
    while subject.case.id == "hangs" and hangs():
        pass
    return True
'''

CHECK = """
cat > subject.json
if test -e hang && grep -q '"id":"hangs"' subject.json; then touch hanging; sleep 3600; fi
echo true
"""

HANGING: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "an agent in its thread": ("in_thread", []),
    "an async agent that blocks": ("blocks_the_loop", []),
    "an async agent that computes": ("spins_in_the_loop", []),
    "an agent that swallows its cancellation": ("swallows_cancellation", []),
    "an agent in a thread of asyncio": ("in_the_loops_executor", []),
    "an agent in a thread of its own": ("in_an_executor_of_its_own", []),
    "a pattern": ("endless_text", [{"kind": "regex", "pattern": "^(a+)+$|ok", "timeout_s": 3600}]),
    "a function that grades": ("plain", [{"kind": "python", "target": "crew:check", "timeout_s": 3600}]),
    "an async function that grades": ("plain", [{"kind": "python", "target": "crew:async_check", "timeout_s": 3600}]),
    "a function that computes": ("plain", [{"kind": "python", "target": "crew:spinning_check", "timeout_s": 3600}]),
    "a command that grades": ("plain", [{"kind": "code", "command": ["sh", "check.sh"], "timeout_s": 3600}]),
}


@pytest.fixture(autouse=True)
def harbour(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copy(empty_store, tmp_path / "runs.db")
    (tmp_path / "crew.py").write_text(CREW)
    (tmp_path / "check.sh").write_text(CHECK)
    (tmp_path / "hang").touch()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    while _started:
        process = _started.pop()
        process.kill()
        process.communicate(timeout=120)


def write_suite(target: str, graders: list[dict[str, Any]], **keys: object) -> None:
    suite = {
        "agents": {"crew": {"kind": "python", "target": f"crew:{target}"}},
        "graders": [{"kind": "regex", "pattern": "^."}, *graders],
        "cases": [{"id": "first", "instruction": "x"}, {"id": "hangs", "instruction": "x"}],
        "concurrency": 1,
        **keys,
    }
    Path("s.suite.yaml").write_text(json.dumps(suite))  # JSON is YAML, too


_started: list[Started] = []


def start(*words: str) -> Started:
    process = Started(*words, "--store", "runs.db")
    _started.append(process)
    return process


def wait_for(path: str, process: Started) -> None:
    deadline = time.monotonic() + 120
    while not os.path.exists(path):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stored() -> tuple[str, dict[str, str]]:
    """The status of the latest experiment, and the outcome of each case."""
    with open_store("runs.db", create=False) as store:
        experiment = store.resolve_experiment("latest")
        rows = store.runs(experiment.experiment_id)
    return experiment.status, {row.key.case_id: row.outcome for row in rows}


@pytest.mark.parametrize("what", list(HANGING))
def test_sigterm_ends_a_run_whatever_hangs_and_loses_nothing_that_had_finished(what: str) -> None:
    write_suite(*HANGING[what])
    process = start("run", "s.suite.yaml", "--grace-s", "0.2")
    wait_for("hanging", process)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, stderr
    assert "Traceback" not in stderr
    assert stored() == ("stopped", {"first": "passed"}), stderr
    assert "continue with\n  seatrial run s.suite.yaml --resume" in stdout + stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait_for_the_grace(number: signal.Signals) -> None:
    write_suite("in_thread", [])
    process = start("run", "s.suite.yaml", "--grace-s", "3600")
    wait_for("hanging", process)
    process.send_signal(number)
    assert process.stderr is not None
    while "waiting up to 3600 s" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert stored() == ("stopped", {"first": "passed"})


def test_what_finishes_within_the_grace_is_kept(harbour: Path) -> None:
    write_suite("in_thread", [], cases=[{"id": name, "instruction": "x"} for name in ("first", "hangs", "third")])
    text = CREW.replace("        time.sleep(3600)", "        while os.path.exists('hang'): time.sleep(0.01)", 1)
    (harbour / "crew.py").write_text(text)
    process = start("run", "s.suite.yaml", "--grace-s", "3600")
    wait_for("hanging", process)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    while "waiting up to" not in process.stderr.readline():
        assert process.poll() is None
    Path("hang").unlink()
    stdout, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "stopped after 2 of 3 runs: terminated; continue with" in stdout
    assert stored() == ("stopped", {"first": "passed", "hangs": "passed"})


@pytest.mark.parametrize(
    "what",
    ["a function that grades", "an async function that grades", "a function that computes", "a command that grades"],
)
def test_sigterm_ends_grading_again_and_the_same_command_grades_the_rest(what: str) -> None:
    write_suite("plain", [])
    assert start("run", "s.suite.yaml").wait(timeout=120) == 0
    write_suite(*HANGING[what])
    process = start("grade", "latest", "--suite", "s.suite.yaml", "--grace-s", "0.2")
    wait_for("hanging", process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, stderr
    assert "Traceback" not in stderr
    Path("hang").unlink()
    assert start("grade", "latest", "--suite", "s.suite.yaml").wait(timeout=120) == 0


def test_a_grader_that_hangs_costs_its_own_run_and_the_command_ends() -> None:
    # The other case has no time limit that a busy machine could reach.
    hanging = {
        "id": "hangs",
        "instruction": "x",
        "graders": [{**HANGING["a function that grades"][1][0], "timeout_s": 0.5}],
    }
    write_suite("plain", [], cases=[{"id": "first", "instruction": "x"}, hanging])
    process = start("run", "s.suite.yaml")
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 3, stderr
    assert "longer than 0.5 s" in stdout
    assert stored() == ("finished", {"first": "passed", "hangs": "errored"})


@pytest.mark.parametrize(
    "target", ["in_thread", "in_the_loops_executor", "in_an_executor_of_its_own", "never_cleaned_up"]
)
def test_threads_that_an_agent_leaves_behind_do_not_keep_the_command(target: str) -> None:
    # The other case has no time limit that a busy machine could reach.
    write_suite(
        target, [], cases=[{"id": "first", "instruction": "x"}, {"id": "hangs", "instruction": "x", "timeout_s": 0.5}]
    )
    process = start("run", "s.suite.yaml")
    _, stderr = process.communicate(timeout=120)
    assert process.returncode in (1, 3), stderr
    status, outcomes = stored()
    assert (status, outcomes["first"], outcomes["hangs"] != "passed") == ("finished", "passed", True)
    assert "threads of agents or graders did not end, and are left: " in stderr
    assert ("1 of crew:" in stderr) == (target in ("in_thread", "never_cleaned_up")), stderr


@pytest.mark.parametrize("target", ["left_to_python", "registered"])
def test_what_an_agent_leaves_to_the_end_of_the_process_does_not_keep_the_command(target: str) -> None:
    write_suite(target, [])
    process = start("run", "s.suite.yaml")
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert stored() == ("finished", {"first": "passed", "hangs": "passed"})


def test_sigterm_ends_a_server_that_a_generator_does_not_leave() -> None:
    write_suite("never_cleaned_up_in_a_server", [], timeouts={"run_s": 1})
    process = start("serve", "s.suite.yaml", "--port", "0", "--drain-s", "1", "--json")
    ask_a_server_to_hang(process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert "1 of crew:never_cleaned_up_in_a_server" in stderr


def ask_a_server_to_hang(process: Started) -> None:
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    asked = {"agent": "crew", "input": {"messages": [{"id": "m1", "role": "user", "content": "x"}]}}
    request = urllib.request.Request(f"{url}/v1/runs", json.dumps(asked).encode(), {"Content-Type": "application/json"})

    def send() -> None:
        with suppress(OSError):  # it may hang before it has answered, and be killed
            urllib.request.urlopen(request, timeout=120).close()

    threading.Thread(target=send, daemon=True).start()
    wait_for("hanging", process)


def test_sigterm_ends_a_server_whose_loop_an_agent_keeps() -> None:
    write_suite("blocks_the_server", [])
    process = start("serve", "s.suite.yaml", "--port", "0", "--drain-s", "1", "--json")
    ask_a_server_to_hang(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM


KEEPING_THE_LOCK: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "an agent": ("keeps_the_lock", []),
    "an async agent": ("keeps_the_lock_in_the_loop", []),
    "a function that grades": (
        "plain",
        [{"kind": "python", "target": "crew:check_that_keeps_the_lock", "timeout_s": 3600}],
    ),
}


def wait_until_the_first_run_is_stored() -> None:
    deadline = time.monotonic() + 120
    while "first" not in stored()[1]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killed(process: Started | subprocess.Popen[str], why: str = "it did not obey a signal to stop") -> str:
    """What a command said that was killed by its watchdog, which is gone, too: the pipes are closed."""
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, stderr
    assert "Traceback" not in stderr
    assert stderr.count(f"seatrial: killed, because {why}") == 1
    return stderr


IMPATIENT = """
import subprocess
import sys
from seatrial.cli import main, signals
signals.HELD_S = 10.0
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_in_which_nothing_runs_any_more_is_killed_without_a_signal() -> None:
    write_suite(*KEEPING_THE_LOCK["a function that grades"])
    Path("seize").touch()
    words = [sys.executable, "-c", IMPATIENT, "run", "s.suite.yaml", "--store", "runs.db"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "--resume" in killed(process, "nothing in it has run for minutes")
    assert stored()[1] == {"first": "passed"}


@pytest.mark.parametrize("what", list(KEEPING_THE_LOCK))
def test_a_run_that_no_python_code_can_stop_is_killed_and_can_be_resumed(what: str) -> None:
    write_suite(*KEEPING_THE_LOCK[what])
    process = start("run", "s.suite.yaml", "--grace-s", "3600")
    wait_for("hanging", process)
    wait_until_the_first_run_is_stored()
    Path("seize").touch()
    wait_for("seized", process)
    process.send_signal(signal.SIGTERM)
    stderr = killed(process)
    assert stored()[1] == {"first": "passed"}
    command = stderr.rpartition("continue with\n  seatrial ")[2].split("\n")[0].split()
    assert command[:3] == ["run", "s.suite.yaml", "--resume"]
    Path("hang").unlink()
    assert start(*command[: command.index("--store")]).wait(timeout=120) == 0
    assert stored() == ("finished", {"first": "passed", "hangs": "passed"})


def test_a_run_whose_stop_does_not_go_on_is_killed() -> None:
    write_suite("keeps_the_lock", [])
    process = start("run", "s.suite.yaml", "--grace-s", "1")
    wait_for("hanging", process)
    wait_until_the_first_run_is_stored()
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    while "waiting up to" not in process.stderr.readline():
        assert process.poll() is None
    Path("seize").touch()
    killed(process)
    assert stored()[1] == {"first": "passed"}


def test_grading_that_no_python_code_can_stop_is_killed_and_the_same_command_grades_the_rest() -> None:
    write_suite("plain", [])
    assert start("run", "s.suite.yaml").wait(timeout=120) == 0
    write_suite(*KEEPING_THE_LOCK["a function that grades"])
    Path("seize").touch()
    process = start("grade", "latest", "--suite", "s.suite.yaml")
    wait_for("seized", process)
    process.send_signal(signal.SIGTERM)
    assert "the same command grades the rest" in killed(process)
    Path("hang").unlink()
    assert start("grade", "latest", "--suite", "s.suite.yaml").wait(timeout=120) == 0


def test_a_server_that_no_python_code_can_stop_is_killed() -> None:
    write_suite("keeps_the_lock_of_the_server", [])
    Path("seize").touch()
    process = start("serve", "s.suite.yaml", "--port", "0", "--json")
    ask_a_server_to_hang(process)
    process.send_signal(signal.SIGTERM)
    assert "the next server on this store ends the runs that were active" in killed(process)


def watchdogs(process: Started) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if "watchdog.py" in Path(f"/proc/{child}/cmdline").read_text()]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_watchdog_does_not_outlive_a_command_that_is_killed() -> None:
    write_suite("in_thread", [])
    process = start("run", "s.suite.yaml")
    wait_for("hanging", process)
    [watchdog] = watchdogs(process)
    process.kill()
    process.communicate(timeout=120)  # to the end of the pipe, of which the watchdog has an end
    deadline = time.monotonic() + 120
    while os.path.exists(f"/proc/{watchdog}") and "Z" not in Path(f"/proc/{watchdog}/stat").read_text().split():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_command_that_ends_by_itself_leaves_no_watchdog() -> None:
    Path("hang").unlink()
    write_suite("plain", [])
    process = start("run", "s.suite.yaml")
    assert process.wait(timeout=120) == 0
    assert process.communicate(timeout=120)[1].count("killed") == 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_in_a_terminal_does_not_end_the_watchdog() -> None:
    write_suite("in_thread", [])
    process = start("run", "s.suite.yaml", "--grace-s", "3600")
    wait_for("hanging", process)
    [watchdog] = watchdogs(process)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(watchdog, number)
    assert watchdogs(process) == [watchdog]
    assert "Z" not in Path(f"/proc/{watchdog}/stat").read_text().split()


ERRORS = ["GeneratorExit", "KeyboardInterrupt", "SystemExit", "CancelledError"]
CASES = [{"id": name, "instruction": "x"} for name in ERRORS]


@pytest.mark.parametrize(
    "target",
    [
        "raises",
        "raises_async",
        "raises_in_a_generator",
        "raises_in_an_async_generator",
        "raises_in_a_task",
    ],
)
def test_an_agent_that_raises_what_ends_programs_has_failed_and_the_command_goes_on(target: str) -> None:
    write_suite(target, [], cases=CASES)
    process = start("run", "s.suite.yaml")
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr.count("Traceback")) == (1, 0), stderr
    assert stored() == ("finished", dict.fromkeys(ERRORS, "failed")), stdout


@pytest.mark.parametrize(
    "target", ["stops_the_loop", "lowers_the_recursion_limit", "lowers_the_recursion_limit_in_the_loop"]
)
def test_an_agent_that_changes_what_all_runs_share_does_not_end_the_command(target: str) -> None:
    write_suite(target, [], concurrency=4)
    process = start("run", "s.suite.yaml")
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr.count("Traceback")) == (0, 0), stderr
    assert stored() == ("finished", {"first": "passed", "hangs": "passed"})


def test_an_agent_that_cancels_all_tasks_ends_the_command_with_one_sentence() -> None:
    write_suite("cancels_all_tasks", [])
    process = start("run", "s.suite.yaml")
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr.count("Traceback")) == (3, 0), stderr
    assert "was cancelled, and not by Seatrial" in stderr
    assert "--resume" in stderr


@pytest.mark.parametrize("target", ["check_that_raises", "async_check_that_raises"])
def test_a_grader_that_raises_what_ends_programs_has_errored_and_the_command_goes_on(target: str) -> None:
    write_suite("plain", [{"kind": "python", "target": f"crew:{target}"}], cases=CASES)
    process = start("run", "s.suite.yaml")
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr.count("Traceback")) == (3, 0), stderr
    assert stored() == ("finished", dict.fromkeys(ERRORS, "errored")), stdout
    process = start("grade", "latest")
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr.count("Traceback")) == (3, 0), stderr


def test_a_server_outlives_an_agent_that_raises_what_ends_programs() -> None:
    write_suite("raises_in_the_server", [])
    process = start("serve", "s.suite.yaml", "--port", "0", "--json")
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    for name in ERRORS:
        asked = {"agent": "crew", "input": {"messages": [{"id": "m1", "role": "user", "content": name}]}}
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/v1/runs", json.dumps(asked).encode(), head)
        with urllib.request.urlopen(request, timeout=120) as response:
            run_id = json.load(response)["runId"]
        deadline = time.monotonic() + 120
        while (status := _status(url, run_id)) in ("pending", "running"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert status == "failed", name
    process.send_signal(signal.SIGINT)  # which is obeyed all the same
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr


def _status(url: str, run_id: str) -> str:
    with urllib.request.urlopen(f"{url}/v1/runs/{run_id}", timeout=120) as response:
        return str(json.load(response)["status"])
