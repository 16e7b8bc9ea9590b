"""A `hivepipe forget` on one machine deletes from all of a team's places and the next backup."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hivepipe.team.archives import place
from tests.archive_scene import line
from tests.conftest import CLI, fire, until
from tests.integration.test_team_page import Person
from tests.object_store import KEY, ObjectStore
from tests.payloads import EVENTS, SESSION_START, changed
from tests.team_scene import Team

MINUTE = 60.0
HASTY_UPLINK = """
from hivepipe.worker import archive_passes, own_process, uplink
archive_passes.SETTLE_SECS = archive_passes.EVERY_SECS = 1.0
own_process.serve_alone(uplink.Uplink)
"""
WORD = "zebrafinch"  # only in the forgotten session
FORGOTTEN = "5e55104a-0000-4000-8000-00000000dead"
KEPT = "5e55104a-0000-4000-8000-00000000beef"


def record_session(person: Person, session: str, word: str) -> None:
    """Record a session with a prompt and a transcript that contain a word."""
    folder = Path(person.env["HOME"], ".claude", "projects", "-shop")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session}.jsonl"
    path.write_bytes(b"".join(line(n, f"{word} {n}", sessionId=session) for n in range(20)))
    fields = {"session_id": session, "transcript_path": str(path), "cwd": str(person.home.project)}
    fire("SessionStart", changed(SESSION_START, **fields), person.env)
    prompt = {**fields, "prompt": f"mend the {word}"}
    fire("UserPromptSubmit", changed(EVENTS["UserPromptSubmit"], **prompt), person.env)
    fire("SessionEnd", changed(EVENTS["SessionEnd"], **fields), person.env)
    person.run("hivepipe drain")


@contextmanager
def uplink_of(person: Person) -> Iterator[None]:
    """Run the uplink, as a stack does, with short delays before it sends archives."""
    running = subprocess.Popen([CLI[0], "-I", "-c", HASTY_UPLINK], env=person.env)
    try:
        yield
    finally:
        running.terminate()
        running.wait(20)


def dumped(team: Team, path: Path) -> str:
    """Return a database dump as text."""
    team.server.dump(team.database, path, plain=True)
    return path.read_text(errors="replace")


def table_of(dump: str, name: str) -> str:
    return dump.partition(f"COPY hivepipe.{name} (")[2].partition("\n\\.\n")[0]


@pytest.mark.long
@pytest.mark.parametrize("where", ["s3", "database"])
def test_a_session_forgotten_on_a_machine_is_in_no_later_backup(
    team: Team, tmp_path: Path, bucket: ObjectStore, where: str
) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    store = bucket.place if where == "s3" else place.DATABASE
    team.query("SELECT hivepipe.set_archive_store(%s)", store)
    ann = Person(tmp_path, "ann")
    ann.run("hivepipe credentials set HIVEPIPE_TEAM_STORE", KEY)
    ann.run("hivepipe team join --yes --share everything", team.joining_code("ann"))
    record_session(ann, FORGOTTEN, WORD)
    record_session(ann, KEPT, "sparrow")
    with uplink_of(ann):
        until(
            lambda: team.count("archives") == team.count("summaries") == 2,
            "not everything was sent",
            MINUTE,
        )
        until(lambda: not team.count("archive_leftovers"), "leftovers remain", MINUTE)
        objects = len(bucket.objects())
        before = dumped(team, tmp_path / "before.sql")
        assert WORD in before
        assert FORGOTTEN in table_of(before, "archives")
        assert "2 found" in ann.run(f"hivepipe search --team {WORD}")

        ann.run(f"hivepipe forget {FORGOTTEN} --yes")
        proofs = 2 if where == "s3" else 1
        until(lambda: team.count("deletions") == proofs, "proofs are missing", MINUTE)

    after = dumped(team, tmp_path / "after.sql")
    assert after.count(WORD) == table_of(after, "audit").count(f"search: {WORD}")
    kept = {name for name in ("forgotten", "deletions") if FORGOTTEN in table_of(after, name)}
    assert kept == {"forgotten", "deletions"}
    assert after.count(FORGOTTEN) == sum(table_of(after, name).count(FORGOTTEN) for name in kept)
    assert "0 found" in ann.run(f"hivepipe search --team {WORD}")
    assert "2 found" in ann.run("hivepipe search --team sparrow")
    assert team.count("archives") == 1
    assert len(bucket.objects()) == objects // 2 == (1 if where == "s3" else 0)
    places: dict[str, int] = {}
    for (proof,) in team.rows("SELECT places FROM hivepipe.deletions ORDER BY id"):
        places |= json.loads(proof)
    named = {"table sessions", "table prompts"}
    named |= (
        {"archive segments, listed", "objects in the store"}
        if where == "s3"
        else {"archive segments in the database"}
    )
    assert named <= places.keys()
