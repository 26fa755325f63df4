"""docs/coding.md: its files, written as they stand there, and its commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "coding.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0].splitlines()


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


def written(directory: Path) -> None:
    for name, text in FILES:
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)


def test_the_walk_through_does_what_it_says(tmp_path: Path) -> None:
    assert [name for name, _ in FILES] == ["project/calc.py", "project/test_calc.py", "coder.py", "code.suite.yaml"]
    written(tmp_path)
    ran = [
        subprocess.run(shlex.split(line), cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        for line in COMMANDS
    ]
    assert [done.returncode for done in ran] == [0, 0, 0], [done.stdout + done.stderr for done in ran]
    assert "coder: ok" in ran[0].stdout
    assert "1/1" in ran[1].stdout
    shown = ran[2].stdout
    assert "changes in the workspace: 1 file, +1 −1 lines" in shown
    assert "modified  calc.py  +1 −1" in shown
    assert "+    return a + b" in shown
    assert (tmp_path / "project" / "calc.py").read_text().endswith("a - b\n")


def test_an_agent_that_edits_the_tests_instead_fails_with_its_changes_in_the_report(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "coder.py").write_text(
        "from pathlib import Path\nPath('test_calc.py').write_text('print(\"<b>1 test passed\")')\nprint('done')\n"
    )
    run = ["seatrial", "run", "code.suite.yaml", "--html", "report.html"]
    ran = subprocess.run(run, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    html = (tmp_path / "report.html").read_text()
    assert "1 file" in html.split('-changes">')[1].partition("</section>")[0]
    assert "modified  test_calc.py" in html
    assert "&lt;b&gt;1 test passed" in html
    assert "<b>1 test" not in html
    report = subprocess.run(
        ["seatrial", "report", "latest", "--json"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert '"changes":{"summary":"1 file' in report.stdout, report.stdout + report.stderr


def test_a_workspace_that_is_wrong_is_found_before_anything_runs(tmp_path: Path) -> None:
    written(tmp_path)
    suite = (tmp_path / "code.suite.yaml").read_text().replace("from: project", "from: nowhere")
    (tmp_path / "code.suite.yaml").write_text(suite)
    for command in ("doctor", "run"):
        ran = subprocess.run(
            ["seatrial", command, "code.suite.yaml"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 2, ran.stdout + ran.stderr
        assert "the workspace `nowhere` cannot be copied: there is no such file or folder" in ran.stdout + ran.stderr
