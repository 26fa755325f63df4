"""`seatrial serve` as a process of its own, to be killed, stopped and started again; and raw streams from it."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strategies.command import Started

from seatrial.events import SseParser, envelope_head, parse_cursor
from seatrial.events.envelope import envelope_bytes
from seatrial.store import Store

READY_S = 180.0

AGENTS = '''
import asyncio

async def talk(instruction):
    """Says so many words with such a pause between them: `200 0.005`."""
    count, pause = instruction.split()
    yield {"type": "STEP_STARTED", "stepName": "talking"}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"}
    for number in range(int(count)):
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": f"word {number} "}
        if float(pause):
            await asyncio.sleep(float(pause))
    yield {"type": "TEXT_MESSAGE_END", "messageId": "m1"}
    yield {"type": "STEP_FINISHED", "stepName": "talking"}
'''
SUITE = {"agents": {"talker": {"kind": "python", "target": "fault_crew:talk", "concurrency": 200}}}


def free_port() -> int:
    """A port that nobody listens on; a server that is started again must find its subscribers at the same one.

    It is below those that the system gives to connections: one of them could have it before the server does.
    """
    for port in random.sample(range(20_000, 30_000), 50):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is no free port")


class Server:
    """A server on a store and a port, which can be started many times."""

    def __init__(
        self,
        directory: Path,
        store: str,
        *,
        port: int | None = None,
        options: Sequence[str] = (),
        program: Sequence[str] = (),
    ) -> None:
        self.port = free_port() if port is None else port
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = store
        self._directory = directory
        self._options = options
        self._program = program
        self._process: subprocess.Popen[bytes] | Started | None = None
        (directory / "fault_crew.py").write_text(AGENTS)
        (directory / "service.suite.yaml").write_text(json.dumps(SUITE))
        self.log = directory / f"serve-{self.port}.log"

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        with self.log.open("ab") as log:
            words = ["serve", "service.suite.yaml", "--store", self.store, "--port", str(self.port), *self._options]
            if self._program:
                self._process = subprocess.Popen([*self._program, *words], cwd=self._directory, stdout=log, stderr=log)
            else:
                self._process = Started(*words, cwd=self._directory, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=30):
                    return
            except OSError:  # an HTTP error is one, too
                pass
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"the server did not get ready:\n{self.log.read_text()[-3000:]}")

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(60)

    def stop(self, timeout_s: float = 90.0) -> int:
        """Ask it to end; the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout_s)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """One request: its status, and what the answer says."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def begin_talk(self, words: int, pause_s: float, **fields: object) -> str:
        """Ask for a run of the talker; its id."""
        message = {"id": "u1", "role": "user", "content": f"{words} {pause_s}"}
        status, run = self.ask("POST", "/v1/runs", {"agent": "talker", "input": {"messages": [message]}, **fields})
        assert status == 202, run
        return str(run["runId"])

    def wait_ended(self, run_id: str, timeout_s: float = 180.0) -> dict[str, Any]:
        """The run, once it has ended."""
        deadline = time.monotonic() + timeout_s
        while True:
            status, run = self.ask("GET", f"/v1/runs/{run_id}")
            assert status == 200, run
            if run["status"] not in ("pending", "running"):
                return dict(run)
            assert time.monotonic() < deadline, f"still {run['status']}"
            time.sleep(0.05)

    def connect(self, path: str, *, receive_buffer: int | None = None, **headers: str) -> socket.socket:
        """A connection on which a GET was sent."""
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(120)
        connection.connect(("127.0.0.1", self.port))
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection


def chunks(connection: socket.socket) -> Iterator[bytes]:
    """The body of a chunked answer, as it comes, until it ends or the connection does."""
    file = connection.makefile("rb")
    while file.readline() not in (b"\r\n", b""):
        pass
    while size := file.readline():
        if not (length := int(size, 16)):
            return
        data = file.read(length + 2)
        yield data[:-2]


def frames(connection: socket.socket) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """(sequence, JSON) of each frame of a stream; keepalives and the terminal frame have no sequence."""
    parser = SseParser()
    for chunk in chunks(connection):
        for frame in parser.feed(chunk):
            place = None if frame.id is None or frame.id.endswith(":end") else parse_cursor(frame.id).sequence
            yield place, json.loads(frame.data)


def stored_envelopes(store: Store, run_id: str) -> list[bytes]:
    """Every stored event of a run in its envelope."""
    head = store.run_head(run_id)
    opening = envelope_head(run_id, head.thread_id)
    found: list[bytes] = []
    after = -1
    while page := store.events(run_id, after=after):
        found += [envelope_bytes(opening, sequence, event) for sequence, event in page]
        after = page[-1][0]
    return found
