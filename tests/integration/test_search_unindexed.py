"""A search looks only at archives that may have new lines, and still finds every line."""

import os
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.archive.search.index import SearchIndex
from hivepipe.operations import unindexed as module
from hivepipe.operations.archive import archives_of
from hivepipe.operations.search import index_path
from hivepipe.operations.unindexed import unindexed
from hivepipe.reading.search import Question, find
from tests.archive_scene import line
from tests.conftest import Home
from tests.integration.test_cli_listings import command

Say = Callable[[int, str], None]


def session(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


@pytest.fixture
def say(private_home: Home) -> Say:
    """Add a line to the transcript of a session, and archive it."""
    command(private_home, "init", "--local")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)

    def said(number: int, text: str) -> None:
        path = folder / f"{session(number)}.jsonl"
        more = {"sessionId": session(number), "cwd": str(private_home.project)}
        with path.open("ab") as file:
            file.write(line(path.stat().st_size % 50 + 1, text, **more))
        command(private_home, "archive", "sweep")

    return said


def found(home: Home, word: str) -> int:
    return find(str(home.path), Question(word), 100, with_facets=True).total


def looked_at(home: Home) -> list[str]:
    path = str(home.path)
    with closing(SearchIndex(index_path(path))) as index:
        return [each.session for each in unindexed(path, index, archives_of(path)).archived]


def settle(home: Home) -> None:
    """Make the folders look as if they had changed a while ago."""
    for folder in (home.path / "archive" / "main-session").iterdir():
        status = folder.stat()
        at = status.st_mtime_ns - 2 * module.SETTLED_NS
        os.utime(folder, ns=(at, at))
    found(home, "settled")


def test_what_is_indexed_is_not_looked_at_again(private_home: Home, say: Say) -> None:
    say(1, "the cart")
    say(2, "the cart again")
    assert found(private_home, "cart") == 2
    assert looked_at(private_home)  # it changed just now
    settle(private_home)
    assert looked_at(private_home) == []
    assert found(private_home, "cart") == 2
    say(2, "more of the cart")
    assert session(2) in looked_at(private_home)
    assert found(private_home, "cart") == 3


def test_an_archive_of_a_settled_folder_is_found(private_home: Home, say: Say) -> None:
    say(1, "the cart")
    settle(private_home)
    say(3, "another cart")
    assert found(private_home, "cart") == 2


def test_an_index_that_was_deleted_has_all_again(private_home: Home, say: Say) -> None:
    say(1, "the cart")
    say(2, "the cart again")
    settle(private_home)
    for path in private_home.path.glob("search.db*"):
        path.unlink()
    assert found(private_home, "cart") == 2


def test_lines_of_removed_archives_are_not_shown(private_home: Home, say: Say) -> None:
    say(1, "the cart")
    settle(private_home)
    for path in Path(private_home.path, "archive", "main-session").rglob("*.jsonl"):
        path.unlink()
    assert not find(str(private_home.path), Question("cart"), 100).lines[0].match


@pytest.mark.parametrize("seed", [1, 2])
def test_every_line_is_found_in_whatever_order_it_comes(
    private_home: Home, say: Say, seed: int
) -> None:
    chance = random.Random(seed)
    for number in range(12):
        say(chance.randrange(4), f"cart {number}")
        if chance.random() < 0.4:
            settle(private_home)
        assert found(private_home, "cart") == number + 1
