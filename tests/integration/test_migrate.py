"""`hivepipe migrate`, as an unprivileged user, imports everything once and loses nothing."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hivepipe.home import short_hash
from hivepipe.install.hook_entries import events_of
from tests.installed import AS_USER, UID, Installation, User
from tests.integration.test_doctor import findings_of
from tests.old_project import SESSION, OldProject, agent, states

ASIDE = ".hive-mind.before-hivepipe"
HOOKS = len(events_of(None))


@pytest.fixture
def old(user: User) -> OldProject:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    return OldProject(user.project)


@pytest.fixture
def whole(user: User, old: OldProject) -> OldProject:
    """A project with everything that the predecessor made."""
    old.whole()
    user.own(user.project)
    return old


def database(user: User) -> Path:
    return Path(user.hivepipe("home").strip(), "hive.db")


def rows(user: User, sql: str) -> list[Any]:
    with closing(sqlite3.connect(database(user))) as db:
        return db.execute(sql).fetchall()


def counts(user: User) -> dict[str, int]:
    names = ("swarms", "sessions", "agents", "instance_sessions", "session_logs", "tasks")
    return {name: rows(user, f"SELECT count(*) FROM {name}")[0][0] for name in names}


def without_state(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out archives and exports, and the times of git's files."""
    return {
        name: (*state[:2], state[3]) if name.startswith(".git/") else state
        for name, state in found.items()
        if not name.startswith(".claude-state")
    }


@pytest.mark.parametrize("shape", ["seed", "claude-flow"])
def test_everything_is_imported_once_and_nothing_is_lost(
    user: User, old: OldProject, shape: str
) -> None:
    old.whole(shape)
    user.own(user.project)
    user.git("init", "-q")
    if shape == "seed":
        user.do("rm", "-r", ".git/info")
    user.own(user.project)
    before = states(user.project)
    home = states(old.home)
    dry = user.hivepipe("migrate", "--dry-run")
    assert states(user.project) == before
    output = user.hivepipe("migrate", "--yes")
    assert states(user.project / ASIDE) == home
    found = {"swarms": 1, "sessions": 1, "agents": 5, "instance_sessions": 1, "session_logs": 2}
    found["tasks"] = int(shape == "claude-flow")
    assert counts(user) == found
    assert rows(user, "SELECT checkpoint_count, operation_count FROM instance_sessions") == [
        (6, 12)
    ]
    assert {row[0] for row in rows(user, "SELECT session_id FROM agents")} == {SESSION}
    for text in (dry, output):
        assert "failed/5_1736500108N_8.json" in text
        assert "DROP is not INSERT, UPDATE or DELETE" in text
        assert "file config.json (1): hivepipe does not know this file" in text
        assert "files (3): done by the old worker" in text
        if shape == "claude-flow":
            assert "table collective_memory (2): hivepipe keeps memories as files" in text
    shared = (user.project / ".claude/settings.json").read_text()
    assert "npm run lint" in shared
    assert "auto-checkpoint" not in shared + user.settings.read_text()
    assert ASIDE not in user.git("status", "--short")
    assert "no problem found" in user.hivepipe("doctor")
    assert "nothing new" in user.hivepipe("migrate", "--yes")
    assert counts(user) == found
    output = user.hivepipe("uninstall", "--purge", "--yes")
    assert ".hive-mind is back" in output
    assert without_state(states(user.project)) == without_state(before)


def test_migrate_ends_with_the_probe(user: User, old: OldProject) -> None:
    old.hooks()
    user.own(user.project)
    output = user.hivepipe("migrate", "--yes", "--probe", expect=1, HIVEPIPE_DISABLED="1")
    assert (
        f"probe    0 of {HOOKS} hooks recorded an event, {HOOKS} answered, but not recorded"
        in output
    )


def test_json_is_one_object_for_plan_and_result(user: User, whole: OldProject) -> None:
    before = states(user.project)
    dry = json.loads(user.hivepipe("migrate", "--dry-run", "--json"))
    assert states(user.project) == before
    assert (dry["changed"], dry["result"], dry["probe"]) == (False, None, None)
    plan = dry["plan"]
    assert plan["moves"] == [{"source": str(whole.home), "target": str(user.project / ASIDE)}]
    assert {Path(each["path"]).name for each in plan["hooks"]} >= {"settings.json"}
    assert all(each["command"] for file in plan["hooks"] for each in file["old"])
    assert [each["folder"] for each in plan["queues"]] == [str(whole.queue)]
    done = user.do("hivepipe", "migrate", "--json", data="y\n")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["changed"] is True
    assert report["plan"] == plan
    rows = report["result"]["rows"]
    assert rows["totals"] == plan["rows"]["totals"]
    assert rows["totals"]["taken"] > 5
    assert [each["reason"] for each in rows["entries"] if each["outcome"] == "refused"]
    assert report["result"]["kept"] == [str(user.project / ASIDE)]
    assert {each["verdict"] for each in report["probe"]} == {"recorded"}
    again = json.loads(user.hivepipe("migrate", "--yes", "--json"))
    assert (again["changed"], again["result"]) == (False, None)
    user.hivepipe("uninstall")
    undone = json.loads(user.hivepipe("migrate", "--undo", "--yes", "--json"))
    assert undone["homes"] == [str(whole.home)]
    assert without_state(states(user.project)) == without_state(before)


def test_uninstall_keeps_both_homes_and_undo_restores_the_old_one(
    user: User, whole: OldProject
) -> None:
    before = states(user.project)
    user.hivepipe("migrate", "--yes")
    imported = counts(user)
    assert "uninstall" in user.hivepipe("migrate", "--undo", "--yes", expect=1)
    output = user.hivepipe("uninstall")
    assert ASIDE in output
    assert "hivepipe migrate --undo" in output
    assert "auto-checkpoint" not in (user.project / ".claude/settings.json").read_text()

    assert "install  hivepipe" in user.hivepipe("migrate", "--yes")
    assert counts(user) == imported
    assert "no problem found" in user.hivepipe("doctor")
    assert "already migrated" in user.hivepipe("migrate", "--yes")

    user.hivepipe("uninstall")
    user.hivepipe("migrate", "--undo", "--yes")
    assert without_state(states(user.project)) == without_state(before)
    assert "nothing to undo" in user.hivepipe("migrate", "--undo", "--yes", expect=1)


def test_edits_of_the_settings_after_migrate_are_kept(user: User, whole: OldProject) -> None:
    shared = user.project / ".claude/settings.json"
    user.hivepipe("migrate", "--yes")
    shared.write_text(shared.read_text().replace("opus", "haiku"))
    user.hivepipe("uninstall", "--purge", "--yes")
    settings = json.loads(shared.read_text())
    assert settings["model"] == "haiku"
    assert shared.read_text().count("auto-checkpoint.sh") == 2
    assert "task-agent-tracker.sh" in shared.read_text()


def test_hivepipe_installed_beside_old_hooks_is_migrated(user: User, old: OldProject) -> None:
    old.hooks()
    user.own(user.project)
    before = states(user.project)
    output = user.hivepipe("init")
    assert "3 old bash hooks are still in .claude/settings.json; `hivepipe migrate`" in output
    output = user.hivepipe("doctor", expect=1)
    assert "old-hooks" in findings_of(user)
    assert "still runs old bash hooks" in output
    assert "hivepipe migrate\n" in output
    user.hivepipe("migrate", "--yes")
    assert "no problem found" in user.hivepipe("doctor")
    local = user.settings.read_text()
    assert "session-checkpoint" not in local
    user.hivepipe("uninstall")
    assert "session-checkpoint" not in user.settings.read_text()
    user.hivepipe("uninstall", "--purge", "--yes")
    after = states(user.project)
    assert {name: state[3] for name, state in after.items()} == {
        name: state[3] for name, state in before.items()
    } | {name: b"" for name in after if name.startswith(".claude-state")}


def test_migrate_reports_that_there_is_nothing(user: User, old: OldProject) -> None:
    before = user.files()
    for words in (("migrate",), ("migrate", "--yes"), ("migrate", "--dry-run")):
        output = user.hivepipe(*words)
        assert "has nothing to migrate" in output
        assert "`hivepipe init` installs hivepipe here" in output
    assert user.files() == before


def test_migrate_imports_a_queue_alone(user: User, old: OldProject) -> None:
    old.entry(agent("queued-1"))
    user.own(user.project)
    output = user.hivepipe("migrate", "--yes")
    assert "swarm swarm-1 does not exist" in output
    assert (user.project / ASIDE / "queue/pending").is_dir()
    assert counts(user)["agents"] == 0
    said = user.hivepipe("uninstall")
    assert "`hivepipe migrate` found no old hooks; the old home is kept in" in said
    assert "undoes that" in said


def test_migrate_replaces_hooks_alone(user: User, old: OldProject) -> None:
    old.hooks()
    user.own(user.project)
    output = user.hivepipe("migrate", "--yes")
    assert "no old home was moved" in output
    assert "auto-checkpoint" not in (user.project / ".claude/settings.json").read_text()
    assert not (user.project / ASIDE).exists()
    assert "no problem found" in user.hivepipe("doctor")
    said = user.hivepipe("uninstall")
    assert "`hivepipe migrate` removed the old hooks; no old home was moved" in said
    assert "undoes that" in said


def test_migrate_imports_archives_and_skills_alone(user: User, old: OldProject) -> None:
    old.archives()
    user.own(user.project)
    before = states(user.project)
    dry = user.hivepipe("migrate", "--dry-run")
    assert ": 2 archives, skill-usage.json" in dry
    assert states(user.project) == before
    output = user.hivepipe("migrate", "--yes")
    assert "3 were copied" in output
    assert "archive-index.json: hivepipe makes its own index" in output
    assert "oldword" in user.hivepipe("search", "oldword")
    assert "42" in user.hivepipe("skills")
    assert "nothing new" in user.hivepipe("migrate", "--yes")
    said = user.hivepipe("uninstall")
    assert "`hivepipe migrate` found no old hooks; no old home was moved" in said
    assert "undoes that" not in said


def test_old_hooks_in_the_users_settings_are_found(user: User, old: OldProject) -> None:
    old.scripts()
    path = user.home / ".claude/settings.json"
    path.parent.mkdir()
    handler = {"type": "command", "command": "$CLAUDE_PROJECT_DIR/.claude/hooks/auto-checkpoint.sh"}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}, "model": "opus"}, indent=2)
    path.write_text(text)
    user.own(user.home)
    user.hivepipe("migrate", "--yes")
    assert json.loads(path.read_text()) == {"model": "opus"}
    user.hivepipe("uninstall", "--purge", "--yes")
    assert path.read_text() == text


def test_a_hook_that_may_be_the_users_own_is_named_and_kept(user: User, old: OldProject) -> None:
    old.whole()
    command = "sqlite3 .hive-mind/hive.db 'DELETE FROM agents'"
    handler = {"type": "command", "command": command}
    old.write(".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}}))
    user.own(user.project)
    output = user.hivepipe("migrate", "--yes")
    assert f"Stop: {command}" in output
    assert command in (user.project / ".claude/settings.json").read_text()
    output = user.hivepipe("doctor")
    assert "which may write to .hive-mind" in output


@pytest.mark.parametrize("content", [b"not a database\n" * 10, b""])
def test_an_invalid_database_is_named_and_kept(user: User, old: OldProject, content: bytes) -> None:
    old.entries()
    (old.home / "hive.db").write_bytes(content)
    user.own(user.project)
    output = user.hivepipe("migrate", "--yes", expect=1 if content else 0)
    assert not content or "file is not a database" in output
    assert ("the migration is complete" in output) == (not content)
    assert (user.project / ASIDE / "hive.db").read_bytes() == content
    assert "no problem found" in user.hivepipe("doctor")


def test_a_damaged_table_does_not_affect_others(user: User, old: OldProject) -> None:
    path = old.database()
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'agents'").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : (page - 1) * 4096 + 100] = b"\xff" * 100
    path.write_bytes(data)
    user.own(user.project)
    for _ in range(2):
        output = user.hivepipe("migrate", "--yes", expect=1)
        assert "table agents" in output
        assert "cannot be read" in output
        assert "a part of the old database could not be read" in output.splitlines()[-1]
    assert counts(user)["sessions"] == 1


@contextmanager
def process(user: User, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command as the user in the project and wait for its first line."""
    with subprocess.Popen(
        [*AS_USER, *words], cwd=user.project, stdout=subprocess.PIPE, text=True, env=user.env
    ) as found:
        try:
            assert found.stdout
            assert found.stdout.readline()
            yield found
        finally:
            found.kill()


LOCK = """
import sqlite3, time
db = sqlite3.connect(".hive-mind/hive.db", isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(600)
"""


def test_migrate_refuses_a_database_in_use_and_continues_in_the_next_run(
    user: User, whole: OldProject, installation: Installation
) -> None:
    home = states(whole.home)
    with process(user, str(installation.python), "-c", LOCK) as holder:
        output = user.hivepipe("migrate", "--yes", expect=1)
        assert f"(pid {holder.pid})" in output
        assert f"{whole.home}/hive.db" in output
        assert whole.home.is_dir()
    user.hivepipe("migrate", "--yes")
    assert states(user.project / ASIDE) == home
    assert counts(user)["agents"] == 5


def test_a_running_old_worker_is_named_and_not_stopped(user: User, old: OldProject) -> None:
    old.whole()
    worker = old.write(
        ".claude/hooks/queue-worker.sh", "#!/bin/bash\necho ready\nwhile true; do sleep 1; done\n"
    )
    user.own(user.project)
    with process(user, "bash", str(worker)) as running:
        assert f"{running.pid} is still running" in user.hivepipe("migrate", "--dry-run")
        assert f"(pid {running.pid})" in user.hivepipe("migrate", "--yes", expect=1)
        assert running.poll() is None
        output = user.hivepipe("doctor", expect=1)
        assert f"kill {running.pid}" in output
        assert "old-worker" in findings_of(user)
    user.hivepipe("migrate", "--yes")
    assert counts(user)["agents"] == 5


def test_old_hooks_that_write_into_the_new_database_are_named(
    user: User, whole: OldProject
) -> None:
    user.hivepipe("migrate", "--yes")
    user.play_session()
    user.hivepipe("drain")
    with closing(sqlite3.connect(database(user))) as db:
        kept = db.serialize()
    for statement in (
        """INSERT INTO agents (id, swarm_id, status, created_at)
          SELECT 'late', id, 'spawned', datetime('now', 'localtime') FROM swarms LIMIT 1""",
        "UPDATE sessions SET checkpoint_data = '{}', updated_at = datetime('now')",
    ):
        database(user).write_bytes(kept)
        assert "no problem found" in user.hivepipe("doctor")
        with closing(sqlite3.connect(database(user))) as db, db:
            db.execute(statement)
        user.own(database(user).parent)
        assert "another program wrote rows" in findings_of(user)["old-rows"]["text"]


def test_other_commands_point_to_migrate_and_no_is_an_answer(user: User, whole: OldProject) -> None:
    below = user.project / "src" / "deep"
    below.mkdir(parents=True)
    user.own(user.project)
    before = user.files(user.home)
    assert user.do("hivepipe", "migrate", data="n\n").returncode == 1
    assert user.files(user.home) == before
    up = ("up", "-d")
    for words in (("init",), ("init", "--adopt"), ("init", "--dry-run"), up, (*up, "--adopt")):
        assert "run `hivepipe migrate`" in user.hivepipe(*words, expect=1)
        assert user.files(user.home) == before
    output = user.hivepipe("doctor", expect=1)
    assert "hivepipe migrate\n" in output
    assert "damaged" not in output
    assert "old-home" in findings_of(user)
    output = user.hivepipe("migrate", "--yes", cwd=below)
    assert "shop has an old .hive-mind: run `hivepipe migrate` there" in output
    assert "init" not in output


def test_an_old_home_that_1_0_0_adopted_is_migrated(user: User, old: OldProject) -> None:
    """1.0.0 adopted the old folder with --adopt, and could store nothing there."""
    user.has_a_home_of_1_0()
    user.play_session()
    assert list((user.recorded / "spool").iterdir())
    old.database()
    old.entries()
    user.own(user.project)
    output = user.hivepipe("doctor", expect=1)
    assert "nothing can be stored" in output
    assert "damaged" not in output
    assert "old-database" in findings_of(user)
    assert "hivepipe migrate" in user.hivepipe("drain", expect=1)
    user.hivepipe("migrate", "--yes")
    assert (user.project / ASIDE / "hive.db").is_file()
    user.hivepipe("drain")
    assert counts(user)["sessions"] == 2
    assert "no problem found" in user.hivepipe("doctor")


def test_a_project_that_was_off_can_be_switched_on_after_migrate(
    user: User, old: OldProject
) -> None:
    user.has_a_home_of_1_0()
    user.hivepipe("off")
    old.database()
    user.own(user.project)
    user.hivepipe("migrate", "--yes")
    user.hivepipe("on")
    record = user.home / ".local/state/hivepipe/projects" / short_hash(str(user.project))
    assert "state=on\n" in record.read_text()


def test_a_home_of_hivepipe_is_not_moved(user: User, old: OldProject) -> None:
    user.hivepipe("init")
    user.play_session()
    user.hivepipe("drain")
    old.entry(agent("queued-1"))
    old.hooks()
    user.own(user.project)
    user.hivepipe("migrate", "--yes")
    assert rows(user, "SELECT id FROM sessions") == [("s1",)]
    assert not old.queue.exists()
    assert (user.project / ASIDE / "queue/pending").is_dir()


def test_a_home_that_is_a_link_is_not_followed(user: User, old: OldProject) -> None:
    elsewhere = OldProject(user.home / "elsewhere")
    elsewhere.folder.mkdir()
    elsewhere.database()
    old.home.symlink_to(elsewhere.home)
    user.own(user.home)
    before = user.files()
    assert "is a link" in user.hivepipe("migrate", "--yes", expect=1)
    assert user.files() == before
    old.home.unlink()
    home = states(elsewhere.home)
    output = user.hivepipe("migrate", "--yes", "--from", str(elsewhere.home))
    assert "no old home was moved" in output
    assert states(elsewhere.home) == home
    assert counts(user)["agents"] == 1
    user.hivepipe("migrate", "--yes", "--from", str(elsewhere.home))
    assert counts(user)["agents"] == 1


def test_links_inside_the_old_home_are_moved_and_not_followed(user: User, old: OldProject) -> None:
    old.entries()
    secret = old.write("../secret.db", "")
    with closing(sqlite3.connect(secret)) as db:
        db.executescript("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('secret')")
    (old.home / "hive.db").symlink_to(secret)
    user.own(user.home)
    output = user.hivepipe("migrate", "--yes")
    assert "is not a regular file" in output
    assert os.readlink(user.project / ASIDE / "hive.db") == str(secret)
    assert counts(user)["sessions"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of somebody else")
def test_foreign_files_are_named_and_moved(user: User, whole: OldProject) -> None:
    database, torn = whole.home / "hive.db", next((whole.queue / "pending").glob("3_*"))
    for path in (database, torn):
        os.chown(path, 0, 0)
        path.chmod(0o600)
        assert user.do("cat", path).returncode != 0
    output = user.hivepipe("migrate", "--yes", expect=1)
    assert "Permission denied" in output
    assert torn.name in output
    assert (user.project / ASIDE / "hive.db").stat().st_uid == 0
    assert UID != 0


def test_an_old_home_that_cannot_be_moved_is_named_and_kept(user: User, old: OldProject) -> None:
    old.database()
    user.own(user.home)
    user.project.chmod(0o555)
    assert user.do("touch", user.project / "x").returncode != 0
    before = states(old.home)
    output = user.hivepipe("migrate", "--yes", expect=1)
    assert str(user.project) in output
    assert states(old.home) == before
    user.project.chmod(0o755)
    user.hivepipe("migrate", "--yes")
    assert counts(user)["sessions"] == 1


def test_migrate_refuses_the_variable_of_the_old_database(user: User, old: OldProject) -> None:
    path = old.database().rename(user.home / "elsewhere.db")
    old.hooks()
    user.own(user.home)
    output = user.hivepipe("migrate", "--yes", expect=1, HIVE_DB=str(path))
    assert "unset the variable" in output
    assert "hivepipe migrate" in user.hivepipe("init", expect=1, HIVE_DB=str(path))


def test_obstacles_stop_migrate_before_any_change(user: User, whole: OldProject) -> None:
    def refused() -> str:
        user.own(user.home)
        before = states(user.home)
        output = user.hivepipe("migrate", "--yes", expect=1)
        assert states(user.home) == before
        return output

    for folder in (user.project, user.home):
        path = folder / ".claude" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text('// mine\n{"model": "opus",}\n')
        output = refused()
        assert f"{path} is not valid JSON" in output
        assert "nothing was changed" in output
        path.write_text("{}")
    for name in (".claude-state", ".claude-state/logs"):
        path, elsewhere = user.project / name, user.home / "elsewhere"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        assert "is a link to" in refused()
        path.unlink()
        elsewhere.rename(path)
    user.hivepipe("migrate", "--yes")
    assert counts(user)["agents"] == 5


def test_a_failed_installation_can_be_continued_or_undone(user: User, old: OldProject) -> None:
    old.whole()
    user.recorded.mkdir(parents=True)
    (user.recorded / "mine").write_text("a person's")
    user.own(user.home)
    before = states(user.project)
    output = user.hivepipe("migrate", "--yes", expect=1)
    assert "run `hivepipe migrate` again" in output
    assert "started but not completed" in user.hivepipe("doctor", expect=1)
    user.hivepipe("uninstall", "--purge", "--yes")
    assert states(user.project) == before
    user.hivepipe("migrate", "--yes", expect=1)
    shutil.rmtree(user.recorded)
    user.hivepipe("migrate", "--yes")
    assert counts(user)["agents"] == 5
    assert "did not end" not in user.hivepipe("doctor")


def test_old_hooks_of_a_worktree_are_removed_in_the_worktree(user: User, whole: OldProject) -> None:
    user.git("init", "-q")
    user.git("add", "-f", ".claude/settings.json", ".claude/hooks")
    user.git("commit", "-qm", "x")
    tree = user.home / "tree"
    user.git("worktree", "add", "-q", str(tree))
    user.hivepipe("migrate", "--yes")
    assert "still runs old bash hooks" in user.hivepipe("doctor", cwd=tree, expect=1)
    user.hivepipe("migrate", "--yes", cwd=tree)
    assert "old bash hooks" not in user.do("hivepipe", "doctor", cwd=tree).stdout
    assert "already migrated" in user.hivepipe("migrate", "--yes", cwd=tree)
    user.hivepipe("uninstall", "--purge", "--yes")
    assert user.git("status", "--porcelain", "-uno", cwd=tree) == ""
    assert user.git("status", "--porcelain", "-uno") == ""


def test_parallel_migrations_import_once(user: User, whole: OldProject) -> None:
    before = states(user.project)
    with ThreadPoolExecutor(3) as pool:
        migrate = ("hivepipe", "migrate", "--yes", "--no-probe")
        done = list(pool.map(lambda _: user.do(*migrate), range(3)))
    assert 0 in [each.returncode for each in done]
    for each in done:
        assert each.returncode == 0 or "was changed meanwhile" in each.stderr, each.stderr
    assert counts(user)["agents"] == 5
    user.hivepipe("uninstall", "--purge", "--yes")
    assert states(user.project) == before


def test_a_renamed_project_can_be_undone(user: User, whole: OldProject) -> None:
    before = states(user.project)
    user.hivepipe("migrate", "--yes")
    project, renamed = user.project, user.home / "renamed"
    project.rename(renamed)
    user.project = renamed
    user.hivepipe("move-home", "--from", str(project))
    user.hivepipe("uninstall", "--purge", "--yes")
    renamed.rename(project)
    user.project = project
    assert states(user.project) == before


def test_later_files_of_an_old_worker_are_imported_and_restored_by_undo(
    user: User, whole: OldProject
) -> None:
    before = without_state(states(user.project))
    user.hivepipe("migrate", "--yes")
    imported = counts(user)
    late = OldProject(user.project)
    late.number = 50
    entry = late.entry(agent("late-1"))
    late.write(".hive-mind/instances/.instance_pts_9", "instance-9\n")
    user.own(user.project)
    assert "contains files of the bash hooks" in user.hivepipe("doctor", expect=1)
    user.hivepipe("migrate", "--yes")
    assert counts(user) == imported | {"agents": imported["agents"] + 1}
    assert (user.project / f"{ASIDE}-2/queue/pending").is_dir()
    assert not late.queue.exists()
    assert "no problem found" in user.hivepipe("doctor")
    assert "nothing new" in user.hivepipe("migrate", "--yes")

    mine = whole.write(".hive-mind/mine/notes.txt", "a person's\n")
    clash = whole.write(".hive-mind/config.json", "a person's\n")
    user.own(user.project)
    output = user.hivepipe("uninstall", "--purge", "--yes", expect=1)
    assert (
        f"{user.project / ASIDE / 'config.json'} cannot be moved to {clash}, which exists" in output
    )
    assert "auto-checkpoint" in (user.project / ".claude/settings.json").read_text()
    assert clash.read_text() == "a person's\n"
    clash.unlink()
    user.hivepipe("migrate", "--undo", "--yes")
    after = without_state(states(user.project))
    assert {name for name in after if name not in before} == {
        *(".hive-mind/mine", str(mine.relative_to(user.project))),
        *(f".hive-mind/queue/pending/{entry.name}", ".hive-mind/instances/.instance_pts_9"),
    }
    assert {name: after[name] for name in before} == before
