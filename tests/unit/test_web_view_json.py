"""The JSON of a view: the fast and the slow serializer give the same objects."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from hivepipe.web.view_json import json_of


class Pair(NamedTuple):
    first: object
    second: object


@dataclass(frozen=True)
class Thing:
    of: object


VALUES = {"list": [Thing(Pair(1, None))], "tuple": ("a", 2.5), "set": {3, 1, 2}, "deep": Thing([])}
EXPECTED = {
    "list": [{"of": {"first": 1, "second": None}}],
    "tuple": ["a", 2.5],
    "set": [1, 2, 3],
    "deep": {"of": []},
}


@pytest.mark.parametrize("more", ["plain", "a lone \ud800", 1 << 70])
def test_the_values_of_a_view_become_json(more: Any) -> None:
    assert json.loads(json_of({**VALUES, "more": more})) == {**EXPECTED, "more": more}
