"""YAML as plain JSON values, each with the place where it is written.

Built from parser events with a stack of its own: no recursion, no objects but JSON's, and no more of them than the
limits allow, whatever aliases ask for. Scalars follow YAML 1.2: `yes`, `on` and `2024-01-01` are text.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from seatrial.problems import KeyPath, Place, Problems, quoted

MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100
MAX_EXPANDED = 32 * 1024 * 1024
"""Characters and nodes of a file with every alias written out."""

LOADER: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# What JSON readers and writers can hold, ours too.
_INT_RANGE = range(-(2**63), 2**64)


class Mark(msgspec.Struct):
    """Where a value is written; in a mapping, where its key is."""

    place: Place
    children: dict[str | int, Mark]

    def locate(self, path: KeyPath) -> Place:
        """The place of the value at a path, or of the nearest thing around it."""
        mark = self
        for part in path:
            child = mark.children.get(part)
            if child is None:
                break
            mark = child
        return mark.place


class _Node(msgspec.Struct):
    """A finished value."""

    value: Any
    children: dict[str | int, Mark]
    size: int
    """Characters and nodes, with aliases written out."""
    depth: int = 0
    """Levels below this one, with aliases written out."""


class _Frame(msgspec.Struct):
    """A list or mapping whose end is still to come."""

    node: _Node
    place: Place
    anchor: str | None
    key: str | None = None
    """The key whose value comes next."""
    key_place: Place | None = None
    merging: bool = False
    """Whether that key is `<<`, unquoted."""
    merges: list[_Node] = []


_LEAF: dict[str | int, Mark] = {}


class _UnusableError(Exception):
    """The file cannot be read further."""

    def __init__(self, place: Place, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint


def parse_yaml(data: bytes, file: str, problems: Problems) -> tuple[Any, Mark] | None:
    """The value of a YAML file and the places in it; None, with problems told, when it cannot be read."""
    try:
        return _Reader(file, problems).read(data)
    except _UnusableError as error:
        problems.at(error.place).add((), error.message, error.hint)
        return None


def _too_deep(place: Place) -> _UnusableError:
    return _UnusableError(place, f"the file is nested more than {MAX_DEPTH} levels deep")


class _Reader:
    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.anchors: dict[str, _Node] = {}
        self.stack: list[_Frame] = []
        self.root: _Node | None = None

    def read(self, data: bytes) -> tuple[Any, Mark]:
        start = Place(self.file, 1, 1)
        if len(data) > MAX_FILE_BYTES:
            raise _UnusableError(
                start,
                f"the file is larger than {MAX_FILE_BYTES // 2**20} MiB",
                "move the cases to a .jsonl file, which is read line by line",
            )
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise _UnusableError(Place(self.file, line), "the file is not UTF-8 text") from None
        self._follow(text, start)
        if self.root is None:
            raise _UnusableError(start, "the file is empty", "a suite needs `agents` and `cases`")
        return self.root.value, Mark(start, self.root.children)

    def _follow(self, text: str, start: Place) -> None:
        loader: Any = None
        documents = 0
        try:
            # The constructor reads ahead already, and refuses control characters.
            loader = LOADER(text)
            while loader.check_event():
                event = loader.get_event()
                kind = type(event)
                if kind is yaml.ScalarEvent:
                    self._scalar(event)
                elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                    self._open(event)
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    self._close()
                elif kind is yaml.AliasEvent:
                    self._alias(event)
                elif kind is yaml.DocumentStartEvent:
                    documents += 1
                    if documents > 1:
                        raise _UnusableError(self._place(event), "a second YAML document starts here; a suite is one")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = start if mark is None else Place(self.file, mark.line + 1, mark.column + 1)
            said = " ".join(part for part in (error.context, error.problem) if part)
            raise _UnusableError(place, f"this is not YAML: {said}") from None
        except yaml.reader.ReaderError as error:
            # The position counts bytes in one parser and characters in the other.
            odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
            line = text.count("\n", 0, odd.start() if odd else 0) + 1
            raise _UnusableError(Place(self.file, line), f"this is not YAML: {error.reason}") from None
        except (ValueError, OverflowError):
            # The parser in pure Python lets bad escapes and version numbers through to `chr` and `int`.
            raise _UnusableError(start, "this is not YAML: an escape or a directive in it is malformed") from None
        finally:
            if loader is not None:
                loader.dispose()

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        if mark is None:
            return Place(self.file)
        return Place(self.file, mark.line + 1, mark.column + 1)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text: str = event.value
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is None and type(frame.node.value) is dict:
            self._key(frame, text, event)
            frame.merging = text == "<<" and event.implicit[0]
            if event.anchor is not None:
                self.anchors[event.anchor] = _Node(text, _LEAF, 1 + len(text))
            return
        if event.implicit[0]:
            value = self._plain(text, event)
        elif event.implicit[1] or event.tag in ("!", f"{_TAG}str"):
            value = text
        else:
            value = self._tagged(text, event)
        node = _Node(value, _LEAF, 1 + len(text))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        self._put(node, self._place(event))

    def _key(self, frame: _Frame, text: str, event: yaml.Event) -> None:
        place = self._place(event)
        if text in frame.node.children:
            first = frame.node.children[text].place
            self.problems.at(place).add((), f"the key {quoted(text)} is here twice", f"first in line {first.line}")
        frame.key = text
        frame.key_place = place

    def _plain(self, text: str, event: yaml.Event) -> Any:
        if text in _NULL:
            return None
        first = text[0]
        if first.isascii() and (first.isdigit() or first in "+-."):
            if _INT.fullmatch(text):
                return self._whole(text, event)
            if _FLOAT.fullmatch(text):
                number = float(text)
                if number - number == 0:
                    return number
                self._refuse(event, "this number is too large")
                return 0.0
            if _NOT_FINITE.fullmatch(text):
                self._refuse(event, f"{text} is not a number that JSON can hold")
                return 0.0
        elif text in _TRUE:
            return True
        elif text in _FALSE:
            return False
        return text

    def _whole(self, text: str, event: yaml.Event) -> int:
        # Python refuses to read more than some thousands of digits, and no such number is in range.
        if len(text) < 100:
            number = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
            if number in _INT_RANGE:
                return number
        self._refuse(event, "this number is too large")
        return 0

    def _tagged(self, text: str, event: yaml.ScalarEvent) -> Any:
        value = self._plain(text, event)
        wanted = {f"{_TAG}int": int, f"{_TAG}float": float, f"{_TAG}bool": bool, f"{_TAG}null": type(None)}
        kind = wanted.get(event.tag or "")
        if kind is float and type(value) is int:
            return float(value)
        if kind is None or type(value) is not kind:
            self._refuse_tag(event, event.tag)
        return value

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise _too_deep(self._place(event))
        self._forbid_as_key(event)
        mapping = type(event) is yaml.MappingStartEvent
        if event.tag not in (None, "!", f"{_TAG}{'map' if mapping else 'seq'}"):
            self._refuse_tag(event, event.tag)
        self.stack.append(_Frame(_Node({} if mapping else [], {}, 1), self._place(event), event.anchor))
        if len(self.stack) == 1:
            self.root = self.stack[0].node

    def _close(self) -> None:
        frame = self.stack.pop()
        for merge in frame.merges:
            for key, value in merge.value.items():
                if key not in frame.node.value:
                    frame.node.value[key] = value
                    frame.node.children[key] = merge.children[key]
        if frame.anchor is not None:
            # Only now, so that nothing can contain itself.
            self.anchors[frame.anchor] = frame.node
        if self.stack:
            self._put(frame.node, frame.place)

    def _alias(self, event: yaml.AliasEvent) -> None:
        node = self.anchors.get(event.anchor or "")
        if node is None:
            raise _UnusableError(self._place(event), f"the alias `*{event.anchor}` names nothing that ends before it")
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is None and type(frame.node.value) is dict and type(node.value) is str:
            self._key(frame, node.value, event)
            return
        self._forbid_as_key(event)
        self._put(node, self._place(event))

    def _put(self, node: _Node, place: Place) -> None:
        """Give a finished value to what it stands in."""
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        parent = frame.node
        parent.size += node.size + len(frame.key or "")
        parent.depth = max(parent.depth, node.depth + 1)
        if len(self.stack) + node.depth > MAX_DEPTH:
            raise _too_deep(place)
        if parent.size > MAX_EXPANDED:
            raise _UnusableError(place, "the aliases of the file stand for more than can be read", "use fewer of them")
        if type(parent.value) is list:
            parent.children[len(parent.value)] = Mark(place, node.children)
            parent.value.append(node.value)
            return
        key = frame.key
        frame.key = None
        if frame.merging:
            frame.merging = False
            self._merge(frame, node)
        elif key is not None and key not in parent.value:
            parent.children[key] = Mark(frame.key_place or place, node.children)
            parent.value[key] = node.value

    def _merge(self, frame: _Frame, node: _Node) -> None:
        # `<<: *defaults`, or a list of such: keys that the mapping itself does not have.
        if type(node.value) is list:
            sources = [_Node(value, node.children[index].children, 0) for index, value in enumerate(node.value)]
        else:
            sources = [node]
        if all(type(source.value) is dict for source in sources):
            frame.merges.extend(sources)
        else:
            self.problems.at(frame.key_place or frame.place).add((), "`<<` takes a mapping, or a list of mappings")

    def _forbid_as_key(self, event: yaml.Event) -> None:
        if self.stack and self.stack[-1].key is None and type(self.stack[-1].node.value) is dict:
            raise _UnusableError(self._place(event), "a key must be text")

    def _refuse(self, event: yaml.Event, message: str) -> None:
        self.problems.at(self._place(event)).add((), message)

    def _refuse_tag(self, event: yaml.Event, tag: str | None) -> None:
        shown = (tag or "!").replace(_TAG, "!!", 1)
        self._refuse(event, f"the tag {quoted(shown)} cannot be used here; values are those of JSON")
