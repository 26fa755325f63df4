"""`seatrial case from` on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from strategies.looked_at import fill

import seatrial as st
from seatrial.cli.main import main
from seatrial.suites import load_suite, read_cases

SUITE = """\
# My suite.
agents:
  mine: {kind: replay, path: answers.jsonl}

cases:
  - id: first
    instruction: Hello.
    graders: [{kind: contains, value: hi}]
  # The last one.

threshold: 0.5  # of all
"""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.db")
    monkeypatch.setenv("SEATRIAL_STORE", str(tmp_path / "runs.db"))


def test_a_run_becomes_a_case_that_expects_its_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "from", "run-v1-broken", "--json", "--id", "again"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "id": "again",
        "instruction": "My order A-1009 arrived broken. Refund me 20.",
        "tags": ["money"],
        "graders": [
            {
                "kind": "tool_trajectory",
                "mode": "exact",
                "expected": [
                    {"tool": "find_order", "args": {"order": "A-1009"}},
                    {"tool": "refund", "args": {"amount": 20}},
                ],
            }
        ],
    }


def test_a_case_of_a_run_that_failed_warns_that_its_calls_are_the_wrong_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["case", "from", "run-v2-broken"]) == 0
    assert "# These are the calls that it made, not those that it should have made" in capsys.readouterr().out


@pytest.mark.parametrize("run", ["run-v1-late", "run-v2-late"])
def test_a_case_of_unknown_calls_has_no_check_that_could_pass_by_silence(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["case", "from", run]) == 3
    seen = capsys.readouterr()
    assert seen.out.endswith("  graders: []\n")
    assert "No check on its calls" in seen.out
    assert "no check on calls was written" in seen.err


def test_a_case_is_added_to_a_suite_and_the_rest_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.suite.yaml"
    path.write_text(SUITE)
    (tmp_path / "answers.jsonl").touch()
    assert main(["case", "from", "run-v1-broken", "--into", str(path)]) == 0
    text = path.read_text()
    start = text.index("  - id: broken-regression")
    end = text.index("  # The last one.")
    assert text[:start] + text[end:] == SUITE
    cases = list(read_cases(load_suite(path), checked=False))
    assert [case.id for case in cases] == ["first", "broken-regression"]
    assert main(["case", "from", "run-v1-broken", "--into", str(path)]) == 2
    assert "has a case 'broken-regression' already" in capsys.readouterr().err
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text", ["cases: []\n", "cases: [{id: a, instruction: b}]\n", "agents: {}\n", "- 1\n", "a: [\n"]
)
def test_a_suite_that_has_no_place_for_it_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "my.suite.yaml"
    path.write_text(text)
    assert main(["case", "from", "run-v1-broken", "--into", str(path)]) == 2
    assert path.read_text() == text


def test_a_suite_that_does_not_exist_is_usage(tmp_path: Path) -> None:
    assert main(["case", "from", "run-v1-broken", "--into", str(tmp_path / "none.yaml")]) == 2


def test_a_case_of_a_run_without_calls_says_that_none_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATRIAL_STORE", str(tmp_path / "runs.db"))
    agent = st.scripted_agent({"final_response": "Hi.", "messages": [{"role": "assistant", "content": "Hi."}]})
    suite = st.Suite(agents={"mine": agent}, cases=[st.Case("greet", "Say hi.", graders=[st.contains("Hi")])])
    with st.run(suite, name="silent", progress=False) as result:
        assert result.ok
    assert main(["case", "from", "silent:greet"]) == 0
    written = capsys.readouterr().out
    assert "# It made no calls: none is allowed." in written
    assert 'maximums: {"*": 0}' in written
    assert "exact" not in written
