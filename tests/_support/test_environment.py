"""`${NAME}` is filled late, shows as it is written, and its value is taken out of every text."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial._support import wire
from seatrial._support.environment import (
    Reference,
    fill,
    names_secret,
    parts,
    references,
)
from seatrial.errors import SeatrialError
from seatrial.suites import HttpConfig, ModelConfig, PythonConfig, Suite, stored_form

SECRET = "s3cr3t-v4lu3"

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
values = st.text(min_size=1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("plain $5 {x} $x", ["plain $5 {x} $x"]),
        ("${A}", [Reference("A")]),
        ("Bearer ${TOKEN}", ["Bearer ", Reference("TOKEN")]),
        ("${A}${B:-b}c", [Reference("A"), Reference("B", "b"), "c"]),
        ("${A:-}", [Reference("A", "")]),
        ("${A:-x:-y}", [Reference("A", "x:-y")]),
        ("$${A}", ["${A}"]),
        ("$$${A}", ["$", Reference("A")]),
        ("$$$${A}", ["$${A}"]),
        ("a$$b", ["a$$b"]),
        ("cost: $", ["cost: $"]),
    ],
)
def test_text_is_taken_apart(text: str, found: list[str | Reference]) -> None:
    assert parts(text) == found


@pytest.mark.parametrize("text", ["${", "${}", "${1}", "${A", "${A B}", "${A:default}", "${A-x}", "${é}", "${A}${"])
def test_a_reference_that_names_nothing_is_an_error(text: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        parts(text)
    assert caught.value.code == "invalid_config"


@given(st.text())
def test_any_text_can_be_written_so_that_it_means_itself(text: str) -> None:
    escaped = re.sub(r"(\$+)\{", lambda match: match[1] * 2 + "{", text)
    assert fill(escaped, {}) == text


@given(st.text(alphabet="$A{}:-x", max_size=30))
def test_any_text_is_taken_apart_or_is_an_error(text: str) -> None:
    try:
        found = parts(text)
    except SeatrialError:
        return
    assert all(found)


@given(names, values, st.text(alphabet="abc .:/"), st.text(alphabet="abc .:/"))
def test_a_value_stands_where_its_name_stood_and_is_not_looked_into(
    name: str, value: str, before: str, after: str
) -> None:
    assert fill(f"{before}${{{name}}}{after}", {name: value}) == before + value + after


@given(names, st.text(alphabet="abc .:/$"))
def test_a_default_stands_in_for_what_is_unset_or_empty(name: str, default: str) -> None:
    text = f"${{{name}:-{default}}}"
    assert fill(text, {}) == default
    assert fill(text, {name: ""}) == default
    assert fill(text, {name: "set"}) == "set"


def test_an_unset_variable_is_an_error_that_names_it() -> None:
    for variables in ({}, {"TOKEN": ""}):
        with pytest.raises(SeatrialError, match=r"the environment variable `TOKEN` is not set"):
            fill("Bearer ${TOKEN}", variables)


def test_references_are_found() -> None:
    assert references("${A} and ${B:-b}, not $${C}") == [Reference("A"), Reference("B", "b")]


def http() -> HttpConfig:
    return HttpConfig(
        endpoint_url="http://localhost/${PATH_KEY}",
        auth_credential_value="Bearer ${TOKEN}",
        headers={"X-Api-Key": "${TOKEN}", "X-Kind": "plain"},
    )


def test_resolving_fills_a_copy_and_leaves_the_original() -> None:
    config = http()
    resolved = config.resolved({"TOKEN": SECRET, "PATH_KEY": "k"})
    assert resolved.auth_credential_value == f"Bearer {SECRET}"
    assert resolved.headers == {"X-Api-Key": SECRET, "X-Kind": "plain"}
    assert resolved.endpoint_url == "http://localhost/k"
    assert config == http()


def test_a_resolved_configuration_shows_itself_as_written() -> None:
    resolved = http().resolved({"TOKEN": SECRET, "PATH_KEY": "abcdef"})
    for shown in (repr(resolved), str(resolved), f"{resolved}", repr([resolved.headers]), repr(vars_of(resolved))):
        assert SECRET not in shown
        assert "abcdef" not in shown
        assert "${TOKEN}" in shown


def vars_of(struct: msgspec.Struct) -> dict[str, object]:
    return msgspec.structs.asdict(struct)


def test_a_resolved_configuration_cannot_be_written_by_accident() -> None:
    resolved = http().resolved({"TOKEN": SECRET, "PATH_KEY": "k"})
    with pytest.raises(TypeError):
        wire.encode(resolved)
    with pytest.raises(TypeError):
        msgspec.to_builtins(resolved)


def test_a_suite_never_holds_a_value() -> None:
    suite = Suite(
        agents={"shop": http(), "py": PythonConfig(target="m:f")},
        judge=ModelConfig(model="m", base_url="http://x", api_key="${TOKEN}"),
    )
    secrets = suite.secrets({"TOKEN": SECRET, "PATH_KEY": "abcdef", "OTHER": "unused-value"})
    assert SECRET not in repr(suite) + json.dumps(stored_form(suite)) + repr(secrets)
    assert secrets.redact(f"{SECRET} abcdef unused-value") == "${TOKEN} ${PATH_KEY} unused-value"


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "x-apikey", "OPENAI_API_KEY", "KEY", "ACCESS_TOKEN",
     "X-AuthToken", "CLIENT_SECRET", "PGPASSWORD", "AWS_CREDENTIALS"],
)  # fmt: skip
def test_names_that_tell_of_a_secret(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize("name", ["X-Kind", "MAX_TOKENS", "KEYBOARD", "MONKEY", "Accept", "TOKENIZERS_PARALLELISM", ""])
def test_names_that_do_not(name: str) -> None:
    assert not names_secret(name)
