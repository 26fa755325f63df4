"""`seatrial open`: the pages of a store, in the browser."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from strategies import records

from seatrial.cli.main import main
from seatrial.store import open_store

SEATRIAL = str(Path(sys.executable).with_name("seatrial"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with an experiment of one run."""
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.create_experiment(records.experiment(), records.cases(1))
        store.record_run(records.run(run_id="run-1")).wait()
    return path


@contextmanager
def started(*words: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    command = [SEATRIAL, *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as running:
        try:
            yield running
        finally:
            running.terminate()


def first_line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline()


@pytest.mark.parametrize(
    ("reference", "page"),
    [
        ([], "/experiments"),
        (["refunds"], "/experiments/exp-1"),
        (["run-1"], "/runs/run-1"),
        (["refunds:case-0"], "/experiments/exp-1/cases/case-0"),
        (["refunds:case-0:crew:1"], "/runs/run-1"),
    ],
)
def test_what_is_opened_is_shown_by_a_server_of_its_own_until_ctrl_c(
    path: Path, reference: list[str], page: str
) -> None:
    with started("open", *reference, "--store", str(path), "--no-browser", "--json") as running:
        said = json.loads(first_line(running))
        assert said["page"] == said["url"] + page
        assert said["url"].startswith("http://127.0.0.1:")
        with urllib.request.urlopen(said["url"] + "/experiments", timeout=60) as answer:
            assert b"refunds" in answer.read()
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


def test_the_browser_is_opened_at_the_page(path: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    os.mkfifo(opened)
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    with started("open", "run-1", "--store", str(path), environment={"BROWSER": f"{browser} %s"}) as running:
        page = first_line(running).split()[0]
        assert page.endswith("/runs/run-1")
        assert opened.read_text(encoding="utf-8").strip() == page
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


def test_a_server_that_serves_the_store_already_shows_the_page_and_the_command_ends(path: Path) -> None:
    with started("serve", "--store", str(path), "--port", "0", "--json") as serving:
        url = json.loads(first_line(serving))["url"]
        with started("open", "refunds", "--store", str(path), "--no-browser") as running:
            assert first_line(running) == f"{url}/experiments/exp-1\n"
            assert running.wait(60) == 0
    with open_store(path, read_only=True) as store:
        assert store.served_at() is None


def test_with_a_key_in_the_store_the_page_asks_for_it(path: Path) -> None:
    with open_store(path) as store:
        store.keyring.add("reader", ["read"], now=0)
    with started("open", "--store", str(path), "--no-browser", "--json") as running:
        page = json.loads(first_line(running))["page"]
        request = urllib.request.Request(page, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.url.partition("?")[0].endswith("/sign-in")


def test_what_is_not_there_is_not_opened(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", "refnds", "--store", str(path), "--no-browser"]) == 2
    assert "refnds" in capsys.readouterr().err
    assert main(["open", "--store", str(path.with_name("none.db")), "--no-browser"]) == 2


def test_a_run_of_a_suite_ends_with_what_opens_its_experiment(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "agents: {echo: {kind: cli, command: [cat], output: text}}\n"
        "cases: [{id: one, instruction: hello, graders: [{kind: contains, value: hello}]}]\n",
        encoding="utf-8",
    )
    where = ["--store", str(tmp_path / "store.db")]

    def lines(*words: str) -> list[str]:
        done = subprocess.run(
            [SEATRIAL, "run", str(suite), *where, *words], capture_output=True, text=True, timeout=120, check=False
        )
        return done.stdout.splitlines()

    assert lines("--name", "two words")[-1] == f"look at it: seatrial open 'two words' --store {where[1]}"
    assert not any("look at it" in line for line in lines("--quiet"))
    assert not any("look at it" in line for line in lines("--json"))
