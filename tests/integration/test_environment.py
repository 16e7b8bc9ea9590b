"""A stack gets the environment of its user's commands, never that of a hook."""

import shutil
import subprocess
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import ROOT, until
from tests.installed import User
from tests.native import BUILT


@pytest.fixture
def shared(user: User) -> User:
    """A user whose projects share the default home; its stack does not run."""
    user.hivepipe("init", "--user")
    return user


def settings(user: User) -> Path:
    return user.home / ".claude" / "settings.json"


def environments(user: User) -> list[dict[str, str]]:
    """Return the environment of each Python process of the stack; Redis overwrites its own."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if "workers/" in words and process.cwd().startswith(str(user.home)):
                found.append(process.environ())
        except psutil.Error:
            continue
    return found


def test_a_project_that_starts_the_shared_stack_does_not_set_its_environment(shared: User) -> None:
    user = shared
    evil = user.home / "evil"
    (evil / "hivepipe").mkdir(parents=True)
    (evil / "bin").mkdir()
    pwned = user.home / "pwned"
    server = evil / "bin" / "redis-server"
    server.write_text(f"#!/bin/sh\ntouch '{pwned}'\nexit 1\n")
    server.chmod(0o755)
    config = evil / "hivepipe" / "config.toml"
    config.write_text('summaries = true\nopenrouter_url = "http://127.0.0.1:9/evil"\n')
    config.chmod(0o600)
    user.own(user.home)
    before = dict(user.env)
    user.env |= {
        "XDG_CONFIG_HOME": str(evil),
        "XDG_CACHE_HOME": str(evil),
        "HIVEPIPE_REDIS_SERVER": str(server),
        "PATH": f"{evil / 'bin'}:{user.env['PATH']}",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "LD_LIBRARY_PATH": str(evil),
    }
    user.fire("SessionStart", path=settings(user), source="startup")
    user.fire("UserPromptSubmit", path=settings(user), prompt="hello", prompt_id="p1")
    user.env.clear()
    user.env |= before
    until(lambda: user.sessions(), "the stack did not start")
    assert not pwned.exists()
    found = environments(user)
    assert found
    assert not [each for each in found if "evil" in str(each) or "127.0.0.1" in str(each)]


def test_a_server_that_the_environment_names_is_not_run(user: User) -> None:
    pwned = user.home / "pwned"
    server = user.home / "evil-redis"
    server.write_text(f"#!/bin/sh\ntouch '{pwned}'\nexit 1\n")
    server.chmod(0o755)
    user.own(user.home)
    user.hivepipe("init")
    user.hivepipe("up", "-d", HIVEPIPE_REDIS_SERVER=str(server))
    assert not pwned.exists()


def test_a_stack_that_a_hook_starts_keeps_the_chosen_hook(user: User) -> None:
    """A start updates the hook, whatever the variable is in its environment."""
    if not BUILT.exists():
        pytest.skip("no native hook for this machine")
    user.hivepipe("init", HIVEPIPE_HOOK="python")
    user.fire("SessionStart", source="startup")
    until(lambda: user.sessions(), "the stack did not start")
    hook = user.home / ".local/state/hivepipe/hooks/default/hook"
    assert hook.read_bytes().startswith(b"#!")
    assert "another version" not in user.hivepipe("doctor")
    user.hivepipe("init")
    user.hivepipe("restart", HIVEPIPE_HOOK="python")  # the native hook obeys the variable itself
    assert hook.read_bytes() == BUILT.read_bytes()
    assert "another version" not in user.hivepipe("doctor", HIVEPIPE_HOOK="python")


def test_the_users_folders_are_stored_once(user: User) -> None:
    user.hivepipe("init")
    first = (user.recorded / "environment").read_text()
    assert f"HOME={user.home}\n" in first
    assert "CLAUDE" not in first
    user.hivepipe("restart", XDG_CONFIG_HOME="/elsewhere", TZ="Asia/Kathmandu")
    now = (user.recorded / "environment").read_text()
    assert "/elsewhere" not in now
    assert "TZ=Asia/Kathmandu\n" in now


def test_a_folder_of_any_name_is_remembered(user: User) -> None:
    odd = f"{user.home}/caf\udce9\u00a0bar/bin"
    user.hivepipe("init", PATH=f"{odd}:{user.env['PATH']}")
    text = (user.recorded / "environment").read_text(errors="surrogateescape")
    assert f"PATH={odd}:" in text


def test_a_locale_without_utf_8_changes_no_path(user: User) -> None:
    """Claude Code names files in UTF-8 in any locale."""
    name, locales = "de_DE.ISO-8859-1", user.home.parent
    words = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(locales / name)]
    if not shutil.which("localedef") or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no localedef or no sources of locales")
    user.env |= {"LC_ALL": name, "LOCPATH": str(locales), "HOME": str(user.home / "größe")}
    user.project = user.home / "größe" / "café"
    user.project.mkdir(parents=True)
    user.own(locales)
    launched = {"PATH": f"{user.env['PATH']}:/bin"}  # by the launcher, not by a fork
    for kind in ("native", "python"):
        user.hivepipe("init", "--probe", HIVEPIPE_HOOK=kind, **launched)
        user.hivepipe("up", "-d", **launched)
        user.fire("UserPromptSubmit", prompt=kind, prompt_id=kind)
        assert "0 events wait on disk" in user.hivepipe("status", **launched)
        user.hivepipe("down", **launched)
    assert "2 prompts" in user.hivepipe("session", "show", "s1", **launched)


@pytest.fixture
def evil(user: User) -> Path:
    """A folder of a project that Python uses as its installation if a variable names it."""
    folder = user.project / "evil"
    code = "import sysconfig; print(sysconfig.get_path('stdlib'), end='')"
    theirs = Path(user.do(user.installation.bin / "python", "-c", code).stdout)
    library = folder / "lib" / theirs.name
    shutil.copytree(theirs / "encodings", library / "encodings")
    for path in theirs.iterdir():
        if not (library / path.name).exists():
            (library / path.name).symlink_to(path)
    first = library / "encodings" / "__init__.py"
    mark = f"import posix\nposix.close(posix.open({str(user.home / 'pwned')!r}, posix.O_CREAT))\n"
    first.write_text(first.read_text().replace("import codecs\n", f"{mark}import codecs\n", 1))
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(user.installation.python)
    (folder / "pyvenv.cfg").write_text(f"home = {folder}/bin\n")
    user.own(user.project)
    user.env |= dict.fromkeys(("PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__"), f"{folder}/bin/python")
    user.do(user.installation.bin / "python", "-I", "-c", "pass")
    assert pwned(user), "the attack itself does not work"
    return folder


def pwned(user: User) -> bool:
    """Tell whether the attacker's code has run since the last call."""
    mark = user.home / "pwned"
    was_there = mark.exists()
    mark.unlink(missing_ok=True)
    return was_there


def test_no_command_and_no_stack_runs_an_attackers_python(user: User, evil: Path) -> None:
    user.hivepipe("init")
    assert not pwned(user)
    user.fire("SessionStart", source="startup")
    pwned(user)  # code can run in that process, because the project sets its environment
    until(lambda: user.sessions(), "the stack did not start")
    assert not pwned(user)
    assert "evil" not in str(environments(user))
    user.hivepipe("down")
    user.hivepipe("up", "-d")
    assert not pwned(user)
    assert "evil" not in str(environments(user))
    assert "evil" not in (user.recorded / "environment").read_text()
    program = Path(user.hooks()["Stop"][0]["command"])
    assert b"evil" not in program.read_bytes()
    assert "evil" not in program.with_name("hook.py").read_text()


def test_hooks_by_name_and_of_the_plugin_do_not_run_it(user: User, evil: Path) -> None:
    user.hivepipe("init")
    plugin = ROOT / "hooks/plugin.sh"
    path = shutil.copy(plugin, user.installation.folder / "hooks/plugin.sh")
    for has_copy in (True, False):
        if not has_copy:
            shutil.rmtree(user.home / ".local/state/hivepipe/hooks")
        for words in (
            ("hivepipe-hook", "session_start"),
            ("sh", "-c", f"hook=stop plugin={path}; . {path}"),
            ("env", "PATH=/usr/bin:/bin", "sh", "-c", f"hook=stop plugin={path}; . {path}"),
        ):
            assert user.do(*words, data="{}").returncode == 0
            assert not pwned(user), (has_copy, words)


PLANTED = ("hivepipe-hook", "python3", "python3.14", "readlink", "git", "redis-server", "claude")


def test_no_program_in_a_relative_folder_of_path_is_run(user: User) -> None:
    proof = user.home / "pwned"
    user.hivepipe("init")
    shutil.rmtree(user.home / ".local/state/hivepipe/hooks")
    for folder in (user.project, user.project / "bin"):
        folder.mkdir(exist_ok=True)
        for name in PLANTED:
            (folder / name).write_text(f"#!/bin/sh\necho {name} >> '{proof}'\n")
            (folder / name).chmod(0o755)
    link = user.home / "hivepipe"
    link.symlink_to(user.installation.bin / "hivepipe")
    by_link = user.home / "hivepipe-hook"
    by_link.symlink_to(user.installation.bin / "hivepipe-hook")
    user.own(user.home)
    path = shutil.copy(ROOT / "hooks/plugin.sh", user.installation.folder / "hooks/plugin.sh")
    orders = [f"{relative}:/usr/bin:/bin" for relative in ("bin", "./bin", ".", "")]
    for order in (*orders, "/usr/bin:/bin:bin", ":bin"):
        for words in (
            ("/bin/sh", "-c", f"hook=session_start plugin={path}; . {path}"),
            (str(link), "home"),
            (str(by_link), "session_start"),
        ):
            done = user.do("/usr/bin/env", f"PATH={order}", *words, data="{}")
            assert not proof.exists(), (order, words, done)
