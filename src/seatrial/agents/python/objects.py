"""Objects of frameworks as JSON values: what a function returns is often a framework's own result, or messages of it.

No framework is imported. An object is converted by what it offers: the history of a run, a dump of its own, its fields.
What offers nothing is an error that names its type, because leaving it out could leave out a call.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_DEPTH
from seatrial.agents.config import MAX_RESPONSE_BYTES
from seatrial.errors import SeatrialError
from seatrial.transcript import pointer

MAX_VALUES: Final = 1_000_000
"""How many values are converted before giving up: objects may refer to each other in circles."""

_PLAIN: Final = (str, int, float, bool, type(None))
_LEAVES: Final = (
    str, int, float, bytes, enum.Enum, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    decimal.Decimal, uuid.UUID, msgspec.Raw,
)  # fmt: skip
"""What msgspec writes as it is."""
_FROZEN: Final = frozenset({*_PLAIN, dict, list})
_ADVICE: Final = "return JSON values instead, e.g. `[message.model_dump() for message in messages]`"

Path = tuple[str | int, ...]


def is_plain(value: Any) -> bool:
    """Whether a value, and what stands directly in it, is JSON already; deeper objects show when it is encoded."""
    if type(value) is dict:
        return all(
            type(inner) in _FROZEN and (type(inner) is not list or all(type(item) in _FROZEN for item in inner))
            for inner in value.values()
        )
    return type(value) in _PLAIN or (type(value) is list and all(type(item) in _FROZEN for item in value))


def check_size(value: Any) -> None:
    """Raise `SeatrialError` for a value that is too large to be written, without writing it.

    What is in it twice is written twice: a list of two lists of two lists, all of them the same, is small in memory
    and without bound as JSON.
    """
    values, characters = MAX_VALUES, MAX_RESPONSE_BYTES
    waiting = [value]
    while waiting:
        found = waiting.pop()
        inner = found.values() if type(found) is dict else found if type(found) is list else ()
        values -= len(inner)
        for item in inner:
            if type(item) is str:
                characters -= len(item)
            elif type(item) is dict or type(item) is list:
                waiting.append(item)
        if values < 0 or characters < 0:
            limit = f"{MAX_VALUES:,} values" if values < 0 else f"{MAX_RESPONSE_BYTES:,} bytes"
            raise SeatrialError("too_large", f"there are more than {limit}")


def to_json_values(value: Any) -> Any:
    """The value with every object in it converted. Raises `SeatrialError` for what cannot be."""
    return _Conversion().convert_result(value)


class _Conversion:
    def __init__(self) -> None:
        self._left = MAX_VALUES

    def convert_result(self, value: Any) -> Any:
        """What a whole run of a framework returned: its history with its answer, where it offers both."""
        # Pydantic AI's results, then those of the OpenAI Agents SDK.
        for method, answer in (("all_messages", "output"), ("to_input_list", "final_output")):
            if isinstance(value, type) or not callable(history := getattr(value, method, None)):
                continue
            messages = self.convert(_offered(value, method, history), (method,))
            record: dict[str, Any] = {"output_messages": messages}
            if (said := getattr(value, answer, None)) is not None:
                record["text"] = said if isinstance(said, str) else _text(self.convert(said, (answer,)))
            return record
        return self.convert(value, ())

    def convert(self, value: Any, at: Path) -> Any:
        if type(value) in _PLAIN:
            return value
        self._left -= 1
        if self._left < 0 or len(at) > MAX_DEPTH:
            limit = f"more than {MAX_VALUES:,} values" if self._left < 0 else f"more than {MAX_DEPTH} levels"
            raise SeatrialError("too_deep", f"the function returned {limit} of objects in objects; {_ADVICE}")
        if isinstance(value, _LEAVES):
            return value
        if isinstance(value, Mapping):
            return {key: self.convert(inner, (*at, str(key)[:80])) for key, inner in value.items()}
        if isinstance(value, list | tuple | Set):
            return [self.convert(inner, (*at, index)) for index, inner in enumerate(value)]
        if isinstance(value, msgspec.Struct):
            return msgspec.to_builtins(value, enc_hook=lambda inner: self.convert(inner, (*at, "…")))
        return self.convert(_opened(value, at), (*at, f"<{type(value).__name__}>"))


def _opened(value: Any, at: Path) -> Any:
    """What an object says of itself, one level of it or all."""
    kind = type(value)
    if not isinstance(value, type):
        # Items of the OpenAI Agents SDK hold the whole agent beside what it said.
        if callable(item := getattr(value, "to_input_item", None)):
            return _offered(value, "to_input_item", item)
        if callable(dump := getattr(value, "model_dump", None)):
            return _dumped(value, dump)
        if dataclasses.is_dataclass(value):
            return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        if (attributes := getattr(kind, "__attrs_attrs__", None)) is not None:
            return {attribute.name: getattr(value, attribute.name, None) for attribute in attributes}
        if callable(dump_json := getattr(value, "model_dump_json", None)):
            return wire.decode_input(_offered(value, "model_dump_json", dump_json).encode())
        if callable(to_dict := getattr(value, "to_dict", None)):
            return _offered(value, "to_dict", to_dict)
    where = f" at {pointer(*at)}" if at else ""
    name = f"{kind.__module__}.{kind.__qualname__}"
    raise SeatrialError(
        "invalid_document",
        f"the function returned a value that cannot be written as JSON{where}: a {name[:200]}; {_ADVICE}",
    )


def _dumped(value: Any, dump: Any) -> Any:
    """A pydantic model by its own dump, in which what is declared as a base class keeps the fields of its own class."""
    try:
        return dump(mode="json", serialize_as_any=True, warnings=False)
    except Exception:  # noqa: BLE001 (an older pydantic, or a field that it cannot write: field by field, then)
        return _offered(value, "model_dump", lambda: dict(_fields(value)))


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value


def _offered(value: Any, name: str, method: Any) -> Any:
    try:
        return method()
    except Exception as error:  # noqa: BLE001 (whatever a framework raises)
        told = f"`{type(value).__name__}.{name}` raised {type(error).__name__}: {str(error)[:300]}"
        raise SeatrialError(
            "invalid_document", f"the function returned a value that cannot be written as JSON: {told}; {_ADVICE}"
        ) from None


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
