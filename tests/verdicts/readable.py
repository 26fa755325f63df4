"""Records that are read whole: who did the forbidden thing fails, who did not passes, in every shape and container."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from verdicts.corpus import DELETE, FAILING_FIND, FIND, FORBIDDEN, GRADERS, NO_ERRORS, Delivery, Entry
from verdicts.shapes import (
    ANSWER,
    DOCUMENTS,
    INSTRUCTION,
    LISTS,
    NOTHING_BESIDE_RESULTS,
    WITHOUT_RESULTS,
    Call,
    Json,
    agui_events,
    agui_snapshot,
    claude_stream,
    encoded,
    lines,
)

INNOCENT = [FIND]
GUILTY = [FIND, DELETE]

CONTAINERS: dict[str, tuple[Delivery, Callable[[list[Json]], Any]]] = {
    "agent response": ("python", lambda items: {"final_response": ANSWER, "messages": items}),
    "output_messages": ("python", lambda items: {"text": ANSWER, "output_messages": items}),
    "returned list": ("python", lambda items: items),
    "returned messages": ("python", lambda items: {"messages": items}),
    "bytes": ("python", encoded),
    "bytes of a response": ("python", lambda items: encoded({"final_response": ANSWER, "messages": items})),
    "replayed array": ("replay", encoded),
    "replayed lines": ("replay", lines),
    "replayed response": ("replay", lambda items: encoded({"final_response": ANSWER, "messages": items})),
    "program": ("cli", lambda items: encoded({"text": ANSWER, "output_messages": items})),
}
ONE_TURN = ("whole response", "response stream", "completion stream", "anthropic stream")
"""One turn of a model: who did nothing in it may have done anything in another."""
BEHAVIOURS: dict[str, tuple[list[Call], str]] = {
    "reads": (INNOCENT, "passed"),
    "deletes": (GUILTY, "failed"),
    "only deletes": ([DELETE], "failed"),
}


def entries() -> Iterator[Entry]:
    """All of them."""
    yield from _in_every_container()
    yield from _under_every_grader()
    yield from _failed_results()
    yield from _events()
    yield from _earlier_conversation()
    yield from _repeated_request()
    yield from _end_of_a_conversation()
    yield from _usual_answers()
    yield from _subagents()


def _in_every_container() -> Iterator[Entry]:
    for shape, write in LISTS.items():
        for container, (delivery, wrap) in CONTAINERS.items():
            for behaviour, (calls, wanted) in BEHAVIOURS.items():
                if delivery == "cli" and behaviour == "only deletes":
                    continue  # a process each
                name = f"{behaviour}, {shape} in {container}"
                yield Entry(name, wrap(write(calls)), FORBIDDEN, wanted, delivery, wanted == "failed")


def _under_every_grader() -> Iterator[Entry]:
    for shape, write in LISTS.items():
        for grader, config in GRADERS.items():
            for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
                record = {"final_response": ANSWER, "messages": write(calls)}
                yield Entry(f"{wanted} under {grader}, {shape}", record, config, wanted, guilty=wanted == "failed")
    for shape, document in DOCUMENTS.items():
        for grader, config in GRADERS.items():
            for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
                name = f"{wanted} under {grader}, {shape}, replayed"
                honest = "errored" if shape in ONE_TURN and wanted == "passed" else wanted
                yield Entry(name, document(calls), config, honest, "replay", wanted == "failed")


def _subagents() -> Iterator[Entry]:
    deliveries: tuple[Delivery, ...] = ("replay", "cli")
    for delivery in deliveries:
        for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
            record = lines(claude_stream(calls, parent="task"))
            yield Entry(
                f"{wanted}, by a sub-agent, {delivery}", record, FORBIDDEN, wanted, delivery, wanted == "failed"
            )


def _failed_results() -> Iterator[Entry]:
    for shape, write in LISTS.items():
        for calls, wanted in ((INNOCENT, "passed"), ([FAILING_FIND], "failed"), ([FAILING_FIND, FIND], "failed")):
            name = f"{len(calls)} calls, {wanted} under no_errors, {shape}"
            yield Entry(name, write(calls), NO_ERRORS, wanted, guilty=wanted == "failed")
    for shape, document in DOCUMENTS.items():
        if shape not in WITHOUT_RESULTS:
            for calls, wanted in ((INNOCENT, "passed"), ([FAILING_FIND], "failed")):
                name = f"{wanted} under no_errors, {shape}"
                honest = "errored" if shape in ONE_TURN and wanted == "passed" else wanted
                yield Entry(name, document(calls), NO_ERRORS, honest, "replay", wanted == "failed")
    for number, said in enumerate(FAILURES):
        yield Entry(f"failure {number}: {said}", _result(said), NO_ERRORS, "failed", guilty=True)
    for number, said in enumerate(SUCCESSES):
        yield Entry(f"success {number}: {said}", _result(said), NO_ERRORS, "passed")
    for shape, write in LISTS.items():
        if shape in NOTHING_BESIDE_RESULTS:
            continue
        for said in FAILURES:
            record = _with_result_marked(write(INNOCENT), said)
            yield Entry(f"failure, {shape}: {said}", record, NO_ERRORS, "failed", guilty=True)
        for said in SUCCESSES:
            if "content" not in said:
                record = _with_result_marked(write(INNOCENT), said)
                yield Entry(f"success, {shape}: {said}", record, NO_ERRORS, "passed")
    for number, content in enumerate(FAILED_CONTENTS):
        yield Entry(f"failed content {number}", _result({"content": content}), NO_ERRORS, "failed", guilty=True)
        block: Json = {"type": "tool_result", "tool_use_id": "c", "content": content}
        use: Json = {"type": "tool_use", "id": "c", "name": FIND.name, "input": {}}
        turns: list[Json] = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
        record = [*turns, {"role": "assistant", "content": "Done."}]
        yield Entry(f"failed content {number}, Anthropic", record, NO_ERRORS, "failed", guilty=True)
    for number, response in enumerate(FAILED_RESPONSES):
        yield Entry(f"failed response {number}", _answered_by_gemini(response), NO_ERRORS, "failed", guilty=True)
    for number, response in enumerate(RESPONSES):
        yield Entry(f"response {number}", _answered_by_gemini(response), NO_ERRORS, "passed")
    for said in ({"additional_kwargs": {"error": "boom"}}, {"additional_kwargs": {"status": "error"}}):
        record = _with_result_marked(LISTS["langchain model_dump"](INNOCENT), said)
        yield Entry(f"failure beside a message of LangChain: {said}", record, NO_ERRORS, "failed", guilty=True)
    for metadata, wanted in (
        ({"status": "error"}, "failed"),
        ({"error": "boom"}, "failed"),
        ({"status": "x"}, "passed"),
    ):
        events = [
            {**event, "metadata": metadata} if event["type"] == "TOOL_CALL_RESULT" else event
            for event in agui_events(INNOCENT)
        ]
        name = f"{wanted} by the metadata of a streamed result: {metadata}"
        yield Entry(name, lines(events), NO_ERRORS, wanted, "replay", guilty=wanted == "failed")


FAILED_RESPONSES: list[Json] = [
    {"error": "boom"},
    {"content": [{"type": "text", "text": "no permission"}], "isError": True},
    {"status": "error", "error_message": "no permission"},
    {"status": "failed"},
    {"success": False},
    {"exit_code": 2},
]
"""What Gemini's functions give when they fail: their errors are inside."""
RESPONSES: list[Json] = [
    {"result": "error"},
    {"status": "cancelled"},
    {"status": "blocked", "outcome": "unheard of"},
    {"status": "success", "error": None},
]


def _answered_by_gemini(response: Json) -> list[Json]:
    items = LISTS["gemini"](INNOCENT)
    for item in items:
        for part in item["parts"]:
            if "functionResponse" in part:
                part["functionResponse"]["response"] = response
    return items


_RESULT_TYPES = frozenset(
    {"tool_result", "mcp_tool_result", "web_search_tool_result", "function_call_output", "custom_tool_call_output",
     "tool-result", "mcp_call", "tool"}
)  # fmt: skip


def _with_result_marked(items: list[Json], said: Json) -> list[Json]:
    """The messages, with keys beside the result of the first call that has one."""
    marked = _mark_result(items, said)
    assert marked is not None, "there is no result"
    assert isinstance(marked, list)
    return marked


def _mark_result(value: Any, said: Json) -> Any:
    if isinstance(value, list):
        for index, inside in enumerate(value):
            if (marked := _mark_result(inside, said)) is not None:
                return [*value[:index], marked, *value[index + 1 :]]
        return None
    if not isinstance(value, dict):
        return None
    for key, inside in value.items():
        if isinstance(inside, dict) and key in ("functionResponse", "function_response", "toolResult"):
            return {**value, key: {**inside, **said}}
        if key not in ("arguments", "input") and (marked := _mark_result(inside, said)) is not None:
            return {**value, key: marked}
    kind = value.get("type")
    is_result = (
        value.get("role") in ("tool", "function")
        or value.get("part_kind") == "tool-return"
        or kind in _RESULT_TYPES
        or (isinstance(kind, str) and (kind.startswith("tool-") and "output" in value))
        or ("toolCallId" in value and "result" in value)
        or ("tool" in value and "output" in value)
    )
    data = value.get("data", value.get("kwargs"))
    if is_result and isinstance(data, dict):
        return {**value, ("data" if "data" in value else "kwargs"): {**data, **said}}
    return {**value, **said} if is_result else None


FAILURES: list[Json] = [
    {"is_error": True},
    {"isError": True},
    {"status": "error"},
    {"status": "failed"},
    {"status": "FAILURE"},
    {"status": "timeout"},
    {"status": "denied"},
    {"outcome": "failed"},
    {"error": "no such account"},
    {"error": {"type": "timeout", "message": "late"}},
    {"error": True},
    {"success": False},
    {"exit_code": 1},
    {"status": "success", "is_error": True},
]
FAILED_CONTENTS: list[Any] = [
    [{"type": "text", "text": "down", "is_error": True}],
    [{"type": "tool_result", "content": "down", "isError": True}],
    [{"type": "tool_result_error", "error_code": "unavailable"}],
    [{"type": "error", "text": "down"}],
    {"content": [{"type": "text", "text": "down"}], "isError": True},
    [{"content": [{"type": "text", "text": "down"}], "isError": True}],
]
"""Contents of results of which a part says that the call failed."""
SUCCESSES: list[Json] = [
    {"is_error": False},
    {"isError": False},
    {"status": "success"},
    {"status": "ok"},
    {"outcome": "success"},
    {"error": None},
    {"error": ""},
    {"error": False},
    {"success": True},
    {"exit_code": 0},
    {"content": "Error: this is what the page says"},
]


def _result(said: Json) -> list[Json]:
    items = LISTS["openai"]([FIND])
    items[2] |= said
    return items


def _events() -> Iterator[Entry]:
    """Functions that yield AG-UI events."""
    for shape, write in {"events": agui_events, "snapshot": agui_snapshot}.items():
        for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
            for grader in ("forbidden", "exact", "steps", "maximums"):
                events = write(calls)
                name = f"{wanted} under {grader}, {shape} yielded"
                yield Entry(
                    name, lambda events=events: iter(events), GRADERS[grader], wanted, guilty=wanted == "failed"
                )


HISTORY: list[Json] = [
    {"role": "user", "content": "Delete my old account."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "before",
                "type": "function",
                "function": {"name": DELETE.name, "arguments": json.dumps(DELETE.arguments)},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "before", "content": "deleted"},
    {"role": "assistant", "content": "It is gone."},
]
"""An earlier conversation in which the forbidden call was made."""


REPEATED: list[Json] = [{"role": "user", "content": INSTRUCTION}, *HISTORY[1:]]
"""The same, begun with the instruction that is given again."""
AGAIN = HISTORY[1]["tool_calls"][0]


def _repeated_request() -> Iterator[Entry]:
    """An instruction that repeats an earlier request: the agent's own turn may look like the earlier one."""
    own = [REPEATED[0], {**HISTORY[1], "tool_calls": [{**AGAIN, "id": "again"}]}]
    own.append({**HISTORY[2], "tool_call_id": "again"})
    said = {"role": "assistant", "content": ANSWER}
    for grader in ("forbidden", "maximums"):
        config = GRADERS[grader]
        for ending in ([said], [HISTORY[3]], [*LISTS["openai"](INNOCENT)[1:]]):
            name = f"the same call again, {grader}, ending in {len(ending)} x {ending[-1]['content']}"
            yield Entry(name, [*own, *ending], config, "failed", guilty=True, history=REPEATED)
        for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
            whole = [*REPEATED, *LISTS["openai"](calls)]
            name = f"{wanted} under {grader} after the same request, all returned"
            yield Entry(name, whole, config, wanted, guilty=wanted == "failed", history=REPEATED)
            name = f"{wanted} under {grader} after the same request, own turn returned"
            yield Entry(name, LISTS["openai"](calls), config, wanted, guilty=wanted == "failed", history=REPEATED)


def _end_of_a_conversation() -> Iterator[Entry]:
    """Agents that return the end of a long conversation, cut between a call and its result."""
    for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
        record = [*HISTORY[2:], *LISTS["openai"](calls)]
        name = f"{wanted} after the result of a given call"
        yield Entry(name, record, FORBIDDEN, wanted, guilty=wanted == "failed", history=HISTORY)
    strange = [{**HISTORY[2], "tool_call_id": "lost"}, *HISTORY[3:], *LISTS["openai"](INNOCENT)]
    yield Entry("after the result of a call that nobody knows", strange, FORBIDDEN, "errored", history=HISTORY)


USUAL: dict[str, Any] = {
    "LiteLLM's thinking": {"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]},
    "Mistral's thinking": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": ANSWER},
        ]
    },
    "Azure's context": {"context": {"citations": [{"title": "x"}], "intent": "[]"}},
    "an image": {
        "content": [{"type": "text", "text": ANSWER}, {"type": "image_url", "image_url": {"url": "https://x.y/z"}}]
    },
    "a text on tool calls": {"content": "Models write <tool_call> and </tool_call> around a call, or Action: lines."},
    "a turn that ended well": {"finish_reason": "stop", "status": "completed", "error": None},
}
"""What the last message of usual agents says besides."""


def _usual_answers() -> Iterator[Entry]:
    for name, more in USUAL.items():
        for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
            talk = LISTS["openai"](calls)
            record = {"messages": [*talk[:-1], {**talk[-1], **more}]}
            yield Entry(f"{wanted} with {name}", record, FORBIDDEN, wanted, guilty=wanted == "failed")
    cut = [*LISTS["openai"](INNOCENT)[:-1], {"role": "assistant", "content": "I", "finish_reason": "length"}]
    went_on = [*cut, {"role": "user", "content": "Go on."}, {"role": "assistant", "content": ANSWER}]
    yield Entry("passed with a turn that was cut and went on", went_on, FORBIDDEN, "passed")


def _earlier_conversation() -> Iterator[Entry]:
    """What was done before the run is not the agent's doing; doing it again is."""
    for name in ("openai", "openai flat", "inspect", "tau2", "tool, input, output"):
        for calls, wanted in ((INNOCENT, "passed"), (GUILTY, "failed")):
            for grader in ("forbidden", "maximums", "negate"):
                told = f"{wanted} under {grader} after a history with the call, {name}"
                items = [*HISTORY, *LISTS[name](calls)]
                yield Entry(told, items, GRADERS[grader], wanted, guilty=wanted == "failed", history=HISTORY)
                told = f"{wanted} under {grader}, history not echoed, {name}"
                items = LISTS[name](calls)
                yield Entry(told, items, GRADERS[grader], wanted, guilty=wanted == "failed", history=HISTORY)
