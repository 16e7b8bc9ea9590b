"""A hive of workers for tests: a project, its `.hive`, and a `claude` that plays scripts."""

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
from typing import Any

from click.testing import CliRunner, Result

from hivepipe import settings
from hivepipe.cli.main import main
from hivepipe.config.config_file import load_and_use
from hivepipe.jobs.origin import Origin
from hivepipe.operations import hive as product
from hivepipe.operations.families.hives import CheckHives
from hivepipe.operations.job_context import JobContext
from tests.conftest import ROOT, Home, until

STAND_IN = ROOT / "tests" / "stand_in_claude.py"
DONE = 'status {"status": "done", "result": "did it", "committed": true, "parked": true}'


def script(*runs: list[str], words: str = "Do this.") -> str:
    """Return a task that lets the stand-in play these runs."""
    return f"{words}\nSCRIPT {json.dumps({'runs': runs})}"


class Scene:
    """A user with an orchestrator's project, two projects to send workers to, and a claude."""

    def __init__(self, home: Home) -> None:
        self.home = home
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

    def said(
        self,
        *arguments: str,
        expect: int = 0,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        input: str = "",
    ) -> Result:
        """Run `hivepipe hive ...` in the orchestrator's project, within this process."""
        return self.hivepipe("hive", *arguments, expect=expect, env=env, cwd=cwd, input=input)

    def hivepipe(
        self,
        *arguments: str,
        expect: int = 0,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        input: str = "",
    ) -> Result:
        """Run any command so."""
        done = self.tried(*arguments, env=env, cwd=cwd, input=input)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == expect, done.stdout + done.stderr
        return done

    def tried(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        input: str = "",
    ) -> Result:
        """Run any command so, whatever becomes of it."""
        with self.inside(env or {}), chdir(cwd or self.home.project):
            return CliRunner().invoke(main, [*arguments], input=input)

    @contextmanager
    def inside(self, more: dict[str, str]) -> Iterator[None]:
        """Let the product's code in this process see the scene's environment."""
        before, seen = posix.environ, self.env | more
        posix.environ = {name.encode(): value.encode() for name, value in seen.items()}
        try:
            yield
        finally:
            posix.environ = before
            settings.use({})

    def run(self, *arguments: str, expect: int = 0, **more: Any) -> str:
        """Run it and return what it printed."""
        return self.said(*arguments, expect=expect, **more).stdout

    def begin(self) -> None:
        """Make the hive and list both projects."""
        self.run("init")
        for name, folder in self.projects.items():
            self.run("projects", "add", name, str(folder))

    def spawn(self, task: str, project: str = "project-a", *options: str) -> str:
        """Spawn a worker and return its id."""
        return self.run("spawn", project, task, *options).strip()

    def check(self, worker: str = "") -> list[dict[str, Any]]:
        """Return how workers stand."""
        arguments = [worker] if worker else []
        found: list[dict[str, Any]] = json.loads(self.run("check", *arguments, "--json"))["workers"]
        return found

    def stand(self, worker: str) -> dict[str, Any]:
        """Return how one worker stands."""
        (found,) = self.check(worker)
        return found

    def becomes(self, worker: str, state: str) -> dict[str, Any]:
        """Wait until a worker stands so, and, if its process is gone, its runner too."""

        def look() -> dict[str, Any] | None:
            found = self.stand(worker)
            is_over = found["lives"] or self.is_booked(worker, found["run"])
            return found if found["state"] == state and is_over else None

        found: dict[str, Any] = until(look, f"{worker} is not {state}: {self.stand(worker)}")
        return found

    def is_booked(self, worker: str, number: int) -> bool:
        """Has the runner of a run left?"""
        path = self.state(worker) / f"runs/{number}.json"
        return not path.exists() or json.loads(path.read_text())["cost_usd"] is not None

    def folder(self, worker: str) -> Path:
        """Return a worker's folder."""
        return self.hive / "workers" / worker

    def state(self, worker: str) -> Path:
        """Return what hivepipe keeps of a worker."""
        return self.belief / "workers" / worker

    @property
    def belief(self) -> Path:
        """Return what hivepipe keeps of the hive, out of every worker's reach."""
        folder = blake2b(str(self.hive).encode(), digest_size=8).hexdigest()
        return self.home.root / "state" / "hivepipe" / "hives" / folder

    def played(self) -> list[dict[str, Any]]:
        """Return every run that the stand-in began."""
        log = self.home.root / "runs.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def violations(self) -> str:
        """Return what must not be."""
        log = self.home.root / "violations.log"
        return log.read_text() if log.exists() else ""

    def lines(self, worker: str) -> list[dict[str, Any]]:
        """Return the lines of a transcript, each of which has to be a JSON object."""
        text = (self.folder(worker) / "transcript.jsonl").read_text()
        found = [json.loads(line) for line in text.splitlines()]
        assert all(isinstance(line, dict) for line in found)
        return found

    def end(self) -> None:
        """End every process of this scene, and take its workers away."""
        self.end_processes()
        shutil.rmtree(self.hive, ignore_errors=True)

    def end_processes(self) -> None:
        """End every process that this scene's workers are, by the pids that they wrote down."""
        for path in [*self.belief.glob("*/*/runs/*.json")]:
            run = json.loads(path.read_text())
            # The runner first: it would write down the end of what it runs.
            for pid in (run.get("runner_pid"), run["pid"]):
                if pid and belongs_here(pid, str(self.home.root)):
                    try:
                        os.killpg(os.getpgid(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        continue
        until(lambda: not self.processes(), "workers live on")

    def processes(self) -> list[int]:
        """Return the living processes that this scene's home is told to."""
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        return [pid for pid in pids if belongs_here(pid, str(self.home.root))]


def belongs_here(pid: int, root: str) -> bool:
    """Is this a living process whose HOME is the scene's?"""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return f"HOME={root}".encode() in environment and state != "Z" and pid != os.getpid()


def on_terminal(scene: Scene, *arguments: str, columns: int, lines: int) -> list[str]:
    """Return what a command leaves on the screen of a terminal of that size, by tmux."""
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
    """Let the clock look at the hives once, with these settings; return what it logged."""
    env = {f"HIVEPIPE_HIVE_{name}": value for name, value in asked.items()}
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    job = Origin(id="hives-1", operation="check_hives", event_time_ns=1)
    with scene.inside(env), chdir(scene.home.project):
        place, _ = load_and_use()
        product.logger.addHandler(handler)
        try:
            context = JobContext(place.home, place.socket, lambda parent, jobs: None)
            product.check_hives(context, job, CheckHives())
        finally:
            product.logger.removeHandler(handler)
    return said.getvalue()


def played(home: Home) -> Iterator[Scene]:
    """Yield a scene that has begun, and end it."""
    made = Scene(home)
    made.begin()
    try:
        yield made
    finally:
        made.end()
