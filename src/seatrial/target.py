"""`package.module:function`: finding what a suite names in Python."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from seatrial.errors import SeatrialError


def load_target(target: str, directory: Path) -> Any:
    """Import what a target names, with the suite's directory on the path. Runs the module."""
    module_name, _, attribute = target.partition(":")
    folder = directory.resolve()
    if str(folder) not in sys.path:
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
