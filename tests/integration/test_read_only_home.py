"""While no stack runs, a home on a full or read-only disk can be read."""

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hivepipe.agents.memory.index import MemoryIndex
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.errors import MemoryIndexError, StoreError
from tests.conftest import COMMANDS, Home
from tests.faults.injections.disks import mounted, run

ROW = "INSERT INTO sessions (id, status) VALUES (?, 'active')"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    assert run("mount", "-o", "remount,ro", str(folder))
    with pytest.raises(OSError, match="Read-only"):
        (folder / "probe").touch()
    yield


@contextmanager
def full(folder: Path) -> Iterator[None]:
    with suppress(OSError), (folder / "filler").open("wb") as filler:
        while True:
            filler.write(bytes(4096))
            filler.flush()
    yield


@pytest.fixture
def store(private_home: Home) -> Iterator[Path]:
    """The database of a stopped stack, with one session, on a separate disk."""
    with mounted(private_home.path, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        path = private_home.path / "hive.db"
        Database(path).close()
        add(path, "first")
        yield path


def add(path: Path, session: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(ROW, [session])
    db.close()


def hivepipe(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return COMMANDS.run(words, "", home.env, home.project, 60)


@pytest.mark.parametrize("disk", [read_only, full])
def test_sessions_on_a_full_or_read_only_disk_are_listed(
    private_home: Home, store: Path, disk: object
) -> None:
    with disk(store.parent):  # type: ignore[operator]
        done = hivepipe(private_home, "sessions", "--all", "--json")
        assert [each["id"] for each in json.loads(done.stdout)["sessions"]] == ["first"], done


def test_a_full_disk_is_reported(private_home: Home, store: Path) -> None:
    private_home.env["XDG_STATE_HOME"] = str(store.parent)
    assert hivepipe(private_home, "init", "--no-probe").returncode == 0
    with full(store.parent):
        done = hivepipe(private_home, "off")
    error = f"hivepipe: the disk of {store.parent} is full\n"
    assert (done.returncode, done.stderr) == (1, error)


def test_doctor_names_a_full_disk_of_the_sockets(private_home: Home) -> None:
    run_folder = Path(private_home.env["XDG_RUNTIME_DIR"])
    with mounted(run_folder, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        assert "is full: no stack can start" not in hivepipe(private_home, "doctor").stdout
        with full(run_folder):
            assert "is full: no stack can start" in hivepipe(private_home, "doctor").stdout


@contextmanager
def without_inodes(folder: Path) -> Iterator[None]:
    with suppress(OSError):
        for number in itertools.count():
            (folder / f"filler-{number}").touch()
    yield


@pytest.mark.parametrize("fill", [full, without_inodes])
@pytest.mark.parametrize("of", ["sockets", "home", "home/logs", "home/appendonlydir"])
def test_status_and_doctor_report_a_disk_that_takes_no_file(
    private_home: Home, fill: object, of: str
) -> None:
    """A resting stack cannot start without its sockets; a home without inodes takes no event."""
    assert hivepipe(private_home, "init", "--no-probe").returncode == 0
    sockets = Path(private_home.env["XDG_RUNTIME_DIR"])
    folder = sockets if of == "sockets" else private_home.root / of
    folder.mkdir(exist_ok=True)
    size = "size=300m" if fill is without_inodes else "size=64k"
    with (
        mounted(folder, "-t", "tmpfs", "-o", f"{size},nr_inodes=50", "tmpfs"),
        fill(folder),  # type: ignore[operator]
    ):
        status, doctor = hivepipe(private_home, "status"), hivepipe(private_home, "doctor")
    assert (status.returncode, doctor.returncode) == (1, 1), status.stdout
    assert "alert     disk: " in status.stdout
    assert f"the disk of {folder}" in doctor.stdout


@pytest.mark.skipif(not shutil.which("mkfs.ext4"), reason="no program makes such a disk")
def test_doctor_counts_blocks_reserved_for_root_as_free_for_root(private_home: Home) -> None:
    run_folder, disk = Path(private_home.env["XDG_RUNTIME_DIR"]), private_home.root / "disk"
    disk.write_bytes(bytes(4_000_000))
    assert run("mkfs.ext4", "-q", "-m", "50", str(disk))
    with mounted(run_folder, "-o", "loop", str(disk)):
        with (run_folder / "filler").open("wb", buffering=0) as filler:
            while os.statvfs(run_folder).f_bavail:
                filler.write(bytes(4096))
                os.fsync(filler.fileno())
        assert "is full: no stack can start" not in hivepipe(private_home, "doctor").stdout


def test_rows_in_the_wal_are_not_omitted(store: Path) -> None:
    """After a kill the newest rows are in the -wal; a listing shows all rows or fails."""
    add(store, "second")
    db = sqlite3.connect(store, isolation_level=None)
    db.execute(ROW, ["third"])
    kept = {path: path.read_bytes() for path in (store, Path(f"{store}-wal"))}
    db.close()
    for path, data in kept.items():
        path.write_bytes(data)
    with read_only(store.parent), suppress(StoreError), listings(store) as rows:
        assert len(rows.sessions(with_ended=True)) == 3


def test_a_memory_index_on_a_read_only_disk_is_not_called_broken(
    store: Path, tmp_path: Path
) -> None:
    broken, index = tmp_path / "memory.db", store.with_name("memory.db")
    broken.write_bytes(b"no database" * 100)
    with pytest.raises(MemoryIndexError, match="delete it to rebuild it"):
        MemoryIndex(broken)
    with read_only(store.parent), pytest.raises(MemoryIndexError) as raised:
        MemoryIndex(index)
    assert str(raised.value) == f"cannot use {index}: Read-only file system"


def test_a_reader_sees_rows_that_another_process_writes(store: Path) -> None:
    with listings(store) as rows:
        assert len(rows.sessions(with_ended=True)) == 1
        add(store, "second")
        assert len(rows.sessions(with_ended=True)) == 2


@pytest.mark.parametrize("name", ["XDG_STATE_HOME", "XDG_DATA_HOME", "HOME"])
def test_doctor_advises_no_other_home_where_the_records_are_read_only(
    private_home: Home, name: str
) -> None:
    """Before the first `init`, the user's home folder has no folder of hivepipe."""
    folder = private_home.root / "read-only"
    folder.mkdir()
    private_home.env[name] = str(folder)
    if name == "HOME":
        del private_home.env["XDG_STATE_HOME"]
    with mounted(folder, "-t", "tmpfs", "tmpfs"):
        if name != "HOME":
            (folder / "hivepipe").mkdir()
        with read_only(folder):
            found = json.loads(hivepipe(private_home, "doctor", "--json").stdout)["findings"]
    (finding,) = (each for each in found if each["check"] == "state-folder")
    assert finding["text"].endswith("whose file system is read-only here")
    assert not finding["mend"]
