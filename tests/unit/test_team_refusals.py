"""Errors of a connection without an SQLSTATE, whose text may be in any language."""

import pytest

from hivepipe.team.connection import _is_refusal

LOGIN = "hivepipe_machine_0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "is_refusal"),
    [
        (f"FATAL: Passwort-Authentifizierung für Benutzer »{LOGIN}« fehlgeschlagen", True),
        (f'FATAL: password authentication failed for user "{LOGIN}"', True),
        ('FATAL: no pg_hba.conf entry for host "127.0.0.1"', True),
        (f'FATAL: too many connections for role "{LOGIN}"', False),
        ("FATAL: das Datenbanksystem fährt herunter", False),
        ("FATAL: Passwort-Authentifizierung für Benutzer »ann« fehlgeschlagen", False),
    ],
)
def test_a_refusal_names_the_login(text: str, is_refusal: bool) -> None:
    assert _is_refusal(text) == is_refusal
