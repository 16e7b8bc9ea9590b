"""Data outside the work tree or in it on request, and changes to a work tree by git and others."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from struct import pack

import pytest

from hivepipe.db.database import Database
from hivepipe.db.tree import _number_of
from hivepipe.home import short_hash
from hivepipe.stack.kernel import boot
from tests.conftest import NEUTRAL, ROOT, redis_files, until
from tests.faults.injections.disks import mounted
from tests.installed import User, changed


def prompt(user: User, session: str) -> None:
    fields = {"prompt": "hello", "prompt_id": f"p-{session}", "session_id": session}
    assert user.fire("UserPromptSubmit", **fields) == [NEUTRAL]


def recorded_sessions(user: User) -> set[str]:
    return {entry["id"] for entry in user.sessions()}


def record_session(user: User, session: str) -> None:
    prompt(user, session)
    until(lambda: session in recorded_sessions(user), f"{session} was not recorded")


def rename_project(user: User, name: str = "renamed") -> Path:
    """Rename the project's folder and return its former path."""
    old, user.project = user.project, user.home / name
    old.rename(user.project)
    return old


# ---- outside
def test_no_file_of_hivepipe_is_in_the_project(user: User) -> None:
    before = user.files(user.project)
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.play_session()
    until(lambda: "s1" in recorded_sessions(user), "no session was recorded")
    now = changed(before, user.files(user.project))
    assert set(now) == {str(user.settings.parent), str(user.settings)}
    home = Path(user.hivepipe("home").strip())
    assert home == user.recorded
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "hive.db").exists()
    assert str(home).replace(str(user.home), "~") in user.hivepipe("what")
    assert str(home) in user.hivepipe("doctor")


def test_clean_checkout_and_clone_lose_no_event(user: User) -> None:
    user.git("init", "-q")
    user.git("commit", "-q", "--allow-empty", "-m", "begin")
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    record_session(user, "before")
    for number, words in enumerate((("clean", "-fdxq"), ("checkout", "-qb", "feature"))):
        user.git(*words)
        user.hivepipe("init")
        record_session(user, f"s{number}")
    bundle = user.home / "copy.git"
    user.git("clone", "-q", "--bare", str(user.project), str(bundle))
    shutil.rmtree(user.project)
    user.git("clone", "-q", str(bundle), str(user.project), cwd=user.home)
    user.hivepipe("init")
    record_session(user, "after")
    assert recorded_sessions(user) == {"before", "s0", "s1", "after"}


# ---- in the tree
def in_tree(user: User) -> None:
    user.hivepipe("init", "--in-tree")
    user.hivepipe("up", "-d")
    record_session(user, "before")


def test_only_data_is_in_the_tree(user: User) -> None:
    in_tree(user)
    found = {
        str(path.relative_to(user.project))
        for folder in (".hive-mind", ".claude-state")
        for path in (user.project / folder).rglob("*")
        if path.is_file()
    }
    assert {name for name in found if name.startswith(".hive-mind")} <= {
        ".hive-mind/.gitignore",
        ".hive-mind/hive.db",
        ".hive-mind/hive.db-wal",
        ".hive-mind/hive.db-shm",
    }
    assert ".hive-mind/hive.db" in found
    until((user.project / ".claude-state" / "session.yaml").exists, "no session.yaml")
    assert redis_files(user.recorded)


def put_another_database(user: User) -> None:
    path = user.project / ".hive-mind" / "hive.db"
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE schema_migrations (version INTEGER)")
    user.own(path)


def link_the_folder(user: User) -> None:
    (user.project / ".hive-mind").rename(user.home / "aside")
    (user.project / ".hive-mind").symlink_to(user.home / "elsewhere")
    (user.home / "elsewhere").mkdir()
    user.own(user.home / "elsewhere")


def track_database(user: User) -> None:
    user.git("init", "-q")
    user.git("add", "-f", ".hive-mind/hive.db")


def put_the_database_back(user: User) -> None:
    shutil.copy(user.home / "kept.db", user.project / ".hive-mind" / "hive.db")
    user.own(user.project)


def put_the_folder_back(user: User) -> None:
    (user.project / ".hive-mind").unlink()
    (user.home / "aside").rename(user.project / ".hive-mind")


REFUSED = {
    "another database": (put_another_database, put_the_database_back, "is not the database"),
    "a link": (link_the_folder, put_the_folder_back, "is a link"),
    "tracked": (
        track_database,
        lambda u: u.git("rm", "-qr", "--cached", ".hive-mind"),
        "git tracks",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_changed_home_in_the_tree_is_refused(user: User, case: str) -> None:
    tamper, repair, text = REFUSED[case]
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    in_tree(user)
    user.hivepipe("down")
    shutil.copy(user.project / ".hive-mind" / "hive.db", user.home / "kept.db")
    tamper(user)
    assert text in user.hivepipe("up", "-d", expect=1)
    assert text in user.hivepipe("doctor", expect=1)
    before = user.files(user.project, user.home / "elsewhere")
    prompt(user, "meanwhile")
    assert list((user.recorded / "spool").glob("*.json")), "the event is not kept outside"
    assert changed(before, user.files(user.project, user.home / "elsewhere")) == {}
    repair(user)
    user.hivepipe("up", "-d")
    until(lambda: {"before", "meanwhile"} <= recorded_sessions(user), "an event was lost")


def forged_log(user: User, suffix: str) -> bytes:
    """Return an SQLite log that would change a row of the user's database if it were applied."""
    copy = user.home / "forged.db"
    shutil.copy(user.project / ".hive-mind" / "hive.db", copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("UPDATE tasks SET text = 'forged'")
        log = Path(f"{copy}-wal").read_bytes()
    return log if suffix == "wal" else rollback_journal(copy.read_bytes())


def rollback_journal(before: bytes) -> bytes:
    """Return the journal that restores these pages (sqlite.org/fileformat2.html)."""
    size = int.from_bytes(before[16:18], "big")
    pages = [before[at : at + size] for at in range(0, len(before), size)]
    head = bytes.fromhex("d9d505f920a163d7") + pack(">5I", len(pages), 0, len(pages), 512, size)
    return head.ljust(512, b"\0") + b"".join(
        pack(">I", number) + page + pack(">I", sum(page[at] for at in range(size - 200, 0, -200)))
        for number, page in enumerate(pages, 1)
    )


COMMANDS = (
    *("task list", "drain", "backup b.tgz", "forget --matching secret --yes", "export"),
    *("sessions --all", "up -d", "move-home", "uninstall --dry-run"),
)


@pytest.mark.parametrize("suffix", ["wal", "journal"])
def test_an_sqlite_log_of_a_branch_is_not_applied(user: User, suffix: str) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    in_tree(user)
    user.hivepipe("task", "add", "--id", "t1", "mine")
    user.hivepipe("down")
    user.git("init", "-q", "-b", "main")
    user.git("commit", "-q", "--allow-empty", "-m", "begin")
    user.git("checkout", "-q", "-b", "feature")
    log = user.project / ".hive-mind" / f"hive.db-{suffix}"
    log.write_bytes(forged_log(user, suffix))
    user.own(user.project)
    user.git("add", "-f", str(log))
    user.git("commit", "-q", "-m", "planted")
    for words in COMMANDS:
        user.do("hivepipe", *words.split())
    assert f"git tracks .hive-mind/hive.db-{suffix}" in user.hivepipe("task", "list", expect=1)
    user.git("checkout", "-q", "main")
    assert "mine" in user.hivepipe("task", "list")


@pytest.mark.parametrize("layout", ["in the tree", "outside"])
def test_later_events_survive_the_removal_of_a_database_in_use(user: User, layout: str) -> None:
    """As by `git clean -fdx` or `git stash --all`; what was recorded before is lost."""
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init", *(["--in-tree"] if layout == "in the tree" else []))
    user.hivepipe("up", "-d")
    record_session(user, "before")
    if layout == "in the tree":
        for folder in (".hive-mind", ".claude-state"):
            shutil.rmtree(user.project / folder)
    else:
        for path in user.recorded.glob("hive.db*"):
            path.unlink()
    prompt(user, "after")
    until(
        lambda: (
            user.do("hivepipe", "sessions").returncode == 0 and "after" in recorded_sessions(user)
        ),
        "lost",
    )
    user.hivepipe("restart")
    assert recorded_sessions(user) == {"after"}


def test_a_command_creates_a_removed_database_with_the_number_of_its_home_and_without_its_wal(
    user: User,
) -> None:
    """The stack refuses a database without the number of its home.

    A killed process leaves `hive.db-wal`, which does not name the database it belongs to.
    """
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init", "--in-tree")
    user.hivepipe("up", "-d")
    user.hivepipe("down")
    for folder in (".hive-mind", ".claude-state"):
        shutil.rmtree(user.project / folder)
    prompt(user, "drained")
    user.hivepipe("drain")
    assert recorded_sessions(user) == {"drained"}
    user.hivepipe("up", "-d")
    record_session(user, "queued")
    assert recorded_sessions(user) == {"drained", "queued"}

    user.hivepipe("down")
    path = user.project / ".hive-mind" / "hive.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE grown (n INTEGER)")
        log = Path(f"{path}-wal").read_bytes()
    path.unlink()
    Path(f"{path}-wal").write_bytes(log)
    prompt(user, "after")
    user.hivepipe("drain")
    assert recorded_sessions(user) == {"after"}


# ---- moving
def test_data_is_moved_out_and_in_again(user: User) -> None:
    in_tree(user)
    user.hivepipe("move-home")
    assert {path.name for path in user.project.iterdir()} == {".claude"}
    record_session(user, "outside")
    user.hivepipe("move-home", "--in-tree")
    record_session(user, "inside")
    assert recorded_sessions(user) == {"before", "outside", "inside"}
    assert "nothing to do" in user.hivepipe("move-home", "--in-tree")
    user.hivepipe("uninstall", "--purge", "--yes")
    assert list(user.project.iterdir()) == []


def test_a_home_of_1_0_is_converted_by_the_first_start(user: User) -> None:
    old = user.has_a_home_of_1_0()
    prompt(user, "spooled")
    until(lambda: "spooled" in recorded_sessions(user), "an event was lost")
    assert {path.name for path in old.iterdir()} <= {
        ".gitignore",
        "hive.db",
        "hive.db-wal",
        "hive.db-shm",
    }
    assert user.hivepipe("home").strip() == str(user.recorded)
    user.hivepipe("move-home")
    assert {path.name for path in user.project.iterdir()} == {".claude"}
    assert recorded_sessions(user) == {"spooled"}


def test_a_renamed_project_keeps_its_home(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    record_session(user, "before")
    assert "still exists" in user.hivepipe("move-home", "--from", str(user.project), expect=1)
    home, old = user.recorded, rename_project(user)
    user.hivepipe("move-home", "--from", str(old))
    assert user.hivepipe("home").strip() == str(home)
    user.hivepipe("init")
    assert user.hivepipe("home").strip() == str(home)
    record_session(user, "after")
    assert recorded_sessions(user) == {"before", "after"}
    assert "nothing was recorded" in user.hivepipe(
        "move-home", "--from", str(user.home / "never"), expect=1
    )
    user.hivepipe("uninstall", "--purge", "--yes")
    assert not home.exists()


def test_a_new_project_at_the_old_path_of_a_renamed_one_has_a_home_of_its_own(user: User) -> None:
    user.hivepipe("init")
    home, old = user.recorded, rename_project(user)
    user.hivepipe("move-home", "--from", str(old))
    old.mkdir()
    user.own(old)
    for _ in range(2):
        user.hivepipe("init", cwd=old)
        assert user.hivepipe("home", cwd=old).strip() == f"{home}-2"
    user.hivepipe("uninstall", "--purge", "--yes", cwd=old)
    assert user.hivepipe("home").strip() == str(home)
    assert home.is_dir()


def test_a_renamed_project_stays_off_or_stopped(user: User) -> None:
    user.hivepipe("init")
    for state in ("off", "on", "down"):
        user.hivepipe(state)
        old = rename_project(user, f"renamed-{state}")
        user.hivepipe("move-home", "--from", str(old))
        record = user.home / ".local/state/hivepipe/projects" / short_hash(str(user.project))
        assert f"state={state}\n" in record.read_text()
        if state != "down":
            user.hivepipe("on")
            assert "state=on\n" in record.read_text()


def test_uninstall_restores_the_settings_of_a_renamed_project(user: User) -> None:
    before = user.files()
    user.hivepipe("init")
    old = rename_project(user)
    user.hivepipe("move-home", "--from", str(old))
    user.hivepipe("uninstall")
    user.project.rename(old)
    assert changed(before, user.files()) == {}


def test_a_renamed_project_may_leave_a_link_behind(user: User) -> None:
    user.hivepipe("init")
    home, old = user.recorded, rename_project(user)
    old.symlink_to(user.project)
    assert "still exists" in user.hivepipe("move-home", "--from", ".", expect=1)
    user.hivepipe("move-home", "--from", str(old))
    assert user.hivepipe("home").strip() == str(home)


def test_a_project_mounted_a_second_time_is_not_taken_for_renamed(user: User) -> None:
    user.hivepipe("init")
    home, twin = user.recorded, user.home / "twin"
    with mounted(twin, "--bind", str(user.project)):
        refused = user.hivepipe("move-home", "--from", str(user.project), cwd=twin, expect=1)
        assert "still exists" in refused
        assert "renamed" not in user.hivepipe("init", cwd=twin)
        assert user.hivepipe("home", cwd=twin).strip() != str(home)
    assert user.hivepipe("home").strip() == str(home)


# ---- a branch, a missing git and a user's file
def test_the_environment_in_a_tracked_home_of_1_0_is_not_used(user: User) -> None:
    old, proof = user.has_a_home_of_1_0(), user.home / "pwned"
    evil = user.project / "evil"
    evil.mkdir()
    (evil / "git").write_text(f"#!/bin/sh\ntouch '{proof}'\nexit 0\n")
    (evil / "git").chmod(0o755)
    (old / "environment").write_text(f"HOME={user.home}\nPATH={evil}:/usr/bin:/bin\n")
    (old / "config.toml").write_text('[redaction]\nallow = ["(?s).*"]\n')
    user.own(user.project)
    user.git("init", "-q")
    user.git("add", "-f", ".hive-mind/environment", ".hive-mind/config.toml", "evil")
    before = user.files(old)
    prompt(user, "meanwhile")
    for words in (("up", "-d"), ("restart",)):  # `up` registers first, `restart` converts at once
        assert "git tracks" in user.hivepipe(*words, expect=1)
    assert list((user.recorded / "spool").glob("*.json")), "the event is not kept outside"
    assert changed(before, user.files(old)) == {}
    assert not proof.exists()
    assert not (user.recorded / "config.toml").exists()


@pytest.mark.parametrize("git", ["missing", "declines"])
def test_without_an_answer_of_git_nothing_is_trusted(user: User, git: str) -> None:
    user.git("init", "-q")
    if git == "missing":
        tools = user.home / "tools"
        tools.mkdir()
        for name in ("sh", "dirname", "env", "setpriv"):
            (tools / name).symlink_to(f"/usr/bin/{name}")
        user.env["PATH"] = f"{user.installation.bin}:{tools}"
    else:
        (user.project / ".git" / "config").write_text("[core\n")
    output = user.hivepipe("init", "--in-tree", expect=1)
    assert "git does not say what it tracks" in output
    assert not (user.project / ".hive-mind").exists()


def test_a_missing_home_is_not_made_and_a_closed_one_not_called_missing(user: User) -> None:
    missing, closed = user.home / "missing", user.home / "closed"
    closed.mkdir(mode=0)
    for line in ("search x", "memory list", "backup x.tgz", "forget x --yes"):
        words = line.split()
        output = user.hivepipe(*words, expect=1, HIVEPIPE_HOME=str(missing))
        assert "nothing is recorded yet" in output
        output = user.hivepipe(*words, expect=1, HIVEPIPE_HOME=f"{closed}/home")
        assert "/closed/home" in output
        assert "Permission denied" in output
    assert not missing.exists()


def test_a_pipe_in_the_place_of_the_database_is_not_moved(user: User) -> None:
    user.hivepipe("init")
    pipe = user.recorded / "hive.db"
    os.mkfifo(pipe)
    user.own(pipe.parent)
    assert "no plain file" in user.hivepipe("move-home", "--in-tree", expect=1)
    assert pipe.is_fifo()


def test_a_pipe_in_the_place_of_the_database_in_a_work_tree_is_named(user: User) -> None:
    user.hivepipe("init", "--in-tree")
    user.hivepipe("drain")
    database = user.project / ".hive-mind" / "hive.db"
    database.unlink()
    os.mkfifo(database)
    user.own(database)
    output = user.hivepipe("doctor", expect=1)
    assert "hive.db is not the database that hivepipe used here" in output
    assert "itself failed" not in output
    assert "Put that database back" in user.hivepipe("forget", "x", "--yes", expect=1)


def test_a_move_replaces_no_file_of_the_user(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    record_session(user, "before")
    mine = user.project / ".hive-mind" / "hive.db"
    mine.parent.mkdir()
    mine.write_text("mine\n")
    user.own(mine.parent)
    assert "is there already" in user.hivepipe("move-home", "--in-tree", expect=1)
    assert mine.read_text() == "mine\n"
    assert recorded_sessions(user) == {"before"}
    mine.unlink()
    user.hivepipe("move-home", "--in-tree")
    assert recorded_sessions(user) == {"before"}


def test_a_move_into_a_tree_with_too_long_a_path_is_refused_first(user: User) -> None:
    project = user.project.joinpath(*["a long name" * 8] * 22)
    project.mkdir(parents=True)
    user.own(user.project)
    user.hivepipe("up", "-d", cwd=project)
    user.hivepipe("down", cwd=project)
    before = user.files(user.home)
    error = user.hivepipe("move-home", "--in-tree", cwd=project, expect=1)
    assert "use shorter paths, the record is too long" in " ".join(error.split())
    assert changed(before, user.files(user.home)) == {}


def test_reading_the_number_of_a_database_keeps_its_locks(tmp_path: Path) -> None:
    """Otherwise the next process that closes the database would delete the -wal of this one."""
    path = tmp_path / "hive.db"
    code = "from pathlib import Path; from hivepipe.db.database import Database;"
    with closing(Database(path)) as db:
        db.execute("CREATE TABLE a (b)", {})
        _number_of(path)
        words = [sys.executable, "-c", f"{code} Database(Path({str(path)!r})).close()"]
        subprocess.run(words, check=True, timeout=60, cwd=ROOT)
        assert path.with_name("hive.db-wal").exists()
        db.execute("INSERT INTO a VALUES (1)", {})


def test_data_that_another_machine_uses_is_not_replaced_moved_or_deleted(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    record_session(user, "before")
    user.hivepipe("down")
    user.hivepipe("backup", "b.tar.gz")
    kernel = user.recorded / "kernel"
    kernel.write_text("their-laptop\nb00t\npid:[4026532000]\n")
    user.own(kernel)
    before = user.files(user.recorded)
    for words in ("restore --replace b.tar.gz", "move-home --in-tree", "uninstall --purge --yes"):
        output = user.hivepipe(*words.split(), expect=1)
        assert "another machine or container (their-laptop)" in output, words
        now = changed(before, user.files(user.recorded))
        assert {path for path in now if not path.endswith(("-wal", "-shm"))} == set(), words
    kernel.write_text(f"container\n{boot()}\npid:[4026532000]\n")
    settings = user.settings.read_text()
    assert "another machine or container (container)" in user.hivepipe("uninstall", expect=1)
    assert user.settings.read_text() == settings, "the hooks were removed, the rest was not"
    kernel.unlink()
    assert recorded_sessions(user) == {"before"}
