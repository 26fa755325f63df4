"""What a notebook shows of results and comparisons, and how far an experiment has come."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from io import StringIO

import pytest

import seatrial as st
from seatrial.python_api.notebook import MAX_ROWS
from seatrial.suites import Retry

HOSTILE = "<script>alert(1)</script><img src=x onerror='alert(2)'>\u202e\x1b[31m"


class Checked(HTMLParser):
    """Which elements there are, that each is closed, and what is written in them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def ran(says: dict[str, str]) -> st.Result:
    def agent(instruction: str) -> str:
        if says[instruction] == "raise":
            raise st.InfrastructureError(f"no connection {HOSTILE}")
        return says[instruction]

    cases = [st.Case(name, name, tags=["all", "odd" if number % 2 else "even"]) for number, name in enumerate(says)]
    suite = st.Suite(agents={"mine": agent}, cases=cases, graders=[st.equals("yes")], retry=Retry(attempts=1))
    return st.run(suite, store="memory:", progress=False)


def test_a_result_in_a_notebook_says_what_came_of_it_and_why_runs_did_not_pass() -> None:
    with ran({"good": "yes", "bad": "no", "worse": "no", "lost": "raise"}) as result:
        shown = Checked(result._repr_html_())
    assert "mine passes 33.3% of 3 graded runs" in shown.text
    assert "Not counted: 1 errored." in shown.text
    assert "not counted: infrastructure_error" in shown.text
    assert {"table", "svg"} <= shown.found
    assert "Failed and errored (3)" in shown.text
    assert "bad and 1 alike" in shown.text
    assert 'the answer "no" != "yes"' in shown.text
    assert "By tag: the lowest pass rate first" in shown.text
    assert "equals\n1/3" in shown.text


def test_what_agents_say_is_text_in_a_notebook() -> None:
    with ran({"good": "yes", "bad": HOSTILE}) as before, ran({"good": HOSTILE, "bad": "yes"}) as after:
        for html in (before._repr_html_(), st.compare(before, after)._repr_html_()):
            shown = Checked(html)
            assert shown.found <= {"div", "table", "tr", "th", "td", "svg", "line", "pre"}
            assert not any(name.startswith("on") for name in shown.attributes)
            assert "<script>alert(1)</script>" in shown.text
            assert "\x1b" not in html
            assert "\u202e" not in html


def test_a_comparison_in_a_notebook_has_the_sentence_and_every_case_that_moved() -> None:
    names = [f"case-{number}" for number in range(8)]
    with ran(dict.fromkeys(names, "yes")) as before, ran(dict.fromkeys(names, "no")) as after:
        shown = Checked(st.compare(before, after)._repr_html_())
    assert "b is worse than a: −100.0 points" in shown.text
    assert "worse in tag all" in shown.text
    assert "Regressions (8)" in shown.text
    assert shown.text.count('the answer "no" != "yes"') == 8


def test_what_does_not_fit_into_a_notebook_is_counted() -> None:
    # Each fails in a way of its own, so that none is alike.
    graders: list[st.Grader] = [st.contains(f"word {number}", name=f"g-{number:02}") for number in range(30)]
    cases = [st.Case(f"case-{number:02}", "Go.", graders=[graders[number]]) for number in range(30)]
    suite = st.Suite(agents={"mine": lambda instruction: "no"}, cases=cases)
    with st.run(suite, store="memory:", progress=False) as result:
        shown = Checked(result._repr_html_())
    assert shown.text.count("failed\nmine") == MAX_ROWS
    assert "and 10 more: `result.failed`" in shown.text
    assert "… and 10 more rows" in shown.text


def test_how_far_an_experiment_has_come_is_one_line_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    # As the standard error of Jupyter's kernel is: no terminal, and of this module.
    cell = type("OutStream", (StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", cell)
    monkeypatch.setattr("seatrial.reports.progress.NOTEBOOK_INTERVAL_S", 0.0)
    suite = st.Suite(agents={"mine": lambda instruction: "no"}, cases=[st.Case("a", "b")], graders=[st.contains("no")])
    with st.run(suite, store="memory:", trials=3):
        written = cell.getvalue()
    head, _, drawn = written.partition("\n")
    assert re.fullmatch(r"experiment \S+: 3 runs", head)
    assert "3/3 runs: 3 passed" in drawn
    assert "\n" not in drawn
    assert "\x1b" not in drawn
    # What stays is an empty line: each is drawn over.
    lines = drawn.split("\r")
    assert lines[-1] == ""
    assert not lines[-2].strip()
    assert len(lines[-2]) == len(lines[-3])
