"""The append-only file of a stack that stops, or is killed, while Redis rewrites the file."""

import psutil  # type: ignore[import-untyped]

from hivepipe.queue.housekeeping import Housekeeper
from tests.conftest import Home, Server, Writer, redis_log, until

SECRET = b"my-secret-text"


def test_a_rewrite_in_progress_is_followed_by_another(
    private_home: Home, redis_server: Server
) -> None:
    with redis_server.client() as client:
        client.mset({f"key-{number}": number for number in range(400)})
        client.config_set("rdb-key-save-delay", 2000)  # microseconds for each key
        client.bgrewriteaof()
        client.set("job", SECRET)
        client.delete("job")
        assert client.info("persistence")["aof_rewrite_in_progress"]
        Housekeeper(client, private_home.path, redis_server.address).rewrite_aof_at_end()
        assert not client.info("persistence")["aof_rewrite_in_progress"]
    found = redis_log(private_home.path)
    assert found
    assert SECRET not in found


def test_the_next_start_deletes_what_a_killed_rewrite_left(
    private_home: Home, redis_server: Server
) -> None:
    with redis_server.client() as client:
        client.mset({f"key-{number}": SECRET * 100 for number in range(400)})
        client.config_set("rdb-key-save-delay", 20_000)
        client.bgrewriteaof()
        until(lambda: b"my-secret" in unfinished(private_home), "no text was written")
        process = psutil.Process(client.info("server")["process_id"])
    # Redis first: it deletes the file of a child that was killed.
    for each in (process, *process.children()):
        each.kill()
    psutil.wait_procs([process])
    assert unfinished(private_home)
    started = Writer(private_home, "redis")
    started.start()
    try:
        until(lambda: not unfinished(private_home), "it was not deleted")
    finally:
        started.end()


def unfinished(home: Home) -> bytes:
    return b"".join(path.read_bytes() for path in home.path.glob("temp-*"))
