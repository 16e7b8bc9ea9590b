"""What people type into a search."""

import pytest

from hivepipe.errors import SearchError
from hivepipe.search.query import Filters, fts_query


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        ("checkout", '"checkout"'),
        ("two words", '"two" AND "words"'),
        ('"a phrase" and', '"a phrase" AND "and"'),
        ("src/cart.py", '"src/cart.py"'),
        ("check*", '"check"*'),
        ('say"so', '"say""so"'),
        ("NOT a -b (c", '"NOT" AND "a" AND "-b" AND "(c"'),
        ("größe", '"größe"'),
        ("-- !! x", '"x"'),
    ],
)
def test_query(asked: str, query: str) -> None:
    assert fts_query(asked) == query


@pytest.mark.parametrize("asked", ["", "  ", "--", '"', '""', "*"])
def test_nothing_asked(asked: str) -> None:
    with pytest.raises(SearchError):
        fts_query(asked)


def test_filters() -> None:
    assert Filters.of().sql == ""
    asked = Filters.of(session="7b1f", since="2026-11-01T00:00:00.000Z")
    assert asked.values == {"session": "7b1f", "since": "2026-11-01T00:00:00.000Z"}
    assert asked.sql.count("AND") == 2


def test_a_project_is_the_folder_and_what_is_below_it() -> None:
    assert Filters.of(project="/shop").values == {"project": "/shop/"}
    assert Filters.of(project="/").values == {"project": "/"}
