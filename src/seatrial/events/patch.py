"""JSON Patch (RFC 6902): all operations of a patch, or none of them.

The document is changed in place, and an undo list puts it back when an operation fails: a patch costs what it
touches, however large the document is. The caller therefore owns the document (`copy_json` makes one to own);
values that a patch adds are copied, so that no later patch reaches into the patch that brought them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from seatrial._support.nesting import MAX_DEPTH, is_value_too_deep
from seatrial.events.violation import quoted

MAX_COPIED = 50_000
"""How many values the `copy` operations of one stream may copy: copying a document into itself doubles it."""
TEXT_A_VALUE = 64
"""Characters of text that count as one value more: a copy of a long text costs nothing until it is written."""
MAX_SHIFTED = 100_000_000
"""How many places the items of arrays may move up or down for those put in or taken out before them."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class PatchError(Exception):
    """Why a patch does not apply. It never leaves this module: `Patcher.apply` returns its text."""


class Patcher:
    """Applies the patches of one stream, and keeps count of their work, where that is more than what was sent."""

    def __init__(self, copy_limit: int = MAX_COPIED, shift_limit: int = MAX_SHIFTED) -> None:
        self._copies_left = copy_limit
        self._shifts_left = shift_limit
        self._document: Any = None
        self._undo: list[Callable[[], Any]] = []

    def apply(self, document: Any, operations: list[Any]) -> tuple[Any, str | None]:
        """The patched document and None; or the document as it was, and why the patch does not apply."""
        self._document = document
        self._undo.clear()
        applied = 0
        try:
            for operation in operations:
                self._operate(operation)
                applied += 1
        except PatchError as error:
            reason = str(error)
        else:
            return self._document, None
        for step in reversed(self._undo):
            step()
        return document, f"operation {applied}: {reason}"

    def _operate(self, operation: Any) -> None:
        if type(operation) is not dict:
            raise PatchError("it is not an object")
        name = operation.get("op")
        path = _tokens(operation, "path")
        if name == "add":
            self._add(path, copy_json(_value(operation)))
        elif name == "replace":
            self._replace(path, copy_json(_value(operation)))
        elif name == "remove":
            self._remove(path)
        elif name == "test":
            if not same_json(self._get(path), _value(operation)):
                raise PatchError(f"the value at {quoted(operation['path'])} is another one")
        elif name == "copy":
            value = self._get(_tokens(operation, "from"))
            if self._copies_left:  # once they are used up, there is nothing to count
                self._copies_left = max(0, self._copies_left - _size(value, self._copies_left))
            if not self._copies_left:
                raise PatchError("the patches of this stream copy too much")
            self._add(path, copy_json(value))
        elif name == "move":
            source = _tokens(operation, "from")
            if len(source) < len(path) and path[: len(source)] == source:
                raise PatchError("a value cannot be moved into itself")
            value = self._get(source)
            if source != path:
                self._remove(source)
                self._add(path, value)
        else:
            raise PatchError(f"{quoted(name)} is no operation")

    def _get(self, path: list[str]) -> Any:
        value = self._document
        for token in path:
            value = value[_existing(value, token)]
        return value

    def _add(self, path: list[str], value: Any) -> None:
        _check_depth(path, value)
        if not path:
            self._document = value
            return
        parent, token = self._get(path[:-1]), path[-1]
        if type(parent) is dict:
            self._put(parent, token, value)
        elif type(parent) is list:
            index = len(parent) if token == "-" else _index(token)  # noqa: S105 - a reference token, not a secret
            if index > len(parent):
                raise PatchError(f"index {index} is past the end of the array")
            self._shift(len(parent) - index)
            parent.insert(index, value)
            self._undo.append(lambda: parent.pop(index))
        else:
            raise PatchError(f"there is no object or array to add {quoted(token)} to")

    def _replace(self, path: list[str], value: Any) -> None:
        _check_depth(path, value)
        if not path:
            self._document = value
            return
        parent = self._get(path[:-1])
        self._put(parent, _existing(parent, path[-1]), value)

    def _remove(self, path: list[str]) -> None:
        if not path:
            self._document = None
            return
        parent = self._get(path[:-1])
        key: Any = _existing(parent, path[-1])
        if type(parent) is list:
            self._shift(len(parent) - key)
        value = parent.pop(key)
        if type(parent) is list:
            self._undo.append(lambda: parent.insert(key, value))
        else:
            self._undo.append(lambda: parent.__setitem__(key, value))

    def _shift(self, items: int) -> None:
        self._shifts_left = max(0, self._shifts_left - items)
        if items and not self._shifts_left:
            raise PatchError("the patches of this stream move too much inside arrays")

    def _put(self, parent: Any, key: Any, value: Any) -> None:
        if type(parent) is dict and key not in parent:
            self._undo.append(lambda: parent.pop(key))
        else:
            former = parent[key]
            self._undo.append(lambda: parent.__setitem__(key, former))
        parent[key] = value


def _check_depth(path: list[str], value: Any) -> None:
    # Patches could otherwise put one value into the other, deeper than anything that is sent.
    if len(path) > MAX_DEPTH or (type(value) in _CONTAINERS and is_value_too_deep(value, MAX_DEPTH - len(path))):
        raise PatchError(f"the document would be nested more than {MAX_DEPTH} levels deep")


def copy_json(value: Any) -> Any:
    """A copy that shares no object or array with the value, however deep it is."""
    if type(value) not in _CONTAINERS:
        return value
    copied = value.copy()
    stack = [copied]
    while stack:
        container = stack.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            if type(item) in _CONTAINERS:
                container[key] = inner = item.copy()
                stack.append(inner)
    return copied


def same_json(left: Any, right: Any) -> bool:
    """Equality as JSON has it: 1 is 1.0, true is not 1, the order of keys does not count."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def _tokens(operation: dict[str, Any], member: str) -> list[str]:
    pointer = operation.get(member)
    if type(pointer) is not str:
        raise PatchError(f"`{member}` is missing or no string")
    if not pointer:
        return []
    if pointer[0] != "/" or ("~" in pointer and _BAD_ESCAPE.search(pointer)):
        raise PatchError(f"{quoted(pointer)} is no JSON pointer")
    tokens = pointer[1:].split("/")
    if "~" in pointer:
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in tokens]
    return tokens


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError("`value` is missing")
    return operation["value"]


def _existing(container: Any, token: str) -> str | int:
    """The key or index under which the container has this token."""
    if type(container) is dict:
        if token in container:
            return token
    elif type(container) is list:
        index = _index(token)
        if index < len(container):
            return index
    raise PatchError(f"there is nothing at {quoted(token)}")


def _index(token: str) -> int:
    if not _INDEX.fullmatch(token):
        raise PatchError(f"{quoted(token)} is no array index")
    return int(token)


def _size(value: Any, limit: int) -> int:
    """How many values there are in a value, itself included; it gives up when there are more than the limit."""
    count = 0
    stack = [value]
    while stack and count <= limit:
        item = stack.pop()
        count += 1
        if type(item) is dict:
            count += sum(map(len, item)) // TEXT_A_VALUE
            stack.extend(item.values())
        elif type(item) is list:
            stack.extend(item)
        elif type(item) is str:
            count += len(item) // TEXT_A_VALUE
    return count


_CONTAINERS = frozenset({dict, list})
