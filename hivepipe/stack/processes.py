"""The table of a stack's processes, from which supervisord's programs and the Procfile are made."""

import resource
import shlex
import sys
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple

import hivepipe
from hivepipe.queue.endpoint import is_local

# Paths are relative to the home, where supervisord runs: the home's path may have any character.
# With startsecs=0, a program that cannot start is retried about once a second, without a limit.
_HEAD = """\
[supervisord]
identifier={identity}
nodaemon=true
silent=true
nocleanup=true
minfds={files}
minprocs={processes}
logfile=logs/supervisord.log
logfile_maxbytes=1MB
logfile_backups=2
pidfile=%(here)s/supervisord.pid
[unix_http_server]
file=%(here)s/supervisor.sock
chmod=0700
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[rpcinterface:prompt_reactions]
supervisor.rpcinterface_factory=hivepipe.stack.prompt_reactions:make
[rpcinterface:stderr_on_full_disk]
supervisor.rpcinterface_factory=hivepipe.stack.stderr_on_full_disk:make
[rpcinterface:reachable]
supervisor.rpcinterface_factory=hivepipe.stack.reachable:make
[rpcinterface:on_demand]
supervisor.rpcinterface_factory=hivepipe.stack.on_demand:make
[rpcinterface:preload]
supervisor.rpcinterface_factory=hivepipe.worker.preload:make
"""
# supervisord raises its limits to these, and does not start if it cannot.
_LIMITS = {"files": (1024, resource.RLIMIT_NOFILE), "processes": (200, resource.RLIMIT_NPROC)}
# The programs of one priority form one group. They are started and stopped together.
_GROUP = """\
[group:{priority}]
programs={names}
priority={priority}
"""
_PROGRAM = """\
[program:{name}]
command={command}
autostart={autostart}
startsecs=0
autorestart=true
stopasgroup=true
killasgroup=true
stopwaitsecs={stop_secs}
redirect_stderr=true
stdout_logfile=logs/{name}.log
stdout_logfile_maxbytes=1MB
stdout_logfile_backups=2
"""


class Process(NamedTuple):
    """A long-lived process of a stack.

    `if_redis` is the kind of Redis with which the stack needs this process.
    """

    name: str
    stop_secs: int = 10
    priority: int = 10  # processes start in ascending and stop in descending order
    if_redis: Literal["any", "own", "remote"] = "any"
    worker: str = ""  # class and queues of an RQ worker, for RQ's command line
    is_on_demand: bool = False  # True: not started with the stack (see hivepipe.stack.wanted)
    is_extra: bool = False  # True for a process that is not in the Procfile
    is_in_containers: bool = True  # False: hooks outside a container could not reach its socket
    options: str = "-I"  # options of Python

    @property
    def script(self) -> str:
        return f"{self.name}.py"

    @property
    def is_rq_worker(self) -> bool:
        """Tell whether the process registers in Redis, as it must before the stack is ready."""
        return bool(self.worker)


PROCESSES = (
    Process("redis", priority=1, if_redis="own"),
    Process("writer", stop_secs=30, worker="hivepipe.worker.writer.Writer high medium low"),
    Process("slow", worker="hivepipe.worker.slow_worker.SlowWorker slow"),
    Process("llm", worker="hivepipe.worker.slow_worker.LlmWorker llm", is_on_demand=True),
    # The intake imports nothing from site-packages, which saves memory.
    Process("intake", stop_secs=5, is_in_containers=False, options="-I -S"),
    Process("scheduler"),
    Process("forwarder", priority=20, if_redis="remote"),
    Process("uplink", priority=20, is_on_demand=True, is_extra=True),
    Process("web", stop_secs=5, priority=20, is_on_demand=True, is_extra=True),
)


def root_folder() -> Path:
    """Return the folder of `hooks` and `workers`, named `_hooks` and `_workers` in a wheel."""
    package = Path(hivepipe.__file__).parent
    return package if (package / "_workers").is_dir() else package.parent


def hooks_folder() -> Path:
    return _in_root("hooks")


def script_path(process: Process) -> Path:
    return _in_root("workers") / process.script


def _in_root(name: str) -> Path:
    root = root_folder()
    in_wheel = root / f"_{name}"
    return in_wheel if in_wheel.is_dir() else root / name


def procfile() -> str:
    """Return the text of the Procfile, for a stack with its own Redis."""
    needed = [entry for entry in processes_with("") if not entry.is_extra]
    return "".join(f"{entry.name}: python {entry.options} {_program(entry)}\n" for entry in needed)


def _program(entry: Process) -> str:
    """Return Python's arguments in the Procfile: RQ's command line for a worker, else a script."""
    return f"-m hivepipe.rq worker -w {entry.worker}" if entry.worker else f"workers/{entry.script}"


def processes_with(url: str) -> list[Process]:
    """Return the processes needed with the Redis at this URL; "" is the stack's own Redis."""
    kinds = {"any", "own" if not url else "any" if is_local(url) else "remote"}
    return [entry for entry in PROCESSES if entry.if_redis in kinds]


def render(url: str) -> str:
    """Return supervisord's configuration."""
    limits = {name: _within(*limit) for name, limit in _LIMITS.items()}
    return _HEAD.format(identity=identity(url), **limits) + _programs(url)


def _within(wanted: int, kind: int) -> int:
    """Return the limit `wanted`, but at most the account's hard limit of the same kind."""
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def identity(url: str) -> str:
    """Return an identifier of hivepipe's version, the URL of Redis, and the stack's programs."""
    digest = blake2b(f"{url}\n{_programs(url)}".encode(), digest_size=4).hexdigest()
    return f"hivepipe-{version('hivepipe')}-{digest}"


def _programs(url: str) -> str:
    needed = processes_with(url)
    sections = [_section(entry) for entry in needed]
    for priority in sorted({entry.priority for entry in needed}):
        names = ",".join(entry.name for entry in needed if entry.priority == priority)
        sections.append(_GROUP.format(priority=priority, names=names))
    return "".join(sections)


def _section(entry: Process) -> str:
    autostart = "false" if entry.is_on_demand else "true"
    return _PROGRAM.format(command=_command(entry), autostart=autostart, **entry._asdict())


def _command(entry: Process) -> str:
    """Return a process's command line, quoted so that supervisord takes no part as a comment."""
    words = (sys.executable, *entry.options.split(), str(script_path(entry)))
    quoted = " ".join(map(shlex.quote, words)).replace("%", "%%")
    return quoted.replace(";", "'\";\"'").replace("#", "'\"#\"'")
