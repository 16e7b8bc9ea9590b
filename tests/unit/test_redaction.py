"""Secrets go, everything else stays."""

import pytest

from hivepipe.redaction import RULES, redact_text

SECRETS = {
    "anthropic": "sk-ant-api03-AbCdEfGhIjKlMnOp1234",
    "openai project": "sk-proj-AbCdEfGhIjKlMnOp1234",
    "stripe": "sk_live_51Habcdefghijklm",
    "github": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github user": "ghu_abcdefghijklmnopqrstuvwxyz0123456789",
    "github fine": "github_pat_11ABCDEFG0abcdefghij_klmnop",
    "gitlab": "glpat-abcdefghij0123456789",
    "slack": "xoxb-1234567890-abc",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws session": "ASIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("around", ["{}", "key={} end", '{{"k":"{}"}}', "\n{}\n", "url?t={}&x=1"])
def test_a_secret_goes_and_what_is_around_it_stays(secret: str, around: str) -> None:
    clean = redact_text(around.format(secret))
    assert secret not in clean
    before, _, after = around.format("|").partition("|")
    assert clean.startswith(before)
    assert clean.endswith(after)
    assert "***" in clean


@pytest.mark.parametrize("word", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token_goes_whatever_it_looks_like(word: str) -> None:
    assert redact_text(f"Authorization: {word} abc.def-123") == (
        f"Authorization: {word} ***REDACTED***"
    )


@pytest.mark.parametrize("kind", ["RSA ", "OPENSSH ", "EC ", ""])
def test_a_private_key_goes_as_a_whole_also_if_its_end_was_cut_off(kind: str) -> None:
    block = f"-----BEGIN {kind}PRIVATE KEY-----\nMIIE\nabc\n-----END {kind}PRIVATE KEY-----"
    assert redact_text(f"x {block} y") == "x ***SSH_KEY*** y"
    assert redact_text(f"x {block[:50]}") == "x ***SSH_KEY***"


@pytest.mark.parametrize(
    "text",
    [
        "task-agent-3f2a9c0e1b7d4f66",
        "sk-learn-tutorial-notebook",
        "the bearer of this letter",
        "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "2026-11-21T01:00:00.000Z",
        "desk-lamp-0123456789-ABCDEFG",
        "",
    ],
)
def test_hashes_ids_times_and_words_survive(text: str) -> None:
    assert redact_text(text) == text


def test_every_rule_has_been_seen_to_act() -> None:
    seen = {placeholder for _, _, placeholder in RULES}
    assert {"***SSH_KEY***", "***AWS_KEY***", "***REDACTED***", " ***REDACTED***"} == seen
