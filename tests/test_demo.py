"""`make demo`: its tour ends as expected, and leaves no process behind."""

from __future__ import annotations

import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import URLError

import demo
import pytest

from seatrial.store import open_store

ROOT = Path(__file__).resolve().parent.parent


def test_the_demo_ends_as_expected_with_passes_and_failures() -> None:
    ran = subprocess.run(
        [sys.executable, "scripts/demo.py"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    # runs, passed, failed, errored
    rows = ("cli 7 5 2 0", "http 7 4 3 0", "python 7 7 0 0", "stream 7 6 1 0")
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert all(any(line.startswith(row) for line in lines) for row in rows)
    for row in ("text-only 2 0 0 2", "with-messages 2 1 1 0", "no-tools 2 2 0 0"):
        assert any(line.startswith(row) for line in lines), row
    text = " ".join(lines)
    assert "the agent returned an answer and nothing that lists its calls (calls_not_listed)" in text
    assert "To do: return the messages or a trace with the answer" in text
    assert "this is an ATIF trajectory" in ran.stderr
    page = Path(ran.stdout.split("The report: ")[1].splitlines()[0])
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "0 of 7 cases pass less often, 3 more often" in text
    for row in ("clerk 360 335 25 0", "clerk-mini 360 276 69 15", "clerk 360 292 68 0"):
        assert any(line.startswith(row) for line in lines), row
    assert "worse in tag refund: 98.9 → 65.0 %" in text
    assert "claims an e-mail that no call sent" in text
    assert "assistant and back." in ran.stdout
    opens = shlex.split(ran.stdout.splitlines()[-1])
    assert opens[:3] == ["seatrial", "open", "clerk-2.4.0"]
    with open_store(ROOT / opens[opens.index("--store") + 1]) as store:
        versions = [each.name for each in store.experiments() if each.name.startswith("clerk-")]
        assert versions == ["clerk-2.4.0", "clerk-2.3.2", "clerk-2.3.1"]


def test_a_server_of_the_demo_ends_with_its_block_also_after_an_error() -> None:
    def talk() -> None:
        with demo.listening("shop.http_agent") as address:
            given = urllib.request.Request(address, data=b'{"ping": true}', method="POST")
            with urllib.request.urlopen(given) as answer:
                assert answer.status == 200
            raise KeyError(address)

    with pytest.raises(KeyError) as caught:
        talk()
    with pytest.raises(URLError, match="refused"):
        urllib.request.urlopen(caught.value.args[0])
