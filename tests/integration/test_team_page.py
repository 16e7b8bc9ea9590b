"""Run every command of docs/team.md: an administrator, two members with machines, an S3 store."""

import json
import os
import shlex
import socket
import subprocess
from pathlib import Path

import httpx2

from hivepipe.team import address
from hivepipe.team.shipment import Shipment
from tests.archive_scene import lines
from tests.conftest import CLI, COMMANDS, PATIENCE_SECS, ROOT, Home, fire
from tests.integration.test_readme import steps
from tests.object_store import KEY, ObjectStore
from tests.payloads import EVENTS, SESSION_START, changed
from tests.team_scene import ADMIN, SECRET, Team

PAGE = ROOT / "docs" / "team.md"
NOT_RUN = ("docker ",)  # tested in test_compose_team.py
ADMINS = (
    *("team init", "team invite", "team store", "team retention"),
    *("team forget", "team revoke", "team page"),
    *("HIVEPIPE_TEAM_PAGE", "HIVEPIPE_TEAM_OIDC_SECRET"),
)
SESSION = "5e55104a-0000-4000-8000-000000000022"


class Person:
    """A user with a machine and a home on it; the administrator has not joined."""

    def __init__(self, root: Path, name: str) -> None:
        root = root / name
        root.mkdir()
        self.home = Home(root)
        self.home.make()
        self.env = {**self.home.env, "XDG_CONFIG_HOME": str(root / "config")}

    def run(self, command: str, typed: str = "", code: int = 0, **more: str) -> str:
        """Run a command of the page and return its output."""
        env = self.env | more
        words = [os.path.expandvars(word) for word in shlex.split(command)]
        words = [env.get(word.removeprefix("$"), word) for word in words]
        assert words[0] == "hivepipe"
        done = COMMANDS.run(words[1:], typed, env, self.home.project, PATIENCE_SECS)
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def send_all(self) -> None:
        """Send rows, and then archives as the uplink would."""
        config = Path(self.env["XDG_CONFIG_HOME"], "hivepipe")
        kept = dict(
            line.split("=", 1) for line in (config / "credentials.env").read_text().splitlines()
        )
        share = json.loads((config / "team.json").read_text())["share"]
        with Shipment(str(self.home.path), address.parse(kept["HIVEPIPE_TEAM"]), share) as shipment:
            while shipment.ship_next():
                pass
        words = [*CLI[:3], "hivepipe.worker.archive_pass"]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def input_of(step: str, words: dict[str, str]) -> str:
    """Return the input for a command of the page."""
    if step.startswith("hivepipe team join"):
        return words["ann"] + "\ny\n"
    if step.endswith(" HIVEPIPE_TEAM_PAGE"):
        return words["page-login"]
    return KEY if step.startswith("hivepipe credentials set") else ""


def is_of_administrator(step: str) -> bool:
    return step.endswith("--team") or any(words in step for words in ADMINS)


def record_session(person: Person) -> None:
    """Record a session on a machine, with a transcript in Claude Code's folder."""
    folder = Path(person.env["HOME"], ".claude", "projects", "-shop")
    folder.mkdir(parents=True)
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(lines(20))
    fields = {"session_id": SESSION, "transcript_path": str(path), "cwd": str(person.home.project)}
    fire("SessionStart", changed(SESSION_START, **fields), person.env)
    fire("SessionEnd", changed(EVENTS["SessionEnd"], **fields), person.env)
    person.run("hivepipe drain")


def test_every_command_of_the_page_works(team: Team, bucket: ObjectStore, tmp_path: Path) -> None:
    chief, ann, bob = (Person(tmp_path, name) for name in ("chief", "ann", "bob"))
    (tmp_path / "pgpass").write_text(f"*:*:*:{ADMIN}:{SECRET}\n")
    (tmp_path / "pgpass").chmod(0o600)
    chief.env |= {
        "PGPASSFILE": str(tmp_path / "pgpass"),
        "TEAM_ADMIN_URL": team.server.url(team.database, ADMIN),
        "TEAM_STORE": bucket.place,
        "HIVEPIPE_TEAM_STORE": KEY,
        "OIDC_ISSUER": "https://id.example",
        "PAGE_URL": "https://hive.example",
    }
    words: dict[str, str] = {}
    for step in steps(PAGE):
        if step.startswith(NOT_RUN):
            continue
        if "team forget" in step:
            share_everything(chief, ann, bob, words, bucket)
            step = step.replace("SESSION", SESSION)
        if step.startswith("hivepipe team page "):
            assert_page_needs_login(chief, step)
            continue
        who = chief if is_of_administrator(step) else ann
        output = who.run(step, input_of(step, words), 0)
        if "team invite" in step or "page-login" in step:
            words[step.split()[-1] if "page" in step else step.split()[3]] = output.strip()
    assert not bucket.objects()
    assert team.count("archive_segments") == team.count("sessions") == 0
    assert "revoked" in chief.run("hivepipe team members")
    ann.run("hivepipe team leave --purge --yes")
    assert team.count("homes") == 1  # bob's


def assert_page_needs_login(who: Person, step: str) -> None:
    """Run a page until it answers, and check that it admits nobody without a login."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [who.env.get(word.removeprefix("$"), word) for word in shlex.split(step, comments=True)]
    command = [*CLI, *words[1:], f"--port={port}"]
    running = subprocess.Popen(command, env=who.env, cwd=who.home.project, stdout=subprocess.PIPE)
    try:
        assert running.stdout
        assert running.stdout.readline()
        answer = httpx2.get(
            f"http://127.0.0.1:{port}/now", headers={"Host": "hive.example"}, timeout=60
        )
        assert answer.status_code == (401 if "--oidc" in step else 403)
    finally:
        running.terminate()
        running.communicate(timeout=20)


def share_everything(
    chief: Person, ann: Person, bob: Person, words: dict[str, str], bucket: ObjectStore
) -> None:
    """Share everything of two machines: one view shows both, and stored archives are encrypted."""
    chief.run("hivepipe team policy shop everything --team")
    ann.run("hivepipe team policy '*' everything")
    bob.run("hivepipe team join --yes --share metadata --machine laptop", words["bob"])
    for each in (ann, bob):
        record_session(each)
        each.send_all()
    assert "complete" in ann.run("hivepipe team status")
    assert bucket.objects()
    assert not any(b"answer" in content for content in bucket.objects().values())
    output = ann.run("hivepipe sessions --team --all")
    assert "ann" in output
    assert "bob" in output
