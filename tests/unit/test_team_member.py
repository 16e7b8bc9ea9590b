"""What a member of a team decides without a server: levels, names, refusals and leftovers."""

import itertools

import pytest

from hivepipe.errors import TeamError
from hivepipe.team.archives import leftovers
from hivepipe.team.connection import _is_refusal
from hivepipe.team.policy import shared_level
from hivepipe.team.project_names import project_name

LEVELS = ["nothing", "metadata", "prompts", "everything"]
LOGIN = "hivepipe_machine_0123456789abcdef"


def test_the_stricter_level_applies() -> None:
    for users, teams in itertools.product(range(4), repeat=2):
        level = shared_level("blue", {"*": LEVELS[users]}, {"*": LEVELS[teams]})
        assert level == LEVELS[min(users, teams)]


@pytest.mark.parametrize("folder", ["", "shop", "<script>/x", "../shop", "C:\\shop"])
def test_a_folder_that_is_no_absolute_path_has_no_name(folder: str) -> None:
    assert project_name(folder) == ""


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
def test_a_refusal_without_an_sqlstate_names_the_login(text: str, is_refusal: bool) -> None:
    """The text may be in any language."""
    assert _is_refusal(text) == is_refusal


def test_a_store_that_is_away_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Objects of archives that cannot be deleted now are counted."""

    def fail(_connection: object) -> dict[str, int]:
        raise TeamError("the store at s3.example does not answer")

    monkeypatch.setattr(leftovers, "delete_now", fail)
    monkeypatch.setattr(leftovers, "_waiting", lambda _connection: {leftovers.WAITING: 3})
    assert leftovers.delete_now_or_later(None) == {leftovers.WAITING: 3}  # type: ignore[arg-type]
    assert "the store at s3.example does not answer" in caplog.text
