"""Recall and precision: published token formats, secrets without a form, texts without any."""

import json
import random
from collections import Counter

from hivepipe.redact import redact_line
from tests.redaction_contexts import (
    KEY_CONTEXTS,
    KEY_FORMS,
    KEY_NAMES,
    PASSWORD_CONTEXTS,
    PASSWORD_NAMES,
    PASSWORDS,
)
from tests.redaction_corpus import (
    FORMS,
    NAMED_FORMS,
    WRAPPINGS,
    expand,
    negatives,
    positives,
    survives,
)

OF_EACH_KIND = 12


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


LEAST_KEYS = 0.80
LEAST_PASSWORDS = 0.65


def recall(secrets: tuple[str, ...], names: tuple[str, ...], contexts: tuple[str, ...]) -> float:
    """Return the share of the secrets that lose more than a third of their characters."""
    chance = random.Random(1)
    gone = 0
    for context in contexts:
        for form in secrets:
            secret = expand(form, chance)
            text = context.format(N=chance.choice(names), V=secret)
            line, _ = redact_line(json.dumps({"content": text}, ensure_ascii=False).encode())
            kept = json.loads(line)["content"]
            size = max(4, len(secret) * 2 // 3)
            gone += not any(secret[at : at + size] in kept for at in range(len(secret) - size + 1))
    return gone / (len(contexts) * len(secrets))


def test_most_keys_and_passwords_without_a_form_are_removed() -> None:
    assert recall(KEY_FORMS, KEY_NAMES, KEY_CONTEXTS) >= LEAST_KEYS
    assert recall(PASSWORDS, PASSWORD_NAMES, PASSWORD_CONTEXTS) >= LEAST_PASSWORDS


def test_a_key_of_capitals_and_digits_is_removed() -> None:
    for seed in range(3):
        secret = expand("<u32>", random.Random(seed))
        line, _ = redact_line(b"STEAM_API_KEY=%s" % secret.encode())
        assert line == b"STEAM_API_KEY=***REDACTED***"
