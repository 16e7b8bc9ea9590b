"""Order of syncs to the disk, which a kill does not test because the kernel keeps all writes."""

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from hivepipe.db.database import Database
from hivepipe.files.folders import Folder
from hivepipe.home import record_path
from hivepipe.queue.aof_sync import AofSync
from hivepipe.stack import hook_copy, registration
from hivepipe.stack.copying import sync
from hivepipe.stack.data_move import Move, finish_interrupted_move
from hivepipe.stack.runtime_folder import Stack
from tests.archive_scene import Scene, lines

Seen = list[tuple[str, int]]  # operation and suffix of a file, and its size


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Record every sync, and every write of a file that says how far others are valid."""
    found: Seen = []
    sync: Callable[[int], None] = os.fsync
    overwrite = Folder.overwrite

    def noted_sync(descriptor: int) -> None:
        sync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        found.append((f"sync {Path(path).suffix}", os.fstat(descriptor).st_size))

    def noted_overwrite(folder: Folder, name: str, data: bytes) -> None:
        overwrite(folder, name, data)
        found.append((f"write {Path(name).suffix}", len(data)))

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Folder, "overwrite", noted_overwrite)
    return found


def test_a_commit_is_synced(tmp_path: Path) -> None:
    """SQLite syncs each commit with the setting FULL, which is 2."""
    db = Database(tmp_path / "hive.db")
    row = db.row("PRAGMA synchronous", {})
    assert row is not None
    assert row[0] == 2
    db.close()


def test_lines_are_synced_before_their_reach_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    monkeypatch.setattr("hivepipe.archive.sources.user_folder", lambda: str(tmp_path))
    scene = Scene(tmp_path)
    for many in (5, 9):
        scene.path.write_bytes(lines(many))
        seen.clear()
        scene.extend()
        at = [what for what, _ in seen].index("write .reach")
        assert ("sync .jsonl", len(lines(many))) in seen[:at]


def test_a_file_is_synced_before_it_replaces_another(tmp_path: Path, seen: Seen) -> None:
    with Folder(str(tmp_path)) as folder:
        folder.replace("index.json", b"whole")
    assert seen == [("sync .tmp", 5)]


def test_the_file_of_redis_is_synced_when_it_has_grown(tmp_path: Path, seen: Seen) -> None:
    file = tmp_path / "appendonly.aof"
    syncing = AofSync(tmp_path)
    for size in (3, 3, 6):
        file.write_bytes(bytes(size))
        syncing.sync()
    assert seen == [("sync .aof", 3), ("sync .aof", 6)]


def test_a_file_that_cannot_be_synced_is_logged_once_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "appendonly.aof"
    syncing = AofSync(tmp_path)
    for _ in range(2):
        file.symlink_to(file.name)  # a link to itself
        for _ in range(3):
            syncing.sync()
        file.unlink()
        file.write_bytes(b"*1")
        syncing.sync()
        file.unlink()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def test_a_move_syncs_copies_and_record_before_the_deletions_and_these_before_the_token_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "user"))
    home, project = tmp_path / "home", tmp_path / "shop"
    registration.register(str(project), Stack(str(home), str(tmp_path / "run")), "/usr/bin/python3")
    old = home / "archive/main-session/a.jsonl"
    old.parent.mkdir(parents=True)
    old.write_text("{}\n")
    done: list[str] = []
    sync, unlink = os.fsync, os.unlink

    def noted_sync(descriptor: int) -> None:
        sync(descriptor)
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    def noted_unlink(path: str) -> None:
        unlink(path)
        done.append(f"deleted {path}")

    def to_another_file_system(source: str, target: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "unlink", noted_unlink)
    monkeypatch.setattr(os, "link", to_another_file_system)
    Move(str(home), "", str(project), ["main-session/a.jsonl"], [], "token").carry_out()
    before = done[: done.index(f"deleted {old}")]
    copy = project / ".claude-state/logs/main-session"
    record = Path(record_path(str(home)))
    file = record.parent / f".{record.name}.tmp"
    token = project / ".hive-mind" / "moving"
    wanted = [
        home / "moving",
        home,
        token,
        token.parent,
        copy / "a.jsonl.moving",
        copy,
        file,
        record.parent,
    ]
    assert [path for path in map(str, wanted) if path not in before] == []
    deleted = [done.index(f"deleted {path}") for path in (old, token, home / "moving")]
    assert deleted == sorted(deleted)
    assert str(old.parent) in done[deleted[0] : deleted[1]]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_file_system_without_sync_of_folders_takes_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = tmp_path / "file"
    file.touch()

    def refused(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match=os.strerror(number)):
        sync(str(file))
    is_tolerated = number != errno.EIO
    with nullcontext() if is_tolerated else pytest.raises(OSError, match=os.strerror(number)):
        sync(str(tmp_path))


def test_an_empty_journal_of_a_move_is_no_move(tmp_path: Path) -> None:
    (tmp_path / "moving").touch()
    (tmp_path / "hive.db").touch()
    finish_interrupted_move(str(tmp_path))
    assert (tmp_path / "hive.db").exists()


def test_a_copy_of_the_hooks_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    """An empty program would fail at every event."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hook_copy.write()
    folder = Path(hook_copy.launcher()).parent
    sizes = {size for what, size in seen if what == "sync .tmp"}
    assert {path.stat().st_size for path in folder.iterdir()} <= sizes
