"""Which Claude Code process a hook belongs to, and what is stored about it."""

import posix
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hivepipe.events import parse_event
from hivepipe.home import Place
from hivepipe.hook import instance as instances
from hivepipe.hook import intake
from hivepipe.hook.instance import Instance, forget, marked_session, remember, this_instance
from tests import payloads
from tests.payloads import SESSION, changed, encoded


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(posix, "environ", {})
    return str(tmp_path / "home")


def set_instance_id(monkeypatch: pytest.MonkeyPatch, id: str) -> None:
    monkeypatch.setattr(posix, "environ", {b"HIVEPIPE_INSTANCE_ID": id.encode()})


def processes(monkeypatch: pytest.MonkeyPatch, table: dict[int, tuple[str, int, str]]) -> None:
    """Replace the process table. The hook's parent is process 100."""
    monkeypatch.setattr(posix, "getppid", lambda: 100)
    monkeypatch.setattr(instances, "_process", lambda pid: table.get(pid, ("", 0, "")))


def test_the_instance_is_the_parent_process() -> None:
    """A child of this process looks for it, because this one's parent may be a shell."""
    code = "from hivepipe.hook.instance import this_instance; found = this_instance('/nowhere');"
    code += "print(found.key, found.id, found.pid, found.started, found.session or '-')"
    words = [sys.executable, "-c", code]
    found = subprocess.run(words, env={}, capture_output=True, text=True, check=True).stdout
    key, id, pid, started, session = found.split()
    assert (pid, key, session) == (str(posix.getpid()), str(posix.getpid()), "-")
    assert re.fullmatch(r"instance-\d{9,11}-[0-9a-f]{8}", id)
    assert started == Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    began = time.time() - uptime + int(started) / posix.sysconf("SC_CLK_TCK")
    assert abs(int(id.split("-")[1]) - began) <= 5


INITS = ("systemd", "tini", "docker-init")
# The names of the hook's parent and its parents, and the instance: 100 is the hook's parent.
FOUND = {
    **{f"{shell} env claude claude": 98 for shell in ("sh", "dash", "bash", "zsh", "busybox")},
    "sh env node claude": 98,
    "sh sh sh sh claude": 96,
    "sh sh sh sh sh claude": 100,  # more than four steps above
    **{f"{name} claude": 100 for name in ("claude", "node", "python", "tmux", "")},
    **{f"sh {init}": 100 for init in INITS},
    **dict.fromkeys(INITS, posix.getpid()),  # it adopts orphans
}


@pytest.mark.parametrize("names", FOUND)
def test_the_instance_is_the_nearest_claude_behind_shells_or_the_parent(
    home: str, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    table = {100 - n: (name, 99 - n, f"{n}") for n, name in enumerate(names.split(" "))}
    last = min(table)
    table[last] = (table[last][0], 1, "7")
    table |= {1: ("systemd", 0, "1"), posix.getpid(): ("python", 100, "9")}
    processes(monkeypatch, table)
    instance = this_instance(home)
    assert (instance.pid, instance.started) == (FOUND[names], table[FOUND[names]][2])


@pytest.mark.parametrize("name", ["claude", "node", "python", "tmux", ""])
def test_the_first_process_of_a_container_is_an_instance_if_it_is_claude_code(
    home: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(posix, "getppid", lambda: 1)
    processes_of_container = {1: (name, 0, "5"), posix.getpid(): ("python", 1, "9")}
    monkeypatch.setattr(instances, "_process", processes_of_container.__getitem__)
    assert (this_instance(home).pid == 1) == (name in ("claude", "node"))


ORPHAN = """
import os, sys, time
parent = os.getpid()
if os.fork():
    os._exit(0)  # like a Claude Code that is killed while a hook starts
while os.getppid() == parent:
    time.sleep(0.01)
from hivepipe.hook.instance import this_instance
found = this_instance('/nowhere')
print(found.pid == os.getpid(), found.started != '')
"""


def test_a_hook_whose_claude_was_killed_is_its_own_instance() -> None:
    if sys.platform != "linux":
        pytest.skip("Linux only")
    made = subprocess.run(
        [sys.executable, "-c", ORPHAN], capture_output=True, text=True, check=True, timeout=60
    )
    assert made.stdout.split() == ["True", "True"]


def test_a_process_name_may_hold_brackets_and_blanks() -> None:
    if sys.platform != "linux":
        pytest.skip("Linux only")
    code = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') (x) 1 2', 0, 0, 0);"
        "print('up', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout
        assert child.stdout.readline() == b"up\n"
        seen, parent, started = instances._process(child.pid)
    finally:
        child.communicate(timeout=60)
    assert (seen, parent) == (") (x) 1 2", posix.getpid())
    assert int(started) > 0
    assert instances._process(child.pid) == ("", 0, ""), "it is gone"


def test_a_new_start_time_under_an_old_pid_is_a_new_instance(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes(monkeypatch, {100: ("claude", 1, "1000")})
    old = this_instance(home)
    remember(home, old, "s1")
    assert (this_instance(home).id, this_instance(home).session) == (old.id, "s1")
    processes(monkeypatch, {100: ("claude", 1, "2000")})
    new = this_instance(home)
    assert new.session == ""
    assert new.id != old.id


def test_the_predecessors_marker_files_hold_the_session(home: str) -> None:
    """Only the user can read them."""
    instance = this_instance(home)
    remember(home, instance, "s1")
    files = [path for path in Path(home).rglob("*") if path.is_file()]
    texts = {str(path.relative_to(home)): path.read_text() for path in files}
    for marker in (f"sessions/.session_{instance.pid}", ".active_session"):
        assert texts.pop(marker).strip() == "s1"
    assert texts.keys() == {f"instances/{instance.key}", f"instances/{instance.key}.settings"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in files} == {0o700}


def test_another_session_moves_the_marker(home: str) -> None:
    remember(home, this_instance(home), "s1")
    remember(home, this_instance(home), "s2")
    assert this_instance(home).session == "s2"
    assert Path(home, ".active_session").read_text().strip() == "s2"


@pytest.mark.parametrize("text", ["", "garbage", "id=\npid=1", "=\n=\n", "\0" * 50, "id=x\npid=x"])
def test_a_damaged_instance_file_is_not_trusted(home: str, text: str) -> None:
    fresh = this_instance(home)
    path = Path(home, "instances", fresh.key)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    again = this_instance(home)
    assert (again.id, again.session) == (fresh.id, "")


def test_a_reader_during_a_write_sees_the_new_session_or_none(home: str) -> None:
    instance = this_instance(home)
    remember(home, instance, "an-older-and-much-longer-session")
    path = Path(home, "instances", instance.key)
    old = path.read_text()
    remember(home, instance, "s2")
    new = path.read_text()
    for end in range(len(new)):  # an interrupted write
        path.write_text(new[:end])
        assert this_instance(home).session in ("", "s2")
    path.write_text(new + old[len(new) :])  # not yet truncated
    assert this_instance(home).session == "s2"
    for marker in (".active_session", f"sessions/.session_{instance.pid}"):
        Path(home, marker).write_text("s2\n" + "an-older-and-much-longer-session\n"[3:])
        assert marked_session(home, instance) == "s2"


@pytest.mark.parametrize("id", ["../../etc/x", "a b", "..", "é", "x" * 129])
def test_a_name_that_cannot_be_a_file_is_hashed(
    home: str, monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    set_instance_id(monkeypatch, id)
    first = this_instance(home)
    assert re.fullmatch(r"instance-[0-9a-f]{16}", first.id)
    assert this_instance(home).id == first.id
    set_instance_id(monkeypatch, id + "1")
    assert this_instance(home).id != first.id


def test_named_instances_have_their_own_sessions(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id, session in (("one", "s1"), ("two", "s2")):
        set_instance_id(monkeypatch, id)
        remember(home, this_instance(home), session)
    set_instance_id(monkeypatch, "one")
    assert this_instance(home).session == "s1"
    set_instance_id(monkeypatch, "three")
    assert this_instance(home).session == ""


def test_the_marker_of_the_process_takes_precedence(home: str) -> None:
    mine = Instance("1", "i1", 1, "", "")
    other = Instance("2", "i2", 2, "", "")
    assert marked_session(home, mine) == ""
    remember(home, mine, "s1")
    remember(home, other, "s2")
    assert marked_session(home, mine) == "s1"
    assert marked_session(home, other) == "s2"
    assert marked_session(home, Instance("3", "i3", 3, "", "")) == "s2"


@pytest.mark.parametrize("text", ["", "../../x", "two words", "\0"])
def test_an_invalid_marker_is_ignored(home: str, text: str) -> None:
    mine = Instance("1", "i1", 1, "", "")
    remember(home, mine, "s1")
    Path(home, "sessions/.session_1").write_text(text)
    assert marked_session(home, mine) == "s1"
    Path(home, ".active_session").write_text(text)
    assert marked_session(home, mine) == ""
    Path(home, ".active_session").write_text("s2\n")  # a marker may end with a newline
    assert marked_session(home, mine) == "s2"


def test_the_markers_of_an_ended_session_are_removed(home: str) -> None:
    mine = Instance("1", "i1", 1, "", "")
    forget(home, mine, "s1")
    assert not Path(home).exists()
    remember(home, mine, "s1")
    forget(home, mine, "s1")
    assert not Path(home, ".active_session").exists()
    assert not Path(home, "sessions/.session_1").exists()
    assert marked_session(home, mine) == ""


def test_an_ended_session_leaves_the_markers_of_another(home: str) -> None:
    mine, other = Instance("1", "i1", 1, "", ""), Instance("2", "i2", 2, "", "")
    remember(home, mine, "s1")
    remember(home, other, "s2")
    forget(home, mine, "s1")
    assert Path(home, ".active_session").read_text().strip() == "s2"
    assert Path(home, "sessions/.session_2").read_text().strip() == "s2"
    assert not Path(home, "sessions/.session_1").exists()


def test_a_process_with_the_pid_of_an_earlier_one_counts_its_own_operations(
    tmp_path: Path,
) -> None:
    """As in a container: its Claude Code always has the same pid, and resumes the session."""
    place = Place(str(tmp_path), str(tmp_path), {})
    counts = []
    for number, id in enumerate(("instance-1-a", "instance-1-a", "instance-2-b", "instance-1-a")):
        edit = changed(payloads.POST_EDIT, tool_use_id=f"toolu_{number}")
        event = parse_event("PostToolUse", encoded(edit))
        assert event
        process = Instance("7", id, 7, "", SESSION)
        counts.append(intake._count(event, SESSION, number + 1, place, process).operations)
    assert counts == [1, 2, 1, 3], "the last was raw while the second process ran"
