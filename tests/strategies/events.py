"""Strategies for events: any event of any type, and runs that are legal."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET

from seatrial.events import types as t
from strategies.messages import json_objects, json_values, texts

ids = st.sampled_from(["m1", "m2", "m3", "", "é:x"])
call_ids = st.sampled_from(["c1", "c2", "m1"])
subagents = st.sampled_from(["s1", "s2"])


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The value, or an absent field."""
    return st.just(UNSET) | strategy


# Drawn as a whole, because a draw for each of many optional fields is most of what a test then does.
_COMMON: list[dict[str, Any]] = [
    {},
    {},
    {"metadata": {"k": [None, 1.5], "é": {}}},
    {"timestamp": 1_700_000_000_000, "raw_event": {"provider": True}},
    {"timestamp": -(2**53 - 1), "event_id": "evt-1", "created_at": "2026-03-28T09:59:00Z"},
    {"metadata": {}, "artifact_id": "art-1", "status": "input_required", "raw_event": [0]},
]
_ATTRIBUTED: list[dict[str, Any]] = [
    {},
    {},
    {},
    {"subagent_run_id": "s1"},
    {"subagent_run_id": "s2", "thread_id": "t1"},
]


def operations() -> st.SearchStrategy[dict[str, Any]]:
    """JSON Patch operations, which need not apply to anything."""
    path = st.sampled_from(["", "/a", "/a/0", "/a/-", "/b/a", "/b~1", "/0", "/a/b/c"])
    with_value = st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "replace", "test"]), "path": path, "value": json_values(max_leaves=3)}
    )
    with_from = st.fixed_dictionaries({"op": st.sampled_from(["copy", "move"]), "path": path, "from": path})
    return st.one_of(with_value, with_from, st.fixed_dictionaries({"op": st.just("remove"), "path": path}))


def usages() -> st.SearchStrategy[t.TokenUsage]:
    """Token counts of one model."""
    count = maybe(st.integers(0, 2**53 - 1))
    return st.builds(t.TokenUsage, provider=maybe(texts()), input_tokens=count, output_tokens=count)


def agui_messages() -> st.SearchStrategy[dict[str, Any]]:
    """AG-UI messages as JSON."""
    part = st.sampled_from([{"type": "text", "text": "x"}, {"type": "image", "source": {"type": "url", "value": "u"}}])
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return st.one_of(
        st.fixed_dictionaries(
            {"id": ids, "role": st.sampled_from(["system", "developer", "user"]), "content": texts()}
        ),
        st.fixed_dictionaries({"id": ids, "role": st.just("user"), "content": st.lists(part, max_size=2)}),
        st.fixed_dictionaries({"id": ids, "role": st.just("assistant")}, optional={"content": texts()}),
        st.fixed_dictionaries({"id": ids, "role": st.just("assistant"), "toolCalls": st.just([call])}),
        st.fixed_dictionaries({"id": ids, "role": st.just("tool"), "toolCallId": call_ids, "content": texts()}),
        st.fixed_dictionaries({"id": ids, "role": st.just("reasoning"), "content": texts()}),
        st.fixed_dictionaries(
            {"id": ids, "role": st.just("activity"), "activityType": st.just("PLAN"), "content": json_objects()}
        ),
    )


def _outcomes() -> st.SearchStrategy[t.RunOutcome]:
    interrupt = st.builds(t.Interrupt, id=texts(), reason=st.just("confirmation"), message=maybe(texts()))
    return st.one_of(
        st.builds(t.SuccessOutcome, pending_tool_call_ids=maybe(st.lists(call_ids, max_size=2))),
        st.builds(t.InterruptOutcome, interrupts=st.lists(interrupt, min_size=1, max_size=2)),
        st.builds(t.CancelledOutcome),
    )


_SPECIFIC: dict[type[Any], dict[str, st.SearchStrategy[Any]]] = {
    t.RunStarted: {"thread_id": texts(min_size=1), "run_id": texts(min_size=1), "protocol_version": maybe(texts())},
    t.RunFinished: {
        "thread_id": texts(min_size=1),
        "run_id": texts(min_size=1),
        "result": maybe(st.one_of(json_objects(), texts())),
        "outcome": maybe(_outcomes()),
        "usage": maybe(st.lists(usages(), max_size=2)),
    },
    t.RunError: {"message": texts(), "code": maybe(texts()), "usage": maybe(st.lists(usages(), max_size=2))},
    t.StepStarted: {"step_name": texts()},
    t.StepFinished: {"step_name": texts()},
    t.TextMessageStart: {
        "message_id": ids,
        "role": maybe(st.sampled_from(["developer", "system", "assistant", "user"])),
        "name": maybe(texts()),
    },
    t.TextMessageContent: {"message_id": ids, "delta": texts()},
    t.TextMessageEnd: {"message_id": ids},
    t.TextMessageChunk: {
        "message_id": maybe(ids),
        "role": maybe(st.sampled_from(["assistant", "user"])),
        "delta": maybe(texts()),
    },
    t.ToolCallStart: {"tool_call_id": call_ids, "tool_call_name": texts(), "parent_message_id": maybe(ids)},
    t.ToolCallArgs: {"tool_call_id": call_ids, "delta": texts()},
    t.ToolCallEnd: {"tool_call_id": call_ids},
    t.ToolCallChunk: {
        "tool_call_id": maybe(call_ids),
        "tool_call_name": maybe(st.just("f")),
        "parent_message_id": maybe(ids),
        "delta": maybe(texts()),
    },
    t.ToolCallResult: {
        "message_id": ids,
        "tool_call_id": call_ids,
        "content": texts() | st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts()), max_size=2),
        "role": maybe(st.just("tool")),
    },
    t.StateSnapshot: {"snapshot": json_values()},
    t.StateDelta: {"delta": st.lists(operations(), max_size=3)},
    t.MessagesSnapshot: {"messages": st.lists(agui_messages(), max_size=3)},
    t.ActivitySnapshot: {
        "message_id": ids,
        "activity_type": texts(),
        "content": json_objects(),
        "replace": maybe(st.booleans()),
    },
    t.ActivityDelta: {"message_id": ids, "activity_type": texts(), "patch": st.lists(operations(), max_size=2)},
    t.ReasoningStart: {"message_id": ids},
    t.ReasoningEnd: {"message_id": ids},
    t.ReasoningMessageStart: {"message_id": ids},
    t.ReasoningMessageContent: {"message_id": ids, "delta": texts()},
    t.ReasoningMessageEnd: {"message_id": ids},
    t.ReasoningMessageChunk: {"message_id": maybe(ids), "delta": maybe(texts())},
    t.ReasoningEncryptedValue: {
        "subtype": st.sampled_from(["tool-call", "message"]),
        "entity_id": ids,
        "encrypted_value": texts(),
    },
    t.SubagentStarted: {"subagent_run_id": subagents, "name": texts(), "parent_subagent_run_id": maybe(subagents)},
    t.SubagentFinished: {"subagent_run_id": subagents, "result": maybe(json_objects())},
    t.SubagentError: {"subagent_run_id": subagents, "message": texts(), "code": maybe(texts())},
    t.RawEvent: {"event": json_values(), "source": maybe(texts())},
    t.CustomEvent: {"name": texts(), "value": json_values()},
}
"""What each type has beside what all have."""


@st.composite
def _made(draw: st.DrawFn, kind: type[Any], fields: dict[str, st.SearchStrategy[Any]]) -> t.Event:
    common = draw(st.sampled_from(_COMMON))
    attribution = draw(st.sampled_from(_ATTRIBUTED)) if issubclass(kind, t.AgentEvent) else {}
    event: t.Event = kind(
        **copy.deepcopy(common), **attribution, **{name: draw(field) for name, field in fields.items()}
    )
    return event


_BY_TYPE: dict[type[Any], st.SearchStrategy[t.Event]] = {
    kind: _made(kind, fields) for kind, fields in _SPECIFIC.items()
}
_ANY = st.one_of(list(_BY_TYPE.values()))


def events_of(kind: type[Any]) -> st.SearchStrategy[t.Event]:
    """Events of one type."""
    return _BY_TYPE[kind]


def events() -> st.SearchStrategy[t.Event]:
    """Any event of any type."""
    return _ANY


ANYWHERE = (t.ToolCallResult, t.StateSnapshot, t.StateDelta, t.MessagesSnapshot, t.ActivitySnapshot, t.RawEvent)
"""Types that are legal anywhere inside a run, and that may be attributed to anyone."""


_STEPS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([(kind, item) for kind in ("text", "tool", "reasoning") for item in ("a", "b", "")]),
        st.sampled_from(["", "x", "{}", "é<"]),
    ),
    max_size=15,
)
_ANYTHING = st.one_of([_BY_TYPE[kind] for kind in ANYWHERE])


@st.composite
def legal_runs(draw: st.DrawFn) -> list[t.Event]:
    """A run without chunks: texts, reasoning and tool calls interleave, and everything that opens is closed."""
    run: list[t.Event] = [t.RunStarted(thread_id="t1", run_id="r1")]
    opened: dict[tuple[str, str], None] = {}
    for step, key, delta in draw(_STEPS):
        if step == 0:
            run.append(draw(_ANYTHING))
        elif key not in opened:
            run.append(start(*key))
            opened[key] = None
        elif step < 7:
            run.append(content(*key, delta))
        else:
            run.append(end(*key))
            del opened[key]
    run += [end(*key) for key in opened]
    run.append(t.RunFinished(thread_id="t1", run_id="r1"))
    return run


def start(kind: str, item: str) -> t.Event:
    """The event that opens a text, tool call or reasoning."""
    if kind == "text":
        return t.TextMessageStart(message_id=item)
    if kind == "tool":
        return t.ToolCallStart(tool_call_id=item, tool_call_name="f")
    return t.ReasoningMessageStart(message_id=item)


def content(kind: str, item: str, delta: str) -> t.Event:
    """The event that continues it."""
    if kind == "text":
        return t.TextMessageContent(message_id=item, delta=delta)
    if kind == "tool":
        return t.ToolCallArgs(tool_call_id=item, delta=delta)
    return t.ReasoningMessageContent(message_id=item, delta=delta)


def end(kind: str, item: str) -> t.Event:
    """The event that closes it."""
    if kind == "text":
        return t.TextMessageEnd(message_id=item)
    if kind == "tool":
        return t.ToolCallEnd(tool_call_id=item)
    return t.ReasoningMessageEnd(message_id=item)


def cuts(data: bytes) -> st.SearchStrategy[list[bytes]]:
    """The bytes in pieces, cut anywhere."""

    def cut(places: list[int]) -> list[bytes]:
        bounds = [0, *sorted(places), len(data)]
        return [data[a:b] for a, b in pairwise(bounds)]

    return st.lists(st.integers(0, len(data)), max_size=8).map(cut)


def as_json(event: msgspec.Struct) -> Any:
    """An event as the JSON value that it is on the wire."""
    return msgspec.to_builtins(event)
