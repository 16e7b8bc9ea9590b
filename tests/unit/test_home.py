"""Locating a project's home: records, worktrees, HIVEPIPE_HOME, sockets and small files."""

import posix
import pwd
import resource
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hivepipe import home
from hivepipe.home import locate

Environ = dict[bytes, bytes]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environ:
    """Return the environment that hivepipe reads. Tests may change it."""
    (tmp_path / "user").mkdir()
    seen = {
        b"HOME": bytes(tmp_path / "user"),
        b"XDG_STATE_HOME": bytes(tmp_path / "state"),
        b"XDG_RUNTIME_DIR": b"/run/user/1000",
    }
    monkeypatch.setattr(posix, "environ", seen)
    return seen


@pytest.fixture
def register(environ: Environ) -> Callable[..., None]:
    def write(folder: Path | str, **fields: str) -> None:
        path = home.record_path(str(folder))
        home.make_folders(path.rsplit("/", 1)[0])
        home.write_small(path, "".join(f"{key}={value}\n" for key, value in fields.items()))

    return write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / "src" / "deep").mkdir(parents=True)
    return folder


def git(*arguments: str | Path) -> None:
    names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    subprocess.run(
        ["git", *map(str, arguments)],
        check=True,
        capture_output=True,
        timeout=60,
        env={
            "PATH": "/usr/bin:/bin:/usr/local/bin",
            "HOME": "/nonexistent",
            **dict.fromkeys(names, "x"),
        },
    )


@pytest.fixture
def worktree(project: Path) -> Path:
    """A real linked worktree beside the project."""
    git("init", "-q", project)
    git("-C", project, "commit", "-q", "--allow-empty", "-m", "first")
    tree = project.parent / "tree"
    git("-C", project, "worktree", "add", "-q", tree)
    (tree / "src").mkdir()
    return tree


# ---- records


def test_without_a_record_the_home_is_the_users_default_one(
    environ: Environ, project: Path, tmp_path: Path
) -> None:
    place = locate(str(project))
    assert place.project == str(project)
    assert place.home == f"{tmp_path}/state/hivepipe/default"
    assert place.logs == f"{place.home}/logs"
    assert (place.state, place.python) == ("on", "")
    assert not (tmp_path / "state").exists()
    assert list(project.iterdir()) == [project / "src"]


@pytest.mark.parametrize("below", ["", "src", "src/deep", "src/../src/deep", "gone"])
def test_the_record_of_the_root_or_of_an_ancestor_counts(
    register: Callable[..., None], project: Path, below: str
) -> None:
    register(
        project, home=f"{project}/.hive-mind", socket="/x/redis.sock", python="/py", state="on"
    )
    place = locate(str(project / below))
    assert place.project == str(project)
    assert place.home == f"{project}/.hive-mind"
    assert place.logs == f"{project}/.claude-state/logs"
    assert (place.socket, place.python, place.state) == ("/x/redis.sock", "/py", "on")


def test_the_nearest_record_wins(register: Callable[..., None], project: Path) -> None:
    register(project, home="/outer")
    register(project / "src", home="/inner")
    assert locate(str(project / "src" / "deep")).home == "/inner"
    assert locate(str(project)).home == "/outer"


def test_a_record_of_a_neighbour_with_a_longer_name_does_not_count(
    register: Callable[..., None], project: Path
) -> None:
    register(str(project) + "-2", home="/neighbour")
    assert locate(str(project)).home != "/neighbour"


def test_a_link_to_a_project_is_the_project(
    register: Callable[..., None], project: Path, tmp_path: Path
) -> None:
    register(project, home="/h")
    (tmp_path / "link").symlink_to(project)
    assert locate(str(tmp_path / "link")).project == str(project)
    assert locate(str(tmp_path / "link" / "src")).home == "/h"


def test_nothing_inside_a_folder_is_trusted_without_a_record(
    environ: Environ, project: Path
) -> None:
    (project / ".hive-mind").mkdir()
    (project / ".hive-mind" / "record").write_text("home=/evil\nstate=off\n")
    place = locate(str(project))
    assert (place.home, place.state) == (f"{home.state_folder()}/default", "on")


@pytest.mark.parametrize("state", ["on", "down", "off"])
def test_the_state_is_that_of_the_record(
    register: Callable[..., None], project: Path, state: str
) -> None:
    register(project, home="/h", state=state)
    assert locate(str(project / "src")).state == state


def test_a_damaged_record_is_no_record(environ: Environ, project: Path) -> None:
    path = Path(home.record_path(str(project)))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe\0 nonsense without any sign")
    assert locate(str(project)).home == f"{home.state_folder()}/default"


def test_a_value_may_hold_an_equals_sign(register: Callable[..., None], project: Path) -> None:
    register(project, home="/h=1/x=2")
    assert locate(str(project)).home == "/h=1/x=2"


def test_the_default_home_has_a_record_of_its_own(
    register: Callable[..., None], project: Path
) -> None:
    register(f"{home.state_folder()}/default", socket="redis://127.0.0.1:7000/1", python="/py")
    place = locate(str(project))
    assert (place.socket, place.python) == ("redis://127.0.0.1:7000/1", "/py")


# ---- HIVEPIPE_HOME


def test_hivepipe_home_overrides_the_records_home(
    register: Callable[..., None], environ: Environ, project: Path, tmp_path: Path
) -> None:
    other = tmp_path.resolve() / "other"
    other.mkdir()
    register(project, home="/h", socket="/h.sock")
    register(other, socket="/other.sock", python="/other-py")
    environ[b"HIVEPIPE_HOME"] = bytes(other)
    place = locate(str(project / "src"))
    assert (place.project, place.home) == (str(project), str(other))
    assert (place.socket, place.python) == ("/other.sock", "/other-py")
    assert place.logs == f"{other}/logs"


def test_hivepipe_home_without_a_record_has_a_socket_of_its_own(
    register: Callable[..., None], environ: Environ, project: Path
) -> None:
    register(project, home="/h", socket="/h.sock")
    environ[b"HIVEPIPE_HOME"] = b"/somewhere/else"
    place = locate(str(project))
    assert place.home == "/somewhere/else"
    assert place.socket == f"{home.runtime_folder('/somewhere/else')}/redis.sock"


def test_hivepipe_home_may_begin_with_a_tilde(
    environ: Environ, project: Path, tmp_path: Path
) -> None:
    environ[b"HIVEPIPE_HOME"] = b"~/hive"
    assert locate(str(project)).home == f"{tmp_path}/user/hive"


def test_an_empty_hivepipe_home_counts_as_unset(environ: Environ, project: Path) -> None:
    environ[b"HIVEPIPE_HOME"] = b""
    assert locate(str(project)).home == f"{home.state_folder()}/default"


def test_a_project_that_opted_out_stays_out_whatever_its_home(
    register: Callable[..., None], environ: Environ, project: Path
) -> None:
    register(project, home="/h", state="off")
    environ[b"HIVEPIPE_HOME"] = b"/somewhere/else"
    assert locate(str(project)).state == "off"


# ---- worktrees


@pytest.mark.parametrize("below", ["", "src"])
def test_a_linked_worktree_counts_as_its_main_checkout(
    environ: Environ, project: Path, worktree: Path, below: str
) -> None:
    assert locate(str(worktree / below)).project == str(project)


def test_a_linked_worktree_shares_the_home_of_its_main_checkout(
    register: Callable[..., None], project: Path, worktree: Path
) -> None:
    register(project, home=f"{project}/.hive-mind")
    place = locate(str(worktree / "src"))
    assert (place.project, place.home) == (str(project), f"{project}/.hive-mind")
    assert place.logs == f"{project}/.claude-state/logs"


def test_a_worktree_inside_its_main_checkout_counts_as_it_too(
    register: Callable[..., None], project: Path, worktree: Path
) -> None:
    inner = project / ".claude" / "worktrees" / "fix"
    git("-C", project, "worktree", "add", "-q", inner)
    register(project, home="/h")
    assert (locate(str(inner)).project, locate(str(inner)).home) == (str(project), "/h")


def test_a_plain_checkout_is_itself(environ: Environ, project: Path, worktree: Path) -> None:
    assert locate(str(project)).project == str(project)


def test_a_git_file_that_points_at_another_users_checkout_is_refused(
    register: Callable[..., None], project: Path, worktree: Path, tmp_path: Path
) -> None:
    register(project, home="/victim")
    hostile = tmp_path.resolve() / "hostile"
    hostile.mkdir()
    (hostile / ".git").write_text(f"gitdir: {project}/.git/worktrees/tree\n")
    place = locate(str(hostile))
    assert (place.project, place.home) == (str(hostile), f"{home.state_folder()}/default")


def test_a_git_file_that_points_at_no_worktree_is_refused(
    register: Callable[..., None], project: Path, worktree: Path, tmp_path: Path
) -> None:
    register(project, home="/victim")
    hostile = tmp_path.resolve() / "hostile"
    hostile.mkdir()
    for target in (f"{project}/.git/worktrees/none", f"{project}/.git", str(project), "", "\0"):
        (hostile / ".git").write_text(f"gitdir: {target}\n")
        assert locate(str(hostile)).project == str(hostile)


def test_a_moved_copy_of_a_worktree_is_refused(
    register: Callable[..., None], project: Path, worktree: Path, tmp_path: Path
) -> None:
    register(project, home="/h")
    copy = tmp_path.resolve() / "copy"
    copy.mkdir()
    (copy / ".git").write_bytes((worktree / ".git").read_bytes())
    assert locate(str(worktree)).home == "/h"
    assert locate(str(copy)).home != "/h"


def test_a_submodule_is_a_project_of_its_own(environ: Environ, project: Path) -> None:
    (project / "src" / ".git").write_text(f"gitdir: {project}/.git/modules/src\n")
    assert locate(str(project / "src")).project == str(project / "src")


# ---- folders and sockets


@pytest.mark.parametrize("runtime", [b"/run/user/1000", b"", b"relative", b"/" + b"x" * 60])
def test_the_socket_path_is_short_however_deep_the_home_is(
    environ: Environ, runtime: bytes
) -> None:
    environ[b"XDG_RUNTIME_DIR"] = runtime
    environ[b"HIVEPIPE_HOME"] = b"/deep" * 60
    assert len(locate("/").socket.encode()) < 90


def test_two_homes_have_two_sockets(environ: Environ) -> None:
    assert home.runtime_folder("/a") != home.runtime_folder("/b")
    assert home.runtime_folder("/a") == home.runtime_folder("/a")


@pytest.mark.parametrize("state", [b"", b"relative/path"])
def test_a_state_folder_that_is_not_absolute_is_the_users_own(
    environ: Environ, tmp_path: Path, state: bytes
) -> None:
    environ[b"XDG_STATE_HOME"] = state
    assert home.state_folder() == f"{tmp_path}/user/.local/state/hivepipe"


def test_without_home_the_users_folder_comes_from_the_password_database(environ: Environ) -> None:
    del environ[b"HOME"]
    assert home.user_folder() == pwd.getpwuid(posix.geteuid()).pw_dir


def test_a_private_folder_is_a_real_one_that_nobody_else_can_enter(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    assert home.is_private_folder(str(folder))
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o600)
    for other in ("link", "file", "none"):
        assert not home.is_private_folder(str(tmp_path / other))
    for mode in (0o750, 0o701, 0o777):
        folder.chmod(mode)
        assert not home.is_private_folder(str(folder))


def test_threads_find_real_paths_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [str(tmp_path.resolve() / name) for name in "abcdefgh"]
    for folder in folders:
        Path(folder).mkdir()
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(home.real_path, folders * 500)] == folders * 500
    assert Path.cwd() == tmp_path.resolve()


def test_a_signal_handler_finds_a_real_path_while_another_is_being_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a hook's deadline, when chdir waits for a file server."""
    slow, other = (str(tmp_path.resolve() / name) for name in ("slow", "other"))
    for folder in (slow, other):
        Path(folder).mkdir()
    monkeypatch.chdir(tmp_path)
    found: list[str] = []

    def change_slowly(folder: str) -> None:
        change(folder)
        if folder == slow:
            signal.raise_signal(signal.SIGUSR1)

    def give_up(*_signal: object) -> None:
        raise TimeoutError

    change = posix.chdir
    monkeypatch.setattr(posix, "chdir", change_slowly)
    before = [
        signal.signal(signal.SIGUSR1, lambda *_: found.append(home.real_path(other))),
        signal.signal(signal.SIGALRM, give_up),
    ]
    signal.alarm(5)
    try:
        assert home.real_path(slow) == slow
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGALRM, before[1])
    assert found == [other]
    assert posix.getcwd() == str(tmp_path.resolve())


def test_finding_the_real_path_keeps_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert home.real_path("a") == f"{tmp_path.resolve()}/a"
    assert posix.getcwd() == str(tmp_path.resolve())
    assert home.real_path(str(tmp_path / "gone") + "/") == f"{tmp_path}/gone"
    assert home.real_path("\0") == f"{tmp_path.resolve()}/\0"
    assert posix.getcwd() == str(tmp_path.resolve())


def test_paths_are_resolved_in_a_deleted_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert home.real_path(str(tmp_path)) == str(tmp_path.resolve())
    assert home.real_path("x") == "/x"
    assert home.absolute("x") == "/x"


# ---- small files


def test_a_small_file_is_replaced_whole_with_mode_0600(tmp_path: Path) -> None:
    path = tmp_path / "small"
    home.write_small(str(path), "long old text")
    home.write_small(str(path), "new \udcff")
    assert home.read_small(str(path)) == "new \udcff"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_small_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "record"
    home.write_small(str(path), "old\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            home.write_small(str(path), "longer than that\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [entry.name for entry in tmp_path.iterdir()] == ["record"]
    assert path.read_text() == "old\n"


def test_an_unreadable_small_file_is_empty(tmp_path: Path) -> None:
    posix.mkfifo(str(tmp_path / "pipe"))
    for path in ("none", "pipe", ".", "\0"):
        assert home.read_small(f"{tmp_path}/{path}") == ""


def test_the_reason_why_a_folder_cannot_be_made_is_reported() -> None:
    with pytest.raises(OSError, match="nope"):  # the kernel says "not found", though /proc is there
        home.make_folders("/proc/nope/deeper")


def test_folders_are_made_with_their_parents_and_mode_0700(tmp_path: Path) -> None:
    before = posix.umask(0)
    try:
        home.make_folders(f"{tmp_path}/a/b/c")
        home.make_folders(f"{tmp_path}/a/b/c")
    finally:
        posix.umask(before)
    for path in ("a", "a/b", "a/b/c"):
        assert (tmp_path / path).stat().st_mode & 0o777 == 0o700
