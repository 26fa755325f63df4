from __future__ import annotations

import asyncio
import json
import string
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
import pytest
from engine.setting import NO_WAIT, Scripted, a_suite, only_run, refused, run_suite, runs_of, say_ok
from hypothesis import given
from hypothesis import strategies as st

from seatrial import formats
from seatrial._support import wire
from seatrial._support.excerpt import MAX_DETAIL
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.python.returned import read_returned
from seatrial.agents.streamed import StreamedRun
from seatrial.driver.redaction import Redaction
from seatrial.engine.launch import create_experiment, launch
from seatrial.engine.regrading import regrade
from seatrial.events import encode_event
from seatrial.events.types import CustomEvent, Event, RunError, RunFinished, RunStarted, TextMessageChunk
from seatrial.formats.reading import Reading
from seatrial.graders import GradingPlan, Subject, Surroundings
from seatrial.runs import Fault, Grade, Run, RunKey, Verdict
from seatrial.runs.removed import SECRET_REMOVED
from seatrial.store import Store
from seatrial.suites import Secrets
from seatrial.suites.secrets import MIN_SECRET_LENGTH
from seatrial.trajectory import Completeness, Step
from seatrial.world.grant import Grants

SECRET = 'hunter2"\\ü'
TRACE = b'[{"type": "tool_call", "name": "dig", "input": {"where": "hunter2\\"\\\\\\u00fc"}}]'

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10_000, 10_000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def hidden(value: Any, secret: str) -> Any:
    """The value as it should be, walked instead of matched."""
    if isinstance(value, str):
        return Secrets({"KEY": secret}).redact(value)
    if isinstance(value, list):
        return [hidden(item, secret) for item in value]
    if isinstance(value, dict):
        return {hidden(key, secret): hidden(item, secret) for key, item in value.items()}
    return value


# No words, since some of them are words of ours; but the letters of escapes.
ALPHABET = f"{string.digits}{string.punctuation}{string.whitespace}nu"


@given(values, st.text(ALPHABET, min_size=4, max_size=8).filter(lambda text: len(text.strip()) >= 4))
def test_a_document_without_secrets_is_the_same_document_with_other_strings(value: Any, secret: str) -> None:
    document = wire.encode([value, secret, f"\n{secret}", {"k": f"<{secret}>"}])
    redacted = Redaction(Secrets({"KEY": secret})).document(document)
    assert msgspec.json.decode(redacted) == hidden(msgspec.json.decode(document), secret)


@pytest.mark.parametrize("secret", ["8080", "true", "null", "1e99", "n123", '"," "', "[1.0"])
def test_a_secret_that_looks_like_json_breaks_no_document(secret: str) -> None:
    document = wire.encode({"a": 18080, "b": True, "c": None, "d": "\n1234", "e": [secret], "type": 1e99})
    plain = json.loads(Redaction(Secrets({"KEY": secret})).document(document))
    assert plain["a"] == 18080
    assert plain["d"] == "\n1234"
    assert plain["e"] == ["${KEY}"]


def test_a_secret_of_digits_is_hidden_where_it_is_a_number_too_unless_only_a_number_can_stand_there() -> None:
    redaction = Redaction(Secrets({"PIN": "12345678", "PORT": "8080"}))
    document = wire.encode(
        {"value": 12345678, "rows": [12345678, {"n": 12345678}, 123456789, -12345678, 8080], "timestamp": 12345678}
    )
    assert json.loads(redaction.document(document)) == {
        "value": "${PIN}",
        "rows": ["${PIN}", {"n": "${PIN}"}, 123456789, -12345678, 8080],
        "timestamp": 12345678,
    }


def test_a_secret_that_an_agent_sends_back_as_a_number_reaches_no_part_of_the_record(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(CustomEvent(name="debug", value=12345678))
        await emit(CustomEvent(name="debug", value={"pins": [12345678]}))
        call = {"tool": "t", "input": {"pin": 12345678}, "output": 12345678}
        return read_returned({"text": "ok", "output_messages": [{"role": "assistant", "tool_calls": [call]}]})

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"PIN": "12345678"}))
    assert tally.outcomes == {"passed": 1}
    assert b"12345678" not in everything_stored(store)
    run = only_run(store, experiment)
    assert run.steps[0].arguments == {"pin": "${PIN}"}
    assert run.steps[0].result == "${PIN}"


def test_what_has_no_secret_in_it_comes_back_as_the_very_same_bytes() -> None:
    redaction = Redaction(Secrets({"KEY": SECRET}))
    for data in (b"\xff\x00 plain", b'{"a": 1}'):
        assert redaction.raw(data) is data
    assert redaction.document(b'{"a": 1}') == b'{"a": 1}'
    assert Redaction(None).document(b"x") == b"x"
    assert Redaction(Secrets({})).raw(b"x") == b"x"


def test_bytes_that_are_no_text_lose_nothing_but_the_secret() -> None:
    redaction = Redaction(Secrets({"KEY": "hunter2"}))
    assert redaction.raw(b"\xff\xfe hunter2 \x80") == b"\xff\xfe ${KEY} \x80"


def a_run(reading: Reading, body: bytes | None = None) -> Run:
    key = RunKey("crew", "one", 0)
    return Run(run_id="r", experiment_id="e", key=key, status="completed", reading=reading, body=body)


def everything_stored(store: Store) -> bytes:
    """The bytes of every column that can hold text, unpacked by the store itself."""
    found: list[object] = []
    for experiment in store.experiments():
        for run in store.whole_runs(experiment.experiment_id):
            whole = store.run(run.run_id)
            found += [whole, store.events(run.run_id)]
            found += [store.body(a.body_hash) for a in whole.attempts if a.body_hash is not None]
            found += [whole.body]
    return b"".join(item if isinstance(item, bytes) else repr(item).encode() for item in found)


def test_a_secret_that_an_agent_sends_back_reaches_no_part_of_the_record(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt == 1:
            reply = refused(503, detail=f"bad key {SECRET}")
            reply.body = f"key was {SECRET}".encode()
            return reply
        await emit(CustomEvent(name="debug", value={SECRET: [SECRET]}))
        await emit(TextMessageChunk(message_id="m", delta=f"my key is {SECRET}"))
        reply = read_returned(
            {
                "text": f"ok, the key is {SECRET}",
                "trace_ref": "trace.json",
                "output_messages": [
                    {"role": "assistant", "content": SECRET, "tool_calls": [{"tool": "t", "input": {"k": SECRET}}]}
                ],
            }
        )
        reply.trace_file = TRACE
        return reply

    experiment, _ = run_suite(
        store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"API_KEY": SECRET, "SHORT": "hunter2"})
    )
    stored = everything_stored(store)
    assert b"hunter2" not in stored
    run = only_run(store, experiment)
    assert run.reading is not None
    assert SECRET_REMOVED in [note.code for note in run.reading.notes]
    assert run.steps[0].arguments == {"where": "${API_KEY}"}
    assert stored.count(b"${API_KEY}") >= 6


def test_a_secret_in_a_call_of_the_tool_proxy_reaches_no_part_of_the_record(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        told = Step(0, f"send-{SECRET}", {"key": SECRET}, SECRET, source="observed", result=SECRET, error=SECRET)
        request.observed.steps = [told]
        return read_returned({"text": "ok", "output_messages": [{"role": "assistant", "content": "ok"}]})

    secrets = Secrets({"API_KEY": SECRET, "SHORT": "hunter2"})
    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=secrets)
    assert SECRET.encode() not in everything_stored(store)
    run = only_run(store, experiment)
    assert [(step.name, step.arguments) for step in run.steps] == [("send-${API_KEY}", {"key": "${API_KEY}"})]
    assert run.reading is not None
    assert "observed_call_not_reported" in [note.code for note in run.reading.notes]


class Echo(BaseHTTPRequestHandler):
    """Answers with all that it was sent: the first time as an error page, then as an agent."""

    asked = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = {"path": self.path, "query": parse_qs(urlsplit(self.path).query), "headers": dict(self.headers)}
        told["token"] = b64encode(json.dumps(dict(self.headers)).encode()).decode()
        Echo.asked += 1
        answer = json.dumps({"final_response": json.dumps(told), "echo": [told, body.decode()]}).encode()
        self.send_response(503 if Echo.asked == 1 else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_no_form_in_which_a_secret_was_sent_reaches_the_record(store: Store) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        variables = {"PASS": "pa%2Fss+w0rd", "KEY": "k/e+y &1234", "OTHER": "sch\u00f6n-geheim"}
        url = f"http://admin:${{PASS}}@127.0.0.1:{server.server_port}/?key=${{KEY}}"
        agent = HttpConfig(endpoint_url=url, headers={"X-Api-Key": "${OTHER}"}, retry=NO_WAIT)
        suite = msgspec.structs.replace(a_suite(1), agents={"shop": agent})
        experiment = create_experiment(store, suite, variables=variables)
        asyncio.run(launch(experiment, suite, store, variables=variables))
        server.shutdown()
    run = only_run(store, experiment)
    assert len(run.attempts) == 2
    assert run.reading is not None
    stored = everything_stored(store)
    assert b"${PASS}" in stored
    assert b"${KEY}" in stored
    for value in (*variables.values(), "pa/ss+w0rd"):
        for form in (
            value.encode(),
            quote(value).encode(),
            b64encode(value.encode()),
            b64encode(f"admin:{value}".encode()),
            json.dumps(value)[1:-1].encode(),
            value.encode().decode("latin-1").encode(),
        ):
            assert form not in stored


def test_a_secret_in_an_exception_of_ours_is_not_stored(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        raise ValueError(f"cannot send {SECRET}")

    experiment, _ = run_suite(
        store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"API_KEY": SECRET, "SHORT": "hunter2"})
    )
    fault = only_run(store, experiment).fault
    assert fault is not None
    assert fault.message == "ValueError: cannot send ${API_KEY}"
    assert "hunter2" not in str(fault.detail)


def test_a_reading_keeps_all_it_had_but_the_secret() -> None:
    body = b'{"output_messages": [{"role": "assistant", "content": "hunter2", "tool_calls": [{"tool": "t", "id": "c", '
    body += b'"input": {"n": 8080}, "started_at": 5, "duration_ms": 7}]}], "text": "done"}'
    from seatrial.formats import output_messages

    reading: Reading = output_messages.read(body)
    assert reading.facts
    redacted = Redaction(Secrets({"KEY": "hunter2", "PORT": "8080"})).run(a_run(reading)).reading
    assert redacted is not None
    assert redacted.facts == reading.facts
    assert b"hunter2" not in wire.encode(redacted)
    assert len(redacted.transcript.messages) == len(reading.transcript.messages)


@pytest.mark.parametrize("word", ["user", "type", "MESSAGE", "content", "assistant"])
def test_a_secret_that_is_a_word_of_ours_breaks_no_record(store: Store, word: str) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(TextMessageChunk(message_id="m", delta=f"said by the {word}", role="assistant"))
        return read_returned({"output_messages": [{"role": "assistant", "content": f"ok, {word}"}]})

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"KEY": word}))
    assert tally.outcomes == {"passed": 1}
    run = only_run(store, experiment)
    assert run.reading is not None
    assert b"ok, ${KEY}" in wire.encode(run.reading.transcript)
    assert all(json.loads(event)["type"] for _, event in store.events(run.run_id))


def test_a_fault_keeps_its_status() -> None:
    fault = Fault("agent_4xx", "hunter2", detail="hunter2", http_status=429, retry_after_s=3)
    redacted = Redaction(Secrets({"KEY": "hunter2"})).fault(fault)
    assert redacted == Fault("agent_4xx", "${KEY}", detail="${KEY}", http_status=429, retry_after_s=3)


@pytest.mark.parametrize("kept", range(MIN_SECRET_LENGTH, 23))
def test_no_part_of_a_secret_stays_where_a_fault_was_cut(kept: int) -> None:
    secret, filling = "hunter2-hunter3-hunter4", "." * MAX_DETAIL
    fault = Fault("agent_5xx", f"{filling}{secret[:kept]}", detail=f"{secret[-kept:]}{filling}")
    redacted = Redaction(Secrets({"KEY": secret})).fault(fault)
    assert (redacted.message, redacted.detail) == (filling, filling)


def test_no_part_of_a_secret_stays_where_a_message_quotes_a_part() -> None:
    secret = "Sk-Live-" + string.ascii_letters
    redaction = Redaction(Secrets({"KEY": secret}))
    body = wire.encode({"role": "assistant", "content": "ok", secret: {"a": [{"b": {}}]}})
    reading = formats.read(wire.encode({"output_messages": [wire.decode(body)]}))
    assert secret[:40] in repr(reading.notes)
    run = a_run(reading, body)
    run.fault = Fault("agent_bad_response", f"got `{secret[:40]}`, `{secret}`")
    clean = redaction.run(run)
    assert clean.fault is not None
    assert clean.fault.message == "got `${KEY}`, `${KEY}`"
    assert secret[:12] not in repr(clean)


def test_a_fault_that_was_not_cut_loses_nothing() -> None:
    fault = Fault("agent_unreachable", "no connection to the agent", detail="the agent")
    assert Redaction(Secrets({"KEY": "agent-123"})).fault(fault) == fault


def test_a_secret_that_a_grader_writes_is_not_stored_by_grading_nor_by_grading_again(store: Store) -> None:
    secrets = Secrets({"KEY": "hunter2"})
    suite = a_suite(1, graders=[{"kind": "contains", "value": "hunter2"}])
    experiment, _ = run_suite(store, suite, {"crew": Scripted(say_ok)}, secrets=secrets)
    (verdict,) = only_run(store, experiment).verdicts
    assert "${KEY}" in wire.encode(verdict).decode()
    assert b"hunter2" not in everything_stored(store)

    other = GradingPlan([{"kind": "equals", "value": "not hunter2"}])
    asyncio.run(regrade(store, experiment.experiment_id, other, Surroundings(directory=Path()), secrets=secrets))
    (verdict,) = only_run(store, experiment).verdicts
    assert verdict.kind == "equals"
    assert "not ${KEY}" in wire.encode(verdict).decode()
    assert b"hunter2" not in everything_stored(store)


def test_a_verdict_loses_nothing_but_the_secret_and_keeps_its_key() -> None:
    verdict = Verdict(
        grader="g",
        kind="judge",
        outcome="failed",
        reasons=["saw 1234"],
        details={"said": ["1234", 1234]},
        key="a1234b",
    )
    grade = Grade(outcome="failed", score=0.5, reasons=["g failed: 1234"])
    (clean,), graded = Redaction(Secrets({"KEY": "1234"})).graded([verdict], grade)
    assert (clean.reasons, clean.details, clean.key) == (["saw ${KEY}"], {"said": ["${KEY}", 1234]}, "a1234b")
    assert graded == Grade(outcome="failed", score=0.5, reasons=["g failed: ${KEY}"])


def test_verdicts_without_secrets_are_the_very_same() -> None:
    verdicts, grade = [Verdict(grader="g", kind="judge", outcome="passed")], Grade(outcome="passed")
    for redaction in (Redaction(None), Redaction(Secrets({"KEY": "hunter2"}))):
        assert redaction.graded(verdicts, grade)[0] is verdicts
        assert redaction.graded(verdicts, grade)[1] is grade


def test_a_recorded_stream_that_has_a_secret_whole_is_kept_and_one_that_has_it_in_pieces_too_is_not() -> None:
    def body(*deltas: str) -> bytes:
        events: list[dict[str, str]] = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}]
        events += [{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": delta} for delta in deltas]
        events.append({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
        return b"".join(b"data: %s\n\n" % wire.encode(event) for event in events)

    redaction = Redaction(Secrets({"KEY": "hunter2"}))
    for deltas, kept in ((("it is hunter2", " indeed"), True), (("it is hunter2", " or hun", "ter2"), False)):
        given = body(*deltas)
        run = redaction.run(a_run(formats.read(given, "agui"), given))
        assert (run.body is not None) == kept
        assert run.reading is not None
        assert b"hunter2" not in wire.encode(run.reading)


@pytest.mark.parametrize("before", ["", "hunter2 and "], ids=["in pieces only", "once whole, too"])
def test_a_secret_that_is_streamed_piece_by_piece_is_in_no_event_and_no_body(store: Store, before: str) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        stream = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
        for piece in (before, "ok, my key is hun", "te", "r2, and now you know"):
            await stream.put(encode_event(TextMessageChunk(message_id="m", delta=piece)))
        await stream.finish()
        return await stream.reply(None)

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"KEY": "hunter2"}))
    assert tally.outcomes == {"passed": 1}
    (run,) = runs_of(store, experiment)
    events = b"\n".join(event for _, event in store.events(run.run_id))
    assert b"${KEY}, and now" in events
    assert b'"te"' not in events
    assert store.run(run.run_id).body is None
    assert run.attempts[0].body_hash is None
    assert run.reading is not None
    assert SECRET_REMOVED in [note.code for note in run.reading.notes]
    assert b"my key is ${KEY}, and now" in wire.encode(run.reading)


def a_token() -> tuple[str, Redaction]:
    """A token of a run, and what hides it beside a secret of the suite."""

    async def nothing(event: Event) -> None: ...

    token = Grants().open("run-1", "http://proxy", nothing).token
    redaction = Redaction(Secrets({"KEY": "hunter2"})).of_run()
    redaction.hide_token(token)
    return token, redaction


def test_the_text_of_a_token_in_pieces_is_held_back_until_it_is_known_to_be_one() -> None:
    token, redaction = a_token()
    assert redaction.split(f"a{token}!") == ("a[run token]!", "")
    assert redaction.split(f"a{token[:30]}") == ("a", token[:30])
    assert redaction.split(f"a~~{token[:1]}") == ("a~~", token[:1])
    assert redaction.split(f"a{token[:30]}!") == (f"a{token[:30]}!", "")


def test_one_redactor_takes_out_the_token_of_a_run_and_the_secrets_of_the_suite() -> None:
    token, redaction = a_token()
    assert redaction.raw(f"token={token}, hunter2!".encode()) == b"token=[run token], ${KEY}!"
    assert redaction.raw(f"token={quote(token, safe='')}!".encode()) == b"token=[run token]!"
    assert redaction.text(repr({"token": token})) == repr({"token": "[run token]"})
    assert "[run token]" in redaction.text(b64encode(f"Bearer {token}".encode()).decode())
    data = b"nothing of the kind"
    assert redaction.raw(data) is data


def test_a_redactor_knows_the_tokens_of_its_own_run_alone() -> None:
    token, _ = a_token()
    shared = Redaction(Secrets({"KEY": "hunter2"}))
    shared.of_run().hide_token(token)
    assert shared.text(token) == token


def test_a_token_in_a_call_leaves_no_call_in_doubt() -> None:
    token, redaction = a_token()
    body = wire.encode([{"role": "assistant", "content": f"ok {token}"}])
    run = a_run(formats.read(body), body)
    run.steps = [Step(0, "call", {"authorization": f"Bearer {token}"})]
    run.completeness = Completeness("complete", "messages", ["messages"])
    kept = redaction.run(run)
    assert kept.steps[0].arguments == {"authorization": "Bearer [run token]"}
    assert kept.completeness == run.completeness
    assert kept.reading is not None
    assert [note.code for note in kept.reading.notes] == ["run_token_removed"]
    assert token not in repr(kept)
    assert token in repr(run)


@pytest.mark.parametrize("cut", range(4, 64))
def test_no_part_of_a_token_stays_at_the_beginning_of_a_traceback_that_was_cut(cut: int) -> None:
    token, redaction = a_token()
    fault = Fault("agent_exception", "no", detail=f"[...]\n{token[cut:]}{'x' * MAX_DETAIL}")
    kept = redaction.fault(fault).detail or ""
    assert token[-6:] not in kept or len(token) - cut < 6


@given(st.integers(1, len(SECRET) - 1), st.sampled_from([b"", b"what the agent said, \xff, "]))
def test_of_what_was_cut_off_in_the_middle_of_a_secret_its_beginning_is_not_kept(length: int, before: bytes) -> None:
    redaction = Redaction(Secrets({"KEY": SECRET}))
    assert redaction.cut_off(before + SECRET[:length].encode()) == before
    redaction.hide_token("strt.0123456789")
    assert redaction.cut_off(before + b"strt.01") == before
    assert redaction.cut_off(before + b"!") == before + b"!"


def test_an_answer_that_was_cut_off_in_the_middle_of_a_secret_is_stored_without_it(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        fault = Fault("answer_cut_off", "the connection was closed")
        return Reply(body=b"it is " + SECRET[:7].encode(), cut=True, fault=fault)

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"KEY": SECRET}))
    assert only_run(store, experiment).body == b"it is "


BROKEN = 'sk-LIVE/7f"9+q2Z8wXyV0pLmN4'
AGENT_FAILED = Fault("agent_exception", "it raised")


def broken_off(store: Store, answer: Any) -> tuple[Run, bytes]:
    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"KEY": BROKEN}))
    assert tally.outcomes == {"failed": 1}
    return only_run(store, experiment), everything_stored(store)


@pytest.mark.parametrize("said", [BROKEN[:-1], BROKEN[:4], BROKEN[:15]])
@pytest.mark.parametrize("pushes_error", [False, True])
def test_a_stream_that_breaks_off_in_the_middle_of_a_secret_is_stored_without_its_beginning(
    store: Store, said: str, pushes_error: bool
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        stream = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
        for piece in ("the key is ", *said):
            await stream.put(encode_event(TextMessageChunk(message_id="m", delta=piece)))
        if pushes_error:
            await stream.put(encode_event(RunError(message="it broke")))
        await stream.close()
        return await stream.reply(None if pushes_error else AGENT_FAILED)

    run, stored = broken_off(store, answer)
    assert b"the key is " in stored
    assert said[:4].encode() not in stored
    assert run.body is None
    assert run.reading is not None
    assert "secret_broken_off" in [note.code for note in run.reading.notes]


def test_output_that_breaks_off_in_the_middle_of_a_secret_is_stored_without_its_beginning(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = read_returned(f"the key is {BROKEN[:-1]}")
        reply.body, reply.fault = f"the key is {BROKEN[:-1]}".encode(), AGENT_FAILED
        return reply

    run, stored = broken_off(store, answer)
    assert BROKEN[:4].encode() not in stored
    assert run.reading is not None
    assert run.reading.transcript.final_text() == "the key is "
    assert SECRET_REMOVED in [note.code for note in run.reading.notes]


def test_a_call_that_breaks_off_in_the_middle_of_a_secret_is_stored_without_its_beginning(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        call = {"id": "1", "name": "send", "arguments": {"token": BROKEN[:-1]}}
        reply = read_returned([{"role": "assistant", "tool_calls": [call]}])
        reply.fault = AGENT_FAILED
        return reply

    run, stored = broken_off(store, answer)
    assert [step.arguments for step in run.steps] == [{"token": ""}]
    assert BROKEN[:4].encode() not in stored


def test_an_attempt_that_breaks_off_in_the_middle_of_a_secret_is_stored_without_its_beginning(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt > 1:
            return await say_ok(request, emit)
        await emit(TextMessageChunk(message_id="m", delta=f"the key is {BROKEN[:-1]}"))
        reply = refused(503)
        reply.body = f"the key is {BROKEN[:-1]}".encode()
        return reply

    suite = a_suite(1, retry=NO_WAIT, graders=[{"kind": "python", "target": "driver.test_redaction:says_something"}])
    _, tally = run_suite(store, suite, {"crew": Scripted(answer)}, secrets=Secrets({"KEY": BROKEN}))
    assert tally.outcomes == {"passed": 1}, "the attempt that counts has lost nothing"
    assert b"the key is " in everything_stored(store)
    assert BROKEN[:4].encode() not in everything_stored(store)


def says_something(subject: Subject) -> bool:
    """A grader of a suite's author."""
    return bool(subject.answer)


def test_a_run_that_completes_keeps_an_end_that_is_only_like_the_beginning_of_a_secret(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        stream = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
        await stream.put(encode_event(TextMessageChunk(message_id="m", delta=f"keys begin with {BROKEN[:7]}")))
        await stream.put(encode_event(RunFinished(thread_id="t", run_id="r")))
        await stream.finish()
        return await stream.reply(None)

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"KEY": BROKEN}))
    run = only_run(store, experiment)
    assert run.status == "completed"
    assert run.reading is not None
    assert run.reading.transcript.final_text() == f"keys begin with {BROKEN[:7]}"
    assert BROKEN[:7].encode() in b"".join(event for _, event in store.events(run.run_id))


@pytest.mark.parametrize("secret", ["hkSECRET~aa/bb==", 'hk"SECRET\\aa<>&zz', "hk'\"SECRET\\aa"])
def test_a_secret_that_is_sent_back_as_a_key_is_in_no_pointer_and_no_message_of_a_note(secret: str) -> None:
    message = {"role": "assistant", "content": "ok", secret: {"a": 1}}
    reply = read_returned({"final_response": "ok", "messages": [message, {"role": secret, "content": "x"}]})
    assert reply.reading is not None
    assert any("SECRET" in note.pointer for note in reply.reading.notes)
    reasons = [note for note in reply.reading.notes if note.serious]
    run = a_run(reply.reading, reply.body)
    run.completeness = Completeness("partial", reasons=reasons)
    kept = Redaction(Secrets({"HK": secret})).run(run)
    assert kept.reading is not None
    assert kept.completeness is not None
    assert any("${HK}" in note.pointer for note in kept.reading.notes)
    assert "SECRET" not in wire.encode([kept.reading, kept.completeness]).decode().replace("SECRET_REMOVED", "")
