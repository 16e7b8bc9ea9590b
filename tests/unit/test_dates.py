"""The error of an invalid date shows the format in letters: YYYY-MM-DD."""

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main


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
