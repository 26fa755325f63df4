"""The package on the page about extending Seatrial, installed and used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from strategies import command
from strategies.databases import database
from strategies.plugin import install

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    modules = {name.removesuffix(".py").replace("/", "."): text for name, text in FILES.items() if name.endswith(".py")}
    offers = project["entry-points"]
    return install(tmp_path / "site", project["name"], {"shop_trials.__init__": "", **modules}, offers)


def seatrial(folder: Path, site: Path | None, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "" if site is None else str(site)}
    return command.seatrial(*args, cwd=folder, env=environment)


def test_the_suite_on_the_page_runs_with_the_package_installed(site: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.suite.yaml").write_text(FILES["shop.suite.yaml"], encoding="utf-8")
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "refund.txt").write_text("> o-1\n! refund\n< Refunded: o-1\n", encoding="utf-8")
    ran = seatrial(tmp_path, site, "run", "shop.suite.yaml", "--quiet")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    doctor = seatrial(tmp_path, site, "doctor", "shop.suite.yaml")
    assert (doctor.returncode, "answers with Refunded:" in doctor.stdout) == (0, True), doctor.stdout
    assert seatrial(tmp_path, site, "grade", "latest").returncode == 0
    without = seatrial(tmp_path, None, "run", "shop.suite.yaml")
    assert without.returncode == 2
    for unknown in ("`shop`", "`mentions`", "`strict`", "`arrows`"):
        assert unknown in without.stderr


def test_the_executor_on_the_page_carries_out_the_suite(site: Path, tmp_path: Path, postgres_server: str) -> None:
    suite = re.sub(r"^  recorded:.*\n", "", FILES["shop.suite.yaml"], flags=re.MULTILINE)
    (tmp_path / "shop.suite.yaml").write_text(suite, encoding="utf-8")
    with database(postgres_server) as url:
        options = ("--executor", "tasks", "--workers", "2", "--store", url)
        ran = seatrial(tmp_path, site, "run", "shop.suite.yaml", *options)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        again = seatrial(tmp_path, site, "run", "shop.suite.yaml", "--resume", "latest", *options)
        assert (again.returncode, "1 run is there already" in again.stderr) == (0, True), again.stderr
    assert seatrial(tmp_path, site, "run", "shop.suite.yaml", "--executor", "tasks").returncode == 2


def test_what_is_wrong_is_still_wrong(site: Path, tmp_path: Path) -> None:
    suite = FILES["shop.suite.yaml"].replace("word: Refunded", "word: Declined").replace("  - {kind: judge}\n", "")
    suite = re.sub(r"^  recorded:.*\n|^judge:.*\n|, expected_outcome_detail: [^}]*", "", suite, flags=re.MULTILINE)
    (tmp_path / "shop.suite.yaml").write_text(suite, encoding="utf-8")
    assert seatrial(tmp_path, site, "run", "shop.suite.yaml", "--quiet").returncode == 1


def test_the_code_on_the_page_is_typed(site: Path) -> None:
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(site / ".mypy"), str(site / "shop_trials")]
    root = PAGE.parents[1]
    done = subprocess.run(
        program,
        cwd=site,
        env={**os.environ, "MYPYPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
