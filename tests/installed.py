"""hivepipe as a user without root has it: its own installation and account.

Root ignores permissions, so tests of permissions, owners and traces need a restricted user. As root
the tests use `nobody`, with a copy of those parts of the interpreter and the code that nobody else
can read.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import (
    NEUTRAL,
    ROOT,
    find_server,
    hashed,
    home_name,
    remove_events_in_memory,
    until,
)
from tests.forked import Forker
from tests.outcome import outcome_of
from tests.sandbox import command_lines, running

UID = 65534 if os.geteuid() == 0 else os.geteuid()
AS_USER = (
    ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"] if os.geteuid() == 0 else []
)
SECS = 90
LAUNCHER = (ROOT / "hivepipe/cli/launch.sh").read_bytes()


class Installation:
    """A clone with its `.venv`, readable by everybody.

    `python` is the interpreter, `packages` the folder of the dependencies.
    """

    def __init__(self, folder: Path, code: Path = ROOT) -> None:
        """Copy the code; link or copy an interpreter and its packages."""
        self.folder = folder / "hivepipe"
        self.bin = self.folder / ".venv" / "bin"
        base = Path(sys.base_prefix).resolve()
        python = Path("bin") / f"python3.{sys.version_info.minor}"
        if not can_read(base):
            base = moved(base, copied(base, folder / "python"), python)
        self.python = base / python
        command = [self.python, "-m", "venv", "--without-pip", "--symlinks", self.folder / ".venv"]
        subprocess.run(command, check=True, timeout=SECS)
        (packages,) = (self.folder / ".venv").glob("lib/python3*/site-packages")
        theirs = Path(psutil.__file__).parents[1]
        if not can_read(theirs):
            theirs = copied(theirs, folder / "packages")
        self.packages = theirs
        self.path = f"{self.bin}:/usr/local/bin:/usr/bin:/bin"
        self._commands: dict[tuple[str, ...], Forker] = {}
        (packages / "hivepipe.pth").write_text(f"{self.folder}\n{theirs}\n")
        self.install(code)

    def commands_of(self, become: Sequence[str]) -> Forker:
        """Return what runs `hivepipe` as a user."""
        key = tuple(become)
        if key not in self._commands:
            self._commands[key] = Forker([*key, str(self.bin / "python")], [*key, "hivepipe"])
        return self._commands[key]

    def end(self) -> None:
        """End the processes that fork the commands."""
        for each in self._commands.values():
            each.end()

    def install(self, code: Path) -> None:
        """Replace the code by that of another release, as `git pull` does."""
        for name in ("hivepipe", "hooks", "workers"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            plain = shutil.ignore_patterns("hook_path.*")  # `up` makes these files
            shutil.copytree(code / name, self.folder / name, ignore=plain)
        for name, source in (("hivepipe", "launch.sh"), ("hivepipe-hook", "hook.sh")):
            shutil.copy(code / "hivepipe/cli" / source, self.bin / name)
            (self.bin / name).chmod(0o755)
        self.probes = (self.folder / "hivepipe" / "doctor" / "probing.py").exists()
        give(self.folder)


def give(folder: Path) -> None:
    """Change the owner of a folder and its content to the user; ignore files deleted meanwhile."""
    if not AS_USER:
        return
    inside = (
        os.path.join(above, name)
        for above, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    for path in (str(folder), *inside):
        with suppress(FileNotFoundError):
            os.chown(path, UID, UID, follow_symlinks=False)


def can_read(folder: Path) -> bool:
    return (
        subprocess.run([*AS_USER, "sh", "-c", f"ls '{folder}'"], capture_output=True).returncode
        == 0
    )


def copied(folder: Path, target: Path) -> Path:
    """Copy a folder, by hard links if the file system supports them."""
    # Include __pycache__: the user could not write it, and each start would compile again.
    plain = shutil.ignore_patterns("test", "site-packages", "idlelib", "share")

    def link(source: str, to: str) -> None:
        try:
            os.link(source, to)
        except OSError:
            shutil.copy2(source, to)

    shutil.copytree(folder, target, symlinks=True, ignore=plain, copy_function=link)
    return target


def moved(base: Path, copy: Path, program: Path) -> Path:
    """Make a copied interpreter find its shared library in its own folder."""
    program = copy / program
    text = program.read_bytes()
    program.unlink()  # the file may be a hard link
    rpath = f"{base}/lib".encode() + b"\0"
    program.write_bytes(text.replace(rpath, b"$ORIGIN/../lib".ljust(len(rpath), b"\0")))
    program.chmod(0o755)
    return copy


class User:
    """An account with a home folder and one project, without hivepipe."""

    account = "user"
    become: Sequence[str] = AS_USER  # a command that executes the rest of its arguments

    def __init__(self, folder: Path, installation: Installation, project: str = "shop") -> None:
        """Make the folders; `project` is a path below the home folder."""
        find_server()  # skips without a Redis server
        self.installation = installation
        self._older = running()
        self.home = folder / self.account
        self.project = self.home / project
        self.run_folder = folder / "run"
        self.env = {
            "PATH": installation.path,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.run_folder),
            "PYTHONWARNINGS": "ignore",
        }
        for path in (self.project, self.run_folder):
            path.mkdir(parents=True)
        (self.home / ".bashrc").write_text("# mine\n")
        self.own(folder)

    @property
    def recorded(self) -> Path:
        return self.home / f".local/share/hivepipe/projects/{home_name(self.project)}"

    def has_a_home_of_1_0(self) -> Path:
        """Move the home to where 1.0.0 made it, inside the project; return its path."""
        self.hivepipe("init")
        home = self.project / ".hive-mind"
        self.recorded.rename(home)
        (home / ".gitignore").write_text("*\n")
        records = self.home / ".local/state/hivepipe/projects"
        for file in list(records.iterdir()):
            kept = [line for line in file.read_text().splitlines() if "project=" not in line]
            file.write_text("\n".join(kept).replace(str(self.recorded), str(home)) + "\n")
        (records / hashed(self.recorded)).rename(records / hashed(home))
        self.own(self.home)
        return home

    def own(self, path: Path) -> None:
        give(path)

    def do(
        self, *words: str | Path, cwd: Path | None = None, data: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as this user."""
        if words[0] == "hivepipe" and self.is_forked and "PATH" not in env:
            said = [str(word) for word in words[1:]]
            commands = self.installation.commands_of(self.become)
            return commands.run(said, data, self.env | env, cwd or self.project, SECS)
        return outcome_of(
            [*self.become, *map(str, words)],
            self.env | env,
            cwd or self.project,
            input=data,
            timeout=SECS,
        )

    @property
    def is_forked(self) -> bool:
        """Return whether `hivepipe` is the unchanged launcher."""
        launcher = self.installation.bin / "hivepipe"
        found = shutil.which("hivepipe", path=self.env["PATH"])
        return found == str(launcher) and launcher.read_bytes() == LAUNCHER

    def hivepipe(self, *words: str, expect: int = 0, cwd: Path | None = None, **env: str) -> str:
        """Run `hivepipe` as this user and return its output; probe only with `--probe`."""
        if words[0] in ("init", "migrate") and self.installation.probes:
            asked = {"--probe", "--help"}.intersection(words)
            words = tuple(word for word in words if word != "--probe")
            words = words if asked else (*words, "--no-probe")
        if "--purge" in words:
            self.await_start()
        done = self.do("hivepipe", *words, cwd=cwd, **env)
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def await_start(self) -> None:
        """Wait for hooks that start the stack, because they would create folders after a purge."""
        start = ("hivepipe.stack.starter", str(self.run_folder))

        def is_over() -> bool:
            lines = [line for _, line in command_lines(self._older)]
            return not any(all(word in line for word in start) for line in lines)

        until(is_over, "a hook's start of the stack is not over")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = self.do("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def settings(self) -> Path:
        """The settings file that `init` changes by default."""
        return self.project / ".claude" / "settings.local.json"

    def hooks(self, path: Path | None = None) -> dict[str, list[dict[str, Any]]]:
        """Return event -> handlers, as Claude Code reads them."""
        found = json.loads((path or self.settings).read_text())["hooks"]
        return {
            event: [handler for group in groups for handler in group["hooks"]]
            for event, groups in found.items()
        }

    def fire(
        self, event: str, cwd: Path | None = None, path: Path | None = None, **fields: object
    ) -> list[str]:
        """Run each handler of an event in the settings, as Claude Code does."""
        payload = {
            "session_id": "s1",
            "cwd": str(cwd or self.project),
            "hook_event_name": event,
            **fields,
        }
        said = []
        for handler in self.hooks(path).get(event, []):
            words = (
                [handler["command"], *handler["args"]]
                if "args" in handler
                else ["sh", "-c", handler["command"]]
            )
            done = self.do(
                *words,
                cwd=cwd,
                data=json.dumps(payload),
                CLAUDE_PROJECT_DIR=str(cwd or self.project),
                CLAUDE_CODE_SESSION_ID="s1",
            )
            assert (done.returncode, done.stderr) == (0, ""), done
            said.append(done.stdout)
        return said

    def sessions(self, cwd: Path | None = None) -> list[dict[str, Any]]:
        done = self.do("hivepipe", "sessions", "--all", "--json", cwd=cwd)
        return list(json.loads(done.stdout)["sessions"]) if done.returncode == 0 else []

    def play_session(self) -> None:
        """Fire the events of a small session."""
        assert self.fire("SessionStart", source="startup") == [NEUTRAL]
        self.fire("UserPromptSubmit", prompt="hello", prompt_id="p1")
        edit = {"tool_name": "Edit", "tool_use_id": "t1", "tool_input": {"file_path": "/a.py"}}
        self.fire("PostToolUse", **edit, tool_response={})
        self.fire("Stop", stop_hook_active=False)
        self.fire("SessionEnd", reason="other")

    def files(self, *below: Path) -> dict[str, str]:
        """Return every file and folder with mode and content hash."""
        found: dict[str, str] = {}
        for root in below or (self.home, self.run_folder):
            for path in sorted(root.rglob("*")):
                with suppress(FileNotFoundError):  # a process removes its files when it ends
                    found[str(path)] = _print_of(path)
        return found

    def processes(self) -> list[str]:
        """Return the command lines of the processes that work in this user's home folder."""
        return [command for command in map(_command_of, self._running()) if command]

    def pid(self, kind: str) -> int:
        """Return the pid of this user's only process with a text in its command line.

        After `up` a forked process sets its command line.
        """

        def found() -> list[int]:
            pids = [p.pid for p in self._running() if kind in _command_of(p)]
            return pids if len(pids) == 1 else []

        (pid,) = until(found, f"not one process with {kind}")
        return int(pid)

    def _running(self) -> list[psutil.Process]:
        found = []
        for pid, _ in command_lines(self._older):
            # HOME is unreliable, because Redis overwrites it.
            with suppress(OSError, psutil.NoSuchProcess):
                if os.readlink(f"/proc/{pid}/cwd").startswith(str(self.home)):
                    found.append(psutil.Process(pid))
        return found

    def sockets(self) -> list[str]:
        lines = Path("/proc/net/unix").read_text().splitlines()
        return [line for line in lines if str(self.run_folder.parent) in line]

    def end_all(self) -> None:
        """Kill the processes that a failed test left behind, by pid; remove events in memory."""
        for _ in range(3):
            for process in self._running():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        remove_events_in_memory(UID, self.recorded, self.home / ".local/state/hivepipe/default")


def _command_of(process: psutil.Process) -> str:
    """Return the command line of a process, or "" if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _print_of(path: Path) -> str:
    status = path.lstat()
    mode = f"{stat.S_IMODE(status.st_mode):o} {status.st_uid}"
    if path.is_symlink():
        return f"{mode} -> {os.readlink(path)}"
    if path.is_file():
        return f"{mode} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return mode


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the differences between two results of `files`."""
    names = before.keys() | after.keys()
    pairs = {name: (before.get(name, "-"), after.get(name, "-")) for name in names}
    return {name: pair for name, pair in sorted(pairs.items()) if pair[0] != pair[1]}


def require_user() -> None:
    """Skip if there is no way to become an unprivileged user."""
    if AS_USER and not shutil.which("setpriv"):
        pytest.skip("setpriv is not there")


def upgrade_to(version: str, packages: Path) -> None:
    """Replace the metadata of the installed version, as pip does; "" leaves none."""
    for old in packages.glob("hivepipe-*.dist-info"):
        shutil.rmtree(old)
    if version:
        folder = packages / f"hivepipe-{version}.dist-info"
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: hivepipe\nVersion: {version}\n"
        (folder / "METADATA").write_text(text)
