"""The first poll of a tail reads only the lines that it shows, and later polls only new lines."""

import time

from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.db.tail import LOOK_BACK_EVERY, Tail
from hivepipe.times import stored_time


def log(db: Database, first: int, count: int) -> None:
    rows = [
        (f"s{n % 3}", "INFO", f"line {n}", f"2026-01-10T00:00:{n:06.3f}Z")
        for n in range(first, first + count)
    ]
    db._connection.executemany(
        "INSERT INTO session_logs (session_id, log_level, message, created_at) VALUES (?, ?, ?, ?)",
        rows,
    )


def test_the_first_poll_returns_the_newest_lines_and_later_ones_new_lines(db: Database) -> None:
    with listings(db.path) as store:
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


def test_a_line_with_the_number_of_a_deleted_one_is_shown(db: Database) -> None:
    """SQLite gives the highest number again once its row is deleted."""
    with listings(db.path) as store:
        log(db, 10, 3)
        tail = Tail(first=3)
        assert len(tail.poll(store)) == 3
        db.execute("DELETE FROM session_logs WHERE message = 'line 12'", {})
        assert tail.poll(store) == []
        log(db, 13, 1)
        assert [line.what for line in tail.poll(store)] == ["line 13"]
        assert tail.poll(store) == []


def test_a_log_line_of_a_predecessor_may_hold_any_data(db: Database) -> None:
    with listings(db.path) as store:
        for number, data in enumerate(("file=a.py", '{"file_path":"b.py"}', "")):
            db.execute(
                "INSERT INTO session_logs (log_level, message, data) VALUES ('INFO', :text, :data)",
                {"text": f"line {number}", "data": data},
            )
        assert [line.what for line in Tail(first=3).poll(store)] == [
            "line 0",
            "line 1 b.py",
            "line 2",
        ]


def test_a_change_with_an_earlier_time_is_shown_once(db: Database) -> None:
    """It waited in the spool, or the clock was set back."""

    def change(id: str, status: str, secs_ago: float) -> None:
        at = stored_time(time.time_ns() - round(secs_ago * 10**9))
        sql = "INSERT OR REPLACE INTO sessions (id, status, updated_at) VALUES (:id, :status, :at)"
        db.execute(sql, {"id": id, "status": status, "at": at})

    with listings(db.path) as store:
        for number in range(5):
            change(f"old-{number}", "ended", 3600 * number)
        change("of-a-wrong-clock", "active", -(10**9))
        tail = Tail(first=2)
        assert len(tail.poll(store)) == 6
        change("recent", "active", 10)
        assert [(line.session_id, line.what) for line in tail.poll(store)] == [("recent", "active")]
        for status in ("active", "paused"):
            change("late", status, 5 * 24 * 3600)
            lines = [line for _ in range(LOOK_BACK_EVERY) for line in tail.poll(store)]
            assert [(line.session_id, line.what) for line in lines] == [("late", status)]
        assert [line for _ in range(LOOK_BACK_EVERY) for line in tail.poll(store)] == []


def test_the_first_poll_reads_only_recent_changes_and_as_many_as_it_shows(db: Database) -> None:
    """A long history has hundreds of thousands of agents."""
    old = [f"2026-01-{day:02d}T00:00:00.000Z" for day in range(1, 31)]
    recent = [stored_time(time.time_ns() - days * 86_400 * 10**9) for days in (6, 5, 4)]
    for number, at in enumerate(old):
        add_session(db, f"old{number}", at)
    with listings(db.path) as store:
        assert [line.session_id for line in Tail(first=2).poll(store)] == ["old28", "old29"]
        for number, at in enumerate(recent):
            add_session(db, f"new{number}", at)
        tail = Tail(first=5)
        found = [line.session_id for line in tail.poll(store)]
        assert found == ["old28", "old29", "new0", "new1", "new2"]
        for _ in range(LOOK_BACK_EVERY + 1):
            assert tail.poll(store) == []


def add_session(db: Database, session: str, at: str) -> None:
    db.execute(
        """
        INSERT INTO sessions (id, swarm_id, status, created_at, updated_at)
        VALUES (:id, (SELECT id FROM swarms LIMIT 1), 'active', :at, :at)
        """,
        {"id": session, "at": at},
    )
