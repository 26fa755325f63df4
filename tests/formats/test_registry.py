"""The formats by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.formats import Reading, Written, registry
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, Transcript, UserMessage

HELLO = Transcript([UserMessage("hi"), AssistantMessage([TextBlock("hello")], StopReason.END_TURN)])


@pytest.mark.parametrize("name", formats.writable())
def test_every_format_reads_what_it_writes(name: str) -> None:
    written = formats.write(HELLO, name)
    assert isinstance(written, Written)
    reading = formats.read(written.data, name)
    assert isinstance(reading, Reading)
    assert reading.format == name
    assert reading.transcript.messages == HELLO.messages


def test_the_names_are_those_of_the_command_line() -> None:
    assert list(formats.FORMATS) == [
        "agent-response",
        "output-messages",
        "openai",
        "openrouter",
        "anthropic",
        "responses",
        "bedrock",
        "gemini",
        "adk",
        "vercel",
        "langchain",
        "pydantic-ai",
        "smolagents",
        "crewai",
        "claude-code",
        "claude-stream-json",
        "codex",
        "codex-exec",
        "transcript",
        "agui",
        "events",
    ]


def test_a_format_that_is_only_read_says_which_can_be_written() -> None:
    with pytest.raises(SeatrialError, match=r"can be read but not written .*one of agent-response") as caught:
        formats.write(HELLO, "responses")
    assert caught.value.code == "not_writable"


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    for use in (lambda: formats.read(b"{}", "xml"), lambda: formats.write(HELLO, "xml")):
        with pytest.raises(SeatrialError, match="agent-response, output-messages") as caught:
            use()
        assert caught.value.code == "unknown_format"


def test_the_format_is_found_out_when_it_is_not_named() -> None:
    assert formats.read(b'{"final_response": "a"}').format == "agent-response"


def test_many_records_are_read_line_by_line() -> None:
    data = b'{"id": "a", "text": "1"}\n\n{oops\n{"id": "b", "text": "2"}\n'
    records = list(formats.read_many(data))
    assert [(record.line, record.id, record.error and record.error.code) for record in records] == [
        (1, "a", None),
        (3, None, "not_json"),
        (4, "b", None),
    ]


def test_one_record_is_one_record_whatever_its_lines() -> None:
    (record,) = formats.read_many(b'{\n"final_response": "a",\n"messages": []\n}\n')
    assert record.line is None
    assert record.reading is not None
    (record,) = formats.read_many(formats.write(HELLO, "events").data)
    assert record.reading is not None
    assert record.reading.transcript.messages == HELLO.messages


def test_several_records_where_one_is_wanted_are_an_error_that_says_so() -> None:
    with pytest.raises(SeatrialError, match="several records, one in each line"):
        formats.read(b'{"id": "a", "text": "1"}\n{"id": "b", "text": "2"}\n')


def test_the_package_offers_what_it_says_and_nothing_else() -> None:
    assert all(hasattr(formats, name) for name in formats.__all__)
    assert formats.read is registry.read
    with pytest.raises(AttributeError, match="nothing_here"):
        formats.nothing_here  # noqa: B018


def test_a_reader_is_loaded_when_it_is_used_and_not_before() -> None:
    script = (
        "import sys; from seatrial import formats; formats.FORMATS; "
        "print([name for name in sys.modules if name in ('seatrial.formats.anthropic', 'seatrial.formats.agui')])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
