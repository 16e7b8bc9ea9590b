"""How the URL of a Redis server is parsed, checked and shown."""

import socket
from pathlib import Path

import pytest

from hivepipe.queue.endpoint import decoded, is_local, parse, shown, wake_up


@pytest.mark.parametrize(
    ("url", "family", "place", "database", "login"),
    [
        ("redis://127.0.0.1", socket.AF_INET, ("127.0.0.1", 6379), "", []),
        ("redis://127.0.0.1:7000/3", socket.AF_INET, ("127.0.0.1", 7000), "3", []),
        ("redis://:p%40ss@127.0.0.1/1", socket.AF_INET, ("127.0.0.1", 6379), "1", ["p@ss"]),
        ("redis://me:p:w@127.0.0.1:1", socket.AF_INET, ("127.0.0.1", 1), "", ["me", "p:w"]),
        ("redis://[::1]:7000/2", socket.AF_INET6, ("::1", 7000), "2", []),
        ("redis://[::1]", socket.AF_INET6, ("::1", 6379), "", []),
        ("unix:///run/redis.sock", socket.AF_UNIX, "/run/redis.sock", "", []),
        ("unix:///a%20b/r.sock?db=4", socket.AF_UNIX, "/a b/r.sock", "4", []),
        ("unix://:%C3%A9@/r.sock", socket.AF_UNIX, "/r.sock", "", ["é"]),
    ],
)
def test_a_url_gives_an_address_a_login_and_a_database(
    url: str, family: int, place: object, database: str, login: list[str]
) -> None:
    found = parse(url)
    assert (found.family, found.place, found.database) == (family, place, database)
    assert found.login == login


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:1",
        "http://x",
        "redis://127.0.0.1:port",
        "redis://127.0.0.1/x",
        "redis://%zz@h",
    ],
)
def test_an_invalid_redis_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(url)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("/run/redis.sock", True),
        ("unix:///run/redis.sock", True),
        ("redis://127.0.0.1:6379", True),
        ("redis://:pw@127.8.0.1/1", True),
        ("redis://[::1]", True),
        ("rediss://127.0.0.1", False),
        ("redis://10.0.0.1", False),
        ("redis://[::1]:6380/2", True),
        ("redis://127.0.0.1@10.0.0.1", False),
        ("redis://127.0.0.1.example.org:6379", False),
        ("redis://127.example.org", False),
        ("redis://[::1].example.org", False),
        ("redis://localhost", False),  # `up` writes an address in its place
    ],
)
def test_hooks_connect_to_sockets_and_loopback_addresses_only(url: str, local: bool) -> None:
    assert is_local(url) is local


def test_no_password_is_shown() -> None:
    assert shown("redis://me:secret@h:1/2") == "redis://me:***@h:1/2"
    assert shown("redis://:secret@h") == "redis://:***@h"
    for url in ("redis://h", "/run/redis.sock"):
        assert shown(url) == url
    assert decoded("a%2fb%C3%A9c") == "a/béc"


def test_a_wake_up_returns_whether_a_process_listens(tmp_path: Path) -> None:
    assert wake_up(str(tmp_path)) is False
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bell.bind(str(tmp_path / "bell.sock"))
    assert wake_up(str(tmp_path)) is True
    assert bell.recv(10) == b"!"
    for _ in range(5000):  # more than a socket buffer holds
        assert wake_up(str(tmp_path)) is True
    bell.close()
    assert wake_up(str(tmp_path)) is False, "the socket file exists, but no process listens"
