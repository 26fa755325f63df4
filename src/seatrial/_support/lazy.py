"""Public names of a package, loaded when first asked for.

A command needs a few modules of each package, and starting fast means loading no others. The packages name their
public surface for type checkers under `TYPE_CHECKING`, and here for the interpreter; a test holds the two together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def attach(package: str, names: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """A module `__getattr__` for a package, given the public names of each of its modules."""
    homes = {name: module for module, public in names.items() for name in public}
    here = sys.modules[package]

    class Package(ModuleType):
        """Importing a module binds it in its package; where a public function has the same name, that stays."""

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

    return load
