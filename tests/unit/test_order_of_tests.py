"""Each process of xdist begins with its long tests, and each test is executed once."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import with_long_tests_first


@dataclass
class Item:
    number: int
    is_long: bool

    def get_closest_marker(self, _name: str) -> bool:
        return self.is_long


@pytest.mark.parametrize("long", [0, 1, 5, 17, 20])
def test_no_test_is_lost_or_executed_twice(long: int) -> None:
    items: list[Any] = [Item(number, number >= 20 - long) for number in range(20)]
    for workers in range(1, 10):
        ordered = with_long_tests_first(items, workers)
        assert sorted(ordered, key=items.index) == items
