"""Helpers for tests of hives: projects with a `.hive` and workers, and a fake `claude`."""

import io
import json
import logging
import os
import posix
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner, Result

from hivepipe import settings
from hivepipe.cli.main import main
from hivepipe.config.config_file import load_and_use
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations import hive as product
from hivepipe.operations.job_context import JobContext
from hivepipe.orchestrator import start
from tests.conftest import PATIENCE_SECS, ROOT, RUNNERS, Home, until
from tests.sandbox import running

STAND_IN = ROOT / "tests" / "stand_in_claude.py"
PF_EXITING = 0x4  # a flag of the Linux kernel, in /proc/PID/stat
DONE = 'status {"status": "done", "result": "did it", "committed": true, "parked": true}'


def script(*runs: list[str], words: str = "Do this.") -> str:
    """Return a task that makes the fake claude play these runs."""
    return f"{words}\nSCRIPT {json.dumps({'runs': runs})}"


class Scene:
    """A user with an orchestrator's project, two projects for workers, and the fake claude."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._older = running()
        self.hive = home.project / ".hive"
        bin = home.root / "bin"
        bin.mkdir()
        claude = bin / "claude"
        text = STAND_IN.read_text().split("\n", 1)[1]
        claude.write_text(f"#!{sys.executable} -I\n{text}")
        claude.chmod(0o755)
        self.config = home.root / ".config" / "hivepipe" / "config.toml"
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text('hive_rights = "edits"\n')
        self.env = {**home.env, "PATH": f"{bin}:{home.env['PATH']}"}
        self.projects = {}
        for name in ("project-a", "project-a-b"):
            folder = home.root / name
            folder.mkdir()
            self.projects[name] = folder

    def result(self, *arguments: str, **more: Any) -> Result:
        """Run `hivepipe hive ...` in the orchestrator's project, within this process."""
        return self.hivepipe("hive", *arguments, **more)

    def hivepipe(self, *arguments: str, expect: int = 0, **more: Any) -> Result:
        """Run any command within this process and check its exit code; `more` is for `invoke`."""
        done = self.invoke(*arguments, **more)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == expect, done.stdout + done.stderr
        return done

    def invoke(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        input: str = "",
    ) -> Result:
        """Run any command within this process and return its result."""
        with self.use_environment(env or {}), chdir(cwd or self.home.project):
            return CliRunner().invoke(main, [*arguments], input=input)

    @contextmanager
    def use_environment(self, more: dict[str, str]) -> Iterator[None]:
        """Use the scene's environment for product code in this process; fork its runners."""
        before, seen = posix.environ, self.env | more
        posix.environ = {name.encode(): value.encode() for name, value in seen.items()}
        forking = SimpleNamespace(DEVNULL=subprocess.DEVNULL, run=run_runner)
        try:
            with patch.object(start, "subprocess", forking):
                yield
        finally:
            posix.environ = before
            settings.use({})

    def run(self, *arguments: str, **more: Any) -> str:
        """Run `hivepipe hive ...` and return its output."""
        return self.result(*arguments, **more).stdout

    def begin(self) -> None:
        self.run("init")
        for name, folder in self.projects.items():
            self.run("projects", "add", name, str(folder))

    def spawn(self, task: str, project: str = "project-a", *options: str) -> str:
        return self.run("spawn", project, task, *options).strip()

    def finish(self, *actions: str) -> str:
        """Spawn a worker, wait until it is done and its processes have ended; return its id."""
        worker = self.spawn(script([*actions, DONE]))
        self.wait_for_state(worker, "done")
        run = self.state(worker) / "runs/1.json"
        # While the runner executes after_run, its environment is empty for a moment.
        until(lambda: json.loads(run.read_text())["cost_usd"], "no cost was recorded")
        until(lambda: not self.processes(), "a process still runs")
        return worker

    def check(self, worker: str = "") -> list[dict[str, Any]]:
        """Return the rows of `hive check`."""
        arguments = [worker] if worker else []
        found: list[dict[str, Any]] = json.loads(self.run("check", *arguments, "--json"))["workers"]
        return found

    def row(self, worker: str) -> dict[str, Any]:
        (found,) = self.check(worker)
        return found

    def wait_for_state(self, worker: str, state: str) -> dict[str, Any]:
        """Wait until a worker has a state, and return its row."""

        def look() -> dict[str, Any] | None:
            found = self.row(worker)
            return found if found["state"] == state else None

        found: dict[str, Any] = until(look, f"{worker} is not {state}: {self.row(worker)}")
        return found

    def is_recorded(self, worker: str, number: int) -> bool:
        """Return whether the runner of a run has recorded its end."""
        path = self.state(worker) / f"runs/{number}.json"
        return not path.exists() or json.loads(path.read_text())["cost_usd"] is not None

    def folder(self, worker: str) -> Path:
        return self.hive / "workers" / worker

    def state(self, worker: str) -> Path:
        """Return the folder of hivepipe's own records of a worker."""
        return self.records / "workers" / worker

    @property
    def records(self) -> Path:
        """The folder of hivepipe's own records of the hive, which no worker can write."""
        folder = blake2b(str(self.hive).encode(), digest_size=8).hexdigest()
        return self.home.root / "state" / "hivepipe" / "hives" / folder

    def played(self) -> list[dict[str, Any]]:
        """Return all runs that the fake claude has started; it may be writing the last line."""
        log = self.home.root / "runs.log"
        complete = log.read_text().rpartition("\n")[0] if log.exists() else ""
        return [json.loads(line) for line in complete.splitlines()]

    @property
    def violations(self) -> str:
        """Forbidden events that the fake claude has noticed; empty if there are none."""
        log = self.home.root / "violations.log"
        return log.read_text() if log.exists() else ""

    def lines(self, worker: str) -> list[dict[str, Any]]:
        """Return the lines of a worker's transcript; each has to be a JSON object."""
        text = (self.folder(worker) / "transcript.jsonl").read_text()
        found = [json.loads(line) for line in text.splitlines()]
        assert all(isinstance(line, dict) for line in found)
        return found

    def end(self) -> None:
        """End every process of this scene and remove its workers."""
        self.end_processes()
        shutil.rmtree(self.hive, ignore_errors=True)

    def end_processes(self) -> None:
        """Kill every process of this scene's workers, by the pids in their run files."""
        for path in [*self.records.parent.glob("*/*/*/runs/*.json")]:
            run = json.loads(path.read_text())
            # The runner first, otherwise it would record the end of the run.
            for pid in (run.get("runner_pid"), run["pid"]):
                if pid and belongs_here(pid, str(self.home.root)):
                    try:
                        os.killpg(os.getpgid(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        continue
        until(lambda: not self.processes(), "workers live on")

    def processes(self) -> list[int]:
        """Return the processes whose HOME is this scene's, and each one of the user that is ending.

        A process that ends loses its environment before its locks.
        """
        pids, root = sorted(running() - self._older), str(self.home.root)
        return [pid for pid in pids if belongs_here(pid, root) or is_ending(pid)]


def run_runner(words: list[str], **how: Any) -> None:
    """Do what `subprocess.run` does with a runner, in a fork if that is possible.

    The last two words are the numbers of its descriptors.
    """
    assert how["start_new_session"], "the fork would have a session of its own nevertheless"
    arguments = [*words[words.index("hivepipe.orchestrator.runner") + 1 : -2], "3", "4"]
    env = {os.fsdecode(name): os.fsdecode(value) for name, value in how["env"].items()}
    with open(os.devnull, "rb") as stdin:
        files = (stdin, how["stdout"], how["stderr"])
        made = RUNNERS.start(arguments, env, how["cwd"], files, how["pass_fds"])
    if made:
        made.wait(PATIENCE_SECS)
    else:
        subprocess.run(words, **how)


def belongs_here(pid: int, root: str) -> bool:
    """Return whether a process runs and has the scene's HOME."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"HOME={root}".encode() in environment and pid != os.getpid()


def is_ending(pid: int) -> bool:
    """Return whether a process is ending and may still hold locks; a zombie holds none."""
    try:
        path = Path(f"/proc/{pid}/stat")
        fields = path.read_text().rpartition(")")[2].split()
        state, flags = fields[0], int(fields[6])
        is_own = path.stat().st_uid == os.geteuid()
    except (OSError, IndexError):
        return False
    return is_own and bool(flags & PF_EXITING) and state not in "ZX"


def on_terminal(scene: Scene, *arguments: str, columns: int, lines: int) -> list[str]:
    """Run a command in tmux and return the lines on the screen of a terminal of that size."""
    tmux = ["tmux", "-L", f"hive-{os.getpid()}", "-f", "/dev/null"]
    command = [sys.executable, "-I", "-m", "hivepipe.cli.main", *arguments]
    size = ["-x", str(columns), "-y", str(lines)]
    env = [f"{name}={value}" for name, value in scene.env.items()]
    shell = f"{shlex.join(command)}; echo ready; sleep 60"
    started = [*tmux, "new-session", "-d", *size, "env", "-i", *env, "sh", "-c", shell]
    subprocess.run(started, cwd=scene.home.project, check=True)

    def captured() -> list[str]:
        done = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True)
        shown = done.stdout.splitlines()
        return shown[: shown.index("ready")] if "ready" in shown else []

    try:
        found: list[str] = until(captured, "no screen")
        return found
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def tick(scene: Scene, **asked: str) -> str:
    """Run the periodic check of the hives once with these settings; return its log."""
    env = {f"HIVEPIPE_HIVE_{name}": value for name, value in asked.items()}
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    job = Origin(id="hives-1", operation="check_hives", event_time_ns=1)
    with scene.use_environment(env), chdir(scene.home.project):
        place, _ = load_and_use()
        product.logger.addHandler(handler)
        try:
            context = JobContext(place.home, place.socket, lambda parent, jobs: None)
            product.check_hives(context, job, Args())
        finally:
            product.logger.removeHandler(handler)
    return said.getvalue()


def played(home: Home) -> Iterator[Scene]:
    """Yield an initialised scene and end it afterwards."""
    made = Scene(home)
    made.begin()
    try:
        yield made
    finally:
        made.end()
