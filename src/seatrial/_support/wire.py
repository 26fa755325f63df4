"""JSON from outside: decoding bytes that nobody vouches for.

Everything here either returns a value or raises `SeatrialError`; no input makes it raise anything else.
What had to be repaired is reported as `Repair`s, which the readers turn into notes.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, Literal, TypeVar, overload

import msgspec

from seatrial._support.nesting import MAX_DEPTH, MAX_WRITTEN_DEPTH, is_too_deep
from seatrial._support.repeated_keys import TWICE, may_repeat_keys, repeated_keys
from seatrial.errors import SeatrialError

T = TypeVar("T")

_DEPTH_HINT = "no real transcript is nested hundreds of levels deep; look at how the input was made"

_TRUNCATED = "Input data was truncated"
"""What the decoder says of input that ends too early."""
_ENDS_EARLY = "it ends before it is complete"
_IN_NUMBER = re.compile(r"invalid number \(byte (\d+)\)$")

_BOM = b"\xef\xbb\xbf"
# An escaped surrogate that has no partner. An even number of backslashes before it would make it plain text, so other
# escapes and proper pairs are consumed, too: many at once, and still not all, because no other thread runs meanwhile.
# What begins with one backslash throughout is searched for ten times as fast as what may begin with one.
_OTHER = rb"(?:[^u]|u(?![dD][89a-fA-F])[0-9a-fA-F]{0,4})"
_ESCAPES = re.compile(
    rb"\\(?:%b(?:\\%b){0,1000}+|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|"
    rb"(u[dD][89a-fA-F][0-9a-fA-F]{2})|u)" % (_OTHER, _OTHER),
    re.DOTALL,
)

_SLICE = 64 * 1024
_REPAIRING = codecs.getincrementaldecoder("utf-8")

Repair = Literal["invalid_utf8_replaced", "lone_surrogate_replaced", "bom_removed"]


@overload
def decode(data: bytes, decoder: msgspec.json.Decoder[T], repairs: list[Repair] | None = None) -> T: ...
@overload
def decode(data: bytes, decoder: None = None, repairs: list[Repair] | None = None) -> Any: ...
def decode(data: bytes, decoder: msgspec.json.Decoder[Any] | None = None, repairs: list[Repair] | None = None) -> Any:
    """Decode JSON bytes, typed when a decoder is given.

    Raises `SeatrialError` for anything that is not JSON, is too deep, or does not fit the decoder's type
    (`invalid_document`). With a `repairs` list, a byte order mark, bytes that are not UTF-8 and lone surrogates
    are repaired, and what was done is appended to the list; without one they are errors. What is repaired was not
    written by us, so that it may be nested `MAX_DEPTH` levels deep, and not `MAX_WRITTEN_DEPTH`.
    """
    decoder = _ANY if decoder is None else decoder
    limit = MAX_WRITTEN_DEPTH if repairs is None else MAX_DEPTH
    try:
        return _decoded(data, decoder, limit)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if repairs is None:
            raise not_json(error, data) from None
    try:
        return _decoded(_mend(data, repairs), decoder, limit)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise not_json(error, data) from None


def _decoded(data: bytes, decoder: msgspec.json.Decoder[T], limit: int) -> T:
    if len(data) > limit and is_too_deep(data, limit):
        raise too_deep(limit)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise invalid_document(error) from None
    except RecursionError:  # the caller's stack is almost used up
        raise too_deep(limit) from None


def decode_sound(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
    """What needs no repair and no error text, decoded; None for everything else, also for what is nested too deeply."""
    try:
        return None if len(data) > MAX_DEPTH and is_too_deep(data) else decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


@overload
def decode_input(data: bytes, decoder: msgspec.json.Decoder[T]) -> T: ...
@overload
def decode_input(data: bytes, decoder: None = None) -> Any: ...
def decode_input(data: bytes, decoder: msgspec.json.Decoder[Any] | None = None) -> Any:
    """The same as `decode` without repairs, for what was not written by us: nested at most `MAX_DEPTH` levels deep."""
    if len(data) > MAX_DEPTH and is_too_deep(data):
        raise too_deep()
    return decode(data, decoder)


@overload
def decode_unambiguous(data: bytes, decoder: msgspec.json.Decoder[T]) -> T: ...
@overload
def decode_unambiguous(data: bytes, decoder: None = None) -> Any: ...
def decode_unambiguous(data: bytes, decoder: msgspec.json.Decoder[Any] | None = None) -> Any:
    """The same as `decode_input`; a key that occurs twice in one object is an error, too (`invalid_document`).

    For our own configuration: of two values, one would be accepted and ignored.
    """
    value = decode_input(data, decoder)
    if (decoder is not None or may_repeat_keys(data, value)) and (repeated := repeated_keys(data)):
        raise SeatrialError("invalid_document", f"the key {repeated[0][:60]!r} {TWICE}", hint="keep one of them")
    return value


def encode(value: Any) -> bytes:
    """Encode a value of ours as compact JSON; a string with lone surrogates gets replacement characters."""
    try:
        try:
            written = _ENCODER.encode(value)
        except UnicodeEncodeError:
            written = _ENCODER.encode(without_surrogates(value))
    except RecursionError:
        raise too_deep(MAX_WRITTEN_DEPTH) from None
    if len(written) > MAX_WRITTEN_DEPTH and is_too_deep(written, MAX_WRITTEN_DEPTH):
        raise too_deep(MAX_WRITTEN_DEPTH)
    return written


def without_surrogates(value: Any) -> Any:
    """A copy of a JSON value, or of structs, in which every lone surrogate is U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    if isinstance(value, msgspec.Struct):
        # Not through builtins, which have no place for `msgspec.Raw`.
        fields = {name: without_surrogates(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value


def repaired_text(data: bytes) -> str:
    """The text of bytes in which not all is UTF-8, with U+FFFD for the rest."""
    # Slice by slice: a repair is slow, and no other thread runs during a call.
    decoder = _REPAIRING("replace")
    pieces = [decoder.decode(data[start : start + _SLICE]) for start in range(0, len(data), _SLICE)]
    return "".join([*pieces, decoder.decode(b"", final=True)])


def not_json(error: Exception, data: bytes) -> SeatrialError:
    """The error for input that is not JSON and cannot be repaired: it is cut off, or invalid."""
    if not data.strip():
        return SeatrialError("not_json", "the input is empty")
    if ends_early(str(error), data):
        return SeatrialError("not_json", f"the JSON is cut off at byte {len(data.rstrip()):,}: {_ENDS_EARLY}")
    return SeatrialError("not_json", f"the input is not valid JSON: {error}")


def ends_early(problem: str, data: bytes) -> bool:
    """Whether what was said of data, by a decoder or by `not_json`, is that it ends before the JSON does."""
    # Of a number that ends too early, the decoder only says that it is invalid.
    in_number = _IN_NUMBER.search(problem)
    at_end = in_number is not None and int(in_number.group(1)) >= len(data.rstrip())
    return at_end or problem.endswith((_TRUNCATED, _ENDS_EARLY))


def too_deep(limit: int = MAX_DEPTH) -> SeatrialError:
    """The error for what is nested more deeply than is read, or written."""
    return SeatrialError("too_deep", f"the JSON is nested more than {limit} levels deep", hint=_DEPTH_HINT)


def invalid_document(error: msgspec.ValidationError) -> SeatrialError:
    """The error for JSON that does not fit the type; msgspec's path becomes a JSON pointer."""
    text, _, path = str(error).partition(" - at `")
    return SeatrialError("invalid_document", text, pointer=_pointer_of_path(path.rstrip("`")) if path else None)


def _mend(data: bytes, repairs: list[Repair]) -> bytes:
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
        repairs.append("bom_removed")
    try:
        data.decode()
    except UnicodeDecodeError:
        data = repaired_text(data).encode()
        repairs.append("invalid_utf8_replaced")
    lone = 0

    def replaced(match: re.Match[bytes]) -> bytes:
        nonlocal lone
        if match.group(1) is None:
            return match.group(0)
        lone += 1
        return rb"\ufffd"

    data = _ESCAPES.sub(replaced, data)
    if lone:
        repairs.append("lone_surrogate_replaced")
    return data


def _pointer_of_path(path: str) -> str:
    # msgspec writes `$.messages[3].role`, and `[...]` for any key of a mapping.
    pointer = re.sub(r"\[([^\]]*)\]", r".\1", path.removeprefix("$"))
    return pointer.replace("....", ".*").replace(".", "/")


_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
