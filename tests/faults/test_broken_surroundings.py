"""Stores that are locked or full, clocks that jump, subscribers that hardly read, and very many that only wait."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

from strategies.databases import mounted_disk

from faults.serving import Server, frames, stored_envelopes
from seatrial.store import open_store


def fill(ballast: Path) -> None:
    """Leave no room on a disk."""
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def rss_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no such process")


def follow(server: Server, run_id: str) -> tuple[list[int], str]:
    """The sequences of a whole stream, and the status that it ended with."""
    sequences: list[int] = []
    with server.connect(f"/v1/runs/{run_id}/stream") as connection:
        for sequence, frame in frames(connection):
            if sequence is not None:
                sequences.append(sequence)
            elif frame["type"] == "TERMINAL":
                return sequences, str(frame["status"])
    raise AssertionError(f"the stream ended without TERMINAL, after {len(sequences)} events")


def test_a_store_that_is_locked_for_a_while_delays_a_run_and_loses_nothing(tmp_path: Path, soaking: bool) -> None:
    locked_s = 5.0 if soaking else 2.0
    where = tmp_path / "store.db"
    with Server(tmp_path, str(where)) as server:
        run_id = server.begin_talk(100, 0.01)
        time.sleep(0.3)
        intruder = sqlite3.connect(where, isolation_level=None)
        intruder.execute("BEGIN EXCLUSIVE")
        unlock = threading.Timer(locked_s, lambda: None)
        unlock.start()
        unlock.join()
        intruder.execute("ROLLBACK")
        intruder.close()
        assert server.wait_ended(run_id)["status"] == "completed"
        sequences, status = follow(server, run_id)
    with open_store(where) as store:
        assert sequences == list(range(len(stored_envelopes(store, run_id))))
    assert status == "completed"


def test_a_full_disk_refuses_new_runs_and_the_service_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with mounted_disk(tmp_path / "disk", 4) as disk:
        ballast = disk / "ballast"
        with Server(tmp_path, str(disk / "store.db")) as server:
            before = server.begin_talk(20, 0.0)
            assert server.wait_ended(before)["status"] == "completed"
            running = server.begin_talk(300, 0.01)
            fill(ballast)
            refused = []
            for _ in range(100):
                status, answer = server.ask(
                    "POST",
                    "/v1/runs",
                    {
                        "agent": "talker",
                        "input": {"messages": [{"id": "u", "role": "user", "content": "10 0" + " " * 20_000}]},
                    },
                )
                if status != 202:
                    refused.append((status, answer["code"]))
                    break
            assert refused == [(503, "store_full")]
            # What is there can still be read.
            assert follow(server, before)[1] == "completed"
            ballast.unlink()
            assert server.wait_ended(running)["status"] in ("completed", "failed")
            again = server.begin_talk(20, 0.0)
            assert server.wait_ended(again)["status"] == "completed"
            assert follow(server, again)[1] == "completed"


JUMPY = """
import sys, time
real, real_ns, began = time.time, time.time_ns, time.monotonic()

def offset():
    # A day ahead, two days back, and right again, all within the first seconds.
    return (0, 86_400, -86_400)[int((time.monotonic() - began) * 2) % 3]

time.time = lambda: real() + offset()
time.time_ns = lambda: real_ns() + offset() * 1_000_000_000
from seatrial.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_clock_that_jumps_breaks_no_run_and_no_stream(tmp_path: Path) -> None:
    jumpy = tmp_path / "jumpy.py"
    jumpy.write_text(JUMPY)
    program = [sys.executable, str(jumpy)]
    with Server(tmp_path, str(tmp_path / "store.db"), program=program, options=["--keepalive-s", "0.2"]) as server:
        runs = [server.begin_talk(60, 0.05) for _ in range(5)]
        for run_id in runs:
            sequences, status = follow(server, run_id)
            assert (sequences, status) == (list(range(66)), "completed")
            run = server.ask("GET", f"/v1/runs/{run_id}")[1]
            assert run["status"] == "completed"
        # In the order in which they were asked for, or not: each is listed once.
        listed = [run["runId"] for run in server.ask("GET", "/v1/runs")[1]["runs"]]
        assert sorted(listed) == sorted(runs)


def test_a_subscriber_that_reads_one_byte_a_second_does_not_slow_the_others(tmp_path: Path, soaking: bool) -> None:
    words = 20_000 if soaking else 6_000
    options = ["--send-timeout-s", "3"]
    with Server(tmp_path, str(tmp_path / "store.db"), options=options) as server:
        run_id = server.begin_talk(words, 0.0001)
        slow = [server.connect(f"/v1/runs/{run_id}/stream", receive_buffer=4096) for _ in range(20)]
        stop = threading.Event()

        def sip() -> None:
            while not stop.wait(1.0):
                for connection in slow:
                    connection.recv(1)

        sipping = threading.Thread(target=sip)
        sipping.start()
        try:
            sequences, status = follow(server, run_id)
            assert status == "completed"
            assert sequences == list(range(words + 6))
            assert rss_megabytes(server.pid) < 200
            deadline = time.monotonic() + 120
            while (subscribers := metric(server, "seatrial_subscribers")) > 0 and time.monotonic() < deadline:
                time.sleep(0.2)
            assert subscribers == 0, "those who hardly read are still connected"
        finally:
            stop.set()
            sipping.join()
        # The slow one goes on behind the last event that it looks at; what else the system still holds for it is lost.
        last = max(sequence for sequence, _ in islice(frames(slow[0]), 20) if sequence is not None)
        with server.connect(f"/v1/runs/{run_id}/stream", Last_Event_ID=f"{run_id}:{last}") as resumed:
            rest = [sequence for sequence, _ in frames(resumed) if sequence is not None]
        assert rest == list(range(last + 1, words + 6))
        for connection in slow:
            connection.close()


def metric(server: Server, name: str) -> float:
    import urllib.request

    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def test_very_many_idle_subscribers_cost_little_and_all_hear_the_end(tmp_path: Path, soaking: bool) -> None:
    import resource

    count = 10_000 if soaking else 500
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(count * 2 + 500, 1024)), most))
    with Server(tmp_path, str(tmp_path / "store.db"), options=["--keepalive-s", "2", "--rate", "0"]) as server:
        status, run = server.ask("POST", "/v1/runs", {"agent": "outside", "push": True})
        assert status == 202
        path = f"/v1/runs/{run['runId']}/stream"
        before = rss_megabytes(server.pid)
        everyone = [server.connect(path) for _ in range(count)]
        deadline = time.monotonic() + 120
        while metric(server, "seatrial_subscribers") < count and time.monotonic() < deadline:
            time.sleep(0.2)
        assert metric(server, "seatrial_subscribers") == count
        assert (rss_megabytes(server.pid) - before) * 1024 / count < 60, "kilobytes for each subscriber"
        time.sleep(3)  # a keepalive for everyone
        body = {"events": [{"type": "RUN_FINISHED", "threadId": run["threadId"], "runId": run["runId"]}]}
        assert server.ask("POST", f"/v1/runs/{run['runId']}/events", body)[0] == 200
        for connection in everyone:
            seen = [frame.get("type") or frame["event"]["type"] for _, frame in frames(connection)]
            assert [name for name in seen if name != "KEEPALIVE"] == ["RUN_STARTED", "RUN_FINISHED", "TERMINAL"]
            connection.close()
