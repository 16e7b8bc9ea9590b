"""`hivepipe forget` deletes a session from every place and nothing of other sessions."""

import gzip
import json
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.home import Place
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.maintenance.forget import Forgetting
from hivepipe.operations.briefing_files import BriefingFiles
from tests.archive_scene import line
from tests.conftest import (
    Home,
    Process,
    Server,
    Writer,
    fire,
    is_drained,
    made_home,
    servers,
    until,
)
from tests.integration.test_canary import files_with, in_tables
from tests.integration.test_cli_listings import command
from tests.payloads import AGENT, ALL, SESSION, SESSION_START, USER_PROMPT_SUBMIT, changed

CANARY = "quetzalcoatl-9127"
NEEDLES = [CANARY.encode(), b"quetzalcoatl", b"coatl-9127"]
OTHER = "ffffffff-0000-4000-8000-000000000000"
IDS = ("session_id", "agent_id", "agentId", "prompt_id", "tool_use_id", "hook_event_name")
DECIDING = ("tool_name", "status", "expansion_type", "source", "reason", "trigger", "cwd")


def planted(value: Any, name: str = "") -> Any:
    """Add the canary to every text that does not decide how the event is handled."""
    if isinstance(value, dict):
        return {key: planted(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [planted(inner, name) for inner in value]
    if not isinstance(value, str) or name in (*IDS, *DECIDING) or name.endswith("transcript_path"):
        return value
    return f"{value} {CANARY}"


class Scene:
    """A home with one session in every place, and a second session; its Redis runs."""

    def __init__(self, home: Home, server: Server) -> None:
        self.home, self.server = home, server
        self.writer, self.slow_worker = Writer(home), Writer(home, "slow")
        self.env = home.with_env(INSTANCE_ID="instance-ana", CHECKPOINT_INTERVAL="0")
        self.projects = home.root / ".claude" / "projects" / "-shop"
        self.transcript = self.projects / f"{SESSION}.jsonl"

    def transcripts(self) -> None:
        agents = self.projects / SESSION / "subagents"
        agents.mkdir(parents=True, exist_ok=True)
        cwd = str(self.home.project)
        self.transcript.write_bytes(line(1, f"said {CANARY}", cwd=cwd))
        (agents / f"agent-{AGENT}.jsonl").write_bytes(
            line(2, f"{CANARY} found", cwd=cwd, agentId=AGENT, isSidechain=True)
        )
        (self.projects / f"{OTHER}.jsonl").write_bytes(
            line(3, "the innocent", cwd=cwd, sessionId=OTHER)
        )

    def fire(self) -> None:
        for event in ALL.values():
            shown = planted(changed(event, transcript_path=str(self.transcript)))
            if "agent_transcript_path" in shown:
                path = self.projects / SESSION / "subagents" / f"agent-{AGENT}.jsonl"
                shown["agent_transcript_path"] = str(path)
            fire(event["hook_event_name"], shown, self.env)

    def fire_other(self) -> None:
        env = self.home.with_env(INSTANCE_ID="instance-bo")
        for event in (SESSION_START, USER_PROMPT_SUBMIT):
            path = str(self.projects / f"{OTHER}.jsonl")
            changed_event = changed(event, session_id=OTHER, transcript_path=path)
            fire(event["hook_event_name"], changed_event, env)

    def work(self, fire: Callable[[], None], is_done: Callable[[], object]) -> None:
        """Start the workers, fire events, wait until all is done, and end the workers."""
        self.writer.start()
        self.slow_worker.start()
        fire()
        until(lambda: is_drained(self.home, self.server, self.writer), "not drained")
        until(is_done, "the slow worker does not work")
        assert self.slow_worker.end(signal.SIGTERM) == 0
        assert self.writer.end(signal.SIGTERM) == 0

    def shown(self) -> dict[str, bytes]:
        """Return hivepipe's files that still contain the canary."""
        found = {}
        for folder in (self.home.path, self.home.database.parent, self.home.kept):
            found.update(files_with(folder, NEEDLES))
        return found

    def rows_of_the_other(self) -> list[str]:
        return in_tables(self.home, [OTHER.encode()])


@pytest.fixture(scope="module")
def prepared() -> Iterator[tuple[Home, Path]]:
    """A home with a session in every place, and a copy of all its files."""
    with made_home() as home, servers() as new_server, pytest.MonkeyPatch.context() as patched:
        home.use_environment(patched)
        server = new_server(home)
        prepare(Scene(home, server))
        server.end(signal.SIGTERM)
        patched.undo()
        kept = home.root.with_name(f"{home.root.name}-kept")
        shutil.copytree(home.root, kept, symlinks=True)
        yield home, kept
        shutil.rmtree(kept)


def prepare(scene: Scene) -> None:
    home = scene.home
    command(home, "init", "--local", "--no-probe")
    scene.transcripts()

    def fire_both() -> None:
        scene.fire_other()
        scene.fire()

    scene.work(fire_both, lambda: len([*home.kept.rglob("*.meta.json")]) >= 2)
    command(home, "archive", "sweep")
    assert "1 found" in command(home, "search", "innocent")
    command(home, "task", "add", "--id", "t1", "pay")
    add_other_places(scene)


@pytest.fixture
def scene(
    prepared: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch, to_end: list[Process]
) -> Iterator[Scene]:
    home, kept = prepared
    shutil.rmtree(home.root)
    shutil.copytree(kept, home.root, symlinks=True)
    home.use_environment(monkeypatch)
    with servers() as new_server:
        made = Scene(home, new_server(home))
        to_end += [made.writer, made.slow_worker]
        yield made


def add_other_places(scene: Scene) -> None:
    """Add what no event creates: a failed job, a backup, logs, spool files, markers."""
    home = scene.home
    # no writer runs; on a busy machine all events may go to the spool
    with scene.server.client() as client:
        until(lambda: scene.fire() or client.llen("rq:queue:medium"), "no job waits in Redis")
        (first, *_) = client.lrange("rq:queue:medium", 0, 0)
        client.lrem("rq:queue:medium", 1, first)
        client.zadd("rq:failed:medium", {first: 1})
        client.hset(b"rq:job:" + first, "status", "failed")
    connection = sqlite3.connect(home.database)
    backup = home.database.parent / "backups" / "hive-before-0005-1.db"
    backup.parent.mkdir(exist_ok=True)
    connection.execute("VACUUM INTO ?", (str(backup),))
    connection.close()
    (home.path / "spool" / "bad").mkdir(parents=True, exist_ok=True)
    torn = home.path / "spool" / "bad" / "1_2.json"
    torn.write_text(f'{{"v":1,"jobs":[{{"session":"{SESSION}","x":"{CANARY}')
    Path(f"{torn}.reason").write_text("torn\n")
    jobs = [{"envelope": {"metadata": {"session": SESSION}, "payload": {"prompt": CANARY}}}]
    (home.path / "spool" / "00000000000000000001_7.json.tmp").write_text(
        json.dumps({"v": 1, "jobs": jobs})
    )
    home.logs.mkdir(exist_ok=True)
    with (home.logs / "hook-errors.log").open("a") as log:
        log.write(f"[2026] [stop] [ERROR] {SESSION} {CANARY}\n[2026] [stop] [ERROR] innocent\n")
    connection = sqlite3.connect(home.database)
    connection.execute(
        "INSERT INTO summaries VALUES (?, 's', '2026-01-10T00:00:00.000Z', 'plain', '', '', '', '',"
        " ?, '[]', '[]', '[]', 0, 0, 0, 0)",
        (SESSION, f"{CANARY} was done"),
    )
    worker = home.root / "hive" / "workers" / "shop-1"
    worker.mkdir(parents=True)
    connection.execute(
        "INSERT INTO hive_workers (id, session_id, hive) VALUES ('shop-1', ?, ?)",
        (SESSION, str(home.root / "hive")),
    )
    connection.commit()
    connection.close()
    BriefingFiles(str(home.path)).write(home.database)  # as the writer does
    assert CANARY in "".join(path.read_text() for path in home.path.glob("context/*.txt"))
    (home.path / "context").mkdir(exist_ok=True)
    (home.path / "context" / f"{SESSION}.txt").write_text(CANARY)


def test_forget_deletes_all_of_a_session_for_ever_and_nothing_of_another(scene: Scene) -> None:
    before = scene.shown()
    for place in ("hive.db", "appendonly", "main-session", "subagent", "backups", "spool/bad"):
        assert any(place in path for path in before), (place, before.keys())
    other = scene.rows_of_the_other()
    assert other

    output = command(scene.home, "forget", "--dry-run", SESSION[:6])
    assert "would delete: table prompts" in output
    assert scene.shown().keys() == before.keys()

    output = command(scene.home, "forget", "--yes", SESSION[:6])
    for place in ("table prompts", "Redis", "spool", "archives", "backups", "logs"):
        assert f"deleted: {place}" in output, output
    assert f"rm {scene.transcript}" in output
    assert f"rm -r {scene.home.root / 'hive' / 'workers' / 'shop-1'}" in output
    assert scene.shown() == {}
    assert scene.rows_of_the_other() == other
    assert "innocent" in (scene.home.logs / "hook-errors.log").read_text()
    with scene.server.client() as client:
        ours = [client.hget(key, "data") or b"" for key in client.keys("rq:job:*")]
        assert not [data for data in ours if SESSION.encode() in data]
        accepted, done, discarded = (
            int(client.get(f"hivepipe:{name}") or 0) for name in ("accepted", "done", "discarded")
        )
        assert discarded > 0
        waiting = sum(client.llen(f"rq:queue:{q}") for q in ("high", "medium", "low", "slow"))
        assert accepted - done - discarded == waiting
    assert "deleted: table" not in command(scene.home, "forget", "--yes", SESSION[:6])
    assert "no session has the id" in command(scene.home, "forget", "--yes", "absent", expect=1)
    assert_it_does_not_come_back(scene)


def assert_it_does_not_come_back(scene: Scene) -> None:
    """Sweep its transcript and fire its events again: nothing of it is recorded."""
    command(scene.home, "archive", "sweep")
    with scene.server.client() as client:
        scene.work(scene.fire, lambda: not client.llen("rq:queue:slow"))
    assert scene.home.rows(f"SELECT * FROM sessions WHERE id = '{SESSION}'") == []
    assert in_tables(scene.home, NEEDLES) == []
    assert [*scene.home.kept.rglob(f"*{SESSION}*")] == []
    assert [*scene.home.kept.rglob(f"*{OTHER}*.jsonl")]


def test_forget_works_with_the_stack_down(scene: Scene) -> None:
    scene.server.end(signal.SIGTERM)
    assert any("appendonly" in path for path in scene.shown())
    (scene.home.path / "context" / "\udcff").touch()  # a name that is not UTF-8
    output = command(scene.home, "forget", "--yes", SESSION)
    assert "deleted: Redis" in output
    assert scene.shown() == {}
    scene.server.start()
    with scene.server.client() as client:
        assert int(client.get("hivepipe:discarded") or 0) > 0


@pytest.mark.parametrize("words", [(SESSION,), ("--matching", CANARY)])
def test_forget_reaches_events_that_the_home_could_not_take(
    private_home: Home, words: tuple[str, ...]
) -> None:
    Database(private_home.database).close()
    spool = Path(private_home.address).parent / "spool"
    for folder in (spool.parents[1], spool.parent, spool):
        folder.mkdir(mode=0o700)
    jobs = [{"envelope": {"metadata": {"session": SESSION}, "payload": {"prompt": CANARY}}}]
    event = spool / "00000000000000000001_7.json"
    event.write_text(json.dumps({"v": 1, "jobs": jobs}))
    assert "deleted: spool: 1 file" in command(private_home, "forget", "--yes", *words)
    assert not event.exists()


def test_forget_without_a_home_or_an_id_is_refused(private_home: Home) -> None:
    shutil.rmtree(private_home.path, ignore_errors=True)
    assert "nothing is recorded" in command(private_home, "forget", "abc", expect=1)
    command(private_home, "forget", expect=64)


def test_forget_before_a_day_deletes_older_sessions(scene: Scene) -> None:
    assert "no session is that old" in command(scene.home, "forget", "--before", "2020-01-01")
    assert scene.home.rows(f"SELECT * FROM prompts WHERE session_id = '{OTHER}'")
    times = (
        ("prompts", "created_at"),
        ("sessions", "updated_at"),
        ("instance_sessions", "last_seen"),
        ("activity", "last_active_at"),
    )
    with closing(sqlite3.connect(scene.home.database)) as db, db:
        for table, column in times:
            key = "id" if table == "sessions" else "session_id"
            db.execute(f"UPDATE {table} SET {column} = '2026-01-10' WHERE {key} = ?", (OTHER,))
    output = command(scene.home, "forget", "--yes", "--before", "2026-01-12")
    assert f"session {OTHER}" in output
    assert f"session {SESSION}" not in output
    assert scene.home.rows(f"SELECT * FROM prompts WHERE session_id = '{OTHER}'") == []
    assert scene.home.rows(f"SELECT * FROM sessions WHERE id = '{SESSION}'")
    command(scene.home, "forget", "--before", "yesterday", expect=64)
    command(scene.home, "forget", "--before", "2020-01-01", "abc", expect=64)


@pytest.mark.parametrize("place", ["table sessions", "archives", "markers"])
def test_forgetting_by_day_goes_on_after_an_interruption(scene: Scene, place: str) -> None:
    home = scene.home
    (home.logs / "hook-errors.log").write_text(f"[2026] [stop] [ERROR] {OTHER} failed\n")
    forgotten = ForgetQuery(frozenset({OTHER}))
    with Database(home.database) as db:
        steps = Forgetting(Place(str(home.project), str(home.path), {}), db).forget(forgotten)
        assert any(step.place == place for step in steps)
        steps.close()  # type: ignore[attr-defined]
    command(home, "forget", "--yes", SESSION)
    backup = home.database.parent / "backups" / "hive-before-0005-1.db"
    shutil.copy(home.database, backup)
    output = command(home, "forget", "--yes", "--before", "2020-01-01")
    assert f"session {OTHER}" in output
    assert OTHER not in (home.logs / "hook-errors.log").read_text()
    assert not backup.exists()
    assert "no session is that old" in command(home, "forget", "--before", "2020-01-01")


@pytest.fixture
def live(private_home: Home) -> Home:
    """A home without a stack that has one session."""
    with Database(private_home.database) as db:
        sql = "INSERT INTO sessions (id, status, updated_at) VALUES (:id, 'active', '2026-01-10')"
        db.execute(sql, {"id": OTHER})
    return private_home


def is_kept_by_other_commands(home: Home) -> bool:
    """Tell whether forgetting other sessions leaves the live one."""
    command(home, "forget", "--yes", "--matching", CANARY)
    command(home, "forget", "--yes", "--before", "2020-01-01")
    return bool(home.rows(f"SELECT * FROM sessions WHERE id = '{OTHER}'"))


def test_a_session_whose_forgetting_is_rolled_back_stays(live: Home) -> None:
    with closing(sqlite3.connect(live.database)) as db:
        failing = "CREATE TRIGGER failing BEFORE DELETE ON sessions BEGIN {}; END"
        db.execute(failing.format("SELECT RAISE(ABORT, 'the disk is full')"))
        assert "the disk is full" in command(live, "forget", "--yes", OTHER, expect=1)
        db.execute("DROP TRIGGER failing")
    assert is_kept_by_other_commands(live)


def test_a_session_that_a_backup_brings_back_stays(live: Home) -> None:
    backup = str(live.root / "backup.tar.gz")
    command(live, "backup", backup)
    with Database(live.database) as db:
        place = Place(str(live.project), str(live.path), {})
        assert next(iter(Forgetting(place, db).forget(ForgetQuery(frozenset({OTHER})))))
    assert live.rows("SELECT * FROM sessions") == []
    command(live, "restore", "--replace", backup)
    assert is_kept_by_other_commands(live)


def test_forget_matching_deletes_sessions_that_contain_a_text(scene: Scene) -> None:
    command(scene.home, "task", "add", "--id", "t2", f"ask {CANARY} about it")
    logs = scene.home.kept
    (kept,) = logs.glob(f"main-session/*/*_{SESSION}.jsonl")
    with gzip.open(f"{kept}.gz", "wb") as packed:
        packed.write(kept.read_bytes())
    kept.unlink()
    command(scene.home, "archive", "rebuild-index")
    other = scene.rows_of_the_other()

    output = command(scene.home, "forget", "--dry-run", "--matching", CANARY)
    assert f"session {SESSION}" in output
    assert OTHER not in output
    assert any("hive.db" in path for path in scene.shown())

    scene.server.end(signal.SIGTERM)
    own = scene.home.path / "config.toml"
    own.write_text(f"# {CANARY}\n")
    sparse = scene.home.path / "notes.txt"  # reading its zeros would take half an hour
    with sparse.open("wb") as file:
        file.truncate(1 << 42)
        file.seek(1 << 41)
        file.write(CANARY.encode())
    output = command(
        scene.home, "forget", "--yes", "--matching", "-", given=f"{CANARY}\n", expect=1
    )
    assert f"session {SESSION}" in output
    assert f"the text is still in {own}, {sparse}" in output
    own.unlink()
    sparse.unlink()
    assert "deleted: rows without a session, only the text: 1 row\n" in output
    assert scene.shown() == {}
    assert scene.rows_of_the_other() == other
    (task,) = scene.home.rows("SELECT text FROM tasks WHERE id = 't2'")
    assert task["text"] == "ask ***FORGOTTEN*** about it"
    assert "no session contains it" in command(scene.home, "forget", "--yes", "--matching", CANARY)
    command(scene.home, "forget", "--matching", "abc", expect=64)
    command(scene.home, "forget", "--matching", "-", given="abc\n", expect=64)
