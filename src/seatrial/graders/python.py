"""`python`: a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from seatrial._support.target import TARGET, load_target
from seatrial.errors import SeatrialError
from seatrial.graders.grader import FOR_GRADERS, Check, Finding, Grader, Subject, Surroundings
from seatrial.graders.user_code import UnusableTargetError, found_by, own_copy


class Python(Grader):
    """What a function says of the run. It is called with the subject (`answer`, `run`, `case`), and gives `True`, a
    score, a mapping (`passed`, `score`, `reasons`, ...) or a `Finding`. It is called in a
    thread; one that is async runs in an event loop that all such functions share."""

    kind: ClassVar[str] = "python"
    default_timeout_s: ClassVar[float] = 60.0

    target: Annotated[str, Meta(pattern=TARGET, description="`package.module:function`")]
    """`package.module:function`, importable from the suite file's directory."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further keyword arguments."""

    def prepare(self) -> Check:
        # Imported with the first run, and not here: validating a suite runs no code of its author.
        return Check(self._find, repeatable=False, keeps_time=True, reads=FOR_GRADERS)

    def check_presence(self, directory: Path) -> None:
        """Raise `SeatrialError` when there is no such function. Runs its module."""
        self._function(directory)

    async def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        call = partial(self._call, subject, surroundings.directory)
        return await found_by(call, f"`{self.target}`", self.limit_s)

    def _call(self, subject: Subject, directory: Path) -> Any:
        """Called in a thread, the import too: both run code of the suite's author, which may never end."""
        try:
            function = self._function(directory)
        except SeatrialError as error:
            raise UnusableTargetError(str(error)) from error
        return function(own_copy(subject), **self.arguments)

    def _function(self, directory: Path) -> Callable[..., Any]:
        function: Callable[..., Any] = load_target(self.target, directory)
        if not callable(function):
            raise SeatrialError("invalid_config", f"`{self.target}` is not a function")
        return function


class GraderFunction:
    """A function with the keys of the grader that calls it, for suites that are built in Python."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)
