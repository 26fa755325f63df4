"""Arguments of a tool call that were not JSON: kept whole inside the `arguments` value itself.

A provider that receives malformed argument text has nowhere else to put it, so the text and the parser's
complaint travel as an object with two reserved keys. Writers turn it back into the text as sent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import is_too_deep
from seatrial._support.repeated_keys import TWICE, may_repeat_keys, repeated_keys
from seatrial.errors import SeatrialError
from seatrial.transcript.note import Note, note_code

ARGUMENTS_NOT_JSON = note_code(
    "arguments_not_json",
    "The arguments of a tool call are text that is not JSON, is nested too deeply, or has a key twice; the text is "
    "kept as sent. Serious where it was cut, or has a key twice.",
    "look",
)
ARGUMENTS_ENCODED_TWICE = note_code(
    "arguments_encoded_twice", "The arguments of a tool call are JSON inside a JSON text; they were decoded.", "look"
)

PARSE_ERROR_KEY = "__clark_arg_parse_error"
RAW_TEXT_KEY = "__clark_arg_raw"


def unparsed_arguments(error: str, text: str) -> dict[str, Any]:
    """The arguments value that stands for text which is not JSON."""
    return {PARSE_ERROR_KEY: error, RAW_TEXT_KEY: text}


def detect_unparsed(arguments: Any) -> tuple[str, str] | None:
    """(error, text) when these arguments stand for text which is not JSON, else None."""
    if type(arguments) is not dict:
        return None
    error = arguments.get(PARSE_ERROR_KEY)
    text = arguments.get(RAW_TEXT_KEY)
    if isinstance(error, str) and isinstance(text, str):
        return error, text
    return None


def read_arguments(text: str, *, as_text: bool = False) -> tuple[Any, bool, bool]:
    """The value of argument text; whether it is not JSON, and kept by `unparsed_arguments`; and whether it was encoded
    twice. Every reader of calls reads them so, whatever the shape of the record.

    `as_text`: a text in it is the arguments themselves, whatever it holds."""
    arguments, not_json = parse_arguments(text)
    if as_text or type(arguments) is not str:
        return arguments, not_json, False
    arguments = inside_text(arguments)
    not_json = detect_unparsed(arguments) is not None
    return arguments, not_json, type(arguments) is dict and not not_json


def inside_text(text: str) -> Any:
    """The object that a text holds as JSON, where arguments were encoded twice; any other text is itself.

    An object that has a key twice is kept by `unparsed_arguments`.
    """
    arguments, not_json = parse_arguments(text)
    if not_json and key_twice(text) is None:
        return text
    return arguments if type(arguments) is dict and text.strip() else text


def parse_arguments(text: str) -> tuple[Any, bool]:
    """The JSON value of argument text and False; or the sentinel that keeps the text, and True.

    Blank text means no arguments: several providers send it for a call without parameters. Of a key that occurs twice,
    nobody knows which value the tool was given, so such text is kept, too.
    """
    if not text or text.isspace():
        return {}, False
    if is_too_deep(text):
        return unparsed_arguments(wire.too_deep().message, text), True
    try:
        arguments = _ARGUMENTS.decode(text)
        # As many colons as keys: each occurs once. That is so for most, and the others are looked at.
        if type(arguments) is dict and may_repeat_keys(text, arguments) and (key := key_twice(text)) is not None:
            return unparsed_arguments(f"the key {key[:40]!r} {TWICE}", text), True
        return arguments, False
    except (msgspec.DecodeError, UnicodeError) as error:
        problem = str(error)
    # Only these can be mended: lone surrogates, as characters or as escapes, and a byte order mark.
    if "\\u" in text or not text.isascii():
        try:
            repaired = wire.without_surrogates(text)
            arguments = wire.decode(repaired.encode(), repairs=[])
            if (key := key_twice(repaired)) is not None:
                return unparsed_arguments(f"the key {key[:40]!r} {TWICE}", text), True
            return arguments, False
        except SeatrialError as error:
            problem = error.message
    return unparsed_arguments(problem, text), True


def arguments_note(arguments: Any, at: str, name: str) -> Note:
    """The note for a call whose arguments are kept as text, and why they are."""
    unparsed = detect_unparsed(arguments)
    if unparsed is not None and wire.ends_early(unparsed[0], unparsed[1].encode("utf-8", "replace")):
        text = f"the arguments for {name[:40]!r} end in the middle of their JSON"
        return Note(ARGUMENTS_NOT_JSON, at, text, "serious")
    if unparsed is not None and unparsed[0].endswith(TWICE):
        text = f"the arguments for {name[:40]!r} have a key twice, and which value counted is not known"
        return Note(ARGUMENTS_NOT_JSON, at, text, "serious")
    if unparsed is not None and unparsed[0] == wire.too_deep().message:
        text = f"the arguments for {name[:40]!r} are kept as text: {unparsed[0]}"
        return Note(ARGUMENTS_NOT_JSON, at, text)
    return Note(ARGUMENTS_NOT_JSON, at, f"the arguments for {name[:40]!r} are text that is not JSON")


def encoded_twice_note(at: str, name: str) -> Note:
    """The note for a call whose arguments were JSON in a JSON text."""
    return Note(ARGUMENTS_ENCODED_TWICE, at, f"the arguments for {name[:40]!r} are JSON in a JSON text")


def key_twice(text: str) -> str | None:
    """The first key that occurs twice in one object of a JSON text that is not nested too deeply."""
    repeated = repeated_keys(text)
    return repeated[0] if repeated else None


_ARGUMENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
