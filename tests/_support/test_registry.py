"""Registries are open: by entry point and by decorator. A name stands for one thing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from strategies.plugin import install

from seatrial._support.registry import Registry, where
from seatrial.errors import SeatrialError

GROUP = "seatrial.test_animals"


class Cat:
    pass


class Dog:
    pass


def _accept(name: str, value: object) -> Any:
    if not isinstance(value, type):
        raise TypeError(f"`{where(value)}` is not a class")
    return value


def animals() -> Registry[Any]:
    return Registry("animal", GROUP, {"ordered": "collections:OrderedDict"}, _accept)


def offer(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch, text: str = "", **offers: str) -> None:
    install(folder / package, package, {f"{package}_module": text}, {GROUP: offers})
    monkeypatch.syspath_prepend(str(folder / package))


def found(registry: Registry[Any], name: str) -> Any:
    registry.check_name(name)
    return registry.find(name)


def refused(registry: Registry[Any], name: str) -> str:
    with pytest.raises(SeatrialError) as caught:
        found(registry, name)
    assert caught.value.code == "invalid_config"
    return str(caught.value)


def test_what_was_registered_is_found_by_its_name() -> None:
    registry = animals()
    assert registry.register("cat")(Cat) is Cat
    assert (registry["cat"], list(registry), len(registry)) == (Cat, ["ordered", "cat"], 2)
    assert (registry.is_built_in("cat"), registry.is_built_in("ordered")) == (False, True)
    assert list(registry.built_in()) == ["ordered"]


def test_an_unknown_name_is_an_error_with_the_nearest_one() -> None:
    registry = animals()
    registry.register("cat")(Cat)
    assert refused(registry, "kat") == "unknown animal 'kat' (did you mean `cat`?)"
    assert refused(registry, "zzz") == "unknown animal 'zzz' (one of: ordered, cat)"


def test_a_name_cannot_be_registered_twice() -> None:
    registry = animals()
    registry.register("cat")(Cat)
    registry.register("cat")(Cat)  # a module that is loaded again
    with pytest.raises(SeatrialError, match=r"'cat' is taken.*:Cat and by .*:Dog"):
        registry.register("cat")(Dog)
    with pytest.raises(SeatrialError, match="'ordered' is taken: the animal is offered by Seatrial itself and by"):
        registry.register("ordered")(Cat)
    assert registry["cat"] is Cat


@pytest.mark.parametrize("name", ["", "a b", "a:b", "1a", "x" * 65, "a\n", None])
def test_a_name_is_a_plain_word(name: Any) -> None:
    with pytest.raises(SeatrialError, match="cannot be the name of a animal"):
        animals().register(name)


def test_what_cannot_be_used_is_refused_with_the_reason() -> None:
    with pytest.raises(SeatrialError, match=r"the animal 'seven' .* cannot be used: .* is not a class"):
        animals().register("seven")(7)


def test_an_installed_package_offers_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, "zoo", monkeypatch, "class Lion: pass\n", lion="zoo_module:Lion")
    registry = animals()
    assert "lion" in registry
    assert "zoo_module" not in sys.modules  # known by name, and not imported
    assert registry["lion"].__name__ == "Lion"
    assert registry["lion"] is registry["lion"]


def test_two_packages_that_offer_one_name_are_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, "zoo_a", monkeypatch, "class Lion: pass\n", lion="zoo_a_module:Lion", ordered="zoo_a_module:Lion")
    offer(tmp_path, "zoo_b", monkeypatch, "class Lion: pass\n", lion="zoo_b_module:Lion")
    registry = animals()
    for said in (refused(registry, "lion"), refused(animals(), "lion")):
        assert "zoo_a 1.0" in said
        assert "zoo_b 1.0" in said
    assert "Seatrial itself and by zoo_a 1.0" in refused(registry, "ordered")
    registry.check_name("unknown")


def test_an_entry_point_may_name_what_its_module_registers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = animals()
    shared = ModuleType("shared_registry")
    monkeypatch.setattr(shared, "registry", registry, raising=False)
    monkeypatch.setitem(sys.modules, "shared_registry", shared)
    text = "from shared_registry import registry\n@registry.register('bear')\nclass Bear: pass\n"
    offer(tmp_path, "woods", monkeypatch, text, bear="woods_module:Bear")
    assert registry["bear"].__name__ == "Bear"
    registry.check_name("bear")
    with pytest.raises(SeatrialError, match=r"'bear' is taken.*woods_module:Bear and by .*:Dog"):
        registry.register("bear")(Dog)


@pytest.mark.parametrize("body", ["raise ValueError('no')", "import sys; sys.exit(0)", "import nothing_of_this_name"])
def test_a_package_that_cannot_be_imported_is_named(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = f"broken{abs(hash(body))}"
    offer(tmp_path, package, monkeypatch, body, lion=f"{package}_module:Lion")
    registry = animals()
    assert f"the animal 'lion' of {package} 1.0 cannot be imported" in refused(registry, "lion")
    assert registry["ordered"].__name__ == "OrderedDict"  # it costs no other


def test_help_searches_no_installed_packages() -> None:
    code = "import sys\nfrom seatrial.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print('importlib.metadata' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"
