"""One process of a stack per container: `python -I -m hivepipe.stack.container NAME`.

The program records the home and its Redis, which REDIS_URL names, and then executes the process.
`--check NAME` is the health check, with exit code 0 if the process works. Home, records and sockets
are on volumes that the containers share. The containers run on one kernel, so file locks work
between them.
"""

import os
import socket
import sys
from contextlib import suppress
from importlib.metadata import version

from redis.exceptions import RedisError

from hivepipe.config.config_file import load_and_use
from hivepipe.errors import HivepipeError, StackError
from hivepipe.home import locate, read_record, tree_of
from hivepipe.queue.connection import connect
from hivepipe.queue.rq_workers import rq_workers
from hivepipe.queue.ticks import scheduler_runs
from hivepipe.settings import variable
from hivepipe.stack import kernel, other_redis, registration
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.processes import PROCESSES, Process, script_path
from hivepipe.stack.runtime_folder import Stack, make_private, runtime_for

TURN_SECS = 30


def main(arguments: list[str]) -> int:
    """Execute or check the named process; return the exit code of the check or of an error."""
    os.umask(0o077)
    is_check = arguments[:1] == ["--check"]
    try:
        process = _named(arguments[-1] if arguments else "")
        if is_check:
            return 0 if _is_healthy(process) else 1
        _register(process)
    except (HivepipeError, RedisError) as error:
        print(f"hivepipe: {error}", file=sys.stderr)  # noqa: T201  the container's log
        return 1
    return os.execv(sys.executable, [sys.executable, "-I", str(script_path(process))])


def _named(name: str) -> Process:
    for process in PROCESSES:
        if process.name == name and process.if_redis != "own" and process.is_in_containers:
            return process
    raise StackError(f"no process of a stack in containers is called {name!r}")


def _register(process: Process) -> None:
    """Record the Redis of this home, unless another container has already done so.

    The writer also claims the home, and keeps the claim's lock when it is executed. Raise
    StackError if REDIS_URL or HIVEPIPE_HOME is not set, the Redis cannot be used, or another stack
    uses the home.
    """
    url = variable("REDIS_URL")
    if not url or not variable("HIVEPIPE_HOME"):
        raise StackError("a container needs REDIS_URL and HIVEPIPE_HOME")
    home = load_and_use()[0].home
    make_private(home)
    with locked_folder(home, TURN_SECS):
        is_writer = process.name == "writer"
        if is_writer or not kernel.is_in_containers(home):  # else the claim is our writer's
            kernel.refuse_another(home)
        if is_writer:
            kernel.claim(home)
        stack = Stack(home, runtime_for(home), other_redis.canonical(url))
        with suppress(FileNotFoundError):  # failed starts by hooks are over
            os.unlink(f"{stack.folder}/starting")
        owner = registration.owner_id(home)
        other_redis.claim(stack.url, home, owner)
        record = read_record(home)
        found = [record.get(name) for name in ("socket", "python", "version")]
        if found != [stack.url, sys.executable, version("hivepipe")]:
            tree = tree_of(home)
            registration.register(home, stack, sys.executable, owner=owner, tree=tree)
        # So no hook starts a second set. A `down` before the containers' start is over.
        registration.change_records({home}, containers="yes", state="on")


def _is_healthy(process: Process) -> bool:
    """Tell whether Redis answers and the worker of this container sends heartbeats."""
    with connect(locate(".").socket) as connection:
        connection.ping()
        if process.name == "scheduler":
            return scheduler_runs(connection)
        if not process.is_rq_worker:
            return True
        host = socket.gethostname()
        return any(worker.host == host and worker.is_alive for worker in rq_workers(connection))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
