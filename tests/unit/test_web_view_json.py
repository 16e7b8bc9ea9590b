"""The JSON of a view: the same objects from the fast and the slow serializer."""

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


WHOLE = {"list": [Thing(Pair(1, None))], "tuple": ("a", 2.5), "set": {3, 1, 2}, "deep": Thing([])}
SAID = {
    "list": [{"of": {"first": 1, "second": None}}],
    "tuple": ["a", 2.5],
    "set": [1, 2, 3],
    "deep": {"of": []},
}


@pytest.mark.parametrize("more", ["plain", "a lone \ud800", 1 << 70])
def test_what_stands_in_a_view_is_an_object(more: Any) -> None:
    assert json.loads(json_of({**WHOLE, "more": more})) == {**SAID, "more": more}
