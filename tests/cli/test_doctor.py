"""`seatrial doctor`: what is wrong with a suite, and whether its agents answer."""

from __future__ import annotations

import json
import re
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from seatrial.cli.main import main

SECRET = "s3cr3t-v4lu3"
GRADER = "graders: [{kind: contains, value: hi}]"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "doctors_agent", raising=False)
    Path("doctors_agent.py").write_text("def answer(instruction): return instruction\n")


def doctor(text: str, *options: str) -> int:
    Path("s.yaml").write_text(text)
    return main(["doctor", "s.yaml", *options])


def test_a_suite_that_can_be_run_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        f"agents: {{mine: {{kind: python, target: 'doctors_agent:answer'}}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n"
    )
    assert doctor(text, "--deep") == 0
    assert capsys.readouterr().out == ("s.yaml: 1 case, 1 agent, 1 grader for every case\n  mine: ok, can be started\n")


@pytest.mark.parametrize(
    "text",
    [
        "agents: {a: {kind: python, target: 'side_effect:answer', infrastructure_errors: [side_effect.Oops]}}\n"
        "graders: [{kind: python, target: 'side_effect:judge'}]\ncases: [{instruction: hi, input: {a: 1}}]\n",
        "agents: {a: {kind: 'side_effect:Kind'}, b: {kind: replay, path: ., format: 'side_effect:Format'}}\n"
        "graders: [{kind: 'side_effect:Grader'}]\ncases: [{instruction: hi}, {from: 'side_effect:cases'}]\n",
        "agents: {a: {kind: 'side_effect:Kind'}}\n"
        "graders: [{kind: 'side_effect:Grader'}]\ncases: [{instruction: hi}]\n",
    ],
)
def test_no_code_of_the_suite_is_imported_unless_asked_for(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "side_effect", raising=False)
    Path("side_effect.py").write_text("open('IMPORTED', 'w').close()\n")
    assert doctor(text) == 0
    assert "a: ok, not imported: `--deep` imports it" in capsys.readouterr().out
    assert not Path("IMPORTED").exists()
    assert doctor(text, "--deep") != 0
    assert Path("IMPORTED").exists()


def test_doctor_and_run_tell_the_same_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor("agents: {mine: {kind: pyton}}\ncases: [{instrution: hi}]\n") == 2
    told = capsys.readouterr().out
    assert main(["run", "s.yaml"]) == 2
    assert told.strip() in capsys.readouterr().err
    assert "s.yaml:1:17: unknown kind `pyton` (did you mean `python`?)" in told
    assert not Path("seatrial.db").exists()


def test_an_agent_that_is_not_there_is_named_without_its_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    away = "{kind: http, endpoint_url: 'http://127.0.0.1:9/${SHOP_TOKEN}', auth_credential_value: '${SHOP_TOKEN}'}"
    assert doctor(f"agents: {{shop: {away}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n") == 3
    out, err = capsys.readouterr()
    assert "shop: not ready, 127.0.0.1:9: no connection to the agent (" in out
    assert "Connect call failed" in out or "refused" in out.lower()
    assert SECRET not in out + err


def test_nobody_is_asked_offline() -> None:
    away = "{kind: http, endpoint_url: 'http://127.0.0.1:9/'}"
    assert doctor(f"agents: {{shop: {away}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n", "--offline") == 0


def test_deep_imports_what_the_suite_names_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        f"agents: {{mine: {{kind: python, target: 'doctors_agent:answr'}}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n"
    )
    assert doctor(text, "--offline") == 0
    assert doctor(text, "--offline", "--deep") == 2
    assert "`doctors_agent` has no `answr` (did you mean `answer`?)" in capsys.readouterr().out


MINE = "agents: {mine: {kind: python, target: 'doctors_agent:answer'}}\n"
CASE = "cases: [{id: one, instruction: hi}]\n"
JUDGE = "graders: [{kind: judge, name: friendly}]\n"


def test_a_judge_without_a_model_is_found_by_doctor_and_run_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert doctor(MINE + JUDGE + CASE) == 2
    told = capsys.readouterr().out
    assert "s.yaml:2:11: the grader `friendly` asks a model, and the suite names none (name one under `judge`" in told
    assert main(["run", "s.yaml"]) == 2
    assert told.strip() in capsys.readouterr().err
    assert not Path("seatrial.db").exists()
    assert doctor(MINE + JUDGE + CASE, "--skip-judges") == 0


def test_a_case_that_nothing_judges_is_found_by_doctor_and_run_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert doctor(MINE + CASE) == 3
    told = capsys.readouterr().out
    assert "no grader judges the case `one`" in told
    assert main(["run", "s.yaml"]) == 3
    assert told.strip() in capsys.readouterr().err
    assert not Path("seatrial.db").exists()
    assert doctor(MINE + CASE, "--no-grade") == 0
    assert doctor(MINE + CASE, "--json") == 3
    (problem,) = json.loads(capsys.readouterr().out.splitlines()[-1])["problems"]
    assert problem["not_judged"]


def test_the_findings_are_data_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    doctor("agents: {mine: {kind: pyton}}\ncases: [{instruction: hi}]\n", "--json")
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    assert found["problems"][0]["line"] == 1


def test_an_agent_that_streams_is_ready_only_where_somebody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        shop = f"{{kind: stream, url: 'http://127.0.0.1:{port}/'}}"
        text = f"agents: {{shop: {shop}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n"
        assert doctor(text) == 0
        assert f"shop: ok, somebody listens at 127.0.0.1:{port}" in capsys.readouterr().out
    assert doctor(text) == 3
    assert f"shop: not ready, 127.0.0.1:{port}: no connection to the agent" in capsys.readouterr().out


def test_an_agent_behind_http_that_answers_badly_is_named_with_its_address_and_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(503)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"page")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        Thread(target=server.serve_forever).start()
        shop = f"{{kind: http, endpoint_url: 'http://127.0.0.1:{server.server_port}/'}}"
        assert doctor(f"agents: {{shop: {shop}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n") == 3
        server.shutdown()
    told = capsys.readouterr().out
    assert told.endswith(f"shop: not ready, 127.0.0.1:{server.server_port}: the agent answered 503\n")


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (
            "url: 'https://127.0.0.1:9/', endpoint_rule: public",
            "the agent's address 127.0.0.1 is not on the public internet",
        ),
        (f"url: 'http://{'a' * 70}.test/'", "the agent's host name cannot be resolved"),
    ],
)
def test_an_agent_that_streams_is_reached_as_a_run_would(
    agent: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor(f"agents: {{shop: {{kind: stream, {agent}}}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n") == 3
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("batch", ["false", "true"])
def test_a_program_that_is_not_there_or_cannot_be_started_is_not_ready(
    capsys: pytest.CaptureFixture[str], batch: str
) -> None:
    Path("bin").mkdir()
    Path("bin/asleep").write_text("#!/bin/sh\n")
    Path("bin/awake").write_text("#!/bin/sh\n")
    Path("bin/awake").chmod(0o755)
    programs = {
        "missing": "no-such-program",
        "asleep": "bin/asleep",
        "awake": "bin/awake",
        "inside": "./awake, cwd: bin",
        "found": "awake, env: {PATH: bin}",
        "later": "'{WORKDIR}/made'",
    }
    agents = "".join(f"  {name}: {{kind: cli, batch: {batch}, command: {it}}}\n" for name, it in programs.items())
    assert doctor(f"agents:\n{agents}{GRADER}\ncases: [{{instruction: hi}}]\n") == 3
    out = capsys.readouterr().out
    assert "missing: not ready, there is no program 'no-such-program' that can be started\n" in out
    assert "asleep: not ready, there is no program 'bin/asleep' that can be started\n" in out
    assert out.count("ok, can be started") == 4


def test_an_agent_that_does_not_know_the_connectivity_check_is_ready_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Small(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            ping = b"ping" in self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if ping else 500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Small) as server:
        Thread(target=server.serve_forever).start()
        shop = f"{{kind: http, endpoint_url: 'http://127.0.0.1:{server.server_port}/'}}"
        text = f"agents: {{shop: {shop}}}\n{GRADER}\ncases: [{{instruction: hi}}]\n"
        assert doctor(text) == 0
        told = capsys.readouterr().out
        assert doctor(text, "--json") == 0
        server.shutdown()
    assert f"shop: ok, the agent answers at 127.0.0.1:{server.server_port} (" in told
    assert told.endswith("; it does not tell whether it reaches the tool proxy: the agent answered 500\n")
    assert "reaches_proxy" not in json.loads(capsys.readouterr().out)["agents"][0]


TAGGED = f"agents: {{m: {{kind: python, target: 'crew:answer'}}}}\n{GRADER}\ntrials: 2\ncases:\n" + "".join(
    f"- {{id: c{number}, instruction: hi, tags: [{'account' if number < 10 else 'other'}]}}\n" for number in range(40)
)


def test_before_a_run_it_is_shown_how_small_a_drop_would_be_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(TAGGED, "--offline", "--power") == 0
    out = capsys.readouterr().out
    assert (
        "smallest drop of the pass rate, from 80.0%, that `seatrial compare` calls worse in 80% of experiments" in out
    )
    assert re.search(r"all cases +40 +2 +\d+\.\d +\d+\.\d +\d+\.\d", out)
    assert re.search(r"account +10 +2 ", out)
    assert doctor(TAGGED, "--offline", "--json", "--power", "0.95") == 0
    found = json.loads(capsys.readouterr().out)["power"]
    assert found["rate"] == 0.95
    assert [row["trials"] for row in found["rows"] if row["tag"] is None] == [1, 2, 3, 5, 10]
    for wrong in ("0", "1.5", "x"):
        assert doctor(TAGGED, "--offline", "--power", wrong) == 2


def test_how_small_a_drop_is_found_is_unknown_while_nobody_knows_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    Path("crew.py").write_text("def answer(instruction): return 'ok'\ndef cases(): yield {'instruction': 'hi'}\n")
    suite = f"agents: {{m: {{kind: python, target: 'crew:answer'}}}}\n{GRADER}\ncases: [{{from: 'crew:cases'}}]\n"
    assert doctor(suite, "--offline", "--power") == 0
    assert "how small a drop can be found is unknown: `--deep` runs" in capsys.readouterr().out
