"""Rows of homes reach a PostgreSQL exactly once, with failures in between."""

import random
import shutil
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hivepipe.db.changes import is_captured, stop_capture
from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.db.listings import listings
from hivepipe.errors import TeamAwayError, TeamRefusedError
from hivepipe.team.connection import connected
from hivepipe.team.shipment import ROWS_AT_ONCE, Shipment
from tests.postgres import free_port
from tests.team_scene import HomeOfTeam, Team, same_rows


def home(tmp_path: Path, team: Team, member: str) -> HomeOfTeam:
    return HomeOfTeam(tmp_path / member / "hive.db", team.joined(member).writes)


@pytest.fixture
def open_team(team: Team) -> Team:
    """A team that shares everything."""
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    return team


@pytest.fixture
def ann(open_team: Team, tmp_path: Path) -> HomeOfTeam:
    return home(tmp_path, open_team, "ann")


def test_a_repeated_or_late_batch_changes_nothing(open_team: Team, ann: HomeOfTeam) -> None:
    ann.work("one")
    with Shipment(ann.home, ann.login, ann.share) as late:
        ann.ship()
        ann.sql("UPDATE sessions SET objective = 'newer'")
        ann.ship()
        assert late.mark == 0  # its mark is outdated
        late.ship_next()
        assert late.mark > 0
    assert open_team.rows("SELECT objective FROM hivepipe.sessions") == [["newer"]]
    assert same_rows(open_team, ann)


def test_a_message_moved_to_another_month_is_stored_once(open_team: Team, ann: HomeOfTeam) -> None:
    ann.work("one", 1)
    ann.ship()
    ann.sql("UPDATE usage SET created_at = '2026-10-31T23:59:59.999Z'")
    ann.ship()
    assert open_team.count("usage") == open_team.count("usage_2026_10") == 1


def test_a_forgotten_session_is_deleted_and_not_accepted_again(
    open_team: Team, ann: HomeOfTeam, tmp_path: Path
) -> None:
    twin = HomeOfTeam(tmp_path / "twin" / "hive.db", ann.login)  # another home of the same person
    for each in (ann, twin):
        each.work("secret")
        each.work("public")
        each.ship()
    with closing(Database(ann.path)) as db:
        remove_rows(db, ["secret"])
    ann.ship()
    assert open_team.count("prompts", "session_id = 'secret'") == 0
    assert open_team.count("sessions", "id = 'secret'") == 0
    twin.sql("UPDATE sessions SET objective = 'again'")
    twin.ship()
    assert open_team.count("sessions", "id = 'secret'") == 0
    assert open_team.count("sessions", "objective = 'again'") == 1
    ((places,),) = open_team.rows("SELECT places FROM hivepipe.deletions")
    assert '"table prompts": 6' in places


def test_a_restored_server_gets_missing_rows_and_keeps_no_others(
    open_team: Team, ann: HomeOfTeam, tmp_path: Path
) -> None:
    ann.work("one")
    ann.ship()
    backup = tmp_path / "backup.sql"
    server = open_team.server
    server.dump(open_team.database, backup)
    ann.work("two", 250)
    ann.sql("DELETE FROM prompts WHERE session_id = 'one'")
    ann.ship()
    server.restore(open_team.database, backup)
    assert not same_rows(open_team, ann)
    ann.ship()
    assert same_rows(open_team, ann)
    # Rows that are shared no more are removed from it again.
    ann.share = {"*": "metadata"}
    ann.ship()
    server.restore(open_team.database, backup)
    assert open_team.count("prompts") == 3
    ann.ship()
    assert open_team.count("prompts") == 0
    assert open_team.count("sessions", "objective IS NULL") == 2
    assert ann.ship() == 0


def test_the_log_of_changes_does_not_grow_while_the_server_is_away(
    open_team: Team, ann: HomeOfTeam
) -> None:
    ann.work("one")
    ann.ship()
    away = HomeOfTeam(ann.path, ann.login._replace(port=free_port()))
    for number in range(20):
        ann.sql(f"UPDATE sessions SET objective = 'title {number}'")
    with pytest.raises(TeamAwayError):
        away.ship()
    assert ann.count("team_log") == 0
    assert ann.ship() == 1


def test_a_home_that_a_server_refuses_captures_no_changes(open_team: Team, ann: HomeOfTeam) -> None:
    ann.login = ann.login.with_login("hivepipe_machine_" + "0" * 16, "wrong")
    ann.work("one")
    with pytest.raises(TeamRefusedError):
        ann.ship()
    with listings(ann.path) as store:
        assert not is_captured(store)


def test_shipped_rows_survive_a_crash_of_the_server(open_team: Team, ann: HomeOfTeam) -> None:
    ann.work("one", 0)
    ann.ship()
    ann.sql(f"""
        WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n LIMIT {2 * ROWS_AT_ONCE})
        INSERT INTO usage
        SELECT n, 'r', 'one', '', 0, 0, '2026-11-24T10', '', '', '', 0, 0, 0, 0, 0, 0 FROM n
    """)  # two whole batches
    assert ann.ship() == 2 * ROWS_AT_ONCE
    open_team.server.stop(signal.SIGQUIT)
    open_team.server.start()
    assert same_rows(open_team, ann)


def test_a_server_that_is_being_replaced_is_away(open_team: Team, ann: HomeOfTeam) -> None:
    """Before a switch to a standby, an administrator makes the old server read-only."""
    with Shipment(ann.home, ann.login, ann.share) as shipment:
        ann.work("one")
        shipment._connection.execute("SET default_transaction_read_only = on")
        with pytest.raises(TeamAwayError, match="read-only"):
            shipment.ship_next()
    ann.ship()
    assert same_rows(open_team, ann)


def test_a_restored_home_overwrites_no_newer_row_and_loses_none(
    open_team: Team, ann: HomeOfTeam, tmp_path: Path
) -> None:
    ann.work("one")
    ann.ship()
    stale = tmp_path / "stale.db"
    with closing(sqlite3.connect(ann.path)) as db:
        db.execute("VACUUM INTO ?", (str(stale),))
    ann.sql("UPDATE sessions SET objective = 'newest'")
    ann.work("two")
    ann.ship()
    before = open_team.count("prompts")
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{ann.path}{suffix}").unlink()
    shutil.copy(stale, ann.path)
    ann.ship()
    assert open_team.rows("SELECT objective FROM hivepipe.sessions WHERE id = 'one'") == [
        ["newest"]
    ]
    assert open_team.count("prompts") == before
    ann.work("three", 4)  # its row numbers equal those of session two before
    ann.ship()
    assert open_team.count("prompts") == before + 4
    assert open_team.count("prompts", "session_id = 'two'") == 3


def test_rows_that_postgresql_cannot_store_do_not_block_others(
    open_team: Team, ann: HomeOfTeam
) -> None:
    ann.work("one", 1)
    ann.sql("UPDATE prompts SET prompt = 'a' || char(0) || 'b'")
    ann.sql("UPDATE usage SET input = 'many'")
    ann.work("two")
    ann.ship()
    assert same_rows(open_team, ann)
    assert open_team.rows("SELECT prompt FROM hivepipe.prompts WHERE session_id = 'one'") == [
        ["a\ufffdb"]
    ]


def test_a_row_that_exceeds_a_limit_of_postgresql_holds_up_no_others(
    open_team: Team, ann: HomeOfTeam
) -> None:
    """A long key fits into no index, and PostgreSQL does not call that a fault of the data."""
    ann.work("one", 1)
    key = "".join(chr(number) for number in random.Random(7).choices(range(0x4E00, 0x9FFF), k=9000))
    ann.sql(
        f"INSERT INTO usage VALUES ('{key}', 'r', 'one', '', 0, 0, '2026-11-24T10:01:00.000Z', "
        "'m', '', '', 1, 2, 0, 0, 0, 0)"
    )
    ann.work("two")
    with Shipment(ann.home, ann.login, ann.share) as shipment:
        while shipment.ship_next():
            pass
        assert shipment.left_out == 1
    assert open_team.count("usage") == ann.count("usage") - 1 == 4


ODD_TEXTS = (
    *("", "null", "NULL", "a,b", "{a}", '"quoted"', "back\\slash", r"\u0000", " spaces "),
    *("two\nlines\tand\r\x1e\x1f\x7f", "\u00e9\U0001f600\u2028", "'; DROP TABLE usage; --", "\\"),
)


def test_texts_arrive_unchanged(open_team: Team, ann: HomeOfTeam) -> None:
    ann.work("one", 0)
    with closing(sqlite3.connect(ann.path, isolation_level=None)) as db:
        sql = "INSERT INTO prompts (session_id, prompt, created_at, job_id) VALUES ('one', ?, ?, ?)"
        for number, text in enumerate((*ODD_TEXTS, None)):
            db.execute(sql, (text, "2026-11-24T10:01:00.000Z", f"job-{number}"))
    ann.ship()
    with connected(open_team.joined("ann", "reader").reads) as connection:
        sql = "SELECT prompt FROM hivepipe.prompts ORDER BY substr(job_id, 5)::int"
        found = [row["prompt"] for row in connection.execute(sql).fetchall()]
    assert found == [*ODD_TEXTS, None]


def test_a_home_that_left_stops_capturing_and_can_join_again(
    open_team: Team, ann: HomeOfTeam
) -> None:
    ann.work("one")
    ann.ship()
    with closing(Database(ann.path)) as db:
        stop_capture(db)
        assert not db.rows(
            "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'team%'"
        )
    with listings(ann.path) as store:
        assert not is_captured(store)
    ann.sql("DELETE FROM prompts WHERE session_id = 'one'")
    ann.work("two")
    ann.ship()
    assert same_rows(open_team, ann)
    assert open_team.count("homes") == 1
