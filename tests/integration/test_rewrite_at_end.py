"""The append-only file of a stack that stops while Redis rewrites the file."""

from hivepipe.queue.housekeeping import Housekeeper
from tests.conftest import Home, Server

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
    files = [path for path in private_home.path.rglob("*.aof") if path.is_file()]
    assert files
    assert not [path for path in files if SECRET in path.read_bytes()]
