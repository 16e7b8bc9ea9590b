"""The native hook, built with sanitizers, keeps each event in random surroundings.

A round has a registration record, a home, an environment, an event, a way to deliver it, and a
program behind the socket, each good or odd. Afterwards the event is in that program, in the spool
or in the Python hook, which is replaced by a script that stores its stdin. The rounds are the same
in every run; HIVEPIPE_TEST_ROUNDS multiplies them by a hundred.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hivepipe.hook.frame import Frame
from tests import payloads
from tests.conftest import PATIENCE_SECS, ROOT, Home, Server
from tests.faults.harness import random_of
from tests.native import BUILT, HookHome, snake
from tests.payloads import encoded
from tests.rounds import ASKED_ROUNDS

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")

ROUNDS = 100 * ASKED_ROUNDS or 120
CHECKED = ("-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all")
# ziglang has no address sanitizer.
COMPILERS = (
    ("gcc", "-fsanitize=address,undefined"),
    ("clang", "-fsanitize=address,undefined"),
    (sys.executable, "-m", "ziglang", "cc", "-fsanitize=undefined"),
)
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
# Replaces the Python hook. A start of the stack stores nothing.
PYTHON_HOOK = '#!/bin/sh\n[ "$1" = start_stack ] || cat > "{folder}/$$" 2> /dev/null\nexit 0\n'
NOISE_OF_SHELL = b"sh: 0: getcwd() failed: No such file or directory\n"
DISABLED = ("1", "TRUE", "yes", "On")
MOST_TEXT = 70_000
STDIN_SECS = 0.6  # longer than the hook waits

NAMES = (
    *("AGENT_ID", "CI", "CLAUDE_CODE_REMOTE", "HIVEPIPE_AGENT_ID", "HIVEPIPE_DISABLED", "HOME"),
    *("HIVEPIPE_HOME", "HIVEPIPE_HOOK", "HIVEPIPE_NESTED", "HIVEPIPE_SESSION_ID", "USE_QUEUE"),
    *("HIVEPIPE_TASK_ID", "CLAUDE_ENV_FILE", "XDG_STATE_HOME", "HIVEPIPE_USE_QUEUE"),
)
GOOD = [(snake(event["hook_event_name"]), encoded(event)) for event in payloads.ALL.values()]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the hook with the most sanitizers that this machine has."""
    path = tmp_path_factory.mktemp("native") / "hook"
    for words in COMPILERS:
        if shutil.which(words[0]):
            command = [*words, *CHECKED, "-o", str(path), str(ROOT / "native" / "hook.c")]
            done = subprocess.run(command, capture_output=True, text=True)
            assert b"hook.c:" not in done.stderr.encode(), done.stderr
            if done.returncode == 0:
                return path
    pytest.fail("no compiler built the hook")


@dataclass
class Round:
    """One event and its surroundings."""

    words: list[str]
    data: bytes
    env: dict[str, str]
    record: bytes
    delivery: str
    reply: list[bytes]
    pause: float = 0.0
    clutter: list[str] = field(default_factory=list)

    @property
    def is_off(self) -> bool:
        names = ("HIVEPIPE_DISABLED", "HIVEPIPE_NESTED")
        return b"state=off" in self.record or any(self.env.get(name) in DISABLED for name in names)

    @property
    def is_acknowledged(self) -> bool:
        """Whether the program behind the socket acknowledges the event."""
        said = b"".join(self.reply)
        return "no-socket" not in self.clutter and len(said) >= 5 and said[:1] == b"A"

    @property
    def is_whole(self) -> bool:
        """Whether the stored event must be complete except for white space."""
        if self.delivery in ("none", "closed", "folder"):
            return False
        try:
            return isinstance(json.loads(self.data), dict)
        except (ValueError, RecursionError):
            return False


# ---- the parts of a round
def some_text(chosen: random.Random) -> str:
    """Return a text for an environment variable, usually a short one."""
    size = chosen.choice((0, 1, 5, 40, 300, 4095, 4096, 5000, MOST_TEXT))
    alphabet = chosen.choice(("a", "/", "../", "\udcff\udc80", "a=b\n", "a b\t\"'\\"))
    return (alphabet * (size // len(alphabet) + 1))[:size]


def some_folder(chosen: random.Random, hook_home: HookHome) -> str:
    project = str(hook_home.home.project)
    odd = ("", ".", "shop", f"{project}/", f"{project}/src/../..", "/" * 5000, "/nowhere/at/all")
    is_good = chosen.random() < 0.75
    return project if is_good else chosen.choice((*odd, project + some_text(chosen)))


def some_record(chosen: random.Random, hook_home: HookHome) -> bytes:
    """Return a record, usually a good one; its home is always that of the test."""
    lines = [
        f"home={hook_home.home.path}".encode(),
        f"socket={hook_home.runtime}/redis.sock".encode(),
        f"runtime={hook_home.runtime}".encode(),
        b"python=/bin/true",
        b"state=" + chosen.choice((*[b"on"] * 12, b"down", b"off", b"", b"o" * 99)),
    ]
    kind = chosen.randrange(20)
    if kind == 0:
        lines.pop(chosen.randrange(len(lines)))
    if kind == 1:
        chosen.shuffle(lines)
    if kind == 2:
        at = chosen.randrange(1, len(lines))
        lines[at] += chosen.randbytes(chosen.choice((1, 100, 5000))).replace(b"state=off", b"")
    if kind == 3:
        lines.insert(0, b"x" * chosen.choice((4000, 4096, 10_000)))
    if kind == 4:
        return chosen.randbytes(chosen.choice((0, 1, 50, 4096)))
    if kind == 5:
        return b"\n".join(lines)[: chosen.randrange(200)]
    return b"\n".join(lines) + b"\n"


def some_event(chosen: random.Random) -> tuple[str, bytes]:
    """Return name and bytes of an event, good in half of all cases."""
    name, data = chosen.choice(GOOD)
    kind = chosen.randrange(12)
    if kind == 0:
        data = data[: chosen.randrange(len(data))]
    if kind == 1:
        at = chosen.randrange(len(data))
        data = data[:at] + chosen.randbytes(chosen.choice((1, 3, 200))) + data[at:]
    if kind == 2:
        data = chosen.choice((b"", b" ", b"{", b"}", b'"', b"\\", b"{}", b"{}{}", b"\0" * 300))
    if kind == 3:
        size = chosen.choice((4096, 65_535, 200_000, (1 << 20) - len(data), 1 << 20, 1_300_000))
        data = data[:-1] + b',"x":"' + b"y" * size + b'"}'
    if kind == 4:
        data = chosen.randbytes(chosen.choice((10, 1000, 100_000)))
    if kind == 5:
        data += chosen.choice((b"\n", b" \r\n\t", b"x", data))
    return name, data


def some_answer(chosen: random.Random) -> list[bytes]:
    """Return the pieces that the program behind the socket sends."""
    answer = chosen.choice((b"", b"{}", b'{"a":1}\n' * 300, b"x" * (1 << 20), b"x" * 1_200_000))
    good = b"A" + len(answer).to_bytes(4, "little") + answer
    kind = chosen.randrange(9)
    if kind == 0:
        return [good[: chosen.randrange(min(len(good), 40))]]
    if kind == 1:
        return [chosen.choice((b"B\0\0\0\0", b"\0" * 9, b"HTTP/1.1 400 Bad\r\n", b"a\0\0\0\0"))]
    if kind == 2:
        return [b"A" + chosen.randbytes(4) + chosen.randbytes(chosen.choice((0, 3, 5000)))]
    if kind == 3:
        return [good[at : at + 1] for at in range(min(len(good), 60))]
    if kind == 4:
        return [b"Z" * 3_000_000]
    if kind == 5:
        return [good, b"more" * 1000]
    return [good]


def some_environment(chosen: random.Random, hook_home: HookHome) -> dict[str, str]:
    env = {"CLAUDE_PROJECT_DIR": some_folder(chosen, hook_home)}
    for name in chosen.sample(NAMES, chosen.choice((0, 0, 0, 1, 3))):
        env[name] = chosen.choice((some_text(chosen), *DISABLED, "python", "x"))
    if chosen.random() < 0.1:
        env["HIVEPIPE_HOME"] = chosen.choice((str(hook_home.home.path), some_text(chosen)))
    return env


CLUTTER = (
    *("spool", "no-home", "open-runtime", "no-runtime"),
    *("starting", "settings", "cancelled", "redis-is-file", "socket-is-file", "worktree", "gone"),
)
DELIVERIES = (*["pipe"] * 5, "pieces", "pieces", "file", "file", "none", "closed", "folder")


def some_round(chosen: random.Random, hook_home: HookHome) -> Round:
    name, data = some_event(chosen)
    words = [name] if chosen.random() < 0.9 else []
    if chosen.random() < 0.1:
        words = [some_text(chosen) for _ in range(chosen.choice((1, 2, 20)))]
    made = Round(
        words=words,
        data=data,
        env=some_environment(chosen, hook_home),
        record=some_record(chosen, hook_home),
        delivery=chosen.choice(DELIVERIES),
        reply=some_answer(chosen),
        clutter=chosen.sample(CLUTTER, chosen.choice((0, 0, 1, 2))),
    )
    if chosen.random() < 0.4:
        made.clutter.append("no-socket")
    if chosen.random() < 0.03:
        made.delivery = "open"
    if chosen.random() < 0.03:
        made.pause = 0.1
    return made


def clutter(hook_home: HookHome, made: Round, chosen: random.Random) -> None:
    """Put files and folders where the hook does not expect them."""
    home, runtime = hook_home.home.path, hook_home.runtime
    noise = chosen.choice((b"", chosen.randbytes(9000), b"9" * 5000, b"HIVEPIPE_AGENT_ID"))
    starting = chosen.choice((b"", b"9e99 7 x", b"-1 -1", b"0 0", b"1" * 700, noise))
    inner = hook_home.home.project / ".git/worktrees" / ("w" * chosen.choice((1, 200)))
    odd_files: list[Callable[[Path], object]] = [
        os.mkfifo,
        lambda path: path.write_bytes(noise),
        lambda path: path.symlink_to("nowhere"),
    ]
    actions: dict[str, Callable[[], object]] = {
        "spool": lambda: chosen.choice(odd_files)(home / "spool"),
        "no-home": lambda: home.rename(hook_home.home.root / "away"),
        "open-runtime": lambda: runtime.chmod(0o755),
        "no-runtime": lambda: runtime.rename(hook_home.home.root / "away-runtime"),
        "starting": lambda: (runtime / "starting").write_bytes(starting),
        "settings": lambda: (home / "hook-settings.json").write_bytes(noise),
        "cancelled": lambda: (home / "tasks/cancelled/t-1").mkdir(parents=True),
        "redis-is-file": lambda: (runtime / "redis.sock").write_bytes(noise),
        "socket-is-file": lambda: (runtime / "intake.sock").write_bytes(noise),
        "worktree": lambda: (hook_home.home.project / ".git").write_bytes(
            chosen.choice((b"gitdir: " + os.fsencode(inner), b"gitdir: " + noise, noise))
        ),
        "gone": lambda: None,  # of the working directory: see `_run`
        "no-socket": lambda: None,
    }
    # Actions that rename a folder come last.
    for name in sorted(made.clutter, key=lambda name: name.startswith("no-")):
        actions[name]()


# ---- a round
class Fuzzer:
    """Runs rounds in its own home."""

    def __init__(self, hook_home: HookHome, program: Path) -> None:
        self.hook_home = hook_home
        self.taken = hook_home.home.root / "taken"
        self.away = [hook_home.home.root / "away", hook_home.home.root / "away-runtime"]
        shutil.copy(program, hook_home.native)
        hook_home.python.write_text(PYTHON_HOOK.format(folder=self.taken))
        self.outcomes: Counter[str] = Counter()

    def play(self, made: Round, chosen: random.Random) -> None:
        self._reset(made)
        clutter(self.hook_home, made, chosen)
        with self._fake_intake(made):
            out, errors, code = self._run(made, chosen)
        assert (code, errors) == (0, b""), errors[-3000:]
        kept = self._kept()
        self.outcomes[kept[0][0] if kept else "taken" if made.is_acknowledged else "nothing"] += 1
        assert len(kept) <= 1
        if not kept:
            assert made.is_off or made.is_acknowledged, "the event is lost"
        for _, data in kept:
            assert made.data.startswith(data)
            assert not made.is_whole or data.strip() == made.data.strip()
        if not kept and out:
            assert b"".join(made.reply)[5:].startswith(out)

    def _reset(self, made: Round) -> None:
        hook_home = self.hook_home
        folders = (hook_home.home.path, hook_home.runtime, self.taken)
        for path in (*folders, hook_home.home.project, *self.away):
            shutil.rmtree(path, ignore_errors=True)
        for path in folders:
            path.mkdir(mode=0o700)
        (hook_home.home.project / "src").mkdir(parents=True)
        for record in (hook_home.home.root / "state/hivepipe/projects").iterdir():
            record.write_bytes(made.record)

    def _fake_intake(self, made: Round) -> "FakeIntake":
        is_there = not {"no-socket", "socket-is-file", "no-runtime"} & set(made.clutter)
        return FakeIntake(self.hook_home.runtime / "intake.sock" if is_there else None, made)

    def _run(self, made: Round, chosen: random.Random) -> tuple[bytes, bytes, int]:
        script = {"closed": 'exec "$@" <&-', "folder": 'exec "$@" < /'}.get(
            made.delivery, 'exec "$@"'
        )
        if "gone" in made.clutter:
            script = f"mkdir gone && cd gone && rmdir ../gone && {script}"
        command = ["sh", "-c", script, "sh", str(self.hook_home.native), *made.words]
        source = self.hook_home.home.root / "event"
        source.write_bytes(made.data if made.delivery == "file" else b"")
        with source.open("rb") as file:
            process = subprocess.Popen(
                command,
                stdin=file if made.delivery in ("file", "none") else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**self.hook_home.env, **OPTIONS, **made.env},
                cwd=self.hook_home.home.project,
            )
        deliver(process, made, chosen)
        process.stdin = None
        out, errors = process.communicate(timeout=PATIENCE_SECS)
        return out, errors.replace(NOISE_OF_SHELL, b""), process.returncode

    def _kept(self) -> list[tuple[str, bytes]]:
        """Return the events in the spool and in the Python hook."""
        spool = [path for path in self.hook_home.home.root.rglob("*.raw") if path.is_file()]
        spooled = [("spooled", Frame(path.read_bytes()).event.data) for path in spool]
        return [*spooled, *(("python", path.read_bytes()) for path in self.taken.iterdir())]


def deliver(process: "subprocess.Popen[bytes]", made: Round, chosen: random.Random) -> None:
    """Write the event to the hook's stdin, if that is a pipe, and close it."""
    if process.stdin is None:
        return
    pipe, data = process.stdin, made.data
    if made.delivery in ("closed", "folder"):
        data = b""
    try:
        if made.delivery == "pieces":
            cut = chosen.randrange(len(data) + 1)
            pipe.write(data[:cut])
            pipe.flush()
            time.sleep(0.002)
            data = data[cut:]
        pipe.write(data)
        pipe.flush()
        if made.delivery == "open":
            process.wait(STDIN_SECS)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        pass
    try:
        pipe.close()
    except BrokenPipeError:
        pass


class FakeIntake:
    """A program in place of the intake, for one connection."""

    def __init__(self, path: Path | None, made: Round) -> None:
        self.path = path
        self.made = made

    def __enter__(self) -> None:
        if not self.path:
            return
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def __exit__(self, *_error: object) -> None:
        if self.path:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.thread.join()
            self.listener.close()

    def _serve(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        with connection:
            try:
                self._talk(connection)
            except OSError:
                return

    def _talk(self, connection: socket.socket) -> None:
        if len(self.made.reply) < 2:
            data = whole_frame(connection)
            if data:
                Frame(data)
        for piece in self.made.reply:
            time.sleep(self.made.pause)
            connection.sendall(piece)


def whole_frame(connection: socket.socket) -> bytes:
    """Read a whole frame; return b"" if the hook gave up."""
    data = b""
    while len(data) < 12 or len(data) < 12 + sum(
        int.from_bytes(data[at : at + 4], "little") for at in (4, 8)
    ):
        chunk = connection.recv(1 << 16)
        if not chunk:
            return b""
        data += chunk
    return data


@pytest.fixture
def fuzzer(
    private_home: Home, new_server: Callable[[Home], Server], checked: Path
) -> Iterator[Fuzzer]:
    hook_home = HookHome(private_home, new_server)
    yield Fuzzer(hook_home, checked)
    hook_home.end()


def test_the_hook_keeps_each_event_in_any_surroundings(fuzzer: Fuzzer) -> None:
    for number in range(ROUNDS):
        chosen = random_of(f"native {number}")
        made = some_round(chosen, fuzzer.hook_home)
        try:
            fuzzer.play(made, chosen)
        except AssertionError as error:
            shown = {name: repr(value)[:300] for name, value in vars(made).items()}
            raise AssertionError(f"round {number}: {error}\n{shown}") from error
    assert min(fuzzer.outcomes[kind] for kind in ("spooled", "python", "taken")) > ROUNDS // 20
