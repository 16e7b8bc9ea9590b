"""A temporary Redis server that reads and changes a home's jobs while no stack runs."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redis.exceptions import RedisError

from hivepipe.errors import StackError
from hivepipe.files import core_dumps
from hivepipe.home import is_private_folder
from hivepipe.queue.all_jobs import spool_jobs
from hivepipe.queue.connection import connect
from hivepipe.stack import kernel
from hivepipe.stack.append_only_file import close_gaps
from hivepipe.stack.lock import acquire_lock, locked_folder
from hivepipe.stack.parent_death import end_with_parent
from hivepipe.stack.ping import answers
from hivepipe.stack.redis_server import arguments, find_server, folders_aside, set_folder_aside
from hivepipe.stack.runtime_folder import Stack, make_private

TURN_SECS = 60.0
START_SECS = 60.0
STOP_SECS = 30.0


def has_file(home: str) -> bool:
    """Tell whether this home has an append-only file, or the folder that Redis 7 uses."""
    return any(path.is_file() for path in Path(home).glob("append*")) or any(
        Path(home).glob("append*/*")
    )


@contextmanager
def temporary_redis(stack: Stack) -> Iterator[str]:
    """Run a temporary server on a home's jobs; yield its address. Meanwhile no stack can start.

    Raise StackError or NoRedisServerError if the server does not start, or if a stack of another
    machine uses the home. Raise LockHeldError if a start or stop of the stack is in progress.
    """
    kernel.refuse_another(stack.home)
    with locked_folder(stack.home, TURN_SECS), server_of_locked(stack) as address:
        yield address


@contextmanager
def server_of_locked(stack: Stack) -> Iterator[str]:
    """Run the temporary server for a caller that holds the lock of the home's folder.

    Yield the address of the server. Raise StackError, LockHeldError or NoRedisServerError if it
    cannot be started.
    """
    make_private(stack.folder)
    if not is_private_folder(stack.folder):
        raise StackError(f"{stack.folder} must be a folder that only you can enter")
    locks = [acquire_lock(path, 2.0) for path in (stack.lock("redis"), stack.data_lock)]
    core_dumps.leave_none()
    try:
        program = find_server(stack.home)
        set_folder_aside(stack.home)
        close_gaps(stack.home)
        spool_folders_aside(stack, program, locks)
        with _server(stack, program, locks) as address:
            yield address
    finally:
        for lock in locks:
            os.close(lock)


def spool_folders_aside(stack: Stack, program: str, locks: list[int]) -> None:
    """Move the jobs of the folders renamed by `set_folder_aside` to the spool; delete the folders.

    A folder stays if it cannot be loaded or the disk is full; `doctor` names it.
    """
    for folder in folders_aside(stack.home):
        options = ("--appenddirname", folder.name)
        with suppress(StackError, OSError, RedisError):
            with _server(stack, program, locks, *options) as address, connect(address) as client:
                spool_jobs(client, f"{stack.home}/spool")
            os.sync()  # a power cut may come after the folder is deleted
            # Redis takes a folder without its list of files for empty, so the list goes first.
            (folder / "appendonly.aof.manifest").unlink(missing_ok=True)
            shutil.rmtree(folder)


@contextmanager
def _server(stack: Stack, program: str, locks: list[int], *options: str) -> Iterator[str]:
    address = f"{stack.folder}/lone.sock"  # hooks do not use this address
    server = subprocess.Popen(
        [program, *arguments(stack.home, address), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=locks,
        umask=0o077,
        preexec_fn=end_with_parent,  # else the server would hold the locks after a kill
    )
    try:
        _wait(server, stack.home, address)
        yield address
    finally:
        # Redis syncs its file first. On a slow disk it is killed: what it confirmed is in the file.
        for end in (server.terminate, server.kill):
            end()
            with suppress(subprocess.TimeoutExpired):
                server.wait(STOP_SECS)
        Path(address).unlink(missing_ok=True)


def _wait(server: "subprocess.Popen[bytes]", home: str, address: str) -> None:
    deadline = time.monotonic() + START_SECS
    while not answers(address):
        if server.poll() is not None:
            raise StackError(
                f"Redis ended: it cannot write its files in {home}, or they are damaged "
                "(`redis-check-aof` checks them)"
            )
        if time.monotonic() > deadline:
            raise StackError(f"Redis did not start within {START_SECS:.0f} s: try again")
        time.sleep(0.02)
    with connect(address) as client:
        while client.info("persistence")["loading"]:
            time.sleep(0.02)
