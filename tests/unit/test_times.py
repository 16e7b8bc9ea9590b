"""Stored times sort as texts, and an invalid date shows the format in letters."""

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
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


@pytest.mark.parametrize(
    ("words", "formats"),
    [
        ("costs --since yesterday", "'yesterday' does not exist or is not written YYYY-MM-DD."),
        ("agents --day 2026-02-30", "'2026-02-30' does not exist or is not written YYYY-MM-DD."),
        ("forget --before 21.11.2026", "written YYYY-MM-DD."),
        ("search word --until soon", "written YYYY-MM-DD or YYYY-MM-DDTHH:MM."),
    ],
)
def test_the_format_of_a_date_is_named_in_letters(home: str, words: str, formats: str) -> None:
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 64
    assert formats in " ".join(done.stderr.split())
