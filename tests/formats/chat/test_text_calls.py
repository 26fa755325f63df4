"""Calls that an agent writes into its text: not read as calls, and never passed over."""

from __future__ import annotations

import json
import time

import pytest

from seatrial.formats.chat.text_calls import unlisted_calls
from seatrial.trajectory import extract
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    Note,
    StopReason,
    TextBlock,
    ToolCall,
    Transcript,
    UserMessage,
)

END = StopReason.END_TURN


def said(text: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage([TextBlock(text), *calls], END)


def unlisted(*messages: Message, given: int = 0) -> list[Note]:
    return unlisted_calls(Transcript([*messages], given=[*range(given)]))


def test_a_block_of_bash_that_was_answered_with_a_return_code_is_a_call_that_nobody_read() -> None:
    (note,) = unlisted(UserMessage("Go."), said("```bash\nls\n```"), UserMessage("<returncode>0</returncode>"), given=1)
    assert (note.code, note.pointer, note.serious) == ("calls_in_text", "/messages/2", True)


def test_a_block_of_bash_that_nobody_answered_is_an_answer() -> None:
    assert unlisted(said("Run this:\n```bash\nls\n```"), UserMessage("Thank you.")) == []


def test_what_a_user_says_first_is_no_result() -> None:
    assert unlisted(UserMessage("Observation: my screen is black."), said("Turn it on.")) == []


def test_a_result_in_the_users_name_right_behind_what_was_given_is_one() -> None:
    assert unlisted(UserMessage("Go."), UserMessage("<tool_response>ok</tool_response>"), said("Done."), given=1) != []


@pytest.mark.parametrize(
    "text",
    ["{'name': 'delete', 'arguments': {'id': 7}}", "[{'type': 'tool_use', 'name': 'delete', 'input': {}}]"],
)
def test_a_call_that_python_wrote_as_text_is_one(text: str) -> None:
    assert unlisted(said(text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "{'status': 'closed'}",
        '{"type": ["tool_use"], "name": [1]}',
        '{"tool_calls": 7, "function": []}',
        "{'name': 'Ada'}",
        "[{'",
        "{'a': " * 2_000,
    ],
)
def test_other_values_that_python_wrote_as_text_are_an_answer(text: str) -> None:
    assert unlisted(said(text)) == []


def test_a_message_of_an_applications_own_kind_may_hold_a_call() -> None:
    made = CustomMessage("step", {"name": "delete", "arguments": {"id": 7}})
    assert [note.code for note in unlisted(made)] == ["calls_in_custom_message"]
    assert unlisted(made, AssistantMessage([ToolCall("c", "delete", {"id": 7})], StopReason.TOOL_USE)) == []
    assert unlisted(CustomMessage("plan", {"steps": [{"title": "look"}]})) == []


def test_a_tagged_call_that_the_message_lists_as_well_is_known() -> None:
    tagged = '<tool_call>{"name": "find", "arguments": {"a": 1, "b": 2}}</tool_call>'
    assert unlisted(said(tagged, ToolCall("c", "find", {"b": 2, "a": 1}))) == []
    assert unlisted(said(tagged, ToolCall("c", "find", {"b": 2, "a": 3}))) != []
    assert unlisted(said(tagged + "<function=delete>", ToolCall("c", "find", {"b": 2, "a": 1}))) != []


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{" * 20_000,
        "```" + " " * 200_000 + "```",
        "Action:\n" * 50_000,
        "Action" + " " * 100_000,
        "Action: " + " " * 100_000,
        "Action: delete\n" * 20_000,
        "<tool_call>\n" * 20_000,
        "<|tool_calls" + "_a" * 50_000,
        "[TOOL_CALLS]" + "a" * 100_000,
        "<function=" + "a" * 100_000,
        "{" * 9_000,
        "[[\n" * 30_000,
        '{"\n' * 30_000,
        "{'\n" * 30_000,
        '{"a":\n' * 16_000,
        '[{"a": 1},\n' * 9_000,
        "{" + " " * 90 + "\n",
        ":" * 99_000 + '{"',
        '"args"' + " " * 200_000,
        '{"a": ' + "9" * 90_000 + "}",
    ],
)
def test_looking_takes_no_longer_than_the_text_is_long(text: str) -> None:
    begun = time.process_time()
    unlisted(said(text))
    assert time.process_time() - begun < 5


def test_a_run_with_commands_in_its_text_is_partial() -> None:
    from seatrial import formats

    talk = [
        {"role": "user", "content": "Clean up."},
        {"role": "assistant", "content": "```bash\nrm -rf /\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
        {"role": "assistant", "content": "Done."},
    ]
    found = extract(formats.read(json.dumps(talk).encode()))
    assert found.completeness.level == "partial"
    assert [note.code for note in found.completeness.reasons] == ["calls_in_text"]


WRITTEN = {
    "Hermes": '<tool_call>\n{"name": "delete", "arguments": {}}\n</tool_call>',
    "Hermes, not closed": 'I will.\n<tool_call>\n{"name": "delete", "arguments": {}}',
    "GLM": "<tool_call>delete\n<arg_key>id</arg_key>\n<arg_value>7</arg_value>\n</tool_call>",
    "GLM without arguments": "<tool_call>delete</tool_call>",
    "Anthropic": '<function_calls>\n<invoke name="delete">\n</invoke>\n</function_calls>',
    "Anthropic, alone": '<invoke name="delete">',
    "Llama, JSON": '<|python_tag|>{"name": "delete", "parameters": {}}',
    "Llama, code": "<|python_tag|>import shutil",
    "Llama, function": '<function=delete>{"id": 7}</function>',
    "Qwen coder": "<tool_call>\n<function=delete>\n<parameter=id>\n7\n</parameter>\n</function>\n</tool_call>",
    "ReAct": "Thought: it must go.\nAction: delete\nAction Input: {}",
    "ReAct in bold": "**Action:** delete\n**Action Input:** {}",
    "ReAct, numbered": "Action 1: delete\nAction Input 1: {}",
    "harmony": "<|channel|>commentary to=functions.delete <|constrain|>json<|message|>{}",
    "harmony, to first": "<|start|>assistant to=functions.delete<|channel|>commentary<|message|>{}",
    "Mistral": '[TOOL_CALLS] [{"name": "delete", "arguments": {}}]',
    "Mistral, new": "[TOOL_CALLS]delete{}",
    "DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>delete",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.delete:0",
    "CodeAct": "<execute_bash>\nrm -rf x\n</execute_bash>",
    "ReAct, brackets": "Thought: it must go.\nAction: delete[7]\nObservation: deleted\nThought: done",
    "ReAct, answered": "Action: delete\n\nObservation: deleted",
    "Cline, MCP": "<use_mcp_tool>\n<server_name>db</server_name>\n<tool_name>delete</tool_name>\n</use_mcp_tool>",
    "Cline, a file": "<write_to_file>\n<path>a.py</path>\n<content></content>\n</write_to_file>",
    "Phi": 'functools[{"name": "delete", "arguments": {}}]',
    "Llama 4": "<|python_start|>[delete(id=7)]<|python_end|>",
    "Llama 4, on lines": "<|python_start|>\ndelete(id=7)\n<|python_end|>",
    "Apertus": '<|tools_prefix|>[{"delete": {"id": 7}}]<|tools_suffix|>',
    "Gemma": "<|tool_call>call:delete{id:7}<tool_call|>",
    "FunctionGemma": "<start_function_call>call:delete{id:7}<end_function_call>",
    "Functionary": '<|from|>assistant\n<|recipient|>delete\n<|content|>{"id": 7}',
    "Functionary, new": '>>>delete\n{"id": 7}',
    "NexusRaven": "Call: delete(id=7)<bot_end>\nThought: it must go.",
    "smolagents": "Code:\n```py\ndelete()\n```<end_code>",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_call_in_the_words_that_models_are_trained_on_is_one(text: str) -> None:
    assert [note.code for note in unlisted(said(text))] == ["calls_in_text"]
    assert [note.code for note in unlisted(said(f"First I look.\n{text}"))] == ["calls_in_text"]


@pytest.mark.parametrize(
    "text",
    [
        "Qwen writes its calls between <tool_call> and </tool_call> tags.",
        "The tag `<tool_call>...</tool_call>` is what Hermes uses.",
        "Llama puts <|python_tag|> in front of code, and the `<function=name>` form is older.",
        "Use <function_calls> with <invoke> inside.",
        "Mistral's token is [TOOL_CALLS] and DeepSeek has others.",
        "gpt-oss answers on <|channel|> commentary.",
        "The plan\nAction: approve the request\nOwner: Ann",
        "Action: None\nAction Input: None",
        "In ReAct, a model writes Action: and then Action Input: on the next line.",
        "The tag <execute_bash> is one of CodeAct.",
        "Write <end_code> at the end.",
        "Action: approve the request\n\nThat is all I have to say.\nObservation of the birds: many.",
        "Thought: I know.\nAction: Finish[42]\nObservation: done",
        "Cline writes <use_mcp_tool> around such a call, and <read_file> with a path.",
        "if a < b and c > d: call(x)",
        "Llama 4 puts <|python_start|> in front of a call, Gemma <|tool_call> and Apertus <|tools_prefix|>.",
        "In functools[0] there is cache, and functools has more.",
        "<|from|>assistant\n<|recipient|>all\n<|content|>Done.",
        ">>>all\nDone.",
        ">>> order\n{'id': 7}",
        "NexusRaven ends with <bot_end>.\nCall: 555-0100 (office)",
    ],
)
def test_a_text_that_only_speaks_of_such_marks_holds_no_call(text: str) -> None:
    assert unlisted(said(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Thought: look.\nAction: find\nAction Input: {}",
        '<function=find>{"a": 1}</function>',
        '<invoke name="find"></invoke>',
        "<|channel|>commentary to=functions.find<|message|>{}",
    ],
)
def test_a_written_call_is_known_when_the_message_lists_one_of_its_name(text: str) -> None:
    assert unlisted(said(text, ToolCall("c", "find", {"a": 1}))) == []
    assert unlisted(said(text, ToolCall("c", "delete", {"a": 1}))) != []
    assert unlisted(said(text), said("", ToolCall("c", "find", {"a": 1}))) != []


def test_a_written_call_is_known_when_a_trace_lists_one_of_its_name() -> None:
    hermes = '<tool_call>{"name": "find", "arguments": {}}</tool_call>'
    for text in ("Action: find\nAction Input: {}", hermes):
        assert unlisted_calls(Transcript([said(text)]), frozenset({"find"})) == []
        assert unlisted_calls(Transcript([said(text)]), frozenset({"look"})) != []


def test_a_call_beside_one_that_the_message_makes_anyhow_is_found() -> None:
    text = '<invoke name="look"></invoke> <invoke name="delete_account"></invoke>'
    assert unlisted(said(text, ToolCall("1", "look", {})))
    assert not unlisted(said(text, ToolCall("1", "look", {}), ToolCall("2", "delete_account", {})))


def test_signs_without_number_are_not_looked_at_one_by_one() -> None:
    assert not unlisted(said("<tool_use> " * 100))
    assert unlisted(said("<tool_use> " * 100_000))


def test_a_text_that_python_cannot_make_a_value_of_is_an_answer() -> None:
    assert not unlisted(said("{'template': {{}} }"))


def test_a_call_in_a_text_that_is_too_long_to_be_opened_leaves_a_doubt() -> None:
    assert unlisted(said(json.dumps({"name": "delete_account", "arguments": {"why": "a" * 200_000}})))
    assert not unlisted(said(json.dumps({"rows": ["a" * 200_000]})))


CALL = '{"name": "delete", "arguments": {"id": 7}}'
DEEP = "[" * 300 + "]" * 300
AS_JSON = {
    "nested too deeply": f'{{"name": "delete", "arguments": {{"a": {DEEP}}}}}',
    "nested too deeply, in a fence": f'```json\n{{"name": "delete", "arguments": {{"a": {DEEP}}}}}\n```',
    "nested without end": '{"name": "delete", "arguments": ' + "[" * 50_000,
    "nested too deeply, in a list": f'[{DEEP}, {{"type": "tool_use", "name": "delete"}}]',
    "a key twice": '{"name": "delete", "arguments": {"id": 1}, "arguments": 2}',
    "a key of the arguments twice": '{"name": "delete", "arguments": {"id": 1, "id": 2}}',
    "a key twice, in a list": '[{"name": "delete", "arguments": {}, "arguments": 2}]',
    "NaN": '{"name": "delete", "arguments": {"id": NaN}}',
    "NaN, tool and input": '{"tool": "delete", "input": NaN}',
    "NaN, by its type": '{"type": "tool_use", "name": "delete", "input": {"id": NaN}}',
    "a trailing comma": '{"name": "delete", "arguments": {"id": 1},}',
    "a word that is no JSON": '{"name": delete, "arguments": {"id": 1}}',
    "a new line in a string": '{"name": "delete", "arguments": {"why": "a\nb"}}',
    "a number of thousands of digits": '{"name": "delete", "arguments": {"id": ' + "9" * 9_000 + "}}",
    "cut": '{"name": "delete", "arguments": {"id": ',
    "Python, long": "{'name': 'delete', 'arguments': {'a': '" + "a" * 11_000 + "'}}",
    "Python with JSON's words": "{'name': 'delete', 'arguments': {'a': true}}",
    "Python in a fence": "Calling:\n```python\n{'name': 'delete', 'arguments': {}}\n```",
    "second of a list": f'[{{"thought": "x"}}, {CALL}]',
    "second of the calls": f'{{"tool_calls": [{{"x": 1}}, {CALL}]}}',
    "behind a list in a list": f"[[], [{CALL}]]",
    "under a key for a call": f'{{"thought": "x", "tool": {CALL}}}',
    "on two lines": f"{CALL}\n{CALL}",
    "on the second line": f'{{"name": "x"}}\n{CALL}',
    "arguments null": '{"name": "delete", "arguments": null}',
    "arguments in a list": '{"action": "delete", "action_input": ["7"]}',
    "a byte order mark": f"\ufeff{CALL}",
    "a fence": f"```\n{CALL}\n```",
    "a fence in capitals": f"```JSON\n{CALL}\n```",
    "a fence after a sentence": f"Calling:\n```json\n{CALL}\n```",
    "a fence on the same line": f"Calling: ```json {CALL}```",
    "the second fence": f'```json\n{{"a": 1}}\n```\nthen\n```json\n{CALL}\n```',
    "before a sentence": f"{CALL}\nDone.",
    "before a sentence on the same line": f"{CALL} Done.",
    "after a sentence": f"I'll call it now.\n\n{CALL}",
    "after a sentence on the same line": f"I'll call: {CALL}",
    "in bold": f"**Call:** {CALL}",
    "in a list of points": f"- {CALL}",
    "in a numbered list": f"1) {CALL}",
    "behind a thought": f"<think>It must go.</think>{CALL}",
    "behind JSON that was cut": f'{{"a": "\n{CALL}',
    "behind a link": f"[docs](https://example.com)\n{CALL}",
    "behind much that is no JSON": "{'\n" * 2_000 + CALL,
    "far inside": " " * 500 + CALL,
    "in inline code": f"I call: `{CALL}`",
    "inline code alone": f"`{CALL}`",
    "within a sentence": f"I will call {CALL} now.",
    "behind a word": f"Ok {CALL} done",
    "behind a word in bold": f"I **call** {CALL}",
    "in a sentence behind code": f"```python\nx = 1\n```\nI call {CALL} now.",
    "in a sentence behind brackets": f'The set {{"a" and "b"}} is empty, so I call {CALL} now.',
    "Gemini": '{"functionCall": {"name": "delete", "args": {}}}',
    "Gemini, without arguments": '{"functionCall": {"name": "delete"}}',
    "Gemini, a turn": '{"role": "model", "parts": [{"functionCall": {"name": "delete", "args": {}}}]}',
    "Bedrock": '{"toolUse": {"toolUseId": "t", "name": "delete", "input": {}}}',
    "Bedrock, cut": '{"toolUse": {"toolUseId": "t", "name": "delete", ',
    "multi_tool_use": '{"recipient_name": "functions.delete", "parameters": {"id": 7}}',
    "a list of them": '{"tool_uses": [{"recipient_name": "functions.delete", "parameters": {}}]}',
    "a provider response": f'{{"output_messages": [{{"role": "assistant", "tool_calls": [{CALL}]}}]}}',
    "a provider response in a fence": f'```json\n{{"messages": [{{"tool_calls": [{CALL}]}}]}}\n```',
    "name and input": '{"name": "delete", "input": {"id": 7}}',
    "toolName and args": '{"toolName": "delete", "args": {}}',
    "toolName and input, cut": '{"toolName": "delete", "input": {"id": ',
}


@pytest.mark.parametrize("text", AS_JSON.values(), ids=AS_JSON)
def test_a_call_that_is_written_as_json_is_one_also_where_it_cannot_be_decoded(text: str) -> None:
    assert [note.code for note in unlisted(said(text))] == ["calls_in_text"]


@pytest.mark.parametrize(
    "text",
    [
        f'{{"rows": {DEEP}}}',
        "[" * 50_000,
        '{"id": 1, "id": 2}',
        '{"mean": NaN, "name": "x"}',
        '{"name": "Ada",}',
        '{"name": "Ada", "input": "her letter"}',
        "Write `{id}` in its place.",
        '{"name": "llama", "parameters": 7000000000}',
        "{'rows': '" + "a" * 11_000 + "'}",
        '[{"name": "Ada"}, {"name": "Bob"}]',
        '{"name": "Ada"}\n{"name": "Bob"}\nThese are all.',
        'Here it is:\n```json\n{"status": "closed", "tool": "hammer"}\n```\nDone.',
        '{"spec": {"containers": [{"name": "web", "args": ["--port"]}]}}',
        "[docs](https://example.com)\n[x] done, with the arguments: none",
        '```python\ndef f(**args):\n    return {"name": f, "args": args}\n```',
        '```python\nrequests.post(url, json={"name": "a", "args": {}})\n```',
        '```python\nsend(\n    {"id": 1, **rest},\n)\n```',
        "```c\nint main(int argc, char **args)\n{\n  return 0;\n}\n```",
        "```js\nconst f = (args) => {\n  return [args]\n}\n```",
        "Jinja writes {{ arguments }} and {% set args = 1 %}.",
        'The keys "arguments" and "tool_calls" are what matters: {"name" and so on.',
        'The answer is {"total": 3, "rows": [1, 2]} as you asked.',
        'Use {"name": "Ada"} for her, and ["a", "b"] for the others.',
        'A tool is called with {"name": ..., "arguments": {...}} in this API.',
        '```python\ndef f():\n    return {"name": "a", "args": {}}\n```',
        '{"messages": [{"from": "Ada", "content": "Call me"}], "parts": [{"name": "wheel", "count": 4}]}',
        '{"content": [{"type": "text", "text": "no calls"}], "name": "a page"}',
        '{"recipient_name": "Ada", "content": [{"name": "letter", "args": {}}]}',
        '{"toolUse": "forbidden", "functionCall": null, "tool_calls": []}',
        "The interval [f(a), f(b)] is closed, and so is\n[f(a), f(b)]",
        "[see the docs (part 2)]\n[x] done (really)]",
        "Cline runs commands with <execute_command> and <command> tags.",
    ],
)
def test_prose_code_and_json_without_the_keys_of_calls_are_an_answer(text: str) -> None:
    assert unlisted(said(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "<execute_command>\n<command>rm -rf x</command>\n</execute_command>",
        "<browser_action>\n<action>click</action>\n</browser_action>",
        "<search_files>\n<path>.</path>\n</search_files>",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="delete">\n</｜DSML｜invoke>',
        "[delete(id=7)]",
        "[delete()]",
        'I do it now.\n[find(email="a@b.c"), delete(id=7)]\n',
    ],
)
def test_the_calls_of_cline_deepseek_and_llama_are_found(text: str) -> None:
    assert [note.code for note in unlisted(said(text))] == ["calls_in_text"]


def test_a_call_of_another_dialect_in_a_text_is_known_when_the_record_lists_it() -> None:
    delete = ToolCall("1", "delete", {"id": 7})
    assert unlisted(said('{"recipient_name": "functions.delete", "parameters": {"id": 7}}', delete)) == []
    assert unlisted(said('I call {"functionCall": {"name": "delete", "args": {"id": 7}}} now.', delete)) == []
    assert unlisted(said('I call {"functionCall": {"name": "delete", "args": {"id": 8}}} now.', delete)) != []


def test_calls_as_json_are_known_when_the_record_lists_each_of_them() -> None:
    both = f'Calling:\n```json\n{CALL}\n```\nand\n{{"name": "find", "arguments": null}}'
    delete, find = ToolCall("1", "delete", {"id": 7}), ToolCall("2", "find", {})
    assert unlisted(said(both, delete, find)) == []
    assert unlisted(said(both, delete)) != []
    assert unlisted(said(both, find)) != []
    assert unlisted(said(f"<tool_call>{both}</tool_call>", delete, find)) == []
    assert unlisted(said(f"<tool_call>{both}</tool_call>", delete)) != []
    assert unlisted(said(f"[{CALL}, {CALL}]", delete)) == []
