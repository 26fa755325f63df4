from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from strategies import records
from strategies.page import OUTSIDE, Page
from strategies.reported import HOSTILE, detail, joined, row, rows_of, source

from seatrial.reports.compare import Comparison, compare
from seatrial.reports.compare_html import MAX_LISTED, comparison_html
from seatrial.trajectory.step import Step


def page(*comparisons: Comparison) -> Page:
    return Page(joined(comparison_html(comparisons)))


def tagged() -> Comparison:
    tags = {f"case-{index}": ["account" if index < 20 else "other"] for index in range(40)} | {"case-40": ["broken"]}
    before = source(rows_of(crew="p " * 40 + "e"), name="monday", tags=tags)
    after = source(rows_of(crew="f " * 10 + "p " * 31), name="tuesday", tags=tags)
    return compare(before, after, "crew", "crew")


def hostile(text: str) -> Comparison:
    one = source([row(text, agent=text, run_id="1")], name=text, experiment_id=text, tags={text: [text]})
    failed = row(text, "failed", agent=text, run_id="2", detail=detail(text))
    other = source([failed], name=text, experiment_id=text, suite_hash="x", tags={text: [text]})
    steps = {"1": [Step(0, text, {text: text})], "2": [Step(0, text, {text: f"{text}!"}), Step(1, text, text)]}
    return compare(one, other, text, text, lambda run_id: records.run(steps=steps[run_id]))


def test_the_page_says_first_what_is_worse_in_which_tag() -> None:
    text = page(tagged()).text
    places = [
        text.index(part)
        for part in (
            "monday → tuesday",
            "worse in tag account: 100 → 50.0 %",
            "b is worse than a: −25.0 points",
            "40 cases with graded runs on both sides",
            "By tag",
            "broken: 1 case is left out: a: agent_unreachable (1).",
            "Regressions (10)",
        )
    ]
    assert places == sorted(places)


def test_a_case_that_moved_has_its_reason() -> None:
    before = source([row("x")], name="monday")
    after = source([row("x", "failed", detail=detail("the amount is 200"))], name="tuesday")
    assert "the amount is 200" in page(compare(before, after, "crew", "crew")).text


def test_the_page_is_one_file_that_asks_for_nothing() -> None:
    written = joined(comparison_html([tagged(), tagged()], ["one agent could not be compared"]))
    found = Page(written)
    assert not OUTSIDE & set(found.tags)
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert not [name for name, _ in found.attributes if name == "src" or name == "style" or name.startswith("on")]
    assert "one agent could not be compared" in found.text
    style = re.search(r"<style>(.*?)</style>", written, re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style.group(1).encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in written


def test_a_long_list_is_cut_and_counted() -> None:
    count = MAX_LISTED + 3
    found = compare(source(rows_of(crew="p " * count)), source(rows_of(crew="f " * count)), "crew", "crew")
    assert "… and 3 more." in page(found).text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    found, plain = page(hostile(text)), page(hostile("plain"))
    assert found.tags == plain.tags
    assert [name for name, _ in found.attributes] == [name for name, _ in plain.attributes]
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]", found.text)
