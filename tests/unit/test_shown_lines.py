"""A shown line is redacted again only if the rules in force have not redacted it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from hivepipe.archive.found_values import Learning
from hivepipe.cli.main import main
from hivepipe.operations.archive import archives_of
from hivepipe.reading import conversation as reading
from hivepipe.redact import edition
from tests.archive_scene import SESSION, TOKEN, line

RULE = "[[redaction.rules]]\nname = 'employee'\npattern = 'EMP-[0-9]+'\nkeywords = ['EMP-']\n"


@pytest.fixture
def write(home: Path, tmp_path: Path) -> Callable[..., None]:
    """Return a function that writes the transcript of the home's session and archives it."""
    path = tmp_path / ".claude" / "projects" / "-home-ana-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)

    def write(*texts: str) -> None:
        path.write_bytes(b"".join(line(number, text) for number, text in enumerate(texts)))
        for words in (["follow", "/"], ["sweep"]):
            done = CliRunner().invoke(main, ["archive", *words])
            assert done.exit_code == 0, done.output

    return write


@pytest.fixture
def archived(write: Callable[..., None], home: Path) -> Path:
    write("ask EMP-123", "thanks")
    (found,) = Path(archives_of(str(home)).root).rglob(f"*_{SESSION}.jsonl")
    return found


def shown(home: Path) -> str:
    pieces = reading.conversation(str(home), SESSION).pieces
    return re.sub(r":own-rule:\w+", "", " / ".join(piece.text for piece in pieces))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    load = reading.load_redactor
    monkeypatch.setattr(reading, "load_redactor", lambda home: found.append(home) or load(home))
    return found


@pytest.mark.parametrize("is_packed", [False, True])
def test_lines_redacted_by_the_same_rules_are_shown_unchanged(
    archived: Path, home: Path, loads: list[str], is_packed: bool
) -> None:
    (home / "config.toml").write_text("[retention]\nlogs = 9\n")  # no rules
    archives = archives_of(str(home))
    with archives.opened(archives.index.entries()[SESSION]) as kept:
        list(kept.pack() if is_packed else ())
    assert shown(home) == "ask EMP-123 / thanks"
    assert loads == []


def test_a_later_rule_is_applied(
    archived: Path, home: Path, write: Callable[..., None], loads: list[str]
) -> None:
    (home / "config.toml").write_text(RULE)
    assert shown(home) == "ask ***REDACTED*** / thanks"
    write(
        "ask EMP-123", "thanks", "more"
    )  # the archive now has lines redacted by either set of rules
    assert shown(home) == "ask ***REDACTED*** / thanks / more"
    assert len(loads) == 2
    (home / "config.toml").unlink()
    assert shown(home) == "ask EMP-123 / thanks / more"
    assert len(loads) == 3


def test_rules_of_another_release_and_lines_of_another_program_are_redacted(
    archived: Path, home: Path, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(edition, "_PACKAGE", b"another")
        assert shown(home) == "ask EMP-123 / thanks"
    assert len(loads) == 1
    archived.write_bytes(archived.read_bytes().replace(b"thanks", b"EMP-1 " + TOKEN.encode()))
    assert TOKEN not in shown(home)
    assert len(loads) == 2


def test_lines_with_a_checkpoint_of_an_earlier_release_are_redacted_again(
    archived: Path, home: Path, loads: list[str]
) -> None:
    checkpoint = archived.with_name(f".{archived.stem}.reach")
    first, second = checkpoint.read_bytes().splitlines(keepends=True)
    assert second.startswith(b"rules ")
    for left in (first, first + second[:20], first + second.replace(b" ", b" f", 1)):
        checkpoint.write_bytes(left)
        assert shown(home) == "ask EMP-123 / thanks"
    assert len(loads) == 3


def test_a_secret_that_was_found_later_is_not_shown(
    archived: Path, home: Path, loads: list[str]
) -> None:
    archives = archives_of(str(home))
    session = reading.load_redactor(str(home)).of_session()
    session.redact_line(line(3, "export SHOP_API_KEY=q8Zt5Lw0Xv3Bn7Yk"))
    assert session.known
    with archives.opened(archives.index.entries()[SESSION]) as kept:
        Learning.of(kept).with_known(session.known).write(kept)
    loads.clear()
    assert shown(home) == "ask EMP-123 / thanks"
    assert len(loads) == 1
