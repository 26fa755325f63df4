"""The rows of one entity type by id, in versions: a new one shares everything but the path to the row that changed.

It is a tree over the hash of the id, and every node has a hash of what is below it. So a change costs the depth of the
tree, whatever the number of rows, and two sets of rows are equal exactly when their hashes are. The shape depends on
the content alone, not on how it came to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from seatrial.trajectory.values import key

DIGEST_BYTES = 32
LEAF_ROWS = 8
"""More rows than this in one place are spread over a branch."""
_MAX_DEPTH = 2 * DIGEST_BYTES
_NOTHING = bytes(DIGEST_BYTES)


class Row(msgspec.Struct, frozen=True, eq=False):
    """One entity in one version. Its fields are never changed in place."""

    id: str
    fields: dict[str, Any]
    order: int
    """RowTree are listed by it: those of the seed as they were given, then as they were added."""
    digest: bytes
    """Of the id and the fields, the same for equal JSON values."""

    @classmethod
    def of(cls, row_id: str, fields: dict[str, Any], order: int) -> Row:
        """A row with its hash."""
        return cls(row_id, fields, order, digest(key([row_id, fields])))


class _Node(msgspec.Struct, frozen=True, eq=False):
    count: int
    digest: bytes
    rows: tuple[Row, ...] = ()
    """Of a leaf, by id."""
    children: tuple[_Node | None, ...] = ()
    """Of a branch, by one hexadecimal digit of the hash of the id."""

    def __iter__(self) -> Iterator[Row]:
        yield from self.rows
        for child in self.children:
            if child is not None:
                yield from child


class RowTree:
    """RowTree by id; immutable."""

    __slots__ = ("_root",)

    def __init__(self, root: _Node | None = None) -> None:
        self._root = root

    @classmethod
    def of(cls, rows: Iterable[Row]) -> RowTree:
        """These rows, whose ids all differ."""
        return cls(_node([(_place(row.id), row) for row in rows], 0))

    def __len__(self) -> int:
        return 0 if self._root is None else self._root.count

    def __iter__(self) -> Iterator[Row]:
        """In the order in which they came to be."""
        return iter(sorted(self._root or (), key=lambda row: row.order))

    @property
    def digest(self) -> bytes:
        """The hash of all rows."""
        return _NOTHING if self._root is None else self._root.digest

    def get(self, row_id: str) -> Row | None:
        """The row with this id."""
        node, place = self._root, _place(row_id)
        depth = 0
        while node is not None and node.children:
            node = node.children[place[depth]]
            depth += 1
        if node is not None:
            for row in node.rows:
                if row.id == row_id:
                    return row
        return None

    def with_row(self, row: Row) -> RowTree:
        """With this row in the place of the one with its id, if there is one."""
        return RowTree(_with(self._root, _place(row.id), row, 0))

    def without(self, row_id: str) -> RowTree:
        """Without the row with this id."""
        return RowTree(_without(self._root, _place(row_id), row_id, 0))


def differing(one: RowTree, other: RowTree) -> set[str]:
    """The ids of the rows that are not the same on both sides. What both share is not looked at."""
    return set(_differing(one._root, other._root))


def digest(data: bytes) -> bytes:
    """The hash that states are compared by."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _place(row_id: str) -> bytes:
    """Where a row stands: a number below 16 for each level of the tree."""
    return bytes(int(digit, 16) for digit in digest(row_id.encode("utf-8", "surrogatepass")).hex())


def _leaf(rows: Iterable[Row]) -> _Node | None:
    ordered = tuple(sorted(rows, key=lambda row: row.id))
    if not ordered:
        return None
    return _Node(len(ordered), digest(b"leaf" + b"".join(row.digest for row in ordered)), rows=ordered)


def _branch(children: tuple[_Node | None, ...]) -> _Node:
    digests = b"".join(_NOTHING if child is None else child.digest for child in children)
    return _Node(sum(child.count for child in children if child), digest(b"branch" + digests), children=children)


def _node(placed: list[tuple[bytes, Row]], depth: int) -> _Node | None:
    if len(placed) <= LEAF_ROWS or depth == _MAX_DEPTH:
        return _leaf(row for _, row in placed)
    below: list[list[tuple[bytes, Row]]] = [[] for _ in range(16)]
    for place, row in placed:
        below[place[depth]].append((place, row))
    return _branch(tuple(_node(part, depth + 1) for part in below))


def _with(node: _Node | None, place: bytes, row: Row, depth: int) -> _Node | None:
    if node is None or not node.children:
        others = [other for other in (node.rows if node else ()) if other.id != row.id]
        return _node([(_place(each.id), each) for each in (*others, row)], depth)
    children = list(node.children)
    children[place[depth]] = _with(children[place[depth]], place, row, depth + 1)
    return _branch(tuple(children))


def _without(node: _Node | None, place: bytes, row_id: str, depth: int) -> _Node | None:
    if node is None:
        return None
    if not node.children:
        return _leaf(row for row in node.rows if row.id != row_id)
    children = list(node.children)
    children[place[depth]] = _without(children[place[depth]], place, row_id, depth + 1)
    branch = _branch(tuple(children))
    # So that the shape is the one that these rows would have had from the start.
    return _leaf(branch) if branch.count <= LEAF_ROWS else branch


def _differing(one: _Node | None, other: _Node | None) -> Iterator[str]:
    if one is other or (one is not None and other is not None and one.digest == other.digest):
        return
    if one is not None and other is not None and one.children and other.children:
        for pair in zip(one.children, other.children, strict=True):
            yield from _differing(*pair)
        return
    left, right = ({row.id: row.digest for row in node or ()} for node in (one, other))
    yield from (row_id for row_id in {**left, **right} if left.get(row_id) != right.get(row_id))
