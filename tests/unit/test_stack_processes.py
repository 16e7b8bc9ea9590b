"""Listing the processes of stacks: how often they are read, and where /proc is missing."""

import fcntl
import os
import posix
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.doctor.facts import Facts
from hivepipe.doctor.stack import supervised
from hivepipe.errors import StackError
from hivepipe.home import Place, locate, read_record, record_path
from hivepipe.reading.homes import KnownHome
from hivepipe.stack import kernel, lifecycle, registration
from hivepipe.stack.all_stacks import known_stacks
from hivepipe.stack.lock import acquire_lock, is_locked_file, locked_folder
from hivepipe.stack.project_records import record_files, records
from hivepipe.stack.runtime_folder import Stack, make_private
from hivepipe.stack.stack_processes import SUPERVISOR, ProcessTable, stack_processes
from hivepipe.stack.starter import FIRST_WAIT_SECS, read_starting
from hivepipe.web import health_view
from hivepipe.web.health_view import health
from hivepipe.web.queues_view import queues
from hivepipe.web.view_query import Content, ViewQuery


def counted(module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by each call of a function."""
    calls: list[int] = []
    call = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: calls.append(1) or call(*given))
    return calls


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reads /proc")
@pytest.mark.parametrize("proc", ["missing", "."])
def test_without_proc_the_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proc: str
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / proc))
    with pytest.raises(StackError, match="mount /proc"):
        stack_processes(Stack.of(locate(str(tmp_path))))


@pytest.mark.parametrize("view", [health, queues])
def test_a_view_of_many_stopped_stacks_reads_the_processes_once(
    view: Callable[[ViewQuery], Content], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = counted(psutil, "process_iter", monkeypatch)
    monkeypatch.setattr(health_view._checks, "get", lambda *_: None)  # doctor reads them too
    homes = [KnownHome(f"k{number}", str(tmp_path / f"{number}"), "") for number in range(3)]
    assert len(view(ViewQuery(homes))["stacks"]) == 3
    assert len(reads) == 1


@pytest.fixture
def six_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The homes of six registered projects, whose stacks never ran."""
    monkeypatch.setattr(posix, "environ", {b"HOME": bytes(tmp_path)})
    monkeypatch.setenv("HOME", str(tmp_path))
    homes = [tmp_path / f"home{number}" for number in range(6)]
    for home in homes:
        home.mkdir()
        stack = Stack(str(home), str(home / "run"))
        registration.register(str(home / "project"), stack, sys.executable)
    return [str(home) for home in homes]


STATUS = "from hivepipe.cli.main import main; main(['status'])"
SUPERVISORD = [sys.executable, "-c", "import time; time.sleep(60)", "supervisor.supervisord"]


@contextmanager
def started(
    stack: Stack, name: str, command: Sequence[str] = ("sleep", "60")
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process with the lock of a program, as a Procfile starts it, without a supervisor."""
    make_private(stack.folder)
    lock = acquire_lock(stack.lock(name), 0)
    process = subprocess.Popen(command, pass_fds=[lock])
    os.close(lock)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_down_all_reads_the_processes_and_the_records_once(
    six_homes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = counted(psutil, "process_iter", monkeypatch)
    reads = counted(registration, "read_small", monkeypatch)
    done = CliRunner().invoke(main, ["down", "--all"])
    assert done.output.split() == six_homes
    assert {each["state"] for each in records()} == {"down"}
    assert len(scans) == 1
    assert len(reads) == len(record_files()) == 12


def test_down_all_stops_the_other_homes_beside_a_bad_record(six_homes: list[str]) -> None:
    bad = six_homes[2]
    Path(record_path(bad)).write_text(f"home={bad}\nstate=on\njunk={'x' * 4096}\n")
    done = CliRunner().invoke(main, ["down", "--all"])
    assert done.exit_code == 1
    assert f"{bad}: use shorter paths, the record is too long: {bad}" in done.output
    assert {each["state"] for each in records() if each["home"] != bad} == {"down"}


def test_a_stack_that_another_process_locks_is_not_recorded_as_down(
    six_homes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Stack.of(locate(six_homes[2]))
    monkeypatch.setattr(lifecycle, "TURN_SECS", 0)
    with started(running, "redis"), locked_folder(running.home, 0):  # as `up` does
        done = CliRunner().invoke(main, ["down", "--all"])
    assert done.exit_code == 1
    assert f"another process of hivepipe has locked {running.home}" in done.output
    assert {each["home"] for each in records() if each["state"] == "on"} == {running.home}


@pytest.mark.parametrize("name", ["redis", "writer"])
def test_a_program_that_starts_after_the_processes_were_read_is_stopped_too(
    six_homes: list[str], name: str
) -> None:
    stack, table = Stack.of(locate(six_homes[2])), ProcessTable()
    assert not table.of(stack)
    with started(stack, name) as program:
        assert list(lifecycle.take_all_down([stack], table)) == [(stack, None)]
        assert program.wait(1) == -signal.SIGTERM


def test_a_supervisor_of_another_home_is_found_by_its_lock(six_homes: list[str]) -> None:
    """1.0.0 records a home in the work tree with the runtime folder of the running stack."""
    stack = Stack.of(locate(six_homes[0]))
    with started(stack, SUPERVISOR):  # a command that starts or stops the stack
        assert not stack_processes(stack)
    with started(stack, SUPERVISOR, SUPERVISORD) as supervisor:
        lifecycle.take_down(stack)
        assert supervisor.wait(1) == -signal.SIGTERM


def test_a_stack_that_cannot_be_seen_is_not_recorded_as_down(six_homes: list[str]) -> None:
    """A container may share the folders of its host, but sees none of its processes."""
    stack = Stack.of(locate(six_homes[0]))
    with claimed_in_another_namespace(stack.home):
        with pytest.raises(StackError, match="run `hivepipe down` there"):
            lifecycle.take_down(stack)
        done = CliRunner().invoke(main, ["down", "--all"])
        assert done.exit_code == 1
        assert sorted(done.stdout.split()) == six_homes[1:]
        assert read_record(stack.home)["state"] == "on"
        with started(stack, SUPERVISOR, SUPERVISORD) as supervisor:  # a host sees its containers
            lifecycle.take_down(stack)
            assert supervisor.wait(1) == -signal.SIGTERM


def test_a_stack_of_another_pid_namespace_is_refused_until_its_supervisor_ends(
    six_homes: list[str],
) -> None:
    home = six_homes[0]
    with claimed_in_another_namespace(home):
        os.utime(f"{home}/kernel", (0, 0))  # the writer hangs
        with pytest.raises(StackError, match="run `hivepipe down` there"):
            kernel.refuse_another(home)
    os.utime(f"{home}/kernel")
    kernel.refuse_another(home)


def test_a_stack_in_another_container_is_healthy_here(six_homes: list[str]) -> None:
    """A hook here cannot start a stack, and need not: the other stack stores the events."""
    stack = Stack.of(locate(six_homes[0]))
    make_private(stack.folder)
    env = {"HOME": os.path.dirname(stack.home), "HIVEPIPE_HOME": stack.home}
    command = [sys.executable, "-I", "-m", "hivepipe.stack.starter", f"{stack.folder}/starting"]
    with claimed_in_another_namespace(stack.home):
        for _ in range(2):
            assert subprocess.run(command, env=env, check=False).returncode == 1
        assert read_starting(stack.folder).not_before < time.time() + FIRST_WAIT_SECS
        with started(stack, SUPERVISOR, SUPERVISORD):  # a host sees its containers
            status = [sys.executable, "-I", "-c", STATUS]
            shown = subprocess.run(status, env=env, capture_output=True, text=True, check=True)
            (found,) = supervised(Facts(locate(stack.home), stack))
        states = {each.stack.home: each.state for each in known_stacks(ProcessTable())}
    machine = socket.gethostname()
    assert f"runs on   {machine}, another machine or container" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "healthy"
    assert found.is_note
    assert machine in found.text
    assert states == dict.fromkeys(six_homes, "resting") | {stack.home: "running"}


def test_what_is_refused_beside_another_container_keeps_its_sockets(six_homes: list[str]) -> None:
    """Hooks there would not find them, while each container has a runtime folder of its own."""
    home = Path(six_homes[0])
    make_private(runtime := str(home.parent / "other"))
    env = {"HOME": str(home.parent), "HIVEPIPE_HOME": str(home), "XDG_RUNTIME_DIR": runtime}
    before = read_record(str(home))
    (project := home.parent / "shop").mkdir()
    commands = [
        ["hivepipe.stack.starter", f"{runtime}/starting"],
        ["hivepipe.cli.main", "up", "-d"],
        ["hivepipe.cli.main", "init", "--no-probe"],
    ]
    with claimed_in_another_namespace(str(home)):
        codes = [
            subprocess.run(
                [sys.executable, "-I", "-m", *command], env=env, cwd=project, check=False
            ).returncode
            for command in commands
        ]
    assert codes == [1, 1, 0]
    after = read_record(str(home))
    assert (after["socket"], after["runtime"]) == (before["socket"], before["runtime"])


def test_a_supervisor_without_a_lock_on_its_claim_counts_for_two_minutes(
    six_homes: list[str],
) -> None:
    """A container may run an older version of hivepipe than its host."""
    home = six_homes[0]
    with claimed_in_another_namespace(home):
        pass
    claim = Path(home, "kernel")
    claim.write_text(f"{claim.read_text()}\n")
    with pytest.raises(StackError, match="run `hivepipe down` there"):
        lifecycle.take_down(Stack.of(locate(home)))
    os.utime(claim, (0, 0))
    kernel.refuse_another(home)


def test_the_claim_of_an_ended_stack_is_seen_as_unlocked_on_a_read_only_disk() -> None:
    program = os.path.realpath(sys.executable)  # as it runs, nobody can open it for writing
    with pytest.raises(OSError, match=r"busy|Permission"):
        os.open(program, os.O_RDWR)
    assert not is_locked_file(program)


def test_two_who_look_at_a_lock_do_not_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    path.touch()
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not is_locked_file(str(path))


@contextmanager
def claimed_in_another_namespace(home: str) -> Iterator[None]:
    lock = kernel.claim(home)
    try:
        claim = Path(home, "kernel")
        machine, boot, _ = claim.read_text().splitlines()
        claim.write_text(f"{machine}\n{boot}\npid:[1]")
        yield
    finally:
        os.close(lock)


def test_the_processes_of_another_supervisord_miss_no_supervisor(
    six_homes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = six_homes[0]
    stack = Stack(home, f"{home}/run")
    missed = ["these processes run without their supervisor: redis"]
    urls = {"unix:///theirs.sock": [], f"unix://{stack.supervisor_socket}": missed}
    monkeypatch.setenv("SUPERVISOR_ENABLED", "1")
    for url, expected in urls.items():
        monkeypatch.setenv("SUPERVISOR_SERVER_URL", url)
        with started(stack, "redis"):
            found = supervised(Facts(Place(home, home, {}), stack))
            assert [finding.text for finding in found] == expected
            listed = {each.stack.home: each.state for each in known_stacks(ProcessTable())}
            assert listed[home] == ("broken" if expected else "running")


@pytest.mark.skipif(sys.platform != "linux", reason="the form of the attribute is Linux's")
def test_private_folders_ignore_a_default_access_list(tmp_path: Path) -> None:
    """With such a list, as in homes that a group shares, the kernel ignores the umask."""
    all_for_everyone = (struct.pack("<HHI", tag, 7, 0xFFFFFFFF) for tag in (0x01, 0x04, 0x20))
    attribute = struct.pack("<I", 2) + b"".join(all_for_everyone)
    try:
        os.setxattr(tmp_path, "system.posix_acl_default", attribute)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    make_private(f"{tmp_path}/.local/state/hivepipe")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")} == {0o700}
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="Not a directory"):
        make_private(f"{tmp_path}/file")
