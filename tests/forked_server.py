"""The server process of tests/forked.py: it imports what forks need, and forks on request.

For a command that starts a supervisor it makes a second fork, before the command does anything.
A process that asks a language model forks itself instead of executing `asker`. A runner of the hive
becomes `after_run` instead of executing it.

It is run as `python -I -c <this text> <number of the control socket> <kind> <folder of the code>`.
Its stdin, stdout and stderr are pipes, so that their file objects fit the forks, whose descriptors
are pipes or files. A request consists of four descriptors, further ones that the fork gets from 3
on, and a line of JSON on the fourth, which also carries pid and wait status back. The memory of the
variable ROOM later shows the environment of a fork.
"""

import atexit
import ctypes
import functools
import gc
import importlib
import io
import json
import os
import pkgutil  # noqa: F401  runpy imports it
import posix
import resource
import runpy
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
import types


def preload(kind):
    """Import what the forks need, and compile the rules of redaction, which takes 35 ms."""
    globals()[f"preload_{kind}"]()
    if "hivepipe.redact" in sys.modules:
        sys.modules["hivepipe.redact"].built_in().redact_text("password")
    assert len(os.listdir("/proc/self/task")) == 1


def preload_commands():
    """Import every command except `hivepipe.cli.main`, which is run as the main module."""
    table = importlib.import_module("hivepipe.cli.command_table")
    for name in sorted({entry.module for entry in table.COMMANDS.values()}):
        importlib.import_module(f"hivepipe.cli.{name}")
    sys.modules.pop("hivepipe.cli.main", None)
    if "hivepipe.doctor.hook_in_use" in sys.modules:  # `doctor` starts each hook, in 0.1 s
        sys.modules["hivepipe.doctor.hook_in_use"]._STARTS = 1
    keep_bundle(sys.modules.get("hivepipe.stack.hook_copy"), "hivepipe.stack.hook_bundle")


def keep_bundle(copy, name):
    """Compile the hooks' bundle (0.1 s) once for all forks, until its sources change."""
    if copy is None:
        return
    sources, make = importlib.import_module(name)._sources, copy.bundle
    made = {sources(): make()}
    copy.bundle = lambda: made.get(sources()) or make()


def preload_workers():
    """Import the modules that a supervisor has imported when it forks its workers."""
    assert importlib.import_module("hivepipe.worker.preload")._imported()


def preload_hooks():
    """Import the hook path, which a hook's script finds by its own path."""
    sys.path.append(sys.argv[3])
    for name in importlib.import_module("hivepipe.stack.hook_bundle").MODULES:
        importlib.import_module(name)
    sys.path.pop()


def preload_runners():
    """Import the modules of a runner and of `after_run` except their main modules."""
    for name in (RUNNER, AFTER_RUN):
        importlib.import_module(name)
        del sys.modules[name]


def preload_supervisor():
    """Import the modules of a supervisor except its main module."""
    importlib.import_module(SUPERVISOR)
    preload_workers()
    del sys.modules[SUPERVISOR]
    keep_loaded()


def preload_asker():
    """Import `asker` with the library for OpenAI; the one for Anthropic is rarely needed."""
    for name in (ASKER, "hivepipe.summaries.over_http", "hivepipe.summaries.by_openai"):
        importlib.import_module(name)
    http = importlib.import_module("httpcore2")
    certificates = http.default_ssl_context()  # each client would load those of all authorities
    http.default_ssl_context = lambda *_, **__: certificates
    keep_loaded()


def keep_loaded():
    """Watch the folders of the imported modules, and exempt their objects from collections."""
    LOADED.update(loaded())
    gc.collect()
    gc.freeze()


def loaded():
    """Return the state of the folders of imported modules, to detect replaced code.

    To look at all 535 files before each fork would cost 2 ms.
    """
    files = [module.__file__ for name, module in sys.modules.items() if is_ours(name, module)]
    folders = {os.path.dirname(file) for file in files}
    return {name: state_of(name) for name in (*folders, sysconfig.get_path("purelib"))}


def is_ours(name, module):
    return name.partition(".")[0] == "hivepipe" and getattr(module, "__file__", None)


def state_of(name):
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns


def read_line(descriptor):
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(descriptor, 1 << 16)
        if not part:
            sys.exit(0)
        data += part
    return json.loads(data)


def serve(control):
    """Fork for each request; return the request in the fork.

    The server ends after its last fork, when the control socket is closed.
    """
    poll, running = select.poll(), {control.fileno(): None}
    poll.register(control, select.POLLIN)
    while running:
        for ready, _ in poll.poll():
            if ready != control.fileno():
                poll.unregister(ready)
                report(ready, *running.pop(ready))
                continue
            data, descriptors, _, _ = socket.recv_fds(control, 1, 8)
            if not data:
                poll.unregister(control)
                del running[control.fileno()]
                continue
            theirs, reply = [*descriptors[:3], *descriptors[4:]], descriptors[3]
            asked = read_line(reply)
            if starts_supervisor(asked) and "supervisor" not in sys.modules and is_same():
                preload_supervisor()
            if asks_model(asked) and ASKER not in sys.modules and is_same():
                preload_asker()
            pid = os.fork() if is_same() else None
            if pid == 0:
                install_descriptors(control, theirs)
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
    return KIND == "commands" and asked["words"][:1] in (["up"], ["restart"], ["move-home"])


def fork_after_run():
    """Have this runner call `after_run` in its own process, instead of executing it."""

    def execute(path, words):
        if AFTER_RUN not in words:
            execv(path, words)
        sys.argv = ["-m", *words[words.index(AFTER_RUN) + 1 :]]
        sys.orig_argv = words
        show(45, words)
        runpy._run_module_as_main(AFTER_RUN)
        sys.exit()

    execv, os.execv = os.execv, execute


def asks_model(asked):
    """Return whether the process may fork for `asker`; a test prevents it by a variable."""
    words = asked["words"]
    is_command = words[:2] == ["summaries", "run"] and "--file" in words
    is_worker = KIND == "workers" and any(each.endswith("/llm.py") for each in words)
    return (is_command or is_worker) and "EXECUTE_ASKER" not in asked["env"]


def is_same():
    """Return whether no file of the code was replaced since its import."""
    return all(state_of(name) == found for name, found in LOADED.items())


def report(watched, pid, reply):
    answer(reply, os.waitpid(pid, 0)[1])
    os.close(watched)
    os.close(reply)


def answer(reply, number):
    try:
        os.write(reply, b"%d\n" % number)
    except OSError:  # the client has ended
        pass


def install_descriptors(control, theirs):
    """Install the descriptors of the request as those of the process.

    None overwrites a later one: the received numbers ascend, and begin with 3 or a higher one.
    """
    for number, each in enumerate(theirs):
        os.dup2(each, number)
    control.detach()
    os.closerange(len(theirs), 1 << 12)


def fork_supervisor():
    """Fork; return False in the command, and True in the fork once it is started."""
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
    """Start the waiting fork in place of `subprocess.Popen`; execute any further supervisor."""
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
        supervisor.recv(1)  # The supervisor closes this when it is ready.
    return None


def await_start(command):
    data, (*_lock,), _, _ = socket.recv_fds(command, 1, 1)
    if not data:  # the command has ended
        os._exit(0)
    asked = read_line(command.fileno())
    os.setsid()
    prepare(asked, SUPERVISOR)


def fork_askers():
    """Have this process fork for `asker`, which is a child of `subprocess.Popen` as usual."""

    def popen(words, **how):
        if words[-1] == ASKER:
            how |= {"preexec_fn": functools.partial(ask, how["env"]), "restore_signals": False}
        return subprocess.Popen(words, **how)

    programs = importlib.import_module("hivepipe.programs")
    programs.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": popen})


def ask(env):
    """Become the process of `asker`; never return, so that nothing is executed."""
    os.closerange(3, 1 << 12)  # Popen waits for the end of a pipe.
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    texts = {os.fsdecode(name): os.fsdecode(text) for name, text in env.items()}
    prepare({"words": [], "env": texts, "cwd": "/", "umask": os.umask(0), "limits": []}, ASKER)
    # What these objects have buffered belongs to the other process.
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    try:
        sys.modules[ASKER].main()  # ends the process, except after an error
    finally:
        traceback.print_exc()
        os._exit(1)


def prepare(asked, module):
    """Set folder, umask, limits, environment and arguments of the request."""
    os.chdir(asked["cwd"])
    os.umask(asked["umask"])
    for each, limits in asked["limits"]:
        resource.setrlimit(each, limits)
    wanted = {**asked["env"], **COERCED}
    words = asked["words"]
    os.environ.clear()
    os.environ.update(wanted)
    posix.environ.clear()  # It may be the object in os.environ, or a copy.
    posix.environ.update({os.fsencode(name): os.fsencode(text) for name, text in wanted.items()})
    time.tzset()
    flags = ["-m", module] if module else ["-S"] if KIND == "hooks" else []
    sys.orig_argv = [sys.executable, "-I", *flags, *words]
    sys.argv = ["-m", *words] if module else words
    if module != COMMAND:  # The search for processes of a home reads this command line.
        show(45, sys.orig_argv)
        show(47, [f"{name}={text}" for name, text in asked["env"].items()])


def show(field, texts):
    """Overwrite the memory of the command line or the environment, found in /proc/self/stat."""
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    begin, end = map(int, fields[field : field + 2])
    data = "\0".join(texts).encode("utf-8", "surrogateescape")
    assert len(data) < end - begin
    ctypes.memmove(begin, data.ljust(end - begin, b"\0"), end - begin)


def end(code):
    """End like the interpreter, but leave the freeing of modules to the kernel.

    That takes the interpreter two thirds of a fork's time. Return, so that the interpreter does it,
    if a file is open or the output cannot be flushed.
    """
    if isinstance(code, int | None):
        threading._shutdown()
        atexit._run_exitfuncs()
        if is_flushed() and all(map(is_closed, gc.get_objects())):  # without frozen objects
            os._exit((code or 0) & 0xFF)
    gc.unfreeze()  # Otherwise objects of global names would not be closed.


def is_flushed():
    """Flush the output; return whether that succeeded."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True


def is_closed(made):
    """Close a database; return whether the end of the process closes this object.

    Only the interpreter writes what a file buffers. The kernel closes sockets.
    """
    if isinstance(made, sqlite3.Connection):
        try:
            made.close()
        except sqlite3.Error:  # another thread made it
            return False
    if isinstance(made, io.BytesIO | io.StringIO):
        return True
    # The class in C, because io.IOBase would check subclasses
    return not isinstance(made, io.IOBase.__base__) or made.closed


COMMAND, SUPERVISOR = "hivepipe.cli.main", "supervisor.supervisord"
ASKER = "hivepipe.summaries.asker"
RUNNER, AFTER_RUN = "hivepipe.orchestrator.runner", "hivepipe.orchestrator.after_run"
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
KIND = sys.argv[2]
del os.environ["ROOM"]
COERCED = dict(os.environ)  # The environment had only ROOM, so the rest is set by Python.
preload(KIND)
LOADED = {}
keep_loaded()
MODULE = {"commands": COMMAND, "runners": RUNNER}.get(KIND)
ASKED = serve(socket.socket(fileno=int(sys.argv[1])))
if starts_supervisor(ASKED) and fork_supervisor():
    MODULE = SUPERVISOR
else:
    prepare(ASKED, MODULE)
    if asks_model(ASKED):
        fork_askers()
    if MODULE == RUNNER:
        os.setsid()
        fork_after_run()
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
