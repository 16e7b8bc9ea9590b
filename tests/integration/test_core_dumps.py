"""A hivepipe process that crashes writes none of its memory to the disk."""

import os
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from tests.conftest import until
from tests.installed import AS_USER, User

SECRET = "sk-" + "ant-canary-in-an-argument"
PROGRAMS = ("-server", "writer.py", "slow.py", "scheduler.py")


@pytest.fixture(autouse=True)
def _allow_core_dumps() -> Iterator[None]:
    """Allow core dumps to whatever the test starts, as a developer's shell may."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] == 0:
        pytest.skip("no process may leave a core here")
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def core_limit(pid: int) -> str:
    """Return a process's limit on core dumps, as the kernel reports it."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (found,) = [line.split()[4:6] for line in lines if line.startswith("Max core file size")]
    return "/".join(found)


def test_no_process_of_a_stack_may_dump_core_and_a_crash_of_redis_writes_no_secret(
    user: User,
) -> None:
    assert core_limit(os.getpid()) != "0/0"
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    assert {name: core_limit(user.pid(name)) for name in PROGRAMS} == dict.fromkeys(PROGRAMS, "0/0")

    first = user.pid("-server")

    def ask() -> None:
        with redis.Redis.from_url(url) as client, suppress(redis.RedisError):
            client.eval("while true do end", 0, SECRET)

    url = user.hivepipe("url").strip()
    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: is_busy(first), "Redis is not at work")
    os.kill(first, signal.SIGSEGV)
    asking.join()
    log = user.recorded / "logs" / "redis.log"
    until(lambda: log.read_text().count("eady to accept") == 2, "Redis did not come back")
    assert SECRET not in log.read_text()
    assert not [path for path in user.home.rglob("core*") if path.is_file()]


def is_busy(pid: int) -> bool:
    """Tell whether the process has used more than 0.2 s of CPU time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) > os.sysconf("SC_CLK_TCK") / 5


@pytest.mark.parametrize(
    "module",
    ["hivepipe.summaries.asker", "hivepipe.agents.memory_server", "hivepipe.alerts.notify"],
)
def test_the_memory_of_a_process_with_a_key_is_unreadable(module: str, user: User) -> None:
    python = user.installation.bin / "python"
    process = subprocess.Popen(
        [*AS_USER, python, "-I", "-m", module],
        env=user.env,
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: core_limit(process.pid) == "0/0", "it may leave a core")
        # The kernel makes root the owner of /proc files of a process that is not dumpable.
        until(lambda: Path(f"/proc/{process.pid}/mem").stat().st_uid == 0, "open to its user")
        if AS_USER:
            done = user.do("head", "-c1", f"/proc/{process.pid}/environ")
            assert "Permission denied" in done.stderr
    finally:
        process.kill()
        process.communicate()
