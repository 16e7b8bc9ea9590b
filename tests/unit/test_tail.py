"""The first poll of a tail reads only the lines that it shows, and later polls only new lines."""

from contextlib import closing
from pathlib import Path

from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.db.tail import Tail


def log(db: Database, first: int, count: int) -> None:
    rows = [
        (f"s{n % 3}", "INFO", f"line {n}", f"2026-01-10T00:00:{n:06.3f}Z")
        for n in range(first, first + count)
    ]
    db._connection.executemany(
        "INSERT INTO session_logs (session_id, log_level, message, created_at) VALUES (?, ?, ?, ?)",
        rows,
    )


def test_the_first_poll_returns_the_newest_lines_and_later_ones_new_lines(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "hive.db")) as db, listings(tmp_path / "hive.db") as store:
        log(db, 10, 30)
        tails = {first: Tail(first=first) for first in (0, 2)}
        of_one = Tail("s0", 2)
        assert len(tails[0].poll(store)) == 1
        assert [line.what for line in tails[2].poll(store)] == ["line 38", "line 39"]
        assert [line.what for line in of_one.poll(store)] == ["line 36", "line 39"]
        log(db, 40, 5)
        for tail in tails.values():
            assert [line.what for line in tail.poll(store)] == [f"line {n}" for n in range(40, 45)]
            assert tail.poll(store) == []
        assert [line.what for line in of_one.poll(store)] == ["line 42"]
