"""Nouns and verbs agree with their number."""

import pytest

from hivepipe.text.plurals import agreeing, counted, plural


@pytest.mark.parametrize(
    ("number", "thing", "verb", "expected"),
    [
        (0, "failed job", "", "0 failed jobs"),
        (1, "failed job", "", "1 failed job"),
        (2, "failed job", "", "2 failed jobs"),
        (1234, "event", "wait on disk", "1,234 events wait on disk"),
        (1, "event", "wait on disk", "1 event waits on disk"),
        (1, "worker", "are done", "1 worker is done"),
        (1, "log", "have", "1 log has"),
        (1, "file", "were left", "1 file was left"),
        (2, "entry", "", "2 entries"),
        (2, "day", "", "2 days"),
        (3, "Claude Code process", "", "3 Claude Code processes"),
        (2, "text of a rule", "", "2 texts of a rule"),
    ],
)
def test_noun_and_verb_agree_with_the_number(
    number: int, thing: str, verb: str, expected: str
) -> None:
    assert counted(number, thing, verb) == expected
    assert (plural("archived worker"), agreeing(1, "go on")) == ("archived workers", "goes on")
