"""docs/troubleshooting.md: every code that a person can meet, and what to do about it.

The meanings are those of the code; what to do is here. A code without an entry, or an entry without a code, fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import ERROR_CODES
from seatrial.runs import FAULT_CLASSES

VERDICTS = {
    "calls_unknown": (
        "The check depends on tool calls, and not all of the agent's calls are known.",
        "Return the messages, or a trace, with the answer; name the `format` of the record; run behind the tool proxy; or "
        "declare `tool_access: none` for an agent that has no tools. [Why](verdicts.md#completeness-how-much-is-known-of-the-calls).",
    ),
    "calls_not_observed": (
        "The grader has `basis: observed`, and the run has only calls that the agent reported.",
        "Send the agent's tools through the tool proxy, or remove `basis: observed`.",
    ),
    "no_answer": (
        "The check would be met by an absent answer, and there is none.",
        "`seatrial show RUN` shows what the agent sent. Name where its answer is: `response: {answer: ...}` of an HTTP "
        "agent, `final_response` of a Python one.",
    ),
    "answer_incomplete": (
        "A part of the answer was dropped, cut off or given twice, and the check depends on it.",
        "Read the run's notes (`seatrial show RUN`): they say which part, and why.",
    ),
    "secret_removed": (
        "The stored run has `${NAME}` where a secret was, and the check depends on that part.",
        "Run the case again: graders of a new run see what the agent really said.",
    ),
    "judge_skipped": (
        "A judge was left out (`--skip-judges`), or the suite names no model.",
        "Run without `--skip-judges`, or name a model under `judge`. `required: false` allows a judge to be absent.",
    ),
    "grader_errored": (
        "A grader could not run, or its result cannot be used.",
        "Its reason says why: an exception in your own grader, a model that did not answer, a score outside 0 to 1.",
    ),
    "grader_timeout": (
        "A grader took longer than its time limit.",
        "Set `timeout_s` of the grader, or make it faster. A pattern that backtracks without end needs another pattern.",
    ),
    "diff_unknown": (
        "Not all that the agent changed in its workspace is known.",
        "The reason names what is missing: a file that is too large, or a workspace that could not be read.",
    ),
    "workspace_gone": (
        "A `command` grader needs the workspace, which is removed once its run is graded.",
        "Run the case again: `seatrial run SUITE --case ID`.",
    ),
}
"""Codes of verdicts that errored: what they mean, and what to do."""

FAULTS = {
    "agent_exception": "The traceback is in `seatrial show RUN`. In pytest it is raised in the test.",
    "agent_exit": "`seatrial show RUN` has the last lines that the program wrote to standard error.",
    "agent_signal": "SIGKILL is often the system, out of memory: run fewer at once (`--concurrency`).",
    "agent_5xx": "Look into the agent's own log; its answer is in `seatrial show RUN`.",
    "agent_4xx": "The agent refuses the request: compare `request:` with what it expects. 404 is often a wrong path.",
    "agent_bad_response": "Say how to read the answer: `response:` paths of an HTTP agent, `output` or `format` of a program.",
    "agent_output_missing": "The answer is empty, or not where Seatrial looks: `response: {answer: ...}`, `output`, `record`.",
    "response_contract_violation": "`seatrial lint FILE` says what is missing; or declare another `response_mode`.",
    "response_too_large": "Return less, or raise the limit named in the message.",
    "answer_cut_off": "The agent, or a proxy in front of it, closed the connection: look at its timeouts.",
    "stream_truncated": "End every stream with a terminal event, such as RUN_FINISHED; `seatrial events FILE` checks a recorded one.",
    "agent_reported_error": "The agent itself said so; its message is in `seatrial show RUN`.",
    "agent_timeout": "Raise `timeout_s` (or `timeouts.read_s`), or find out what the agent waits for.",
    "deadline_exceeded": "Raise `run_timeout_s`, or the case's `timeout_s`.",
    "push_timeout": "The agent stopped posting events without ending its run: look into its log.",
    "agent_unreachable": "Is it running, and at this address? `seatrial doctor SUITE` tries every agent.",
    "connection_lost": "Usually a restart of the agent, or a proxy. It was tried again `retry.attempts` times.",
    "auth_failed": "Check the variable that `api_key` or the header names; is it set, and valid at this address?",
    "rate_limited": "Lower `--concurrency`, or raise `retry`. `seatrial run SUITE --only errored` runs only these again.",
    "agent_unavailable": "The agent is overloaded or starting: lower `--concurrency`, or run `--only errored` later.",
    "agent_redirected": "Write the address that it redirects to; redirects are not followed.",
    "infrastructure_error": "Your agent said that it was not its fault. `seatrial run SUITE --only errored` tries again.",
    "agent_not_started": "Is the program installed, on the PATH and executable? `seatrial doctor SUITE` looks for it.",
    "deadline_in_retry": "Raise `run_timeout_s`, so that waits between attempts fit in.",
    "endpoint_refused": "`endpoint_rule` forbids the address: change one of them.",
    "record_missing": "The replay has no record for this case: check the ids, or the agent's `path`.",
    "record_unreadable": "`seatrial steps FILE` shows why. Name the `format`, or make the `record` pattern match one file.",
    "format_failed": "A format of an installed package raised: report it there. Another `format` may be able to read it.",
    "out_of_resources": "Raise the limits of this machine (`ulimit -n`), free disk, or run fewer at once (`--concurrency`).",
    "workspace_failed": "The message has the end of what `setup` wrote. Try the command in a copy of the folder.",
    "handler_fault": "Correct the tool of the world that the message names; the traceback is in `seatrial show RUN`.",
    "proxy_misconfigured": "The message names the variable of the tool proxy that is missing or malformed.",
    "recording_failed": "Free space on the disk, or check the store's database; then `seatrial run --resume latest`.",
    "record_damaged": "The rest of the store can be read. Restore the file from a backup, or run the case again.",
    "interrupted": "`seatrial run --resume latest` runs what is missing.",
    "server_restarted": "Start the run again: its server was killed.",
    "server_stopped": "Start the run again, or give the server more time to finish its runs when it stops (`serve --help`).",
    "internal_error": "This is a bug of Seatrial. Report it with the traceback and the version (`seatrial --version`).",
}
"""What to do about a fault of a run, by its class."""

ERRORS = {
    "not_json": "Check the file: it may be JSON lines, or the output of a program with text around the JSON.",
    "not_utf8": "Save the file as UTF-8.",
    "too_deep": "No agent needs that much nesting; look for a value that contains itself.",
    "too_large": "Split the file, or cut long tool results before they are recorded.",
    "empty_input": "The file, or what was piped in, is empty.",
    "invalid_document": "The message names the place. Is it the format that you named?",
    "invalid_cursor": "Use the cursor as the server sent it.",
    "bad_record": "The message names the line of the batch.",
    "unknown_format": "The hint lists the formats; see [formats](formats.md).",
    "undetected_format": "Name the format: `--from`, or `format` in the suite.",
    "unread_format": "Convert it with the tool that wrote it; [these](formats.md#formats-that-are-refused) are known and not read.",
    "ambiguous_format": "Name one of the two that the message lists.",
    "not_writable": "Choose a format that can be written: see the table in the README.",
    "format_failed": "Report it to the package that the format is from.",
    "invalid_filter": "The place of the mistake is underlined; [filters](looking.md#filters) lists the fields and their values.",
    "invalid_config": "The message names the key or argument, and the nearest valid one.",
    "agent_failed": "The agent's own traceback is above. `check=False` returns the run instead of raising.",
    "agent_unhealthy": "Start the agent, or correct its `healthcheck`; the message has what it wrote.",
    "invalid_suite": "Every problem has its file and line. `seatrial doctor SUITE` lists them all without running anything.",
    "not_judged": "Give every case a grader, or use `--no-grade` if nothing is to be graded.",
    "model_failed": "Check the model's name, key and address: the message has what the endpoint answered.",
    "search_budget": "Give fewer alternatives in `expected`, or use another mode of `tool_trajectory`.",
    "time_limit": "Simplify the pattern, or compare less.",
    "text_too_long": "Match a shorter text, or use `contains`.",
    "workspace_failed": "Try the `setup` command by hand in a copy of the folder.",
    "ambiguous_record": "Make the `record` pattern match only the file of this run.",
    "unreadable_file": "Check the path, and that you may read it. Paths in a suite are relative to the suite.",
    "unwritable_file": "Check the folder, its permissions, and the space on the disk.",
    "not_found": "`seatrial list` shows the experiments, `seatrial show EXPERIMENT` its runs. Is it the right `--store`?",
    "ambiguous": "Write more of the id, or name the case, agent and trial.",
    "conflict": "Use another id, or read the newer state first.",
    "unstorable": "Ids may have letters, digits and `._:~-`.",
    "not_a_store": "Name another file; this one belongs to another program.",
    "store_too_new": "Install the version of Seatrial that wrote it, or a newer one.",
    "store_outdated": "Open it once with permission to write, so that it can be migrated.",
    "store_unavailable": "Is the database running? Another process may hold the file; try again.",
    "damaged": "Restore the file from a backup; `sqlite3 seatrial.db 'PRAGMA integrity_check'` says how much is affected.",
    "store_full": "Free space on the disk. What was finished is stored; `--resume latest` runs the rest.",
    "usage": "`seatrial COMMAND --help` shows the options.",
    "invalid_request": "The answer names the field; `/schema` of the server describes every operation.",
    "unauthorized": "Send `Authorization: Bearer KEY`; `seatrial keys add NAME` makes one.",
    "forbidden": "Make a key with the scope that the message names: `seatrial keys add NAME --scope run`.",
    "rate_limited": "Wait as long as `Retry-After` says.",
    "cursor_ahead": "The cursor is of another run, or of another store.",
    "cursor_expired": "Read the run from the start, or its final record.",
    "agent_busy": "Try again later, or raise the agent's limits on the server.",
    "thread_busy": "Wait for the run of the thread, or cancel it.",
    "resume_refused": "Answer every open interrupt, each in a way that it allows.",
    "idempotency_conflict": "Use a new key for a new request.",
    "sequence_conflict": "Append after the last event; the answer names it.",
    "event_refused": "The message says which event was expected; see [events](events.md).",
    "run_ended": "Start a new run.",
    "shutting_down": "Try again once the server is back.",
    "cannot_listen": "Choose another `--port`, or end the program that uses this one.",
    "service_failed": "Is the server running, and at this address?",
    "stream_broken": "`seatrial tail RUN_ID` follows it again from where it broke.",
    "executor_failed": "The message has the end of what the worker wrote; try `--executor local`.",
    "internal_error": "This is a bug of Seatrial. Report it with the traceback and the version (`seatrial --version`).",
}
"""What to do about an error, by its code."""

HEAD = """# Troubleshooting

Find the code that you see. An error ends with it in brackets (`[invalid_suite]`); a run that failed or errored shows it as `why` in `seatrial show EXPERIMENT`.

- [A verdict is errored](#a-verdict-is-errored): a grader had nothing to judge by, such as `calls_unknown`
- [A run failed or errored without an answer](#a-run-has-no-answer): a fault, such as `agent_unreachable`
- [A command stopped](#a-command-stopped): an error, such as `invalid_suite`
- Something was dropped, guessed or repaired while reading: [notes](notes.md)

## The usual first hour

| what you see | why, and what to do |
| --- | --- |
| everything is `errored` with `calls_unknown` | the agent returns only text, and the suite checks its calls: return the messages too, or declare `tool_access: none` if it has no tools |
| `No module named 'my_agent'` | `target: my_agent:answer` is looked for in the folder of the suite, then on the Python path |
| the exit code is 3, and nothing failed | some runs have no verdict: `seatrial show latest --outcome errored` lists them with why |
| the exit code is 0 in one shell and 2 in CI | a variable such as `${AGENT_TOKEN}` is not set there; `--agent NAME` needs only that agent's variables |
| results do not change after the agent was changed | `seatrial grade` grades stored runs again; `seatrial run` runs the agent again |
| `No clear difference`, although the rate dropped | too few cases for so small a drop: `seatrial doctor SUITE --power` shows how small a drop can be found |
| the interval is wide | more cases help more than more trials of the same cases |
"""


def troubleshooting(head: str) -> str:
    """The page. Raises `ValueError` where a code lacks its remedy, or a remedy its code."""
    faults = {name: kind.meaning for name, kind in FAULT_CLASSES.items() if not kind.retired}
    return (
        f"{head}{HEAD}\n## A verdict is errored\n\n"
        "The run has an answer, but a grader could not judge it. An errored verdict of a required grader makes the run errored: it is in no rate.\n\n"
        f"{_table({code: meaning for code, (meaning, _) in VERDICTS.items()}, {code: todo for code, (_, todo) in VERDICTS.items()})}"
        "\n## A run has no answer\n\n"
        "Whether the agent is at fault, and whether it is tried again: [faults](faults.md).\n\n"
        f"{_table(faults, FAULTS)}"
        "\n## A command stopped\n\n"
        "Exit code 2: what was asked for cannot be done. Exit code 3: it could not be run or judged.\n\n"
        f"{_table(ERROR_CODES, ERRORS)}"
    )


def _table(meanings: Mapping[str, str], remedies: Mapping[str, str]) -> str:
    if apart := set(meanings) ^ set(remedies):
        raise ValueError(f"a meaning and a remedy are needed for each of {sorted(apart)}")
    rows = "".join(f"| `{code}` | {meaning} | {remedies[code]} |\n" for code, meaning in meanings.items())
    return f"| code | what it means | what to do |\n| --- | --- | --- |\n{rows}"
