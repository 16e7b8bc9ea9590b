"""What tests/forked.py starts: imports all commands or the workers, and forks for each request.

The supervisor that a command starts is one more fork, made before the command does anything.

Run as `python -I -c <this text> <number of the control socket> <commands or workers>`, with pipes
as its stdin, stdout and stderr, so that their objects serve a fork, whose descriptors are pipes or
files. A request is four descriptors, and a line of JSON on the fourth, on which pid and wait status
are answered. ROOM in its environment is where the environment of a fork is shown.
"""

import atexit
import ctypes
import functools
import gc
import importlib
import io
import json
import os
import posix
import resource
import runpy
import select
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
import types


def preload(kind):
    """Import what forks need: of the same modules, an executed one imports those it uses."""
    {"commands": preload_commands, "workers": preload_workers}[kind]()
    assert len(os.listdir("/proc/self/task")) == 1


def preload_commands():
    """Import every command; `hivepipe.cli.main` itself is run, not imported."""
    table = importlib.import_module("hivepipe.cli.command_table")
    for name in sorted({entry.module for entry in table.COMMANDS.values()}):
        importlib.import_module(f"hivepipe.cli.{name}")
    sys.modules.pop("hivepipe.cli.main", None)


def preload_workers():
    """Import what a stack's own supervisor has imported when it forks its workers."""
    assert importlib.import_module("hivepipe.worker.preload")._imported()


def preload_supervisor():
    """Import what a supervisor has imported when it forks its workers, but itself."""
    importlib.import_module(SUPERVISOR)
    preload_workers()
    del sys.modules[SUPERVISOR]
    LOADED.update(loaded())
    gc.collect()
    gc.freeze()


def loaded():
    """Return what tells the code on disk from another one."""
    names = [module.__file__ for name, module in sys.modules.items() if is_ours(name, module)]
    return {name: print_of(name) for name in (*names, sysconfig.get_path("purelib"))}


def is_ours(name, module):
    return name.partition(".")[0] == "hivepipe" and getattr(module, "__file__", None)


def print_of(name):
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_ino, status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns


def read_line(descriptor):
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(descriptor, 1 << 16)
        if not part:
            sys.exit(0)
        data += part
    return json.loads(data)


def serve(control):
    """Fork for each request; return in the fork, with what it is to do.

    Ends after the last fork when the control is closed.
    """
    poll, running = select.poll(), {control.fileno(): None}
    poll.register(control, select.POLLIN)
    while running:
        for ready, _ in poll.poll():
            if ready != control.fileno():
                poll.unregister(ready)
                report(ready, *running.pop(ready))
                continue
            data, descriptors, _, _ = socket.recv_fds(control, 1, 4)
            if not data:
                poll.unregister(control)
                del running[control.fileno()]
                continue
            *theirs, reply = descriptors
            asked = read_line(reply)
            if starts_supervisor(asked) and "supervisor" not in sys.modules and is_same():
                preload_supervisor()
            pid = os.fork() if is_same() else None
            if pid == 0:
                become(control, theirs)
                return asked
            answer(reply, pid or 0)
            for each in theirs:
                os.close(each)
            if pid:
                watched = os.pidfd_open(pid)
                running[watched] = pid, reply
                poll.register(watched, select.POLLIN)
            else:
                os.close(reply)
    os._exit(0)


def starts_supervisor(asked):
    return KIND == "commands" and asked["words"][:1] in (["up"], ["restart"])


def is_same():
    """Is the code on disk what was imported?"""
    return all(print_of(name) == found for name, found in LOADED.items())


def report(watched, pid, reply):
    """Say how a fork has ended."""
    answer(reply, os.waitpid(pid, 0)[1])
    os.close(watched)
    os.close(reply)


def answer(reply, number):
    try:
        os.write(reply, b"%d\n" % number)
    except OSError:  # the client has gone
        pass


def become(control, theirs):
    """Have the descriptors of an executed process."""
    for number, each in enumerate(theirs):
        os.dup2(each, number)
    control.detach()
    os.closerange(3, 1 << 12)


def becomes_supervisor():
    """Fork; tell the command False, and the fork True when the command has started it."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        popen = functools.partial(launch, [ours])
        starter = importlib.import_module("hivepipe.stack.supervisor")
        starter.subprocess = types.SimpleNamespace(DEVNULL=subprocess.DEVNULL, Popen=popen)
        return False
    ours.close()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    with theirs:
        await_start(theirs)
    return True


def launch(waiting, words, **how):
    """Start the fork that waits as `subprocess.Popen` does; execute a second supervisor."""
    if not waiting:
        return subprocess.Popen(words, **how)
    asked = {
        "words": words[4:],
        "env": {os.fsdecode(name): os.fsdecode(text) for name, text in how["env"].items()},
        "cwd": how["cwd"],
        "umask": how["umask"],
        "limits": [(each, resource.getrlimit(each)) for each in LIMITS],
    }
    with waiting.pop() as supervisor:
        socket.send_fds(supervisor, [b"x"], how["pass_fds"])
        supervisor.sendall(json.dumps(asked).encode() + b"\n")
        supervisor.recv(1)  # it closes this when it is what was asked for
    return None


def await_start(command):
    data, (*_lock,), _, _ = socket.recv_fds(command, 1, 1)
    if not data:  # the command has ended
        os._exit(0)
    asked = read_line(command.fileno())
    os.setsid()
    prepare(asked, SUPERVISOR)


def prepare(asked, module):
    """Have the folder, umask, limits, environment and words of an executed process."""
    os.chdir(asked["cwd"])
    os.umask(asked["umask"])
    for each, limits in asked["limits"]:
        resource.setrlimit(each, limits)
    wanted = {**asked["env"], **COERCED}
    words = asked["words"]
    os.environ.clear()
    os.environ.update(wanted)
    posix.environ.clear()  # it may be what os.environ holds, or a copy
    posix.environ.update({os.fsencode(name): os.fsencode(text) for name, text in wanted.items()})
    time.tzset()
    sys.orig_argv = [sys.executable, "-I", *(["-m", module] if module else []), *words]
    sys.argv = ["-m", *words] if module else words
    if module != COMMAND:  # the command line that the search for processes of a home finds
        show(45, sys.orig_argv)
        show(47, [f"{name}={text}" for name, text in asked["env"].items()])


def show(field, texts):
    """Overwrite the command line, or the environment, whose place is in /proc/self/stat."""
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    begin, end = map(int, fields[field : field + 2])
    data = "\0".join(texts).encode("utf-8", "surrogateescape")
    assert len(data) < end - begin
    ctypes.memmove(begin, data.ljust(end - begin, b"\0"), end - begin)


def end(code):
    """End as the interpreter does, but leave what was imported to the kernel.

    The interpreter takes it down in two thirds of a fork's time. Return if it is to do so:
    something is open still, or there is something to say.
    """
    if isinstance(code, int | None):
        threading._shutdown()
        atexit._run_exitfuncs()
        if is_flushed() and not any(map(is_open, gc.get_objects())):  # without what was frozen
            os._exit((code or 0) & 0xFF)
    gc.unfreeze()  # else what globals hold would not be closed


def is_flushed():
    """Write what is printed; tell whether that was possible."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True


def is_open(made):
    """Would the interpreter close this, and perhaps write before?"""
    if isinstance(made, io.IOBase):
        return not made.closed
    return isinstance(made, (sqlite3.Connection, socket.socket, subprocess.Popen))


COMMAND, SUPERVISOR = "hivepipe.cli.main", "supervisor.supervisord"
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
KIND = sys.argv[2]
del os.environ["ROOM"]
COERCED = dict(os.environ)  # it was alone: what Python itself sets
preload(KIND)
LOADED = loaded()
gc.collect()
gc.freeze()
MODULE = {"commands": COMMAND, "workers": None}[KIND]
ASKED = serve(socket.socket(fileno=int(sys.argv[1])))
if starts_supervisor(ASKED) and becomes_supervisor():
    MODULE = SUPERVISOR
else:
    prepare(ASKED, MODULE)
code = None
try:
    if MODULE:
        runpy._run_module_as_main(MODULE)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as ended:
    code = ended.code
except BaseException:
    gc.unfreeze()
    raise
end(code)
sys.exit(code)
