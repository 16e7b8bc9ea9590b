"""The Redis server of one home: `python -I workers/redis.py` with HIVEPIPE_HOME set."""

import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

from hivepipe.config.config_file import load_and_use
from hivepipe.errors import HivepipeError, LockHeldError
from hivepipe.files import core_dumps
from hivepipe.stack.append_only_file import close_gaps
from hivepipe.stack.lock import acquire_lock
from hivepipe.stack.parent_death import end_with_supervisor
from hivepipe.stack.redis_server import arguments, find_server, folders_aside, set_folder_aside
from hivepipe.stack.runtime_folder import Stack, make_private

# A rewrite of the append-only file holds the lock for a moment after the server has ended.
WAIT_SECS = 10
_UNFINISHED = re.compile(r"temp-(?:rewriteaof-(?:bg-)?)?[0-9.]+(?:aof|rdb)").fullmatch


def main() -> None:
    """Take the locks and become the server, which holds the locks until it ends."""
    os.umask(0o077)
    core_dumps.leave_none()
    home = load_and_use()[0].home
    server = find_server(home)
    make_private(home)
    stack = Stack.prepared(home)
    end_with_supervisor(stack)
    locks = [acquire_lock(path, WAIT_SECS) for path in (stack.lock("redis"), stack.data_lock)]
    _delete_unfinished(Path(home))
    set_folder_aside(home)
    close_gaps(home)
    if folders_aside(home):
        from hivepipe.stack.temporary_redis import spool_folders_aside  # noqa: PLC0415  rare

        spool_folders_aside(stack, server, locks)
    _clear(stack.socket)
    os.execv(server, [server, *arguments(home, stack.socket)])


def _delete_unfinished(home: Path) -> None:
    """Delete copies that a killed Redis had not finished, because they contain texts of jobs."""
    for path in home.iterdir():
        if _UNFINISHED(path.name):
            with suppress(OSError):
                path.unlink()


def _clear(path: str) -> None:
    """Rename a folder at the path of the socket. A file there is replaced by Redis itself."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.rename(path, f"{path}.{time.time_ns()}")


if __name__ == "__main__":
    try:
        main()
    except HivepipeError as error:
        print(f"hivepipe: {error}", file=sys.stderr)  # noqa: T201  the supervisor's log
        sys.exit(os.EX_TEMPFAIL if isinstance(error, LockHeldError) else 1)
