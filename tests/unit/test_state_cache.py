"""Results that are cached while their state is the same."""

from itertools import count

from hivepipe.reading.state_cache import StateCache


def test_a_result_is_computed_again_when_its_state_differs() -> None:
    cache: StateCache[int] = StateCache(2)
    numbers = count()
    found = [cache.get("a", state, lambda: next(numbers)) for state in (1, 1, 2, 2, 1)]
    assert found == [0, 0, 1, 1, 2]


def test_a_result_of_an_unknown_state_is_not_cached() -> None:
    cache: StateCache[int] = StateCache(2)
    numbers = count()
    assert [cache.get("a", None, lambda: next(numbers)) for _ in range(2)] == [0, 1]
    assert cache.get("a", 1, lambda: next(numbers)) == 2


def test_only_the_last_keys_are_cached() -> None:
    cache: StateCache[int] = StateCache(2)
    numbers = count()
    found = [cache.get(key, 1, lambda: next(numbers)) for key in "abcbca"]
    assert found == [0, 1, 2, 1, 2, 3]
