"""Calls that an agent writes into its text, or into messages of its own kind, for a program that looks for them there.

Agents without an API for tools prompt their model to write commands (a block of bash, `Action:`), and models that are
served without a parser write the marks that they were trained on (`<tool_call>`), or JSON: alone, in a fence, or among
sentences. Nobody but that program knows which of it was run, so such text is never read as calls; but it must not pass
for a run without any.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from seatrial.formats.chat.hidden_calls import KEYS_OF_CALLS, NAMES_OF_TOOLS, KnownCalls, may_hold_call
from seatrial.transcript.arguments import key_twice, parse_arguments
from seatrial.transcript.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    TextBlock,
    ToolCall,
    UserBlock,
    UserMessage,
)
from seatrial.transcript.note import Note, note_code, pointer
from seatrial.transcript.transcript import Transcript

CALLS_IN_TEXT = note_code(
    "calls_in_text",
    "The agent wrote what looks like a call, or was answered as if it had, in plain text; that was not read as a call.",
    "serious",
)
CALLS_IN_CUSTOM_MESSAGE = note_code(
    "calls_in_custom_message", "A message of an application's own kind looks like a call; it was not read.", "serious"
)

LONGEST: Final = 100_000
"""How much of a text is looked at as JSON."""
_LONGEST_LITERAL: Final = 10_000
_MOST_UNOPENED: Final = 1_000
"""How often a text may go on as something else than the JSON that it began as."""
_BRACKET: Final = re.compile(r"(?<![\w\"'=(,\[{])[\[{](?=\s{0,99}[\"'\[{])")
_LONGEST_LINE_BEFORE: Final = 200
_BULLET: Final = re.compile(r"[^\w\"'=(),\[\]{}]*(?:\d{1,3}\))?")
_LEADS: Final = re.compile(r"(?:[.!?>]|[^\"']:[*_]{0,3}|`{3,}\w{0,20}|(?:\A|[.!?>:])[ \t*_]{0,3}`)\Z")
_LONGEST_LEAD: Final = 24
"""What may stand on the line before JSON that is not part of code: nothing, a bullet, a fence, a tag, or a sentence."""
_IN_SENTENCE: Final = re.compile(r"\w[*_`]{0,3}\Z")
"""Or the beginning of one. Outside of fences, that is: code has words before brackets as well."""
_WRITTEN: Final = (
    ("name", ("arguments", "parameters", "args")),
    ("function", ("arguments", "parameters", "args")),
    ("tool", ("tool_input", "arguments", "parameters", "args", "input")),
    ("tool_name", ("tool_input", "arguments", "parameters", "args", "input")),
    ("toolName", ("args", "input", "arguments")),
    ("recipient_name", ("parameters", "arguments", "args")),
    ("action", ("action_input",)),
    ("name", ("input",)),
)
_LISTS_OF_MESSAGES: Final = ("messages", "output_messages", "outputMessages")
_INSIDE: Final = (*sorted(KEYS_OF_CALLS), *_LISTS_OF_MESSAGES, "function", "tool", "action", "command")
_INSIDE_MESSAGES: Final = ("content", "parts")
_TYPES: Final = frozenset({"tool_use", "tool_call", "tool-call", "toolCall", "function_call", "mcp_tool_use"})
_KEYS_OF_CALLS: Final = re.compile(
    rf"[\"'](?:(?:arguments|parameters|args|tool_input|action_input|{'|'.join(sorted(KEYS_OF_CALLS))})[\"']\s*:"
    rf"|(?:{'|'.join(sorted(_TYPES))})[\"'])"
)
"""In what cannot be opened, any of these leaves a doubt; and so do both of the following."""
_TOOL_KEY: Final = re.compile(r"[\"']tool(?:_name|Name)?[\"']\s*:")
_INPUT_KEY: Final = re.compile(r"[\"']input[\"']\s*:")
_JSON: Final = json.JSONDecoder(strict=False)
WrittenCall = tuple[str, dict[str, Any]]
"""The name and the arguments of a call."""

_BEGUN: Final = r">[ \t]*(?:\n\s{0,9}[^\s<]|[\[{(])"
_TO_A_TOOL: Final = r"(?!all\b)([A-Za-z_][\w.-]{0,99})"
"""Functionary's recipient: `all` are people."""
_TAGGED: Final = re.compile(rf"<tool_call>(.{{0,{LONGEST}}}?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_MARKS: Final = tuple(
    (sign, re.compile(mark, re.MULTILINE))
    for sign, mark in (
        ("<tool_call>", r"<tool_call>\s{0,9}(?:```(?:json)?\s{0,9})?[\[{]"),
        ("<tool_use>", r"<tool_use>\s{0,9}(?:```(?:json)?\s{0,9})?[\[{]"),
        ("<function_call>", r"<function_call>\s{0,9}(?:```(?:json)?\s{0,9})?[\[{]"),
        ("<arg_key>", r"<tool_call>\s{0,9}([A-Za-z_][\w-]{0,99})\s{0,9}<arg_key>"),
        ("</tool_call>", r"<tool_call>\n?([A-Za-z_][\w-]{0,99})\n?</tool_call>"),
        ("<tool_", rf"^[ \t]*<(?:tool_call|tool_use|tool_code){_BEGUN}"),
        ("<function_call", rf"^[ \t]*<function_calls?{_BEGUN}"),
        ("<execute_", rf"^[ \t]*<execute_\w{{1,99}}(?:{_BEGUN}|>[ \t]*\S)"),
        ("invoke name=", r"<(?:\w{1,99}:|｜\w{1,99}｜)?invoke name=[\"']?([^\"'>]+)"),
        ("<function=", r"<function=([\w.-]+)>\s{0,9}(?:[{<]|\Z)"),
        ("<function=", r"<function=([\w.-]+)>[ \t]*\n"),
        ("<|python_tag|>", r"<\|python_tag\|>\s{0,9}\{"),
        ("<|python_tag|>", r"^[ \t]*(?:<\|\w{1,99}\|>){0,9}<\|python_tag\|>\s{0,9}\S"),
        ("<|tool_call", r"<\|tool_calls?(?:_\w{1,99})?\|>\s{0,9}[\[{\w<]"),
        ("<|plugin|>", r"<\|plugin\|>"),
        ("<|action_start|>", r"<\|action_start\|>"),
        ("<|START_ACTION|>", r"<\|START_ACTION\|>"),
        ("<｜tool▁call", r"<｜tool▁call"),
        ("[TOOL_CALLS]", r"\[TOOL_CALLS\]\s{0,9}(?:[\[{]|[\w-]{1,99}[{\[])"),
        ("✿FUNCTION✿", r"✿FUNCTION✿"),
        ("functools[", r"\bfunctools\[\s{0,9}\{"),
        ("<|python_start|>", r"<\|python_start\|>\s{0,9}(?:\[|[A-Za-z_][\w.]{0,99}\()"),
        ("<|tools_prefix|>", r"<\|tools_prefix\|>\s{0,9}\[\s{0,9}\{"),
        (">call:", r"<(?:\|tool_call|start_function_call)>call:([A-Za-z_][\w.-]{0,99})"),
        ("<|recipient|>", rf"<\|recipient\|>\s{{0,9}}{_TO_A_TOOL}\s{{0,9}}(?:\n|<\|content\|>)"),
        (">>>", rf"^>>>{_TO_A_TOOL}[ \t]*\n\s{{0,9}}\{{"),
        ("<bot_end>", r"^[ \t]*Call:[ \t]*([A-Za-z_][\w.]{0,99})\("),
        ("<end_code>", r"(?:^|```)[ \t]*<end_code>"),
        ("<|channel|>", r"<\|channel\|>\s{0,9}(?:commentary|analysis)\s+to=(?:functions\.)?([\w-]+)"),
        ("to=functions.", r"\bto=functions\.([\w-]+)\s{0,9}<\|channel\|>"),
        ("```tool_", r"```tool_(?:code|call)\b"),
        ("FunctionCall(", r"\bFunctionCall\(\w+="),
        ("ToolUseBlock(", r"\bToolUseBlock\(\w+="),
        ("ToolCall(", r"\b(?:ChatCompletionMessage)?ToolCall\(\w+="),
        (
            "Action Input",
            r"^[ \t]*\**Action(?:[ \t]+\d+)?:(?![ \t*]*(?i:none|n/a|finish|final answer)\b)"
            r"([^\n]*)\n\s{0,9}\**Action Input",
        ),
        (
            "Observation",
            r"^[ \t]*\**Action(?:[ \t]+\d+)?:\**[ \t]*(?!(?i:none|n/a|finish|final answer)\b)([A-Za-z_][\w.-]{0,99})"
            r"[^\n]{0,300}\n(?:[^\n]{0,300}\n){0,2}?[ \t]*\**Observation(?:[ \t]+\d+)?:",
        ),
        ("<use_mcp_tool>", r"<use_mcp_tool>\s{0,9}<(?:server_name|tool_name|arguments)>"),
        (
            "<path>",
            r"^[ \t]*<(?:read_file|write_to_file|replace_in_file|apply_diff|search_files|list_files|insert_content"
            r"|list_code_definition_names|search_and_replace)>\s{0,9}<path>",
        ),
        ("<execute_command>", r"<execute_command>\s{0,9}<(?:command|requires_approval)>"),
        ("<browser_action>", r"<browser_action>\s{0,9}<action>"),
        (")]", r"^[ \t]*\[[A-Za-z_][\w.]{0,99}\((?:\w{1,99}=[^\n]{0,900})?\)\][ \t]*$"),
    )
)
"""What models write around a call (Hermes and Qwen, GLM, Anthropic, Llama, DeepSeek, Mistral, Phi, Apertus, Gemma,
Functionary, NexusRaven, gpt-oss, ReAct, smolagents, Cline), and what Python makes of the object of one that somebody
turned into text. Each is the whole form, with what follows: a text that only mentions a mark holds no call. A group is
the name of the tool. Before each stands what must be in the text for it to match, which is far quicker to look for."""
_BEFORE: Final = 400
_BEHIND: Final = 1_000
"""How far from its sign a form is looked for."""
_MOST_SIGNS: Final = 1_000
"""How often a sign may be in a text that holds no call."""
_ANSWERED: Final = re.compile(
    r"\s{0,99}(?:<returncode>|<tool_response>|<function_results?>|<tool_result>|\[TOOL_RESULTS\]|Observation(?:\s+\d+)?:"
    r"|OBSERVATION:|exitcode: -?\d+|<output>|EXECUTION RESULT|\[?Tool (?:results?|outputs?)\]?:)",
)
"""What programs answer with, in the user's name."""


def unlisted_calls(transcript: Transcript, traced: frozenset[str] = frozenset()) -> list[Note]:
    """A note on the first message that was written, or answered, as if there were a call in it that nobody read.

    `traced` are the names of the calls that a trace beside the messages lists.
    """
    messages = transcript.done()
    known: KnownCalls | None = None
    for index, message in enumerate(messages):
        if type(message) is AssistantMessage:
            for block in message.content:
                if type(block) is not TextBlock or not _is_suspect(block.text):
                    continue  # as almost always
                known = known or _known(messages)
                own = traced.union([call.name for call in message.tool_calls()])
                if _is_written(block.text, known, own, traced):
                    return [_note(CALLS_IN_TEXT, message, "the text holds what looks like a call", transcript)]
        elif type(message) is UserMessage:
            # What a user says first is what the agent is asked to do.
            if (index or transcript.given) and _ANSWERED.match(_first_text(message.content)):
                text = "a message in the user's name looks like the result of a call"
                return [_note(CALLS_IN_TEXT, message, text, transcript)]
        elif type(message) is CustomMessage and may_hold_call(message.kind, message.payload):
            known = known or _known(messages)
            if may_hold_call(message.kind, message.payload, known):
                text = f"a message of the kind {message.kind[:40]!r} looks like a call"
                return [_note(CALLS_IN_CUSTOM_MESSAGE, message, text, transcript)]
    if transcript.answer is not None and _is_suspect(transcript.answer):
        return _calls_in_answer(transcript.answer, messages, traced)
    return []


def _calls_in_answer(answer: str, messages: list[Message], traced: frozenset[str]) -> list[Note]:
    """A note on an answer beside the messages, unless one of them has it."""
    for message in messages:
        if type(message) is AssistantMessage and message.plain_text() == answer:
            return []
    known = _known(messages)
    if not _is_written(answer, known, traced.union(known.names.values()), traced):
        return []
    return [Note(CALLS_IN_TEXT, pointer("answer"), "the answer holds what looks like a call")]


def writes_call(text: str, known: KnownCalls) -> bool:
    """Whether a text outside the messages holds a call, other than those that are known."""
    return _is_suspect(text) and _is_written(text, known, frozenset(known.names.values()), frozenset())


def _is_suspect(text: str) -> bool:
    """Whether a text has any of the signs that are in all of what is looked for; as quickly as can be."""
    return (
        "<" in text
        or "{" in text
        or "Action" in text
        or "Call(" in text
        or "Block(" in text
        or "[TOOL" in text
        or "```tool" in text
        or "✿" in text
        or ")]" in text
    )


def _is_written(text: str, known: KnownCalls, own: frozenset[str], traced: frozenset[str]) -> bool:
    """Whether text holds a call, other than those that the record lists as well; `own` are those of the message."""
    unlisted = text
    if "<tool_call>" in text:
        unlisted = _TAGGED.sub(lambda tagged: "" if _lists_only_known(tagged[1], known, traced) else tagged[0], text)
    if any(_has_form(unlisted, sign, form, own) for sign, form in _MARKS):
        return True
    calls = json_calls(unlisted)
    return calls is None or not all(_is_listed(call, known, traced) for call in calls)


def _has_form(text: str, sign: str, form: re.Pattern[str], own: frozenset[str]) -> bool:
    """Whether a text has the form around one of its signs, and names no tool that the message calls anyhow.

    Never more than a little of the text at once: nothing else runs while a pattern is looked for.
    """
    at = -1
    for _ in range(_MOST_SIGNS):
        at = text.find(sign, at + 1)
        if at < 0:
            return False
        for written in form.finditer(text, max(at - _BEFORE, 0), at + _BEHIND):
            if not form.groups or written[1].strip(" \t*`") not in own:
                return True
    return True


def _lists_only_known(tagged: str, known: KnownCalls, traced: frozenset[str]) -> bool:
    calls = json_calls(tagged)
    return calls is not None and calls != [] and all(_is_listed(call, known, traced) for call in calls)


def _is_listed(call: WrittenCall, known: KnownCalls, traced: frozenset[str]) -> bool:
    return call[0] in traced or known.has_made(*call)


def _known(messages: list[Message]) -> KnownCalls:
    made: list[ToolCall] = []
    for message in messages:
        if type(message) is AssistantMessage:
            made += message.tool_calls()
    return KnownCalls.of(made, made)


def _first_text(content: str | list[UserBlock]) -> str:
    if isinstance(content, str):
        return content
    return next((block.text for block in content if type(block) is TextBlock), "")


def _note(code: str, found: Message, text: str, transcript: Transcript) -> Note:
    index = next(index for index, message in enumerate(transcript.messages) if message is found)
    return Note(code, pointer("messages", index), text)


def json_calls(text: str) -> list[WrittenCall] | None:
    """The calls that stand in a text; None when there may be some in what cannot be opened.

    Takes time in proportion to the text: each part of it is opened once.
    """
    if len(text) > LONGEST:
        return None if _has_keys_of_calls(text) else []
    calls: list[WrittenCall] = []
    for written in _parts(text):
        value = _open(written)
        if value is None:
            if _has_keys_of_calls(written):
                return None
        else:
            calls += _calls(value)
    return calls


def _parts(text: str) -> Iterator[str]:
    """The parts of a text that are JSON; and those that begin like it, up to where the next one begins."""
    begins = [found.start() for found in _BRACKET.finditer(text)]
    led = [begin for begin in begins if _is_led_to(text, begin)]
    fences = [found.start() for found in re.finditer("```", text)]
    in_sentences = {
        begin
        for begin in begins
        if _IN_SENTENCE.search(_line_before(text, begin)[-4:]) and bisect_left(fences, begin) % 2 == 0
    }.difference(led)
    begins = sorted([*led, *in_sentences])
    index = unopened = 0
    while index < len(begins):
        begin = begins[index]
        try:
            end = _JSON.raw_decode(text, begin)[1]
            index = bisect_left(begins, end)
        except json.JSONDecodeError as error:
            unopened += 1
            index = bisect_left(begins, max(error.pos, begin + 1))
            if unopened > _MOST_UNOPENED:
                index = len(begins)
            if begin in in_sentences:
                continue  # as people use brackets
            after = bisect_left(led, begins[index]) if index < len(begins) else len(led)
            end = led[after] if after < len(led) else len(text)
        except (RecursionError, ValueError):  # nested without end, or a number of thousands of digits
            index, end = len(begins), len(text)
        yield text[begin:end]


def _is_led_to(text: str, begin: int) -> bool:
    line = _line_before(text, begin)
    return _BULLET.fullmatch(line) is not None or _LEADS.search(line[-_LONGEST_LEAD:]) is not None


def _line_before(text: str, begin: int) -> str:
    before = text[max(begin - _LONGEST_LINE_BEFORE, 0) : begin]
    return before[before.rfind("\n") + 1 :].rstrip()


def _open(written: str) -> Any:
    """The value of a part of a text; None when that is not known."""
    value, not_json = parse_arguments(written)
    if not_json:
        return _literal(written.rstrip("`\n\t "))
    if type(value) is list and key_twice(written) is not None:
        return None
    return value


def _literal(text: str) -> Any:
    """The value of a dict or a list that Python wrote as text; None for anything else."""
    if len(text) > _LONGEST_LITERAL or not text.startswith(("{'", "[{'")):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _has_keys_of_calls(text: str) -> bool:
    return _KEYS_OF_CALLS.search(text) is not None or (
        _TOOL_KEY.search(text) is not None and _INPUT_KEY.search(text) is not None
    )


def _calls(value: Any) -> Iterator[WrittenCall]:
    """The calls that a value is, lists, or names under a key for calls."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if type(found) is list:
            waiting += found
        elif type(found) is dict:
            if (call := _as_call(found)) is not None:
                yield call
            for key in KEYS_OF_CALLS.intersection(found):
                listed = found[key] if type(found[key]) is list else [found[key]]
                yield from [call for item in listed if (call := _named(item)) is not None]
            inside = (*_INSIDE, *_INSIDE_MESSAGES) if "role" in found else _INSIDE
            waiting += [found[key] for key in inside if key in found]


def _named(value: Any) -> WrittenCall | None:
    """The call that stands under a key for calls, and has no arguments."""
    if type(value) is not dict or _as_call(value) is not None:
        return None
    name = next((value[key] for key in NAMES_OF_TOOLS if type(value.get(key)) is str and value[key]), None)
    return None if name is None else (name, value)


def _as_call(value: dict[str, Any]) -> WrittenCall | None:
    if (
        type(kind := value.get("type")) is str
        and kind in _TYPES
        and type(name := value.get("name", value.get("toolName"))) is str
    ):
        return name, value
    if type(kind) is str and kind.startswith("tool-") and type(value.get("toolCallId")) is str:
        return kind.removeprefix("tool-"), value  # a part of a UIMessage
    for key, keys in _WRITTEN:
        found = next((name for name in keys if name in value), None)
        if found == "input" and key == "name" and type(value[found]) is not dict:
            continue  # people have names, and forms have inputs
        # A number is none: models have parameters, too.
        if found is not None and type(value.get(key)) is str and type(value[found]) in (dict, str, list, type(None)):
            name = value[key].removeprefix("functions.") if key == "recipient_name" else value[key]
            return name, {"arguments": {} if value[found] is None else value[found]}
    return None
