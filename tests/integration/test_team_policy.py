"""What is shared of a project is decided by the stricter of the user's and the team's level."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe import git
from hivepipe.db.changes import SEPARATOR, home_of
from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.db.listings import listings
from hivepipe.errors import TeamError
from hivepipe.home import Place
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.maintenance.forget import Forgetting
from hivepipe.team import project_names, schema_steps, shared_rows
from hivepipe.team.connection import connected
from hivepipe.team.policy import LEVELS, level_of, shared_level
from hivepipe.team.project_names import name_of_remote, project_name
from hivepipe.team.shipment import Shipment
from tests.conftest import until
from tests.team_scene import HomeOfTeam, Team

TEXT = "of-the-clients-own-words"


def write_session(home: HomeOfTeam, session: str, project: str) -> None:
    """Write a session with TEXT in every text column."""
    home.work(session, 2, project)
    with closing(Database(home.path)) as db, db.transaction():
        for sql in (
            "UPDATE sessions SET objective = :text WHERE id = :session",
            "UPDATE prompts SET prompt = :text WHERE session_id = :session",
            "INSERT INTO swarms (id) VALUES ('s') ON CONFLICT DO NOTHING",
            (
                "INSERT INTO agents (id, swarm_id, session_id, status, name, role, error, "
                "metadata) VALUES ('a' || :session, 's', :session, 'running', :text, :text, :text, "
                "json_object('usage', json_object('tokens', 7, 'duration_ms', 8), 'why', :text))"
            ),
            (
                "INSERT INTO session_logs (session_id, log_level, message, data, created_at, "
                "job_id) VALUES (:session, 'INFO', :text, :text, '2026-11-24', 'l' || :session)"
            ),
            (
                "INSERT INTO skill_uses (session_id, skill, kind, arguments, success, created_at, "
                "job_id) VALUES (:session, 'pdf', 'skill', :text, 1, '2026-11-24', 'k' || :session)"
            ),
            (
                "INSERT INTO summaries VALUES (:session, 's', '2026-11-24', 'plain', '', '', '', "
                "'', :text, :text, :text, :text, 0, 0, 0, 0.5)"
            ),
            (
                "INSERT INTO activity (session_id, since_ms, last_active_at, calls, failed, "
                "denied, warned, open_calls, turn_is_open, waits_for) "
                "VALUES (:session, 1, '2026-11-24', 0, 0, 0, 0, 0, 0, :text)"
            ),
        ):
            names = {"text": TEXT, "session": session}
            db.execute(sql, {name: text for name, text in names.items() if f":{name}" in sql})


@pytest.fixture
def ann(team: Team, tmp_path: Path) -> HomeOfTeam:
    """A home that shares everything with a team that shares everything."""
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    return HomeOfTeam(tmp_path / "hive.db", team.joined("ann").writes)


def texts_in_backup(team: Team) -> int:
    """Return how often TEXT is in a backup of the team's database."""
    path = team.server.folder.parent / f"{team.server.folder.name}.dump"
    team.server.dump(team.database, path, plain=True)
    found = path.read_text().count(TEXT)
    path.unlink()
    return found


_METADATA = {"sessions": 1, "agents": 1, "usage": 2, "skill_uses": 1}
_PROMPTS = _METADATA | {"prompts": 2, "summaries": 1}
ROWS: dict[str, dict[str, int]] = {
    "nothing": {},
    "metadata": _METADATA,
    "prompts": _PROMPTS,
    "everything": _PROMPTS | {"session_logs": 1},
}
TABLES = ROWS["everything"]
TEXT_COUNTS = {"nothing": 0, "metadata": 0, "prompts": 11, "everything": 13}


PAIRS = [(level, "everything") for level in LEVELS] + [
    ("everything", level) for level in LEVELS[:-1]
]


def rows_of(team: Team, session: str) -> dict[str, int]:
    """Return how many rows of a session each table of the team has."""
    found = {
        name: team.count(name, f"{'id' if name == 'sessions' else 'session_id'} = '{session}'")
        for name in TABLES
    }
    return {name: count for name, count in found.items() if count}


def test_the_stricter_level_applies(team: Team, ann: HomeOfTeam) -> None:
    ann.share = {f"p{number}": users for number, (users, _) in enumerate(PAIRS)}
    for number, (_, teams) in enumerate(PAIRS):
        team.query("SELECT hivepipe.set_policy(%s, %s)", f"p{number}", teams)
        write_session(ann, f"s{number}", f"/p/p{number}")
    ann.ship()
    levels = [min(pair, key=LEVELS.index) for pair in PAIRS]
    for number, level in enumerate(levels):
        assert rows_of(team, f"s{number}") == ROWS[level], PAIRS[number]
    assert texts_in_backup(team) == sum(TEXT_COUNTS[level] for level in levels)
    session = f"s{levels.index('metadata')}"
    sql = "SELECT metadata, project FROM hivepipe.agents a JOIN hivepipe.sessions s USING (home)"
    shared = ['{"usage":{"tokens":7,"duration_ms":8}}', session.replace("s", "p")]
    assert team.rows(f"{sql} WHERE s.id = '{session}' AND a.session_id = s.id") == [shared]


ASKED = {
    "permission: mcp__db__drop": "permission: mcp__db__drop",
    f"permission: may {TEXT} be deleted?": "an answer",
    TEXT: "an answer",
    "": "",
}


def test_a_question_of_a_session_is_not_shared(team: Team, ann: HomeOfTeam) -> None:
    """The text of a notification may say anything, as an MCP server's question does."""
    for number, asked in enumerate(ASKED):
        write_session(ann, f"s{number}", "/p/blue")
        ann.sql(f"UPDATE activity SET waits_for = '{asked}' WHERE session_id = 's{number}'")
    ann.ship()
    sql = "SELECT '=' || waits_for FROM hivepipe.activity ORDER BY session_id"
    assert team.rows(sql) == [[f"={shared}"] for shared in ASKED.values()]


def test_a_question_that_an_older_machine_sent_is_replaced(
    team: Team, ann: HomeOfTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(ann, "one", "/p/blue")
    with monkeypatch.context() as older:
        older.setitem(shared_rows._COMPUTED, "waits_for", "t.waits_for")
        ann.ship()
    assert team.rows("SELECT waits_for FROM hivepipe.activity") == [[TEXT]]
    ann.ship()
    assert team.rows("SELECT waits_for FROM hivepipe.activity") == [["an answer"]]
    assert ann.ship() == 0


def test_a_question_that_is_on_an_older_server_is_replaced(older_team: Team) -> None:
    """The machine may never send again."""
    asked = [TEXT, "permission: Bash", "permission: may it?", ""]
    for number, text in enumerate(asked):
        older_team.rows(
            "INSERT INTO hivepipe.activity (home, key, version, waits_for) "
            f"VALUES (1, '{number}', 1, '{text}')"
        )
    with connected(older_team.admin) as connection:
        schema_steps.apply(connection)
    found = older_team.rows("SELECT '=' || waits_for FROM hivepipe.activity ORDER BY key")
    assert found == [["=an answer"], ["=permission: Bash"], ["=an answer"], ["="]]


@pytest.fixture
def shipped(ann: HomeOfTeam) -> HomeOfTeam:
    """A home that sent four sessions. Each session and its project are named after a level."""
    for level in LEVELS:
        write_session(ann, level, f"/p/{level}")
    ann.ship()
    return ann


def test_a_stricter_team_policy_removes_rows_at_once(team: Team, shipped: HomeOfTeam) -> None:
    for level in LEVELS:
        team.query("SELECT hivepipe.set_policy(%s, %s)", level, level)
    for _ in range(2):
        assert {level: rows_of(team, level) for level in LEVELS} == ROWS
        assert texts_in_backup(team) == sum(TEXT_COUNTS.values())
        shipped.ship()  # only the second time at the machine's request


def test_a_batch_under_an_outdated_policy_is_refused(team: Team, ann: HomeOfTeam) -> None:
    with Shipment(ann.home, ann.login, ann.share) as shipment:
        write_session(ann, "one", "/p/blue")
        team.query("SELECT hivepipe.set_policy('*', 'metadata')")
        shipment.ship_next()
        assert texts_in_backup(team) == 0
        while shipment.ship_next():
            pass
    assert texts_in_backup(team) == 0
    assert team.count("sessions") == 1


DELETIONS = {
    "a stricter policy": "SELECT hivepipe.set_policy('*', 'metadata')",
    "a forgotten session": "SELECT hivepipe.forget_session('one')",
    "a forgotten member": "SELECT hivepipe.forget_member('ann')",
    "a machine that leaves": "SELECT hivepipe.leave(true)",
}


def waits_for_a_lock(team: Team) -> bool:
    """Return whether a connection to the database of the team waits for a lock."""
    sql = "pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
    return bool(team.query(f"SELECT count(*) FROM pg_locks WHERE NOT granted AND {sql}"))


@pytest.mark.parametrize("what", DELETIONS)
def test_a_deletion_also_deletes_rows_on_their_way(team: Team, ann: HomeOfTeam, what: str) -> None:
    write_session(ann, "one", "/p/blue")

    def delete() -> None:
        with connected(ann.login if "leave" in what else team.admin) as connection:
            connection.execute(DELETIONS[what])

    with (
        Shipment(ann.home, ann.login, ann.share) as shipment,
        ThreadPoolExecutor() as threads,
        shipment._connection.transaction(),
    ):
        shipment.ship_next()
        deletion = threads.submit(delete)
        until(lambda: deletion.done() or waits_for_a_lock(team), "the deletion does not wait")
        assert not deletion.done()
    deletion.result(20)
    assert texts_in_backup(team) == 0


def test_two_homes_of_a_member_forget_sessions_at_once(team: Team, tmp_path: Path) -> None:
    login = team.joined("ann").writes
    first, second = (HomeOfTeam(tmp_path / name / "hive.db", login) for name in "ab")
    for each in (first, second):
        each.ship()
    forgotten = "INSERT INTO forgotten_sessions (id, forgotten_at) VALUES ('one', '2026')"
    second.sql(forgotten)
    first.work("two")
    with (
        Shipment(first.home, login, first.share) as shipment,
        ThreadPoolExecutor() as threads,
        shipment._connection.transaction(),
    ):
        shipment.ship_next()
        other = threads.submit(second.ship)
        with pytest.raises(TimeoutError):
            other.result(1)
        first.sql(forgotten)
        assert shipment.ship_next()
    assert other.result(20) == 1


def test_rows_wait_for_a_policy_on_its_way(team: Team, ann: HomeOfTeam) -> None:
    with (
        Shipment(ann.home, ann.login, ann.share) as shipment,
        ThreadPoolExecutor() as threads,
        connected(team.admin) as connection,
    ):
        write_session(ann, "one", "/p/blue")
        connection.execute("BEGIN")
        connection.execute("SELECT hivepipe.set_policy('*', 'nothing')")

        def commit() -> None:
            try:
                until(lambda: waits_for_a_lock(team), "the shipment does not wait")
            finally:
                connection.execute("COMMIT")

        committed = threads.submit(commit)
        shipment.ship_next()
        committed.result()
    assert team.count("sessions") == 0


def test_a_stricter_level_of_the_user_removes_sent_rows(team: Team, shipped: HomeOfTeam) -> None:
    shipped.share = {"*": "everything"} | {level: level for level in LEVELS}
    shipped.ship()
    assert {level: rows_of(team, level) for level in LEVELS} == ROWS
    assert texts_in_backup(team) == sum(TEXT_COUNTS.values())
    shipped.share = {"*": "everything"}
    shipped.ship()
    assert texts_in_backup(team) == len(LEVELS) * TEXT_COUNTS["everything"]


def tables_of_sessions(home: HomeOfTeam) -> dict[str, set[str]]:
    """Return session -> tables in the next batch with a key that begins with the session's id."""
    found: dict[str, set[str]] = {}
    with Shipment(home.home, home.login, home.share) as shipment:
        batch = shipment._read(shipment.mark)
    assert batch
    for _, table, key in (each.change for each in batch.items):
        if (session := key.partition(SEPARATOR)[0]) in ("open", "hidden"):
            found.setdefault(session, set()).add(table)
    return found


PRIVATE = pytest.mark.parametrize("private", ["/p/secret", ""], ids=["folder", "no folder"])
ONLY_BLUE = {"*": "nothing", "blue": "everything"}


@PRIVATE
def test_a_server_hears_of_no_session_of_a_private_project(
    team: Team, ann: HomeOfTeam, private: str
) -> None:
    ann.share = ONLY_BLUE
    for session, project in (("open", "/p/blue"), ("hidden", private)):
        write_session(ann, session, project)
        costs = f"'{session}', 1, 1, 'm', '2026-11-24', 0, 0, 0, 0, 0, 0"
        ann.sql(f"INSERT INTO cost_states VALUES ({costs})")
    ann.ship()
    with closing(Database(ann.path)) as db:
        remove_rows(db, ["open", "hidden"])
    tables = {"forgotten_sessions", "sessions", "activity", "cost_states", "summaries"}
    assert tables_of_sessions(ann) == {"open": tables}
    ann.ship()
    assert team.rows("SELECT session_id FROM hivepipe.forgotten") == [["open"]]
    assert team.rows("SELECT session_id FROM hivepipe.deletions") == [["open"]]
    ann.share = {"*": "everything"}
    ann.ship()
    assert team.count("forgotten") == 2


@PRIVATE
def test_a_server_hears_of_no_private_session_that_was_forgotten_while_it_was_away(
    ann: HomeOfTeam, private: str
) -> None:
    ann.share = ONLY_BLUE
    ann.ship()
    for session, project in (("open", "/p/blue"), ("hidden", private)):
        write_session(ann, session, project)
    with closing(Database(ann.path)) as db:
        wanted = ForgetQuery(frozenset({"open", "hidden"}))
        list(Forgetting(Place("/p", ann.home, {}), db).forget(wanted))
    tables = {"forgotten_sessions", "sessions", "activity", "summaries"}
    assert tables_of_sessions(ann) == {"open": tables}


def test_a_server_sweeps_in_parts(team: Team, ann: HomeOfTeam) -> None:
    ann.work("one")
    ann.ship()
    before = {table: team.count(table) for table in TABLES}
    sweep = team.query("SELECT pg_get_functiondef('hivepipe.sweep'::regproc)")
    assert "20000" in sweep
    team.rows(sweep.replace("20000", "200"))
    for table, month in (("agents", ""), ("usage", ", '2026-11-01'")):
        team.rows(
            f"INSERT INTO hivepipe.{table} (home, key, version{', month' if month else ''}) "
            f"SELECT h.id, 'old ' || n, 1{month} FROM hivepipe.homes h, generate_series(1, 300) n"
        )
    ann.share = {"*": "everything", "other": "nothing"}  # all rows are sent again
    calls = 0
    with Shipment(ann.home, ann.login, ann.share) as shipment:
        while shipment.ship_next():
            left = {table: team.count(table) for table in ("agents", "usage")}
            calls += sum(left.values()) < 600
    assert calls == 4
    assert {table: team.count(table) for table in TABLES} == before
    with listings(ann.path) as store:
        assert home_of(store).sweep_below is None


def test_rows_of_an_unknown_session_wait_for_it(team: Team, ann: HomeOfTeam) -> None:
    ann.share = {"*": "everything", "secret": "nothing"}
    ann.sql(
        "INSERT INTO prompts (session_id, prompt, job_id, created_at) "
        "VALUES ('late', 'words', 'j', '2026-11-24'), ('hidden', 'words', 'k', '2026-11-24')"
    )
    ann.ship()
    assert team.count("prompts") == 0
    ann.work("late", 0, "/p/blue")
    ann.work("hidden", 0, "/p/secret")
    ann.ship()
    assert team.rows("SELECT session_id FROM hivepipe.prompts") == [["late"]]


def test_rows_of_a_session_moved_to_a_secret_project_are_removed(
    team: Team, ann: HomeOfTeam
) -> None:
    ann.share = {"*": "everything", "secret": "metadata"}
    write_session(ann, "one", "")
    ann.ship()
    assert texts_in_backup(team) == TEXT_COUNTS["everything"]
    ann.sql("UPDATE sessions SET project = '/p/secret'")
    ann.ship()
    assert texts_in_backup(team) == 0


def test_the_longest_pattern_applies() -> None:
    policies = {
        "*": "metadata",
        "github.com/acme/*": "everything",
        "github.com/acme/pay": "nothing",
    }
    assert level_of("blue", policies) == "metadata"
    assert level_of("github.com/acme/web", policies) == "everything"
    assert level_of("github.com/acme/pay", policies) == "nothing"
    assert shared_level("github.com/acme/web", {"*": "prompts"}, policies) == "prompts"
    assert level_of("blue", {}) == "metadata"


def test_a_remote_has_one_name_without_a_login() -> None:
    for url, name in (
        ("git@github.com:acme/web.git", "github.com/acme/web"),
        ("git@GitHub.com:acme/web.git", "github.com/acme/web"),
        ("https://user:secret@github.com/acme/web.git", "github.com/acme/web"),
        ("ssh://git@host.example:2222/acme/web", "host.example/acme/web"),
        *((local, "") for local in ("/srv/git/web.git", "file:///srv/git/web.git", "../web", "")),
    ):
        assert name_of_remote(url) == name, url


def test_a_project_has_the_same_name_on_all_machines(tmp_path: Path) -> None:
    for place in ("laptop/web", "container/checkout"):
        checkout(tmp_path / place, "git@github.com:acme/web.git")
        assert project_name(str(tmp_path / place)) == "github.com/acme/web"
    plain = tmp_path / "plain"
    plain.mkdir()
    assert project_name(str(plain)) == "plain"


# ---- a project whose remote must not be shared, in a team that shares all others

SECRET = "git@github.com:acme/secret.git"


@pytest.fixture
def secret(ann: HomeOfTeam, tmp_path: Path) -> Iterator[HomeOfTeam]:
    """A home with a session in a checkout of SECRET; each test begins without known remotes."""
    checkout(tmp_path / "secret", SECRET)
    ann.share = {"*": "everything", "github.com/acme/secret": "nothing"}
    write_session(ann, "one", str(tmp_path / "secret"))
    project_names._remote.cache_clear()
    yield ann
    project_names._remote.cache_clear()


def checkout(folder: Path, remote: str) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", remote], check=True)


def again(home: HomeOfTeam) -> None:
    """Send all rows again, by an uplink that was started anew."""
    project_names._remote.cache_clear()
    home.share = {**home.share, "a": "nothing"}
    home.ship()


def test_a_checkout_that_was_removed_keeps_its_policy(
    team: Team, secret: HomeOfTeam, tmp_path: Path
) -> None:
    secret.ship()
    assert texts_in_backup(team) == 0
    shutil.rmtree(tmp_path / "secret")
    again(secret)
    assert texts_in_backup(team) == team.count("sessions") == 0


def test_a_checkout_that_git_cannot_read_keeps_its_policy(
    team: Team, secret: HomeOfTeam, tmp_path: Path
) -> None:
    config = tmp_path / "secret/.git/config"
    whole = config.read_text()
    config.write_text("[broken")
    secret.ship()
    assert texts_in_backup(team) == 0  # held back
    config.write_text(whole.replace("secret.git", "open.git"))
    again(secret)
    assert texts_in_backup(team) == TEXT_COUNTS["everything"]
    config.write_text("[broken")
    secret.share = {**secret.share, "github.com/acme/open": "nothing"}
    again(secret)
    assert texts_in_backup(team) == 0


def test_nothing_is_sent_while_git_does_not_answer(
    team: Team, secret: HomeOfTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(git, "find_program", lambda _: None)
        with pytest.raises(TeamError, match=r"secret is unknown: git is not installed"):
            secret.ship()
    assert team.count("sessions") == 0
    secret.share = {"*": "everything"}
    again(secret)
    assert texts_in_backup(team) == TEXT_COUNTS["everything"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_checkout_of_another_user_has_the_name_of_its_remote(
    team: Team, secret: HomeOfTeam, tmp_path: Path
) -> None:
    shutil.chown(tmp_path / "secret", "nobody")
    shutil.chown(tmp_path / "secret/.git", "nobody")
    secret.ship()
    assert texts_in_backup(team) == 0


def test_a_new_remote_counts_while_the_uplink_runs(
    team: Team, secret: HomeOfTeam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(tmp_path / "secret")
    (tmp_path / "secret").mkdir()
    with Shipment(secret.home, secret.login, secret.share) as shipment:
        while shipment.ship_next():
            pass
        assert texts_in_backup(team) == TEXT_COUNTS["everything"]
        checkout(tmp_path / "secret", "git@github.com:acme/other.git")
        assert project_name(str(tmp_path / "secret")) == "github.com/acme/other"
        subprocess.run(
            ["git", "-C", tmp_path / "secret", "remote", "set-url", "origin", SECRET], check=True
        )
        monkeypatch.setattr(project_names, "CACHED_SECS", 1e-9)
        secret.sql("UPDATE sessions SET turn = 'active'")
        while shipment.ship_next():
            pass
    assert texts_in_backup(team) == 0


def test_a_remote_that_is_not_utf_8_is_a_name(
    team: Team, secret: HomeOfTeam, tmp_path: Path
) -> None:
    secret.share = {"*": "everything"}
    config = tmp_path / "secret/.git/config"
    config.write_bytes(config.read_bytes().replace(b"secret.git", b"caf\xe9.git"))
    secret.ship()
    assert team.rows("SELECT project FROM hivepipe.sessions") == [["github.com/acme/caf\ufffd"]]
