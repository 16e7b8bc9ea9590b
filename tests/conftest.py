"""Fixtures of all tests: a private home, real hooks, a real Redis and real writers.

Every process is ended by its pid.
"""

import gc
import json
import os
import posix
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import redis

from tests import native_fire
from tests.forked import Forked, Forker
from tests.rounds import ASKED_ROUNDS

if TYPE_CHECKING:
    from tests.native import HookHome
    from tests.sandbox import Sandbox

# pytest names this module `conftest`. A second copy would start fork servers of its own.
sys.modules["tests.conftest"] = sys.modules[__name__]

# This has to come before any test module imports them.
pytest.register_assert_rewrite("tests.faults.harness", "tests.real.recorded_sessions")

ROOT = Path(__file__).resolve().parent.parent
NEUTRAL = ""  # the output of a hook without a message
QUEUES = ("high", "medium", "low")
JOBS = """
local found = {}
for _, key in ipairs(redis.call("KEYS", "rq:job:*")) do
  found[#found + 1] = {key, unpack(redis.call("HMGET", key, "status", "description", "origin"))}
end
return found
"""
ALL_QUEUES = (*QUEUES, "slow", "llm")
PATIENCE_SECS = 60.0
SHORTEST_PAUSE_SECS = 0.02
LONGEST_PAUSE_SECS = 0.1
CLI = [sys.executable, "-I", "-m", "hivepipe.cli.main"]
COMMANDS = Forker(CLI[:1], CLI)  # runs CLI in a fork instead of a new Python process
FORKED = (ROOT / "workers", ROOT / "tests/faults")  # WORKERS starts scripts of these folders.
WORKERS = Forker(CLI[:1], (), "workers")  # starts a script of hivepipe in a fork
HOOKS = Forker([*CLI[:1], "-S"], (), "hooks")  # starts a hook in a fork
RUNNERS = Forker(CLI[:1], (), "runners")  # starts a worker's runner in a fork

_FOREIGN_PREFIXES = ("HIVEPIPE_", "HIVE_", "CLAUDE", "RQ_", "REDIS_")
_FOREIGN_NAMES = ("USE_QUEUE", "CHECKPOINT_INTERVAL", "AGENT_ID", "TASK_FILE")


def _remove_product_variables() -> None:
    """Remove variables that would configure hivepipe from `posix.environ` and `os.environ`.

    The product reads the first, its libraries the second.
    """
    environment = os.environ
    for name in list(environment):
        if name.startswith(_FOREIGN_PREFIXES) or name in _FOREIGN_NAMES:
            del environment[name]
    for raw in list(posix.environ):
        if os.fsdecode(raw).startswith(_FOREIGN_PREFIXES) or os.fsdecode(raw) in _FOREIGN_NAMES:
            del posix.environ[raw]


def _restore_sigint() -> None:
    """Restore the handler of SIGINT, because background jobs of a shell ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_remove_product_variables()
_restore_sigint()
gc.set_threshold(20_000)  # an eleventh of the processor time of the tests was garbage collection
# On a shared machine a slow example is no failure.
hypothesis.settings.register_profile("shared", deadline=None)
hypothesis.settings.load_profile("shared")


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    """Restore the umask, because commands that run in the test's process change it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.hookimpl(trylast=True)  # after pytest-randomly
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start long tests first; remove the time limit if the caller chose the repetitions."""
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    items[:] = with_long_tests_first(items, workers)
    for item in items if ASKED_ROUNDS else ():
        item.add_marker(pytest.mark.timeout(0))


def pytest_collection_finish() -> None:
    """Exempt all test modules and items from garbage collection."""
    gc.freeze()


def with_long_tests_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in an order in which each process of xdist begins with its long ones.

    `--dist worksteal` gives each process an equal part of the list.
    """
    long = [item for item in items if item.get_closest_marker("long")]
    short = [item for item in items if not item.get_closest_marker("long")]
    found: list[pytest.Item] = []
    for number in range(workers):
        size = (len(items) - len(found)) // (workers - number)
        mine = long[number::workers]
        room = max(0, size - len(mine))
        found += mine + short[:room]
        del short[:room]
    return found


@pytest.fixture(scope="session", autouse=True)
def _kept_bundle() -> Iterator[None]:
    """Compile the hooks' bundle (0.1 s) once in this process, until its sources change."""
    from hivepipe.stack import hook_bundle, hook_copy  # noqa: PLC0415  in a clean environment

    bundle_of = cache(lambda _sources: hook_bundle.bundle())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(hook_copy, "bundle", lambda: bundle_of(hook_bundle._sources()))
        yield


ENVIRONMENT = posix.environ
IN_CI = b"CI" in ENVIRONMENT
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30
# Database, archives and exports are in the project's work tree, as with `init --in-tree`.
IN_TREE = posix.environ.get(b"TEST_LAYOUT") == b"in-tree"


@pytest.fixture(autouse=True)
def _reset_process_state() -> Iterator[None]:
    """Reset the state that commands leave in this process, and end all intakes."""
    core = resource.getrlimit(resource.RLIMIT_CORE)
    yield
    if resource.getrlimit(resource.RLIMIT_CORE) != core:
        with suppress(ValueError):  # another user may not raise the hard limit
            resource.setrlimit(resource.RLIMIT_CORE, core)
    if "hivepipe.redact" in sys.modules:
        sys.modules["hivepipe.redact"]._in_force.clear()
        sys.modules["hivepipe.redact"]._to_load.clear()
    native_fire.end_all()
    posix.environ = ENVIRONMENT  # two threads that replaced it may have restored each other's


def folder_of_homes() -> str:
    """Return a folder with a short path for homes, because a socket path has at most 103 bytes.

    With TEST_IN_MEMORY it is in memory, where no process waits for a sync, if there is room.
    """
    if b"TEST_IN_MEMORY" in ENVIRONMENT and MEMORY.is_dir():
        found = os.statvfs(MEMORY)
        if found.f_bavail * found.f_frsize > MEMORY_BYTES and not found.f_flag & os.ST_NOEXEC:
            return str(MEMORY)
    return "/tmp"


def short_folder() -> Iterator[Path]:
    """Yield a new folder where homes are. A process that still ends may write there meanwhile."""
    with tempfile.TemporaryDirectory(
        prefix="hp-", dir=folder_of_homes(), ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def until(
    check: Callable[[], Any],
    what: str,
    secs: float = PATIENCE_SECS,
    longest_pause: float = LONGEST_PAUSE_SECS,
) -> Any:
    """Poll until the check returns a true value and return it; fail after a time limit.

    The pause between two checks is at least as long as a check, and grows with the time waited,
    because what it waits for needs processor time. `longest_pause` limits its growth.
    """
    start = time.monotonic()
    while True:
        began = time.monotonic()
        found = check()
        if found:
            return found
        now = time.monotonic()
        if now > start + secs:
            pytest.fail(f"after {secs} s: {what}")
        time.sleep(max(SHORTEST_PAUSE_SECS, now - began, min((now - start) / 20, longest_pause)))


# ---- hooks
def hook_path(event_name: str, hooks: Path = ROOT / "hooks") -> Path:
    """Return the executable that Claude Code runs on an event."""
    name = "".join("_" + c.lower() if c.isupper() else c for c in event_name).lstrip("_")
    return hooks / f"{name}.py"


def hook_answer(
    event_name: str,
    payload: Mapping[str, Any] | bytes,
    env: Mapping[str, str],
    hooks: Path = ROOT / "hooks",
) -> str:
    """Run the real hook on one event and return its answer; it must exit with 0 without errors."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    is_own = hooks == ROOT / "hooks"
    native = native_fire.command(event_name, env) if is_own and native_fire.IS_NATIVE else None
    command = native or [sys.executable, "-I", "-S", str(hook_path(event_name, hooks))]
    # The event is in a file, because with fifty threads a pipe may be filled too late.
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        stdin, out, error = files
        stdin.write(data)
        stdin.seek(0)
        forks = is_own and not native
        made = HOOKS.start(command[3:], env, Path.cwd(), files) if forks else None
        process = made or subprocess.Popen(command, -1, None, *files, env=env)
        code = process.wait(PATIENCE_SECS)
        assert (code, error.seek(0, os.SEEK_END)) == (0, 0)
        out.seek(0)
        said: str = out.read().decode()
    if native:
        native_fire.finish(env)
    return said


def fire(
    event_name: str,
    payload: Mapping[str, Any] | bytes,
    env: Mapping[str, str],
    hooks: Path = ROOT / "hooks",
) -> None:
    """Run the real hook on one event; its answer must be empty, except for a briefing."""
    said = hook_answer(event_name, payload, env, hooks)
    if event_name == "SessionStart" and said != NEUTRAL:
        (output,) = json.loads(said).values()
        assert output.keys() == {"hookEventName", "additionalContext"}
    else:
        assert said == NEUTRAL


def fire_all(events: Iterable[Mapping[str, Any]], env: Mapping[str, str], at_once: int = 1) -> None:
    """Fire events by their own names, up to `at_once` of them in parallel."""
    with ThreadPoolExecutor(at_once) as pool:
        for _ in pool.map(lambda event: fire(event["hook_event_name"], event, env), events):
            pass


# ---- a home
def home_name(project: Path) -> str:
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in project.name)
    return f"{name[:40]}-{hashed(project)}"


def untagged(text: str) -> str:
    """Return a text with the placeholders of a redactor that has no key."""
    plain = {"email": "***EMAIL***", "aws-key": "***AWS_KEY***", "private-key": "***SSH_KEY***"}
    return re.sub(
        r"\*\*\*REDACTED:([a-z-]+):[a-z2-7]{6}\*\*\*",
        lambda found: plain.get(found[1], "***REDACTED***"),
        text,
    )


def hashed(path: Path) -> str:
    return blake2b(os.fsencode(path), digest_size=8).hexdigest()


def remove_events_in_memory(uid: int, *homes: Path) -> None:
    """Remove the events that hooks of a user kept in memory because these homes took none."""
    for home in homes:
        shutil.rmtree(MEMORY / f"hivepipe-{uid}" / hashed(home), ignore_errors=True)


def repeat_until_in_time(home: "Home", wave: Callable[[str], None], attempts: int = 10) -> str:
    """Run a wave of hooks in new sessions until Redis has answered all hooks of a session in time.

    Return that session. A hook waits 50 ms for Redis, and fifty at once on a busy machine may need
    more.
    """
    log = home.logs / "hook-errors.log"
    for attempt in range(attempts):
        session = f"wave-{attempt}"
        log.unlink(missing_ok=True)
        wave(session)
        if not log.exists():
            return session
    pytest.fail(f"no wave in {attempts} was undisturbed: {log.read_text()[-2000:]}")


class Home:
    """The folders and the environment of one user with one project."""

    def __init__(self, root: Path, name: str = "") -> None:
        """Define the folders; `name` distinguishes several homes of one project."""
        self.root = root
        self.project = root / "shop"
        self.path = root / f"home{name}"
        self.logs = self.path / "logs"
        self.is_in_tree = IN_TREE and not name
        inside = self.project / ".claude-state" / "logs"
        self.kept = inside if self.is_in_tree else self.path / "archive"
        self.env = {
            "PATH": posix.environ.get(b"PATH", b"/usr/bin:/bin").decode(),
            "HOME": str(root),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "CLAUDE_PROJECT_DIR": str(self.project),
            "HIVEPIPE_HOME": str(self.path),
        }

    def make(self) -> None:
        """Create the folders and the record of the home."""
        for folder in (self.project, self.root / "state", self.root / "run"):
            folder.mkdir(mode=0o700, exist_ok=True)
        text = f"home={self.path}\nproject={self.project}\n"
        if self.is_in_tree:
            text += f"tree={self.project}\n"
            self.path.mkdir(mode=0o700, exist_ok=True)
            for folder in (self.project / ".hive-mind", self.project / ".claude-state"):
                folder.mkdir(mode=0o700, exist_ok=True)
                (folder / ".gitignore").write_text("*\n")
        record = self.record_of(self.path)
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record.write_text(text)

    def record_of(self, folder: Path) -> Path:
        """Return the path of the registration record of a folder."""
        return self.root / "state" / "hivepipe" / "projects" / hashed(folder)

    def another(self, name: str) -> "Home":
        return Home(self.root, name)

    def with_env(self, **variables: str) -> dict[str, str]:
        """Return the environment with more HIVEPIPE_ variables, named without this prefix."""
        return {**self.env, **{f"HIVEPIPE_{name}": value for name, value in variables.items()}}

    def set(self, **values: str | bool) -> None:
        """Write these settings to the home's `config.toml` and compile them for its hooks."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in values.items()]
        (self.path / "config.toml").write_text("".join(lines))
        texts = {
            name: str(value).lower() if value is True else value for name, value in values.items()
        }
        compiled = {f"HIVEPIPE_{name.upper()}": text for name, text in texts.items()}
        settings = {"v": 1, "values": compiled}
        (self.path / "hook-settings.json").write_text(json.dumps(settings))

    def installed_long_ago(self) -> None:
        """Move the installation to 1970, and record that outdated data were deleted yesterday."""
        from hivepipe.db.database import Database  # noqa: PLC0415
        from hivepipe.db.slots import record_slot  # noqa: PLC0415
        from hivepipe.files.manifest import Manifest  # noqa: PLC0415

        self.path.mkdir(mode=0o700, exist_ok=True)
        manifest = Manifest(str(self.path))
        manifest.begin()
        with closing(sqlite3.connect(manifest.path)) as db, db:
            db.execute("UPDATE facts SET value = '0' WHERE name = 'installed_at'")
        with Database(self.database) as store:
            for name in ("prune", "prune_files"):
                record_slot(store, name, int(time.time() // 86_400) - 1, time.time_ns())

    def use_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Use this environment for product code in the test's own process."""
        seen = {key.encode(): value.encode() for key, value in self.env.items()}
        monkeypatch.setattr(posix, "environ", seen)

    def command(self, *words: str, data: str = "", expect: int | None = 0, **env: str) -> str:
        """Run a command in the project; return its output. `expect` None accepts any code."""
        done = COMMANDS.run(words, data, self.env | env, self.project, PATIENCE_SECS)
        assert expect in (None, done.returncode), done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def address(self) -> str:
        """The socket that the product computes in this environment."""
        from hivepipe.home import locate  # noqa: PLC0415

        with pytest.MonkeyPatch.context() as monkeypatch:
            self.use_environment(monkeypatch)
            return locate(str(self.project)).socket

    @property
    def spool(self) -> list[Path]:
        """The complete events in the spool folders of the home and of the runtime folder."""
        name = blake2b(str(self.path).encode(), digest_size=8).hexdigest()
        runtime = Path(self.env["XDG_RUNTIME_DIR"], "hivepipe", name)
        return sorted(p for at in (self.path, runtime) for p in at.glob("spool/*.json"))

    @property
    def database(self) -> Path:
        inside = self.project / ".hive-mind" / "hive.db"
        return inside if self.is_in_tree else self.path / "hive.db"

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Query the database on a new connection; empty before it exists."""
        if not self.database.exists():
            return []
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)
        try:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql)]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise
        finally:
            connection.close()

    def count(self, table: str) -> int:
        """Return the number of rows of a table; 0 before it exists."""
        found = self.rows(f"SELECT count(*) AS n FROM {table}")
        return int(found[0]["n"]) if found else 0


@contextmanager
def made_home() -> Iterator[Home]:
    """Yield a new home."""
    root = Path(tempfile.mkdtemp(prefix="hp-", dir=folder_of_homes())).resolve()
    home = Home(root)
    home.make()
    try:
        yield home
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def private_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A new home, whose environment the product's code in the test's process uses too."""
    with made_home() as home:
        home.use_environment(monkeypatch)
        yield home


# ---- processes
class Process:
    """A process that a test starts and ends by its pid."""

    def __init__(self, command: list[str], log: Path, env: Mapping[str, str], cwd: Path) -> None:
        """Define the process without starting it."""
        self.command = command
        self.log = log
        self._env = dict(env)
        self._cwd = cwd
        self._running: subprocess.Popen[bytes] | Forked | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start the process with its output in the log; workers and launchers are forked."""
        self._running = self._forked()
        if self._running:
            return
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                cwd=self._cwd,
            )

    def _forked(self) -> Forked | None:
        python, script = self.command[:2], Path(*self.command[2:3])
        if python != CLI[:2] or not any(folder in script.parents for folder in FORKED):
            return None
        with open(os.devnull, "rb") as stdin, self.log.open("ab") as log:
            return WORKERS.start(self.command[2:], self._env, self._cwd, (stdin, log, log))

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """Send the signal, continue the process if it is stopped, and return its exit code."""
        assert self._running is not None
        if self._running.poll() is None:
            self._running.send_signal(with_signal)
            self._running.send_signal(signal.SIGCONT)
        try:
            return self._running.wait(PATIENCE_SECS)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait(PATIENCE_SECS)
            pytest.fail(f"pid {self._running.pid} outlived signal {with_signal}: {self.text}")

    def signal(self, number: int) -> None:
        """Send a signal without waiting."""
        assert self._running is not None
        self._running.send_signal(number)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def redis_files(home: Path) -> list[Path]:
    """Return the append-only files in a home, with Redis 6 only one; the last is in use."""
    return sorted(home.rglob("appendonly.aof*"), key=lambda path: (len(path.name), path.name))


def redis_log(home: Path) -> bytes:
    """Return the content of the append-only files, which a rewrite may replace meanwhile."""
    found = b""
    for path in redis_files(home):
        with suppress(FileNotFoundError):
            found += path.read_bytes()
    return found


class Server(Process):
    """A real Redis server with the product's options."""

    def __init__(self, home: Home, address: str, options: list[str]) -> None:
        """Define the server; `address` is a socket path or a URL."""
        super().__init__([*options], home.root / "redis.log", home.env, home.root)
        self.address = address
        self._home = home

    @property
    def url(self) -> str:
        """The address in the form that RQ's tools use."""
        return f"unix://{self.address}" if self.address[0] == "/" else self.address

    def client(self) -> redis.Redis:
        """Return a new client that returns bytes. It does not look up its own version, in 6 ms."""
        return redis.Redis.from_url(self.url, driver_info=None)

    def start(self) -> None:
        """Start the server and wait until it answers and has loaded its file."""
        super().start()
        until(self._answers, "no Redis")

    def restart_empty(self) -> None:
        """Kill the server, delete its files and start it."""
        self.end(signal.SIGKILL)
        for path in redis_files(self._home.path):
            path.unlink()
        self.start()

    def _answers(self) -> bool:
        if not self.is_running:
            pytest.fail(f"the Redis server ended: {self.text}")
        with self.client() as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False


class Writer(Process):
    """The writer of a home, or another process of the stack, as the supervisor runs it."""

    def __init__(self, home: Home, process: str = "writer") -> None:
        """Define the process without starting it."""
        script = str(ROOT / "workers" / f"{process}.py")
        log = home.root / f"{process}{home.path.name}.log"
        super().__init__([sys.executable, "-I", script], log, home.env, home.root)
        self.starts = 0

    def start(self) -> None:
        self.starts += 1
        super().start()

    def restart_if_ended(self) -> None:
        """Start the process again if it has ended, as a supervisor does."""
        if not self.is_running:
            self.start()


@cache  # it executes a server, in 6 ms
def find_server() -> str:
    """Return the path of a Redis server; without one the test is skipped, or fails in CI."""
    from hivepipe.errors import NoRedisServerError  # noqa: PLC0415  after the environment is clean
    from hivepipe.stack import redis_server as product  # noqa: PLC0415

    try:
        return product.find_server()
    except NoRedisServerError as error:
        if IN_CI:
            pytest.fail(str(error))
        pytest.skip(str(error))


@contextmanager
def servers() -> Iterator[Callable[[Home], Server]]:
    """Start servers of homes on the socket that the product computes; end them afterwards."""
    from hivepipe.stack.redis_server import RESTRICTIONS, arguments  # noqa: PLC0415

    made: list[Server] = []
    binary = find_server()

    def make(home: Home) -> Server:
        address = home.address
        folder = Path(address).parent
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
        home.path.mkdir(mode=0o700, exist_ok=True)
        # Faults need some commands that the product's restrictions remove.
        options = arguments(str(home.path), address)[: -len(RESTRICTIONS)]
        server = Server(home, address, [binary, *options])
        made.append(server)
        server.start()
        return server

    try:
        yield make
    finally:
        for server in made:
            server.end(signal.SIGKILL)


@pytest.fixture
def new_server(private_home: Home) -> Iterator[Callable[[Home], Server]]:
    """Start servers of homes; end them afterwards."""
    with servers() as make:
        yield make


@pytest.fixture
def redis_server(private_home: Home, new_server: Callable[[Home], Server]) -> Server:
    return new_server(private_home)


@pytest.fixture
def sandbox() -> Iterator["Sandbox"]:
    """A user with one project, without a stack."""
    from tests.sandbox import new_sandbox  # noqa: PLC0415  it imports this module

    with new_sandbox() as made:
        yield made


@pytest.fixture
def hook_home(private_home: Home, new_server: Callable[[Home], Server]) -> Iterator["HookHome"]:
    """The private home with both hooks."""
    from tests.native import HookHome  # noqa: PLC0415  it imports this module

    made = HookHome(private_home, new_server)
    yield made
    made.end()


@pytest.fixture
def to_end() -> Iterator[list[Process]]:
    """Processes that are killed after the test if they still run."""
    made: list[Process] = []
    yield made
    for process in made:
        if process.is_running:
            process.end(signal.SIGKILL)


@pytest.fixture
def new_writer(to_end: list[Process]) -> Callable[[Home], Writer]:
    """Make writers of homes, not yet started."""

    def make(home: Home) -> Writer:
        made = Writer(home)
        to_end.append(made)
        return made

    return make


@pytest.fixture
def new_worker(private_home: Home, to_end: list[Process]) -> Callable[[str], Writer]:
    """Make other processes of the private home, not yet started."""

    def make(process: str) -> Writer:
        made = Writer(private_home, process)
        to_end.append(made)
        return made

    return make


@pytest.fixture
def slow_worker(new_worker: Callable[[str], Writer]) -> Process:
    """The slow worker of the private home, not yet started."""
    return new_worker("slow")


@pytest.fixture
def writer(private_home: Home, new_writer: Callable[[Home], Writer]) -> Writer:
    """The writer of the private home, not yet started."""
    return new_writer(private_home)


def is_drained(home: Home, server: Server, writer: Writer | None = None) -> bool:
    """Return whether no event or job waits on disk or in Redis; fail if the writer has ended."""
    if writer is not None and not writer.is_running:
        pytest.fail(f"the writer ended: {writer.text}")
    if home.spool:
        return False
    return not unfinished(server)


def unfinished(server: Server) -> list[str]:
    """Return every job that has not succeeded, except jobs of the slow workers.

    It looks at all job keys, because a job that a worker has taken is in no list.
    """
    with server.client() as client:
        return [
            f"{key.decode()} {status.decode()} {(description or b'').decode()}"
            for key, status, description, queue in jobs(client)
            if status not in (b"finished", None) and queue not in (b"slow", b"llm")
        ]


def jobs(client: redis.Redis) -> list[Any]:
    """Return key, status, description and queue of all jobs, read at one moment.

    Otherwise a job could end and enqueue another one that is missing in the result.
    """
    found: list[Any] = client.eval(JOBS, 0)
    return found


def accepted(server: Server) -> int:
    with server.client() as client:
        return int(client.get("hivepipe:accepted") or 0)


# ---- rq-dashboard
@pytest.fixture
def dashboard(private_home: Home, redis_server: Server, to_end: list[Process]) -> Callable[[], str]:
    """Start rq-dashboard on the loopback interface and return its address."""

    def start() -> str:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        executable = str(Path(sys.executable).with_name("rq-dashboard"))
        command = [executable, "-b", "127.0.0.1", "-p", str(port), "-u", redis_server.url]
        log = private_home.root / "dashboard.log"
        process = Process(command, log, private_home.env, private_home.root)
        to_end.append(process)
        process.start()
        base = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert process.is_running, process.text
            try:
                return bool(page(base))
            except urllib.error.URLError:
                return False

        until(answers, "no dashboard")
        return base

    return start


def page(address: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=PATIENCE_SECS) as answer:
        return answer.read().decode()  # type: ignore[no-any-return]


def page_data(address: str) -> Any:
    return json.loads(page(address))
