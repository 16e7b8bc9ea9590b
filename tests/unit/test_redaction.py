"""Secrets are removed, and everything else stays."""

import hashlib

import pytest

from hivepipe.redact import redact_text
from hivepipe.redact.redactor import Redactor


@pytest.mark.parametrize(
    "text",
    [
        'password = "{}',
        "DB_PASSWORD: '{}",
        '{{"a": 1, "password": "{}',
        '{{\\"password\\": \\"{}',
        "password := `{}",
        'connection.setPassword("{}',
        'connection.setPassword("{}"',
        'api_key = "{}',
        "deploy --flag x --token='{}",
    ],
)
def test_a_secret_whose_end_was_cut_off_is_removed(text: str) -> None:
    """A hook hands over the first 200 or 2,000 characters of a text."""
    clean = redact_text(text.format("hunter2secret9x"))
    assert clean.startswith(text.format("***REDACTED***"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("id AKIAIOSFODNN7EXAMPLE.", "id ***AWS_KEY***."),
        ("mail ana@shop.io, please", "mail ***EMAIL***, please"),
        ("export DB_PASSWORD='hunter2'", "export DB_PASSWORD='***REDACTED***'"),
        ('{"password": "hunter2"}', '{"password": "***REDACTED***"}'),
        ("postgres://ana:hunter2@db/shop", "postgres://ana:***REDACTED***@db/shop"),
        (
            "x -----BEGIN EC PRIVATE KEY-----\nMHcCAQE\n-----END EC PRIVATE KEY----- y",
            "x ***SSH_KEY*** y",
        ),
        ("AKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLF", "***AWS_KEY*** ***AWS_KEY***"),
        ("password=sk-ant-api03-AbCdEfGhIjKlMnOp1234", "password=***REDACTED***"),
    ],
)
def test_each_kind_has_its_placeholder(text: str, clean: str) -> None:
    assert redact_text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:org/repo.git",
        "user@host",
        "@scope/pkg@1.2.3",
        "name@.service",
        "Co-Authored-By: Claude <noreply@anthropic.com>",
        "someone@example.com, a@example.org, b@mail.example.net",
        "https://shop.io/users/ana@shop.io/cart",
        "/home/ana@shop.io/project",
    ],
)
def test_what_only_looks_like_an_address_survives(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("literal", "expression"),
    [
        ('password = "hunter2"', "password = hunter2()"),
        ("PASSWORD=hunter2", "PASSWORD=$HUNTER2"),
        ("password: 'hunter2'", "password: HunterType"),
        ('f(password="hunter2")', "f(password=hunter.password)"),
        ('token = "8f4b1c2d9e0a7f6b5c4d"', "token = lexer.token_2()"),
    ],
)
def test_only_a_literal_is_a_password(literal: str, expression: str) -> None:
    assert redact_text(literal) != literal
    assert redact_text(expression) == expression


@pytest.mark.parametrize("before", ["", "instance-", "task-agent-", "ab.", "2026-01-02T03:"])
def test_what_begins_as_an_id_is_searched_for_tokens(before: str) -> None:
    token = "e2b_" + hashlib.sha1(b"x").hexdigest()
    assert token not in redact_text(before + token)
    of_name = f"instance-fc-{hashlib.md5(b'x').hexdigest()}"
    assert redact_text(of_name) == of_name


def test_a_text_that_takes_too_long_is_replaced_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hivepipe.redact.redactor.LEAF_SECS", -1.0)
    secret = "the password is hunter2"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    assert redact_text(secret) == f"***UNREDACTABLE sha256={digest} bytes=23***"


def test_a_text_with_half_a_character_is_redacted() -> None:
    assert redact_text("\ud83d mail ana@shop.io \udc00") == "\ud83d mail ***EMAIL*** \udc00"


def test_an_allowed_text_stays_a_similar_one_does_not() -> None:
    redactor = Redactor(allowed=(r"support@shop\.io",))
    assert redactor.redact_text("support@shop.io") == "support@shop.io"
    assert redactor.redact_text("xsupport@shop.io") == "***EMAIL***"
