"""A search reads only archives that may have new lines, and still finds every line."""

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

AddLine = Callable[[int, str], None]


def session(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


@pytest.fixture
def add_line(private_home: Home) -> AddLine:
    """Return a function that adds a line to a session's transcript and archives it."""
    command(private_home, "init", "--local", "--no-probe")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)

    def add(number: int, text: str) -> None:
        path = folder / f"{session(number)}.jsonl"
        more = {"sessionId": session(number), "cwd": str(private_home.project)}
        with path.open("ab") as file:
            file.write(line(path.stat().st_size % 50 + 1, text, **more))
        command(private_home, "archive", "sweep")

    return add


def found(home: Home, word: str) -> int:
    return find(str(home.path), Question(word), 100, with_facets=True).total


def archives_read(home: Home) -> list[str]:
    path = str(home.path)
    with closing(SearchIndex(index_path(path))) as index:
        return [each.session for each in unindexed(path, index, archives_of(path)).archived]


def settle(home: Home) -> None:
    """Set the folders' times as if they had been changed some time ago."""
    for folder in (home.path / "archive" / "main-session").iterdir():
        status = folder.stat()
        at = status.st_mtime_ns - 2 * module.SETTLED_NS
        os.utime(folder, ns=(at, at))
    found(home, "settled")


def test_indexed_archives_are_not_read_again(private_home: Home, add_line: AddLine) -> None:
    add_line(1, "the cart")
    add_line(2, "the cart again")
    assert found(private_home, "cart") == 2
    assert archives_read(private_home)  # it was changed just now
    settle(private_home)
    assert archives_read(private_home) == []
    assert found(private_home, "cart") == 2
    add_line(2, "more of the cart")
    assert session(2) in archives_read(private_home)
    assert found(private_home, "cart") == 3


def test_a_search_whose_time_is_over_still_indexes(private_home: Home, add_line: AddLine) -> None:
    for number in range(3):
        add_line(number, "the cart")
    home, left = str(private_home.path), [10**9]
    while left[-1]:
        left.append(find(home, Question("cart"), 100, indexing_secs=-1).not_indexed_bytes)
        assert left[-1] < left[-2]


def test_lines_of_removed_archives_are_not_shown(private_home: Home, add_line: AddLine) -> None:
    add_line(1, "the cart")
    settle(private_home)
    for path in Path(private_home.path, "archive", "main-session").rglob("*.jsonl"):
        path.unlink()
    assert not find(str(private_home.path), Question("cart"), 100).lines[0].match


def test_every_line_is_found_in_any_order_of_arrival(private_home: Home, add_line: AddLine) -> None:
    chance = random.Random(1)
    for number in range(12):
        add_line(chance.randrange(4), f"cart {number}")
        if chance.random() < 0.4:
            settle(private_home)
        assert found(private_home, "cart") == number + 1
