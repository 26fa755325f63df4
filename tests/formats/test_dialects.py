"""Messages of every dialect, wherever they stand: what the agent did is the same, and nothing of it is lost unsaid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.spellings import SPELLINGS, STEPS, steps_of

from seatrial import formats
from seatrial.agents.python.returned import read_returned
from seatrial.errors import SeatrialError
from seatrial.formats.dialects import DIALECTS, find_dialect
from seatrial.formats.reading import Reading

SAMPLES = Path(__file__).parent.parent / "resources" / "foreign"
FORMAT_OF = {"gemini": "gemini", "langchain": "langchain", "langgraph": "langchain", "pydantic": "pydantic-ai",
             "strands": "bedrock", "vercel": "vercel"}  # fmt: skip
FOREIGN = [path for path in sorted(SAMPLES.iterdir()) if path.suffix != ".md"]


def _returned(value: Any) -> Reading:
    reading = read_returned(value).reading
    assert reading is not None
    return reading


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


CONTAINERS: dict[str, Callable[[str, list[Any]], Reading]] = {
    "array": lambda name, items: formats.read(_bytes(items), name),
    "lines": lambda name, items: formats.read(b"\n".join([_bytes(item) for item in items]), name),
    "messages": lambda name, items: formats.read(_bytes({_key(name): items}), name),
    "agent response": lambda name, items: formats.read(
        _bytes({"final_response": "Done.", "messages": items}), "agent-response"
    ),
    "output_messages": lambda name, items: formats.read(_bytes({"output_messages": items}), "output-messages"),
    "returned list": lambda name, items: _returned(items),
    "returned response": lambda name, items: _returned({"final_response": "Done.", "messages": items}),
    "openai": lambda name, items: formats.read(_bytes({"messages": items}), "openai"),
}


def _key(name: str) -> str:
    return "contents" if name == "gemini" else "messages"


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_same_conversation_gives_the_same_steps(spelling: str, container: str) -> None:
    name, items = SPELLINGS[spelling]
    reading = CONTAINERS[container](name, items)
    assert sorted(steps_of(reading), key=str) == sorted(STEPS, key=str)
    assert reading.transcript.final_text() == "Done."
    assert not [note for note in reading.notes if note.serious]


def test_every_dialect_may_stand_in_one_list() -> None:
    """Ids are made unlike, because a call with an id that came before takes its place."""
    everything: list[Any] = []
    for number, (_, items) in enumerate(SPELLINGS.values()):
        text = json.dumps(items)
        for call in range(4):
            text = text.replace(f'"c{call}"', f'"c{call}-{number}"')
        everything += json.loads(text)
    reading = formats.read(_bytes({"output_messages": everything}), "output-messages")
    assert sorted(steps_of(reading), key=str) == sorted(STEPS * len(SPELLINGS), key=str)
    assert not [note for note in reading.notes if note.serious]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_list_and_an_object_of_messages_are_recognised_and_inside_of_a_response_they_change_nothing(
    spelling: str,
) -> None:
    name, items = SPELLINGS[spelling]
    assert formats.detect(_bytes(items)).format == name
    assert formats.detect(_bytes({_key(name): items})).format == name
    assert formats.detect(_bytes({"final_response": "x", "messages": items})).format == "agent-response"
    assert formats.detect(_bytes({"output_messages": items})).format == "output-messages"


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.name)
def test_what_a_real_package_wrote_is_recognised(path: Path) -> None:
    assert formats.detect(path.read_bytes()).format == FORMAT_OF[path.name.partition("_")[0]]


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.name)
def test_what_a_real_package_wrote_is_read_whole(path: Path) -> None:
    reading = formats.read(path.read_bytes(), FORMAT_OF[path.name.partition("_")[0]])
    steps = {name: (arguments, status, by) for name, arguments, status, by in steps_of(reading)}
    assert len(steps) == len(steps_of(reading))
    assert not [note for note in reading.notes if note.serious]
    assert steps["delete_account"][0] == {"id": 7}
    if path.name == "langchain_v1_blocks.json":
        assert steps["web_search"] == ({"query": "policy"}, "error", "provider")
        return
    assert steps["find_account"] == ({"email": "a@b.c"}, "ok", "agent")
    assert steps["delete_account"] == ({"id": 7}, "ok", "agent")
    assert steps["send_mail"] == ({"to": "a@b.c"}, "error", "agent")
    assert reading.transcript.final_text() == "Your account is closed."
    if path.name.startswith("gemini"):
        assert steps["code_execution"][1:] == ("error", "provider")
    if path.name.startswith(("vercel", "pydantic")):
        assert steps["web_search"] == ({"query": "policy"}, "ok", "provider")


JUNK: tuple[Any, ...] = (None, 7, True, "junk", [], {}, ["junk"], {"junk": {"name": "x"}})


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, inside in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _places(inside, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    copy = json.loads(json.dumps(value))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    return copy


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_wherever_junk_stands_the_forbidden_call_is_seen_or_a_serious_note_says_that_something_is_missing(
    spelling: str,
) -> None:
    name, items = SPELLINGS[spelling]
    silent = []
    for path in _places(items):
        for junk in JUNK:
            if _at(items, path) == "delete_account" and type(junk) is str:
                continue  # another tool was called
            if (path[-2:-1] == ("parts",) and type(junk) is str) or (path[-1] == "parts" and junk in ([], ["junk"])):
                continue  # text was said instead, or nothing: a UIMessage has a call and its result in one part
            reading = formats.read(_bytes({_key(name): _replaced(items, path, junk)}), name)
            names = [step[0] for step in steps_of(reading)]
            if "delete_account" not in names and not any(note.serious for note in reading.notes):
                silent.append((path, junk))
    assert silent == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=8), inside, max_size=3),
    max_leaves=8,
)
documents = st.sampled_from([*SPELLINGS.values()])
OTHERS: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "find_account"}]},
    {"role": "assistant", "type": "message", "content": "hi", "stop_reason": "end_turn"},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
    {"role": "assistant", "content": "", "toolInvocations": []},
    {"type": "function_call", "call_id": "c", "name": "find_account", "arguments": "{}"},
    {"author": "agent", "invocation_id": "i", "content": {"role": "model", "parts": [{"text": "hi"}]}},
]


def test_an_item_is_read_in_the_dialect_that_is_surest_of_it() -> None:
    whole = [*OTHERS, *[item for _, items in SPELLINGS.values() for item in items]]
    fewer = [{key: item[key] for key in item if key != left_out} for item in whole for left_out in item]
    spoken = [{**item, "content": content} for item in [*whole, *fewer] for content in ("text", None)]
    for item in [*whole, *fewer, *spoken]:
        sure = [dialect.fits(item) for dialect in DIALECTS]
        assert find_dialect(item) is (DIALECTS[sure.index(max(sure))] if any(sure) else None), item


@given(documents, st.data())
def test_no_value_in_any_place_is_more_than_an_error_of_ours(
    document: tuple[str, list[Any]], data: st.DataObject
) -> None:
    name, items = document
    changed: Any = items
    for _ in range(data.draw(st.integers(1, 3))):
        places = [*_places(changed)]
        changed = _replaced(changed, data.draw(st.sampled_from(places)), data.draw(values)) if places else changed
    for document_format, body in (
        (name, changed),
        (name, {_key(name): changed}),
        ("output-messages", {"output": changed}),
    ):
        try:
            steps_of(formats.read(_bytes(body), document_format))
        except SeatrialError:
            continue


@pytest.mark.parametrize("name", ["bedrock", "gemini", "vercel", "langchain", "pydantic-ai"])
def test_an_object_that_holds_no_messages_is_refused(name: str) -> None:
    for body in ({}, {"answer": "x"}, {"messages": 7}, {"contents": None}):
        with pytest.raises(SeatrialError) as caught:
            steps_of(formats.read(_bytes(body), name))
        assert caught.value.code == "invalid_document"
    with pytest.raises(SeatrialError):
        formats.read(b"not json at all", name)


@pytest.mark.parametrize("name", ["bedrock", "gemini", "vercel", "langchain", "pydantic-ai"])
def test_a_format_that_is_only_read_says_which_ones_are_written(name: str) -> None:
    reading = formats.read(b'[{"role": "user", "content": "hi"}]', "openai")
    with pytest.raises(SeatrialError, match="can be read but not written") as caught:
        formats.write(reading.transcript, name)
    assert caught.value.hint is not None
    assert "openai" in caught.value.hint
    assert name not in caught.value.hint
