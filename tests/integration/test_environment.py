"""A stack gets the environment that its user's commands had, never the one of a hook."""

from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import until
from tests.installed import User


@pytest.fixture
def shared(user: User) -> User:
    """A user whose projects share the default home, at rest."""
    user.hivepipe("init", "--user")
    return user


def settings(user: User) -> Path:
    return user.home / ".claude" / "settings.json"


def environments(user: User) -> list[dict[str, str]]:
    """Return the environment of each process of the stack, but Redis, which writes over its own."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if "workers/" in words and process.cwd().startswith(str(user.home)):
                found.append(process.environ())
        except psutil.Error:
            continue
    return found


def test_a_project_that_starts_the_shared_stack_says_nothing_of_its_environment(
    shared: User,
) -> None:
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


def test_where_the_users_folders_are_is_remembered_once(user: User) -> None:
    user.hivepipe("init")
    first = (user.recorded / "environment").read_text()
    assert f"HOME={user.home}\n" in first
    assert "CLAUDE" not in first
    user.hivepipe("restart", XDG_CONFIG_HOME="/elsewhere", TZ="Asia/Kathmandu")
    now = (user.recorded / "environment").read_text()
    assert "/elsewhere" not in now
    assert "TZ=Asia/Kathmandu\n" in now
