"""A full disk under database, spool, archive or Redis' file, and a read-only home.

Each has its own small file system in memory. Events that neither Redis nor the spool takes wait in
the runtime folder, and all are stored when there is space again. A home becomes read-only by a
mount, or by modes if the user is not root.
"""

import errno
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from redis.exceptions import ResponseError

from tests.conftest import until
from tests.faults import oracle
from tests.faults.injections.arena import Arena
from tests.faults.injections.kills import handing_over, own_events
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave

DATABASE, SPOOL, ARCHIVE, AOF = "database", "spool", "archive", "Redis' append-only file"
SIZES = {DATABASE: "16m", SPOOL: "1m", ARCHIVE: "16m", AOF: "16m"}
BALLAST = "ballast"
NO_SPACE = os.strerror(errno.ENOSPC)


def run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Mount something on a folder, or skip the test."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.geteuid() or not run("mount", *options, str(folder)):
        pytest.skip("this machine does not let us mount: nothing can be filled or made read-only")
    folder.chmod(0o700)
    try:
        yield
    finally:
        until(lambda: run("umount", str(folder)), f"{folder} not unmounted", 10)


def folders(arena: Arena) -> dict[str, Path]:
    return {
        AOF: arena.home.path,
        SPOOL: arena.home.path / "spool",
        DATABASE: arena.home.root / "db",
        ARCHIVE: arena.archive,
    }


@contextmanager
def small_disks(arena: Arena) -> Iterator[None]:
    """Put each of the four folders on its own file system before anything starts."""
    arena.server.end()
    with ExitStack() as stack:
        for what, folder in folders(arena).items():
            size = f"size={SIZES[what]},mode=700"
            stack.enter_context(mounted(folder, "-t", "tmpfs", "-o", size, "tmpfs"))
        stack.callback(arena.end_all)
        arena.home.env["HIVEPIPE_DB"] = str(folders(arena)[DATABASE] / "hive.db")
        arena.home.database.symlink_to(arena.home.env["HIVEPIPE_DB"])
        arena.server.start()
        yield


def fill(arena: Arena, what: str) -> None:
    """Fill a file system completely. Redis frees what it could not write as a whole."""
    folder = folders(arena)[what]
    until(lambda: is_filled(folder), f"{folder} is not full", 10)


def is_filled(folder: Path) -> bool:
    """Fill a folder's file system; return whether a new file cannot be written."""
    with (folder / BALLAST).open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    probe = folder / "probe"
    try:
        probe.write_bytes(b"x")
    except OSError as error:
        return error.errno == errno.ENOSPC
    finally:
        probe.unlink(missing_ok=True)
    return False


def free(arena: Arena, what: str) -> None:
    (folders(arena)[what] / BALLAST).unlink(missing_ok=True)


def fill_disk(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Fill a disk during a wave until a process meets the error; then free it."""
    if step == SPOOL:
        return _fill_spool(arena, wave, rng)
    # Space that its log already has would be overwritten without a need for more.
    if step == DATABASE:
        with closing(sqlite3.connect(arena.home.database, timeout=10)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    role = {DATABASE: "writer", ARCHIVE: "slow", AOF: "writer"}[step]
    process = arena.keep(role)
    before, pid = len(process.text), process.pid
    words = {DATABASE: "disk is full", ARCHIVE: NO_SPACE, AOF: "MISCONF"}[step]
    fill(arena, step)
    try:
        with handing_over(arena, wave, rng):
            until(lambda: words in arena.keep(role).text[before:], f"nobody met a full {step}")
    finally:
        free(arena, step)
    if step == AOF:
        until(lambda: takes_writes(arena), "Redis still refuses")
    assert arena.keep(role).pid == pid, f"it ended: {process.text[before:]}"
    return step


def takes_writes(arena: Arena) -> bool:
    with suppress(ResponseError):
        return arena.redis.delete("hivepipe:probe") == 0
    return False


def _fill_spool(arena: Arena, wave: Wave, rng: Random) -> str:
    """Redis is down as well, so the event waits in the runtime folder."""
    arena.has_exact_times = False
    own = oracle.timed(own_events(wave)[:1])
    before = arena.hook_log.count(NO_SPACE)
    fill(arena, SPOOL)
    arena.server.end(signal.SIGKILL)
    try:
        arena.fire(own, 1)
        left = [path.name for path in folders(arena)[SPOOL].iterdir() if path.is_file()]
        assert left == [BALLAST], left
    finally:
        free(arena, SPOOL)
        arena.server.start()
        arena.redis.connection_pool.disconnect()
    arena.waves[-1] = Wave(wave.number, (*wave.events, *own))
    with handing_over(arena, wave, rng):
        pass
    return SPOOL if arena.hook_log.count(NO_SPACE) > before else ""


AWAY, THERE = "hook: Redis is away", "hook: Redis is there"
WRITER = "writer: started meanwhile"


@contextmanager
def unwritable(home: Path) -> Iterator[int]:
    """Make a folder read-only; yield the error number of a write."""
    if os.geteuid() == 0:
        with mounted(home, "--bind", str(home)):
            assert run("mount", "-o", "remount,ro,bind", str(home))
            yield errno.EROFS
        return
    found = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in found if path.is_file() or path.is_dir()}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield errno.EACCES
    finally:
        for path, mode in modes.items():
            with suppress(FileNotFoundError):  # a process removed the file, which it still had open
                path.chmod(mode)


def read_only(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Make the home read-only for a while."""
    home = arena.home.database.parent if step == WRITER else arena.home.path
    # Only the prompt, because operations are counted in a file.
    events = oracle.timed(own_events(wave)[1:])
    if step == WRITER:
        arena.processes["writer"].end(signal.SIGKILL)
    if step == AWAY:
        arena.server.end(signal.SIGKILL)
    with unwritable(home) as reason:
        with pytest.raises(OSError, match=os.strerror(reason)):
            (home / "probe").write_bytes(b"x")
        if step == WRITER:
            writer = arena.keep("writer")
            said = len(writer.text)
            for sent in oracle.messages(wave.events, arena.project, arena.swarm):
                arena.send(sent)
            until(lambda: "read" in writer.text[said:] or not writer.is_running, "not noticed")
            hit = step
        else:
            arena.has_exact_times = False
            arena.fire(events, 1)
            elsewhere = [path for path in arena.home.spool if not path.is_relative_to(home)]
            hit = step if step == THERE or elsewhere else ""  # the probe above has failed
        for process in arena.processes.values():  # Open files would prevent the unmount.
            process.end(signal.SIGKILL)
    if step == AWAY:
        arena.server.start()
        arena.redis.connection_pool.disconnect()
    if step != WRITER:
        arena.waves[-1] = Wave(wave.number, (*wave.events, *events))
    if step != WRITER:
        with handing_over(arena, wave, rng):
            pass
    return hit


FAULTS = (
    Fault(
        "a full disk",
        (DATABASE, SPOOL, ARCHIVE, AOF),
        fill_disk,
        ("writer", "slow"),
        scene=small_disks,
    ),
    Fault("a read-only home", (AWAY, THERE, WRITER), read_only),
)
