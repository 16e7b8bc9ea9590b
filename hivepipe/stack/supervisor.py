"""Start, check and stop the stack of a home: supervisord and its programs (`stack.processes`).

Only the holder of `supervisor.lock` may start the stack or clean up after a dead supervisor. So
concurrent `up` commands give one stack, and no surviving Redis blocks the append-only file.
"""

import errno
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from xml.parsers.expat import ExpatError
from xmlrpc.client import Error as RpcError
from xmlrpc.client import Fault, dumps, loads

import psutil
from redis.exceptions import RedisError

from hivepipe.errors import LockHeldError, StackError
from hivepipe.files.disk_room import FULL
from hivepipe.home import Place, environment_of
from hivepipe.queue.all_jobs import keep_unwritten_jobs
from hivepipe.queue.connection import connect
from hivepipe.stack import kernel, other_redis
from hivepipe.stack.idle_policy import ask_to_shut_down
from hivepipe.stack.listening import listens
from hivepipe.stack.lock import RETRY_SECS, acquire_lock, is_locked_file, locked_file
from hivepipe.stack.ping import ping
from hivepipe.stack.processes import PROCESSES, identity, processes_with, render
from hivepipe.stack.redis_server import find_server, folders_aside
from hivepipe.stack.registration import owner_id
from hivepipe.stack.runtime_folder import Stack, make_private
from hivepipe.stack.stack_processes import (
    SUPERVISOR,
    ProcessTable,
    end_processes,
    process_tree,
    signal_all,
    stack_processes,
    value_or,
    wait_for_end,
)

READY_SECS = 15
ANSWER_SECS = 2
DEAF_SECS = 5
ENDING_SECS = 0.5  # longer than a supervisor that starts or ends is without a socket
KILL_SECS = 10
FEWEST_FILES = 64  # Redis keeps 32 for itself
REDIS_LISTENS_SECS = 1  # Redis listens within this time after its start
ON_DEMAND = {entry.name for entry in PROCESSES if entry.is_on_demand}
# The longest orderly shutdown: one program after the other, plus supervisord's own interval.
STOP_SECS = sum(entry.stop_secs for entry in PROCESSES) + 5


def start(stack: Stack) -> None:
    """Start the stack or join the running one; return when it is ready.

    A stack of another version or with other programs is replaced. Raise StackError if the stack
    does not become ready.
    """
    kernel.refuse_another(stack.home)
    _refuse_special_files(Path(stack.home))
    if stack.url:
        other_redis.claim(stack.url, stack.home, owner_id(stack.home))
    elif not is_ready(stack):
        find_server(stack.home)  # raises before anything is started, and says what to install
    if is_of_another_version(stack):
        stop(stack)
    started: tuple[subprocess.Popen[bytes], IO[bytes]] | None = None
    awake = False
    deaf_at = time.monotonic() + DEAF_SECS
    deadline = time.monotonic() + READY_SECS
    while not is_ready(stack):
        # supervisord sleeps a second before it starts anything, unless a call wakes it.
        awake = awake or bool(processes(stack))
        try:
            lock = acquire_lock(stack.lock("supervisor"), 0)
        except LockHeldError:
            if not awake and time.monotonic() > deaf_at:  # the socket is gone, or supervisord hangs
                stop(stack)
                deaf_at = math.inf
                deadline = time.monotonic() + READY_SECS
        else:
            try:
                if started:
                    raise StackError(
                        f"supervisord ended at once: {_last_words(*started)}{_file_limit()}"
                    )
                _end_survivors(stack)
                claim = kernel.claim(stack.home)
                try:
                    started = _launch(stack, lock, claim)
                finally:
                    os.close(claim)
            finally:
                os.close(lock)
            deaf_at = math.inf
            deadline = time.monotonic() + READY_SECS
        if time.monotonic() > deadline:
            raise StackError(
                f"not ready after {READY_SECS} s: {why_not_ready(stack)}{_file_limit()}; "
                "the stack keeps trying until `hivepipe down`"
            )
        time.sleep(RETRY_SECS)


def runs_without(stack: Stack) -> bool:
    """Tell whether the stack's own Redis listens or is starting without a supervisor (Procfile).

    Redis is starting if it or the writer is younger than READY_SECS. Return False if a supervisor
    socket exists.
    """
    if stack.url or os.path.lexists(stack.supervisor_socket):  # a supervisor runs or was killed
        return False
    found = stack_processes(stack)
    if SUPERVISOR in found:
        return False
    started = [*found.get("redis", []), *found.get("writer", [])]  # the writer may start first
    return listens(stack.socket) or any(map(_is_new, started))  # Redis may not answer yet


def _is_new(process: psutil.Process) -> bool:
    return bool(value_or(lambda: time.time() - process.create_time() < READY_SECS, False))


def stop(stack: Stack, table: ProcessTable | None = None) -> None:
    """End every process of the stack; return when the last one has ended.

    Raise StackError, and end nothing, if jobs would be lost (`keep_unwritten_jobs`). `table` is an
    earlier list of processes. If the stack did not run then and was not started since, the
    processes are not listed again.
    """
    # The supervisor and each program hold a lock. A Procfile has no supervisor.
    locks = map(str, Path(stack.folder).glob("*.lock"))
    if table and not table.of(stack) and not any(map(is_locked_file, locks)):
        return
    found = stack_processes(stack)
    supervisors = found.get(SUPERVISOR, [])
    tree = [process for entry in supervisors for process in process_tree(entry)]
    everyone = [process for process in tree if process.pid != os.getpid()]
    signal_all(everyone, psutil.Process.resume)  # a suspended process cannot handle SIGTERM
    if not stack.url and found.get("redis") and listens(stack.socket) and not ping(stack.socket):
        # Redis hangs. All others would wait for it until they are killed. No data is lost, because
        # the data is in the append-only file.
        signal_all(found["redis"], psutil.Process.kill)
    elif not stack.url and found.get("redis"):
        _keep_unwritten_jobs(stack)
    if supervisors:
        signal_all(supervisors, psutil.Process.terminate)
        ask_to_shut_down(stack)  # supervisord sees a signal only after its wait of up to a second
    wait_for_end(everyone, STOP_SECS)
    end_processes(everyone, KILL_SECS)
    try:
        with locked_file(stack.lock("supervisor"), KILL_SECS):
            _end_survivors(stack)
    except OSError as error:
        # The folder was deleted at logout, or its disk is full or read-only: nothing can start.
        if error.errno not in (*FULL, errno.ENOENT, errno.EROFS):
            raise
        _end_survivors(stack)


def refuse_unseen(stack: Stack) -> None:
    """Raise StackError if a supervisor of another pid namespace runs the stack out of sight."""
    if kernel.is_used_by_another_namespace(stack.home) and SUPERVISOR not in stack_processes(stack):
        kernel.refuse_another(stack.home)


def _keep_unwritten_jobs(stack: Stack) -> None:
    place = Place("", stack.home, {"socket": stack.socket})
    with suppress(RedisError), connect(stack.socket, limit_secs=ANSWER_SECS) as client:
        keep_unwritten_jobs(client, place)


def processes(stack: Stack) -> list[dict[str, Any]]:
    """Return supervisord's information on each program, or [] if it does not answer.

    On-demand programs that do not run are left out. A program stopped by SIGSTOP has the state
    SUSPENDED; supervisord itself reports it as running.
    """
    return [
        entry | {"statename": "SUSPENDED"} if _is_suspended(entry["pid"]) else entry
        for entry in _answer(stack, "getAllProcessInfo", [])
        if entry["name"] not in ON_DEMAND or entry["statename"] not in ("STOPPED", "STOPPING")
    ]


def _is_suspended(pid: int) -> bool:
    status = value_or(lambda: psutil.Process(pid).status(), "") if pid else ""
    return bool(status == psutil.STATUS_STOPPED)


def is_stopping(stack: Stack) -> bool:
    """Tell whether supervisord refuses calls because it is ending the programs."""
    return _state(stack) == "stopping"


def identity_of(stack: Stack) -> str:
    """Return the identity of the running supervisor (see `processes.identity`), or ""."""
    return str(_answer(stack, "getIdentification", ""))


def is_of_another_version(stack: Stack) -> bool:
    """Tell whether a stack of another version or with other programs runs."""
    running = identity_of(stack)
    return bool(running) and running != identity(stack.url)


def is_ready(stack: Stack) -> bool:
    """Tell whether Redis and all RQ workers answer."""
    return not why_not_ready(stack)


def why_not_ready(stack: Stack) -> str:
    # Redis is asked first, because each call to supervisord wakes it, and it then restarts a
    # crashing program at once.
    if trouble := redis_trouble(stack):
        return trouble
    absent = _unregistered(stack)
    if absent:
        names = ", ".join(absent)
        return f"no heartbeat of {names} in Redis (`hivepipe logs {absent[0]}` may say why)"
    return ""


def redis_trouble(stack: Stack) -> str:
    """Return why a stack's Redis does not accept jobs, or "" if it does."""
    if stack.url:
        return other_redis.trouble(stack.url)
    answer = ping(stack.socket)
    if not answer and not listens(stack.socket):
        return _why_redis_is_away(stack)
    answer = answer or ping(stack.socket)  # Redis may have just started
    if answer.startswith(b"+PONG"):
        return ""
    if answer.startswith(b"-LOADING"):
        return "Redis is loading its file: events wait on disk until it has"
    if answer.startswith(b"-"):
        reason = answer[1:].decode(errors="backslashreplace").strip()
        return f"Redis accepts no jobs: {reason}"
    return "Redis is stopped or busy: it accepts connections and does not answer"


def _why_redis_is_away(stack: Stack) -> str:
    entry = next((entry for entry in processes(stack) if entry["name"] == "redis"), None)
    if entry and entry["pid"] and entry["now"] - entry["start"] > REDIS_LISTENS_SECS:
        return "Redis runs but its socket is missing: it is restarted within 20 s"
    if entry:
        return "Redis does not stay up (`hivepipe logs redis` says why)"
    return "Redis does not answer (`hivepipe logs redis` may say why)"


def why_silent(stack: Stack, supervisors: list[psutil.Process]) -> str:
    """Return why a running supervisor does not answer; "" if it is ending or none runs."""
    for process in supervisors:
        if value_or(process.status, "") == psutil.STATUS_STOPPED:
            return f"the supervisor (pid {process.pid}) is suspended: it restarts no program"
    if not wait_for_end(supervisors, ENDING_SECS) or _state(stack):
        return ""
    if listens(stack.supervisor_socket):
        return "the supervisor accepts connections and does not answer"
    return "the supervisor runs but its socket is missing: the stack is restarted within a minute"


def _unregistered(stack: Stack) -> list[str]:
    """Return the names of the workers whose present pid is not registered in Redis."""
    pids = {entry["name"]: entry["pid"] for entry in processes(stack)}
    try:
        with connect(stack.address, limit_secs=ANSWER_SECS) as client:
            registered = {client.hget(key, "pid") for key in client.smembers("rq:workers")}
    except RedisError:
        registered = set()
    workers = [
        entry.name
        for entry in processes_with(stack.url)
        if entry.is_rq_worker and not entry.is_on_demand
    ]
    return [name for name in workers if str(pids.get(name)).encode() not in registered]


def _launch(stack: Stack, *locks: int) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start supervisord, detached and with the locks inherited; return it and its stderr."""
    make_private(f"{stack.home}/logs")
    Path(stack.config).write_text(render(stack.url), encoding="utf-8")
    errors = TemporaryFile(dir=stack.folder)  # noqa: SIM115  `start` reads it
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "supervisor.supervisord", "-n", "-c", stack.config],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        cwd=stack.home,
        # supervisord sets this variable for programs that it executes, but workers are its forks.
        env=environment_of(stack.home) | {b"SUPERVISOR_SERVER_URL": os.fsencode(stack.server_url)},
        pass_fds=locks,
        start_new_session=True,
        umask=0o077,  # supervisord applies its own setting only when it daemonizes
    )
    return process, errors


def _last_words(process: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    """Return supervisord's error message or last line, else the command that shows its log."""
    if process.poll() == -signal.SIGKILL:
        return "it was killed, as the kernel does when memory is short"
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()
    messages = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return next(iter(messages or lines[-1:]), "see `hivepipe logs supervisord`")


def _file_limit() -> str:
    """Return a text that names the limit of open files, or "" if Redis can run within it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_small = hard != resource.RLIM_INFINITY and hard < FEWEST_FILES
    return f"; a process may open no more than {hard} files (ulimit -n)" if is_small else ""


def _refuse_special_files(home: Path) -> None:
    """Raise StackError for links and special files, which a cloned home may contain.

    A link would redirect a log, and a pipe would block its writer.
    """
    folders = (home / "logs", home / "appendonlydir", *folders_aside(str(home)))
    inside = (*home.glob("logs/*.log*"), *(path for each in folders[1:] for path in each.glob("*")))
    for path in (*folders, home / "appendonly.aof", home / "redis.lock", *inside):
        is_plain = path.is_dir() if path in folders else path.is_file()
        if path.is_symlink() or (path.exists() and not is_plain):
            raise StackError(f"{path} is not a plain file or folder: remove it")


def _state(stack: Stack) -> str:
    """Return `running` or `stopping`, or "" if supervisord does not answer."""
    try:
        _call(stack, "getState")
    except Fault:  # supervisord refuses all calls while it ends the programs
        return "stopping"
    except (OSError, RpcError):
        return ""
    return "running"


def _answer(stack: Stack, method: str, otherwise: Any) -> Any:
    """Return supervisord's answer, or `otherwise` if it does not answer or refuses the call."""
    try:
        return _call(stack, method)
    except (OSError, RpcError):
        return otherwise


def _call(stack: Stack, method: str) -> Any:
    """Call supervisord. Raise OSError, Fault (a refusal), or RpcError (a damaged answer)."""
    request = dumps((), f"supervisor.{method}")
    with closing(_Connection(stack.supervisor_socket)) as connection:
        try:
            connection.request("POST", "/RPC2", request, {"Content-Type": "text/xml"})
            return loads(connection.getresponse().read())[0][0]
        except (HTTPException, ExpatError, LookupError, TypeError, ValueError) as error:
            raise RpcError(str(error)) from None


class _Connection(HTTPConnection):
    """A connection to a unix socket with a time limit; supervisor's own transport has none."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWER_SECS)
        self.sock.connect(self._path)


def _end_survivors(stack: Stack) -> None:
    """End the processes of a dead or silent supervisor, Redis last. The caller holds the lock."""
    found = stack_processes(stack)
    end_processes(found.pop(SUPERVISOR, []), STOP_SECS)
    for priority in sorted({entry.priority for entry in PROCESSES}, reverse=True):
        group = [entry for entry in PROCESSES if entry.priority == priority]
        processes_of_group = [process for entry in group for process in found.get(entry.name, [])]
        end_processes(processes_of_group, max(entry.stop_secs for entry in group))
