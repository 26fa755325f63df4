"""What the packages offer: every name that is promised is there, and is the one that type checkers see."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import seatrial

PACKAGES = ("transcript", "events", "formats", "trajectory")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_the_one_that_type_checkers_see(package: str) -> None:
    module = importlib.import_module(f"seatrial.{package}")
    source = Path(str(module.__file__)).read_text()
    promised = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"seatrial.{package}.")
        for alias in node.names
    }
    assert set(promised) == set(module.__all__)
    for name, home in promised.items():
        assert getattr(module, name) is getattr(importlib.import_module(str(home)), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"seatrial\.events.*nothing"):
        importlib.import_module("seatrial.events").nothing  # noqa: B018


def test_the_top_of_the_package_says_what_it_is() -> None:
    assert set(seatrial.__all__) == {"InfrastructureError", "SeatrialError", "__version__"}
