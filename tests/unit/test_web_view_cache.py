"""Equal requests between two changes share one answer."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.web import view_cache
from hivepipe.web.view_cache import MOST_BYTES, Answer, ViewCache
from tests.web_scene import SESSION


class Counted:
    """Makes numbered answers. `state` changes with each change of the databases."""

    def __init__(self, **more: Any) -> None:
        self.made, self.state, self.more = 0, 0, more
        self.cache = ViewCache(lambda: self.state)

    def make(self) -> Answer:
        self.made += 1
        return Answer(f"{self.made}".encode(), **self.more)

    def get(self, key: str = "now") -> str | bytes:
        return self.cache.get(key, self.make).text.decode()


def test_an_answer_is_cached_until_the_state_changes() -> None:
    counted = Counted()
    assert [counted.get(), counted.get(), counted.get("costs")] == ["1", "1", "2"]
    counted.state = 1
    assert [counted.get(), counted.get()] == ["3", "3"]


def test_an_answer_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, now = Counted(), view_cache.time.monotonic()
    assert counted.get() == "1"
    monkeypatch.setattr(view_cache.time, "monotonic", lambda: now + view_cache.LASTS_SECS + 1)
    assert counted.get() == "2"


@pytest.mark.parametrize("more", [{"status": 404}, {"is_cacheable": False}], ids=["error", "part"])
def test_an_error_or_unfinished_answer_is_not_cached(more: dict[str, Any]) -> None:
    counted = Counted(**more)
    assert [counted.get(), counted.get()] == ["1", "2"]


def test_concurrent_requests_share_one_answer() -> None:
    counted = Counted()
    with ThreadPoolExecutor(20) as pool:
        assert {each.result() for each in [pool.submit(counted.get) for _ in range(20)]} == {"1"}


def test_the_cache_is_bounded() -> None:
    cache = ViewCache(lambda: 0)
    for number in range(20):
        cache.get(number, lambda: Answer(b"x" * (MOST_BYTES // 4)))
    assert len(cache._slots) == 4
    assert cache.get(19, lambda: Answer(b"new")).text != b"new"
    assert cache.get(0, lambda: Answer(b"new")).text == b"new"


def test_a_change_of_the_database_is_shown_at_once(client: Any, home: Path) -> None:
    assert client.get("/now.json").json()["sessions"][0]["title"] != "changed"
    with closing(Database(home / "hive.db")) as db:
        db.execute("UPDATE sessions SET objective = 'changed' WHERE id = :id", {"id": SESSION})
    assert client.get("/now.json").json()["sessions"][0]["title"] == "changed"
