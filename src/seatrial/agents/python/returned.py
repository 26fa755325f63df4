"""What an agent function returned, as a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial import formats
from seatrial._support import wire
from seatrial._support.excerpt import excerpt
from seatrial.agents.agent import Reply
from seatrial.agents.config import MAX_RESPONSE_BYTES
from seatrial.agents.output import read_output, read_record, reading_fault, unreadable
from seatrial.agents.python.objects import check_size, plain_text, to_json_values
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response, contract, output_messages
from seatrial.formats.chat.hidden_calls import note_repeated_keys
from seatrial.formats.dialects import find_dialect
from seatrial.formats.dialects.langchain import is_chunk
from seatrial.formats.reading import Reading
from seatrial.runs import Fault

_EXPECTED = "text, an object with `final_response` or `output_messages`, a list of messages, or an iterator of events"


def read_returned(value: Any) -> Reply:
    """The reply that a value is.

    Text is the answer. An object with a `final_response` is an agent response, any other a provider response or what a
    framework writes; a list is its `output_messages`. Bytes are read as the output of a program is. Objects of
    frameworks are converted first, wherever they stand.
    """
    returned = encode_returned(value)
    return returned if isinstance(returned, Reply) else returned.reply()


def encode_returned(value: Any, *, convert: bool = True, yielded: bool = False) -> Returned | Reply:
    """The value as the bytes that are kept, still to be read; a reply with a fault when that cannot be.

    Without `convert`, raises `TypeError` when there are objects in it: converting them may take long. `yielded`: it is
    the list of all that a function yielded.
    """
    try:
        value, body = _body(value, convert)
    except SeatrialError as error:
        if error.code == "too_large":
            return Reply(fault=Fault("response_too_large", f"the function returned too much: {error.message}"))
        return Reply(fault=Fault(unreadable(error), error.message))
    if len(body) > MAX_RESPONSE_BYTES:
        message = f"what the function returned is larger than {MAX_RESPONSE_BYTES:,} bytes"
        return Reply(fault=Fault("response_too_large", message))
    return Returned(value, body, yielded)


class Returned(msgspec.Struct):
    """What a function returned, as bytes."""

    value: Any
    body: bytes
    yielded: bool = False
    """Whether it is the list of all that a function yielded."""

    def reply(self) -> Reply:
        """Read it."""
        reply = Reply(body=self.body)
        try:
            reading = _read(self.value, self.body, self.yielded)
        except SeatrialError as error:
            message = f"what the function returned cannot be read: {error}"
            reply.fault = Fault(unreadable(error), message, excerpt(self.body))
            return reply
        reply.reading = reading
        reply.fault = reading_fault(reading)
        if reply.fault is not None:
            reply.fault.detail = reply.fault.detail or excerpt(self.body)
        if reading.format == agent_response.FORMAT:
            reading.notes = contract.check(reading).notes
        return reply


def _body(value: Any, convert: bool) -> tuple[Any, bytes]:
    """The value without objects of frameworks, and as the bytes that are kept."""
    value = plain_text(value)
    if type(value) is str:
        if len(value) > MAX_RESPONSE_BYTES:
            raise SeatrialError("too_large", f"there are more than {MAX_RESPONSE_BYTES:,} bytes")
        return value, str(wire.without_surrogates(value)).encode()
    if type(value) is bytes:
        return value, value
    if value is None:
        raise SeatrialError("invalid_document", f"the function returned nothing; expected {_EXPECTED}")
    given = type(value).__name__
    try:
        value, body = _encoded(value, convert)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        if not convert and isinstance(error, TypeError):
            raise
        raise SeatrialError(
            "invalid_document", f"the function returned a value that cannot be written as JSON: {error}"
        ) from None
    if body[:1] not in (b"{", b"["):
        raise SeatrialError("invalid_document", f"the function returned {given}; expected {_EXPECTED}")
    return value, body


def _encoded(value: Any, convert: bool) -> tuple[Any, bytes]:
    try:
        check_size(value)
    except TypeError:
        if not convert:
            raise
        value = to_json_values(value)
    return value, wire.encode(_document(value))


def _document(value: Any) -> Any:
    """A list of messages is `output_messages`; one of something else is the document that it is."""
    if type(value) is not list:
        return value
    return value if _is_other_list(value) else {"output_messages": value}


def _is_other_list(value: Any) -> bool:
    """Whether this is a list, and not one of messages: states and updates of a graph, chunks of a stream."""
    first = value[0] if type(value) is list and value else None
    return type(first) is dict and (find_dialect(first) is None or is_chunk(first))


def _read(value: Any, body: bytes, yielded: bool) -> Reading:
    if isinstance(value, str):
        return output_messages.read_text_output(body)
    if _are_stream_tuples(value):
        raise SeatrialError(
            "unread_format",
            "this is what `graph.stream` of LangGraph gives for `stream_mode='messages'`, for several modes or with "
            "`subgraphs=True`, which Seatrial does not read",
            hint="stream one mode, 'updates' or 'values', or return the state of `graph.invoke`",
        )
    if _is_other_list(value):
        try:
            return formats.read(body)
        except SeatrialError as error:
            if yielded or error.code == "format_failed":
                raise
        return output_messages.read(wire.encode({"output_messages": value}))
    if _has_final_response(value, body):
        reading = agent_response.read(body)
        # What we encoded ourselves has every key once.
        return note_repeated_keys(body, reading) if isinstance(value, bytes) else reading
    return read_output(body) if isinstance(value, bytes) else read_record(body)


def _are_stream_tuples(value: Any) -> bool:
    """Whether this is a list of tuples of two or three: chunks with their metadata, or items with their mode."""
    if type(value) is not list or not value:
        return False
    return all(isinstance(item, list | tuple) and len(item) in (2, 3) and _is_tagged(item) for item in value)


def _is_tagged(item: Sequence[Any]) -> bool:
    metadata = item[-1]
    return isinstance(item[0], str | list | tuple) or (isinstance(metadata, dict) and "langgraph_node" in metadata)


def _has_final_response(value: Any, body: bytes) -> bool:
    return "final_response" in value if isinstance(value, dict) else agent_response.is_agent_response(body)
