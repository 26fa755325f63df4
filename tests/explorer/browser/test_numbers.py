"""The figures on pages are those of the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from seatrial.explorer import numbers


def said(store: Path, *arguments: str) -> Any:
    """What a command prints as JSON."""
    command = [str(Path(sys.executable).with_name("seatrial")), *arguments, "--store", str(store), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=False).stdout)


def cells(page: Page, row: str) -> dict[str, str]:
    """The cells of a row of a table, by the title of their column."""
    found: dict[str, str] = page.eval_on_selector(
        row,
        "(row) => Object.fromEntries([...row.children].map((cell, index) => "
        "[row.closest('table').tHead.rows[0].cells[index].innerText, cell.innerText]))",
    )
    return found


def test_an_experiment_a_comparison_a_filter_and_a_run_say_what_the_commands_say(
    page: Page, clerk_store: Path, clerk_ids: dict[str, str]
) -> None:
    [compared] = [
        each for each in said(clerk_store, "compare", "clerk-2.3.2", "clerk-2.4.0") if each["b"]["agent"] == "clerk"
    ]
    page.goto(f"/experiments/{clerk_ids['new']}")
    sentence = page.locator(".say").inner_text()
    for part in (
        f"{numbers.points(compared['difference'])} points",
        f"p = {compared['p_value']:.3f}",
        f"{compared['worse']} of {compared['paired']} cases pass less often, {compared['better']} more often",
    ):
        assert part in sentence
    for side, row in (("a", ".ag tbody tr:has-text('base'):first-child"), ("b", ".ag tr.cho")):
        summary, shown = compared[side]["summary"], cells(page, row)
        graded = summary["passed"] + summary["failed"]
        assert shown["pass rate"] == numbers.percent(summary["pass_rate"], graded)
        assert [int(shown[name]) for name in ("passed", "failed", "errored", "flaky cases")] == [
            summary[name] for name in ("passed", "failed", "errored", "flaky")
        ]
        assert shown["cost per run"] == numbers.money(summary["cost_usd"] / summary["runs"])
        assert shown["p50"] == numbers.duration(summary["duration_p50_ms"])
        assert shown["p95"] == numbers.duration(summary["duration_p95_ms"])

    page.goto(f"/compare?a={clerk_ids['old']}:clerk&b={clerk_ids['new']}:clerk")
    assert f"{compared['worse']} worse, {compared['better']} better" in page.inner_text("main")
    for side, row in (("a", "tbody tr:nth-child(1)"), ("b", "tbody tr:nth-child(2)")):
        rate = compared[side]["summary"]["pass_rate"]
        assert cells(page, f"[aria-label='Both sides'] {row}")["pass rate"] == numbers.percent(rate)

    wanted = "outcome:failed tool:refund"
    matching = said(clerk_store, "show", "clerk-2.4.0", "--filter", wanted, "--limit", "1000")["runs"]
    page.goto(f"/experiments/{clerk_ids['new']}?view=runs&q={wanted}")
    assert f"{len(matching)} runs match" in page.inner_text("main")

    run = said(clerk_store, "show", clerk_ids["failed_run"])
    page.goto(f"/runs/{clerk_ids['failed_run']}")
    facts = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.facts > div')].map((each) => "
        "[each.children[0].innerText, each.children[1].innerText]))"
    )
    assert facts["duration"].startswith(numbers.duration(run["run"]["summary"]["duration_ms"]))
    assert page.locator(".say2").inner_text() == run["sentence"]
