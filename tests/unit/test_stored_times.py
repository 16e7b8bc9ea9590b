"""Stored times sort as texts, also those of long ago."""

import pytest

from hivepipe.times import backoff_secs, now, stored_time

DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_763_690_400_123_999_999, "2025-11-21T02:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_cut_to_milliseconds(time_ns: int, text: str) -> None:
    assert stored_time(time_ns) == text


def test_a_time_of_long_ago_sorts_first() -> None:
    text, time_ns = now()
    assert text == stored_time(time_ns)
    assert stored_time(time_ns - 999_999 * DAY_NS) < "1970" < text


def test_a_delay_doubles_up_to_the_longest_however_many_failures() -> None:
    delays = [backoff_secs(1.5, failures, 60.0) for failures in (0, 1, 2, 6, 5000)]
    assert delays == [1.5, 3.0, 6.0, 60.0, 60.0]
