"""A project in a temporary folder with its own stack; no file of the user is changed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from hivepipe.cli.demo.day import SESSION, HookCall
from hivepipe.errors import StackError
from hivepipe.files.regular_file import read_text
from hivepipe.queue.spooled import waiting_files
from hivepipe.settings import variable

TIMEOUT_SECS = 60


class Scene:
    """The demo's project and stack, and the measured duration of each hook."""

    def __init__(self, folder: str) -> None:
        self.project = f"{folder}/shop"
        self._hook = f"{folder}/state/hivepipe/hooks/default/hook"
        self.costs: dict[str, list[float]] = {}  # event, or "bare" for the interpreter -> ms
        self._environment = {
            "HOME": folder,
            "PATH": f"{Path(sys.executable).parent}:{variable('PATH') or ''}",
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_RUNTIME_DIR": f"{folder}/run",
            "CLAUDE_PROJECT_DIR": self.project,
            "HIVEPIPE_CHECKPOINT_INTERVAL": "0",  # every edit creates jobs
            "HIVEPIPE_AUTOSTART": "0",
            "COLUMNS": "90",
        }
        for path in (self.project, f"{folder}/run"):
            os.mkdir(path, 0o700)

    @cached_property
    def home(self) -> str:
        return self.command("home").strip()

    def command(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
        """Run `hivepipe ...`; return its stdout, or raise StackError for a code not in `ok`."""
        done = subprocess.run(
            [sys.executable, "-I", "-m", "hivepipe.cli.main", *arguments],
            env=self._environment,
            cwd=self.project,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECS,
        )
        if done.returncode not in ok:
            raise StackError(f"hivepipe {' '.join(arguments)}: {done.stderr[-800:]}")
        return done.stdout

    def status(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.command("status", "--json", ok=(0, 1)))
        return report

    def pid(self, name: str) -> int:
        """Return the pid of the process with this name, or 0 if it does not run."""
        found = [entry["pid"] for entry in self.status()["processes"] if entry["name"] == name]
        return int(found[0]) if found else 0

    def kill(self, name: str) -> int:
        """Kill the stack's process with this name by SIGKILL; return its pid."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    def kill_all(self) -> list[int]:
        """Kill the stack, the supervisor first so that it restarts nothing; return all pids."""
        pids = [int(entry["pid"]) for entry in self.status()["processes"]]
        supervisor = psutil.Process(pids[0]).parent()
        everything = [supervisor, *map(psutil.Process, pids)]
        for process in everything:
            process.kill()
        psutil.wait_procs(everything, TIMEOUT_SECS)
        return [supervisor.pid, *pids]

    def until(self, check: Callable[[], bool], what: str) -> float:
        """Wait until `check` is true and return the seconds it took, or raise StackError."""
        begun = time.monotonic()
        while not check():
            if time.monotonic() - begun > TIMEOUT_SECS:
                raise StackError(f"after {TIMEOUT_SECS} s: {what}")
            time.sleep(0.05)
        return time.monotonic() - begun

    def until_settled(self) -> float:
        """Wait until no job waits, runs or is retried; return the seconds it took."""
        return self.until(self._is_settled, "jobs still wait")

    def _is_settled(self) -> bool:
        report = self.status()
        accounts = report["accounts"]
        if not accounts or report["spool"]:
            return False
        return not (accounts["waiting"] or accounts["running"] or accounts["retrying"])

    def fire(self, by_instance: Mapping[str, list[HookCall]]) -> int:
        """Run the hooks of all instances in parallel, but the hooks of one instance in order.

        Return the number of hooks.
        """
        with ThreadPoolExecutor(len(by_instance)) as pool:
            list(pool.map(lambda name: self._fire_all(name, by_instance[name]), by_instance))
        return sum(len(events) for events in by_instance.values())

    def _fire_all(self, instance: str, events: list[HookCall]) -> None:
        environment = {**self._environment, "HIVEPIPE_INSTANCE_ID": instance}
        for name, fields in events:
            event = {"session_id": SESSION, "cwd": self.project, **fields}
            self._run(name, [self._hook, name], json.dumps(event), environment)

    def measure(self, call: HookCall, times: int) -> None:
        """Run a hook and a bare interpreter alternately, so that load affects both alike."""
        name, fields = call
        environment = {**self._environment, "HIVEPIPE_INSTANCE_ID": "ann"}
        for _ in range(times):
            event = {"session_id": SESSION, "cwd": self.project, **fields}
            self._run("measured", [self._hook, name], json.dumps(event), environment)
            # The real path of the interpreter, as in the hook's first line, not a shim.
            bare = [os.path.realpath(sys.executable), "-I", "-S", "-c", "pass"]
            self._run("bare", bare, "", environment)

    def _run(self, kind: str, command: list[str], text: str, env: dict[str, str]) -> None:
        begun = time.perf_counter()
        done = subprocess.run(
            command,
            input=text,
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT_SECS,
        )
        if kind != "bare" and (done.stdout or done.stderr):
            raise StackError(f"hook {kind} printed {done.stdout!r} {done.stderr!r}")
        self.costs.setdefault(kind, []).append((time.perf_counter() - begun) * 1000)

    def spooled(self) -> int:
        return len(waiting_files(Path(self.home, "spool")))

    def log_lines(self, containing: str) -> list[str]:
        """Return the lines of the writer's log with this text, without their times."""
        try:
            lines = read_text(Path(self.home, "logs", "writer.log")).splitlines()
        except FileNotFoundError:
            return []
        return [line.split(" ", 3)[-1] for line in lines if containing in line]
