"""Full-text search, on both stores."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import RunKey
from seatrial.store import Store, open_store, search
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, StopReason, SystemMessage, ThinkingBlock, ToolCall, Transcript

HOSTILE = [
    '"',
    '"""',
    "a AND",
    "OR OR",
    "NOT",
    "NEAR(a b",
    "text:order",
    "-order",
    "order)",
    "(order",
    "{order}",
    "^order",
    "or*der",
    "a + b",
    "'order'",
    "order & ! | <-> :*",
    "\\",
    "\\'",
    "%s %(x)s",
    ":query ?",
    "\0",
    "order\0",
    "\ud800",
    "\u202e\u200b",
    "x" * 100_000,
    "word " * 10_000,
    "1e999 0x10 1.2.3.4 /usr/bin http://a.b/c?d=e <b>bold</b>",
]


@pytest.fixture(scope="module")
def library(shared_store: Store) -> Store:
    """Three runs that say different things; only to be read."""
    shared_store.create_experiment(records.experiment(), records.cases(5))
    fill(shared_store)
    return shared_store


@pytest.fixture
def shelf(filled: Store) -> Store:
    """The same three, to be changed."""
    fill(filled)
    return filled


def fill(store: Store) -> None:
    """Record the three."""
    said = [
        ("Where is order A-17?", "Order A-17 left the Warehouse on Monday."),
        ("Refund my order, please.", "I refunded 12.50 EUR to your card."),
        ("Grüße aus Köln, 日本語", "Don't worry: naïve café #42 is OPEN_NOW"),
    ]
    for case, texts in enumerate(said):
        steps = [Step(0, "send_receipt", {"to": f"user{case}@mail.example", "lines": ["first\nsecond"]})]
        store.record_run(records.run(case, said=texts, steps=steps)).wait()


@pytest.mark.parametrize(
    ("query", "cases"),
    [
        ("order", [1, 0]),
        ("ORDER warehouse", [0]),
        ("warehouse order", [0]),
        ("order nothing", []),
        ('"left the warehouse"', [0]),
        ('"warehouse the left"', []),
        ('"left the', [0]),
        ("ware*", [0]),
        ("ware", []),
        ("refund*", [1]),
        ("A-17", [0]),
        ("12.50", [1]),
        ("open_now", [2]),
        ("now", [2]),
        ("grüße köln", [2]),
        ("GRÜSSE", []),
        ("cafe", []),
        ("日本語", [2]),
        ("user1@mail.example", [1]),
        ("send_receipt", [2, 1, 0]),
        ("second", [2, 1, 0]),
        ("don't", [2]),
        ("", []),
        ("   ", []),
        ("!?* - \"\" ''", []),
    ],
)
def test_runs_that_contain_all_of_it_are_found_the_newest_first(library: Store, query: str, cases: list[int]) -> None:
    found = [hit.key.case_id for hit in library.search(query) if isinstance(hit.key, RunKey)]
    assert found == [f"case-{case}" for case in cases]


def test_nothing_that_is_typed_is_an_error(library: Store) -> None:
    for query in HOSTILE:
        assert isinstance(library.search(query), list)


@given(query=st.text(max_size=40) | st.text("\"'*()-:^ aAND&|!<>\\%?{}~@", max_size=40))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_query_is_an_error(library: Store, query: str) -> None:
    library.search(query)


def test_a_hit_says_where_it_is_and_shows_the_text_around_it(library: Store) -> None:
    [hit] = library.search("monday")
    assert (hit.run_id, hit.experiment_id, hit.pointer) == ("run-crew-case-0-1", "exp-1", "/messages/1")
    assert hit.snippet == "Order A-17 left the Warehouse on Monday."
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Monday"]
    assert library.search("user0")[0].pointer == "/steps/0"


def test_a_snippet_of_a_long_text_is_short_and_holds_the_words(filled: Store) -> None:
    text = "lorem ipsum " * 1000 + "the needle is here " + "dolor sit " * 500
    filled.record_run(records.run(said=("hay", text))).wait()
    [hit] = filled.search("needle")
    assert len(hit.snippet) <= 200
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["needle"]


def test_search_keeps_to_an_experiment_when_asked_to(shelf: Store) -> None:
    shelf.create_experiment(records.experiment("exp-2"), records.cases(1))
    shelf.record_run(records.run(experiment_id="exp-2", run_id="other", said=("my order",))).wait()
    assert [hit.run_id for hit in shelf.search("order", experiment_id="exp-2")] == ["other"]
    assert len(shelf.search("order")) == 3
    assert len(shelf.search("order", limit=2)) == 2


def test_a_replaced_run_is_found_by_its_new_words_only(shelf: Store) -> None:
    shelf.record_run(records.run(0, run_id="again", said=("Where?", "It sank.")), replace=True).wait()
    assert shelf.search("warehouse") == []
    assert [hit.run_id for hit in shelf.search("sank")] == ["again"]


def test_a_run_that_was_recorded_twice_is_found_once(shelf: Store) -> None:
    run = records.run(3, said=("unheard", "of"))
    shelf.record_run(run)
    shelf.record_run(run).wait()
    assert len(shelf.search("unheard")) == 1


def test_huge_texts_are_kept_whole_and_indexed_in_part(filled: Store) -> None:
    words = " ".join(f"w{number:x}é" for number in range(400_000))
    run = records.run(said=("small question", words, "another question", "日本語" * 50_000))
    filled.record_run(run).wait()
    assert filled.run(run.run_id) == run
    assert len(filled.search("w1é")) == 1
    assert len(filled.search('"another question"')) == 1
    assert filled.search("w61a7fé") == []


def test_hidden_channels_tools_and_results_are_searched_too() -> None:
    reading = records.reading()
    reading.transcript = Transcript(
        [
            SystemMessage("be brief"),
            AssistantMessage(
                [ThinkingBlock("perhaps"), ToolCall("c", "look_up", {"n": [1.5, True, 7]})], StopReason.OTHER
            ),
        ],
        answer="forty-two",
    )
    assert list(search.pieces(reading, [])) == [
        ("/messages/0", "be brief"),
        ("/messages/1", "perhaps\nlook_up n 1.5 7"),
        ("/answer", "forty-two"),
    ]
    steps = [Step(0, "look_up", {"n": 1}, source="observed", result={"found": "it"})]
    assert list(search.pieces(reading, steps))[1:] == [
        ("/messages/1", "perhaps"),
        ("/answer", "forty-two"),
        ("/steps/0", "look_up n 1\nfound it"),
    ]


def test_a_query_is_words_phrases_and_prefixes() -> None:
    assert search.phrases('a "b c" d* e_f "g*') == [
        search.Phrase(("a",)),
        search.Phrase(("b", "c")),
        search.Phrase(("d",), prefix=True),
        search.Phrase(("e", "f")),
        search.Phrase(("g",)),
    ]


def test_a_search_in_sqlite_walks_its_index_and_sorts_nothing(tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = []

    def listen(connection: sa.Connection, cursor: Any, statement: str, parameters: Any, *more: object) -> None:
        asked.append((statement, parameters))

    with open_store(tmp_path / "runs.db") as store:
        store.create_experiment(records.experiment(), records.cases(5))
        fill(store)
        sa.event.listen(sa.Engine, "before_cursor_execute", listen)
        try:
            assert len(store.search("order")) > 1
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", listen)
        (query,) = [each for each in asked if "MATCH" in each[0]]
        with sqlite3.connect(tmp_path / "runs.db") as connection:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query[0]}", query[1])]
        connection.close()
    assert plan[0].startswith("SCAN words"), "the newest runs first, as the index has them"
    # Where every run has the word, sorting them would take as long as there are runs.
    assert not [line for line in plan if "TEMP B-TREE" in line]


def test_names_are_found_by_a_part_and_runs_by_the_beginning_of_their_id(library: Store) -> None:
    found = library.named("E-1")
    assert [each.case_id for each in found.cases] == ["case-1"]
    assert [each.run_id for each in library.named("run-crew-case-1").runs] == ["run-crew-case-1-1"]
    assert [each.experiment_id for each in library.named("exp-").experiments] == ["exp-1"]
    assert library.named("Z").runs == library.named("ru").runs == []
    for hostile in ("%", "_a_", "\0", "\\\\\\", "'''", '"', "\ud800\udfff", "\U0010ffff" * 3):
        assert library.named(hostile).runs == []


def test_hits_that_are_older_than_a_run_follow(library: Store) -> None:
    newest, *older = library.search("send_receipt")
    assert library.search("send_receipt", before=newest.run_id) == older
    with pytest.raises(SeatrialError, match="no run"):
        library.search("send_receipt", before="nothing")
