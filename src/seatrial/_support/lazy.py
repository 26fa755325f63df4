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
    """`__getattr__` and `__all__` of a package, given the public names of each module, separated by spaces.

    `HttpConfig=http` offers what a module calls one thing under another name. A module of another package is named in
    full.
    """
    homes: dict[str, tuple[str, str]] = {}
    for module, names in modules.items():
        for entry in names.split():
            own, _, offered = entry.partition("=")
            homes[offered or own] = (module, own)
    here = sys.modules[package]

    class Package(ModuleType):
        """Importing a module binds it in its package; a public function of the same name takes precedence."""

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and name in homes:
                return  # loaded below, when it is asked for
            super().__setattr__(name, value)

    here.__class__ = Package

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = homes[name]
        inside = not module.startswith("seatrial.")
        value = getattr(import_module(f"{package}.{module}" if inside else module), own)
        setattr(here, name, value)
        return value

    return load, sorted(homes)
