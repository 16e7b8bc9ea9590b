"""Redis' append-only file after a full disk."""

import resource
import signal

import psutil  # type: ignore[import-untyped]
import pytest
import redis

from hivepipe.stack.append_only_file import close_gaps
from hivepipe.stack.ping import answers
from hivepipe.stack.redis_server import version_of
from tests.conftest import Home, Writer, find_server, redis_files, redis_log, until


def test_commands_around_a_short_write_are_loaded(private_home: Home) -> None:
    if (version_of(find_server()) or ())[:1] < (7,):
        pytest.skip("Redis 6.2 opens its file for appending")
    home = private_home
    server = Writer(home, "redis")
    server.start()
    try:
        until(lambda: answers(home.address), "no Redis")
        with redis.Redis(unix_socket_path=home.address) as client:
            client.bgrewriteaof()
            until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "no rewrite")
            client.set("before", "1")
            # Stands for a full disk: a write is cut short, later ones are refused.
            limit(client, redis_files(home.path)[-1].stat().st_size + 10)
            client.set("meanwhile", "1")
            with pytest.raises(redis.ResponseError, match="MISCONF"):
                client.set("refused", "1")
            limit(client, resource.RLIM_INFINITY)
            until(lambda: is_set(client, "after"), "Redis still writes nothing")
        server.end(signal.SIGKILL)
        assert b"\0" in redis_log(home.path), "no gap: this test can go"
        server.start()
        until(lambda: answers(home.address), "Redis does not load its file")
        with redis.Redis(unix_socket_path=home.address) as client:
            assert set(client.keys()) == {b"before", b"meanwhile", b"after"}
    finally:
        server.end()


def limit(client: redis.Redis, size: int) -> None:
    process = psutil.Process(client.info("server")["process_id"])
    process.rlimit(psutil.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def is_set(client: redis.Redis, name: str) -> bool:
    try:
        return bool(client.set(name, "1"))
    except redis.ResponseError:
        return False


def test_only_zeros_between_commands_are_removed(private_home: Home) -> None:
    command = b"*2\r\n$3\r\nGET\r\n$6\r\n\r\n\0\0*1\r\n"
    path = private_home.path / "appendonlydir" / "appendonly.aof.2.incr.aof"
    path.parent.mkdir(parents=True)
    torn = command[:-4]
    for found, wanted in {
        command * 2: command * 2,
        command + bytes(9) + command + bytes(5) + command: command * 3,
        command + bytes(9) + torn: command + torn,
        torn + bytes(9) + command: torn + bytes(9) + command,
        b"REDIS0011\n\0" + command: b"REDIS0011\n\0" + command,
        bytes(700) + command: command,
        b"": b"",
    }.items():
        path.write_bytes(found)
        close_gaps(str(private_home.path))
        assert path.read_bytes() == wanted
    assert [*private_home.path.iterdir()] == [path.parent]
