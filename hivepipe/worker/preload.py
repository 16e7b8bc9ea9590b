"""Inside supervisord: import the workers once, and fork them instead of executing Python anew.

Forked processes share the memory of what was imported, and start at once. supervisord loads this as
an `rpcinterface`, its extension point. In the child that it forked for a program it calls
`options.execve`: a script of ours runs there as it is. With another version installed, or on a
system other than Linux, the program is executed as before.
"""

import ctypes
import gc
import importlib
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NoReturn

from hivepipe import redact
from hivepipe.home import read_small
from hivepipe.stack.installed import installed
from hivepipe.stack.processes import PROCESSES, script_path

USUAL_OPTIONS = "-I"  # a program with others is small: it would be larger as a fork
_UNUSED = "opentelemetry"
WORKERS = ("scheduler", "slow_worker", "writer")
_ADDRESSES = slice(45, 47)  # in /proc/self/stat, behind the name: where the command line lies


class NoCalls:
    """An empty RPC namespace."""


def make(supervisord: Any, **_config: str) -> NoCalls:
    """Import the workers, and have supervisord run our scripts in the processes that it forks."""
    if sys.platform == "linux" and _imported():
        options = supervisord.options
        options.execve = Runner(options.execve).execute
    return NoCalls()


def _imported() -> bool:
    """Import what the workers need; False: they will say in their own logs why they cannot."""
    # redis-py imports it where it is installed, in 1.6 MB, for measurements that nobody starts.
    sys.modules[_UNUSED] = None  # type: ignore[assignment]
    try:
        for name in WORKERS:
            importlib.import_module(f"hivepipe.worker.{name}")
        slow = importlib.import_module("hivepipe.operations.slow")
        slow.load_writes()
        slow.load_slow("slow")
        # Every worker logs: compiled and first used later, the rules would take 4 MB in each.
        redact.built_in().redact_text("scheduler 1 is active: /a/b.py, 2026-01-02 03:04:05.678")
    except Exception:  # noqa: BLE001  whatever a damaged installation raises
        return False
    finally:
        del sys.modules[_UNUSED]  # a worker for language models may need it
    return True


class Runner:
    """Takes the place of `execve`."""

    def __init__(self, execve: Callable[[str, list[str], dict[str, str]], object]) -> None:
        """`execve` executes other programs."""
        self._execve = execve
        self._version = installed()
        usual = (entry for entry in PROCESSES if entry.options == USUAL_OPTIONS)
        self._scripts = {str(script_path(entry)) for entry in usual}

    def execute(self, filename: str, words: list[str], environ: dict[str, str]) -> None:
        """Become the program of this command line; called in a forked child."""
        if words[-1] in self._scripts and installed() == self._version:
            run_script(words, environ)
        self._execve(filename, words, environ)


def run_script(words: list[str], environ: dict[str, str]) -> NoReturn:
    """Run `python -I <script>` in this process, and end it with the script's exit code."""
    # The parent's files were closed. None of its objects may close a number that is used again.
    gc.freeze()
    _reset_signals()
    os.environ.clear()  # noqa: TID251  the environment that `execve` would give
    os.environ.update(environ)  # noqa: TID251
    _show(words)
    sys.argv = words[-1:]
    os._exit(_exit_code_of(words[-1]))


def _reset_signals() -> None:
    """Undo the parent's handlers, as `execve` does."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _show(words: list[str]) -> None:
    """Overwrite the parent's command line, which `ps` and `stack.members` read.

    The script is shortened to `workers/<name>`, which fits into the place of supervisord's own.
    """
    fields = read_small("/proc/self/stat").rpartition(")")[2].split()
    begin, end = map(int, fields[_ADDRESSES])
    script = PurePath(words[-1])
    line = "\0".join([*words[:-1], f"{script.parent.name}/{script.name}"]).encode()
    ctypes.memmove(begin, line[: end - begin - 1].ljust(end - begin, b"\0"), end - begin)


def _exit_code_of(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  as the interpreter does: into the program's log
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
