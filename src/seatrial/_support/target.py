"""`package.module:function`: finding what a suite names in Python."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any

from seatrial.errors import SeatrialError

# `$` alone would let a newline at the end pass; `\Z` is not known to the readers of our JSON Schema.
TARGET = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$(?!\n)"
"""The pattern of a target, for JSON Schema too."""
_TARGET = re.compile(TARGET)
LOOKED_FOR = "it is looked for beside the suite file, then on the Python path"
"""The hint of an error for a module that does not exist."""
IN_MEMORY = "in_memory"
"""Stands for the module of a function that no other process can import: a closure, a lambda, an object."""


class NamedFunction:
    """A function of this process, and the target that named it when it was given."""

    def __init__(self, function: Callable[..., Any], target: str) -> None:
        self.function = function
        self.target = target

    def check(self) -> None:
        """Raise `SeatrialError` when the target names another function by now."""
        if _importable(self.target) is not self.function and _in_memory.get(self.target) is not self.function:
            raise SeatrialError(
                "invalid_config",
                f"`{self.target}` has been defined anew since the suite was made",
                hint="make the suite again, with the function that you mean",
            )


# Never emptied: a name that was given to one function must never mean another.
_in_memory: dict[str, Callable[..., Any]] = {}


def is_target(text: str) -> bool:
    """Whether a text is `package.module:function`."""
    return _TARGET.search(text) is not None


def named_function(function: Callable[..., Any]) -> NamedFunction:
    """A function with the target that names it: its module and name where others can import it by these."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    importable = f"{module}:{name}"
    if is_target(importable) and _importable(importable) is function:
        return NamedFunction(function, importable)
    base = re.sub(r"\W+", "_", str(name or type(function).__name__).rpartition(".")[2], flags=re.ASCII).strip("_")
    number, target = 1, f"{IN_MEMORY}:{base or 'function'}"
    while target in _in_memory and not _is_same(_in_memory[target], function):
        number += 1
        target = f"{IN_MEMORY}:{base or 'function'}_{number}"
    _in_memory[target] = function
    return NamedFunction(function, target)


def _is_same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    # A method is made anew each time it is asked for.
    return one is other or (type(one) is type(other) is MethodType and one == other)


def _importable(target: str) -> Any:
    """What a target names in a module that is loaded; None when there is no such thing."""
    module, _, name = target.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def load_target(target: str, directory: Path | None) -> Any:
    """Import what a target names, with the suite's directory, if there is one, on the path. Runs the module."""
    module_name, _, attribute = target.partition(":")
    if module_name == IN_MEMORY:
        if target in _in_memory:
            return _in_memory[target]
        raise SeatrialError(
            "invalid_config",
            f"`{attribute}` is a function of the Python program that ran the suite, and is not there any more",
            hint="run it from that program, or put it into a module that can be imported",
        )
    folder = None if directory is None else directory.resolve()
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A module of the suite's author may raise anything, sys.exit() included.
        hint = None
        if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
            hint = LOOKED_FOR if folder is not None else None
        told = f"`{module_name}` cannot be imported: {type(error).__name__}: {error}"
        raise SeatrialError("invalid_config", told, hint=hint) from error
    if folder is not None:
        _check_origin(module_name.partition(".")[0], folder)
    return _member(module, module_name, attribute)


def _member(module: ModuleType, module_name: str, attribute: str) -> Any:
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            near = get_close_matches(name, [public for public in dir(found) if not public.startswith("_")], n=1)
            hint = f"did you mean `{near[0]}`?" if near else None
            raise SeatrialError("invalid_config", f"`{module_name}` has no `{attribute}`", hint=hint)
        found = getattr(found, name)
    return found


def _check_origin(name: str, folder: Path) -> None:
    """Refuse a module of another directory in place of the one that lies here: it would be the wrong agent."""
    own = [path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.is_file()]
    origin = getattr(sys.modules.get(name), "__file__", None)
    if own and origin is not None and Path(origin).resolve() not in [path.resolve() for path in own]:
        raise SeatrialError(
            "invalid_config",
            f"`{name}` is {origin} in this process already, and not {own[0]}",
            hint="Python knows one module by a name; give one of the two another",
        )
