"""`hivepipe transcript --team` shows a session of one machine on another one."""

import json
import os
import posix
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.summaries.providers import TEAM_ARCHIVE_KEY, TEAM_STORE, write_credential
from hivepipe.team import membership
from hivepipe.team.archives import cipher
from hivepipe.team.invites import Joined
from hivepipe.team.membership import Membership
from tests.archive_scene import AGENT, SESSION, line, lines
from tests.integration.test_team_archives import Member, with_store
from tests.object_store import ObjectStore
from tests.team_scene import Team
from tests.web_scene import insert

FORMS = ((), ("--markdown",), ("--html",), ("--json",))


class Pair:
    """Ann's machine with an archive, and Bob's, on which it is read."""

    def __init__(self, root: Path, team: Team, patch: pytest.MonkeyPatch) -> None:
        self.team, self.patch = team, patch
        self.ann, self.bob = Member(root, team), team.joined("bob", sees="all")
        self.scene, self.home = self.ann.scene, self.ann.home
        self.bobs_home = root / "bob"
        self.bobs_home.mkdir()
        with closing(Database(self.home.path)) as db:
            insert(db, "swarms", id="w", name="shop")
            insert(db, "agents", id=AGENT, swarm_id="w", session_id=SESSION, status="completed",
                   type="Explore", created_at="2026-11-24T10:00:00.000Z")  # fmt: skip
        self.home.ship()
        self.scene.path.write_bytes(lines(30))
        agent = self.scene.agent_path()
        agent.write_bytes(line(50, "in the attic", agentId=AGENT))
        self.ann.extend(settled=True)
        self.ann.extend(agent, session=SESSION, settled=True)

    def send(self) -> None:
        assert self.ann.send().segments

    def read(self, *words: str) -> Result:
        return self.read_id(SESSION[:8], *words)

    def read_id(self, what: str, *words: str) -> Result:
        return self._run(self.bobs_home, self.bob, what, "--team", *words)

    def read_at_home(self, *words: str, of: str = SESSION[:8]) -> Result:
        return self._run(self.scene.home, self.ann.joined, of, *words)

    def _run(self, home: Path, joined: Joined, *words: str) -> Result:
        kept = Membership(joined.member, joined.machine, joined.writes.shown, {"*": "everything"})
        membership.keep(kept, joined.writes, joined.reads)
        self.patch.setitem(posix.environ, b"HIVEPIPE_HOME", os.fsencode(home))
        return CliRunner().invoke(main, ["transcript", *words])

    def error(self, *words: str) -> str:
        done = self.read(*words)
        assert done.exit_code == 1, done.output
        assert not done.stdout
        return done.stderr


@pytest.fixture(params=["database", "s3"])
def pair(
    request: Any, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: ObjectStore
) -> Pair:
    store = bucket.place if request.param == "s3" else request.param
    return Pair(tmp_path, with_store(team, store), monkeypatch)


def test_the_last_session_and_a_subagent_are_found(pair: Pair) -> None:
    pair.send()
    assert pair.read_id("last", "--json").stdout == pair.read("--json").stdout
    for start in (AGENT, AGENT[:8]):
        shown = pair.read_id(start, "--json")
        assert shown.exit_code == 0, shown.output
        assert shown.stdout == pair.read_at_home("--json", of=start).stdout
        assert "in the attic" in shown.stdout
        assert "answer 7" not in shown.stdout
    assert "no session" in pair.read_id("nothing").stderr


def test_a_reader_is_shown_the_owners_conversation(pair: Pair) -> None:
    pair.send()
    own = pair.read_at_home("--json")
    assert own.exit_code == 0, own.output
    assert pair.read("--json").stdout == own.stdout
    assert "in the attic" in own.stdout
    middle = json.loads(own.stdout.splitlines()[15])["offset"]
    around = ("--around", str(middle), "--json")
    assert pair.read(*around).stdout == pair.read_at_home(*around).stdout
    for form in FORMS[:3]:
        done = pair.read(*form)
        assert done.exit_code == 0, done.output
        for text_part in ("answer 7", "in the attic", SESSION):
            assert text_part in done.stdout, form
    text = pair.read().stdout
    assert "ann, machine laptop" in text
    assert "a title" in text
    ends = pair.read_at_home().stdout.split("\n\n")[1:]
    assert text.split("\n\n")[1:] == ends
    assert pair.team.count("audit", f"session_id = '{SESSION}' AND what = 'archive'") == 1


def test_a_missing_archive_is_reported_with_the_reason(pair: Pair) -> None:
    assert "did not send it yet" in pair.error()
    pair.send()
    pair.team.query("SELECT hivepipe.set_policy('shop', 'prompts')")
    assert "its policy is prompts" in pair.error()
    pair.team.query("SELECT hivepipe.set_archive_store('none')")
    assert "the team keeps no archives" in pair.error()
    pair.team.rows("UPDATE hivepipe.members SET sees = 'self' WHERE name = 'bob'")
    assert f"no session has the id {SESSION[:8]}" in pair.error()


def test_an_encrypted_archive_needs_the_key(pair: Pair) -> None:
    key = cipher.new_key()
    write_credential(TEAM_ARCHIVE_KEY, key)
    pair.send()
    for other in (None, cipher.new_key()):
        write_credential(TEAM_ARCHIVE_KEY, other)
        for form in FORMS:
            assert "archive-key --set" in pair.error(*form)
    write_credential(TEAM_ARCHIVE_KEY, key)
    assert "answer 7" in pair.read().stdout
    if pair.team.count("archive_contents") == 0:
        write_credential(TEAM_STORE, None)
        assert "hivepipe credentials set HIVEPIPE_TEAM_STORE" in pair.error()


def test_an_ambiguous_id_is_reported(pair: Pair) -> None:
    pair.send()
    pair.home.work(SESSION[:8] + "-other")
    pair.home.ship()
    assert "2 ids begin with" in pair.error()
