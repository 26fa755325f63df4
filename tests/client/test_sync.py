"""The client without await: the same events, from any thread, and ends that are clean."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.scripted import HASTY, RUN, Place, script, serving_in_a_thread
from seatrial.client import SyncClient
from seatrial.errors import SeatrialError

EVENTS = script(6)


@pytest.fixture
def place() -> Iterator[Place]:
    with serving_in_a_thread(EVENTS) as place:
        yield place


def a_client(port: int) -> SyncClient:
    return SyncClient(f"http://127.0.0.1:{port}", **HASTY)


def threads() -> int:
    return threading.active_count()


def test_events_come_and_then_the_status(place: Place) -> None:
    before = threads()
    with a_client(place.port) as client, client.events(RUN, after=1) as stream:
        assert [envelope.sequence for envelope in stream] == [2, 3, 4, 5]
        assert (stream.status, stream.position, stream.connections, stream.duplicates) == ("completed", 5, 1, 0)
        assert (stream.run_id, stream.notes) == (RUN, [])
        assert b'"sequence":5' in stream.data
        assert list(stream) == []
    assert threads() == before


def test_every_request_of_the_async_client_is_there(place: Place) -> None:
    with a_client(place.desk_port) as client:
        assert client.create_run("shop", "hello").run_id == "r"
        assert client.run("r").run_id == "r"
        assert client.cancel("r").run_id == "r"
        place.desk.answers = [
            {"runs": []},
            {"threadId": "t", "runs": [], "messages": []},
            {"sequences": [], "head": 1},
            {"runId": "r", "threadId": "t", "events": []},
        ]
        assert client.runs(limit=3).runs == []
        assert client.thread("t").thread_id == "t"
        assert client.push("r", [{"type": "RAW", "event": 1}]).head == 1
        assert client.events_page("r", after=3).events == []


def test_it_needs_no_with_block(place: Place) -> None:
    before = threads()
    client = a_client(place.port)
    assert [envelope.sequence for envelope in client.events(RUN)] == list(range(6))
    client.close()
    client.close()
    assert threads() == before


def test_it_works_where_a_loop_is_running(place: Place) -> None:
    async def notebook() -> list[int]:
        with a_client(place.port) as client:
            return [envelope.sequence for envelope in client.events(RUN)]

    assert asyncio.run(notebook()) == list(range(6))


def test_errors_are_the_same(place: Place) -> None:
    place.service.first = 4
    with a_client(place.port) as client, pytest.raises(SeatrialError) as caught:
        list(client.events(RUN, after=0))
    assert (caught.value.code, caught.value.details) == ("cursor_expired", {"first": 4})


def test_a_closed_client_says_so(place: Place) -> None:
    with a_client(place.port) as client:
        stream = client.events(RUN)
        next(stream)
    stream.close()
    for use in (lambda: client.run("r"), lambda: list(client.events(RUN)), client.__enter__):
        with pytest.raises(SeatrialError) as caught:
            use()
        assert caught.value.message == "the client is closed"


def test_a_stream_that_is_left_can_be_taken_up(place: Place) -> None:
    with a_client(place.port) as client:
        found = []
        for envelope in (stream := client.events(RUN)):
            found.append(envelope.sequence)
            if envelope.sequence == 2:
                break
        found += [envelope.sequence for envelope in client.events(RUN, after=stream.position)]
    assert found == list(range(6))


def test_threads_may_share_a_client(place: Place) -> None:
    found: list[list[int]] = []
    with a_client(place.port) as client:

        def follow() -> None:
            found.append([envelope.sequence for envelope in client.events(RUN)])

        workers = [threading.Thread(target=follow) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert found == [list(range(6))] * 8


PROGRAM = """
import sys
from seatrial.client import SyncClient

stream = SyncClient(sys.argv[1]).events("run-1")
try:
    for envelope in stream:
        print(envelope.sequence, flush=True)
except KeyboardInterrupt:
    print("left behind", stream.position)
"""


def test_ctrl_c_interrupts_the_wait_and_the_program_ends_without_a_sound(place: Place, tmp_path: Path) -> None:
    place.service.events, place.service.status = EVENTS[:2], None
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", str(program), f"http://127.0.0.1:{place.port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    assert [process.stdout.readline(), process.stdout.readline()] == ["0\n", "1\n"]
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "left behind 1\n", "")
