"""`--team`: what the commands show of several machines, read from a PostgreSQL."""

import json
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.reading.team import source as of_source
from hivepipe.reading.team.session import session_starting, session_store
from hivepipe.reading.team.source import Choice, opened
from hivepipe.team import address, membership
from hivepipe.team.connection import connected
from hivepipe.team.membership import Membership
from tests.team_readers import Members, made_members, members, own_members, write_session
from tests.web_scene import HOSTILE, insert

__all__ = ["made_members", "members", "own_members"]

# columns that only a team's listing has
TEAM_COLUMNS = {"person", "machine", "home", "project", "agents_at_work"}
LISTS = (
    ("sessions", "--all"),
    ("agents",),
    ("costs", "--by", "session"),
    ("costs", "--by", "agent"),
    ("costs", "--by", "model"),
    ("skills",),
    ("skills", "--commands"),
)


class _RolledBackError(Exception):
    pass


def rows_of(found: Any) -> list[dict[str, Any]]:
    """Return the rows of a listing without the columns of a team."""
    (rows,) = (value for value in found.values() if isinstance(value, list))
    plain = [
        {name: value for name, value in row.items() if name not in TEAM_COLUMNS} for row in rows
    ]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True))


def test_a_team_lists_the_rows_of_its_homes(members: Members) -> None:
    for words in (
        ("sessions", "--all"),
        ("agents",),
        ("costs", "--by", "session"),
        ("costs", "--by", "agent"),
    ):
        own = [row for who in members.homes for row in rows_of(members.output(who, *words))]
        of_team = rows_of(members.output("eve/desk", *words, "--team"))
        assert len(own) >= 4, words
        assert of_team == sorted(own, key=lambda row: json.dumps(row, sort_keys=True)), words


def test_a_truncated_list_is_reported(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, most in (("sessions", "MOST_SESSIONS", 2), ("agents", "MOST_AGENTS", 3)):
        monkeypatch.setattr(f"hivepipe.cli.{module}.{name}", most)
    members.use("eve/desk")
    for words, most in ((["sessions", "--all"], 2), (["agents"], 3)):
        done = CliRunner().invoke(main, [*words, "--team", "--json"])
        assert len(rows_of(json.loads(done.stdout))) == most
        assert f"only the newest {most} are shown" in done.stderr
        one = CliRunner().invoke(main, [*words, "--team", "--json", "--person", "bob"])
        assert not one.stderr


def test_costs_of_a_team_are_the_sum_of_its_homes(members: Members) -> None:
    own = [members.output(who, "costs")["total"] for who in members.homes]
    for by in ("day", "person", "machine", "project", "session", "model", "agent"):
        found = members.output("eve/desk", "costs", "--by", by, "--team")
        for part in ("messages", "tokens"):
            assert _sum(found["costs"], part) == _sum(own, part), by
        assert found["total"]["cost_usd"] == pytest.approx(_sum(own, "cost_usd"), abs=1e-5)
        assert found["total"]["cost_usd"] > 1
        assert "own" not in found
    people = {
        row["person"]: row
        for row in members.output("eve/desk", "costs", "--by", "person", "--team")["costs"]
    }
    assert {name: row["messages"] for name, row in people.items()} == {"ann": 9, "bob": 3, "eve": 3}
    desk = members.output("eve/desk", "costs", "--team", "--person", "ann", "--machine", "desk")
    assert desk["total"] == members.output("ann/desk", "costs")["total"]


def _sum(rows: list[dict[str, Any]], part: str) -> Any:
    values = [row[part] for row in rows]
    if isinstance(values[0], dict):
        return {name: sum(value[name] for value in values) for name in values[0]}
    return sum(values)


def test_skills_of_a_team_are_the_sum_of_its_homes(members: Members) -> None:
    for words in (("skills",), ("skills", "--commands")):
        own: dict[str, list[int]] = {}
        for who in members.homes:
            for row in rows_of(members.output(who, *words)):
                counts = (row["count"], row["failures"], row["session_count"])
                own[row["name"]] = [
                    a + b for a, b in zip(own.get(row["name"], [0, 0, 0]), counts, strict=True)
                ]
        found = rows_of(members.output("eve/desk", *words, "--team"))
        assert {
            row["name"]: [row["count"], row["failures"], row["session_count"]] for row in found
        } == own
        assert own
        assert {row["people"] for row in found} == {3}


def test_a_session_is_shown_for_the_team_as_at_home(members: Members) -> None:
    for words in (("session", "show"), ("session", "log")):
        own = members.output("ann/desk", *words, "ann-1")
        found = members.output("eve/desk", *words, "ann-1", "--team")
        for each in (own, found):
            for name in ("project", "swarm_name", "task_id"):
                (each.get("session") or {}).pop(name, None)
        owner = {name: found.pop(name, None) for name in ("person", "machine")}
        assert found == own
    assert owner == {"person": None, "machine": None}  # a log has neither
    text = CliRunner().invoke(main, ["session", "show", "ann-1", "--team"]).output
    assert "of ann, machine desk" in text
    assert "mend the cart of ann-1" in text


MANY = """
    INSERT INTO hivepipe.usage (home, key, version, month, message_id, request_id, session_id,
      agent_id, is_sidechain, created_at, model, input, output)
    SELECT home, '2026-11' || chr(31) || 'n' || n || chr(31) || 'r', 1, '2026-11-01', 'n' || n, 'r',
      key, '', 0, created_at, model, 1, 1 FROM hivepipe.sessions, generate_series(1, 20000) AS n
    WHERE key = 'ann-1'
"""


def test_a_session_of_many_messages_is_read_in_time(own_members: Members) -> None:
    own_members.team.server.psql(MANY, own_members.team.database)
    found = own_members.output("bob/desk", "session", "show", "ann-1", "--team")
    assert found["cost"]["messages"] > 20_000


def test_a_reader_sees_what_its_role_allows(own_members: Members) -> None:
    seen = {}
    for who in ("ann/desk", "bob/desk", "eve/desk"):
        seen[who] = {
            words: {row["person"] for row in own_members.output(who, *words, "--team")[words[0]]}
            for words in (("sessions", "--all"), ("agents",), ("costs", "--by", "machine"))
        }
    for words, people in seen["ann/desk"].items():
        assert people == {"ann"}, words
    assert {*map(frozenset, seen["bob/desk"].values())} == {frozenset({"ann", "bob"})}
    assert {*map(frozenset, seen["eve/desk"].values())} == {frozenset({"ann", "bob", "eve"})}
    assert "no session has the id bob-1: see `hivepipe sessions --all --team`" in own_members.error(
        "ann/desk", "session", "show", "bob-1", "--team"
    )
    assert [
        row["people"] for row in own_members.output("ann/desk", "skills", "--team")["skills"]
    ] == [1, 1]
    own_members.set_visibility("eve", "self")
    assert {
        row["person"]
        for row in own_members.output("eve/desk", "sessions", "--all", "--team")["sessions"]
    } == {"eve"}


def test_a_read_of_another_members_session_is_audited(members: Members) -> None:
    members.output("ann/desk", "session", "show", "ann-1", "--team")
    members.output("ann/desk", "sessions", "--all", "--team")
    assert members.audit() == []
    members.output("bob/desk", "costs", "--team")  # shows no text of a session
    assert members.audit() == []
    members.output("bob/desk", "session", "show", "ann-1", "--team")
    members.output("bob/desk", "sessions", "--all", "--team")
    assert members.audit() == [["bob", "ann", "ann-1", "session"], ["bob", "ann", "*", "sessions"]]


def test_nothing_is_read_without_a_committed_audit_entry(members: Members) -> None:
    (home,) = [int(row[0]) for row in members.team.rows(
        "SELECT home FROM hivepipe.sessions WHERE id = 'ann-1'")]  # fmt: skip
    ask = "SELECT * FROM hivepipe.session_rows(%s, 'ann-1', 'prompts')"
    texts = "SELECT texts FROM hivepipe.hidden_texts('sessions', ARRAY[%s], ARRAY['ann-1'])"
    reads = members.logins["bob/desk"].reads
    with pytest.raises(TeamRefusedError, match="you may not"), connected(reads) as connection:
        connection.execute(ask, (home,))
    with connected(reads) as connection, suppress(_RolledBackError), connection.transaction():
        connection.execute("SELECT hivepipe.note_read(%s, 'ann-1', 'x')", (home,))
        connection.execute("SELECT hivepipe.note_list(ARRAY[%s], 'x')", (home,))
        assert connection.execute(texts, (home,)).fetchall() == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="you may not"):
            connection.execute(ask, (home,))
        raise _RolledBackError
    assert members.audit() == []
    for column in ("objective", "*"):
        with pytest.raises(TeamRefusedError, match="denied"), connected(reads) as connection:
            connection.execute(f"SELECT {column} FROM hivepipe.sessions")
    with connected(reads) as connection:
        connection.execute("SELECT hivepipe.note_read(%s, 'ann-1', 'x')", (home,))
        assert len(connection.execute(ask, (home,)).fetchall()) == 1
    assert members.audit() == [["bob", "ann", "ann-1", "x"]]


def test_no_read_is_noted_for_a_person_who_may_not_see_the_session(members: Members) -> None:
    (home,) = members.team.rows("SELECT home FROM hivepipe.sessions WHERE id = 'bob-1'")
    ann = members.logins["ann/desk"].reads
    with pytest.raises(TeamRefusedError, match="you may not"), connected(ann) as connection:
        connection.execute("SELECT hivepipe.note_read(%s, 'bob-1', 'x')", (int(home[0]),))
    assert members.audit() == []


def test_a_session_id_on_two_machines_is_ambiguous(own_members: Members) -> None:
    write_session(own_members.homes["ann/laptop"], "ann-1")
    own_members.homes["ann/laptop"].ship()
    words = ("session", "show", "ann-1", "--team")
    assert "ann/desk, ann/laptop" in own_members.error("eve/desk", *words)
    assert own_members.output("eve/desk", *words, "--machine", "laptop")["machine"] == "laptop"


def test_hostile_rows_do_not_affect_others(own_members: Members) -> None:
    before = own_members.output("eve/desk", "costs", "--team", "--person", "ann")["total"]
    of = {"session_id": HOSTILE}
    home = own_members.homes["bob/desk"]
    with closing(Database(home.path)) as db, db.transaction():
        insert(db, "sessions", id=HOSTILE, status="active", project=HOSTILE,
               objective="\x1b[31m red", model=HOSTILE, created_at="yesterday",
               updated_at="9" * 30)  # fmt: skip
        insert(db, "activity", since_ms=1, last_active_at="zzz", calls=2**62, failed=-5, denied=0,
               warned=0, open_calls=0, turn_is_open=1, **of)  # fmt: skip
        insert(db, "agents", id="h", swarm_id="w", status="running", type=HOSTILE, name="\u202e",
               created_at="9999-99-99", metadata="{", **of)  # fmt: skip
        insert(db, "skill_uses", skill=HOSTILE, kind="tool", success=0, created_at="soon",
               job_id="h", **of)  # fmt: skip
        for number in range(3):
            insert(db, "usage", message_id=f"h{number}", request_id="r", agent_id="",
                   is_sidechain=0, is_replay=0, created_at="2026-11-24Txx", model="no such",
                   speed="?", region="?",
                   input=2**62, output=-1, cache_read=0, cache_write_5m=0, cache_write_1h=0,
                   web_searches=0, **of)  # fmt: skip
        insert(db, "cost_states", started_ms=1, duration_ms=1, model="x", created_at="never",
               input=2**62, output=0, cache_read=0, cache_write_5m=0, cache_write_1h=0,
               web_searches=0, **of)  # fmt: skip
    home.ship()
    for words in LISTS:
        own_members.output("eve/desk", *words, "--team")
        done = CliRunner().invoke(main, [*words, "--team"])
        assert done.exit_code == 0, done.output
        assert not {"\x1b", "\u202e"} & {*done.output}, words
    own_members.output("eve/desk", "session", "show", HOSTILE, "--team")
    assert own_members.output("eve/desk", "costs", "--team", "--person", "ann")["total"] == before
    for words in (
        ("costs", "--person", "'; DROP TABLE x; --"),
        ("sessions", "--machine", "\x00\udcff"),
    ):
        assert own_members.output("eve/desk", *words, "--team")[words[0]] == []


def test_a_team_that_cannot_be_read_is_reported_with_the_reason(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--person needs --team" in members.error("ann/desk", "sessions", "--person", "bob")
    assert "--by person needs --team" in members.error("ann/desk", "costs", "--by", "person")
    joined = members.logins["ann/desk"]
    kept = Membership("ann", "desk", joined.writes.shown, {})
    away = address.parse("postgresql://u:s@/d?host=/nowhere&sslmode=disable")
    for reads, why in (
        (joined.reads._replace(secret="wrong"), "the login is not valid"),
        (away, "No such file or directory"),
        (None, "only send rows: join with an invite"),
    ):
        membership.keep(kept, joined.writes, reads)
        with pytest.raises(TeamError, match=why), opened():
            pass
    membership.remove()
    with pytest.raises(TeamError, match="no team is joined"), opened():
        pass
    monkeypatch.setattr("hivepipe.team.connection.is_installed", lambda: False)
    membership.keep(kept, joined.writes, joined.reads)
    with pytest.raises(TeamError, match=r"with its requirements\.lock"), opened():
        pass


def test_a_query_is_limited_and_read_only(members: Members) -> None:
    members.use("eve/desk")
    with opened() as source:
        with pytest.raises(TeamError, match="more than 2 rows"):
            source.rows("SELECT * FROM generate_series(1, 3)", {}, most=2)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            source.rows("SELECT hivepipe.note_list(ARRAY[1,2,3], 'x')", {})
        with session_store(source, session_starting(source, Choice(), "ann-1")) as store:
            assert len(store.log("ann-1")) == 1


def test_an_answer_that_takes_too_long_is_named_in_any_language(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    members.use("eve/desk")
    monkeypatch.setattr(of_source, "_READS", "SET LOCAL statement_timeout = 1")
    slow = "SELECT pg_sleep(5)"
    with opened() as source, pytest.raises(TeamError, match="took more than"):
        source.rows(slow, {})

    class InGerman(psycopg.errors.QueryCanceled):
        def __str__(self) -> str:
            return "storniere Anfrage wegen Zeitüberschreitung der Anfrage"

    def fails(*_: object) -> None:
        raise InGerman

    with opened() as source:
        monkeypatch.setattr(of_source, "_set_person", fails)
        with pytest.raises(TeamError, match="took more than"):
            source.rows(slow, {})


def test_a_search_is_limited_to_visible_rows_and_audited(members: Members) -> None:
    found = members.output("bob/desk", "search", "cart", "--team")
    assert found["total"] == 8  # a prompt and a summary of four sessions
    assert {hit["person"] for hit in found["hits"]} == {"ann", "bob"}
    reads = [["bob", "ann", f"ann-{number}", "search"] for number in (1, 2, 3)]
    searched = ["bob", "", "*", "search: cart "]
    assert sorted(members.audit()) == sorted([*reads, searched])
    for words, number in (
        (["mend", "cart"], 4),
        (["mend the cart"], 4),
        (["cart mend"], 0),
        (["mend*"], 8),
        (["cart", "--person", "ann", "--machine", "laptop"], 2),
        (["cart", "--session", "bob"], 2),
        (["cart", "--since", "2026-11-25"], 0),
        (["'; \\ | & ! <-> :* (\x00"], 0),
    ):
        assert members.output("bob/desk", "search", *words, "--team")["total"] == number, words
    assert members.output("ann/desk", "search", "cart", "--team")["total"] == 6
    assert "--team takes words" in members.error(
        "bob/desk", "search", "cart", "--team", "--tool", "x"
    )
    text = CliRunner().invoke(main, ["search", "bob-1", "--team"]).output
    assert "bob/desk user: mend the cart of bob-1" in text


def test_no_search_without_a_committed_audit_entry(members: Members) -> None:
    ask = "SELECT * FROM hivepipe.find_texts('{cart}', '{}', '{1,2,3,4}', '', '', '', 9)"
    reads = members.logins["bob/desk"].reads
    with connected(reads) as connection, suppress(_RolledBackError), connection.transaction():
        connection.execute("SELECT hivepipe.note_search('{cart}', '{}')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="not noted"):
            connection.execute(ask)
        raise _RolledBackError
    assert members.audit() == []
