"""The processes of a stack: up, down, status, and never two of a kind."""

import itertools
import os
import platform
import posix
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hivepipe.errors import LockHeldError, NoRedisServerError, RegistrationError
from hivepipe.stack import processes, redis_server, registration
from hivepipe.stack.lock import acquire_lock
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import had_supervisor
from hivepipe.stack.supervisor import STOP_SECS, is_stopping
from tests.outcome import outcome_of
from tests.sandbox import ONE_OF_EACH, ROOT, Sandbox, eventually


def test_up_in_the_foreground_shows_the_logs_and_stops_on_interrupt(sandbox: Sandbox) -> None:
    process = sandbox.start("up")
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    os.kill(sandbox.pid("redis"), signal.SIGKILL)  # so that the log of Redis gets another line
    assert any(process.stdout.readline().startswith("redis ") for _ in range(20))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert sandbox.processes() == {}


def test_processes_of_a_killed_supervisor_are_replaced(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    old = sandbox.pids()
    stack = Stack(str(sandbox.home), os.path.dirname(sandbox.socket))
    for name in old.keys() - {"supervisord", "redis"}:  # Redis overwrites its environment
        assert had_supervisor(stack, {name: [psutil.Process(old[name])]})
    os.kill(old["supervisord"], signal.SIGKILL)
    assert sandbox.status(expect=1)["healthy"] is False
    sandbox.run("up", "-d")
    new = sandbox.pids()
    assert not set(old.values()) & set(new.values())
    os.kill(new["supervisord"], signal.SIGKILL)
    sandbox.run("down")
    assert not ONE_OF_EACH.keys() & sandbox.processes().keys()
    # A worker may have run the starter. It waits for `down` and then starts nothing.
    eventually(lambda: sandbox.processes() == {})


def test_a_supervisor_that_is_restarting_is_stopped_at_once(sandbox: Sandbox) -> None:
    """It refuses the request to shut down."""
    sandbox.run("up", "-d")
    stack = Stack(str(sandbox.home), os.path.dirname(sandbox.socket))
    os.kill(sandbox.pid("writer"), signal.SIGSTOP)  # it ends only when `down` resumes it
    os.kill(sandbox.pid("supervisord"), signal.SIGHUP)
    eventually(lambda: is_stopping(stack))
    begun = time.monotonic()
    sandbox.run("down")
    assert time.monotonic() - begun < STOP_SECS / 2
    assert sandbox.processes() == {}


def test_a_lock_is_held_until_its_last_holder_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "x.lock")
    lock = acquire_lock(path, 0)
    assert os.get_inheritable(lock)
    with subprocess.Popen(["sleep", "60"], pass_fds=(lock,)) as child:
        os.close(lock)
        with pytest.raises(LockHeldError):
            acquire_lock(path, 0.1)
        child.kill()
    os.close(acquire_lock(path, 1))


def test_usage_errors_exit_with_64(sandbox: Sandbox) -> None:
    for arguments in (["no-such-command"], ["up", "--no-such-option"], ["status", "superfluous"]):
        sandbox.run(*arguments, expect=64)
    assert "hivepipe" in sandbox.run("--version")
    assert sandbox.run("root").strip() == str(ROOT)


def test_without_a_server_the_commands_to_install_one_are_named(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = sandbox.folder / "dnf"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(sandbox.folder))
    monkeypatch.setattr(redis_server, "find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "platform", "linux")
    for machine, minor, has_wheel in (
        ("x86_64", 12, True),
        ("x86_64", 13, False),
        ("aarch64", 12, False),
    ):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(sys, "version_info", (3, minor, 0))
        with pytest.raises(NoRedisServerError) as raised:
            redis_server.find_server()
        assert "dnf install" in str(raised.value)
        assert ("install hivepipe again" in str(raised.value)) == has_wheel


class Installed:
    """A fake server that reports a version, as the only one on this machine."""

    def __init__(self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program = sandbox.folder / "redis-server"
        self.homes = (sandbox.folder / f"home-{n}" for n in itertools.count())
        monkeypatch.setenv("PATH", str(sandbox.folder))
        monkeypatch.setattr(redis_server, "find_spec", lambda _name: None)

    def refusal(self, output: str, *files: str) -> str:
        """Return why a server with this version is not used for a home with these files, or ""."""
        self.program.write_text(f"#!/bin/sh\necho '{output}'\n")
        self.program.chmod(0o755)
        home = next(self.homes)
        for number, name in enumerate(files, 1):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).mkdir() if name.endswith("/") else (home / name).touch()
            os.utime(home / name, (number, number))  # the last one was written last
        try:
            found = redis_server.find_server(str(home))
        except NoRedisServerError as error:
            return str(error)
        return "" if found == str(self.program) else found


@pytest.fixture
def installed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Installed:
    return Installed(sandbox, monkeypatch)


def test_an_older_server_is_refused_beside_newer_files(installed: Installed) -> None:
    older, newer = "Redis server v=6.2.14 sha=0", "Redis server v=7.0.15 sha=0"
    parts = "appendonlydir/1.incr.aof"
    assert "appendonlydir, which " in installed.refusal(older, parts)
    assert not installed.refusal(newer, parts)
    assert not installed.refusal(older, "appendonly.aof")
    assert not installed.refusal(older, parts, "appendonly.aof"), "6.2 wrote last"
    assert not installed.refusal(older, "appendonlydir/")


def test_no_folder_is_to_be_deleted_while_a_server_gives_no_version(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    """The server that wrote the folder may only be slow, on a machine that is too busy now."""
    assert "redis-server --version` gave no version" in installed.refusal("", "appendonly.aof")
    older = sandbox.folder / "wheel" / "redis-server"
    older.parent.mkdir()
    older.write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0'\n")
    older.chmod(0o755)
    monkeypatch.setattr(redis_server, "_packaged", lambda: str(older))
    reason = installed.refusal("", "appendonlydir/1.incr.aof")
    assert f"{installed.program} --version` gave no version: try again" in reason
    assert "delete" not in reason


def test_a_newer_server_later_on_path_is_used_by_every_shell(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An active environment has the server of `hivepipe[embedded]` first on PATH."""
    system = tmp_path / "redis-server"
    system.write_text("#!/bin/sh\necho 'Redis server v=7.0.15 sha=0'\n")
    system.chmod(0o755)
    older, own = "Redis server v=6.2.14 sha=0", os.environ["PATH"]
    for path in (own, f"{own}:{tmp_path}", str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        assert installed.refusal(older) == ("" if path == own else str(system))
        if path != own:
            parts = "appendonlydir/1.incr.aof"
            assert installed.refusal(older, parts) == str(system)
            beside = installed.refusal(older, parts, "appendonly.aof")
            assert beside == str(system), "6.2 wrote last"
            again = installed.refusal(older, "appendonly.aof", parts)
            assert again == str(system), "7 wrote last"
    last = tmp_path / "last" / "redis-server"
    last.parent.mkdir()
    last.write_text(f"#!/bin/sh\n: > '{tmp_path}/executed'\n")
    last.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{last.parent}")
    assert installed.refusal(older) == str(system)
    assert not (tmp_path / "executed").exists(), "only servers up to the chosen one are executed"


def test_a_server_is_accepted_from_6_2_on(installed: Installed) -> None:
    assert installed.refusal("Redis server v=6.0.16 sha=0")
    assert not installed.refusal("Redis server v=6.2.0 sha=0")
    assert not installed.refusal("Valkey server v=10.1.0 sha=0")
    assert installed.refusal("something else")


def test_an_invalid_configured_server_is_an_error(sandbox: Sandbox) -> None:
    sandbox.configure('redis_server = "/bin/true"\n')
    assert "redis_server = /bin/true" in sandbox.run("up", "-d", expect=1)
    assert sandbox.processes() == {}


def test_a_planted_runtime_folder_is_refused(sandbox: Sandbox) -> None:
    (sandbox.run_folder / "hivepipe").mkdir(mode=0o755)
    assert "0700" in sandbox.run("up", "-d", expect=1)
    assert sandbox.processes() == {}


def test_a_folder_that_is_not_registered_is_named_with_the_same_advice(sandbox: Sandbox) -> None:
    for name in ("down", "restart", "move-home"):
        assert "not registered: run `hivepipe init`" in sandbox.run(name, expect=1)


def test_a_planted_link_is_not_followed(sandbox: Sandbox) -> None:
    target = sandbox.folder / "target"
    target.mkdir()
    (sandbox.project / ".hive-mind").symlink_to(target)
    assert "not registered" in sandbox.run("move-home", "--in-tree", expect=1)
    sandbox.run("up", "-d")
    assert "is a link" in sandbox.run("move-home", "--in-tree", expect=1)
    assert list(target.iterdir()) == []


def test_no_record_has_a_path_with_a_line_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(tmp_path / "state"))
    project = str(tmp_path / "a\nstate=off")
    with pytest.raises(RegistrationError, match="line break"):
        registration.register(project, Stack(f"{project}/.hive-mind", "/s"), "/p")
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_keeps_no_modes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(tmp_path / "state"))
    monkeypatch.setattr(os, "chmod", lambda *_: None)  # as NTFS without a map of users does
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    with pytest.raises(RegistrationError, match="other users can enter"):
        registration.register(str(tmp_path / "project"), Stack(str(home), "/s"), "/p")
    assert not registration.read_record(str(home))


def test_the_procfile_equals_the_process_table() -> None:
    assert (ROOT / "Procfile").read_text() == processes.procfile()
    for entry in processes.PROCESSES:
        assert processes.script_path(entry).is_file()


def test_the_process_of_redis_imports_no_client() -> None:
    """This makes a stack ready 0.1 s earlier."""
    (entry,) = [entry for entry in processes.PROCESSES if entry.name == "redis"]
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-I", "-c", code, str(processes.script_path(entry))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "hivepipe.stack.redis_server" in done.stdout.split()
    assert "redis" not in done.stdout.split()


def test_supervisord_starts_isolated_and_without_a_warning() -> None:
    done = outcome_of(
        [sys.executable, "-I", "-W", "error", "-m", "supervisor.supervisord", "--version"],
        check=True,
    )
    assert done.stderr == ""
