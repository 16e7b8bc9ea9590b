"""What a member of a team decides and is told without a server."""

import itertools

import pytest

from hivepipe.cli.team.member import _SHARES
from hivepipe.errors import TeamError
from hivepipe.team.archives import leftovers
from hivepipe.team.connection import _is_refusal
from hivepipe.team.policy import shared_level
from hivepipe.team.project_names import project_name
from hivepipe.team.shared_rows import SHARED

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


WORDS = {
    ("sessions", "objective"): "titles", ("agents", "name"): "names and errors of agents",
    ("agents", "role"): "names and errors of agents",
    ("agents", "error"): "names and errors of agents", ("summaries", "summary"): "summaries",
    ("summaries", "key_learnings"): "summaries", ("summaries", "files"): "summaries",
    ("summaries", "open_ends"): "summaries", ("prompts", "prompt"): "prompts",
    ("skill_uses", "arguments"): "arguments of skills and commands",
    ("session_logs", "message"): "log lines", ("session_logs", "data"): "log lines",
}  # fmt: skip
HIDDEN = [(table, name) for table, shared in SHARED.items() for name in shared.hidden]


@pytest.mark.parametrize(("table", "column"), HIDDEN)
def test_each_text_is_named_at_its_level(table: str, column: str) -> None:
    assert WORDS[table, column] in _SHARES[SHARED[table].hidden_at]


def test_names_in_metadata_and_keys_of_deleted_rows_are_named() -> None:
    assert all(word in _SHARES["metadata"] for word in ("types of agents", "skills", "commands"))
    assert "keys of deleted rows: ids" in _SHARES["nothing"]
