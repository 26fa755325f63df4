"""Single texts of a run, and images of its record."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from strategies import records

from explorer.test_routes import BROWSER, fetched
from explorer.test_transcript import recorded
from seatrial.errors import SeatrialError
from seatrial.explorer.texts import MAX_LINES, image_at, text_at, text_range
from seatrial.store import Store
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)

GIF = base64.b64encode(b"GIF89a and so on").decode()


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_experiment(records.experiment(), records.cases(5))
    return store


def whole(text: str, count: int) -> str:
    """A text put together from its pages."""
    found, first = "", 0
    while True:
        page = text_range("run", "/answer", text, first, count)
        found += text.encode()[page.first : page.end].decode()
        assert page.end > first or not text
        first = page.end
        if page.after is None:
            return found


@pytest.mark.parametrize("text", ["", "a", "a\n", "ä€😀" * 5, "one\ntwo\r\n\nthree", "x" * 100, "\n" * 30])
@pytest.mark.parametrize("count", [4, 7, 64])
def test_the_pages_of_a_text_are_all_of_it(text: str, count: int) -> None:
    assert whole(text, count) == text


def test_a_page_of_a_text_ends_with_a_line_and_numbers_its_lines() -> None:
    page = text_range("run", "/answer", "first\nsecond\nthird\n", 6, 10)
    assert [(line.number, line.text) for line in page.lines] == [(2, "second")]
    assert (page.total_lines, page.size, page.after) == (4, 19, "/runs/run/text/answer?from=13")
    page = text_range("run", "/answer", "first\nsecond", 8, 10)
    assert [(line.number, line.text) for line in page.lines] == [(None, "cond")]


def test_a_very_long_line_is_cut_and_says_how_much_there_is_and_where() -> None:
    page = text_range("run", "/answer", "x" * 100_000 + "\nend", 0, 0)
    assert (len(page.lines[0].text), page.lines[0].rest) == (2_000, 98_000)
    assert page.lines[0].more == "/runs/run/text/answer?from=2000"


def test_a_page_has_so_many_lines_at_most() -> None:
    page = text_range("run", "/answer", "\n" * 10_000, 0, 0)
    assert len(page.lines) == MAX_LINES
    assert page.after == f"/runs/run/text/answer?from={MAX_LINES}"


def test_texts_and_values_are_found_by_their_pointers(filled: Store) -> None:
    huge = "a long line\n" * 5_000
    blocks: list[Any] = [TextBlock("hi"), ToolCall("c", "look", {"a/b": [1, {"deep": "value"}], "text": huge})]
    run = recorded(
        filled,
        UserMessage("question"),
        AssistantMessage(blocks, StopReason.TOOL_USE),
        ToolResultMessage("c", "look", [TextBlock(huge)]),
        steps=[Step(0, "look", {"q": 1}, "c", "trace", "ok", {"rows": [huge]})],
        answer="done",
    )
    for pointer, text in {
        "/messages/0/content": "question",
        "/messages/1/content/0/text": "hi",
        "/messages/1/content/1/arguments/a~1b/1/deep": "value",
        "/messages/1/content/1/arguments/text": huge,
        "/messages/2/content/0/text": huge,
        "/steps/0/result/rows/0": huge,
        "/steps/0/arguments/q": "1",
        "/answer": "done",
    }.items():
        assert text_at(filled, run.run_id, pointer).text == text, pointer
    assert "a long line" in text_at(filled, run.run_id, "/messages/2").text
    assert len(text_at(filled, run.run_id, "/steps/0").text) > len(huge)
    assert text_at(filled, run.run_id, "/messages/1/content/0/text").prose
    assert not text_at(filled, run.run_id, "/messages/2/content/0/text").prose


@pytest.mark.parametrize(
    "pointer",
    ["", "/", "/messages", "/messages/9", "/messages/0/nothing", "/messages/0/content/0", "/answer/1", "/x/0"],
)
def test_what_is_not_there_is_not_found(filled: Store, pointer: str) -> None:
    run = recorded(filled, UserMessage("question"))
    with pytest.raises(SeatrialError) as raised:
        text_at(filled, run.run_id, pointer)
    assert raised.value.code == "not_found"


def test_an_image_is_served_by_what_it_is_and_not_by_what_is_said_of_it(filled: Store) -> None:
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>").decode()
    sources = [
        f"data:text/html;base64,{GIF}",
        f"data:image/png;base64,{svg}",
        "data:image/svg+xml,<svg/>",
        "https://example.com/a.png",
        "data:image/png;base64,%%%",
    ]
    blocks: list[UserBlock] = [ImageBlock(source) for source in sources]
    run = recorded(filled, UserMessage(blocks))
    assert image_at(filled, run.run_id, "/messages/0/content/0")[0] == "image/gif"
    for index in range(1, len(sources)):
        with pytest.raises(SeatrialError, match=r"image|nothing"):
            image_at(filled, run.run_id, f"/messages/0/content/{index}")
    status, headers, _ = fetched(filled, f"/runs/{run.run_id}/image/messages/0/content/0")
    assert (status, headers["Content-Type"]) == (200, "image/gif")
    assert headers["Content-Security-Policy"].startswith("sandbox")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_text_is_a_page_and_as_a_part_it_is_whole(filled: Store) -> None:
    run = recorded(filled, UserMessage("**line**\n" * 100))
    path = f"/runs/{run.run_id}/text/messages/0/content"
    status, headers, text = fetched(filled, path)
    assert status == 200
    assert text.count("**line**") == 100
    assert "Seatrial-Fragment" not in headers
    status, headers, text = fetched(filled, path, {**BROWSER, "Seatrial-Fragment": "1"})
    assert (status, headers["Seatrial-Fragment"]) == (200, "1")
    assert text.count("<strong>line</strong>") == 100
    assert "<html" not in text
