"""Members of a team with sessions in a PostgreSQL, and commands that read them."""

import json
import os
import posix
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.team import membership
from hivepipe.team.invites import Joined
from hivepipe.team.membership import Membership
from tests.team_scene import HomeOfTeam, Team
from tests.web_scene import insert


def at(second: int, day: int = 24) -> str:
    return f"2026-11-{day}T10:{second // 60:02d}:{second % 60:02d}.000Z"


def write_session(home: HomeOfTeam, name: str) -> None:
    """Write a session with rows of every kind, including rows that must not be counted twice."""
    of = {"session_id": name}
    with closing(Database(home.path)) as db, db.transaction():
        db.execute("INSERT OR IGNORE INTO swarms (id, name) VALUES ('w', 'shop')", {})
        insert(db, "sessions", id=name, status="ended", source="startup", model="claude-opus-4-5",
               project="/p/blue", objective=f"title of {name}", created_at=at(1), updated_at=at(59),
               ended_at=at(59), end_reason="logout")  # fmt: skip
        insert(db, "agents", id=f"{name}-a", swarm_id="w", status="running", type="Explore",
               name="Map callers", created_at=at(4), began_at=at(5), last_active=at(9), **of,
               metadata='{"usage":{"tokens":9,"duration_ms":100}}')  # fmt: skip
        insert(db, "activity", since_ms=1, last_active_at=at(50), calls=7, failed=2, denied=1,
               warned=0, open_calls=0, turn_is_open=0, **of)  # fmt: skip
        insert(db, "activity", since_ms=2, last_active_at=at(55), calls=5, failed=0, denied=0,
               warned=1, open_calls=0, turn_is_open=0, **of)  # fmt: skip
        insert(db, "prompts", prompt=f"mend the cart of {name}", created_at=at(2),
               job_id=f"{name}-p", **of)  # fmt: skip
        insert(db, "session_logs", log_level="INFO", message="Auto-checkpoint: Edit", job_id=name,
               data=json.dumps({"file_path": "/shop/a.py"}), created_at=at(3), **of)  # fmt: skip
        insert(db, "summaries", state="s", made_at=at(58), kind="plain", provider="", model="",
               reason="", harness="", summary=f"The cart of {name} is mended.", files="[]",
               key_learnings="[]", open_ends="[]", requests=0, **of)  # fmt: skip
        for number, (skill, kind, success) in enumerate(
            (
                ("run-tests", "tool", 1),
                ("run-tests", "typed", 1),
                ("lint", "typed", 0),
                ("shop:pay", "typed", 1),
                ("run-tests", "tool", 0),
                ("deep:notes", "own_command", 1),
            )
        ):
            insert(db, "skill_uses", skill=skill, kind=kind, success=success, arguments="-k pay",
                   created_at=at(number * 20 + 3), prompt_id="p", job_id=f"{name}{number}",
                   **of)  # fmt: skip
        tokens = {"cache_read": 30, "cache_write_5m": 4, "cache_write_1h": 5, "web_searches": 1}
        for message, request, aside, second, output in (
            ("m1", "r1", 0, 10, 10),
            ("m1", "r2", 1, 20, 99),
            ("m2", "r1", 1, 30, 5),
            ("m2", "r2", 1, 40, 5),
            ("m3", "r1", 0, 2000, 8),
        ):
            insert(db, "usage", message_id=f"{name}-{message}", request_id=request,
                   agent_id=f"{name}-a", is_sidechain=aside, is_replay=0, created_at=at(second),
                   model="claude-opus-4-5", speed="", region="", input=150_000, output=output,
                   **tokens, **of)  # fmt: skip
        for duration, more in ((1000, 0), (5000, 700)):
            insert(db, "cost_states", started_ms=5, duration_ms=duration, model="claude-opus-4-5",
                   created_at=at(45), input=500_000 + more, output=400, cache_read=90,
                   cache_write_5m=12, cache_write_1h=15, web_searches=3, **of)  # fmt: skip


class Members:
    """Members with machines and homes; commands run as one of them at a time."""

    patch: pytest.MonkeyPatch  # of the test that runs

    def __init__(self, team: Team, folder: Path) -> None:
        """Ann has two machines, Bob is in her team, Eve in another; all share everything."""
        self.team = team
        self.folder = folder
        self.homes: dict[str, HomeOfTeam] = {}
        self.logins: dict[str, Joined] = {}
        team.query("SELECT hivepipe.set_policy('*', 'everything')")
        self.join("ann/desk", "ann-1", "ann-2", team="blue", sees="self")
        self.join("ann/laptop", "ann-3", team="blue")
        self.join("bob/desk", "bob-1", team="blue", sees="team")
        self.join("eve/desk", "eve-1", team="red", sees="all")

    def join(self, who: str, *sessions: str, **how: str) -> None:
        """Join a machine MEMBER/MACHINE with these sessions."""
        member, machine = who.split("/")
        self.logins[who] = self.team.joined(member, machine, **how)
        home = HomeOfTeam(self.folder / member / machine / "hive.db", self.logins[who].writes)
        self.homes[who] = home
        for session in sessions:
            write_session(home, session)
        home.ship()

    def use(self, who: str) -> None:
        """Use the home and the login of a machine for the next commands."""
        joined = self.logins[who]
        kept = Membership(joined.member, joined.machine, joined.writes.shown, {"*": "everything"})
        membership.keep(kept, joined.writes, joined.reads)
        folder = os.fsencode(self.homes[who].path.parent)
        self.patch.setitem(posix.environ, b"HIVEPIPE_HOME", folder)

    def output(self, who: str, *words: str) -> Any:
        """Run a command with --json as a machine, and return its output."""
        self.use(who)
        done = CliRunner().invoke(main, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def error(self, who: str, *words: str) -> str:
        """Run a command that fails as a machine, and return its error."""
        self.use(who)
        done = CliRunner().invoke(main, [*words])
        assert done.exit_code, done.output
        return done.stderr or str(done.exception)

    def set_visibility(self, member: str, whose: str) -> None:
        self.team.rows(f"UPDATE hivepipe.members SET sees = '{whose}' WHERE name = '{member}'")

    def audit(self) -> list[list[str]]:
        """Return reader, owner, session and purpose of each entry, in order."""
        columns = "reader, owner, session_id, what"
        return self.team.rows(
            f"SELECT {columns} FROM hivepipe.v_audit ORDER BY at, session_id, owner"
        )


@pytest.fixture(scope="module")
def made_members(unused_team: Team, tmp_path_factory: pytest.TempPathFactory) -> Members:
    return Members(unused_team.copied(), tmp_path_factory.mktemp("members"))


@pytest.fixture
def members(made_members: Members, no_team: None, monkeypatch: pytest.MonkeyPatch) -> Members:
    """Members that no test changes, without an entry in their audit log."""
    made_members.patch = monkeypatch
    made_members.team.rows("DELETE FROM hivepipe.audit")
    return made_members


@pytest.fixture
def own_members(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Members:
    """The same members, for tests that change them."""
    made = Members(team, tmp_path)
    made.patch = monkeypatch
    return made
