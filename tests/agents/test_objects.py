"""Objects of frameworks, as local classes with the methods and fields of theirs: the packages are no dependency."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import pytest

from agents.setting import ask
from seatrial.agents.agent import Reply
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.objects import to_json_values
from seatrial.agents.python.returned import read_returned
from seatrial.errors import SeatrialError
from seatrial.trajectory import extract


class Model:
    """A pydantic model: fields declared with a base class are written whole only with `serialize_as_any`, and under the
    names in which they are sent only with `by_alias`."""

    aliases: ClassVar[dict[str, str]] = {}

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str, by_alias: bool, serialize_as_any: bool, warnings: bool) -> dict[str, Any]:
        assert mode == "json"
        assert serialize_as_any
        names = self.aliases if by_alias else {}
        return {names.get(name, name): to_json_values(value) for name, value in self.fields.items()}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.fields.items())


class OldModel(Model):
    """A model of a pydantic without `serialize_as_any`."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:  # type: ignore[override]
        raise AssertionError("it would lose the fields of subclasses")


@dataclasses.dataclass
class Part:
    tool_name: str
    args: Any
    part_kind: str = "tool-call"
    tool_call_id: str = "c1"


@dataclasses.dataclass
class Response:
    parts: list[Any]
    kind: str = "response"


@dataclasses.dataclass
class PydanticAIResult:
    """Its state is a field like any other; its history is what `all_messages` gives."""

    output: Any
    _state: Any = None

    def all_messages(self) -> list[Any]:
        return [
            Response([Part("delete_account", {"id": 7})]),
            Response([{"part_kind": "text", "content": "Done."}]),
        ]


class RunItem:
    """An item of the OpenAI Agents SDK."""

    def __init__(self, item: Any) -> None:
        self.agent, self.item = object(), item

    def to_input_item(self) -> Any:
        return self.item


CALL_ITEM = {"type": "function_call", "call_id": "c1", "name": "delete_account", "arguments": '{"id": 7}'}
RESULT_ITEM = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


class AgentsResult:
    final_output = "Done."

    def to_input_list(self) -> list[Any]:
        return [{"role": "user", "content": "Go."}, Model(**CALL_ITEM), RESULT_ITEM, Model(**ITEM)]


HUMAN = Model(type="human", content="Go.", id="m1")
AI = Model(type="ai", content="", id="m2", tool_calls=[{"name": "delete_account", "args": {"id": 7}, "id": "c1"}])
TOOL = Model(type="tool", content="ok", tool_call_id="c1", id="m3")
LAST = Model(type="ai", content="Done.", id="m4", tool_calls=[])
STATE = {"messages": [HUMAN, AI, TOOL, LAST]}
UPDATES = [{"agent": {"messages": [AI]}}, {"tools": {"messages": [TOOL]}}, {"agent": {"messages": [LAST]}}]
CHAT = [
    {"role": "user", "content": "Go."},
    Model(role="assistant", content=None, tool_calls=[{"id": "c1", "function": {"name": "delete_account"}}]),
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    Model(role="assistant", content="Done."),
]

RETURNED = {
    "a LangGraph state": STATE,
    "a state that is a model": Model(**STATE),
    "a state that is a model of an older pydantic": OldModel(**STATE),
    "its messages": STATE["messages"],
    "the updates of a graph": UPDATES,
    "an answer with messages": {"final_response": "Done.", "messages": STATE["messages"]},
    "messages of OpenAI's package among others": {"final_response": "Done.", "messages": CHAT},
    "items of OpenAI's package among others": [
        {"role": "user", "content": "Go."},
        Model(**CALL_ITEM),
        RESULT_ITEM,
        ITEM,
    ],
    "a result of Pydantic AI": PydanticAIResult("Done."),
    "a result of the OpenAI Agents SDK": AgentsResult(),
    "new items of the OpenAI Agents SDK": [RunItem(CALL_ITEM), RunItem(RESULT_ITEM), RunItem(ITEM)],
}


@pytest.mark.parametrize("name", RETURNED)
def test_the_calls_in_what_a_framework_returns_are_read(name: str) -> None:
    _check_deletes(read_returned(RETURNED[name]))


def _check_deletes(reply: Reply) -> None:
    assert reply.fault is None, reply.fault
    assert reply.reading is not None
    found = extract(reply.reading)
    assert [step.name for step in found.steps] == ["delete_account"]
    assert found.completeness.level == "complete"
    assert reply.reading.transcript.final_text() == "Done."


def test_a_result_that_is_no_text_is_the_answer_as_json() -> None:
    reading = read_returned(PydanticAIResult({"warm": True})).reading
    assert reading is not None
    assert reading.transcript.final_text() == '{"warm":true}'


def _run(function: Any) -> Reply:
    async def run() -> Reply:
        config = PythonConfig(target="nobody:function")
        async with PythonAgent(config, directory=Path(), timeout_s=60, function=function) as agent:
            return await ask(agent)

    return asyncio.run(run())


def test_objects_are_converted_when_a_function_returns_them() -> None:
    _check_deletes(_run(lambda: UPDATES))


def test_the_updates_that_a_graph_streams_are_read_when_a_function_yields_them() -> None:
    def agent() -> Iterator[Any]:
        yield from UPDATES

    _check_deletes(_run(agent))


class EventType(enum.Enum):
    START, END, TEXT = "TOOL_CALL_START", "TOOL_CALL_END", "TEXT_MESSAGE_CHUNK"


class Event(Model):
    """An event of the package `ag_ui`."""

    aliases: ClassVar[dict[str, str]] = {"tool_call_id": "toolCallId", "tool_call_name": "toolCallName"}

    def __init__(self, kind: EventType, **fields: Any) -> None:
        super().__init__(type=kind, **fields)
        self.type = kind


class OldEvent(Event):
    """The same with a pydantic that writes it field by field."""

    model_fields: ClassVar[dict[str, Any]] = {
        name: SimpleNamespace(serialization_alias=alias) for name, alias in Event.aliases.items()
    }

    def model_dump(self, *, mode: str) -> dict[str, Any]:  # type: ignore[override]
        raise AssertionError("it would lose the fields of subclasses")


@pytest.mark.parametrize("kind", [Event, OldEvent])
@pytest.mark.parametrize("begun", [[], ["It is "]])
def test_events_of_the_ag_ui_package_are_events_beside_text_as_well(kind: type[Event], begun: list[str]) -> None:
    def agent() -> Iterator[Any]:
        yield from begun
        yield kind(EventType.START, tool_call_id="c1", tool_call_name="delete_account")
        yield kind(EventType.END, tool_call_id="c1")
        yield "Done."

    reply = _run(agent)
    assert reply.fault is None, reply.fault
    assert reply.reading is not None
    found = extract(reply.reading)
    assert [(step.id, step.name) for step in found.steps] == [("c1", "delete_account")]
    assert found.completeness.level == "complete"
    assert "Done." in (reply.reading.transcript.final_text() or "")


@pytest.mark.parametrize(
    "items",
    [
        [({"type": "AIMessageChunk", "content": "Hi"}, {"langgraph_node": "agent", "langgraph_step": 1})] * 2,
        [("updates", {"agent": {"messages": []}}), ("values", {"messages": []})],
        [((), {"agent": {"messages": []}}), (("sub:1",), {"agent": {"messages": []}})],
        [((), "updates", {"agent": {"messages": []}})],
    ],
)
def test_what_a_graph_streams_in_tuples_is_refused_by_name(items: list[Any]) -> None:
    def agent() -> Iterator[Any]:
        yield from items

    for fault in (_run(agent).fault, _run(lambda: items).fault):
        assert fault is not None
        assert fault.error_class == "agent_bad_response"
        assert "`graph.stream` of LangGraph" in fault.message
        assert "--from" not in fault.message


def test_what_is_yielded_and_is_nothing_that_is_known_is_a_fault() -> None:
    def agent() -> Iterator[Any]:
        yield {"foo": 1}

    fault = _run(agent).fault
    assert fault is not None
    assert fault.error_class == "agent_bad_response"


class Opaque:
    pass


def test_what_cannot_be_converted_is_named_with_its_place_and_what_to_do() -> None:
    fault = read_returned({"final_response": "Done.", "messages": [Opaque()]}).fault
    assert fault is not None
    assert fault.error_class == "agent_bad_response"
    assert "at /messages/0: a agents.test_objects.Opaque" in fault.message
    assert "model_dump()" in fault.message


def test_a_method_that_raises_is_named() -> None:
    class Broken:
        def to_dict(self) -> Any:
            raise RuntimeError("no")

    with pytest.raises(SeatrialError, match=r"`Broken.to_dict` raised RuntimeError: no"):
        to_json_values([Broken()])


def test_objects_that_hold_each_other_end_in_a_fault() -> None:
    @dataclasses.dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    with pytest.raises(SeatrialError, match="more than 200 levels"):
        to_json_values(node)


def test_structs_and_values_that_json_has_no_type_for_are_left_to_the_encoder() -> None:
    class Point(msgspec.Struct, rename="camel"):
        some_x: int
        other: Any = None

    assert to_json_values([Point(1, Model(y=2))]) == [{"someX": 1, "other": {"y": 2}}]


class Origin:
    """How the OpenAI Agents SDK says what kind of tool it was that a call went to."""

    def __init__(self, kind: str) -> None:
        self.type = kind


class AgentsItem:
    def __init__(self, item: Any, kind: str) -> None:
        self.raw_item, self.tool_origin = item, Origin(kind)

    def to_input_item(self) -> Any:
        return self.raw_item


class AgentsResultWithOrigins(AgentsResult):
    def __init__(self, kind: str) -> None:
        self.new_items = [AgentsItem(CALL_ITEM, kind), AgentsItem(RESULT_ITEM, kind)]


@pytest.mark.parametrize(("kind", "level"), [("function", "complete"), ("agent_as_tool", "partial")])
def test_what_an_agent_called_that_was_called_as_a_tool_is_unknown(kind: str, level: str) -> None:
    result = AgentsResultWithOrigins(kind)
    for returned in (result, [*result.new_items, ITEM]):
        reading = read_returned(returned).reading
        assert reading is not None
        found = extract(reading)
        assert [step.name for step in found.steps] == ["delete_account"]
        assert found.completeness.level == level
        assert [note.code for note in reading.notes if note.serious] == ["subagent_missing"] * (level == "partial")
