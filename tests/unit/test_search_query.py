"""What people type into a search."""

import pytest

from hivepipe.archive.search.query import Filters, Term, folded, fts_query, terms_of
from hivepipe.errors import SearchError


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        ("checkout", '"checkout"'),
        ("two words", '"two" AND "words"'),
        ('"a phrase" and', '"a phrase" AND "and"'),
        ("src/cart.py", '"src/cart.py"'),
        ("check*", '"check"*'),
        ('say"so', '"say""so"'),
        ("NOT a -b (c", '"not" AND "a" AND "-b" AND "(c"'),
        ("größe", '"größe"'),
        ("-- !! x", '"x"'),
    ],
)
def test_query(asked: str, query: str) -> None:
    assert fts_query(asked) == query


@pytest.mark.parametrize("asked", ["", "  ", '""', '" "', "\u3000"])
def test_nothing_asked(asked: str) -> None:
    with pytest.raises(SearchError):
        terms_of(asked)


@pytest.mark.parametrize("asked", ["--", '"', "*"])
def test_no_word_asked(asked: str) -> None:
    with pytest.raises(SearchError):
        fts_query(asked)
    assert terms_of(asked) == [Term(asked)]


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        ("Live_View", [Term("live_view")]),
        ('"error:  it"', [Term("error: it")]),
        ("pay* pay*", [Term("pay", begins_word=True)]),
        ("** |>", [Term("**"), Term("|>")]),
    ],
)
def test_terms(asked: str, terms: list[Term]) -> None:
    assert terms_of(asked) == terms


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        (Term("live_view"), "phoenix_live_view", "live_view"),
        (Term("view", begins_word=True), "live_view viewer view", "view"),
        (Term("view", True, True), "live_view viewer view", "view"),
        (Term("error:", True, True), "terror: an error: x", "error:"),
        (Term("|>", True, True), "a |> b", "|>"),
        (Term("x"), "abc", None),
    ],
)
def test_places(term: Term, text: str, found: str | None) -> None:
    place = term.place_in(text)
    assert (place and text[slice(*place)]) == found
    if term.begins_word and term.is_of_words and place:
        assert text[place[0] - 1] == " "


@pytest.mark.parametrize(
    ("one", "other"), [("ΟΔΟΣ", "οδος"), ("a\n \tb", "A b"), ("ÄÖÜ", "äöü"), ("a\u3000b", "a b")]
)
def test_what_is_the_same(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_a_project_is_the_folder_and_what_is_below_it() -> None:
    assert Filters.of(project="/shop").values == {"project": "/shop/"}
    assert Filters.of(project="/").values == {"project": "/"}
