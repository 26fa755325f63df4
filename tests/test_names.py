"""One name for one type: a second public type of the same name, anywhere in the package, needs another one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "seatrial"

QUALIFIED = {"events/agui_messages.py"}
"""AG-UI's own names for its messages; the module is always named with them (`agui.UserMessage`)."""


def public_types(tree: ast.Module) -> set[str]:
    """Classes and type aliases of a module."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if ast.unparse(node.annotation) == "TypeAlias":
                names.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Subscript) and ast.unparse(value.value) in ("Literal", "Annotated"):
                names.add(node.targets[0].id)
    return {name for name in names if not name.startswith("_")}


def test_no_two_public_types_share_a_name() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        where = file.relative_to(SOURCE).as_posix()
        if where not in QUALIFIED:
            for name in public_types(ast.parse(file.read_text(encoding="utf-8"))):
                homes[name].append(where)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_a_second_type_would_be_found() -> None:
    source = "class A: ...\nB: TypeAlias = int\nC = Literal['c']\nD = 4\n_E = Literal['e']"
    assert public_types(ast.parse(source)) == {"A", "B", "C"}
