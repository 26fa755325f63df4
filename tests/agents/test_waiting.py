"""Requests that wait are what they were when they are taken, wherever they waited."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.setting import a_case, a_request
from seatrial.agents.agent import RunRequest
from seatrial.agents.cli.waiting import WaitingRequests

_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def some_requests(draw: st.DrawFn) -> RunRequest:
    case = a_case(
        draw(st.text(st.characters(), min_size=1, max_size=8)),
        draw(st.text(st.characters())),
        input=draw(st.dictionaries(st.text(), _json, max_size=3)),
        expected=draw(_json),
    )
    request = a_request(case, run_id=draw(st.uuids()).hex, timeout_s=draw(st.none() | st.floats(0.1, 100)))
    request.suite_file = draw(st.sampled_from([None, Path("a/b.yaml"), Path("/ä")]))
    return request


@settings(max_examples=50)
@given(st.lists(some_requests(), max_size=6), st.randoms())
def test_every_request_comes_back_equal_and_once(requests: list[RunRequest], chance: Any) -> None:
    order = list(range(len(requests)))
    chance.shuffle(order)
    half = len(order) // 2
    with WaitingRequests() as waiting:
        for number, request in enumerate(requests):
            waiting.add(str(number), request)
        for number in order[:half]:
            assert waiting.take(str(number)) == requests[number]
            assert waiting.take(str(number)) is None
            assert str(number) in waiting
        rest = dict(waiting.take_rest())
        assert rest == {str(number): requests[number] for number in sorted(order[half:])}
        assert list(rest) == [str(number) for number in sorted(order[half:])]
        assert "stranger" not in waiting
        assert waiting.take("stranger") is None


def test_what_cannot_be_written_waits_in_memory() -> None:
    odd = a_request(a_case(expected=object()))
    with WaitingRequests() as waiting:
        waiting.add("odd", odd)
        waiting.add("plain", a_request())
        assert waiting.take("odd") is odd
        assert waiting.take("plain") == a_request()


def test_no_room_for_a_file_loses_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with WaitingRequests() as waiting:
        waiting.add("a", a_request())
        assert waiting.take("a") == a_request()


def test_a_file_that_may_not_grow_loses_no_request() -> None:
    script = f"""
import resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from agents.setting import a_case, a_request
from seatrial.agents.cli.waiting import WaitingRequests
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
requests = {{str(n): a_request(a_case(str(n), "x" * 1000)) for n in range(10)}}
with WaitingRequests() as waiting:
    for name, request in requests.items():
        waiting.add(name, request)
    assert len(waiting._held) > 3
    assert dict(waiting.take_rest()) == requests
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
