"""Ready-made agents, played by programs that check how they are started and print what the real ones do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.agents.cli.config import CliConfig
from seatrial.agents.cli.presets import PRESETS
from seatrial.suites import InvalidSuiteError, load_suite

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coding.md").read_text(encoding="utf-8")
PROGRAMS = {"claude-code": "claude", "codex": "codex", "aider": "aider", "mini-swe-agent": "mini"}
ARGUMENTS = {
    "claude-code": ["-p", "Fix it.", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"],
    "codex": [
        *("exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "--cd", "WORKDIR", "Fix it."),
    ],
    "aider": [
        *("--message-file", "PROMPT_FILE", "--yes-always", "--no-check-update", "--no-pretty", "--no-stream"),
        *("--no-gitignore", "--no-show-release-notes", "--no-analytics"),
    ],
    "mini-swe-agent": ["--task", "Fix it.", "--yolo", "--exit-immediately"],
}
SAMPLES = {"claude-code": "claude-stream-json.jsonl", "codex": "codex-exec.jsonl"}
FAKE = f"""#!{sys.executable}
import json, os, pathlib, sys
arguments = sys.argv[1:]
for number, argument in enumerate(arguments):
    if argument == os.getcwd():
        arguments[number] = "WORKDIR"
    elif os.path.isfile(argument) and open(argument).read() == "Fix it.":
        arguments[number] = "PROMPT_FILE"
wanted = json.loads(WANTED)
assert arguments == wanted, (arguments, wanted)
assert os.environ.get(KEY or "PATH") is not None
pathlib.Path("a.txt").write_text("b")
sample = SAMPLE
print((pathlib.Path({str(ROOT / "samples")!r}) / sample).read_text() if sample else "I fixed it.")
"""


def written(directory: Path, preset: str, extra: str = "") -> None:
    (directory / "bin").mkdir()
    (directory / "project").mkdir()
    (directory / "project" / "a.txt").write_text("a")
    program = directory / "bin" / PROGRAMS[preset]
    wanted = [*ARGUMENTS[preset], *(["--extra", "one two"] if extra else [])]
    key = PRESETS[preset].credential  # type: ignore[index]
    text = FAKE.replace("WANTED", repr(json.dumps(wanted)), 1).replace("KEY or", f"{key!r} or")
    program.write_text(text.replace("= SAMPLE", f"= {SAMPLES.get(preset)!r}"))
    program.chmod(0o755)
    (directory / "my.suite.yaml").write_text(
        f"agents: {{coder: {{kind: cli, preset: {preset}{extra}}}}}\n"
        "graders: [{kind: allowed_paths, paths: [a.txt]}, {kind: diff, min_files: 1}]\n"
        "cases: [{id: fix, instruction: Fix it., workspace: project}]\n"
    )


def seatrial(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(cwd / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    keys = {"ANTHROPIC_API_KEY": "sk-ant-123456", "CODEX_API_KEY": "sk-123456789"}
    return subprocess.run(
        ["seatrial", *arguments],
        cwd=cwd,
        env={**os.environ, **keys, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("extra", ["", ", arguments: [--extra, one two]"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_starts_its_program_and_reads_what_it_prints(tmp_path: Path, preset: str, extra: str) -> None:
    written(tmp_path, preset, extra)
    ran = seatrial("run", "my.suite.yaml", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (run,) = json.loads(ran.stdout)["runs"]
    assert run["outcome"] == "passed"
    assert (run["calls"] == "complete") == (preset in SAMPLES)


@pytest.mark.parametrize("preset", PRESETS)
def test_doctor_shows_what_a_preset_stands_for(tmp_path: Path, preset: str) -> None:
    written(tmp_path, preset)
    found = seatrial("doctor", "my.suite.yaml", cwd=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"can be started as {PROGRAMS[preset]} " in found.stdout
    (tmp_path / "bin" / PROGRAMS[preset]).unlink()
    assert seatrial("doctor", "my.suite.yaml", cwd=tmp_path).returncode == 3


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("preset: codex, command: codex", "`preset` and `command` exclude each other"),
        ("arguments: [a], command: codex", "`arguments` are for a `preset`"),
        ("preset: codex, batch: true", "a `preset` takes one case at a time"),
        ("timeout_s: 1", "`command` names no program (or name a `preset`: claude-code, codex, aider, mini-swe-agent)"),
    ],
)
def test_what_a_preset_does_not_go_with_is_refused(tmp_path: Path, agent: str, told: str) -> None:
    suite = tmp_path / "my.suite.yaml"
    suite.write_text(f"agents: {{a: {{kind: cli, {agent}}}}}\ncases: [{{id: a, instruction: b}}]\n")
    with pytest.raises(InvalidSuiteError, match=re.escape(told)):
        load_suite(suite, variables={"CODEX_API_KEY": "sk-123456789"})


def test_variables_of_the_suite_take_the_place_of_the_key() -> None:
    assert CliConfig(preset="claude-code").env == {"ANTHROPIC_API_KEY": "${ANTHROPIC_API_KEY}"}
    assert CliConfig(preset="claude-code", env={"A": "b"}).env == {"A": "b"}
    assert CliConfig(preset="mini-swe-agent", env={"A": "b"}).env == {"A": "b", "MSWEA_CONFIGURED": "true"}


def test_the_page_lists_every_preset() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \|.*\|.*\|.*\|$", PAGE, re.MULTILINE)) == set(PRESETS)
