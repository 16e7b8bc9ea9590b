"""Inside supervisord: import the workers once, and run each in a fork instead of a new Python.

Forks share the memory of the imported modules, and start at once. supervisord loads this module as
an `rpcinterface`, its extension point. For each program supervisord forks a child, which calls
`options.execve`. This module replaces `execve` with a function that runs hivepipe's scripts
directly in the child. If another version is installed, or the system is not Linux, the program is
executed as usual.
"""

import ctypes
import gc
import importlib
import os
import runpy
import signal
import sys
import traceback
from _signal import getsignal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import PurePath
from types import ModuleType
from typing import Any, NoReturn

from hivepipe import redact
from hivepipe.files.memory import release_memory
from hivepipe.home import read_small
from hivepipe.stack.installed import installed
from hivepipe.stack.processes import PROCESSES, script_path

USUAL_OPTIONS = "-I"  # a program with other options is small, and would be larger as a fork
WORKERS = ("scheduler", "slow_worker", "writer")
_ADDRESSES = slice(45, 47)  # arg_start and arg_end in /proc/self/stat, counted after the name


def make(supervisord: Any, **_config: str) -> object:
    """Import the workers; supervisord then runs hivepipe's scripts in the processes it forks."""
    if sys.platform == "linux" and _imported():
        options = supervisord.options
        options.fork = fork
        options.execve = Runner(options.execve).execute
    return object()  # the plugin has no methods to call


def _imported() -> bool:
    """Import the modules of the workers; return False on an error, which the workers will log."""
    gc.disable()  # a collection would find nothing, and takes a tenth of the time
    stand_ins = _stand_ins()
    sys.modules.update(stand_ins)
    try:
        for name in WORKERS:
            importlib.import_module(f"hivepipe.worker.{name}")
        importlib.import_module("hivepipe.operations.declared").load(None, "slow")
        # Every worker logs. Rules compiled here are shared; in each worker they would take 4 MB.
        redact.built_in().redact_text("scheduler 1 is active: /a/b.py, 2026-01-02 03:04:05.678")
    except Exception:  # noqa: BLE001  a damaged installation may raise any error
        return False
    finally:
        for name, stand_in in stand_ins.items():  # a worker for language models may need them
            if sys.modules.get(name, name) is stand_in:
                _remove(name)
        gc.enable()
    release_memory()  # forks would copy pages to reuse free bytes in them
    gc.freeze()  # a collection would write to all objects, and so copy their pages
    return True


def _stand_ins() -> dict[str, Any]:
    """Return entries of sys.modules that keep libraries from loading 3 MB which nothing uses.

    Without the modules that are None, redis-py does not measure, and msgspec uses `typing`.
    """
    redis = find_spec("redis")
    folders = redis.submodule_search_locations if redis else None
    deferred = _Deferred("redis.asyncio")
    deferred.__path__ = [f"{folder}/asyncio" for folder in folders or ()]
    found = {"opentelemetry": None, "typing_extensions": None, deferred.__name__: deferred}
    return {name: stand_in for name, stand_in in found.items() if name not in sys.modules}


def _remove(stand_in: str) -> None:
    """Remove a stand-in and its submodules, which would not be attributes of the real package."""
    for name in [*sys.modules]:
        if name == stand_in or name.startswith(f"{stand_in}."):
            del sys.modules[name]


class _Deferred(ModuleType):
    """A package that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            _remove(self.__name__)
        return getattr(importlib.import_module(self.__name__), name)


def fork() -> int:
    """Fork without the parent's signal handlers, which would lose a signal in the child."""
    from hivepipe.worker.own_process import stop_signals_blocked  # noqa: PLC0415  see `_imported`

    with stop_signals_blocked():
        pid = os.fork()
        if not pid:
            _reset_signals()
    return pid


class Runner:
    """The replacement of supervisord's `execve`."""

    def __init__(self, execve: Callable[[str, list[str], dict[str, str]], object]) -> None:
        """Set up; `execve` runs programs that are not scripts of hivepipe."""
        self._execve = execve
        self._version = installed()
        usual = (entry for entry in PROCESSES if entry.options == USUAL_OPTIONS)
        self._scripts = {str(script_path(entry)) for entry in usual}

    def execute(self, filename: str, words: list[str], environ: dict[str, str]) -> None:
        """Run the command line `words` in the child process that supervisord has forked."""
        if words[-1] in self._scripts and installed() == self._version:
            run_script(words, environ)
        self._execve(filename, words, environ)


def run_script(words: list[str], environ: dict[str, str]) -> NoReturn:
    """Run `python -I <script>` in this process, and end it with the script's exit code."""
    # supervisord has closed the parent's files. Without this, the collection of one of the parent's
    # objects could close a descriptor that is now in use for another file.
    gc.freeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()  # noqa: TID251  the environment becomes the one that `execve` would set
    os.environ.update(environ)  # noqa: TID251
    _set_command_line(words)
    sys.argv = words[-1:]
    code = 1
    try:
        code = _exit_code_of(words[-1])
    finally:  # even if a supervisor that was killed no longer reads the output
        os._exit(code)


def _reset_signals() -> None:
    """Reset the parent's signal handlers, as `execve` does. A signal then ends the process."""
    for number in range(1, signal.NSIG):
        if callable(getsignal(number)):  # `signal.getsignal` would make an enum of each
            signal.signal(number, signal.SIG_DFL)


def _set_command_line(words: list[str]) -> None:
    """Overwrite the parent's command line, which `ps` and `stack.stack_processes` read.

    The script is shortened to `workers/<name>`, so that it fits into supervisord's command line.
    """
    fields = read_small("/proc/self/stat").rpartition(")")[2].split()
    begin, end = map(int, fields[_ADDRESSES])
    script = PurePath(words[-1])
    line = os.fsencode("\0".join([*words[:-1], f"{script.parent.name}/{script.name}"]))
    ctypes.memmove(begin, line[: end - begin - 1].ljust(end - begin, b"\0"), end - begin)


def _exit_code_of(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  the interpreter would print any error, too
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
