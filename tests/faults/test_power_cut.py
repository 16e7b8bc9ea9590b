"""Order of syncs to the disk, which a kill does not test because the kernel keeps all writes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hivepipe.db.database import Database
from hivepipe.files.folders import Folder
from hivepipe.queue.aof_sync import AofSync
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
