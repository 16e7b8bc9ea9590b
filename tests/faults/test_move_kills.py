"""A move or conversion of a home that is killed at any step ends like an undisturbed one."""

import json
import os
import posix
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db import location
from hivepipe.db.location import database_path
from hivepipe.errors import RegistrationError, StoreError, TreeError
from hivepipe.files.manifest import Manifest
from hivepipe.home import home_of_project, kept_folder, read_record, tree_of
from hivepipe.install.move_home import adopt_old_home, move_home
from hivepipe.stack import copying, data_move, lifecycle, registration, supervisor
from hivepipe.stack.conversion import converted
from hivepipe.stack.data_move import finish_interrupted_move
from hivepipe.stack.runtime_folder import Stack
from tests.archive_scene import full_disk
from tests.rounds import rounds
from tests.store_scene import new_database

SEED = 1711
KILLS = 40  # in a round
SESSIONS = 50
_SESSION = "INSERT INTO sessions (id, status, created_at, updated_at) VALUES (?, 'active', ?, ?)"
STEPS = ("os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "sqlite3.connect")
EXPORTS = {"skill-usage.json": b'{"skills": {}}\n', "skill-usage-index.json": b'{"days": {}}\n'}


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project whose stack never runs, so that its processes need not be looked for."""
    for module in (lifecycle, supervisor):
        monkeypatch.setattr(module, "stack_processes", lambda _stack: {})
    root = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp")).resolve()
    seen = {b"HOME": os.fsencode(root), b"XDG_RUNTIME_DIR": os.fsencode(root / "run")}
    monkeypatch.setattr(posix, "environ", seen | {b"PATH": b"/usr/bin:/bin"})
    (root / "run").mkdir(mode=0o700)
    (root / "shop").mkdir()
    try:
        yield root / "shop"
    finally:
        shutil.rmtree(root)


def register(project: Path, home: str, tree: str = "") -> None:
    stack = Stack.prepared(home)
    registration.register(str(project), stack, sys.executable, adopt=True, tree=tree)


def fill(home: str) -> None:
    """Write sessions, exports, and all other files of a home."""
    path = database_path(home)
    new_database(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        for number in range(SESSIONS):
            at = "2026-01-01T00:00:00.000Z"
            db.execute(_SESSION, (f"s{number}", at, at))
    copy = copy_of_the_database(home)
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(copy)) as db:
        db.execute("CREATE TABLE IF NOT EXISTS before (id)")
    kept = Path(kept_folder(home))
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, data in EXPORTS.items():
        Manifest(home).expect(name, data, None)
        (kept / name).write_bytes(data)
    (kept / "notes.txt").write_text("a person's")
    for name, text in FILES.items():
        file = Path(home, name)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(text)


COPY = "hive-before-0050-42.db"
FILES = {
    "appendonly.aof": "redis\n",
    "config.toml": "# mine\n",
    "prices.toml": "# mine, too\n",
    "spool/00000000000000000001_1.json": "{}",
    "instances/17": "id=x\n",
    "call-notes": "[1]\n",
    "context/goal-s1.txt": "goal",
}


def copy_of_the_database(home: str) -> Path:
    return database_path(home).parent / "backups" / COPY


def recorded(home: str) -> dict[str, object]:
    """Return the recorded data of a home, at whatever place."""
    kept = Path(kept_folder(home))
    with closing(sqlite3.connect(database_path(home))) as db:
        sessions = [row[0] for row in db.execute("SELECT id FROM sessions ORDER BY id")]
    return {
        "sessions": sessions,
        "copy": copy_of_the_database(home).read_bytes(),
        **{name: (kept / name).read_bytes() for name in EXPORTS},
        **{name: Path(home, name).read_text() for name in FILES if name != "call-notes"},
        "call-notes": "".join(p.read_text() for p in sorted(Path(home).glob("call-notes*"))),
    }


def changes_files(event: str, arguments: tuple[Any, ...]) -> bool:
    return event in STEPS or (event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR)))


def killed(step: int, work: Callable[[], object]) -> int:
    """Do work in a process that is killed before a step; return how many steps it took."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        count = 0

        def on(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            if changes_files(event, arguments):
                count += 1
                if count == step:
                    os._exit(9)

        sys.addaudithook(on)
        code = 1
        try:
            work()
            os.write(writing, str(count).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reading) as said:
        taken = int(said.read() or 0)
    assert os.waitstatus_to_exitcode(status) in (0, 9), "it failed by itself"
    return taken


def snapshot(root: Path, kept: Path) -> Callable[[], None]:
    """Return a function that restores a folder as it is now."""
    shutil.copytree(root, kept)

    def restore() -> None:
        shutil.rmtree(root)
        shutil.copytree(kept, root)

    return restore


def steps_of(restore: Callable[[], None], work: Callable[[], object]) -> int:
    """Return how many steps the work takes; the first run may compile modules, too."""
    killed(0, work)
    restore()
    return killed(0, work)


def spread(steps: int, kills: int) -> list[int]:
    """Return steps at equal distances, from a random one."""
    distance = steps / kills
    begin = random.Random(SEED).random() * distance
    return [1 + int(begin + number * distance) for number in range(kills)]


def everywhere(project: Path, home: str) -> list[str]:
    """Return the places that have a database or exports now."""
    places = {
        project / ".hive-mind" / "hive.db",
        project / ".claude-state" / "logs" / "skill-usage.json",
        Path(home, "hive.db"),
        Path(home, "archive", "skill-usage.json"),
        project / ".hive-mind" / "backups" / COPY,
        Path(home, "backups", COPY),
    }
    return sorted(str(path) for path in places if path.exists())


@pytest.mark.parametrize("into_the_tree", [True, False], ids=["into the tree", "out of it"])
def test_a_killed_move_of_the_data_is_finished(
    project: Path, tmp_path: Path, into_the_tree: bool
) -> None:
    home = home_of_project(str(project))
    places = ["", str(project)] if into_the_tree else [str(project), ""]
    register(project, home, tree=places[0])
    fill(home)
    wanted = recorded(home)
    restore = snapshot(project.parent, tmp_path / "kept")

    def work() -> None:
        move_home(str(project), Stack.prepared(home), places[1])

    steps = steps_of(restore, work)
    assert tree_of(home) == places[1]
    assert recorded(home) == wanted
    for step in spread(steps, KILLS // 2 * rounds(1)):
        restore()
        assert not killed(step, work), f"it ended before step {step} of {steps}"
        assert recorded(home) == wanted, "before anything is settled"
        finish_interrupted_move(home)
        assert recorded(home) == wanted
        assert len(everywhere(project, home)) == 3, "each file is there once"
        work()
        assert recorded(home) == wanted
        assert tree_of(home) == places[1]
        assert len(everywhere(project, home)) == 3


def test_a_move_onto_a_full_disk_leaves_no_copy(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of_project(str(project))
    register(project, home)
    fill(home)
    wanted = recorded(home)
    monkeypatch.setattr(copying, "has_less", lambda *_: True)
    with full_disk(100_000), pytest.raises(StoreError, match=r"the disk of .* is full"):
        move_home(str(project), Stack.prepared(home), str(project))
    assert recorded(home) == wanted
    assert len(everywhere(project, home)) == 3
    assert not [*project.rglob("*moving*"), *Path(home).glob("moving")]


def test_a_move_keeps_a_database_that_has_the_same_path_before_and_after(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared file system the database is in the state folder."""
    shared = f"1 1 0:1 / {project.parent} rw - nfs4 server:/home rw\n"
    monkeypatch.setattr(location, "_mounts", lambda: shared)
    home = home_of_project(str(project))
    register(project, home)
    fill(home)
    wanted = recorded(home)
    assert location.database_in(home, "") == location.database_in(home, str(project))
    for tree in (str(project), ""):
        move_home(str(project), Stack.prepared(home), tree)
        assert tree_of(home) == tree
        assert recorded(home) == wanted


def test_a_killed_adoption_by_a_renamed_project_is_finished(project: Path, tmp_path: Path) -> None:
    home = home_of_project(str(project))
    register(project, home)
    fill(home)
    wanted, renamed = recorded(home), project.with_name("renamed")
    project.rename(renamed)
    restore = snapshot(project.parent, tmp_path / "kept")

    def work() -> None:
        adopt_old_home(str(renamed), str(project))

    for _ in range(2):
        restore()
        steps = killed(0, work)
    hit = 0
    for step in spread(steps, KILLS // 2 * rounds(1)):
        restore()
        hit += not killed(step, work)
        assert read_record(home)["state"] == "on", "hooks do not start the stack"
        work()
        assert [read_record(each)["state"] for each in (home, str(renamed))] == ["on", "on"]
        assert read_record(str(renamed))["home"] == home
        assert not read_record(str(project))
        assert recorded(home) == wanted
    assert hit > KILLS // 4


def test_an_interrupted_move_is_finished_before_a_renamed_project_adopts_its_home(
    project: Path,
) -> None:
    """Later, the data in the renamed work tree would be taken for unfinished copies."""
    home = home_of_project(str(project))
    register(project, home, tree=str(project))
    fill(home)
    wanted, renamed = recorded(home), project.with_name("renamed")
    names = ["hive.db", f"backups/{COPY}"]
    plan = {"from": "", "to": str(project), "names": list(EXPORTS), "database": names}
    Path(home, "moving").write_text(json.dumps({**plan, "token": "token"}))
    (project / ".hive-mind" / "moving").write_text("token")
    project.rename(renamed)
    project.symlink_to(renamed)
    adopt_old_home(str(renamed), str(project))
    finish_interrupted_move(home)
    assert tree_of(home) == str(renamed)
    assert recorded(home) == wanted


@pytest.mark.parametrize("is_linked", [True, False], ids=["a link", "no link"])
@pytest.mark.parametrize("into_the_tree", [True, False], ids=["into the tree", "out of it"])
def test_a_killed_move_is_finished_where_the_project_was_renamed_to(
    project: Path, tmp_path: Path, into_the_tree: bool, is_linked: bool
) -> None:
    home, renamed = home_of_project(str(project)), project.with_name("renamed")
    register(project, home)
    fill(home)
    wanted = recorded(home)
    in_and_out = [str(project), "", str(project), ""]  # later moves find the database's number
    *before, target = in_and_out[:3] if into_the_tree else in_and_out
    for place in before:
        move_home(str(project), Stack.prepared(home), place)
    restore = snapshot(project.parent, tmp_path / "kept")

    def work() -> None:
        move_home(str(project), Stack.prepared(home), target)

    steps = steps_of(restore, work)
    kept = set()
    for step in spread(steps, KILLS // 2 * rounds(1)):
        restore()
        assert not killed(step, work), f"it ended before step {step} of {steps}"
        tree = str(renamed) if tree_of(home) else ""
        project.rename(renamed)
        if is_linked:
            project.symlink_to(renamed)
        adopt_old_home(str(renamed), str(project))
        finish_interrupted_move(home)
        assert tree_of(home) == tree, f"killed before step {step} of {steps}"
        assert recorded(home) == wanted, f"killed before step {step} of {steps}"
        assert len(everywhere(renamed, home)) == 3, "each file is there once"
        kept.add(tree)
    assert len(kept) == 2, "killed before and after the record was switched"


@pytest.mark.parametrize(("is_switched", "error"), [(False, RegistrationError), (True, TreeError)])
def test_a_killed_move_deletes_nothing_if_another_project_adopts_the_home(
    project: Path, monkeypatch: pytest.MonkeyPatch, is_switched: bool, error: type[Exception]
) -> None:
    home, other = home_of_project(str(project)), project.with_name("other")
    register(project, home)
    fill(home)
    (other / ".hive-mind").mkdir(parents=True)
    with closing(sqlite3.connect(other / ".hive-mind" / "hive.db")) as db:
        db.execute("CREATE TABLE notes (of_the_predecessor)")
    (other / ".claude-state" / "logs").mkdir(parents=True)
    (other / ".claude-state" / "logs" / "skill-usage.json").write_text("a person's")

    def killed_switch(homes: set[str], tree: str) -> None:
        if is_switched:
            registration.change_records(homes, tree=tree)
        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(data_move, "change_records", killed_switch)
        assert not killed(0, lambda: move_home(str(project), Stack.prepared(home), str(project)))
    shutil.rmtree(project)
    before = {path: Path(path).read_bytes() for path in everywhere(other, home)}
    assert len(before) == 5
    with pytest.raises(error):
        adopt_old_home(str(other), str(project))
    assert {path: Path(path).read_bytes() for path in everywhere(other, home)} == before


@pytest.mark.long
def test_a_killed_conversion_of_a_home_of_1_0_is_finished(project: Path, tmp_path: Path) -> None:
    old, new = f"{project}/.hive-mind", home_of_project(str(project))
    Path(old).mkdir(mode=0o700)
    Path(old, "kernel").touch()
    register(project, old)
    fill(old)
    wanted = recorded(old)
    restore = snapshot(project.parent, tmp_path / "kept")

    def work() -> None:
        home = read_record(str(project))["home"]
        converted(Stack.prepared(home))

    steps = steps_of(restore, work)
    assert recorded(new) == wanted
    for step in spread(steps, KILLS * rounds(1)):
        restore()
        assert not killed(step, work), f"it ended before step {step} of {steps}"
        Path(old, "spool").mkdir(exist_ok=True)
        work()
        assert recorded(new) == wanted
        left = {str(path.relative_to(old)) for path in Path(old).rglob("*") if path.is_file()}
        names = {".gitignore", "hive.db", "hive.db-wal", "hive.db-shm", f"backups/{COPY}"}
        assert left <= names
        assert Path(project, ".claude-state/logs/notes.txt").read_text() == "a person's"
