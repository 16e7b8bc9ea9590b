"""The content of a view without the homes that cannot be read, and its JSON."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from hivepipe.errors import HivepipeError, StoreError
from hivepipe.reading.homes import KnownHome
from hivepipe.web.view_content import content_of
from hivepipe.web.view_json import json_of
from hivepipe.web.view_query import Content, ViewQuery

HOMES = [KnownHome(key, f"/homes/{key}", f"/projects/{key}") for key in "abc"]


class View:
    """A view that cannot read the damaged homes and counts its calls."""

    def __init__(self, *damaged: str) -> None:
        self.damaged = damaged
        self.number = 0

    def __call__(self, query: ViewQuery) -> Content:
        self.number += 1
        for known in query.homes:
            if known.key in self.damaged:
                raise StoreError(f"cannot read {known.home}")
        return {"shown": [known.key for known in query.homes]}


def test_a_damaged_home_is_named_and_the_others_are_shown() -> None:
    view = View()
    assert content_of(view, ViewQuery(HOMES)) == {"shown": ["a", "b", "c"], "unreadable": []}
    assert view.number == 1
    found = content_of(View("b"), ViewQuery(HOMES))
    assert found["shown"] == ["a", "c"]
    assert found["unreadable"] == [{"project": "/projects/b", "reason": "cannot read /homes/b"}]


@pytest.mark.parametrize("homes", [HOMES, HOMES[1:2]])
def test_the_reason_is_raised_if_no_home_can_be_read(homes: list[KnownHome]) -> None:
    with pytest.raises(HivepipeError, match="cannot read /homes/b"):
        content_of(View("a", "b", "c"), ViewQuery(homes))


def test_damaged_data_is_no_server_error() -> None:
    def view(query: ViewQuery) -> Content:
        if any(known.key == "b" for known in query.homes):
            raise TypeError("can't concat int to bytes")
        return {"shown": [known.key for known in query.homes]}

    found = content_of(view, ViewQuery(HOMES))
    assert found["shown"] == ["a", "c"]
    reason = "this cannot be read: TypeError: can't concat int to bytes"
    assert found["unreadable"] == [{"project": "/projects/b", "reason": reason}]
    with pytest.raises(HivepipeError, match="TypeError"):
        content_of(view, ViewQuery(HOMES[1:2]))


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
