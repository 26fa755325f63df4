"""Public names of a package, loaded when first used.

A command needs a few modules of each package, and starts faster when no others are loaded. A package lists its public
names twice: under `TYPE_CHECKING` for type checkers, and here for the interpreter. A test holds the two together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def attach(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """`__getattr__` and `__all__` of a package, given the public names of each module, separated by spaces."""
    homes = {name: module for module, names in modules.items() for name in names.split()}
    here = sys.modules[package]

    class Package(ModuleType):
        """Importing a module binds it in its package; a public function of the same name takes precedence."""

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and homes.get(name) == name:
                value = getattr(value, name)
            super().__setattr__(name, value)

    here.__class__ = Package

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(here, name, value)
        return value

    return load, sorted(homes)
