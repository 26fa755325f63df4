"""Finding text in one run, in stores of each kind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from strategies import records

from seatrial.formats.reading import Reading
from seatrial.runs import Run
from seatrial.store import Store, TextHits
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)


def recorded(store: Store, *messages: Message, **fields: Any) -> Run:
    run = records.run(reading=Reading("agent_response", Transcript(list(messages)), []), **{"steps": [], **fields})
    store.record_run(run).wait()
    return run


def pointers(found: TextHits) -> list[str]:
    return [hit.pointer for hit in found.hits]


@pytest.mark.parametrize("filler", [0, 300], ids=["in its document", "in rows"])
def test_every_text_is_found_where_it_stands(filled: Store, filler: int) -> None:
    huge = "x" * 40_000 + " Needle at the end"
    calls: list[Any] = [ToolCall("c", "look", {"needle": 1, "list": ["a needle"]})]
    run = recorded(
        filled,
        *[UserMessage("nothing") for _ in range(filler)],
        UserMessage("a NEEDLE, a needle"),
        AssistantMessage(calls, StopReason.TOOL_USE),
        ToolResultMessage("c", "look", [TextBlock(huge)]),
        CustomMessage("kind", {"deep": {"x": "needle"}}),
    )
    found = filled.find_in_run(run.run_id, "needle")
    assert pointers(found) == [
        f"/messages/{filler}/content",
        f"/messages/{filler + 1}/content/0/arguments/needle",
        f"/messages/{filler + 1}/content/0/arguments/list/0",
        f"/messages/{filler + 2}/content/0/text",
        f"/messages/{filler + 3}/payload/deep/x",
    ]
    assert found.after is None
    first, _, _, long, _ = found.hits
    assert (first.before, first.match, first.after, first.count, first.role) == (
        "a ",
        "NEEDLE",
        ", a needle",
        2,
        "user",
    )
    assert (long.match, long.offset, long.role) == ("Needle", 40_001, "tool_result")


@pytest.mark.parametrize(
    "text", ['say "hi"', "a\\b", "line\nbreak", "<script>", "ÄÖÜ straße", "日本語", "émile", "100%", "(a|b)*", "\u202e"]
)
def test_what_is_looked_for_is_taken_as_it_is(filled: Store, text: str) -> None:
    run = recorded(filled, UserMessage(f"before {text} after"), UserMessage("nothing"))
    [hit] = filled.find_in_run(run.run_id, text).hits
    assert (hit.pointer, hit.match, hit.before, hit.after) == ("/messages/0/content", text, "before ", " after")
    assert filled.find_in_run(run.run_id, text.upper()).hits == [hit] or text.upper() == text or "ß" in text


def test_roles_and_types_are_no_texts(filled: Store) -> None:
    run = recorded(filled, UserMessage("hello"), AssistantMessage([TextBlock("hi")], StopReason.END_TURN))
    for text in ("assistant", "end_turn", "content", "role", '"'):
        assert filled.find_in_run(run.run_id, text) == TextHits([], None)


def test_steps_are_searched_unless_messages_say_the_same(filled: Store) -> None:
    said = Step(0, "look", {"q": "needle"}, "c", "messages", "ok")
    seen = Step(1, "look", {"q": "needle"}, "d", "observed", "ok", {"found": "n" * 40_000 + "needle"})
    run = recorded(filled, UserMessage("hello"), steps=[said, seen])
    assert pointers(filled.find_in_run(run.run_id, "needle")) == ["/steps/1/arguments/q", "/steps/1/result/found"]


def test_a_search_stops_when_it_has_enough_and_goes_on_where_it_stopped(filled: Store) -> None:
    run = recorded(
        filled,
        *[UserMessage(f"needle {index}") for index in range(250)],
        steps=[Step(index, "look", {"q": "needle"}, None, "trace", "ok") for index in range(5)],
    )
    found: list[str] = []
    after = -1
    for _ in range(1000):
        page = filled.find_in_run(run.run_id, "needle", after=after, limit=7)
        assert len(page.hits) <= 7
        found += pointers(page)
        if page.after is None:
            break
        after = page.after
    assert found == [f"/messages/{n}/content" for n in range(250)] + [f"/steps/{n}/arguments/q" for n in range(5)]


def test_a_search_decodes_no_more_than_it_may(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.store import find

    monkeypatch.setattr(find, "MAX_DECODED", 1_000)
    run = recorded(filled, *[UserMessage("a" * 100) for _ in range(200)], UserMessage("role play"))
    found = filled.find_in_run(run.run_id, "role")
    assert found.hits == []
    assert found.after is not None
    while found.after is not None and not found.hits:
        found = filled.find_in_run(run.run_id, "role", after=found.after)
    assert pointers(found) == ["/messages/200/content"]


def test_nothing_is_found_in_nothing(filled: Store) -> None:
    run = recorded(filled, UserMessage("hello"))
    for text in ("", "  ", "\n"):
        assert filled.find_in_run(run.run_id, text) == TextHits([], None)
    unread = records.run(1, said=(), status="failed", outcome=None)
    filled.record_run(unread).wait()
    assert filled.find_in_run(unread.run_id, "hello").hits == []


def test_found_texts_are_data(filled: Store) -> None:
    run = recorded(filled, UserMessage("hello"))
    assert msgspec.to_builtins(filled.find_in_run(run.run_id, "ell").hits[0])["match"] == "ell"
