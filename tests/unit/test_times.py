"""Stored times sort as texts, and an invalid date shows the format in letters."""

import time
from datetime import datetime

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.times import backoff_secs, in_store_form, now, stored_time

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


@pytest.mark.parametrize(
    ("zone", "local", "text"),
    [
        ("America/Santiago", "2026-09-06", "2026-09-06T04:00:00.000Z"),  # no midnight: 01:00
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00.000Z"),  # two midnights: the first
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:45:00.000Z"),  # 02:45
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00.000Z"),
        ("Europe/Berlin", "0999-01-01T12:00+00:00", "0999-01-01T12:00:00.000Z"),
    ],
)
def test_a_local_day_begins_where_the_clocks_change(
    monkeypatch: pytest.MonkeyPatch, zone: str, local: str, text: str
) -> None:
    with monkeypatch.context() as changed_zone:
        changed_zone.setenv("TZ", zone)
        time.tzset()
        found = in_store_form(datetime.fromisoformat(local))
    time.tzset()
    assert found == text


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
