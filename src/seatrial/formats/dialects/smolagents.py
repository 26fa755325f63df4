"""Steps of smolagents, as `RunResult.steps` and `agent.memory.get_full_steps()` have them.

| wire | transcript |
| --- | --- |
| `task` | user message |
| `system_prompt` | system message |
| `plan` | assistant message |
| `model_output_message` of a step | assistant message with its calls; `token_usage` is its usage |
| `code_action` | a call of `python_interpreter`; which tools the code called is in no record |
| `observations`, `error` | the results of the calls of the step: one text for all of them |
| the call of `final_answer` in the last step, `action_output` | assistant message: it is how the agent answers |

What managed agents did is not among the steps: only the call of such an agent is.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.calls import Call, nameless_note, set_arguments
from seatrial.formats.chat.content import Piece
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.transcript import ToolCall, ToolResultMessage, note_code, pointer

CALLS_OF_CODE = note_code(
    "calls_of_code", "The agent ran code, and which tools that called is not in the record.", "serious"
)
RESULTS_AS_ONE = note_code(
    "results_as_one",
    "The results of several calls are one text in the record. Each call has all of it; where one failed, none has it.",
    "look",
)

PARTS: Final[dict[str, Any]] = {}
MARKS: Final = frozenset({"plan", "step_number", "system_prompt", "task_images"})
"""Keys of which every step has one."""

_INTERPRETER: Final = "python_interpreter"
_FINAL_ANSWER: Final = "final_answer"
_STEP: Final = frozenset(
    {"step_number", "timing", "model_input_messages", "tool_calls", "error", "model_output_message", "model_output",
     "code_action", "observations", "observations_images", "action_output", "token_usage", "is_final_answer"}
)  # fmt: skip
_TASK: Final = frozenset({"task", "task_images"})
_PROMPT: Final = frozenset({"system_prompt"})
_PLAN: Final = frozenset({"plan", "model_input_messages", "model_output_message", "timing", "token_usage"})
_MESSAGE: Final = frozenset({"role", "content", "tool_calls", "raw", "token_usage"})
_CALL: Final = frozenset({"id", "type", "function"})
_FUNCTION: Final = frozenset({"name", "arguments", "description"})


def fits(item: dict[str, Any]) -> int:
    """A step with its number, or one of the others, which have no key in common with messages."""
    if "step_number" in item and ("model_output_message" in item or "observations" in item):
        return 3
    if "role" in item or "type" in item:
        return 0
    keys = item.keys()
    others = (keys == _TASK, keys == _PROMPT, "plan" in keys and keys <= _PLAN)
    return 2 if any(others) else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add what one step says."""
    if "step_number" in item:
        _read_step(item, chat, at)
    elif "plan" in item:
        turn = chat.add_assistant(chat.pieces(item["plan"], (*at, "plan"), agent=True), at)
        chat.add_usage(turn, item.get("token_usage"), (*at, "token_usage"))
        chat.note_keys(item, _PLAN, at, agent=True)
    elif "task" in item:
        chat.add_user(item["task"], (*at, "task"))
    elif type(prompt := item["system_prompt"]) is str:
        chat.add_system(prompt)
    else:
        chat.drop_key("system_prompt", prompt, at, agent=False)


def _read_step(item: dict[str, Any], chat: Chat, at: At) -> None:
    said = item.get("model_output_message")
    within = (*at, "model_output_message")
    pieces: list[Piece] = []
    if type(said) is dict:
        pieces += chat.pieces(said.get("content"), (*within, "content"), agent=True)
        chat.note_keys(said, _MESSAGE, within, agent=True)
    elif said is not None:
        chat.drop_key("model_output_message", said, at, agent=True)
    # A step that failed lists no calls of its own: those are in the model's message alone.
    listed = said.get("tool_calls") if type(said) is dict else None
    calls, answer = _calls(item, listed or item.get("tool_calls"), chat, at)
    turn = chat.add_assistant([*pieces, *calls], at)
    # The step lists them again, or lists none: another one would be lost.
    if listed and (again := item.get("tool_calls")) and _names(again) != _names(listed):
        chat.drop_key("tool_calls", again, at, agent=True)
    chat.add_usage(turn, item.get("token_usage"), (*at, "token_usage"))
    _read_results(item, calls, chat, at)
    if answer is None and item.get("is_final_answer") is True:
        answer = item.get("action_output")
    if answer is not None:
        chat.add_assistant(chat.pieces(answer, at, agent=True), at)
    chat.note_keys(item, _STEP, at, agent=True)


def _names(listed: Any) -> list[str]:
    """The tools of listed calls, sorted; a call without one has an empty name."""
    entries = listed if type(listed) is list else [listed]
    functions = [entry.get("function") if type(entry) is dict else None for entry in entries]
    return sorted([str(each.get("name")) if type(each) is dict else "" for each in functions])


def _calls(item: dict[str, Any], listed: Any, chat: Chat, at: At) -> tuple[list[ToolCall], Any]:
    """The calls of a step, and the answer where one of them gives it."""
    calls: list[ToolCall] = []
    answer = None
    if type(listed) is not list:
        listed = [] if listed is None else [listed]
    for index, entry in enumerate(listed):
        within = (*at, "tool_calls", index)
        function = entry.get("function") if type(entry) is dict else None
        if type(function) is not dict or type(name := function.get("name")) is not str or not name:
            chat.tally.notes.append(nameless_note(pointer(*within)))
            continue
        arguments = function.get("arguments")
        if name == _FINAL_ANSWER and item.get("is_final_answer") is True:
            answer = arguments.get("answer", arguments) if type(arguments) is dict else arguments
            continue
        if name == _INTERPRETER and type(arguments) is str:
            arguments = {"code": arguments}
        call_id = entry.get("id")
        call = Call(name, {}, call_id if type(call_id) is str and call_id else None)
        set_arguments(call, {} if arguments is None else arguments)
        chat.note_keys(entry, _CALL, within, agent=True)
        chat.note_keys(function, _FUNCTION, (*within, "function"), agent=True)
        calls.append(chat.call(call, within))
    if item.get("code_action") is not None or any(call.name == _INTERPRETER for call in calls):
        chat.tally.add(CALLS_OF_CODE, (*at, "code_action"), "the tools that this code called are not listed", each="")
    return calls, answer


def _read_results(item: dict[str, Any], calls: list[ToolCall], chat: Chat, at: At) -> None:
    error = item.get("error")
    failed = error is not None and error is not False and error != ""
    if type(error) is dict and type(error.get("message")) is str:
        text: Any = error["message"]
    else:
        text = error if failed else item.get("observations")
    if not calls:
        if failed:
            # What the model wrote could not be used: it is given the error, and asked again.
            chat.add_user(text, (*at, "error"))
        return
    if len(calls) > 1:
        message = f"one text is the result of {len(calls)} calls"
        chat.tally.add(RESULTS_AS_ONE, at, message, each="")
        if failed:
            return
    for call in calls:
        result: ToolResultMessage = chat.result(call.id, call.name, at)
        chat.fill(result, text, (*at, "error" if failed else "observations"))
        chat.mark_failure(result, {"error": text if failed else None})
        chat.add(result)
