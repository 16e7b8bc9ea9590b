"""Run `hivepipe`, its workers, hooks and runners in forks of a process that imported them once.

A start of Python with a command's imports takes 0.1 to 0.4 s of processor time, that of a hook
0.02 s, and the tests start thousands. A fork begins with the arguments, environment, folder, umask,
descriptors and user of an executed process. It ends like an interpreter.

Some commands are executed instead: with a locale or a Python variable in the environment, with a
large input, or with another PATH. After a file of the code was replaced, it is imported again.
TEST_EXECUTE=1 executes everything.
"""

import atexit
import json
import os
import posix
import resource
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

EXECUTES = b"TEST_EXECUTE" in posix.environ
PIPE_BYTES = 1 << 16  # capacity of a pipe
OF_THE_START = ("LC_", "LANG", "PYTHON")  # variables that Python reads at its start
IGNORED = "PYTHONWARNINGS"  # Python ignores it with -I. It is for programs that a command starts.
Limits = Sequence[tuple[int, tuple[int, int]]]  # arguments of `resource.setrlimit`
PROGRAM = Path(__file__).with_name("forked_server.py")
ROOT = str(PROGRAM.parents[1])


class Forked:
    """A forked process with the methods of `subprocess.Popen` that `Process` of the tests uses."""

    def __init__(self, pid: int, reply: socket.socket) -> None:
        """Take the pid and the socket on which the exit status arrives."""
        self.pid, self._reply = pid, reply
        self.returncode: int | None = None
        try:
            self._ended = os.pidfd_open(pid)
        except ProcessLookupError:
            self._take_status()

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._code_within(0)

    def wait(self, timeout: float) -> int:
        if self._code_within(timeout) is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _code_within(self, secs: float) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ended, select.POLLIN)
            if poll.poll(secs * 1000):
                os.close(self._ended)
                self._take_status()
        return self.returncode

    def _take_status(self) -> None:
        with self._reply, self._reply.makefile("rb") as file:
            self.returncode = os.waitstatus_to_exitcode(int(file.readline()))


class Forker:
    """Runs `hivepipe` in forks of a server process, which starts with the first command."""

    def __init__(
        self, python: Sequence[str], command: Sequence[str], kind: str = "commands"
    ) -> None:
        """`python` starts Python as the user of the commands; `command` executes a command.

        `kind` is "commands", "workers", "hooks" or "runners": what the server imports.
        """
        self._python, self._command, self._kind = python, command, kind
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        atexit.register(self.end)

    def run(
        self,
        words: Sequence[str],
        data: str,
        env: Mapping[str, str],
        cwd: Path,
        secs: float,
        limits: Limits = (),
    ) -> subprocess.CompletedProcess[str]:
        """Do what `subprocess.run` does with text and pipes."""
        asked = _request(words, env, cwd, limits)
        done = None if _is_of_the_start(data, env) else self._forked(asked, data, secs)
        if done:
            return done
        return subprocess.run(
            [*self._command, *words],
            input=data,
            env=dict(env),
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=secs,
            check=False,
            preexec_fn=partial(_limit, limits) if limits else None,
        )

    def start(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        files: Sequence[Any],
        more: Sequence[int] = (),
    ) -> Forked | None:
        """Start a script with its arguments; return None if it has to be executed.

        `files` are its stdin, stdout and stderr, `more` the descriptors that it gets from 3 on.
        """
        if _is_of_the_start("", env):
            return None
        ours, reply = socket.socketpair()
        with reply:
            given = [*(each.fileno() for each in files), *more]
            theirs: list[Any] = [os.fdopen(os.dup(each), "rb", 0) for each in given]
            theirs.insert(3, reply)
            pid = self._pid_of(_request(words, env, cwd), ours, theirs)
        if pid:
            return Forked(pid, ours)
        ours.close()
        self.end()
        return None

    def end(self) -> None:
        """End the server process; the next command starts another one."""
        if self._control and self._process:
            self._control.close()
            self._process.communicate(timeout=60)
        self._control = self._process = None

    def _forked(
        self, asked: dict[str, Any], data: str, secs: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a command in a fork; return None if the code has changed or cannot be imported."""
        with ExitStack() as stack:
            stdin, *theirs = _pipe(stack)[::-1]
            (stdout, out), (stderr, error) = _pipe(stack), _pipe(stack)
            ours, reply = map(stack.enter_context, socket.socketpair())
            theirs += [out, error, reply]
            pid = self._pid_of(asked, ours, theirs)
            if not pid:
                self.end()
                return None
            with suppress(BrokenPipeError), stdin:  # the process may have ended
                stdin.write(data.encode())
            said = _read((stdout, stderr), pid, secs, asked["words"])
            status = int(ours.makefile("rb").readline())
        return subprocess.CompletedProcess(asked["words"], os.waitstatus_to_exitcode(status), *said)

    def _pid_of(self, asked: object, ours: socket.socket, theirs: list[Any]) -> int:
        """Send a request with its descriptors and return the pid of the fork, or 0."""
        try:
            self._send([each.fileno() for each in theirs])
            for each in theirs:
                each.close()
            ours.sendall(json.dumps(asked).encode() + b"\n")
            return int(_line(ours) or 0)
        except ConnectionError:
            return 0

    def _send(self, descriptors: list[int]) -> None:
        with self._lock:
            if self._control is None:
                self._start()
            assert self._control
            socket.send_fds(self._control, [b"x"], descriptors)

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [*self._python, "-I", "-c", PROGRAM.read_text(), str(number), self._kind, ROOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"ROOM": "." * PIPE_BYTES},
                cwd="/",
                pass_fds=[number],
            )


def _line(connection: socket.socket) -> bytes:
    """Read one line without reading the next one."""
    found = b""
    while not found.endswith(b"\n") and (byte := connection.recv(1)):
        found += byte
    return found


def _request(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, limits: Limits = ()
) -> dict[str, Any]:
    mask = os.umask(0)
    os.umask(mask)
    asked = {"words": [*words], "env": dict(env), "cwd": str(cwd), "umask": mask}
    return {**asked, "limits": [*limits]}


def _limit(limits: Limits) -> None:
    for limit in limits:
        resource.setrlimit(*limit)


def _is_of_the_start(data: str, env: Mapping[str, str]) -> bool:
    """Return whether a fork would differ from an executed process."""
    is_large = len(data) > PIPE_BYTES // 4  # a character has at most four bytes
    names = [name for name in env if name.startswith(OF_THE_START) and name != IGNORED]
    return EXECUTES or is_large or bool(names)


def _pipe(stack: ExitStack) -> list[Any]:
    """Return both ends of a pipe, the reading end first; the stack closes them."""
    reading, writing = os.pipe()
    return [
        stack.enter_context(open(reading, "rb", 0)),
        stack.enter_context(open(writing, "wb", 0)),
    ]


def _read(files: Sequence[Any], pid: int, secs: float, words: Sequence[str]) -> tuple[str, ...]:
    """Read pipes until all writers have closed them; return texts with universal newlines."""
    said = {each.fileno(): bytearray() for each in files}
    poll = select.poll()
    for each in said:
        poll.register(each, select.POLLIN)
    end, left = time.monotonic() + secs, set(said)
    while left:
        ready = poll.poll(max(end - time.monotonic(), 0) * 1000)
        if not ready:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired([*words], secs)
        for each, _ in ready:
            part = os.read(each, PIPE_BYTES)
            said[each] += part
            if not part:
                poll.unregister(each)
                left.discard(each)
    texts = (found.decode() for found in said.values())
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)
