"""YAML becomes JSON values with places, or a problem with a line; never anything else."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seatrial.problems import Place, Problems
from seatrial.suites import yaml_source
from seatrial.suites.yaml_source import MAX_DEPTH, MAX_FILE_BYTES, parse_yaml


def value_of(text: str) -> Any:
    problems = Problems()
    parsed = parse_yaml(text.encode(), "s.yaml", problems)
    assert problems.found == []
    assert parsed is not None
    return parsed[0]


def problems_in(data: bytes) -> list[str]:
    problems = Problems()
    parse_yaml(data, "s.yaml", problems)
    return [str(problem) for problem in problems.found]


# What YAML lets stand in a quoted text as it is: no controls, and no line separators of its own.
plain_text = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cn", "Cs", "Zl", "Zp"), exclude_characters="\ufeff")
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_is_read_as_itself(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json.dumps(value_of(text), ensure_ascii=False) == text


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_problem(data: bytes) -> None:
    problems = Problems()
    parsed = parse_yaml(data, "s.yaml", problems)
    assert (parsed is None) <= bool(problems.found)


@given(st.text(alphabet="&*a: \n-[]{},'\"<!|>#?%", max_size=60))
def test_any_punctuation_gives_a_value_or_a_problem(text: str) -> None:
    problems = Problems()
    parsed = parse_yaml(text.encode(), "s.yaml", problems)
    assert (parsed is None) <= bool(problems.found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[yes, no, on, off, y]", ["yes", "no", "on", "off", "y"]),
        ("[true, False, TRUE]", [True, False, True]),
        ("[~, null, NULL]", [None, None, None]),
        ("a:", {"a": None}),
        ("[1, +2, -3, 0o17, 0x1F, 010]", [1, 2, -3, 15, 31, 10]),
        ("[1.5, -1e3, .5, 2., 1e-2]", [1.5, -1000.0, 0.5, 2.0, 0.01]),
        ("[2024-01-01, 12:30:45, 1_000, 1.2.3]", ["2024-01-01", "12:30:45", "1_000", "1.2.3"]),
        ("['1', \"true\", !!str 1]", ["1", "true", "1"]),
        ("[!!int '3', !!float 3, !!bool 'true']", [3, 3.0, True]),
        ("{1: a, true: b, null: c}", {"1": "a", "true": "b", "null": "c"}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("&k a: 1\nb: *k", {"a": 1, "b": "a"}),
        ("text: |\n  one\n  two\n", {"text": "one\ntwo\n"}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: Any) -> None:
    assert value_of(text) == value


def test_a_merge_gives_keys_that_are_not_there() -> None:
    text = (
        "base: &base {kind: http, timeout_s: 5}\nmine:\n  <<: *base\n  timeout_s: 9\nboth: {<<: [*base, {extra: 1}]}\n"
    )
    value = value_of(text)
    assert value["mine"] == {"kind": "http", "timeout_s": 9}
    assert value["both"] == {"kind": "http", "timeout_s": 5, "extra": 1}


def test_a_quoted_merge_key_is_a_plain_key() -> None:
    assert value_of("'<<': {a: 1}") == {"<<": {"a": 1}}


def test_a_merge_of_something_else_is_told() -> None:
    assert problems_in(b"a:\n  <<: 3\n") == ["s.yaml:2:3: `<<` takes a mapping, or a list of mappings"]


def test_places_are_those_of_keys_and_items() -> None:
    problems = Problems()
    parsed = parse_yaml(
        b"agents:\n  shop:\n    kind: http\ncases:\n  - id: a\n  - id: b\n    x: [1, 2]\n", "s.yaml", problems
    )
    assert parsed is not None
    mark = parsed[1]
    assert mark.locate(("agents", "shop")) == Place("s.yaml", 2, 3)
    assert mark.locate(("agents", "shop", "kind")) == Place("s.yaml", 3, 5)
    assert mark.locate(("cases", 1)) == Place("s.yaml", 6, 5)
    assert mark.locate(("cases", 1, "x", 1)) == Place("s.yaml", 7, 12)


def test_the_place_of_what_is_not_there_is_that_of_what_is_around_it() -> None:
    parsed = parse_yaml(b"agents:\n  shop: {}\n", "s.yaml", Problems())
    assert parsed is not None
    assert parsed[1].locate(("agents", "shop", "kind", "deeper")) == Place("s.yaml", 2, 3)


def test_a_merged_key_is_placed_where_it_is_written() -> None:
    parsed = parse_yaml(b"base: &b\n  kind: http\nmine:\n  <<: *b\n", "s.yaml", Problems())
    assert parsed is not None
    assert parsed[1].locate(("mine", "kind")) == Place("s.yaml", 2, 3)


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        (b"", ["s.yaml:1:1: the file is empty (a suite needs `agents` and `cases`)"]),
        (b"# only this\n", ["s.yaml:1:1: the file is empty (a suite needs `agents` and `cases`)"]),
        (b"a: 1\nb: 2\na: 3\n", ["s.yaml:3:1: the key `a` is here twice (first in line 1)"]),
        (b"a: 1\n---\nb: 1\n", ["s.yaml:2:1: a second YAML document starts here; a suite is one"]),
        (b"a: .nan\n", ["s.yaml:1:4: .nan is not a number that JSON can hold"]),
        (b"a: -.inf\n", ["s.yaml:1:4: -.inf is not a number that JSON can hold"]),
        (b"a: 1e999\n", ["s.yaml:1:4: this number is too large"]),
        (b"a: 99999999999999999999\n", ["s.yaml:1:4: this number is too large"]),
        (b"a: " + b"9" * 10_000, ["s.yaml:1:4: this number is too large"]),
        (b"a: \xff\n", ["s.yaml:1: the file is not UTF-8 text"]),
        (b"ok: 1\na: \xc3(\n", ["s.yaml:2: the file is not UTF-8 text"]),
        (b"a: \x07\n", ["s.yaml:1: this is not YAML: control characters are not allowed"]),
        (b"? [a, b]\n: 1\n", ["s.yaml:1:3: a key must be text"]),
        (b"? {a: b}\n: 1\n", ["s.yaml:1:3: a key must be text"]),
        (b"&a [*a]", ["s.yaml:1:5: the alias `*a` names nothing that ends before it"]),
        (b"a: *nowhere\n", ["s.yaml:1:4: the alias `*nowhere` names nothing that ends before it"]),
        (b"[" * (MAX_DEPTH + 1), ["s.yaml:1:101: the file is nested more than 100 levels deep"]),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_with_its_line(data: bytes, problems: list[str]) -> None:
    assert problems_in(data) == problems


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("a: !!python/object/apply:os.system ['true']", "!!python/object/apply:os.system"),
        ("a: !!binary aGk=", "!!binary"),
        ("a: !!set {x}", "!!set"),
        ("a: !!timestamp 2024-01-01", "!!timestamp"),
        ("a: !custom x", "!custom"),
        ("a: !!int x", "!!int"),
    ],
)
def test_no_tag_makes_anything_but_json(text: str, tag: str) -> None:
    assert problems_in(text.encode()) == [f"s.yaml:1:4: the tag `{tag}` cannot be used here; values are those of JSON"]


def test_every_duplicate_and_tag_is_told_not_only_the_first() -> None:
    assert len(problems_in(b"a: 1\na: 2\nb: !!set {}\nc: .nan\n")) == 3


def ladder(steps: int) -> bytes:
    """Lists that hold the one before."""
    return b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, steps))


def hostile() -> dict[str, bytes]:
    laughs = b"a0: &a0 [lol, lol]\n" + b"".join(
        b"a%d: &a%d [%b]\n" % (level, level, b",".join([b"*a%d" % (level - 1)] * 9)) for level in range(1, 40)
    )
    long_text = b"a: &a " + b"x" * 1_000_000 + b"\nb: [" + b",".join([b"*a"] * 10_000) + b"]\n"
    merges = b"a0: &a0 {k: v}\n" + b"".join(
        b"a%d: &a%d {<<: *a%d, k%d: *a%d}\n" % (n, n, n - 1, n, n - 1) for n in range(1, 60)
    )
    return {
        "billion laughs": laughs,
        "a long text many times": long_text,
        "merges of merges": merges,
        "a ladder of aliases": ladder(5000),
        "a long key many times": b"a: &a\n  ? " + b"k" * 1_000_000 + b"\n  : 1\nb: [" + b"*a," * 1000 + b"]\n",
        "deep lists": b"[" * 200_000,
        "deep dashes": b"- " * 200_000,
        "deep mappings": b"{a: " * 100_000,
        "deep indentation": b"".join(b" " * n + b"a:\n" for n in range(2_000)),
        "ten megabytes": b"a: " + b"x" * 10_000_000,
        "invalid UTF-8": b"\x80" * 1000,
        "UTF-16": "a: 1".encode("utf-16"),
        "a NUL": b"a: \x00",
        "an endless quote": b'a: "' + b"x" * 100_000,
        "many anchors": b"".join(b"- &a%d x\n" % n for n in range(20_000)),
        "a bad escape": b'a: "\\UFFFFFFFF"',
        "a bad directive": b"%YAML 99999999999999999999.1\n---\na: 1",
        "a tab": b"a:\n\t- b",
    }  # fmt: skip


# The parser in Python is slow on anything large.
LARGE = ("a long text many times", "a long key many times", "an endless quote", "many anchors")


@pytest.mark.parametrize(
    ("loader", "name"),
    [(yaml_source.LOADER, name) for name in hostile()]
    + [(yaml.SafeLoader, name) for name in hostile() if name not in LARGE],
)
def test_hostile_yaml_is_a_problem_and_quick(loader: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_source, "LOADER", loader)
    started = time.process_time()
    problems = Problems()
    parsed = parse_yaml(hostile()[name], "s.yaml", problems)
    assert time.process_time() - started < 5
    assert problems.found or (name == "many anchors" and parsed is not None)


def test_depth_counts_what_aliases_stand_for() -> None:
    assert problems_in(ladder(MAX_DEPTH - 1)) == []
    assert problems_in(ladder(MAX_DEPTH)) == ["s.yaml:100:12: the file is nested more than 100 levels deep"]


def test_a_control_character_is_told_with_its_line_whatever_comes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for loader in (yaml.SafeLoader, yaml_source.LOADER):
        monkeypatch.setattr(yaml_source, "LOADER", loader)
        (told,) = problems_in("é: 1\nü: 2\nx: \x07\ny: 1\n".encode())
        assert told.startswith("s.yaml:3: this is not YAML")


def test_a_file_of_the_largest_size_is_read() -> None:
    head = b"a: "
    assert problems_in(head + b"x" * (MAX_FILE_BYTES - len(head))) == []
    assert problems_in(head + b"x" * MAX_FILE_BYTES) == [
        "s.yaml:1:1: the file is larger than 8 MiB (move the cases to a .jsonl file, which is read line by line)"
    ]
