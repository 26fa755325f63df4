"""`seatrial tail`: what is shown, how it ends, and that leaving loses nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client.scripted import RUN, Place, problem, script, serving_in_a_thread

from seatrial.cli import main
from seatrial.cli.commands import tail as tail_module
from seatrial.events.types import RunStatus

EVENTS = script(6)
HUMAN = """\
     0  run started thread t
     2  assistant né 0
        
        né 1
        
        
     5  run finished
"""  # noqa: W293


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for variable in ("SEATRIAL_URL", "SEATRIAL_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with serving_in_a_thread(EVENTS) as place:
        yield place


def tail(place: Place, *options: str) -> int:
    return main(["tail", RUN, "--url", place.url, *options])


def test_a_run_is_shown_for_people(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert tail(place) == 0
    assert capsys.readouterr() == (HUMAN, "run-1: completed\n")


def test_as_json_every_line_is_an_envelope(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert tail(place, "--json", "--after", "2") == 0
    envelopes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(envelope["sequence"], envelope["event"]) for envelope in envelopes] == list(enumerate(EVENTS))[3:]


def test_types_are_asked_for(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert tail(place, "--types", "RUN_STARTED, RUN_FINISHED") == 0
    assert capsys.readouterr().out == "     0  run started thread t\n     5  run finished\n"
    assert place.service.requests[0].query["types"] == "RUN_STARTED,RUN_FINISHED"


@pytest.mark.parametrize("status", ["failed", "cancelled", "input_required"])
def test_a_run_that_did_not_complete_is_exit_code_1(
    place: Place, status: RunStatus, capsys: pytest.CaptureFixture[str]
) -> None:
    place.service.status = status
    assert tail(place) == 1
    assert capsys.readouterr().err == f"run-1: {status}\n"


def test_a_run_that_does_not_exist_is_exit_code_2(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.service.refusals.append(problem(404, "not_found", detail="there is no run \x1b[31m"))
    assert tail(place) == 2
    assert capsys.readouterr().err == "seatrial: there is no run \\x1b[31m [not_found]\n"


def test_a_service_that_never_answers_is_not_waited_for_long(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "FIRST_TRIES", 2)
    assert tail(place, "--url", "http://127.0.0.1:1") == 3
    told = capsys.readouterr().err
    assert told.count("trying again") == 1
    assert "is that where the service is?" in told


@pytest.mark.parametrize("options", [["--after", "-1"], ["--after", "x"], ["--key", "k"]])
def test_a_wrong_command_line_is_exit_code_2(place: Place, options: list[str]) -> None:
    assert tail(place, *options) == 2


def test_the_service_and_the_key_come_from_the_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATRIAL_URL", place.url)
    monkeypatch.setenv("SEATRIAL_KEY", "st_k_secret")
    place.service.refusals.append(problem(401, "unauthorized", detail="the key is st_k_secret"))
    assert main(["tail", RUN]) == 3
    assert place.service.requests[0].headers["Authorization"] == "Bearer st_k_secret"
    assert "secret" not in capsys.readouterr().err


def test_a_key_for_another_machine_needs_tls_or_permission(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATRIAL_KEY", "st_k_secret")
    assert main(["tail", RUN, "--url", "http://192.0.2.1"]) == 2
    told = capsys.readouterr().err
    assert "plain http" in told
    assert "--allow-http" in told
    assert "secret" not in told


def test_a_lost_connection_is_told_and_taken_up(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.service.refusals.append(problem(503, "store_unavailable", detail="the store is away"))
    assert tail(place) == 0
    out, err = capsys.readouterr()
    assert out == HUMAN
    assert re.fullmatch(r"seatrial: the store is away; trying again in 0\.[0-9] s\nrun-1: completed\n", err)


def a_process(place: Place, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("seatrial")), "tail", RUN, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SEATRIAL_URL": place.url},
    )


def test_ctrl_c_leaves_the_run_and_says_how_to_go_on(place: Place) -> None:
    place.service.events, place.service.status = EVENTS[:4], None
    process = a_process(place, "--json")
    assert process.stdout is not None
    shown = [json.loads(process.stdout.readline())["sequence"] for _ in range(4)]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (shown, out, process.returncode) == ([0, 1, 2, 3], "", 130)
    assert err == "follow it further with\n  seatrial tail run-1 --after 3 --json\nseatrial: interrupted\n"
    assert {request.method for request in place.service.requests} == {"GET"}


def test_text_is_shown_as_it_comes(place: Place) -> None:
    place.service.events, place.service.status = EVENTS[:3], None
    process = a_process(place)
    assert process.stdout is not None
    assert process.stdout.readline() == "     0  run started thread t\n"
    assert process.stdout.readline() == "     2  assistant né 0\n"
    place.portal.run(place.service.append(*EVENTS[3:], status="completed"))
    out, err = process.communicate(timeout=60)
    assert (out.splitlines()[-1], err, process.returncode) == ("     5  run finished", "run-1: completed\n", 0)


def test_a_reader_that_goes_away_ends_it_without_claiming_that_the_run_completed(place: Place) -> None:
    place.service.events = script(5000)
    process = a_process(place, "--json")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
