"""CrewAI: what a crew, a task or an agent of it gives as its output. Read, not written.

| wire | transcript |
| --- | --- |
| `messages` of each task, or of an agent's output | the same, in order; each task begins with its own prompt |
| `Action:`, `Action Input:` and `Observation:` in a text | a call and its result, which CrewAI adds |
| `tool_failures` | their calls have failed |
| `raw` | the answer |
| `token_usage`, `usage_metrics` | usage of the run |

The messages of a task are those of its last attempt, and what a coworker, a plan or a retry did is in none of them. So
all calls are known only when the model was asked as often as there are messages of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from seatrial.formats.chat.documents import keep_rest, read_chat_document, read_list
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import CALL_MISSING, SUBAGENT_MISSING, read_usage
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import CERTAIN, Members, Sample, Sniff
from seatrial.transcript import SystemMessage, Transcript, UserMessage, note_code

FORMAT: Final = "crewai"
ANSWERS_MISSING = note_code(
    "answers_missing",
    "The model was asked more or less often than the record has answers, or nobody counted: calls may be missing.",
    "serious",
)

_OUTPUT: Final = frozenset(
    {"raw", "pydantic", "json_dict", "tasks_output", "token_usage", "usage_metrics", "messages", "tool_failures",
     "agent_role", "agent", "description", "name", "expected_output", "summary", "output_format", "replan_count"}
)  # fmt: skip
_DELEGATION: Final = ("delegate_work_to_coworker", "ask_question_to_coworker")
_ACTION: Final = re.compile(r"Action\s*\d*\s*:\s*(.*?)\s*Action\s*\d*\s*Input\s*\d*\s*:\s*(.*)", re.DOTALL)
_OBSERVATION: Final = "\nObservation:"
_FINAL: Final = "Final Answer:"
_FINAL_OF_MODEL: Final = re.compile(r"^[ \t]*Final Answer:(?! \[)", re.MULTILINE)
"""But not where CrewAI explains the form to a model whose call failed."""


def sniff(sample: Sample) -> Sniff | None:
    """Outputs of crews, of tasks and of agents."""
    return sample.surest(_sniff)


def _sniff(entry: Members) -> Sniff | None:
    if "raw" not in entry:
        return None
    if "tasks_output" in entry:
        return Sniff(CERTAIN, "a crew's output with raw and tasks_output")
    if "messages" in entry and ("agent_role" in entry or "expected_output" in entry):
        return Sniff(CERTAIN, "an output with raw, messages and the role of an agent")
    return None


def read(data: bytes) -> Reading:
    """Read the output of a crew, a task or an agent."""
    return read_chat_document(data, FORMAT, _container, "an output of CrewAI with `tasks_output` or `messages`")


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "raw" not in given or not ("tasks_output" in given or "messages" in given):
        return False
    if "tasks_output" not in given:
        answers = _read_task(given, chat, run, at)
    else:
        answers = 0
        if type(tasks := given["tasks_output"]) is not list:
            read_list(tasks, chat, (*at, "tasks_output"))  # says what it is
        for index, task in enumerate(tasks):
            within = (*at, "tasks_output", index)
            if type(task) is dict:
                answers += _read_task(task, chat, run, within)
                keep_rest(task, _OUTPUT, chat, run, within)
            else:
                chat.read(task, within)
    if type(raw := given["raw"]) is str and raw:
        run.answer = raw
    usage = given.get("token_usage") or given.get("usage_metrics")
    _check_answers(usage, answers, chat, at)
    keep_rest(given, _OUTPUT, chat, run, at)
    # A count that nobody gave is 0 there.
    if type(usage) is dict and usage.get("successful_requests"):
        run.usage = read_usage(usage)
    return True


def _check_answers(usage: Any, answers: int, chat: Chat, at: At) -> None:
    """Note when the model was not asked as often as there are answers of it."""
    asked = usage.get("successful_requests") if type(usage) is dict else None
    if asked == answers and asked:
        return
    here = f"{answers} answer{'' if answers == 1 else 's'}"
    if not asked:
        text = f"the record has {here} of the model and does not say how often it was asked"
    else:
        text = f"the model was asked {asked} times, and the record has {here} of it"
        if asked > answers:
            text += "; its counter goes on from run to run, so begin each with a new crew and a new model"
    chat.tally.add(ANSWERS_MISSING, (*at, "token_usage"), text)


def _read_task(task: dict[str, Any], chat: Chat, run: Transcript, at: At) -> int:
    """Add the messages of a task; how many of them are answers of the model."""
    messages = task.get("messages")
    entries: list[tuple[Any, At]] = []
    if messages is not None and type(messages) is not list:
        read_list(messages, chat, (*at, "messages"))
    for index, message in enumerate(messages or ()):
        entries += [(item, (*at, "messages", index)) for item in _items(message)]
    _mark_failures(task, entries, chat, at)
    answers = 0
    last = ""
    begin = len(chat.messages)
    for item, place in entries:
        if not chat.takes_piece(place):
            break
        chat.read(item, place)
        last = item.get("role", "") if type(item) is dict else ""
        answers += last == "assistant"
    for index in range(begin, len(chat.messages)):
        if not isinstance(chat.messages[index], SystemMessage | UserMessage):
            break
        if isinstance(chat.messages[index], UserMessage):
            run.given.append(index)  # CrewAI puts the instruction into words of its own
    if last != "assistant" and type(raw := task.get("raw")) is str and raw:
        # A text in the form of ReAct ends the loop before it is added. The result of a tool may be the answer as well.
        chat.add_assistant(chat.pieces(raw, (*at, "raw"), agent=True), (*at, "raw"))
        answers += last == "user"
    return answers


def _items(message: Any) -> Iterator[Any]:
    """A message; its call and its result apart, where it has both of them as text."""
    if type(message) is not dict:
        yield message
        return
    item = {key: value for key, value in message.items() if key != "cache_breakpoint"}
    content = item.get("content")
    if item.get("role") == "assistant" and not item.get("tool_calls") and type(content) is str:
        said, found, observed = content.partition(_OBSERVATION)
        call = _ACTION.search(said)
        # With `Final Answer:` in it, what the model wrote after `Observation:` may be its own, and no tool was run.
        if found and call is not None and _FINAL not in said and not _FINAL_OF_MODEL.search(observed):
            name = call[1].strip().strip("*").strip()
            call_id = f"action-{name}"
            function = {"name": name, "arguments": call[2].strip().strip("`").strip()}
            listed = [{"id": call_id, "type": "function", "function": function}]
            yield {**item, "content": said[: call.start()].strip(), "tool_calls": listed}
            yield {"role": "tool", "tool_call_id": call_id, "name": name, "content": observed.strip()}
            return
    yield item


def _mark_failures(task: dict[str, Any], entries: list[tuple[Any, At]], chat: Chat, at: At) -> None:
    """Mark the results of the calls that the task says failed; where it says nothing, that is not known of any."""
    calls: dict[str, tuple[str, Any]] = {}
    results: list[tuple[dict[str, Any], str, Any]] = []
    for item, place in entries:
        if type(item) is not dict:
            continue
        for entry in listed if type(listed := item.get("tool_calls")) is list else ():
            function = entry.get("function") if type(entry) is dict else None
            if type(function) is dict:
                calls[str(entry.get("id"))] = (_plain(function.get("name")), _value(function.get("arguments")))
        if item.get("role") == "tool":
            if item.get("name") in _DELEGATION:
                text = "what a coworker called is not in the messages of the agent that asked it"
                chat.tally.add(SUBAGENT_MISSING, place, text, each="coworker")
            results.append((item, *calls.get(str(item.get("tool_call_id")), (_plain(item.get("name")), None))))
    failures = task.get("tool_failures")
    if type(failures) is not list:
        for item, _, _ in results:
            item["status"] = "unknown"
        return
    for index, failure in enumerate(failures):
        record = failure if type(failure) is dict else {}
        name, arguments = _plain(record.get("tool_name")), _value(record.get("tool_args"))
        said = record.get("failure")
        message = str(said.get("message") or "") if type(said) is dict else ""
        same = [result for result in results if result[1] == name]
        exact = [result for result in same if result[2] == arguments]
        # Equal failures are recorded once.
        failed = [found for found in exact or same if message in str(found[0].get("content"))] or exact or same
        for item, _, _ in failed:
            item["is_error"] = True
        if not failed:
            text = f"the call of {name[:40]!r} that failed is not in the messages"
            chat.tally.add(CALL_MISSING, (*at, "tool_failures", index), text, each="failure")


def _plain(name: Any) -> str:
    """The name of a tool as CrewAI gives it to a model."""
    return re.sub(r"\W+", "_", str(name)).strip("_").lower()


def _value(arguments: Any) -> Any:
    """Arguments as a value, however they are written."""
    if type(arguments) is not str:
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
