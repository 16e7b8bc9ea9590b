"""Commands that the stack's own Redis refuses from clients and in its append-only file."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from hivepipe.stack.ping import answers
from hivepipe.stack.redis_server import arguments
from tests.conftest import Home, find_server, redis_log, until
from tests.installed import User

REMOVED = (
    "MODULE LOAD ./x.so", "DEBUG RELOAD", "REPLICAOF 127.0.0.1 1", "SLAVEOF 127.0.0.1 1",
    "MIGRATE 127.0.0.1 1 key 0 1", "CONFIG SET dir /tmp", "CONFIG SET dbfilename x.so",
    "CONFIG SET appendfilename x.sh", "CONFIG REWRITE", "ACL SETUSER default +@all", "ACL LOAD",
)  # fmt: skip
TOOLS = Path(sys.executable).parent


@pytest.fixture
def url(user: User) -> str:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    return user.hivepipe("url").strip()


def test_no_client_can_load_code_write_files_or_connect_elsewhere(user: User, url: str) -> None:
    with redis.Redis.from_url(url) as client:
        for command in REMOVED:
            with pytest.raises(redis.ResponseError, match="unknown command"):
                client.execute_command(*command.split())
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command("SCRIPT", "DEBUG", "YES")
        assert client.save()  # allowed, because it only writes to the configured file
        assert client.register_script("return 1")() == 1
    assert (user.recorded / "dump.rdb").exists()


def test_a_file_with_a_removed_command_is_not_loaded(private_home: Home) -> None:
    folder = private_home.path
    folder.mkdir()
    server = [find_server(), *arguments(str(folder), f"{folder}/redis.sock")]
    by_name = {command.split()[0]: command.split() for command in REMOVED}
    for name, words in by_name.items():
        shutil.rmtree(folder / "appendonlydir", ignore_errors=True)  # Redis 7 moves the file there
        planted = [f"*{len(words)}", *(f"${len(word)}\r\n{word}" for word in words), ""]
        (folder / "appendonly.aof").write_bytes("\r\n".join(planted).encode())
        done = subprocess.run(server, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 1, name
        assert f"nknown command '{name}'" in done.stdout
        assert "append only file" in done.stdout


def test_an_older_server_can_read_the_rewritten_file(private_home: Home) -> None:
    folder = private_home.path
    folder.mkdir()
    address = f"{folder}/redis.sock"
    server = subprocess.Popen(
        [find_server(), *arguments(str(folder), address)], stdout=subprocess.DEVNULL
    )
    try:
        until(lambda: answers(address), "it does not answer")
        with redis.Redis(unix_socket_path=address) as client:
            client.set("key", "value")
            client.bgrewriteaof()
            until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "no rewrite")
    finally:
        server.kill()
        server.wait()
    found = redis_log(folder)
    assert b"value" in found
    assert b"redis-ver" not in found  # a field of the RDB format, which has versions


def test_a_stack_with_such_a_file_does_not_start_and_logs_the_reason(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    planted = "*3\r\n$6\r\nMODULE\r\n$4\r\nLOAD\r\n$6\r\n./x.so\r\n"
    (user.recorded / "appendonly.aof").write_bytes(planted.encode())
    user.own(user.recorded)
    reasons = [user.hivepipe("up", "-d", expect=1)]
    reasons += [user.hivepipe("status", expect=1) for _ in range(5)]
    # It is restarted again and again. For a moment it loads the file, or accepts a connection.
    assert sum("Redis does not stay up" in reason for reason in reasons) >= 3, reasons
    output = (user.recorded / "logs" / "redis.log").read_text()
    assert "nknown command 'MODULE'" in output


def test_the_tools_of_rq_work(user: User, url: str) -> None:
    user.fire("SessionStart", source="startup")
    for words in (
        ("info", "-u", url),
        ("worker", "--burst", "-u", url, "elsewhere"),
        ("worker", "--burst", "--with-scheduler", "-u", url, "elsewhere"),
    ):
        done = subprocess.run(
            [TOOLS / "rq", *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "ermission" not in done.stdout + done.stderr
        assert "unknown command" not in done.stdout + done.stderr
    scheduler = subprocess.Popen(
        [TOOLS / "rqscheduler", "-u", url, "-i", "0.2"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert scheduler.stderr is not None
        assert "birth" in scheduler.stderr.readline()
        # the stack's own scheduler holds the lock
        assert "Lock already taken" in scheduler.stderr.readline()
    finally:
        scheduler.kill()
        scheduler.communicate()
    assert "2 workers" in user.hivepipe("rq", "--", "info")
    assert "and every hook records" in user.hivepipe("doctor", "--probe")
