"""What the packages offer: every name that is promised is there, and is the one that type checkers see."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import seatrial

PACKAGES = ("transcript", "events", "formats", "trajectory", "models", "suites", "reports")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_the_one_that_type_checkers_see(package: str) -> None:
    module = importlib.import_module(f"seatrial.{package}")
    source = Path(str(module.__file__)).read_text()
    promised = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.col_offset and (node.module or "").startswith("seatrial.")
        for alias in node.names
    }
    assert set(promised) == set(module.__all__)
    for name, home in promised.items():
        assert getattr(module, name) is getattr(importlib.import_module(str(home)), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"seatrial\.events.*nothing"):
        importlib.import_module("seatrial.events").nothing  # noqa: B018


def test_the_top_of_the_package_offers_what_its_page_says() -> None:
    source = Path(str(seatrial.__file__)).read_text()
    promised = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.col_offset
        for alias in node.names
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and node.col_offset:
            assert isinstance(node.targets[0], ast.Name)
            promised[node.targets[0].id] = promised.pop(ast.unparse(node.value))
    assert {*promised, "__version__"} == set(seatrial.__all__)
    page = (Path(__file__).parent.parent / "docs" / "python.md").read_text()
    for name, (home, own) in promised.items():
        assert getattr(seatrial, str(name)) is getattr(importlib.import_module(str(home)), own)
        assert re.search(rf"\b{name}\b", page), f"docs/python.md does not say what {name} is"
