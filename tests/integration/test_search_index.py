"""The search index on files: it finds what grep finds, is extended, and survives kills."""

import json
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from gzip import BadGzipFile
from itertools import islice
from pathlib import Path

import pytest

from hivepipe.archive.search import index
from hivepipe.archive.search.index import Archived, SearchIndex
from hivepipe.archive.search.index_file import remove_index
from hivepipe.archive.search.query import Filters, terms_of
from hivepipe.errors import SearchError
from hivepipe.operations.search import catch_up
from tests.conftest import until

WORDS = [f"word{n}" for n in range(200)]


def lines_of(path: Path) -> Callable[[int], Iterator[tuple[int, bytes]]]:
    def lines_from(offset: int) -> Iterator[tuple[int, bytes]]:
        with path.open("rb") as file:
            file.seek(offset)
            for raw in file:
                yield offset, raw
                offset += len(raw)

    return lines_from


def archived(path: Path, **more: str) -> Archived:
    known = {"session": path.stem, "agent": "", "project": "/shop", **more}
    return Archived(path.stem, **known, size=path.stat().st_size, lines_from=lines_of(path))


def write(path: Path, texts: list[str], day: int = 1) -> None:
    with path.open("a") as file:
        for number, text in enumerate(texts):
            at = f"2026-11-{day:02d}T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
            line = {"type": "user", "timestamp": at, "message": {"content": text}}
            file.write(json.dumps(line) + "\n")


def talk(seed: int, lines: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=8)) for _ in range(lines)]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[SearchIndex]:
    made = SearchIndex(tmp_path / "search.db")
    yield made
    made.close()


def test_an_unreadable_archive_is_skipped(tmp_path: Path, opened: SearchIndex) -> None:
    def damaged(_offset: int) -> Iterator[tuple[int, bytes]]:
        raise BadGzipFile("cut off")

    path = tmp_path / "s.jsonl"
    write(path, ["alpha"])
    bad = replace(archived(path), key="bad", lines_from=damaged)
    catch_up(opened, [bad, archived(path)], lambda _bytes: None)
    assert opened.count(terms_of("alpha"), Filters()) == 1


def test_only_new_lines_are_read(tmp_path: Path, opened: SearchIndex) -> None:
    path = tmp_path / "s.jsonl"
    write(path, ["alpha"])
    assert opened.catch_up(archived(path)) == 1
    size = path.stat().st_size
    write(path, ["alpha beta"])
    began: list[int] = []

    def watched(offset: int) -> Iterator[tuple[int, bytes]]:
        began.append(offset)
        return lines_of(path)(offset)

    grown = archived(path)
    again = Archived(grown.key, grown.session, "", "/shop", grown.size, watched)
    assert opened.missing_bytes(again) == grown.size - size
    assert opened.catch_up(again) == 1
    assert opened.catch_up(again) == 0
    assert began == [size]
    assert opened.count(terms_of("alpha"), Filters()) == 2


def test_filters_by_session_agent_project_and_time(tmp_path: Path, opened: SearchIndex) -> None:
    for number, (agent, project) in enumerate(
        [("", "/shop"), ("Explore", "/shop/web"), ("", "/shopping")]
    ):
        path = tmp_path / f"{number}-session.jsonl"
        write(path, ["needle"], day=number + 1)
        opened.catch_up(archived(path, agent=agent, project=project))

    def keys(**asked: str) -> list[str]:
        return [hit.key[0] for hit in opened.find(terms_of("needle"), Filters.of(**asked), 10)]

    assert keys() == ["2", "1", "0"]
    assert keys(project="/shop") == ["1", "0"]
    assert keys(project="/sh_p") == keys(project="/SHOP") == []
    assert keys(session="2-ses") == ["2"]
    assert keys(session="2_ses") == []
    assert keys(agent="Explore") == ["1"]
    assert keys(since="2026-11-02T00:00:00.000Z") == ["2", "1"]
    assert keys(until="2026-11-02T00:00:00.000Z", project="/shop") == ["0"]
    assert opened.count(terms_of("needle"), Filters.of(project="/shop")) == 2


def test_an_interrupted_indexing_is_continued(
    tmp_path: Path, opened: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LINES_PER_COMMIT", 10)
    path = tmp_path / "s.jsonl"
    write(path, talk(1, 95))

    def interrupted(_offset: int) -> Iterator[tuple[int, bytes]]:
        yield from islice(lines_of(path)(0), 45)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened.catch_up(replace(archived(path), lines_from=interrupted))
    assert opened.catch_up(archived(path)) == 55
    assert opened.missing_bytes(archived(path)) == 0


def test_parallel_indexing_with_a_kill_adds_each_line_once(tmp_path: Path) -> None:
    """Of two processes that index the same files one is killed; every line is indexed once."""
    paths = [tmp_path / f"s{number}.jsonl" for number in range(3)]
    for number, path in enumerate(paths):
        write(path, talk(number, 1500))
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from hivepipe.archive.search import index; index.LINES_PER_COMMIT = 50\n"
        "from tests.integration.test_search_index import archived\n"
        "opened = index.SearchIndex(Path(sys.argv[2]))\n"
        "for path in sys.argv[3:]: opened.catch_up(archived(Path(path)))\n"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", code, root, str(tmp_path / "search.db"), *map(str, paths)]
    first, second = (subprocess.Popen(command) for _ in range(2))
    until(lambda: _passages(tmp_path) > 300, "nothing indexed")
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL, "it ended before the kill"
    assert second.wait(timeout=60) == 0
    assert _passages(tmp_path) == 4_500
    opened = SearchIndex(tmp_path / "search.db")
    wanted = [text for number in range(3) for text in talk(number, 1500) if "word7" in text]
    assert opened.count(terms_of("word7"), Filters()) == len(wanted) > 0
    opened.close()


def _passages(folder: Path) -> int:
    try:
        db = sqlite3.connect(f"file:{folder}/search.db?mode=ro", uri=True)
        try:
            return int(db.execute("SELECT count(*) FROM passages").fetchone()[0])
        finally:
            db.close()
    except sqlite3.OperationalError:
        time.sleep(0.01)
        return 0


def test_the_index_is_private_and_can_be_removed(tmp_path: Path, opened: SearchIndex) -> None:
    path = tmp_path / "s.jsonl"
    write(path, ["canary-in-the-index"])
    opened.catch_up(archived(path))
    assert stat.S_IMODE((tmp_path / "search.db").stat().st_mode) == 0o600
    opened.close()
    assert remove_index(tmp_path / "search.db") > 0
    assert list(tmp_path.glob("search.db*")) == []
    assert remove_index(tmp_path / "search.db") == 0


def test_a_later_error_is_reported_with_the_index(tmp_path: Path, opened: SearchIndex) -> None:
    path = tmp_path / "s.jsonl"
    write(path, ["alpha"])
    db = sqlite3.connect(tmp_path / "search.db", isolation_level=None)
    db.execute("ALTER TABLE passages RENAME TO gone")
    with pytest.raises(SearchError, match=r"search\.db: no such table"):
        opened.catch_up(archived(path))
    with pytest.raises(SearchError, match=r"search\.db: no such table"):
        opened.find(terms_of("alpha"), Filters(), 10)
    db.execute("ALTER TABLE gone RENAME TO passages")
    db.close()
    assert opened.catch_up(archived(path)) == 1


def test_a_stopped_catch_up_leaves_a_usable_index(
    tmp_path: Path, opened: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LINES_PER_COMMIT", 10)
    paths = [tmp_path / "new.jsonl", tmp_path / "old.jsonl"]
    for path in paths:
        write(path, talk(1, 30))
    stops = iter([False, False, True])
    found = [archived(path) for path in paths]
    left = catch_up(opened, found, lambda _bytes: None, lambda: next(stops, True))
    assert 0 < left == sum(opened.missing_bytes(each) for each in found)
    assert 0 < opened.count(terms_of("word"), Filters()) < 60
    assert catch_up(opened, found, lambda _bytes: None) == 0
    assert opened.count(terms_of("word"), Filters()) == 60
