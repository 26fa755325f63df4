"""`package.module:function`: finding what a suite names in Python."""

from __future__ import annotations

import importlib
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from seatrial.errors import SeatrialError

# `$` alone would let a newline at the end pass; `\Z` is not known to the readers of our JSON Schema.
TARGET = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$(?!\n)"
"""The pattern of a target, for JSON Schema too."""
_TARGET = re.compile(TARGET)


def is_target(text: str) -> bool:
    """Whether a text is `package.module:function`."""
    return _TARGET.search(text) is not None


def load_target(target: str, directory: Path | None) -> Any:
    """Import what a target names, with the suite's directory, if there is one, on the path. Runs the module."""
    module_name, _, attribute = target.partition(":")
    folder = None if directory is None else directory.resolve()
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A module of the suite's author may raise anything, sys.exit() included.
        raise SeatrialError(
            "invalid_config", f"`{module_name}` cannot be imported: {type(error).__name__}: {error}"
        ) from error
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
