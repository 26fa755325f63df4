"""The suites of docs/agents.md for coding agents, run with programs that print or record samples in their place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Coding agents\n")[2].partition("\n### ")[0]
SUITES = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
FAKE = f"""#!{sys.executable}
import os, pathlib, shutil, sys
samples, arguments = pathlib.Path({str(ROOT / "samples")!r}), sys.argv[1:]
if "--version" in arguments:
    sys.exit()
if "stream-json" in arguments or "--json" in arguments:
    print((samples / ("claude-stream-json.jsonl" if "stream-json" in arguments else "codex-exec.jsonl")).read_text())
    sys.exit()
if "CODEX_HOME" in os.environ:
    record, sample = pathlib.Path(os.environ["CODEX_HOME"], "sessions/2026/rollout-1.jsonl"), "codex-rollout.jsonl"
else:
    record, sample = pathlib.Path.home() / ".claude/projects/shop/1.jsonl", "claude-code-session.jsonl"
record.parent.mkdir(parents=True)
shutil.copy(samples / sample, record)
print("One test fails.")
"""


@pytest.mark.parametrize(("number", "wanted"), [(0, ["passed"]), (1, ["passed"]), (2, ["failed", "failed"])])
def test_the_suites_of_the_page_run(tmp_path: Path, number: int, wanted: list[str]) -> None:
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text(FAKE)
        (programs / name).chmod(0o755)
    (tmp_path / "my.suite.yaml").write_text(SUITES[number])
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        ["seatrial", "run", "my.suite.yaml", "--store", "store.db", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == ("failed" in wanted), ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    assert [run["outcome"] for run in report["runs"]] == wanted
