from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.trajectory import match_line, match_lines

GOOD = b'{"id":"x","mode":"exact","expected":[{"tool":"a","args":{"q":1}}],"actual":[{"name":"a","arguments":{"q":1}}]}'


def decoded(line: bytes) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.json.decode(match_line(line, 7).json)
    return result


def test_a_line_gives_its_id_its_number_and_the_result() -> None:
    found = decoded(GOOD)
    assert [*found][:4] == ["id", "line", "mode", "passed"]
    assert (found["id"], found["line"], found["passed"], found["score"]) == ("x", 7, True, 1.0)
    assert found["matched"] == [{"expected": 0, "actual": 0}]


def test_a_line_needs_no_id_and_a_step_only_name_and_arguments() -> None:
    found = decoded(b'{"mode":"any_order","minimums":{"a":2},"actual":[{"name":"a"},{"name":"b","arguments":"{}"}]}')
    assert "id" not in found
    assert not found["passed"]


def test_a_step_may_have_all_it_has() -> None:
    line = (
        b'{"mode":"exact","expected":[{"tool":"a","status":"error","actor":"x","result":{"$any":true},'
        b'"max_duration_ms":5}],"actual":[{"index":9,"id":"1","name":"a","arguments":null,"status":"error","actor":"x",'
        b'"result":0,"started_at":"2026-01-01T00:00:00Z","ended_at":"2026-01-01T00:00:00.004Z","source":"observed",'
        b'"mode":"simulated"}]}'
    )
    assert decoded(line)["passed"]


@pytest.mark.parametrize(
    ("line", "code", "pointer"),
    [
        (b"{", "not_json", None),
        (b"[]", "invalid_document", None),
        (b'{"mode":"exact","expected":[{"tool":"a"}]}', "invalid_document", None),
        (b'{"mode":"exact","expected":[{"tool":"a"}],"actual":{}}', "invalid_document", "/actual"),
        (b'{"mode":"exact","expected":[{"tool":"a"}],"actual":[5]}', "invalid_document", "/actual/0"),
        (
            b'{"mode":"exact","expected":[{"tool":"a"}],"actual":[{"name":"a"},{"arguments":{}}]}',
            "invalid_document",
            "/actual/1",
        ),
        (b'{"mode":"exact","expected":[{"tool":"a"}],"actual":[{"name":5}]}', "invalid_document", "/actual/0/name"),
        (
            b'{"mode":"exact","expected":[{"tool":"a"}],"actual":[{"name":"a","status":"odd"}]}',
            "invalid_document",
            "/actual/0/status",
        ),
        (b'{"mode":"exct","expected":[{"tool":"a"}],"actual":[]}', "invalid_config", "/mode"),
        (b'{"mode":"exact","actual":[]}', "invalid_config", None),
        (b'{"mode":"exact","expected":[{"tool":"a"}],"actual":[],"extra":1}', "invalid_config", None),
        (b'{"id":[],"mode":"exact","expected":[{"tool":"a"}],"actual":[]}', "invalid_document", "/id"),
        (b'{"a":"\xff"}', "not_json", None),
        (
            b'{"mode":"any_order","maximums":{"a":0},"actual":[{"name":"a"}],"actual":[]}',
            "invalid_document",
            None,
        ),
        (
            b'{"mode":"any_order","maximums":{"a":0},"actual":[{"name":"a","name":"b"}]}',
            "invalid_document",
            None,
        ),
        (
            b'{"mode":"any_order","maximums":{"b":0},"actual":[{"name":"a","status":"ok","error":"boom"}]}',
            "invalid_document",
            "/actual/0/status",
        ),
        (b'{"mode":"exact","expected":[{"tool":"a"}],"actual":' + b"[" * 5000 + b"]" * 5000 + b"}", "too_deep", None),
    ],
)
def test_a_bad_line_is_an_error_that_names_it(line: bytes, code: str, pointer: str | None) -> None:
    found = match_line(line, 7)
    assert found.result is None
    assert found.error is not None
    assert (found.error.code, found.error.line, found.error.pointer) == (code, 7, pointer)
    written = msgspec.json.decode(found.json)
    assert written["line"] == 7
    assert written["error"]["code"] == code


def test_a_step_with_an_error_has_failed() -> None:
    line = b'{"mode":"subset","expected":[{"tool":"a"}],"no_errors":true,"actual":[{"name":"a","error":"boom"}]}'
    assert not decoded(line)["passed"]


def test_good_lines_have_results_whatever_stands_between_them() -> None:
    lines = [b"\xef\xbb\xbf" + GOOD + b"\n", b"\n", b"oops\n", b"  \r\n", GOOD + b"\r\n"]
    assert [(found.line, found.error is None) for found in match_lines(lines)] == [(1, True), (3, False), (5, True)]


def test_lines_are_read_one_at_a_time() -> None:
    def endless() -> Any:
        while True:
            yield GOOD

    results = match_lines(endless())
    assert [next(results).line for _ in range(3)] == [1, 2, 3]


def test_arguments_in_the_form_of_text_are_read_as_json() -> None:
    line = b'{"mode":"exact","expected":[{"tool":"a","args":{"q":1}}],"actual":[{"name":"a","arguments":"%s"}]}'
    assert decoded(line % rb"{\"q\": 1.0}")["passed"]
    bad = decoded(line % rb"{\"q\": ")
    assert bad["mismatches"][0]["differences"] == [{"pointer": "/arguments", "expected": {"q": 1}, "actual": '{"q": '}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["mode", "expected", "minimums", "actual", "args_match", "forbidden", "id", "defaults", "allowed"]
)
ITEM = st.dictionaries(st.sampled_from(["tool", "args", "name", "arguments", "status", "after", "id", "result"]), JSON)


@given(
    st.dictionaries(WORDS, JSON | st.lists(ITEM, max_size=2)),
    st.sampled_from(["exact", "any_order", "partial_order", "subset"]) | JSON,
    st.lists(ITEM, max_size=2) | JSON,
)
def test_no_line_raises_anything(line: dict[str, Any], mode: Any, actual: Any) -> None:
    found = match_line(msgspec.json.encode({**line, "mode": mode, "actual": actual}))
    assert (found.result is None) != (found.error is None)
    assert msgspec.json.decode(found.json)["line"] == 1


@given(st.binary(max_size=40))
def test_no_bytes_raise_anything(line: bytes) -> None:
    assert match_line(line).error is not None
