"""Programs in bubblewrap. Where this machine has none that works, they must be refused instead."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agents.setting import ask, error_class
from seatrial.agents.cli.agent import CliAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.cli.sandbox import Bubblewrap
from seatrial.agents.config import AgentStart
from seatrial.suites import InvalidSuiteError, load_suite

WORKS = (
    shutil.which("bwrap") is not None
    and subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"], check=False, capture_output=True
    ).returncode
    == 0
)
AGENT = """
cat ../secret {secret} "$HOME/../secret" 2>/dev/null && exit 3
ls {suite}/my.suite.yaml 2>/dev/null && exit 4
echo x >{outside} 2>/dev/null && exit 5
test "$(ls {suite})" = agent.sh || exit 6
test "$(ls -A "$HOME")" = "" || exit 7
echo b >a.txt && echo done && echo mine >"$HOME/file" && echo temporary >"$TMPDIR/file"
"""


def seatrial(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["seatrial", *arguments], cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    directory = tmp_path / "suite"
    (directory / "project").mkdir(parents=True)
    (directory / "project" / "a.txt").write_text("a\n")
    (tmp_path / "secret").write_text("the answer")
    names = {"secret": tmp_path / "secret", "suite": directory, "outside": "/usr/seatrial-was-here"}
    (directory / "agent.sh").write_text(AGENT.format(**names))
    (directory / "my.suite.yaml").write_text(
        "agents: {coder: {kind: cli, command: [sh, '{SUITE_DIR}/agent.sh', '{PROMPT}'], sandbox: bubblewrap}}\n"
        "graders:\n"
        "  - {kind: allowed_paths, paths: [a.txt]}\n"
        f"  - {{kind: command, command: \"sh -c 'grep b a.txt && ! cat {tmp_path / 'secret'}'\"}}\n"
        "  - {kind: command, name: gone, required: false, command: no-such-program}\n"
        "cases: [{id: fix, instruction: Fix it., workspace: project}]\n"
    )
    return directory


def test_a_program_in_a_sandbox_sees_and_writes_its_own_alone(suite: Path) -> None:
    ran = seatrial("run", "my.suite.yaml", cwd=suite)
    if not WORKS:
        assert ran.returncode in (2, 3), ran.stdout + ran.stderr
        assert "bwrap" in ran.stdout + ran.stderr
        return
    shown = seatrial("show", "latest:fix:coder", cwd=suite)
    assert ran.returncode == 0, ran.stdout + ran.stderr + shown.stdout
    assert "modified  a.txt" in shown.stdout
    assert "cannot be started in the sandbox" in " ".join(shown.stdout.split())
    assert not Path("/usr/seatrial-was-here").exists()


def test_a_program_that_is_not_in_the_sandbox_is_found_before_anything_runs(suite: Path, tmp_path: Path) -> None:
    program = tmp_path / "elsewhere" / "agent"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho done\n")
    program.chmod(0o755)
    text = (suite / "my.suite.yaml").read_text().replace("[sh, '{SUITE_DIR}/agent.sh', ", f"['{program}', ")
    (suite / "my.suite.yaml").write_text(text)
    found = seatrial("doctor", "my.suite.yaml", cwd=suite)
    assert found.returncode in ((3,) if WORKS else (2, 3)), found.stdout + found.stderr
    assert ("is not in the sandbox" if WORKS else "bwrap") in found.stdout + found.stderr
    (suite / "my.suite.yaml").write_text(text.replace("bubblewrap}", f"bubblewrap, sandbox_read: [{program.parent}]}}"))
    assert seatrial("doctor", "my.suite.yaml", cwd=suite).returncode in ((0,) if WORKS else (2, 3))


def test_without_bubblewrap_a_suite_that_wants_it_is_refused(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.agents.cli.config.has_bubblewrap", lambda: False)
    with pytest.raises(InvalidSuiteError, match="no `bwrap` on this machine"):
        load_suite(suite / "my.suite.yaml")


@pytest.mark.parametrize(
    ("agent", "case", "told"),
    [
        ("sandbox: bubblewrap", "", "no `workspace` to keep it to"),
        ("sandbox_read: [/usr]", ", workspace: project", "does nothing without a `sandbox`"),
        ("sandbox: bubblewrap, batch: true", "", "does nothing with `batch: true`"),
        ("sandbox: bubblewrap, sandbox_read: [nowhere]", ", workspace: project", 'there is no "nowhere"'),
    ],
)
def test_a_sandbox_that_would_do_nothing_is_refused(
    suite: Path, monkeypatch: pytest.MonkeyPatch, agent: str, case: str, told: str
) -> None:
    monkeypatch.setattr("seatrial.agents.cli.config.has_bubblewrap", lambda: True)
    (suite / "my.suite.yaml").write_text(
        f"agents: {{a: {{kind: cli, command: agent, {agent}}}}}\ncases: [{{id: a, instruction: b{case}}}]\n"
    )
    with pytest.raises(InvalidSuiteError) as refused:
        load_suite(suite / "my.suite.yaml")
    assert told.replace('"', "") in str(refused.value).replace("`nowhere`", "nowhere").replace('"', "")


def test_a_run_without_a_workspace_is_not_run_without_its_sandbox(tmp_path: Path) -> None:
    agent = CliConfig(command=["sh", "-c", f"touch {tmp_path / 'ran'}"], sandbox="bubblewrap").build(
        AgentStart(name="a", directory=tmp_path)
    )
    assert isinstance(agent, CliAgent)
    reply = asyncio.run(ask(agent))
    assert error_class(reply) == "workspace_failed"
    assert not (tmp_path / "ran").exists()


def test_what_is_hidden_comes_before_what_is_shown_again(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    (suite / "lib").mkdir(parents=True)
    (suite / "agent.sh").touch()
    work = str(tmp_path / "work")
    command = ["sh", str(suite / "agent.sh"), "--", "x"]
    argv = Bubblewrap(suite, ["lib"]).wrap(command, work, ["/tmp/other"], {}).argv
    assert argv[:4] == ["bwrap", "--ro-bind", "/", "/"]
    assert argv[-5:] == ["--", "sh", str(suite / "agent.sh"), "--", "x"]
    hidden = argv.index("--tmpfs", argv.index(str(suite)) - 1)
    for kind, path in (("--ro-bind", str(suite / "lib")), ("--ro-bind", str(suite / "agent.sh")), ("--bind", work)):
        places = [at for at in range(len(argv)) if argv[at : at + 3] == [kind, path, path]]
        assert len(places) == 1
        assert places[0] > hidden
    assert {"--unshare-pid", "--die-with-parent", "--new-session"} <= set(argv)
    assert CliConfig(command="a").sandbox is None
