"""How words typed into a search are parsed and matched."""

import pytest

from hivepipe.archive.search.query import Filters, Term, folded, fts_query, query_of, terms_of
from hivepipe.errors import SearchError
from hivepipe.reading.search import around


@pytest.mark.parametrize(
    ("typed", "query"),
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
def test_typed_words_become_a_query(typed: str, query: str) -> None:
    assert fts_query(typed) == query


@pytest.mark.parametrize("typed", ["", "  ", '""', '" "', "\u3000", "--", '"', "*"])
def test_an_empty_search_is_refused_and_signs_alone_are_no_query_of_words(typed: str) -> None:
    with pytest.raises(SearchError):
        fts_query(typed)
    if typed in ("--", '"', "*"):
        assert terms_of(typed) == [Term(typed)]
    else:
        with pytest.raises(SearchError):
            terms_of(typed)


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("Live_View", [Term("live_view")]),
        ('"error:  it"', [Term("error: it")]),
        ("pay* pay*", [Term("pay", begins_word=True)]),
        ("** |>", [Term("**"), Term("|>")]),
    ],
)
def test_typed_words_become_terms(typed: str, terms: list[Term]) -> None:
    assert terms_of(typed) == terms


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
def test_the_place_of_a_term_in_a_text_is_found(term: Term, text: str, found: str | None) -> None:
    place = term.place_in(text)
    assert (place and text[slice(*place)]) == found
    if term.begins_word and term.is_of_words and place:
        assert text[place[0] - 1] == " "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ΟΔΟΣ", "οδος"),
        ("a\n \tb", "A b"),
        ("ÄÖÜ", "äöü"),
        ("a\u3000b", "a b"),
        ("cafe\u0301", "Café"),
        ("\u1112\u1161\u11ab", "한"),
    ],
)
def test_equivalent_texts_fold_to_the_same(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_a_project_is_the_folder_and_what_is_below_it() -> None:
    assert Filters.of(project="/shop").values == {"project": "/shop/"}
    assert Filters.of(project="/").values == {"project": "/"}


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (("one", "two"), "one two"),
        (("two words", "begin*"), '"two words" begin*'),
        (('say "two words"', "now"), 'say "two words" now'),
    ],
)
def test_a_word_with_a_space_is_a_phrase(words: tuple[str, ...], query: str) -> None:
    assert query_of(words) == query


def test_a_letter_that_is_longer_in_lower_case_moves_no_match() -> None:
    before, found, behind = around(f"{'İş ' * 50}{'x ' * 50}Hedef ve İzmir", terms_of("hedef"))
    assert (found, behind) == ("Hedef", " ve I\N{COMBINING DOT ABOVE}zmir")
    assert before.endswith("x x ")
    assert around("İzmir", terms_of("İzmir"))[1] == "I\N{COMBINING DOT ABOVE}zmir"
    decomposed = "I\N{COMBINING DOT ABOVE}zmir cafe\u0301"
    assert around(decomposed, terms_of("café"))[1] == "café"
    assert around("Café", terms_of("cafe\u0301"))[1] == "Café"
