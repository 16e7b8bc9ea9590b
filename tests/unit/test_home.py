"""Locating a project's home: records, worktrees, HIVEPIPE_HOME, sockets and small files."""

import posix
import pwd
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hivepipe import home
from hivepipe.home import locate
from hivepipe.queue.spool import make_private_folder
from tests.archive_scene import full_disk

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
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": "/nonexistent"}
    env |= dict.fromkeys(names, "x")
    subprocess.run(["git", *map(str, arguments)], check=True, capture_output=True, env=env)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real checkout with a linked worktree `tree` beside it, and one inside it."""
    folder = tmp_path_factory.mktemp("git").resolve() / "project"
    git("init", "-q", folder)
    git("-C", folder, "commit", "-q", "--allow-empty", "-m", "first")
    for tree in (folder.parent / "tree", folder / ".claude" / "worktrees" / "fix"):
        git("-C", folder, "worktree", "add", "-q", tree)
        (tree / "src").mkdir()
    return folder


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
    register(project, home=f"{project}/.hive-mind", socket="/x/a=b", python="/py", state="down")
    place = locate(str(project / below))
    assert place.project == str(project)
    assert place.home == f"{project}/.hive-mind"
    assert place.logs == f"{project}/.claude-state/logs"
    assert (place.socket, place.python, place.state) == ("/x/a=b", "/py", "down")


def test_the_nearest_record_wins_and_no_link_hides_it(
    register: Callable[..., None], project: Path, tmp_path: Path
) -> None:
    register(str(project) + "-2", home="/of a neighbour with a longer name")
    assert locate(str(project)).home == f"{home.state_folder()}/default"
    register(project, home="/outer")
    register(project / "src", home="/inner")
    (tmp_path / "link").symlink_to(project)
    for path in (project, tmp_path / "link"):
        assert locate(str(path / "src" / "deep")).home == "/inner"
        assert (locate(str(path)).home, locate(str(path)).project) == ("/outer", str(project))


def test_a_damaged_record_is_no_record_and_nothing_inside_a_folder_is_trusted(
    environ: Environ, project: Path
) -> None:
    (project / ".hive-mind").mkdir()
    (project / ".hive-mind" / "record").write_text("home=/evil\nstate=off\n")
    path = Path(home.record_path(str(project)))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe\0 nonsense without any sign")
    place = locate(str(project))
    assert (place.home, place.state) == (f"{home.state_folder()}/default", "on")


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
    register(project, home="/h", socket="/h.sock", state="off")
    register(other, socket="/other.sock", python="/other-py")
    environ[b"HIVEPIPE_HOME"] = bytes(other)
    place = locate(str(project / "src"))
    assert (place.project, place.home) == (str(project), str(other))
    assert (place.socket, place.python) == ("/other.sock", "/other-py")
    assert place.logs == f"{other}/logs"
    assert place.state == "off", "a project that opted out stays out"
    environ[b"HIVEPIPE_HOME"] = b"/somewhere/without a record"
    place = locate(str(project))
    assert (place.home, place.state) == ("/somewhere/without a record", "off")
    assert place.socket == f"{home.runtime_folder(place.home)}/redis.sock"


@pytest.mark.parametrize(
    ("value", "path"), [(b"~/hive", "user/hive"), (b"", "state/hivepipe/default")]
)
def test_hivepipe_home_may_begin_with_a_tilde_or_be_empty(
    environ: Environ, project: Path, tmp_path: Path, value: bytes, path: str
) -> None:
    environ[b"HIVEPIPE_HOME"] = value
    assert locate(str(project)).home == f"{tmp_path}/{path}"


# ---- worktrees
@pytest.mark.parametrize("path", ["../tree", "../tree/src", ".claude/worktrees/fix", "."])
def test_a_worktree_counts_as_its_main_checkout(
    register: Callable[..., None], checkout: Path, path: str
) -> None:
    assert locate(str(checkout / path)).project == str(checkout)
    register(checkout, home=f"{checkout}/.hive-mind")
    place = locate(str(checkout / path))
    assert (place.project, place.home) == (str(checkout), f"{checkout}/.hive-mind")
    assert place.logs == f"{checkout}/.claude-state/logs"


def test_a_git_file_that_points_at_another_checkout_is_refused(
    register: Callable[..., None], checkout: Path, tmp_path: Path
) -> None:
    """The `.git` file of a moved copy of a worktree is refused, too."""
    register(checkout, home="/victim")
    hostile = tmp_path.resolve() / "hostile"
    hostile.mkdir()
    of_tree = f"{checkout}/.git/worktrees/tree"
    for target in (of_tree, f"{of_tree}-none", f"{checkout}/.git", str(checkout), "", "\0"):
        (hostile / ".git").write_text(f"gitdir: {target}\n")
        place = locate(str(hostile))
        assert (place.project, place.home) == (str(hostile), f"{home.state_folder()}/default")
    assert (checkout.parent / "tree" / ".git").read_text() == f"gitdir: {of_tree}\n"


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
        with pytest.raises(PermissionError, match=f"{folder} must be a folder that only you"):
            make_private_folder(str(folder))


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


def test_finding_the_real_path_keeps_the_working_directory_also_if_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert home.real_path("a") == f"{tmp_path.resolve()}/a"
    assert posix.getcwd() == str(tmp_path.resolve())
    assert home.real_path(str(tmp_path / "gone") + "/") == f"{tmp_path}/gone"
    assert home.real_path("\0") == f"{tmp_path.resolve()}/\0"
    assert posix.getcwd() == str(tmp_path.resolve())
    monkeypatch.chdir(tmp_path / "a")
    (tmp_path / "a").rmdir()
    assert home.real_path(str(tmp_path)) == str(tmp_path.resolve())
    assert home.real_path("x") == home.absolute("x") == "/x"


# ---- small files
def test_a_small_file_is_replaced_whole_with_mode_0600(tmp_path: Path) -> None:
    path = tmp_path / "small"
    home.write_small(str(path), "long old text")
    home.write_small(str(path), "new \udcff")
    with full_disk(8), pytest.raises(OSError, match="too large"):
        home.write_small(str(path), "longer than the disk\n")
    assert home.read_small(str(path)) == "new \udcff"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_an_unreadable_small_file_is_empty(tmp_path: Path) -> None:
    posix.mkfifo(str(tmp_path / "pipe"))
    for path in ("none", "pipe", ".", "\0"):
        assert home.read_small(f"{tmp_path}/{path}") == ""


def test_folders_are_made_with_their_parents_and_mode_0700(tmp_path: Path) -> None:
    before = posix.umask(0)
    try:
        for _ in range(2):
            home.make_folders(f"{tmp_path}/a/b/c")
    finally:
        posix.umask(before)
    for path in ("a", "a/b", "a/b/c"):
        assert (tmp_path / path).stat().st_mode & 0o777 == 0o700
    with pytest.raises(OSError, match="nope"):  # the kernel says "not found", though /proc is there
        home.make_folders("/proc/nope/deeper")
