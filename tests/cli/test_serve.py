"""`seatrial serve` as a process: how it starts, refuses to, and ends."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from seatrial.cli import main
from seatrial.store import open_store

pytestmark = pytest.mark.usefixtures("logs_as_before")

SEATRIAL = str(Path(sys.executable).with_name("seatrial"))
AGENTS = """
import asyncio
import os

def greet(instruction):
    return f"you said {instruction}, and the word is {os.environ['WORD']}"

async def nap(instruction):
    while not os.path.exists(instruction):
        await asyncio.sleep(0.02)
    return "slept"
"""
SUITE = """
agents:
  greeter: {kind: python, target: "agents:greet"}
  sleeper: {kind: python, target: "agents:nap"}
  outside: {kind: cli, command: ["echo", "${WORD}"], batch: true}
cases:
  - {id: hello, instruction: Hello}
"""


@pytest.fixture
def suite(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(empty_store, tmp_path / "runs.db")
    (tmp_path / "agents.py").write_text(AGENTS)
    (tmp_path / "a.suite.yaml").write_text(SUITE)
    monkeypatch.setenv("WORD", "the-secret-word")
    return tmp_path / "a.suite.yaml"


class Server:
    def __init__(self, process: subprocess.Popen[str], url: str, errors: Path) -> None:
        self.process = process
        self.url = url
        self._errors = errors

    @property
    def log(self) -> str:
        return self._errors.read_text()

    def ask(self, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data), timeout=60) as response:
                return response.status, json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def start(self, agent: str, said: str) -> str:
        messages = [{"id": "m1", "role": "user", "content": said}]
        status, run = self.ask("/v1/runs", {"agent": agent, "input": {"messages": messages}})
        assert status == 202, run
        return str(run["runId"])

    def wait(self) -> int:
        return self.process.wait(timeout=90)


@contextmanager
def running(directory: Path, *arguments: str) -> Iterator[Server]:
    command = [SEATRIAL, "serve", *arguments, "--port", "0", "--store", str(directory / "runs.db")]
    errors = directory / "stderr"
    with errors.open("w") as stderr:
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = json.loads(line)["url"] if "--json" in arguments else line.partition(" at ")[2].split(" ")[0]
        assert url.startswith("http://"), (line, errors.read_text())
        yield Server(process, url, errors)
    finally:
        process.kill()
        process.communicate()


def opened(server: Server, path: str) -> Any:
    return urllib.request.urlopen(server.url + path, timeout=60)


def stopping(server: Server) -> None:
    """Wait until it takes nothing new."""
    deadline = time.monotonic() + 60
    while status_of(server, "/readyz") != 503:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def status_of(server: Server, path: str) -> int:
    try:
        with opened(server, path) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_agents_of_a_suite_are_served_with_its_variables_and_without_its_secrets(suite: Path) -> None:
    with running(suite.parent, suite.name, "--log-format", "json") as server:
        run_id = server.start("greeter", "ahoy")
        with opened(server, f"/v1/runs/{run_id}/stream") as stream:
            text = stream.read().decode()
        assert "you said ahoy, and the word is ${WORD}" in text
        assert '"status":"completed"' in text
        assert "outside is not served" in server.log
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    assert [line["run_id"] for line in lines if line["event"] == "run_ended"] == [run_id]
    assert any(line["event"] == "request" and line.get("of") == run_id for line in lines)
    for hidden in ("ahoy", "the-secret-word"):
        assert hidden not in server.log


class Shop(BaseHTTPRequestHandler):
    """An agent behind HTTP."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"final_response": f"sold to {task['input']['user_instruction']}"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def test_every_kind_of_agent_that_takes_one_case_at_a_time_can_be_served(suite: Path, tmp_path: Path) -> None:
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    Thread(target=shop.serve_forever, daemon=True).start()
    (tmp_path / "second").mkdir()
    with running(suite.parent, suite.name) as first:
        (tmp_path / "second" / "b.suite.yaml").write_text(f"""
agents:
  shop: {{kind: http, endpoint_url: "http://127.0.0.1:{shop.server_port}/"}}
  relay: {{kind: stream, url: "{first.url}/v1/agents/greeter/ag-ui"}}
  program: {{kind: cli, command: ["echo", "heard {{PROMPT}}"]}}
""")
        with running(tmp_path / "second", "b.suite.yaml") as second:
            for agent, expected in (("shop", "sold to ann"), ("relay", "you said ann, and"), ("program", "heard ann")):
                runs = [second.start(agent, "ann") for _ in range(3)]
                for run_id in runs:
                    with opened(second, f"/v1/runs/{run_id}/stream") as stream:
                        text = stream.read().decode()
                    assert expected in text
                    assert '"status":"completed"' in text
    shop.shutdown()
    shop.server_close()


def test_without_a_suite_runs_can_be_pushed(tmp_path: Path) -> None:
    with running(tmp_path, "--json") as server:
        status, run = server.ask("/v1/runs", {"agent": "anybody", "push": True})
        assert status == 202
        status, _ = server.ask(f"/v1/runs/{run['runId']}/events", {"events": [{"type": "RUN_ERROR", "message": "x"}]})
        assert status == 200
        assert server.ask("/v1/runs", {"agent": "anybody"})[0] == 404
        server.process.send_signal(signal.SIGINT)
        assert server.wait() == 0


def test_a_stop_lets_runs_finish_tells_others_to_come_back_and_takes_nothing_new(suite: Path) -> None:
    with running(suite.parent, suite.name, "--drain-s", "90") as server:
        status, pushed = server.ask("/v1/runs", {"agent": "anybody", "push": True})
        assert status == 202
        run_id = server.start("sleeper", "it is day")
        followed, left = (
            opened(server, f"/v1/runs/{run_id}/stream"),
            opened(server, f"/v1/runs/{pushed['runId']}/stream"),
        )
        assert status_of(server, "/readyz") == 200
        server.process.send_signal(signal.SIGTERM)
        stopping(server)
        assert status_of(server, "/healthz") == 200
        status, problem = server.ask("/v1/runs", {"agent": "greeter"})
        assert (status, problem["code"]) == (503, "shutting_down")
        (suite.parent / "it is day").touch()
        assert '"type":"TERMINAL"' in followed.read().decode()
        rest = left.read().decode()
        assert "TERMINAL" not in rest
        assert rest.rstrip().splitlines()[-1].startswith("retry: ")
        assert server.wait() == 0
    with open_store(suite.parent / "runs.db") as store:
        assert store.served_run(run_id).status == "completed"
        assert store.served_run(pushed["runId"]).status == "running"


def test_a_run_that_takes_too_long_to_finish_is_ended(suite: Path) -> None:
    with running(suite.parent, suite.name, "--drain-s", "0.2") as server:
        run_id = server.start("sleeper", "never")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    with open_store(suite.parent / "runs.db") as store:
        run = store.served_run(run_id)
    assert (run.status, run.error_code) == ("failed", "server_stopped")


def test_a_second_signal_ends_at_once_and_the_next_server_closes_what_was_left(suite: Path) -> None:
    with running(suite.parent, suite.name, "--drain-s", "600") as server:
        run_id = server.start("sleeper", "never")
        server.process.send_signal(signal.SIGTERM)
        stopping(server)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 90
    with running(suite.parent, suite.name) as server:
        with opened(server, f"/v1/runs/{run_id}/stream") as stream:
            text = stream.read().decode()
        assert text.count("RUN_ERROR") == 1
        assert '"type":"TERMINAL"' in text


def test_a_store_has_one_server_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path):
        assert main(["serve", "--port", "0", "--store", str(tmp_path / "runs.db")]) == 3
    assert "another server" in capsys.readouterr().err


def test_a_port_in_use_is_told_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["serve", "--port", port, "--store", str(tmp_path / "runs.db")]) == 3
    told = capsys.readouterr().err
    assert "in use" in told
    assert "0 takes any that is free" in told


def test_a_server_without_keys_does_not_listen_to_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "runs.db")
    assert main(["serve", "--host", "0.0.0.0", "--port", "0", "--store", store]) == 2
    assert "seatrial keys add" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["litestar", "uvicorn", "httptools", "prometheus_client"])
def test_what_is_not_installed_is_told_with_how_to_install_it(tmp_path: Path, missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from seatrial.cli import main; sys.exit(main(['serve']))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert f"needs {missing}" in ran.stderr
    assert "pip install '.[serve]'" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "70000"], "65535"),
        (["--allow-origin", "app.example.com"], "not an origin"),
        (["--keepalive-s", "0"], "keepalives"),
        (["--retention", "-1"], "0 days"),
        (["--rate", "nan"], "rate"),
        (["nothing.suite.yaml"], "nothing.suite.yaml"),
    ],
)
def test_an_option_that_cannot_be_used_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["serve", *arguments, "--store", str(tmp_path / "runs.db")]) in (2, 3)
    assert told in capsys.readouterr().err
