"""Results that are kept while their state is the same."""

from itertools import count

from hivepipe.reading.unchanged import Unchanged


def test_a_result_is_found_again_when_its_state_differs() -> None:
    kept: Unchanged[int] = Unchanged(2)
    numbers = count()
    found = [kept.get("a", state, lambda: next(numbers)) for state in (1, 1, 2, 2, 1)]
    assert found == [0, 0, 1, 1, 2]


def test_an_unknown_state_keeps_nothing() -> None:
    kept: Unchanged[int] = Unchanged(2)
    numbers = count()
    assert [kept.get("a", None, lambda: next(numbers)) for _ in range(2)] == [0, 1]
    assert kept.get("a", 1, lambda: next(numbers)) == 2


def test_the_last_keys_are_kept() -> None:
    kept: Unchanged[int] = Unchanged(2)
    numbers = count()
    found = [kept.get(key, 1, lambda: next(numbers)) for key in "abcbca"]
    assert found == [0, 1, 2, 1, 2, 3]
