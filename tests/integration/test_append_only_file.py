"""Redis' append-only file after a full disk."""

import errno
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
import redis

from hivepipe.errors import NewerEnvelopeError
from hivepipe.events.job_plan import ENVELOPE_VERSION
from hivepipe.queue.all_jobs import spool_jobs
from hivepipe.queue.client import job_data
from hivepipe.queue.connection import connect
from hivepipe.queue.spooled import read_spool_file, spool_files
from hivepipe.stack import redis_server, temporary_redis
from hivepipe.stack.append_only_file import close_gaps
from hivepipe.stack.home_files import why_not_ours
from hivepipe.stack.ping import answers
from hivepipe.stack.redis_server import version_of
from hivepipe.stack.runtime_folder import Stack
from tests.conftest import (
    Home,
    Server,
    Writer,
    find_server,
    fire,
    redis_files,
    redis_log,
    unfinished,
    until,
)
from tests.payloads import USER_PROMPT_SUBMIT, changed


@pytest.mark.parametrize("times", [1, 2])
def test_commands_around_a_short_write_are_loaded(private_home: Home, times: int) -> None:
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
            fill_disk(client, home, "meanwhile")
            if times == 2:
                client.set("cut off", "1")
                fill_disk(client, home, "again")
        server.end(signal.SIGKILL)
        assert b"\0" in redis_log(home.path), "no gap: this test can go"
        server.start()
        until(lambda: answers(home.address), "Redis does not load its file")
        with redis.Redis(unix_socket_path=home.address) as client:
            again = {b"again"} if times == 2 else set()
            assert set(client.keys()) == {b"before", b"meanwhile", b"after", *again}
    finally:
        server.end()


def fill_disk(client: redis.Redis, home: Home, name: str) -> None:
    """Cut a write short, as a full disk does; later ones are refused until there is room."""
    limit(client, redis_files(home.path)[-1].stat().st_size + 10)
    client.set(name, "1")
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        client.set("refused", "1")
    limit(client, resource.RLIM_INFINITY)
    until(lambda: is_set(client, "after"), "Redis still writes nothing")


def limit(client: redis.Redis, size: int) -> None:
    process = psutil.Process(client.info("server")["process_id"])
    process.rlimit(psutil.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def is_set(client: redis.Redis, name: str) -> bool:
    try:
        return bool(client.set(name, "1"))
    except redis.ResponseError:
        return False


def test_only_gaps_and_what_they_cut_off_are_removed(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = b"*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nEXEC\r\n"
    command = b"*2\r\n$3\r\nGET\r\n$6\r\n\r\n\0\0*1\r\n"
    path = private_home.path / "appendonlydir" / "appendonly.aof.2.incr.aof"
    path.parent.mkdir(parents=True)
    torn = command[:-4]
    for found, wanted in {
        command * 2: command * 2,
        command + bytes(9) + command + bytes(5) + command: command * 3,
        command + bytes(9) + torn: command + torn,
        command + torn + bytes(9) + command + torn: command * 2 + torn,
        command + transaction[:-1] + bytes(9) + transaction: command + transaction,
        command + bytes(9) + b"*" + bytes(9) + command: command * 2,
        torn + b"\0*1" + torn: torn + b"\0*1" + torn,
        b"REDIS0011\n\0" + command: b"REDIS0011\n\0" + command,
        bytes(700) + command: command,
        b"": b"",
    }.items():
        path.write_bytes(found)
        close_gaps(str(private_home.path))
        assert path.read_bytes() == wanted
    path.write_bytes(found := command + bytes(9) + command)

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    close_gaps(str(private_home.path))
    assert path.read_bytes() == found
    assert [*private_home.path.iterdir()] == [path.parent]


def test_jobs_that_wait_in_the_files_of_two_servers_are_processed_once(
    private_home: Home, writer: Writer, new_worker: Callable[[str], Writer], tmp_path: Path
) -> None:
    """Redis 7 would ignore the file of Redis 6.2 beside its own folder."""
    home, newer, older = private_home, find_server(), redis_server._packaged()
    if not older or (version_of(newer) or ())[:1] < (7,):
        pytest.skip("needs Redis 7 and the 6.2 of the extra `embedded`")
    for path in (home.path, Path(home.address).parent.parent, Path(home.address).parent):
        path.mkdir(mode=0o700, exist_ok=True)
    for program in (newer, older):
        command = [program, *redis_server.arguments(str(home.path), home.address)]
        server = Server(home, home.address, command)
        server.start()
        fire("UserPromptSubmit", changed(USER_PROMPT_SUBMIT, prompt=f"from {program}"), home.env)
        until(lambda: b"rq:queue" in redis_log(home.path), "no job")
        assert not home.spool
        server.end(signal.SIGKILL)
    folder = home.path / "appendonlydir"
    shutil.copytree(folder, tmp_path / "kept")
    aside = Path(f"{folder}.1234567890123456789")
    aside.mkdir()  # a deletion was interrupted
    users = [shutil.copytree(folder, f"{folder}.{suffix}") for suffix in ("backup", "20261127")]
    link = Path(f"{folder}.1234567890123456780")
    link.symlink_to(shutil.copytree(folder, tmp_path / "another"))
    own = new_worker("redis")
    for _ in range(2):
        own.start()
        until(lambda: answers(home.address), "no Redis")
        assert not redis_server.folders_aside(str(home.path))
        writer.start()
        until(lambda: not home.spool and home.count("prompts") == 2, "a prompt is missing")
        until(lambda: not unfinished(server), "a job waits")
        assert home.count("prompts") == 2
        writer.end()
        own.end()
        shutil.copytree(tmp_path / "kept", aside)  # as if killed before the deletion
    parts = sorted(os.listdir(tmp_path / "kept"))
    assert all(sorted(os.listdir(each)) == parts for each in (*users, link))


def test_a_folder_that_cannot_be_loaded_stays_and_is_named(
    private_home: Home, new_worker: Callable[[str], Writer]
) -> None:
    home = private_home
    part = home.path / "appendonlydir.1234567890123456789" / "appendonly.aof.1.incr.aof"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"damaged")
    manifest = part.with_name("appendonly.aof.manifest")
    manifest.write_text(f"file {part.name} seq 1 type i\n")
    own = new_worker("redis")
    own.start()
    until(lambda: answers(home.address), "no Redis")
    own.end()
    assert part.read_bytes() == b"damaged"
    assert not why_not_ours(str(home.path), str(part.relative_to(home.path)))
    assert str(part.parent) in home.command("doctor", expect=None)


def test_a_folder_of_redis_7_that_only_an_older_redis_finds_is_named(
    private_home: Home, new_worker: Callable[[str], Writer]
) -> None:
    home, older = private_home, redis_server._packaged()
    if not older:
        pytest.skip("needs the 6.2 of the extra `embedded`")
    part = home.path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"")
    os.utime(part, (1, 1))
    (home.path / "appendonly.aof").write_bytes(b"")
    home.env["PATH"] = os.path.dirname(older)
    own = new_worker("redis")
    own.start()
    until(lambda: answers(home.address), "no Redis")
    own.end()
    (aside,) = redis_server.folders_aside(str(home.path))
    assert (aside / part.name).exists()
    assert f"{aside}, which Redis could not load" in home.command("doctor", expect=None)


def test_a_job_of_a_newer_hivepipe_is_spooled_until_an_upgrade(
    private_home: Home, new_server: Callable[[Home], Server], tmp_path: Path
) -> None:
    newer = {"v": ENVELOPE_VERSION + 1, "new": "format"}
    with new_server(private_home).client() as client:
        client.hset("rq:job:abc123", "data", job_data(json.dumps(newer)))
        spool_jobs(client, str(tmp_path))
    (file,) = spool_files(tmp_path)
    assert json.loads(file.read_bytes())["jobs"][0]["envelope"] == newer
    with pytest.raises(NewerEnvelopeError):
        read_spool_file(file)


def test_a_temporary_redis_that_does_not_stop_is_killed(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary_redis, "STOP_SECS", 0.1)
    private_home.path.mkdir(mode=0o700)
    stack = Stack.prepared(str(private_home.path))
    with temporary_redis.temporary_redis(stack) as address, connect(address) as client:
        client.set("kept", "1")
        process = psutil.Process(client.info("server")["process_id"])
        process.suspend()
    gone, _ = psutil.wait_procs([process], 10)
    assert gone
    with temporary_redis.temporary_redis(stack) as address, connect(address) as client:
        assert client.get("kept") == b"1"
