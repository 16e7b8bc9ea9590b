"""`hivepipe transcript --team`: the owner's conversation, read on another machine."""

import json
import os
import posix
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hivepipe.archive.archives import Archives
from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder
from hivepipe.summaries.providers import TEAM_ARCHIVE_KEY, TEAM_STORE, write_credential
from hivepipe.team import membership
from hivepipe.team.archives import cipher
from hivepipe.team.archives.sending import Pass
from hivepipe.team.connection import connected
from hivepipe.team.invites import Joined
from hivepipe.team.membership import Membership
from tests.archive_scene import AGENT, SESSION, Scene, line, lines
from tests.object_store import KEY, ObjectStore, object_store
from tests.team_scene import HomeOfTeam, Team
from tests.web_scene import insert

FORMS = ((), ("--markdown",), ("--html",), ("--json",))


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectStore]:
    with object_store() as running:
        running.empty()
        yield running


class Pair:
    """Ann's machine with an archive, and Bob, who reads on his."""

    def __init__(self, root: Path, team: Team, patch: pytest.MonkeyPatch) -> None:
        self.team, self.patch = team, patch
        self.ann, self.bob = team.joined("ann", "desk"), team.joined("bob", sees="all")
        self.scene = Scene(root / "ann")
        self.scene.kept = Path(kept_folder(str(self.scene.home)))
        self.scene.archives = Archives(str(self.scene.kept), Manifest(str(self.scene.home)))
        self.bobs = root / "bob"
        self.bobs.mkdir()
        self.home = HomeOfTeam(self.scene.home / "hive.db", self.ann.writes)
        self.home.work(SESSION, 1, "/p/shop")
        with closing(Database(self.home.path)) as db:
            insert(db, "swarms", id="w", name="shop")
            insert(db, "agents", id=AGENT, swarm_id="w", session_id=SESSION, status="completed",
                   type="Explore", created_at="2026-11-24T10:00:00.000Z")  # fmt: skip
        self.home.ship()
        self.scene.path.write_bytes(lines(30))
        agent = self.scene.agent_path()
        agent.write_bytes(line(50, "in the attic", agentId=AGENT))
        claude = str(self.scene.root / ".claude")
        self.scene.extend(claude_folder=claude, settled=True)
        self.scene.extend(agent, claude_folder=claude, session=SESSION, settled=True)

    def send(self) -> None:
        with connected(self.ann.writes) as connection:
            assert Pass(connection, str(self.scene.home), {"*": "everything"}).run().segments

    def shows(self, *words: str) -> Result:
        """Return what Bob is shown."""
        return self.shows_of(SESSION[:8], *words)

    def shows_of(self, what: str, *words: str) -> Result:
        return self._says(self.bobs, self.bob, what, "--team", *words)

    def shows_at_home(self, *words: str, of: str = SESSION[:8]) -> Result:
        return self._says(self.scene.home, self.ann, of, *words)

    def _says(self, home: Path, joined: Joined, *words: str) -> Result:
        kept = Membership(joined.member, joined.machine, joined.writes.shown, {"*": "everything"})
        membership.keep(kept, joined.writes, joined.reads)
        self.patch.setitem(posix.environ, b"HIVEPIPE_HOME", os.fsencode(home))
        return CliRunner().invoke(main, ["transcript", *words])

    def fails(self, *words: str) -> str:
        done = self.shows(*words)
        assert done.exit_code == 1, done.output
        assert not done.stdout
        return done.stderr


@pytest.fixture(params=["database", "s3"])
def pair(
    request: Any, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objects: ObjectStore
) -> Pair:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    store = objects.place if request.param == "s3" else request.param
    team.query("SELECT hivepipe.set_archive_store(%s)", store)
    write_credential(TEAM_STORE, KEY)
    return Pair(tmp_path, team, monkeypatch)


def test_the_last_session_and_a_subagent_are_found(pair: Pair) -> None:
    pair.send()
    assert pair.shows_of("last", "--json").stdout == pair.shows("--json").stdout
    for start in (AGENT, AGENT[:8]):
        shown = pair.shows_of(start, "--json")
        assert shown.exit_code == 0, shown.output
        assert shown.stdout == pair.shows_at_home("--json", of=start).stdout
        assert "in the attic" in shown.stdout
        assert "answer 7" not in shown.stdout
    assert "no session" in pair.shows_of("nothing").stderr


def test_the_owners_conversation_is_shown(pair: Pair) -> None:
    pair.send()
    own = pair.shows_at_home("--json")
    assert own.exit_code == 0, own.output
    assert pair.shows("--json").stdout == own.stdout
    assert "in the attic" in own.stdout
    middle = json.loads(own.stdout.splitlines()[15])["offset"]
    around = ("--around", str(middle), "--json")
    assert pair.shows(*around).stdout == pair.shows_at_home(*around).stdout
    for form in FORMS[:3]:
        done = pair.shows(*form)
        assert done.exit_code == 0, done.output
        for said in ("answer 7", "in the attic", SESSION):
            assert said in done.stdout, form
    text = pair.shows().stdout
    assert "ann, machine desk" in text
    assert "a title" in text
    ends = pair.shows_at_home().stdout.split("\n\n")[1:]
    assert text.split("\n\n")[1:] == ends
    assert pair.team.count("audit", f"session_id = '{SESSION}' AND what = 'archive'") == 1


def test_why_nothing_is_shown_is_said(pair: Pair) -> None:
    assert "did not send it yet" in pair.fails()
    pair.send()
    pair.team.query("SELECT hivepipe.set_policy('shop', 'prompts')")
    assert "its policy is prompts" in pair.fails()
    pair.team.query("SELECT hivepipe.set_archive_store('none')")
    assert "the team keeps no archives" in pair.fails()
    pair.team.rows("UPDATE hivepipe.members SET sees = 'self' WHERE name = 'bob'")
    assert f"no session has the id {SESSION[:8]}" in pair.fails()


def test_a_key_is_needed(pair: Pair) -> None:
    key = cipher.new_key()
    write_credential(TEAM_ARCHIVE_KEY, key)
    pair.send()
    for other in (None, cipher.new_key()):
        write_credential(TEAM_ARCHIVE_KEY, other)
        for form in FORMS:
            assert "archive-key --set" in pair.fails(*form)
    write_credential(TEAM_ARCHIVE_KEY, key)
    assert "answer 7" in pair.shows().stdout
    if pair.team.count("archive_contents") == 0:
        write_credential(TEAM_STORE, None)
        assert "hivepipe credentials set HIVEPIPE_TEAM_STORE" in pair.fails()


def test_several_sessions_are_named(pair: Pair) -> None:
    pair.send()
    pair.home.work(SESSION[:8] + "-other")
    pair.home.ship()
    assert "2 ids of a session begin with" in pair.fails()
