"""RQ's command line on the Redis of a home: `python -I -m hivepipe.rq worker -w CLASS QUEUES`.

The home comes from HIVEPIPE_HOME, else from the project of the working directory. The command
differs from `rq` on PATH in two ways. Nothing is imported from the working directory or PYTHONPATH:
RQ appends "." to the import path unless another path is given. And the command waits for a Redis
that is still starting, as under a Procfile, while `rq worker` exits at once if Redis does not
answer.
"""

import sys
import time
from pathlib import Path

import redis
import rq
from rq.cli.cli import main as rq_main

from hivepipe.home import locate
from hivepipe.queue.connection import connect, url

WAIT_SECS = 30.0
LOOK_EVERY_SECS = 0.1


def main() -> None:
    """Run RQ's command line with the arguments of this process."""
    address = locate(".").socket
    wait_for(address)
    packages = str(Path(rq.__file__).parents[1])  # this folder is already on the import path
    command, *rest = sys.argv[1:] or ["--help"]
    ours = [] if command.startswith("-") else ["-u", url(address), "-P", packages]
    rq_main.main([command, *ours, *rest], prog_name="rq")


def wait_for(address: str) -> None:
    """Wait until Redis answers, at most WAIT_SECS; RQ reports the error after that time."""
    end = time.monotonic() + WAIT_SECS
    with connect(address) as connection:
        while time.monotonic() < end:
            try:
                connection.ping()
            except (redis.ConnectionError, redis.TimeoutError):  # Redis loads its file or is away
                time.sleep(LOOK_EVERY_SECS)
            else:
                return


if __name__ == "__main__":
    main()
