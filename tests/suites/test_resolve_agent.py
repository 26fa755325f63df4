"""Commands are split before anything is filled in, so that a value stays one argument."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial._support import wire
from seatrial.agents.cli.placeholders import used
from seatrial.errors import SeatrialError
from seatrial.suites import CliConfig, HttpConfig, StreamConfig


def test_text_whose_quotes_do_not_close_is_an_error() -> None:
    with pytest.raises(SeatrialError, match="no closing quotation"):
        CliConfig(command="agent 'x").resolved({})


@given(st.text(min_size=1))
def test_a_value_is_one_argument_whatever_it_contains(value: str) -> None:
    config = CliConfig(command="agent --key ${KEY} {PROMPT}", healthcheck="check ${KEY}")
    resolved = config.resolved({"KEY": value})
    doubled = value.replace("{", "{{").replace("}", "}}")
    assert resolved.command == ["agent", "--key", doubled, "{PROMPT}"]
    assert resolved.healthcheck == ["check", doubled]


@given(st.text(min_size=1))
def test_a_value_never_becomes_a_placeholder(value: str) -> None:
    resolved = CliConfig(command=["agent", "${KEY}"]).resolved({"KEY": value})
    assert list(used(resolved.command[1])) == []


def test_variables_and_the_rest_of_a_command_line_agent_are_filled_too() -> None:
    config = CliConfig(command=["a"], cwd="${DIR}/x", env={"API_KEY": "${KEY}"})
    resolved = config.resolved({"DIR": "/d", "KEY": "k{}"})
    assert (resolved.cwd, resolved.env) == ("/d/x", {"API_KEY": "k{}"})


def test_what_an_agent_is_told_in_json_can_be_written() -> None:
    config = HttpConfig(endpoint_url="http://${HOST}", proxy_url="http://${HOST}:9", agent_id="${HOST}")
    resolved = config.resolved({"HOST": "h"})
    assert wire.encode([resolved.proxy_url, resolved.agent_id]) == b'["http://h:9","h"]'


def test_other_kinds_are_filled() -> None:
    assert StreamConfig(url="http://${HOST}/").resolved({"HOST": "h"}).url == "http://h/"
