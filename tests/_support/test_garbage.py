from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from seatrial._support.garbage import NEW_OBJECTS, rare_collections


@pytest.fixture(autouse=True)
def python_s_own_threshold() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_the_collector_looks_less_often_and_as_before_afterwards() -> None:
    with rare_collections():
        assert gc.get_threshold() == (NEW_OBJECTS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_the_threshold_is_put_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), rare_collections():
        raise ValueError("broken")
    assert gc.get_threshold() == (700, 10, 10)


def test_two_experiments_that_overlap_leave_the_threshold_as_it_was() -> None:
    first, second = rare_collections(), rare_collections()
    with first:
        second.__enter__()
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [0, NEW_OBJECTS])
def test_a_collector_that_is_off_or_rarer_still_stays_as_it_is(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with rare_collections():
        assert gc.get_threshold() == (own, 10, 10)
