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
from collections.abc import Iterable, Iterator, Mapping, Set
from copy import copy
from typing import Any, Final

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_DEPTH
from seatrial.agents.config import MAX_RESPONSE_BYTES
from seatrial.agents.python.frameworks import record_of
from seatrial.errors import SeatrialError
from seatrial.formats.dialects.responses import AGENT_AS_TOOL
from seatrial.transcript import pointer

MAX_VALUES: Final = 1_000_000
"""How many values are converted before giving up: objects may refer to each other in circles."""

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_NUMBERS: Final = frozenset({float, bool, type(None)})
_LEAVES: Final = (
    int, float, bytes, bytearray, enum.Enum, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    decimal.Decimal, uuid.UUID, msgspec.Raw,
)  # fmt: skip
"""What has a form in JSON, besides text."""
_ADVICE: Final = "return JSON values instead, e.g. `[message.model_dump() for message in messages]`"

Path = tuple[str | int, ...]


def plain_text(value: Any) -> Any:
    """Text and bytes as what they hold: a subclass may say anything in its methods, and take any time over it.

    Whatever else it is comes back as it is.
    """
    kind = type(value)
    if kind is str or kind is bytes:
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    return bytes.__getitem__(value, slice(None)) if issubclass(kind, bytes) else value


def check_size(value: Any) -> None:
    """Raise `SeatrialError` for a value that is too large to be written, without writing it, and `TypeError` for one
    with anything in it but what JSON is read as: objects have to be converted first.

    What is in it twice is written twice: a list of two lists of two lists, all of them the same, is small in memory
    and without bound as JSON.
    """
    values, characters = MAX_VALUES, MAX_RESPONSE_BYTES
    waiting = [(value,)]
    while waiting:
        found: Any = waiting.pop()
        values -= len(found)
        if type(found) is dict:
            for key in found:
                # Looking for a key must run no code of others: one that equals everything is found everywhere.
                if type(key) is not str:
                    raise TypeError(f"a key is not text but a {type(key).__name__}")
                characters -= len(key)
            found = found.values()
        for item in found:
            kind = type(item)
            if kind is str:
                characters -= len(item)
            elif kind is dict or kind is list:
                waiting.append(item)
            elif kind is int:
                characters -= item.bit_length() // 4
            elif kind not in _NUMBERS:
                raise TypeError(f"objects of type {kind.__name__} are not JSON")
        if values < 0 or characters < 0:
            raise _too_large(values < 0)


def to_json_values(value: Any) -> Any:
    """The value with every object in it converted. Raises `SeatrialError` for what cannot be, and for too much."""
    converted = _Conversion().convert_result(value)
    check_size(converted)
    return converted


def _too_large(values: bool) -> SeatrialError:
    limit = f"{MAX_VALUES:,} values" if values else f"{MAX_RESPONSE_BYTES:,} bytes"
    return SeatrialError("too_large", f"there are more than {limit}")


class _Conversion:
    def __init__(self) -> None:
        self._left = MAX_VALUES
        self._characters = MAX_RESPONSE_BYTES
        """How much text may still be made of what is none."""

    def convert_result(self, value: Any) -> Any:
        """What a whole run of a framework returned: its history with its answer, where it offers both."""
        # Pydantic AI's results, then those of the OpenAI Agents SDK.
        for method, answer in (("all_messages", "output"), ("to_input_list", "final_output")):
            if isinstance(value, type) or not callable(history := getattr(value, method, None)):
                continue
            messages = self.convert(_offered(value, method, history), (method,))
            messages = _mark_agents(messages, getattr(value, "new_items", None))
            record: dict[str, Any] = {"output_messages": messages}
            if (said := getattr(value, answer, None)) is not None:
                record["text"] = plain_text(said) if isinstance(said, str) else _text(self.convert(said, (answer,)))
            return record
        found = None if isinstance(value, type) else _offered(value, "fields", lambda: record_of(value))
        return self.convert(value if found is None else found, ())

    def convert(self, value: Any, at: Path) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _too_large(values=True)
        kind = type(value)
        if kind in _PLAIN:
            return value
        if len(at) > MAX_DEPTH:
            raise SeatrialError(
                "too_deep", f"the function returned more than {MAX_DEPTH} levels of objects in objects; {_ADVICE}"
            )
        # By their types, and with the methods of these: a subclass may say anything of itself.
        if issubclass(kind, str) and not issubclass(kind, enum.Enum):
            return plain_text(value)
        if issubclass(kind, _LEAVES):
            return self._leaf(value, at)
        if isinstance(value, Mapping):
            return {self._key(key, at): self.convert(inner, (*at, _place(key))) for key, inner in _items(value)}
        if isinstance(value, list | tuple | Set):
            return [self.convert(inner, (*at, index)) for index, inner in enumerate(_entries(value))]
        if isinstance(value, msgspec.Struct):
            return msgspec.to_builtins(self._struct(value, at))
        return self.convert(_opened(value, at), (*at, f"<{kind.__name__}>"))

    def _leaf(self, value: Any, at: Path) -> Any:
        if isinstance(value, enum.Enum):
            return self.convert(value.value, (*at, "value"))
        if isinstance(value, int):
            return int.__int__(value)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, bytes | bytearray | msgspec.Raw):
            self._spend(memoryview(value).nbytes * 4 // 3)
        if isinstance(value, msgspec.Raw):
            return wire.decode(bytes(value))
        if isinstance(value, decimal.Decimal):
            text = decimal.Decimal.__str__(value)
        elif isinstance(value, datetime.date | datetime.time) and type(value).__module__ != "datetime":
            text = value.isoformat()
        else:
            text = msgspec.to_builtins(plain_text(value))
        self._spend(len(text))
        return text

    def _spend(self, characters: int) -> None:
        self._characters -= characters
        if self._characters < 0:
            raise _too_large(values=False)

    def _key(self, key: Any, at: Path) -> Any:
        """A key as the text that is written for it."""
        if type(key) is str:
            return key
        if not isinstance(key, _LEAVES):
            told = f"a key that is a {type(key).__name__}"
            raise SeatrialError("invalid_document", f"the function returned {told}{_where(at)}; {_ADVICE}")
        key = self.convert(key, at)
        return key if type(key) is str else msgspec.json.encode(key).decode()

    def _struct(self, value: msgspec.Struct, at: Path) -> msgspec.Struct:
        """A copy with every object in it converted; its names and what it leaves out are its own affair."""
        copied = copy(value)
        for field in value.__struct_fields__:
            inner = getattr(value, field)
            if inner is not msgspec.UNSET:
                msgspec.structs.force_setattr(copied, field, self.convert(inner, (*at, field)))
        return copied


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    items: Iterable[tuple[Any, Any]] = dict.items(value) if issubclass(type(value), dict) else value.items()
    return ((plain_text(key), inner) for key, inner in items)


def _place(key: Any) -> str:
    return key[:80] if type(key) is str else f"<{type(key).__name__}>"


def _entries(value: Any) -> Iterator[Any]:
    for kind in (list, tuple):
        if issubclass(type(value), kind):
            return kind.__iter__(value)
    return iter(value)


def _opened(value: Any, at: Path) -> Any:
    """What an object says of itself, one level of it or all."""
    kind = type(value)
    if not isinstance(value, type):
        # Items of the OpenAI Agents SDK hold the whole agent beside what it said.
        if callable(item := getattr(value, "to_input_item", None)):
            return _marked(_offered(value, "to_input_item", item), value)
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
    name = f"{kind.__module__}.{kind.__qualname__}"
    raise SeatrialError(
        "invalid_document",
        f"the function returned a value that cannot be written as JSON{_where(at)}: a {name[:200]}; {_ADVICE}",
    )


def _marked(item: Any, of: Any) -> Any:
    """An item of the OpenAI Agents SDK, marked as the call of an agent where the object around it says so."""
    kind = getattr(getattr(of, "tool_origin", None), "type", None)
    of_agent = (kind.value if isinstance(kind, enum.Enum) else kind) == AGENT_AS_TOOL["type"]
    is_call = isinstance(item, dict) and item.get("type") == "function_call"
    return {**item, "tool_origin": AGENT_AS_TOOL} if of_agent and is_call else item


def _mark_agents(messages: Any, new_items: Any) -> Any:
    """The history of a run, in which the SDK leaves out which tools are agents, with their calls marked."""
    if not (isinstance(messages, list) and isinstance(new_items, list)):
        return messages
    made = {call_id: of for of in new_items if isinstance(call_id := _call_id(of), str)}
    return [
        _marked(item, made[item["call_id"]]) if isinstance(item, dict) and item.get("call_id") in made else item
        for item in messages
    ]


def _call_id(of: Any) -> Any:
    raw = getattr(of, "raw_item", None)
    return raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)


def _where(at: Path) -> str:
    return f" at {pointer(*at)}" if at else ""


def _dumped(value: Any, dump: Any) -> Any:
    """A pydantic model by its own dump, in which what is declared as a base class keeps the fields of its own class.

    Keys are named as they are sent: `toolCallName`, where Python says `tool_call_name`.
    """
    try:
        return dump(mode="json", by_alias=True, serialize_as_any=True, warnings=False)
    except Exception:  # noqa: BLE001 (an older pydantic, or a field that it cannot write: field by field, then)
        return _offered(value, "model_dump", lambda: dict(_fields(value)))


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    declared = getattr(type(value), "model_fields", {})
    for name, inner in value:
        yield getattr(declared.get(name), "serialization_alias", None) or name, inner


def _offered(value: Any, name: str, method: Any) -> Any:
    try:
        return method()
    except Exception as error:  # noqa: BLE001 (whatever a framework raises)
        told = f"`{type(value).__name__}.{name}` raised {type(error).__name__}: {str(error)[:300]}"
        raise SeatrialError(
            "invalid_document", f"the function returned a value that cannot be written as JSON: {told}; {_ADVICE}"
        ) from None


def _text(value: Any) -> str:
    check_size(value)
    return msgspec.json.encode(value).decode()
