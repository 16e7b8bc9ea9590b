"""Recall and precision on labelled lines: published token formats, and texts without secrets."""

from collections import Counter

from hivepipe.redact import redact_line
from tests.redaction_corpus import FORMS, NAMED_FORMS, WRAPPINGS, negatives, positives, survives

OF_EACH_KIND = 20


def test_every_secret_is_removed_in_every_wrapping() -> None:
    labelled = list(positives(seed=1, of_each_kind=OF_EACH_KIND))
    kinds = {item.kind for item in labelled}
    assert len(kinds) == len(FORMS) + len(NAMED_FORMS) + 1
    assert {item.wrapping for item in labelled} == set(WRAPPINGS)
    assert len(labelled) >= 25 * OF_EACH_KIND * len(WRAPPINGS)
    left = Counter(
        (item.kind, item.wrapping) for item in labelled if survives(item, redact_line(item.line)[0])
    )
    assert not left


def test_a_remaining_secret_is_detected() -> None:
    assert all(survives(item, item.line) for item in positives(seed=2, of_each_kind=1))


def test_lines_without_secrets_are_unchanged() -> None:
    lines = list(negatives(seed=1))
    assert len(lines) >= 300
    assert [line for line in lines if redact_line(line) != (line, ())] == []
