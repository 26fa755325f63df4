"""Open registries: what Seatrial ships, what installed packages offer by entry point, what code registers itself.

Nothing is imported before it is used, and installed packages are searched only when a name is asked for that Seatrial
does not have itself, or when all names are needed. A name stands for one thing: two that claim it are an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
V = TypeVar("V")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Registry(Mapping[str, T], Generic[T]):
    """Things of one sort by name. Iterating gives the names, those of Seatrial first."""

    def __init__(
        self,
        noun: str,
        group: str,
        built_in: Mapping[str, str],
        accept: Callable[[str, object], T],
        *,
        fault: str = "invalid_config",
    ) -> None:
        """`group` is that of the entry points. `built_in` says where each is: `package.module:attribute`, or a module.

        `accept` gets a name and what it stands for, and gives it back as it is used. It raises `TypeError` for
        something that cannot be used. `fault` is the code of errors about what others offer.
        """
        self.noun = noun
        self.group = group
        self._built_in = dict(built_in)
        self._accept = accept
        self._fault = fault
        self._loaded: dict[str, T] = {}
        self._registered: dict[str, T] = {}
        self._homes: dict[str, str] = {}
        """Where each of those that were registered is defined."""
        self._installed: dict[str, list[EntryPoint]] | None = None

    def register(self, name: str) -> Callable[[V], V]:
        """A decorator that registers what it decorates. Raises `SeatrialError` for a name that is taken."""
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise SeatrialError(
                "invalid_config",
                f"{str(name)[:60]!r} cannot be the name of a {self.noun}",
                hint="use up to 64 letters, digits, `_` and `-`, and begin with a letter",
            )

        def add(value: V) -> V:
            if name in self._built_in:
                raise self._conflict(name, ["Seatrial itself", where(value)])
            # A module that is loaded again registers what it has once more.
            earlier = self._homes.get(name, where(value))
            if earlier != where(value):
                raise self._conflict(name, [earlier, where(value)])
            self._registered[name] = self._accepted(name, value, where(value))
            self._homes[name] = where(value)
            self._loaded.pop(name, None)
            return value

        return add

    def find(self, name: str, *, code: str = "invalid_config") -> T:
        """What a name stands for. Raises `SeatrialError` with the nearest name when nothing has it."""
        try:
            return self[name]
        except KeyError:
            raise SeatrialError(code, f"unknown {self.noun} {name[:60]!r}", hint=self.nearest(name)) from None

    def nearest(self, name: str) -> str:
        """A hint: the name that was probably meant, else all of them."""
        return nearest(name, self)

    def is_built_in(self, name: str) -> bool:
        """Whether it is one of those that Seatrial ships."""
        return name in self._built_in

    def built_in(self) -> dict[str, T]:
        """Those that Seatrial ships, whatever else is installed."""
        return {name: self[name] for name in self._built_in}

    def check_kind(self, found: Any) -> None:
        """Raise `SeatrialError` for a class whose `kind` is a name under which it is not registered.

        What is stored is known by its kind, and must not be taken for that of another class.
        """
        if found.kind != where(found) and self.get(found.kind) is not found:
            raise SeatrialError(
                "invalid_config",
                f"`{where(found)}` says that its kind is {found.kind!r}, under which it is not registered",
                hint="leave `kind` out of the class, and register it with the decorator or an entry point",
            )

    def check_names(self) -> None:
        """`check_name` for every name that an installed package offers."""
        for name in self._entry_points():
            self.check_name(name)

    def check_name(self, name: str) -> None:
        """Raise `SeatrialError` when more than one thing claims a name."""
        offers = self._offers(name)
        claims = [_package_of(offer) for offer in offers]
        if name in self._built_in:
            claims.insert(0, "Seatrial itself")
        elif (home := self._homes.get(name)) is not None:
            # An entry point may well name what its module registers.
            others = [offer for offer in offers if offer.value != home]
            claims = [home, *map(_package_of, others)] if others else []
        if len(claims) > 1:
            raise self._conflict(name, claims)

    def __getitem__(self, name: str) -> T:
        if name in self._registered:
            return self._registered[name]
        if name in self._loaded:
            return self._loaded[name]
        if name in self._built_in:
            return self._loaded.setdefault(name, self._accepted(name, load(self._built_in[name]), "Seatrial itself"))
        self.check_name(name)
        offers = self._offers(name)
        if not offers:
            raise KeyError(name)
        return self._loaded.setdefault(name, self._opened(name, offers[0]))

    def __iter__(self) -> Iterator[str]:
        # Each once, in order.
        yield from dict.fromkeys((*self._built_in, *self._registered, *sorted(self._entry_points())))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether the name is known; nothing is imported for that."""
        return isinstance(name, str) and (
            name in self._built_in or name in self._registered or name in self._entry_points()
        )

    def _opened(self, name: str, offer: EntryPoint) -> T:
        try:
            value = offer.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # The module of another package may raise anything, sys.exit() included.
            raise SeatrialError(
                self._fault,
                f"the {self.noun} {name!r} of {_package_of(offer)} cannot be imported: {type(error).__name__}: {error}",
                hint="install what it needs, or uninstall the package",
            ) from error
        # Its module may have registered it while it was imported.
        if name in self._registered:
            self.check_name(name)
            return self._registered[name]
        return self._accepted(name, value, _package_of(offer))

    def _accepted(self, name: str, value: object, source: str) -> T:
        try:
            return self._accept(name, value)
        except TypeError as error:
            raise SeatrialError(self._fault, f"the {self.noun} {name!r} of {source} cannot be used: {error}") from error

    def _offers(self, name: str) -> list[EntryPoint]:
        return self._entry_points().get(name, [])

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        if self._installed is None:
            from importlib.metadata import entry_points  # slow to import, and to search

            found: dict[str, list[EntryPoint]] = {}
            for offer in entry_points(group=self.group):
                same = found.setdefault(offer.name, [])
                # A package may be on the path twice, as with an editable install.
                if _package_of(offer) not in map(_package_of, same) or offer.value not in [each.value for each in same]:
                    same.append(offer)
            self._installed = found
        return self._installed

    def _conflict(self, name: str, claims: Iterable[str]) -> SeatrialError:
        return SeatrialError(
            self._fault,
            f"the name {name!r} is taken: the {self.noun} is offered by {' and by '.join(claims)}",
            hint=f"give one of them another name, or uninstall its package (entry points `{self.group}`)",
        )


def load(target: str) -> Any:
    """What `package.module:attribute` names, or the module when there is no attribute."""
    module, _, attribute = target.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def where(value: object) -> str:
    """Where something is defined, as `package.module:attribute` or a module."""
    name = getattr(value, "__qualname__", None)
    if name is None:
        if isinstance(getattr(value, "__name__", None), str) and hasattr(value, "__spec__"):
            return str(value.__name__)  # type: ignore[attr-defined]  # a module
        value = type(value)
        name = value.__qualname__
    return f"{value.__module__}:{name}"


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint: the known word that was probably meant, else all of them."""
    known = list(known)
    near = get_close_matches(word[:60].lower(), known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"one of: {', '.join(known)}"


def _package_of(offer: EntryPoint) -> str:
    return offer.value if offer.dist is None else f"{offer.dist.name} {offer.dist.version}"
